# SPDX-License-Identifier: Apache-2.0
"""Models on a device of ROCm with kernels of MIOpen: planned without the library, run with doubles of it on the
simulated device, and what is said where it is missing."""
import json
import pathlib

import numpy as np
import onnxruntime
import pytest

import makers


@pytest.fixture
def doubles(binary) -> pathlib.Path:
    folder = pathlib.Path(binary).parents[1] / "lib/dovetail-test"
    if not (folder / "miopen3/libMIOpen.so.1").exists():
        pytest.skip("the doubles of MIOpen are not built")
    return folder


def network():
    """Convolutions with all that may follow them, pools, and a classifier."""
    draw = np.random.default_rng(3)

    def weights(name, *shape):
        return makers.constant(name, draw.uniform(-0.5, 0.5, shape).astype(np.float32))

    nodes = [makers.node("Conv", "x w0 b0", "c0", name="stem", pads=[1, 1, 1, 1], strides=[2, 2]),
             makers.node("Relu", "c0", "r0"),
             makers.node("MaxPool", "r0", "p0", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1]),
             makers.node("Conv", "p0 w1", "c1", name="residual", pads=[1, 1, 1, 1]),
             makers.node("Add", "c1 p0", "a1"),
             makers.node("Relu", "a1", "r1"),
             makers.node("Conv", "r1 w2 b2", "c2", name="grouped", group=2, pads=[1, 1, 1, 1]),
             makers.node("Sigmoid", "c2", "s2"),
             makers.node("GlobalAveragePool", "s2", "g"),
             makers.node("Flatten", "g", "f"),
             makers.node("Gemm", "f w3", "l"),
             makers.node("Softmax", "l", "y")]
    constants = [weights("w0", 8, 3, 3, 3), weights("b0", 8), weights("w1", 8, 8, 3, 3), weights("w2", 8, 4, 3, 3),
                 weights("b2", 8), weights("w3", 8, 5)]
    return makers.model(nodes, [makers.value("x", [2, 3, 12, 10])], [makers.value("y", [2, 5])], constants)


def planned(dovetail, providers: str):
    model = network()
    dovetail("compile", dovetail.write("net.onnx", model), "--target=rocm:gfx942", "--select=estimate",
             f"--only={providers}", "--prefer=library", "-o", "net.dvt")
    return model


@pytest.fixture
def compiled(dovetail):
    return planned(dovetail, "miopen,reference")


def check_run(dovetail, model, **environment):
    x = np.random.default_rng(4).uniform(-1, 1, (2, 3, 12, 10)).astype(np.float32)
    np.save(dovetail.folder / "x.npy", x)
    dovetail("run", "net.dvt", "--input", "x=x.npy", "--output", "y.npz", "--repeat", "2", **environment)
    wanted = onnxruntime.InferenceSession(model.SerializeToString(),
                                          providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    np.testing.assert_allclose(np.load(dovetail.folder / "y.npz")["y"], wanted, rtol=1e-5, atol=1e-6)


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
