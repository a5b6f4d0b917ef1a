# SPDX-License-Identifier: Apache-2.0
"""Candidates measured on another machine: exported, run, imported; for this kind of processor and for a device that is
simulated."""
import json
import pathlib
import re
import subprocess

import pytest

import makers
from command import Command

SMALL = "--only=native,reference"


@pytest.fixture
def tiny(dovetail) -> str:
    return dovetail.write("tiny.onnx", makers.tiny())


@pytest.fixture(scope="session")
def candidates(binary, shared_cache, tmp_path_factory) -> bytes:
    """Those of makers.tiny() for this processor."""
    command = Command(binary, tmp_path_factory.mktemp("candidates"), shared_cache)
    command("tune-export", command.write("tiny.onnx", makers.tiny()), SMALL, "-o", "tiny.candidates")
    return (command.folder / "tiny.candidates").read_bytes()


@pytest.fixture
def exported(dovetail, candidates) -> str:
    return dovetail.write("tiny.candidates", candidates)


@pytest.fixture
def device(binary) -> dict:
    """Drivers of the simulated devices, and a provider of plain kernels for them."""
    build = binary.parents[1]
    drivers = build / "lib/dovetail-test"
    if not (drivers / "libcuda-sim.so").exists():
        pytest.skip("the simulated drivers are not built")
    return {"DOVETAIL_DRIVERS": f"cuda={drivers}/libcuda-sim.so:rocm={drivers}/libamdhip64-sim.so",
            "DOVETAIL_PLUGINS": str(build / "test/device-plugins")}


def test_to_another_machine_and_back(dovetail, tiny, exported):
    report = json.loads(dovetail("tune-run", exported, "-o", "tiny.times", "--json").stdout)
    assert report["tried"] == report["problems"] > 3 and report["failed"] == 0
    assert 0 < report["timed"] <= report["candidates"] and report["target"] == "cpu"
    imported = json.loads(dovetail("tune-import", "tiny.times", "--cache=there", "--json").stdout)
    assert imported["timed"] == report["timed"] and imported["measured_on"] == report["measured_on"]
    done = json.loads(dovetail("compile", tiny, SMALL, "--cache=there", "--select=replay", "-o", "tiny.dvt",
                               "--json").stdout)
    assert done["problems_from_cache"] == done["problems"]
    explained = json.loads(dovetail("explain", "tiny.dvt", "--json").stdout)
    assert explained["selection"] == f"replay, with times of {report['measured_on']}"
    assert f"with times of {report['measured_on']}" in dovetail("explain", "tiny.dvt").stdout
    dovetail("run", "tiny.dvt")


def test_goes_on_where_it_ended(dovetail, exported):
    first = json.loads(dovetail("tune-run", exported, "-o", "tiny.times", "--budget=0.000001", "--json").stdout)
    assert first["tried"] == 0
    dovetail.refuses(2, "tune-import", "tiny.times", "--cache=there", says="holds no times yet.*tune-run")
    second = json.loads(dovetail("tune-run", exported, "-o", "tiny.times", "--json").stdout)
    assert second["tried"] == second["problems"]
    again = dovetail("tune-run", exported, "-o", "tiny.times")
    assert re.search(r"tiny.times: (\d+) of \1 problems of tiny.onnx tried on ", again.stdout)


def test_export_within_a_budget(dovetail, tiny):
    report = json.loads(dovetail("tune-export", tiny, SMALL, "--budget=0.000000001", "-o", "none.candidates",
                                 "--json").stdout)
    assert report["problems"] == 0 and report["left"] > 3


def test_wrong_files(dovetail, tiny, candidates, exported):
    for command in ("tune-run", "x", "-o", "out"), ("tune-import", "x", "--cache=there"):
        def refuses(content, says, command=command):
            arguments = [argument if argument != "x" else dovetail.write("wrong", content) for argument in command]
            dovetail.refuses(2, *arguments, says=f"wrong.*{says}")
        refuses(makers.tiny(), "holds no candidates")
        refuses(b"", "holds no candidates")
        refuses(candidates[:40], "cut short")
        refuses(candidates[:-1], "bytes instead of")
        refuses(candidates[:8] + b"\x09" + candidates[9:], "format version 9, this is version 1")
        refuses(candidates[:100] + b"#" + candidates[101:], "altered or is damaged")
        dovetail.refuses(2, *[argument if argument != "x" else "missing" for argument in command], says="missing")
    dovetail.refuses(2, "tune-import", exported, "--cache=there", says="holds no times yet")
    dovetail.refuses(2, "tune-run", exported, "-o", tiny, says="tiny.onnx.*holds no candidates.*another name")
    dovetail.refuses(2, "tune-run", exported, "-o", exported, says="holds times of another export")
    dovetail.refuses(2, "tune-run", exported, "-o", "nowhere/out", says="nowhere")


