# SPDX-License-Identifier: Apache-2.0
"""Sequences and optionals: known when compiling, carried by loops, given by branches, and at the border of a model."""
import json
import pathlib
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "controlflow"))
from bodies import (BOOL, FLOAT, INT64, body, check, command, compare, compute, floats, loop_body, node,  # noqa: E402
                    value)

WAYS = ("mixed", "native artifact")


def model(nodes, inputs, outputs, constants=None, opset=17):
    """Shapes of outputs, which only the run tells, may be left out."""
    return helper.make_model(body(nodes, inputs, outputs, constants), opset_imports=[helper.make_opsetid("", opset)],
                             ir_version=8)


def sequence(name: str, extents=None, kind=FLOAT):
    return helper.make_tensor_sequence_value_info(name, kind, extents)


def unpacked(found: dict, name: str) -> list[np.ndarray]:
    data, shapes, begin, elements = found[f"{name}.data"], found[f"{name}.shapes"], 0, []
    for shape in shapes:
        size = int(np.prod(shape))
        elements.append(data[begin:begin + size].reshape(shape))
        begin += size
    assert begin == len(data)
    return elements


def packed(name: str, elements) -> dict:
    return {f"{name}.data": np.concatenate([np.ravel(element) for element in elements]),
            f"{name}.shapes": np.array([element.shape for element in elements], np.int64)}


def fails(folder: pathlib.Path, made, feeds: dict, says: str, code=2) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(made, folder / "model.onnx")
    np.savez(folder / "in.npz", **feeds)
    done = command("run", folder / "model.onnx", "--select=estimate", "--no-cache", f"--inputs={folder / 'in.npz'}",
                   code=code)
    assert says in done.stderr, done.stderr
    return done.stderr


def test_known_leaves_no_trace(tmp_path):
    made = model([node("SequenceConstruct", "a b c", "s"), node("SequenceErase", "s one", "t"),
                  node("SequenceInsert", "t b zero", "u"), node("SequenceAt", "u last", "x"),
                  node("SequenceLength", "u", "n"), node("ConcatFromSequence", "u", "y", axis=1),
                  node("SplitToSequence", "y two", "parts", axis=1), node("SequenceAt", "parts one", "z")],
                 [value("a", [2, 3]), value("b", [2, 2]), value("c", [2, 4])],
                 [value("x", [2, 4]), value("n", [], INT64), value("y", None), value("z", None)],
                 {"zero": np.int64(0), "one": np.int64(1), "last": np.int64(-1), "two": np.int64(2)})
    feeds = {"a": floats(2, 3), "b": floats(2, 2, seed=2), "c": floats(2, 4, seed=3)}
    check(tmp_path, made, feeds, ways=WAYS)


@pytest.mark.parametrize("alike", [True, False])
def test_index_when_running(tmp_path, alike):
    made = model([node("SequenceConstruct", "a b c", "s"), node("SequenceAt", "s i", "x"),
                  node("SequenceErase", "s i", "t"), node("SequenceAt", "t zero", "y"),
                  node("SequenceInsert", "s b j", "u"), node("SequenceAt", "u k", "z"),
                  node("SequenceLength", "u", "n")],
                 [value("a", [2, 3]), value("b", [2, 3 if alike else 5]), value("c", [2, 3]), value("i", [], INT64),
                  value("j", [], INT64), value("k", [], INT64)],
                 [value("x", None), value("y", None), value("z", None), value("n", [], INT64)], {"zero": np.int64(0)})
    feeds = {"a": floats(2, 3), "b": floats(2, 3 if alike else 5, seed=2), "c": floats(2, 3, seed=3)}
    check(tmp_path, made, *({**feeds, "i": np.int64(i), "j": np.int64(j), "k": np.int64(k)}
                            for i, j, k in [(0, 3, 3), (1, 0, 0), (-1, -1, -2), (-3, -3, 1), (2, 1, -4)]), ways=WAYS)
    for i, j, k in [(3, 0, 0), (-4, 0, 0), (0, 4, 0), (0, -4, 0), (0, 0, 4), (0, 0, -5)]:
        where = "node 'Sequence" if i else "producing u' (SequenceInsert)" if j else "producing z' (SequenceAt)"
        said = fails(tmp_path, made, {**feeds, "i": np.int64(i), "j": np.int64(j), "k": np.int64(k)}, "out of range")
        assert where in said and "makes no sense" not in said, said


