# SPDX-License-Identifier: Apache-2.0
"""If, Loop and Scan from ONNX to results, against onnxruntime: captured values and weights, carried values, what is
stacked up, extents that change or depend on data, and bodies inside bodies."""
import json
import pathlib

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

from bodies import BOOL, FLOAT, INT64, body, check, command, compute, floats, loop_body, model, node, value

OPSETS = [11, 13, 16, 21]


def positive_sum(x="x", result="c"):
    """c: whether the sum of x is positive."""
    return [node("ReduceMean", x, "mean", keepdims=0), node("Greater", "mean zero", result)]


@pytest.mark.parametrize("opset", OPSETS)
def test_branches(tmp_path, opset):
    then = body([node("MatMul", "x w", "p"), node("Relu", "p", "a")], outputs=[value("a", [2, 4])])
    other = body([node("Sub", "x y", "d"), node("Mul", "d scale", "b")], outputs=[value("b", [2, 4])],
                 constants={"scale": np.float32(3)})
    made = model([*positive_sum(), node("If", "c", "r", then_branch=then, else_branch=other), node("Neg", "r", "z")],
                 [value("x", [2, 4]), value("y", [2, 4])], [value("z", [2, 4])],
                 {"w": floats(4, 4), "zero": np.float32(0)}, opset)
    x = np.abs(floats(2, 4))
    check(tmp_path, made, {"x": x, "y": floats(2, 4, seed=2)}, {"x": -x, "y": floats(2, 4, seed=2)})


def test_branches_with_several_results(tmp_path):
    """One of them is an operand as it is, one a constant, and some are results of the model themselves."""
    then = body([node("Relu", "x", "a"), node("Identity", "x", "same"), node("Identity", "k", "fixed")],
                outputs=[value("a", [3]), value("same", [3]), value("fixed", [2])], constants={"k": np.float32([1, 2])})
    other = body([node("Neg", "x", "a"), node("Abs", "x", "b"), node("Constant", "", "n", value_floats=[5.0, 6.0])],
                 outputs=[value("a", [3]), value("b", [3]), value("n", [2])])
    made = model([node("If", "c", "p q s", then_branch=then, else_branch=other), node("Add", "p q", "t")],
                 [value("x", [3]), value("c", [], BOOL)],
                 [value("p", [3]), value("s", [2]), value("t", [3])])
    check(tmp_path, made, {"x": floats(3), "c": True}, {"x": floats(3), "c": False})


def test_branches_of_other_extents(tmp_path):
    then = body([node("Concat", "x x", "a", axis=0)], outputs=[value("a", [None, 4])])
    other = body([node("Relu", "x", "b")], outputs=[value("b", [None, 4])])
    made = model([node("If", "c", "r", then_branch=then, else_branch=other), node("MatMul", "r w", "z"),
                  node("Shape", "z", "s")],
                 [value("x", ["N", 4]), value("c", [], BOOL)], [value("z", [None, 3]), value("s", [2], INT64)],
                 {"w": floats(4, 3)})
    check(tmp_path, made, {"x": floats(2, 4), "c": True}, {"x": floats(5, 4), "c": False})


def test_known_condition_leaves_one_branch(tmp_path):
    then = body([node("Relu", "x", "a")], outputs=[value("a", [3])])
    other = body([node("Neg", "x", "b")], outputs=[value("b", [3])])
    made = model([node("Greater", "one zero", "c"), node("If", "c", "z", then_branch=then, else_branch=other)],
                 [value("x", [3])], [value("z", [3])], {"one": np.float32(1), "zero": np.float32(0)})
    check(tmp_path, made, {"x": floats(3)})
    found = command("explain", tmp_path / "mixed/model.onnx", "--select=estimate", "--no-cache", "--json").stdout
    assert [step["nodes"].split("/")[-1] for step in json.loads(found)["steps"]] == ["Relu producing a"]