def test_wrong_options(dovetail, tiny, tiny_artifact, exported):
    dovetail.refuses(2, "tune-export", tiny, says="--output is required")
    dovetail.refuses(2, "tune-run", exported, says="--output is required")
    dovetail.refuses(2, "tune-export", dovetail.write("a.dvt", tiny_artifact), "-o", "x", says="is an artifact")
    dovetail.refuses(2, "tune-export", tiny, "-o", tiny, says="is the model itself")
    dovetail.refuses(2, "tune-export", tiny, "--target=cuda:sm_35", "-o", "x", says="known are cpu")
    dovetail.refuses(2, "tune-run", exported, "-o", "x", "--budget=-1", says="number of seconds")
    dovetail.refuses(2, "tune-run", exported, "-o", "x", "--target=cpu", says="not expected")


def test_providers_that_are_not_there(dovetail, tiny, binary):
    toy = f"--plugins={binary.parents[1] / 'test/planner_plugins'}"
    dovetail("tune-export", tiny, toy, "--only=toy,reference", "-o", "toy.candidates")
    done = dovetail("tune-run", "toy.candidates", "-o", "toy.times")
    assert "the provider toy is not here; its kernels are not measured" in done.stderr
    done = dovetail("tune-run", "toy.candidates", "-o", "toy.times", toy)  # goes on with what was missing
    assert done.stderr == ""
    done = dovetail("tune-import", "toy.times", "--cache=there")
    assert "do not use all of the times: the provider toy is not here" in done.stderr
    assert dovetail("tune-import", "toy.times", "--cache=there", toy).stderr == ""
    dovetail("compile", tiny, toy, "--only=toy,reference", "--cache=there", "--select=replay", "-o", "tiny.dvt")
    dovetail("tune-export", tiny, toy, "--only=toy", "-o", "alone.candidates")
    done = dovetail.raw("tune-run", "alone.candidates", "-o", "alone.times")
    assert done.returncode == 3 and "none of its kernels can run here; the provider toy is not here" in done.stderr


@pytest.mark.parametrize("target", ["cuda:sm_90", "rocm:gfx942"])
def test_on_a_simulated_device(dovetail, tiny, device, target):
    made = json.loads(dovetail("tune-export", tiny, f"--target={target}", "--only=simulated,reference", "-o", "candidates",
                               "--cache=here", "--json", **device).stdout)
    assert made["target"] == target and made["candidates"] >= 3 and made["failed"] == 0
    report = json.loads(dovetail("tune-run", "candidates", "-o", "times", "--json", **device).stdout)
    assert report["failed"] == 0 and report["timed"] == made["candidates"] and "simulated" in report["measured_on"]
    dovetail("tune-import", "times", "--cache=here", **device)
    dovetail("compile", tiny, f"--target={target}", "--only=simulated", "--cache=here", "--budget=0", "-o", "tiny.dvt",
             **device)
    explained = json.loads(dovetail("explain", "tiny.dvt", "--json", **device).stdout)
    kernels = [step for step in explained["steps"] if step.get("on_device")]
    assert len(kernels) == 3 and all(step["measured"] for step in kernels)
    assert explained["selection"].endswith(f"with times of {report['measured_on']}")
    text = dovetail("explain", "tiny.dvt", **device).stdout
    assert "times of 3 of its 3 kernels were measured on one, transfers are predictions" in text
    dovetail("run", "tiny.dvt", **device)
    dovetail("compile", tiny, f"--target={target}", "--only=simulated", "--cache=here", "--select=estimate", "-o",
             "tiny.dvt", **device)
    assert "its kernels and of transfers are predictions" in dovetail("explain", "tiny.dvt", **device).stdout


def test_without_its_device(dovetail, tiny, device):
    dovetail("tune-export", tiny, "--target=cuda:sm_80", "--only=simulated,reference", "-o", "candidates", **device)
    dovetail.refuses(3, "tune-run", "candidates", "-o", "times",
                     says="kernels are for cuda:sm_80, the device here is cuda:sm_90; export them with --target=cuda:sm_90",
                     **device)
    dovetail.refuses(3, "tune-run", "candidates", "-o", "times", DOVETAIL_DRIVERS="cuda=/nowhere/x.so",
                     says="candidates: .*/nowhere/x.so")


def test_runs_without_a_compiler(binary, dovetail, exported):
    """The program for machines with devices needs neither LLVM nor protobuf."""
    small = binary.parent / "dovetail-tune"
    needed = subprocess.run(["ldd", small], capture_output=True, text=True, check=True).stdout
    assert not re.search("LLVM|MLIR|protobuf", needed)
    folder = pathlib.Path(dovetail.folder)
    done = subprocess.run([small, "tune-run", exported, "-o", "times"], cwd=folder, env=dovetail.environment, text=True,
                          capture_output=True, timeout=60, check=False)
    assert done.returncode == 0 and "tried on" in done.stdout, done.stderr