def growing(element, carried, more=()):
    """A loop of n iterations that appends `element`, computed from x and the number of the iteration."""
    inner = loop_body([*element, node("SequenceInsert", "before e", "after")], [sequence("before", carried)],
                      [sequence("after", carried)], {"one": np.array([1], np.int64), "zero": np.array([0], np.int64)})
    return [node("SequenceEmpty", "", "none", dtype=FLOAT), node("Loop", "n - none", "all", body=inner), *more]


ALIKE = [node("Cast", "i", "f", to=FLOAT), node("Mul", "x f", "e")]
RAGGED = [node("Add", "i one", "to"), node("Slice", "x zero to", "e")]
ENDS = [value("y", None), value("l", [], INT64), value("last", None)]


@pytest.mark.parametrize("element", [ALIKE, RAGGED], ids=["alike", "ragged"])
@pytest.mark.parametrize("axis", [0, 1])
def test_grows_in_a_loop(tmp_path, element, axis):
    if axis and element is RAGGED:
        pytest.skip("elements differ along the first axis")
    made = model(growing(element, ["a", 3], [node("ConcatFromSequence", "all", "y", axis=axis),
                                            node("SequenceLength", "all", "l"), node("SequenceAt", "all end", "last")]),
                 [value("x", [5, 3]), value("n", [], INT64)], ENDS, {"end": np.int64(-1)})
    check(tmp_path, made, *({"x": floats(5, 3), "n": np.int64(n)} for n in (1, 4, 3)), ways=WAYS)
    fails(tmp_path, made, {"x": floats(5, 3), "n": np.int64(0)}, "the axis that is indexed has extent")


def appended(folder: pathlib.Path, made) -> int:
    """Steps that the runtime appends with."""
    onnx.save(made, folder / "model.onnx")
    report = json.loads(command("explain", folder / "model.onnx", "--select=estimate", "--no-cache", "--json").stdout)
    return sum(step["kernel"] == "appended by the runtime" for step in report["steps"])


@pytest.mark.parametrize("element, steps", [(ALIKE, 1), (RAGGED, 2)], ids=["alike", "ragged"])
def test_appends_in_place(tmp_path, element, steps):
    """Through all sizes at which memory doubles, from one run to the next, and more than once in a run."""
    made = model([*growing(element, ["a", 3]), node("SequenceLength", "all", "l"), node("SequenceAt", "all k", "y"),
                  node("Loop", "m - none", "again", body=loop_body(
                      [*element, node("SequenceInsert", "before e", "after")],
                      [sequence("before", ["a", 3])], [sequence("after", ["a", 3])],
                      {"one": np.array([1], np.int64), "zero": np.array([0], np.int64)})),
                  node("SequenceAt", "again k", "z")],
                 [value("x", [70, 3]), value("n", [], INT64), value("m", [], INT64), value("k", [], INT64)],
                 [value("l", [], INT64), value("y", None), value("z", None)])
    assert appended(tmp_path, made) == 2 * steps
    check(tmp_path, made, *({"x": floats(70, 3, seed=n), "n": np.int64(n), "m": np.int64(m), "k": np.int64(k)}
                            for n, m, k in [(65, 3, 2), (1, 64, 0), (33, 33, 32), (5, 70, -1), (70, 5, -3)]), ways=WAYS)


def test_what_grows_is_read_as_it_was(tmp_path):
    """Beside the value that has grown, the one before it is read, in the same iteration."""
    inner = loop_body([node("Cast", "i", "f", to=FLOAT), node("Mul", "x f", "e"), node("Concat", "y e", "y_out", axis=0),
                       node("ReduceSum", "y", "before", keepdims=0), node("ReduceSum", "y_out", "after", keepdims=0)],
                      [value("y", ["a", 3])], [value("y_out", ["b", 3]), value("before", []), value("after", [])])
    made = model([node("Loop", "n - y0", "all befores afters", body=inner)],
                 [value("x", [2, 3]), value("y0", ["k", 3]), value("n", [], INT64)],
                 [value("all", None), value("befores", None), value("afters", None)])
    assert appended(tmp_path, made) == 1
    check(tmp_path, made, *({"x": floats(2, 3), "y0": floats(k, 3, seed=k), "n": np.int64(n)}
                            for k, n in [(1, 9), (4, 1), (4, 0), (7, 20)]), ways=WAYS)