def test_branch_that_contradicts_the_shapes(tmp_path):
    """It is an error where it is taken, and no reason to refuse the model."""
    then = body([node("MatMul", "x w", "a")], outputs=[value("a", [2, 3])])
    other = body([node("MatMul", "x v", "b")], outputs=[value("b", [2, 3])])
    made = model([node("If", "c", "r", then_branch=then, else_branch=other), node("Relu", "r", "z")],
                 [value("x", [2, 4]), value("c", [], BOOL)], [value("z", [2, 3])],
                 {"w": floats(4, 3), "v": floats(5, 3)})
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    compiled = command("compile", path, "-o", tmp_path / "model.dvt", "--select=estimate", "--no-cache")
    assert "else branch contradicts the shapes" in compiled.stderr
    for condition in (True, False):
        np.savez(tmp_path / "in.npz", x=floats(2, 4), c=condition)
        done = command("run", tmp_path / "model.dvt", f"--inputs={tmp_path / 'in.npz'}",
                       f"--output={tmp_path / 'out.npz'}", code=0 if condition else 2)
        if not condition:
            assert "makes no sense" in done.stderr and "MatMul" in done.stderr
    with np.load(tmp_path / "out.npz") as found:
        np.testing.assert_allclose(found["z"], np.maximum(floats(2, 4) @ floats(4, 3), 0), rtol=1e-5, atol=1e-5)


def counting(opset=17):
    nodes = [node("MatMul", "v w", "p"), node("Tanh", "p", "q"), node("Add", "q x", "next"),
             node("ReduceMean", "next", "mean", keepdims=0), node("Cast", "i", "count", to=FLOAT)]
    inner = loop_body(nodes, [value("v", [2, 4])], [value("next", [2, 4]), value("mean", []), value("count", [])])
    return model([node("Loop", "trips - x", "last means counts", body=inner)],
                 [value("x", [2, 4]), value("trips", [], INT64)],
                 [value("last", [2, 4]), value("means", ["k"]), value("counts", ["k"])], {"w": floats(4, 4)}, opset)


@pytest.mark.parametrize("opset", OPSETS)
def test_loop_that_counts(tmp_path, opset):
    check(tmp_path, counting(opset), *({"x": floats(2, 4), "trips": np.int64(trips)} for trips in (3, 0, 1)))


def test_negative_trip_count(tmp_path):
    found = compute(tmp_path, counting(), [{"x": floats(2, 4), "trips": np.int64(-5)}], "mixed")[0]
    np.testing.assert_array_equal(found["last"], floats(2, 4))
    assert found["means"].shape == (0,)


def test_trip_count_known_when_compiling(tmp_path):
    inner = loop_body([node("Mul", "v x", "next"), node("Identity", "next", "shown")], [value("v", [3])],
                      [value("next", [3]), value("shown", [3])])
    made = model([node("Loop", "four - x", "last all", body=inner), node("MatMul", "w all", "z")],
                 [value("x", [3])], [value("last", [3]), value("z", [2, 3])],
                 {"four": np.int64(4), "w": floats(2, 4)})
    check(tmp_path, made, {"x": floats(3)})
    steps = json.loads(command("explain", tmp_path / "mixed_artifact/model.dvt", "--json").stdout)["steps"]
    assert not any("first execution" in step["kernel"] for step in steps), "nothing is left open"


def test_loop_with_a_condition(tmp_path):
    """Doubles until the sum is large, at most `trips` times where that is given."""
    nodes = [node("Add", "v v", "next"), node("ReduceMean", "next", "middle", keepdims=0),
             node("Less", "middle bound", "more")]
    inner = loop_body(nodes, [value("v", [4])], [value("next", [4])], condition="more")
    for trips in ("trips", "-"):
        made = model([*positive_sum(), node("Loop", f"{trips} c x", "z", body=inner)],
                     [value("x", [4]), value("bound", []), *([value("trips", [], INT64)] if trips == "trips" else [])],
                     [value("z", [4])], {"zero": np.float32(0)})
        feeds = [{"x": sign * np.abs(floats(4)), "bound": np.float32(bound)} for sign, bound in
                 ((1, 100), (1, 0), (-1, 100))]
        if trips == "trips":
            feeds = [{**feed, "trips": np.int64(5)} for feed in feeds]
        check(tmp_path / trips.strip("-"), made, *feeds)


