# SPDX-License-Identifier: Apache-2.0
"""Models on a device of ROCm with kernels of MIOpen: planned without the library, run with doubles of it on the
simulated device, and what is said where it is missing."""
import json
import pathlib

import pytest

from device_network import check_run, network


@pytest.fixture
def doubles(binary) -> pathlib.Path:
    folder = pathlib.Path(binary).parents[1] / "lib/dovetail-test"
    if not (folder / "miopen3/libMIOpen.so.1").exists():
        pytest.skip("the doubles of MIOpen are not built")
    return folder


def planned(dovetail, providers: str):
    model = network()
    dovetail("compile", dovetail.write("net.onnx", model), "--target=rocm:gfx942", "--select=estimate",
             f"--only={providers}", "--prefer=library", "-o", "net.dvt")
    return model


@pytest.fixture
def compiled(dovetail):
    return planned(dovetail, "miopen,reference")


def test_planned_without_the_library(dovetail, compiled):
    report = dovetail("explain", "net.dvt", "--all").stdout
    assert "miopen:convolution:immediate:late" in report or "miopen:convolution:fusion:late" in report, report
    assert "convolution:find:late" in report
    assert "predicted" in report


@pytest.mark.parametrize("version", [2, 3])
def test_runs_on_the_simulated_device(dovetail, doubles, compiled, version):
    check_run(dovetail, compiled, DOVETAIL_DRIVERS=f"rocm={doubles / 'libamdhip64-sim.so'}",
              DOVETAIL_VENDOR_PATH=str(doubles / f"miopen{version}"))


def test_own_kernels_stand_in_for_the_library(dovetail, doubles):
    model = planned(dovetail, "miopen,native,reference")
    assert "miopen:convolution" in dovetail("explain", "net.dvt").stdout
    check_run(dovetail, model, DOVETAIL_DRIVERS=f"rocm={doubles / 'libamdhip64-sim.so'}")


def test_without_the_library_it_says_so(dovetail, doubles, compiled):
    report = json.loads(dovetail("doctor", "--json").stdout)
    if not any(library["name"] == "MIOpen" and library["missing"] for provider in report["providers"]
               for library in provider["libraries"]):
        pytest.skip("this machine has MIOpen")
    dovetail.refuses(3, "run", "net.dvt", says=["MIOpen 2.10 to 3.x was not found.*ROCm has it"],
                     DOVETAIL_DRIVERS=f"rocm={doubles / 'libamdhip64-sim.so'}")