MIXED = [value("a", [2, 3]), value("b", [3]), value("c", [])]
MIXED_FEEDS = {"a": floats(2, 3), "b": floats(3, seed=2), "c": np.float32(1.5)}


def test_other_ranks_known_when_compiling(tmp_path):
    made = model([node("SequenceConstruct", "a b c", "s"), node("SequenceErase", "s zero", "t"),
                  node("SequenceInsert", "t a one", "u"), node("SequenceAt", "u one", "x"),
                  node("SequenceAt", "s last", "y"), node("SequenceLength", "u", "n")], MIXED,
                 [value("x", [2, 3]), value("y", []), value("n", [], INT64)],
                 {"zero": np.int64(0), "one": np.int64(1), "last": np.int64(-1)})
    check(tmp_path, made, MIXED_FEEDS, ways=WAYS)


def test_other_ranks_in_branches(tmp_path):
    plain = body([node("SequenceConstruct", "a b", "p")], [], [sequence("p")])
    other = body([node("Exp", "a", "ea"), node("Concat", "b b", "bb", axis=0),
                  node("SequenceConstruct", "ea bb", "q")], [], [sequence("q")])
    made = model([node("If", "go", "s", then_branch=plain, else_branch=other), node("SequenceAt", "s zero", "x"),
                  node("SequenceAt", "s one", "y")], [*MIXED[:2], value("go", [], BOOL)],
                 [value("x", None), value("y", None)], {"zero": np.int64(0), "one": np.int64(1)})
    check(tmp_path, made, *({"a": MIXED_FEEDS["a"], "b": MIXED_FEEDS["b"], "go": np.bool_(go)}
                            for go in (True, False)), ways=WAYS)


def carrying(after: str):
    """A loop that carries a matrix and a vector; the vector grows."""
    inner = loop_body([node("SequenceAt", "before zero", "m"), node("SequenceAt", "before one", "v"),
                       node("Add", "m step", "m2"), node("ReduceSum", "m2", "total", keepdims=0),
                       node("Unsqueeze", "total axes", "row"), node("Concat", "v row", "v2", axis=0),
                       node("SequenceConstruct", after, "after")], [sequence("before")], [sequence("after")],
                      {"step": np.float32(0.25), "axes": np.array([0], np.int64)})
    return model([node("SequenceConstruct", "a b", "s"), node("Loop", "n - s", "all", body=inner),
                  node("SequenceAt", "all zero", "x"), node("SequenceAt", "all one", "y"),
                  node("SequenceLength", "all", "l")], [*MIXED[:2], value("n", [], INT64)],
                 [value("x", None), value("y", None), value("l", [], INT64)],
                 {"zero": np.int64(0), "one": np.int64(1)})


def test_other_ranks_in_a_loop(tmp_path):
    check(tmp_path, carrying("m2 v2"), *({"a": MIXED_FEEDS["a"], "b": MIXED_FEEDS["b"], "n": np.int64(n)}
                                         for n in (0, 1, 5, 2)), ways=WAYS)


def gives(folder: pathlib.Path, made, cases, ways=WAYS):
    """For pairs of feeds and results: of what onnxruntime does not run."""
    for way in ways:
        for found, (_, wanted) in zip(compute(folder / way.replace(" ", "_"), made, [feeds for feeds, _ in cases], way),
                                      cases):
            compare(found, wanted, way)


def mapped(inner, operands="s"):
    """A SequenceMap over rows of x, as many as the run tells."""
    return [node("SplitToSequence", "x", "s", axis=0), node("SequenceMap", operands, "t", body=inner),
            node("ConcatFromSequence", "t", "y", axis=0)]


X, ROW, Z = value("x", ["N", 3]), value("row", [1, 3]), value("z", [1, 3])
NAMES = ["i", "go", "length", "unused", "index", "results", "before", "after", "empty 0", "before 0", "result 0"]


