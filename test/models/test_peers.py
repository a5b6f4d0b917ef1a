# SPDX-License-Identifier: Apache-2.0
"""bench/peers with a small network in bf16, which onnxruntime cannot load: who fails, and who is right by what."""
import json
import subprocess
import sys

import numpy as np
import onnx
import pytest

import check
from test_halves import from_bfloat, network, to_bfloat
from test_models import ROOT, binary  # noqa: F401 (fixture)


@pytest.fixture
def models(tmp_path):
    """The network in bf16 and f32, and inputs of each."""
    paths = {kind: tmp_path / f"{kind}.onnx" for kind in ("bf16", "f32")}
    for kind, path in paths.items():
        model, inputs = network(kind, "bf16")
        onnx.save(model, path)
    return paths, {"bf16": {"x": to_bfloat(inputs["x"])}, "f32": inputs}


def test_the_twin_in_f32_is_the_same_network(models):
    paths, inputs = models
    truth, bounds = check.twin_truth_and_bounds(paths["bf16"], inputs["bf16"])
    wanted, _ = check.truth_and_bounds(paths["f32"], inputs["f32"])
    for name, array in wanted.items():
        np.testing.assert_array_equal(truth[name], array)
        assert bounds[name][1] == 2e-2


def test_the_twin_has_no_other_types_anywhere():
    """In bodies, attributes and types of values, too. Constants in bf16 are written as bits: 1.5, -2, 3 and 0.25."""
    text = """<ir_version: 10, opset_import: ["" : 22]>
        twin (bool b, bfloat16[2] x, float16[2] h) => (float[2] y, bfloat16[2] z)
        <bfloat16[2] w = {16320, 49152}, bfloat16[2] v> {
            v = Add(x, w)
            z = If(b) <then_branch = then () => (bfloat16[2] t) { t = Cast<to = 16>(h) },
                       else_branch = other () => (bfloat16[2] e) {
                           c = Constant<value = bfloat16[2] {16448, 16000}>()
                           e = Add(c, v)
                       }>
            y = Cast<to = 1>(v)
        }"""
    model = onnx.parser.parse_model(text)
    check.widen(model)
    assert "float16" not in onnx.printer.to_text(model)
    onnx.checker.check_model(model, full_check=True)
    assert onnx.numpy_helper.to_array(model.graph.initializer[0]).tolist() == [1.5, -2]


def test_bounds_hold_by_type(models):
    paths, inputs = models
    truth, bounds = check.twin_truth_and_bounds(paths["bf16"], inputs["bf16"])
    assert check.compare(truth, bounds, {name: to_bfloat(array) for name, array in truth.items()}).right
    off = {name: to_bfloat(array + 0.03 * np.abs(array).max()) for name, array in truth.items()}
    assert not check.compare(truth, bounds, off).right
    assert not check.compare(truth, bounds, truth).right  # f32, where the model says bf16


def test_the_reference_provider_as_judge(binary, models):  # noqa: F811
    paths, inputs = models
    wanted, _ = check.twin_truth_and_bounds(paths["bf16"], inputs["bf16"])
    truth, bounds = check.reference_truth_and_bounds(binary, paths["bf16"], inputs["bf16"])
    assert check.compare(truth, bounds, {name: to_bfloat(array) for name, array in wanted.items()}).right


def test_inputs_of_the_twin(models):
    paths, inputs = models
    there = check.cast_inputs(inputs["bf16"], paths["bf16"], paths["f32"])
    np.testing.assert_array_equal(there["x"], from_bfloat(inputs["bf16"]["x"]))
    back = check.cast_inputs(there, paths["f32"], paths["bf16"])
    np.testing.assert_array_equal(back["x"], inputs["bf16"]["x"])


def test_race(binary, models, tmp_path):  # noqa: F811
    paths, _ = models
    command = [sys.executable, ROOT / "bench/peers/peers.py", "--models", paths["bf16"], "--twin", paths["f32"],
               "--contenders", "dovetail,onnxruntime", "--threads", "1", "--heats", "2", "--rounds", "4",
               f"--compile-options=--select=estimate --cache={tmp_path / 'cache'}", "--binary", binary,
               "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    ours, peer, twin = json.loads((tmp_path / "peers.json").read_text())
    assert ours["right"] and ours["judge"] == "ONNX Runtime in f32" and ours["bound"] == 2e-2
    assert peer["contender"] == "onnxruntime" and "Conv" in peer["failure"]
    assert twin["contender"] == "twin f32" and twin["right"] and twin["judge"] == "ONNX Runtime"
    assert twin["bound"] < 1e-2 and twin["low"] <= twin["ratio"] <= twin["high"]
    table = (tmp_path / "peers.md").read_text().splitlines()
    assert len({line.count("|") for line in table}) == 1
    assert "failed: NotImplemented" in table[3] and table[4].endswith("| right | ONNX Runtime |")


def test_a_side_that_fails_is_a_failure(binary, models, tmp_path):  # noqa: F811
    paths, _ = models
    fake = tmp_path / "bin/dovetail"  # the command but for plans of one side
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\ncase "$*" in *"--prefer native"*) echo "no such side" >&2; exit 3;; esac\n'
                    f'exec "{binary}" "$@"\n')
    fake.chmod(0o755)
    (tmp_path / "lib").symlink_to(binary.parent.parent / "lib")
    command = [sys.executable, ROOT / "bench/peers/peers.py", "--models", paths["f32"], "--contenders",
               "dovetail,dovetail native-first", "--threads", "1", "--heats", "1", "--rounds", "2",
               f"--compile-options=--select=estimate --cache={tmp_path / 'cache'}", "--binary", fake,
               "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    ours, side = json.loads((tmp_path / "peers.json").read_text())
    assert ours["right"] and "no such side" in side["failure"]
    assert min(ours[what] for what in ("private_bytes", "loading_bytes", "weight_bytes", "arena_bytes")) > 0
