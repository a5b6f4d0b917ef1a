# SPDX-License-Identifier: Apache-2.0
"""scripts/check-gpu on the simulated device: what is right passes, what is not is named, and nothing takes for ever."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("DOVETAIL_BUILD_DIR", ROOT / "build"))


def check_gpu(*arguments, seconds=240, **environment):
    done = subprocess.run([sys.executable, ROOT / "scripts/check-gpu", *map(str, arguments)], text=True, check=False,
                          capture_output=True, timeout=seconds, env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr


def model() -> bytes:
    """relu(x w) + x"""
    weights = np.linspace(-1, 1, 256, dtype=np.float32).reshape(16, 16)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["t"], name="product"), helper.make_node("Relu", ["t"], ["u"]),
         helper.make_node("Add", ["u", "x"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [16, 16])], [numpy_helper.from_array(weights, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory) -> dict:
    drivers = BUILD / "lib/dovetail-test"
    if not (drivers / "libcuda-sim.so").exists():
        pytest.skip("the simulated drivers are not built")
    return {"DOVETAIL_DRIVERS": f"cuda={drivers}/libcuda-sim.so:rocm={drivers}/libamdhip64-sim.so",
            "DOVETAIL_PLUGINS": str(BUILD / "test/device-plugins"),
            "DOVETAIL_CACHE": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture(scope="module")
def filled(tmp_path_factory, surroundings) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("check-gpu")
    (folder / "small.onnx").write_bytes(model())
    code, said, error = check_gpu("--prepare", folder / "for-gpu", folder / "small.onnx", "--only=simulated,reference",
                                  **surroundings)
    assert code == 0, error
    assert "1 models for cuda:sm_90" in said
    return folder / "for-gpu"


@pytest.fixture
def prepared(filled, tmp_path) -> pathlib.Path:
    return shutil.copytree(filled, tmp_path / "for-gpu")


def test_all_is_right(prepared, surroundings):
    code, said, error = check_gpu(prepared, "--minutes=2", **surroundings)
    assert code == 0, said + error
    report = json.loads((prepared / "report.json").read_text())
    assert report["wrong"] == 0 and report["target"] == "cuda:sm_90" and report["device"]["architecture"] == "sm_90"
    runs = [step for step in report["steps"] if step["step"].startswith("run small")]
    assert len(runs) == 4 and all(step["outcome"] == "right" and step["error"] <= step["allowed"] for step in runs)
    assert sum(step["on_device"] > 0 for step in runs) == 3
    assert sum(step["step"].startswith("time small") for step in report["steps"]) == 4
    measured = report["steps"][-1]
    assert measured["step"] == "measure candidates of small" and measured["timed"] > 0 and measured["failed"] == 0
    text = (prepared / "report.txt").read_text()
    assert "run small, native-first" in text and ", 0 not right" in text
    assert json.loads((prepared / "device.json").read_text())["api"] == "cuda"
    assert (prepared / "small.times").exists()


def test_a_wrong_result_is_named(prepared, surroundings):
    expected = dict(np.load(prepared / "small-expected.npz"))
    np.savez(prepared / "small-expected.npz", y=expected["y"] * np.float32(1.01))
    code, said, _ = check_gpu(prepared, "--minutes=0.5", **surroundings)
    assert code == 1
    assert "wrong        run small, mixed" in said
    report = json.loads((prepared / "report.json").read_text())
    assert {step["outcome"] for step in report["steps"] if step["step"].startswith("run small")} == {"wrong"}


def test_a_damaged_plan_is_named(prepared, surroundings):
    plan = prepared / "small-native-first.dvt"
    plan.write_bytes(plan.read_bytes()[:-1])
    code, said, _ = check_gpu(prepared, "--minutes=0.5", **surroundings)
    assert code == 1 and "failed       run small, native-first" in said and "cut short" in said
    assert "right        run small, mixed" in said


def test_without_a_device(prepared, surroundings):
    code, _, error = check_gpu(prepared, **{**surroundings, "DOVETAIL_DRIVERS": "cuda=/nowhere/x.so"})
    assert code == 3 and "no device for cuda:sm_90" in error and "/nowhere/x.so" in error


def test_another_device(prepared, surroundings):
    manifest = json.loads((prepared / "manifest.json").read_text())
    (prepared / "manifest.json").write_text(json.dumps(manifest | {"target": "cuda:sm_80"}))
    code, _, error = check_gpu(prepared, **surroundings)
    assert code == 3 and "the plans are for cuda:sm_80, the device here is cuda:sm_90" in error


def test_wrong_folders(tmp_path, prepared, surroundings):
    code, _, error = check_gpu(tmp_path / "missing", **surroundings)
    assert code == 2 and "no folder that --prepare has filled" in error
    code, _, error = check_gpu(prepared, f"--build={tmp_path}", **surroundings)
    assert code == 3 and "is missing; build first" in error
    (prepared / "small-mixed.dvt").unlink()
    code, _, error = check_gpu(prepared, **surroundings)
    assert code == 2 and "small-mixed.dvt is missing" in error
    code, _, error = check_gpu("--prepare", tmp_path / "x", **surroundings)
    assert code == 2 and "needs the models" in error


def test_nothing_takes_for_ever(prepared, tmp_path, surroundings):
    """A program that hangs at everything but telling of the device."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/dovetail"
    program.write_text(f'#!/bin/sh\ncase "$1" in doctor) exec {BUILD}/bin/dovetail "$@";; esac\nsleep 1000 & wait\n')
    program.chmod(0o755)
    start = time.monotonic()
    code, said, _ = check_gpu(prepared, f"--build={tmp_path}", "--minutes=0.2", "--step-seconds=2", **surroundings)
    assert code == 1 and time.monotonic() - start < 60
    assert "out of time  run small, library-first" in said
    report = json.loads((prepared / "report.json").read_text())
    assert report["wrong"] >= 4