def test_mapped_bodies_may_use_any_names_around_them(tmp_path):
    total = helper.make_node("Sum", ["row", *NAMES], ["z"])
    made = model(mapped(body([total], [ROW], [Z])), [X], [value("y", None)],
                 {name: np.float32(number) for number, name in enumerate(NAMES)})
    gives(tmp_path, made, [({"x": floats(n, 3)}, {"y": floats(n, 3) + 55}) for n in (4, 1)])


def test_mapped_bodies_may_have_any_names(tmp_path):
    total = helper.make_node("Sum", NAMES, ["z"])
    made = model(mapped(body([total], [value(name, [1, 3]) for name in NAMES], [Z]), " ".join("s" * len(NAMES))), [X],
                 [value("y", None)])
    gives(tmp_path, made, [({"x": floats(n, 3)}, {"y": 11 * floats(n, 3)}) for n in (4, 1)])


def test_mapped_bodies_read_the_iteration_around_them(tmp_path):
    scaled = body([node("Cast", "i", "f", to=FLOAT), node("Mul", "row f", "z")], [ROW], [Z])
    around = loop_body([*mapped(scaled), node("Add", "sum y", "next")], [value("sum", ["N", 3])],
                       [value("next", ["N", 3])])
    made = model([node("Loop", "three - x", "r", body=around)], [X], [value("r", None)], {"three": np.int64(3)})
    gives(tmp_path, made, [({"x": floats(n, 3)}, {"r": 4 * floats(n, 3)}) for n in (4, 1)])


def test_mapped_bodies_inside_mapped_bodies(tmp_path):
    inside = body([node("Add", "e row", "a")], [value("e", [1, 3])], [value("a", [1, 3])])
    outside = body([node("SequenceMap", "s", "u", body=inside), node("ConcatFromSequence", "u", "all", axis=0),
                    node("ReduceSum", "all zero", "z")], [ROW], [Z])
    made = model(mapped(outside), [X], [value("y", None)], {"zero": np.array([0], np.int64)})
    gives(tmp_path, made, [({"x": floats(n, 3)}, {"y": floats(n, 3).sum(0, keepdims=True) + n * floats(n, 3)})
                           for n in (3, 1)])


def test_nothing_is_mapped(tmp_path):
    made = model([node("SequenceEmpty", "", "s", dtype=FLOAT),
                  node("SequenceMap", "s", "t", body=body([node("Exp", "row", "z")], [ROW], [Z])),
                  node("SequenceLength", "t", "n"), node("SequenceInsert", "t x", "u"), node("SequenceAt", "u n", "y")],
                 [value("x", [1, 3])], [value("n", [], INT64), value("y", [1, 3])])
    gives(tmp_path, made, [({"x": floats(1, 3)}, {"n": np.array(0), "y": floats(1, 3)})])


def test_loops_over_nothing(tmp_path):
    """Bodies that would contradict the shapes are never run."""
    inner = loop_body([node("SequenceAt", "s i", "e"), node("ReduceSum", "e", "sum", keepdims=0), node("Add", "acc sum", "more")],
                      [value("acc", [])], [value("more", []), value("e", [2, "k"])])
    made = model([node("SequenceEmpty", "", "s", dtype=FLOAT), node("SequenceLength", "s", "n"),
                  node("Loop", "n - x", "y all", body=inner)], [value("x", [])], [value("y", []), value("all", [None] * 3)])
    gives(tmp_path / "loop", made, [({"x": np.float32(3)}, {"y": np.array(3, np.float32), "all": floats(0, 2, 0)})])
    inner = body([node("SequenceAt", "s zero", "e"), node("Add", "row e", "z")], [value("row", [2])], [value("z", [2])])
    made = model([node("SequenceEmpty", "", "s", dtype=FLOAT),
                  node("Scan", "x", "y", body=inner, num_scan_inputs=1, scan_output_axes=[-1])],
                 [value("x", [0, 2])], [value("y", [2, 0])], {"zero": np.int64(0)})
    gives(tmp_path / "scan", made, [({"x": floats(0, 2)}, {"y": floats(2, 0)})])