def test_carried_extents_that_change(tmp_path):
    """Appends a row in each iteration, starting from some."""
    nodes = [node("Mul", "row scale", "scaled"), node("Concat", "v scaled", "next", axis=0),
             node("Less", "i most", "more")]
    inner = loop_body(nodes, [value("v", [None, 4])], [value("next", [None, 4])], {"scale": np.float32(2)}, "more")
    made = model([node("Loop", "- go_in x", "r", body=inner), node("Relu", "r", "z"), node("Shape", "r", "s")],
                 [value("x", ["N", 4]), value("row", [1, 4]), value("most", [], INT64), value("go_in", [], BOOL)],
                 [value("z", [None, 4]), value("s", [2], INT64)])
    row = floats(1, 4)
    check(tmp_path, made, {"x": floats(2, 4), "row": row, "most": np.int64(3), "go_in": True},
          {"x": floats(1, 4), "row": row, "most": np.int64(6), "go_in": True},
          {"x": floats(2, 4), "row": row, "most": np.int64(3), "go_in": False})


def test_what_grows_behind_a_view_of_it(tmp_path):
    """Both are carried, the view comes first."""
    nodes = [node("Concat", "rows x", "rows2", axis=0), node("Reshape", "rows2 all", "flat2")]
    inner = loop_body(nodes, [value("flat", ["f"]), value("rows", ["r", 3])],
                      [value("flat2", ["g"]), value("rows2", ["s", 3])], {"all": np.int64([-1])})
    made = model([node("Loop", "trips - start x", "flats rows_out", body=inner)],
                 [value("x", [2, 3]), value("start", [6]), value("trips", [], INT64)],
                 [value("flats", [None]), value("rows_out", [None, 3])])
    check(tmp_path, made, *({"x": floats(2, 3), "start": floats(6), "trips": np.int64(trips)} for trips in (3, 0, 1)))


def test_extents_that_depend_on_data_inside(tmp_path):
    """Keeps the positive ones of x + i in each iteration; their number is stacked up."""
    nodes = [node("Cast", "i", "f", to=FLOAT), node("Sub", "x f", "d"), node("Relu", "d", "positive"),
             node("NonZero", "positive", "where"), node("Shape", "where", "extents"),
             node("Transpose", "where", "pairs", perm=[1, 0]), node("GatherND", "d pairs", "kept"), node("ReduceSum", "kept", "sum", keepdims=0),
             node("Add", "v sum", "next")]
    inner = loop_body(nodes, [value("v", [])], [value("next", []), value("extents", [2], INT64)])
    made = model([node("Loop", "trips - zero", "z counts", body=inner)],
                 [value("x", ["N"]), value("trips", [], INT64)], [value("z", []), value("counts", ["k", 2], INT64)],
                 {"zero": np.float32(0)})
    check(tmp_path, made, {"x": floats(9) * 3, "trips": np.int64(3)}, {"x": floats(30) * 2, "trips": np.int64(2)})


@pytest.mark.parametrize("opset", OPSETS)
def test_scan(tmp_path, opset):
    nodes = [node("Add", "s a", "next"), node("Mul", "next w", "first"), node("MatMul", "b m", "second")]
    inner = body(nodes, [value("s", [4]), value("a", [4]), value("b", [2])],
                 [value("next", [4]), value("first", [4]), value("second", [3])])
    made = model([node("Scan", "init x y", "last p q", body=inner, num_scan_inputs=2, scan_input_axes=[0, 1],
                       scan_input_directions=[1, 0], scan_output_axes=[1, 0], scan_output_directions=[0, 1])],
                 [value("init", [4]), value("x", ["N", 4]), value("y", [2, "N"])],
                 [value("last", [4]), value("p", [4, "N"]), value("q", ["N", 3])], {"w": floats(4), "m": floats(2, 3)},
                 opset)
    check(tmp_path, made, *({"init": floats(4), "x": floats(n, 4), "y": floats(2, n)} for n in (3, 1, 8)))


