# SPDX-License-Identifier: Apache-2.0
"""The test provider through the whole line: a model is planned, written as an artifact, and run by another process.

Each case is a small model whose steps show one thing that plans, artifacts and the runtime must cope with: extents
known at run time only, results whose extents depend on data, blocked layouts with conversions around them, constants
packed at load. `explain` says that the test provider's kernels run; the results are compared with numpy.
"""
import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("DOVETAIL_BUILD_DIR", ROOT / "build"))
PLUGINS = f"--plugins={BUILD / 'lib/dovetail-test'}"


def dovetail(*arguments, code=0) -> str:
    done = subprocess.run([BUILD / "bin/dovetail", *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, f"{arguments}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


class Case:
    """A model in a folder of its own."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.artifact = folder / "model.dvt"

    def compile(self, nodes, inputs: dict, outputs: dict, constants=None, force=(), only="test,reference"):
        """`inputs` and `outputs`: name -> extents; f32 unless the extents come as (type, extents)."""
        def info(name, what):
            kind, extents = what if isinstance(what, tuple) else (TensorProto.FLOAT, what)
            return helper.make_tensor_value_info(name, kind, extents)

        graph = helper.make_graph(nodes, "case", [info(*item) for item in inputs.items()],
                                  [info(*item) for item in outputs.items()],
                                  [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, self.folder / "model.onnx")
        dovetail("compile", self.folder / "model.onnx", "-o", self.artifact, PLUGINS, f"--only={only}", "--no-cache",
                 "--select=estimate", *(f"--force={choice}" for choice in force))
        return self

    def run(self, **inputs) -> dict:
        np.savez(self.folder / "in.npz", **inputs)
        dovetail("run", self.artifact, PLUGINS, f"--inputs={self.folder / 'in.npz'}",
                 f"--output={self.folder / 'out.npz'}")
        with np.load(self.folder / "out.npz") as found:
            return dict(found)

    def steps(self) -> list:
        return json.loads(dovetail("explain", self.artifact, PLUGINS, "--json", "--all"))["steps"]

    def kernels(self) -> list:
        return [step["kernel"] for step in self.steps()]


@pytest.fixture
def case(tmp_path) -> Case:
    return Case(tmp_path)


def noise(*extents) -> np.ndarray:
    return np.random.default_rng(sum(extents)).standard_normal(extents).astype(np.float32)


def test_one_artifact_for_many_extents(case):
    case.compile([helper.make_node("Relu", ["x"], ["r"], name="relu"),
                  helper.make_node("MatMul", ["r", "w"], ["m"], name="matmul"),
                  helper.make_node("Add", ["m", "y"], ["z"], name="add")],
                 {"x": ["N", 24], "y": ["N", 10]}, {"z": ["N", 10]}, {"w": noise(24, 10)})
    assert all(kernel.startswith("test ") or kernel.startswith("test:") for kernel in case.kernels()), case.kernels()
    for n in (1, 3, 64, 257):
        x, y = noise(n, 24), noise(n, 10)
        expected = np.maximum(x, 0) @ noise(24, 10).astype(np.float64) + y
        np.testing.assert_allclose(case.run(x=x, y=y)["z"], expected, rtol=1e-5, atol=1e-5)


def test_extents_that_depend_on_data(case):
    case.compile([helper.make_node("Relu", ["x"], ["r"], name="relu"),
                  helper.make_node("NonZero", ["r"], ["where"], name="where"),
                  helper.make_node("Transpose", ["where"], ["pairs"], name="pairs", perm=[1, 0]),
                  helper.make_node("GatherND", ["y", "pairs"], ["picked"], name="pick"),
                  helper.make_node("Relu", ["picked"], ["positive"], name="again"),
                  helper.make_node("Add", ["picked", "positive"], ["z"], name="add")],
                 {"x": ["N", "M"], "y": ["N", "M"]}, {"where": (TensorProto.INT64, [2, "K"]), "z": ["K"]})
    kernels = case.kernels()
    assert sum("test" in kernel for kernel in kernels) >= 4, kernels
    for n, m in [(3, 5), (1, 1), (17, 2), (40, 30)]:
        x, y = noise(n, m), noise(m, n).T.copy()
        where = np.array(np.nonzero(np.maximum(x, 0)))
        picked = y[tuple(where)]
        found = case.run(x=x, y=y)
        np.testing.assert_array_equal(found["where"], where)
        np.testing.assert_allclose(found["z"], picked + np.maximum(picked, 0), rtol=1e-6)
    nothing = case.run(x=-np.abs(noise(4, 4)), y=noise(4, 4))
    assert nothing["where"].shape == (2, 0) and nothing["z"].shape == (0,)


@pytest.mark.parametrize("extents", [[2, 5, 7, 3], ["N", 5, "H", 3]], ids=["static", "free"])
def test_blocked_layouts_with_conversions(case, extents):
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="first"),
             helper.make_node("Neg", ["a"], ["b"], name="negate"),
             helper.make_node("Add", ["b", "y"], ["c"], name="add"),
             helper.make_node("Relu", ["c"], ["z"], name="second")]
    case.compile(nodes, {"x": extents, "y": extents}, {"z": extents},
                 force=["first=test:relu:blocked", "second=test:relu:blocked"])
    steps = case.steps()
    assert [step["kernel"] for step in steps].count("test:relu:blocked") == 2, case.kernels()
    conversions = [step for step in steps if step.get("conversion")]
    assert len(conversions) == 4, case.kernels()  # into blocks and out of them, twice
    for n, h in [(2, 7)] if extents[0] == 2 else [(1, 1), (3, 4)]:
        x, y = noise(n, 5, h, 3), noise(h, 5, n, 3).transpose(2, 1, 0, 3).copy()
        np.testing.assert_array_equal(case.run(x=x, y=y)["z"], np.maximum(y - np.maximum(x, 0), 0))


def test_constants_packed_at_load(case):
    case.compile([helper.make_node("MatMul", ["x", "v"], ["h"], name="left"),
                  helper.make_node("Relu", ["h"], ["r"], name="relu"),
                  helper.make_node("MatMul", ["r", "w"], ["z"], name="right")],
                 {"x": [9, 33]}, {"z": [9, 4]}, {"v": noise(33, 50), "w": noise(50, 4)})
    assert case.kernels() == ["test:mat_mul:packed", "test:relu:plain", "test:mat_mul:packed"]
    x = noise(9, 33)
    expected = np.maximum(x.astype(np.float64) @ noise(33, 50), 0) @ noise(50, 4)
    np.testing.assert_allclose(case.run(x=x)["z"], expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("extents", [[64, 64], ["N", 64]], ids=["static", "free"])
def test_in_place_where_operands_die(case, extents):
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="relu"),  # x is the caller's
             helper.make_node("Add", ["a", "y"], ["b"], name="dies"),
             helper.make_node("Add", ["b", "x"], ["c"], name="fans_out"),
             helper.make_node("Add", ["c", "b"], ["d"], name="last_of_b"),
             helper.make_node("Add", ["y", "c"], ["e"], name="last_of_c"),
             helper.make_node("Add", ["d", "e"], ["z"], name="result")]
    case.compile(nodes, {"x": extents, "y": extents}, {"z": extents})
    in_place = {step["nodes"] for step in case.steps() if step["in_place"]}
    # fans_out reads b, which is needed again; the last one writes the caller's memory.
    assert in_place == {"dies", "last_of_b", "last_of_c"}, case.steps()
    for n in [64] if extents[0] == 64 else [1, 64, 200]:
        x, y = noise(n, 64), noise(64, n).T.copy()
        b = np.maximum(x, 0) + y
        c = b + x
        np.testing.assert_allclose(case.run(x=x, y=y)["z"], (c + b) + (y + c), rtol=1e-5, atol=1e-5)
    if extents[0] == 64:
        report = json.loads(dovetail("explain", case.artifact, PLUGINS, "--json"))
        assert report["arena_bytes"] == 2 * 64 * 64 * 4  # b and c, and what comes to lie on them


@pytest.mark.parametrize("extents", [[6, 16], ["N", 16]], ids=["static", "free"])
def test_strided_views_cost_nothing(case, extents):
    nodes = [helper.make_node("Slice", ["x", "from", "to", "axis", "step"], ["odd"], name="slice"),  # of an input
             helper.make_node("Relu", ["y"], ["r"], name="relu"),
             helper.make_node("Split", ["r", "halves"], ["p", "q"], name="split", axis=1),  # of a result
             helper.make_node("Add", ["odd", "q"], ["a"], name="both"),
             helper.make_node("Add", ["a", "p"], ["z"], name="one")]
    case.compile(nodes, {"x": extents, "y": extents}, {"z": [extents[0], 8]},
                 {"from": np.array([1]), "to": np.array([2**31]), "axis": np.array([1]), "step": np.array([2]),
                  "halves": np.array([8, 8])})
    steps = {step["nodes"]: step for step in case.steps()}
    assert set(steps) == {"relu", "both", "one"}, case.kernels()  # nothing is moved
    assert steps["both"]["strided"] and steps["one"]["strided"] and not steps["relu"]["strided"]
    assert "strides[16,2]" in steps["both"]["problem"] and "strides[16,1]" in steps["both"]["problem"]
    for n in [6] if extents[0] == 6 else [1, 6, 33]:
        x, y = noise(n, 16), noise(16, n).T.copy()
        r = np.maximum(y, 0)
        np.testing.assert_allclose(case.run(x=x, y=y)["z"], x[:, 1::2] + r[:, 8:] + r[:, :8], rtol=1e-5, atol=1e-6)


def test_strided_and_in_place_at_once(case):
    nodes = [helper.make_node("Relu", ["x"], ["r"], name="relu"),
             helper.make_node("Transpose", ["r"], ["t"], name="turn", perm=[1, 0]),
             helper.make_node("Relu", ["y"], ["s"], name="other"),
             helper.make_node("Add", ["s", "t"], ["a"], name="add"),
             helper.make_node("Add", ["a", "y"], ["z"], name="result")]
    case.compile(nodes, {"x": [5, 12], "y": [12, 5]}, {"z": [12, 5]})
    steps = {step["nodes"]: step for step in case.steps()}
    assert "turn" not in steps and steps["add"]["strided"] and steps["add"]["in_place"], case.kernels()
    x, y = noise(5, 12), noise(12, 5)
    np.testing.assert_allclose(case.run(x=x, y=y)["z"], np.maximum(y, 0) + np.maximum(x, 0).T + y, rtol=1e-5)


def test_strided_where_somebody_wants_it_dense(case):
    nodes = [helper.make_node("Slice", ["x", "from", "to", "axis"], ["s"], name="slice"),
             helper.make_node("Add", ["s", "y"], ["a"], name="add"),
             helper.make_node("Relu", ["s"], ["r"], name="relu"),  # the test provider's takes no strides
             helper.make_node("Add", ["a", "r"], ["z"], name="result")]
    case.compile(nodes, {"x": [4, 9], "y": [4, 5]}, {"z": [4, 5], "s": [4, 5]},
                 {"from": np.array([3]), "to": np.array([8]), "axis": np.array([1])}, force=["relu=test:relu:plain"])
    assert "slice" in [step["nodes"] for step in case.steps()], case.kernels()
    x, y = noise(4, 9), noise(4, 5)
    found = case.run(x=x, y=y)
    np.testing.assert_array_equal(found["s"], x[:, 3:8])
    np.testing.assert_allclose(found["z"], x[:, 3:8] + y + np.maximum(x[:, 3:8], 0), rtol=1e-5, atol=1e-6)


def test_strided_result_of_data_dependent_extents(case):
    nodes = [helper.make_node("Relu", ["x"], ["r"], name="relu"),
             helper.make_node("NonZero", ["r"], ["where"], name="where"),
             helper.make_node("Transpose", ["where"], ["pairs"], name="pairs", perm=[1, 0]),
             helper.make_node("GatherND", ["y", "pairs"], ["rows"], name="pick"),  # [K, 6]
             helper.make_node("Split", ["rows"], ["p", "q"], name="split", axis=1),
             helper.make_node("Add", ["p", "q"], ["z"], name="add")]
    case.compile(nodes, {"x": ["N", "M"], "y": ["N", "M", 6]}, {"z": ["K", 3]})
    steps = {step["nodes"]: step for step in case.steps()}
    assert "split" not in steps and steps["add"]["strided"], case.kernels()
    for n, m in [(3, 5), (17, 2)]:
        x, y = noise(n, m), noise(n, m, 6)
        rows = y[np.maximum(x, 0) > 0]
        np.testing.assert_allclose(case.run(x=x, y=y)["z"], rows[:, :3] + rows[:, 3:], rtol=1e-5, atol=1e-6)
    assert case.run(x=-np.abs(noise(2, 2)), y=noise(2, 2, 6))["z"].shape == (0, 3)