def test_what_is_over_excuses_no_failure(tmp_path):
    """A body that only at first contradicts what it carries, and then is not supported for another reason."""
    inner = loop_body([node("SequenceErase", "before i", "rest"), node("SequenceLength", "rest", "e"),
                       node("Unheard", "e", "f"), node("SequenceInsert", "rest f", "after")],
                      [sequence("before", ["a"])], [sequence("after", ["a"])])
    then = body([node("SequenceEmpty", "", "none", dtype=FLOAT), node("Loop", "n - none", "all", body=inner),
                 node("SequenceAt", "all n", "p")], [], [value("p", ["k"])])
    other = body([node("Identity", "x", "q")], [], [value("q", ["k"])])
    made = model([node("If", "c", "y", then_branch=then, else_branch=other)],
                 [value("x", [2]), value("c", [], BOOL), value("n", [], INT64)], [value("y", ["k"])])
    fails(tmp_path, made, {"x": floats(2), "c": np.bool_(False), "n": np.int64(1)}, "Unheard")


def test_new_axis(tmp_path):
    made = model(growing(ALIKE, [5, 3], [node("ConcatFromSequence", "all", "y", axis=-1, new_axis=1)]),
                 [value("x", [5, 3]), value("n", [], INT64)], ENDS[:1])
    check(tmp_path, made, *({"x": floats(5, 3), "n": np.int64(n)} for n in (1, 4)), ways=WAYS)


def test_branches(tmp_path):
    two = body([node("Exp", "x", "e"), node("SequenceConstruct", "x e", "p")], [], [sequence("p")])
    one = body([node("Concat", "x x", "d", axis=0), node("SequenceConstruct", "d", "q")], [], [sequence("q")])
    made = model([node("If", "c", "s", then_branch=two, else_branch=one), node("SequenceLength", "s", "n"),
                  node("SequenceAt", "s last", "y")],
                 [value("x", [2, 3]), value("c", [], BOOL)], [value("n", [], INT64), value("y", None)],
                 {"last": np.int64(-1)})
    check(tmp_path, made, *({"x": floats(2, 3), "c": np.bool_(c)} for c in (True, False)), ways=WAYS)


def test_split_when_running(tmp_path):
    made = model([node("SplitToSequence", "x size", "s", axis=1), node("SequenceLength", "s", "n"),
                  node("SequenceAt", "s last", "y"), node("SplitToSequence", "x", "rows", axis=0, keepdims=0),
                  node("SequenceAt", "rows size", "z")],
                 [value("x", ["N", "M"]), value("size", [], INT64)],
                 [value("n", [], INT64), value("y", None), value("z", None)], {"last": np.int64(-1)})
    check(tmp_path, made, *({"x": floats(4, m), "size": np.int64(size)} for m, size in ((7, 3), (6, 2), (5, 1))),
          ways=WAYS)


@pytest.mark.parametrize("axis", [0, 1])
def test_split_into_parts_of_any_length(tmp_path, axis):
    """Longer than the axis by any number: one part. Of nothing: none. Not above zero: an error."""
    made = model([node("SplitToSequence", "x size", "s", axis=axis), node("SequenceLength", "s", "n")],
                 [value("x", ["N", "M"]), value("size", [], INT64)], [value("n", [], INT64)])
    check(tmp_path, made, *({"x": floats(4, 5), "size": np.int64(size)}
                            for size in (1, 3, 4, 5, 6, 2**62, 2**63 - 1)), ways=WAYS)
    empty = {"x": floats(4, 5)[:0] if axis == 0 else floats(4, 5)[:, :0], "size": np.int64(2**63 - 1)}
    assert compute(tmp_path, made, [empty], "mixed")[0]["n"] == 0
    for size in (0, -1, -2**63):
        fails(tmp_path, made, {"x": floats(4, 5), "size": np.int64(size)}, "not above zero")
    last = model([node("SplitToSequence", "x size", "s", axis=axis), node("SequenceAt", "s zero", "y")],
                 [value("x", ["N", "M"]), value("size", [], INT64)], [value("y", None)], {"zero": np.int64(0)})
    check(tmp_path / "last", last, {"x": floats(4, 5), "size": np.int64(2**63 - 1)}, ways=WAYS)


