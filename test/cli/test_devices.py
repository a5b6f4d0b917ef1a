# SPDX-License-Identifier: Apache-2.0
"""Targets that are devices: which there are, what is refused, and what works without having one."""
import json
import pathlib

import pytest

import makers

RELU = "problem(%0: f32[64,32]) %1: f32[64,32] = relu@14(%0) return(%1)"
TARGETS = ["cuda:sm_80", "cuda:sm_90", "cuda:sm_100", "rocm:gfx90a", "rocm:gfx942"]


@pytest.fixture
def tiny(dovetail) -> str:
    return dovetail.write("tiny.onnx", makers.tiny())


def described(dovetail, target: str) -> dict:
    folder = pathlib.Path(dovetail.binary).parents[1] / "lib/dovetail/devices"
    return json.loads((folder / f"{target.replace(':', '-')}.json").read_text())


def test_doctor_lists_them(dovetail):
    report = json.loads(dovetail("doctor", "--json").stdout)
    assert sorted(known["target"] for known in report["device_targets"]) == sorted(TARGETS)


def test_steps_stay_here_where_no_provider_serves_the_device(dovetail, tiny):
    dovetail("compile", tiny, "--target=cuda:sm_90", "--select=estimate", "--only=reference", "-o", "tiny.dvt")
    dovetail.refuses(3, "run", "tiny.dvt", DOVETAIL_DRIVERS="cuda=/nowhere/x.so",
                     says="compiled for cuda:sm_90, which cannot run here.*no driver")


def test_extents_that_depend_on_data_stay_here(dovetail):
    nodes = [makers.node("NonZero", "x", "places"), makers.node("Cast", "places", "f", to=1),
             makers.node("Relu", "f", "y", name="positive")]
    found = dovetail.write("found.onnx", makers.model(nodes, [makers.value("x", [4])], [makers.value("y", [1, None])]))
    told = dovetail("explain", found, "--target=cuda:sm_90", "--select=estimate", "--only=native,reference")
    assert "regions have extents that depend on data and stay on the processor" in told.stderr
    assert "cuda:sm_90: refused: it takes extents that do not depend on data" in told.stdout
    free = dovetail("explain", dovetail.write("free.onnx", makers.free()), "--target=cuda:sm_90", "--select=estimate",
                    "--only=native")
    assert free.stderr == "" and "refused: it takes" not in free.stdout


@pytest.mark.parametrize("command", ["run", "compile", "bench", "explain", "problem"])
def test_unknown_target(dovetail, tiny, command):
    what = RELU if command == "problem" else tiny
    dovetail.refuses(2, command, what, "--target=cuda:sm_35",
                     says=[f"--target=cuda:sm_35.*known are cpu.*{target}" for target in TARGETS])
    dovetail.refuses(2, command, what, "--target=gpu", says="known are cpu")


def test_device_file(dovetail, tiny):
    dovetail.refuses(2, "compile", tiny, "--device=none.json", says="none.json")
    broken = dovetail.write("broken.json", "{}")
    dovetail.refuses(2, "compile", tiny, f"--device={broken}", says="broken.json: the device description lacks")
    mine = dovetail.write("mine.json", json.dumps(described(dovetail, "cuda:sm_90")))
    dovetail.refuses(2, "compile", tiny, f"--device={mine}", "--target=cuda:sm_80",
                     says="two devices: the file describes cuda:sm_90")


def test_folder_of_the_user(dovetail):
    mine = described(dovetail, "cuda:sm_90") | {"architecture": "sm_89", "name": "mine"}
    dovetail.write("devices/mine.json", json.dumps(mine))
    report = json.loads(dovetail("doctor", "--json", DOVETAIL_DEVICES=str(dovetail.folder / "devices")).stdout)
    assert {"target": "cuda:sm_89", "name": "mine", "source": mine["source"]} in report["device_targets"]
    assert len(report["device_targets"]) == 6


def test_artifact_has_its_target(dovetail, tiny_artifact):
    artifact = dovetail.write("tiny.dvt", tiny_artifact)
    dovetail.refuses(2, "run", artifact, "--target=cuda:sm_90", says="whose plan is made.*--target")


@pytest.mark.parametrize("target", TARGETS)
def test_processor_kernels_refuse(dovetail, target):
    done = dovetail("problem", RELU, f"--target={target}", "--only=reference", "--json")
    report = json.loads(done.stdout)
    assert report["trials"] == []
    assert any("serves the CPU" in refusal[2] for refusal in report["refusals"])