def test_scan_of_fixed_length_counts_axes_from_the_end(tmp_path):
    inner = body([node("Mul", "a a", "b"), node("Add", "a shift", "c")], [value("a", [2, 5])],
                 [value("b", [2, 5]), value("c", [2, 5])])
    made = model([node("Scan", "x", "p q", body=inner, num_scan_inputs=1, scan_input_axes=[-2],
                       scan_output_axes=[-1, -3])],
                 [value("x", [2, 3, 5]), value("shift", [5])], [value("p", [2, 5, 3]), value("q", [3, 2, 5])])
    check(tmp_path, made, {"x": floats(2, 3, 5), "shift": floats(5)})


def test_bodies_inside_bodies(tmp_path):
    """A loop in a branch in a loop; the innermost reads values and weights from every level."""
    innermost = body([node("MatMul", "e w", "p"), node("Add", "p x", "t"), node("Add", "t s", "u"), node("Add", "u v", "n"),
                      node("Identity", "n", "shown")],
                     [value("s", [4]), value("e", [4])], [value("n", [4]), value("shown", [4])])
    then = body([node("Scan", "v rows", "last stack", body=innermost, num_scan_inputs=1),
                 node("ReduceMean", "stack", "m", axes=[0], keepdims=0), node("Sub", "last m", "a")],
                outputs=[value("a", [4])])
    other = body([node("Mul", "v x", "b")], outputs=[value("b", [4])])
    nodes = [node("Mod", "i two", "odd"), node("Cast", "odd", "c", to=BOOL),
             node("If", "c", "r", then_branch=then, else_branch=other), node("Tanh", "r", "next")]
    outer = loop_body(nodes, [value("v", [4])], [value("next", [4])], {"two": np.int64(2)})
    made = model([node("Exp", "y", "rows"), node("Loop", "trips - x", "z", body=outer)],
                 [value("x", [4]), value("y", ["N", 4]), value("trips", [], INT64)], [value("z", [4])],
                 {"w": floats(4, 4)})
    check(tmp_path, made, {"x": floats(4), "y": floats(3, 4), "trips": np.int64(4)},
          {"x": floats(4), "y": floats(1, 4), "trips": np.int64(3)})


def test_extents_of_captured_values(tmp_path):
    """What a body reads only for its extents, and a shape that is computed outside."""
    nodes = [node("Shape", "x", "s"), node("Reshape", "v outer", "wide"), node("Expand", "one s", "ones"),
             node("Add", "wide ones", "sum"), node("Reshape", "sum flat", "next")]
    inner = loop_body(nodes, [value("v", [None])], [value("next", [None])],
                      {"one": np.float32(1), "flat": np.int64([-1])})
    made = model([node("Shape", "x", "outer"), node("Loop", "trips - start", "z", body=inner)],
                 [value("x", ["N", 3]), value("start", ["M"]), value("trips", [], INT64)], [value("z", [None])])
    check(tmp_path, made, {"x": floats(4, 3), "start": floats(12), "trips": np.int64(3)},
          {"x": floats(2, 3), "start": floats(6), "trips": np.int64(1)})


def test_extents_found_out_beside_known_ones(tmp_path):
    """What a step of the body finds out has an extent of the model, too, which steps before it need."""
    nodes = [node("Shape", "x", "s"), node("Expand", "one s", "e"), node("Add", "i next_one", "end"),
             node("Unsqueeze", "end axis", "ends"), node("Slice", "e from ends axes", "p"),
             node("ReduceSum", "p", "sum", keepdims=0), node("Add", "acc sum", "more")]
    inner = loop_body(nodes, [value("acc", [])], [value("more", [])],
                      {"one": np.float32(1), "next_one": np.int64(1), "axis": np.int64([0]), "from": np.int64([0]),
                       "axes": np.int64([1])})
    made = model([node("Loop", "trips - zero", "z", body=inner)], [value("x", ["N", 4]), value("trips", [], INT64)],
                 [value("z", [])], {"zero": np.float32(0)})
    check(tmp_path, made, {"x": floats(3, 4), "trips": np.int64(3)}, {"x": floats(5, 4), "trips": np.int64(2)})