def test_split_into_many_parts(tmp_path):
    """They do not become values each."""
    made = model([node("SplitToSequence", "x size", "s", axis=0), node("SequenceLength", "s", "n"),
                  node("SequenceAt", "s i", "y")], [value("x", [1025, 2]), value("i", [], INT64)],
                 [value("n", [], INT64), value("y", None)], {"size": np.int64(2)})
    check(tmp_path, made, *({"x": floats(1025, 2), "i": np.int64(i)} for i in (0, 511, -1)), ways=WAYS)
    steps = json.loads(command("explain", tmp_path / "native_artifact/model.dvt", "--json").stdout)["steps"]
    assert len(steps) < 100


def test_split_into_no_parts(tmp_path):
    made = model([node("SplitToSequence", "x none", "s", axis=0), node("SequenceLength", "s", "n")],
                 [value("x", [0, 3])], [value("n", [], INT64)], {"none": np.zeros(0, np.int64)})
    gives(tmp_path, made, [({"x": floats(0, 3)}, {"n": np.array(0)})])
    for extent in (2, "N"):
        made.graph.input[0].CopyFrom(value("x", [extent, 3]))
        fails(tmp_path, made, {"x": floats(2, 3)}, "no parts are asked for")


def test_at_the_border(tmp_path):
    made = model([node("SequenceAt", "s i", "x"), node("Exp", "x", "e"), node("SequenceInsert", "s e", "t")],
                 [sequence("s", ["a", "b"]), value("i", [], INT64)], [value("x", None), sequence("t")])
    elements = [floats(2, 3), floats(4, 1, seed=2), floats(1, 5, seed=3)]
    for number in (1, -1):
        found = compute(tmp_path, made, [{**packed("s", elements), "i": np.int64(number)}], "mixed")[0]
        np.testing.assert_array_equal(found["x"], elements[number])
        results = unpacked(found, "t")
        assert len(results) == 4
        for result, wanted in zip(results, [*elements, np.exp(elements[number])]):
            np.testing.assert_allclose(result, wanted, rtol=1e-5)


def test_nothing_at_the_border_of_a_compiled_model(tmp_path):
    """It is compiled for any number of elements, none included."""
    made = model([node("SequenceLength", "s", "n"), node("SequenceInsert", "s x", "t")],
                 [sequence("s", ["a", "b"]), value("x", [2, 2])], [value("n", [], INT64), sequence("t")])
    x, two = floats(2, 2), [floats(2, 3), floats(4, 1, seed=2)]
    nothing = {"s.data": floats(0), "s.shapes": np.zeros((0, 2), np.int64)}
    found = compute(tmp_path, made, [{**nothing, "x": x}, {**packed("s", two), "x": x}], "native artifact")
    for results, elements in zip(found, ([], two)):
        assert results["n"] == len(elements)
        for result, wanted in zip(unpacked(results, "t"), [*elements, x], strict=True):
            np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("extent", ["N", None])
def test_no_optional_at_the_border_of_a_compiled_model(tmp_path, extent):
    optional = helper.make_value_info("o", helper.make_optional_type_proto(
        helper.make_tensor_type_proto(FLOAT, [extent])))
    some = body([node("OptionalGetElement", "o", "g"), node("Add", "g x", "e")], [], [value("e", ["k"])])
    none = body([node("Identity", "x", "z")], [], [value("z", ["k"])])
    made = model([node("OptionalHasElement", "o", "h"), node("If", "h", "y", then_branch=some, else_branch=none)],
                 [optional, value("x", [1])], [value("y", ["k"])], opset=18)
    gives(tmp_path, made, [({"o": floats(4), "o.has_element": np.bool_(True), "x": floats(1)}, {"y": floats(4) + floats(1)}),
                           ({"o": floats(0), "o.has_element": np.bool_(False), "x": floats(1)}, {"y": floats(1)})],
          ways=("native artifact",))


@pytest.mark.parametrize("given", [True, False])
def test_optional_at_the_border(tmp_path, given):
    optional = helper.make_value_info("o", helper.make_optional_type_proto(
        helper.make_tensor_type_proto(FLOAT, ["N"])))
    some = body([node("OptionalGetElement", "o", "g"), node("Exp", "g", "e")], [], [value("e", ["k"])])
    none = body([node("Identity", "zero", "z")], [], [value("z", ["k"])])
    made = model([node("OptionalHasElement", "o", "h"), node("If", "h", "y", then_branch=some, else_branch=none)],
                 [optional], [value("h", [], BOOL), value("y", ["k"])], {"zero": np.zeros(1, np.float32)}, opset=18)
    element = floats(4) if given else floats(0)
    found = compute(tmp_path, made, [{"o": element, "o.has_element": np.bool_(given)}], "mixed")[0]
    compare(found, {"h": np.array(given), "y": np.exp(element) if given else np.zeros(1, np.float32)}, "optional")
    plain = model([node("OptionalGetElement", "o", "y")], [optional], [value("y", ["k"])], opset=18)
    feeds = {"o": element, "o.has_element": np.bool_(given)}
    if given:
        compare(compute(tmp_path / "plain", plain, [feeds], "mixed")[0], {"y": element}, "plain")
    else:
        fails(tmp_path / "plain", plain, feeds, "producing y' (OptionalGetElement): the optional has no element")


@pytest.mark.parametrize("nodes", [
    [node("SequenceInsert", "s x seven", "t"), node("SequenceAt", "t zero", "y")],
    [node("SequenceErase", "s seven", "t"), node("SequenceAt", "t zero", "y")],
    [node("SequenceErase", "none zero", "t"), node("SequenceAt", "t zero", "y")],
    [node("SequenceErase", "none i", "t"), node("SequenceAt", "t zero", "y")],
    [node("ConcatFromSequence", "none", "y", axis=0)]], ids=["insert", "erase", "erase none", "erase any", "concat"])
def test_branch_without_such_an_element(tmp_path, nodes):
    """It may never be taken."""
    plain = body([node("Exp", "x", "e")], [], [value("e", [2])])
    made = model([node("SequenceConstruct", "x x", "s"), node("SequenceEmpty", "", "none", dtype=FLOAT),
                  node("If", "c", "r", then_branch=plain, else_branch=body(nodes, [], [value("y", [2])]))],
                 [value("x", [2]), value("c", [], BOOL), value("i", [], INT64)], [value("r", [2])],
                 {"zero": np.int64(0), "seven": np.int64(7)})
    feeds = {"x": floats(2), "i": np.int64(0)}
    gives(tmp_path, made, [({**feeds, "c": np.bool_(True)}, {"r": np.exp(floats(2))})], ways=("mixed",))
    fails(tmp_path, made, {**feeds, "c": np.bool_(False)}, "a branch was taken that makes no sense")


def test_refusals(tmp_path):
    def refuses(made, says):
        onnx.save(made, tmp_path / "bad.onnx")
        done = command("compile", tmp_path / "bad.onnx", "-o", tmp_path / "bad.dvt", "--no-cache", code=2)
        assert says in done.stderr, done.stderr

    x, y = value("x", [2, 3]), value("y", None)
    refuses(model([node("SequenceConstruct", "x x", "s"), node("SequenceAt", "s i", "y")], [x], [y],
                  {"i": np.int64(2)}), "2 elements, none at 2")
    refuses(model([node("SequenceConstruct", "x v", "s"), node("SequenceAt", "s i", "y")],
                  [x, value("v", [2]), value("i", [], INT64)], [y]), "of 2 and of 1 dimensions, which is supported only where the position is known")
    refuses(model([node("SequenceConstruct", "x v", "s"), node("SequenceErase", "s i", "t"),
                   node("SequenceLength", "t", "y")], [x, value("v", [2]), value("i", [], INT64)], [y]),
            "of 2 and of 1 dimensions")
    refuses(model([node("SequenceConstruct", "x v", "s")], [x, value("v", [2])], [sequence("s")]),
            "one table of extents for all")
    refuses(carrying("v2 m2"), "numbers of dimensions are 2, 1 here and 1, 2 there")
    refuses(carrying("m2 v2 v2"), "numbers of dimensions are 2, 1 here and 2, 1, 1 there")
    refuses(model([node("SequenceAt", "s i", "y")], [sequence("s"), value("i", [], INT64)], [y]),
            "does not say how many dimensions")