def test_extents_of_a_shape_known_in_part(tmp_path):
    """The first value of the body with the model's extent needs a shape that holds it."""
    nodes = [node("Add", "i next_one", "end"), node("Unsqueeze", "end axis", "ends"),
             node("Concat", "rows ends", "c", axis=0), node("ConstantOfShape", "c", "m", value=numpy_helper.from_array(
                 np.float32([1]))), node("ReduceSum", "m", "sum", keepdims=0), node("Add", "acc sum", "more")]
    inner = loop_body(nodes, [value("acc", [])], [value("more", [])],
                      {"next_one": np.int64(1), "axis": np.int64([0])})
    made = model([node("Shape", "x", "s"), node("Slice", "s first second", "rows"),
                  node("Loop", "trips - zero", "z", body=inner)], [value("x", ["N", 4]), value("trips", [], INT64)],
                 [value("z", [])], {"zero": np.float32(0), "first": np.int64([0]), "second": np.int64([1])})
    check(tmp_path, made, {"x": floats(3, 4), "trips": np.int64(3)}, {"x": floats(5, 4), "trips": np.int64(2)})


def test_types_besides_floats(tmp_path):
    nodes = [node("Add", "n n", "next"), node("Not", "f", "flipped"), node("Cast", "x", "whole", to=TensorProto.UINT8)]
    inner = loop_body(nodes, [value("n", [2], INT64), value("f", [3], BOOL)],
                      [value("next", [2], INT64), value("flipped", [3], BOOL), value("whole", [3], TensorProto.UINT8)])
    made = model([node("Loop", "trips - a b", "p q r", body=inner)],
                 [value("a", [2], INT64), value("b", [3], BOOL), value("x", [3]), value("trips", [], INT64)],
                 [value("p", [2], INT64), value("q", [3], BOOL), value("r", ["k", 3], TensorProto.UINT8)])
    check(tmp_path, made, {"a": np.int64([3, -7]), "b": np.array([True, False, True]), "x": np.float32([1, 2, 250]),
                           "trips": np.int64(5)})


def test_steps_of_bodies_are_explained_and_timed(tmp_path):
    made = counting()
    compute(tmp_path, made, [{"x": floats(2, 4), "trips": np.int64(2)}], "mixed artifact")
    steps = json.loads(command("explain", tmp_path / "model.dvt", "--json").stdout)["steps"]
    assert [step["kernel"] for step in steps].count("control flow") == 1
    inner = [step for step in steps if step["block"] == 1]
    assert any("MatMul" in step["nodes"] for step in inner), steps
    assert all(step["block"] == 0 for step in steps[:steps.index(inner[0])])
    profile = json.loads(command("bench", tmp_path / "model.dvt", f"--inputs={tmp_path / 'in.npz'}", "--profile", "--json",
                                 "--runs=3").stdout)["steps"]
    assert [step["nodes"] for step in profile] == [step["nodes"] for step in steps]


def test_measured_choice_inside_bodies(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(counting().SerializeToString())
    np.savez(tmp_path / "in.npz", x=floats(2, 4), trips=np.int64(2))
    options = [f"--cache={tmp_path / 'cache'}", "--budget=20"]
    first = json.loads(command("explain", path, "--json", *options).stdout)
    again = json.loads(command("explain", path, "--json", *options).stdout)
    assert first["problems_timed"] > 0 and again["problems_timed"] == 0
    timed = [step for step in again["steps"] if step["block"] == 1 and step.get("micros", -1) >= 0]
    assert timed, again["steps"]
    command("run", path, *options, f"--inputs={tmp_path / 'in.npz'}")


@pytest.mark.parametrize("carried, says", [([2, 2], "number of dimensions"), ([3], None)])
def test_what_iterations_cannot_change(tmp_path: pathlib.Path, carried, says):
    inner = loop_body([node("Reshape", "v shape", "next")], [value("v", ["A"])], [value("next", ["B", "C"][:len(carried)])],
                      {"shape": np.int64(carried if says else [-1])})
    made = model([node("Loop", "trips - x", "z", body=inner)], [value("x", [4]), value("trips", [], INT64)],
                 [value("z", ["B", "C"][:len(carried)])])
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    if says:
        assert says in command("compile", path, "-o", tmp_path / "model.dvt", "--no-cache", "--select=estimate",
                               code=2).stderr
    else:
        check(tmp_path, made, {"x": floats(4), "trips": np.int64(2)})
