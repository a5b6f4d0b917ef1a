# SPDX-License-Identifier: Apache-2.0
"""Operands whose values make no sense and are known only when a model runs: extents, axes, counts, places, lengths.
Each is refused by the name of its node, or has the result that ONNX gives it."""
import numpy as np
import pytest

from command import ESTIMATE
from makers import constant, graph, model, node, of_arrays, untyped, value

FAR = 2**63 - 1
X = np.random.default_rng(1).standard_normal((2, 3)).astype(np.float32)
IMAGE = np.random.default_rng(2).standard_normal((1, 1, 4, 4)).astype(np.float32)


def i(*numbers) -> np.ndarray:
    return np.array(numbers, np.int64)


def one(number, kind=np.int64) -> np.ndarray:
    return np.array(number, kind)


# op: (operands as they are named, attributes, results, arrays before the bad one, bad values and what is said)
CASES = {
    "Reshape": ("a b", {}, "y", [X], {
        "two open": (i(-1, -1), "more than one -1"), "negative": (i(-2, 3), "negative extent"),
        "too many": (i(7, 1), "as many elements"), "indivisible": (i(4, -1), "do not divide"),
        "beyond": (i(FAR, 2), "result 0 would have")}),
    "Expand": ("a b", {}, "y", [X[:, :1]], {
        "negative": (i(2, -1), "not a shape"), "other": (i(3, 4), "do not broadcast"), "beyond": (i(2, FAR), "not a shape")}),
    "Tile": ("a b", {}, "y", [X], {
        "negative": (i(-1, 2), "repeats"), "too few": (i(1), "repeats"), "beyond": (i(2**62, 4), "repeats"),
        "huge": (i(2**40, 1), "extent")}),
    "Slice": ("a b c d e", {}, "y", [X, i(0), i(2)], {
        "axis": ([i(2), i(1)], "axis 2 is outside"), "far axis": ([i(FAR), i(1)], "axis"),
        "no step": ([i(1), i(0)], "step of axis 1 is zero"), "steps": ([i(1), i(1, 1)], "differ in length")}),
    "Pad": ("a b", {}, "y", [X], {
        "negative": (i(-3, 0, 0, 0), "pads -3"), "few": (i(0, 0, 0), "two elements for each"),
        "beyond": (i(FAR, 0, 1, 0), "pads"), "huge": (i(2**39, 0, 0, 0), "extent")}),
    "Split": ("a b", {"axis": 1}, "y z", [X], {
        "few": (i(1, 1), "split"), "many": (i(2, 2), "split"), "negative": (i(-1, 4), "split"),
        "beyond": (i(FAR, FAR), "split"), "three": (i(1, 1, 1), "split")}),
    "TopK": ("a b", {}, "y z", [X], {
        "more than there are": (i(4), "k is 4"), "negative": (i(-1), "k is -1"), "far": (i(FAR), "k is"),
        "two": (i(1, 1), "must have one")}),
    "OneHot": ("a b c", {}, "y", [i(0, 1)], {
        "negative": ([one(-1), X[0, :2]], "depth is -1"), "far": ([one(FAR), X[0, :2]], "depth"),
        "no number": ([one(np.nan, np.float32), X[0, :2]], "depth is nan")}),
    "ConstantOfShape": ("a", {}, "y", [], {
        "negative": (i(-1, 2), "not a shape"), "far": (i(FAR, FAR), "not a shape"), "huge": (i(2**40, 4), "extent")}),
    "Range": ("a b c", {}, "y", [], {
        "no step": ([one(0), one(10), one(0)], "step is zero"), "far": ([one(0), one(FAR), one(1)], "too many"),
        "nan": ([one(0, np.float32), one(np.nan, np.float32), one(1, np.float32)], "not a range")}),
    "ScatterND": ("a b c", {}, "y", [X], {
        "outside": ([i(2)[None], X[:1]], r"2 is outside \[-2, 1\]"),
        "behind": ([i(-3)[None], X[:1]], r"-3 is outside \[-2, 1\]"), "far": ([i(-FAR - 1)[None], X[:1]], "outside")}),
    "ScatterElements": ("a b c", {"axis": 1}, "y", [X], {
        "outside": ([i(0, 3)[None], X[:1, :2]], r"3 is outside \[-3, 2\]"),
        "far": ([i(0, FAR)[None], X[:1, :2]], "outside")}),
    "CenterCropPad": ("a b", {}, "y", [X], {"negative": (i(-1, 2), "would have"), "few": (i(1), "1 extents for 2")}),
    "ReverseSequence": ("a b", {}, "y", [X], {
        "long": (i(3, 1, 1), r"length 3 is outside \[0, 2\]"), "negative": (i(1, -1, 1), "length -1")}),
    "CumSum": ("a b", {}, "y", [X], {"axis": (one(2), "axis 2 is outside"), "far": (one(-FAR - 1), "axis")}),
    "Resize": (["a", "", "b"], {"mode": "linear"}, "y", [IMAGE], {
        "zero": (np.array([1, 1, 0, 1], np.float32), "scale 0"), "negative": (np.array([1, 1, -1, 1], np.float32), "-1"),
        "nan": (np.array([1, 1, np.nan, 1], np.float32), "scale nan"), "few": (np.ones(2, np.float32), "2")}),
    "ResizeTo": (["a", "", "", "b"], {"mode": "nearest"}, "y", [IMAGE], {
        "negative": (i(1, 1, -1, 4), "size -1"), "far": (i(1, 1, FAR, 4), "size"), "few": (i(4, 4), "2")}),
    "Compress": ("a b", {"axis": 1}, "y", [X], {"long": (np.array([1, 0, 1, 1], bool), "4 elements for 3")}),
    "RoiAlign": ("a b c", {"output_height": 2, "output_width": 2}, "y", [IMAGE, np.ones((1, 4), np.float32)], {
        "image": (i(1), "1"), "negative": (i(-1), "-1")}),
    "MaxRoiPool": ("a b", {"pooled_shape": [2, 2]}, "y", [IMAGE], {
        "infinite": (np.array([[0, 0, 0, np.inf, 3]], np.float32), "a region with the corner inf"),
        "nan": (np.array([[0, np.nan, 0, 1, 1]], np.float32), "a region with the corner nan")}),
    "MaxUnpool": ("a b", {"kernel_shape": [2, 2], "strides": [2, 2]}, "y", [IMAGE[:, :, :1, :1]], {
        "outside": (i(4).reshape(1, 1, 1, 1), "4"), "negative": (i(-1).reshape(1, 1, 1, 1), "-1")}),
    "HannWindow": ("a", {}, "y", [], {"negative": (one(-1), "-1")}),
}
ALL = [pytest.param(op, bad, id=f"{op}, {bad}") for op, case in CASES.items() for bad in case[-1]]
WAYS = ["", "--only=native,reference"]


@pytest.mark.parametrize("op, bad", ALL)
def test_refused(dovetail, op, bad):
    operands, attributes, results, before, values = CASES[op]
    given, says = values[bad]
    arrays = [*before, *(given if isinstance(given, list) else [given])]
    order = operands.split() if isinstance(operands, str) else operands
    names = [name for name in order if name]
    for free, way in zip([False, True], WAYS):
        extents = [[f"{name}{d}" if free and array.dtype == np.float32 else extent
                    for d, extent in enumerate(array.shape)] for name, array in zip(names, arrays)]
        dovetail.write("m.onnx", model([node(op.removesuffix("To"), order, results, name="the_node", **attributes)],
                                       of_arrays(names, arrays, extents), untyped(results), opset=18))
        np.savez(dovetail.folder / "in.npz", **dict(zip(names, arrays)))
        dovetail.refuses(2, "run", "m.onnx", "--inputs", "in.npz", ESTIMATE, *([way] if way else []),
                         says=["the_node", says])


TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)
# Nodes from the indices i to j, which a gather of three rows takes; indices that are good and bad, what is said of these.
COMPUTED = {
    "sum": ([node("Add", "i one", "j")], i(0, 1), i(1, 2), "3 is outside"),
    "product": ([node("Mul", "i i", "j")], i(1, -1), i(1, 2), "4 is outside"),
    "widened": ([node("Cast", "i", "j", to=7)], i(2, -3).astype(np.int32), i(3, 0).astype(np.int32), "3 is outside"),
    "of floats": ([node("Cast", "i", "j", to=7)], np.float32([2, -3]), np.float32([0, -4]), "-4 is outside"),
    "viewed": ([node("Unsqueeze", "i zero", "j")], i(2, -3), i(3, 0), "3 is outside"),
    "cut": ([node("Slice", "i first second", "j")], i(9, 1), i(0, 3), "3 is outside"),
    "looked up": ([node("Gather", "places i", "j")], i(0, 1), i(0, 2), "7 is outside"),
}


@pytest.mark.parametrize("free", [False, True], ids=["known", "free"])
@pytest.mark.parametrize("name", COMPUTED)
def test_computed_indices(dovetail, name, free):
    """Those of a table inside what may be one kernel, with more ops behind."""
    nodes, good, bad, says = COMPUTED[name]
    consts = [constant("table", TABLE), constant("one", i(1)), constant("zero", i(0)), constant("first", i(1)),
              constant("second", i(2)), constant("places", i(0, 2, 7))]
    taken = {name for made in nodes for name in made.input} | {"table"}
    made = model([*nodes, node("Gather", "table j", "rows", name="the_node"), node("Relu", "rows", "r"),
                  node("Add", "r x", "y")],
                 of_arrays("ix", [good, X[0, :1]], [["N"] if free else [2], [1]]), [value("y", None)],
                 [held for held in consts if held.name in taken], opset=18)
    dovetail.write("m.onnx", made)
    np.savez(dovetail.folder / "good.npz", i=good, x=X[0, :1])
    np.savez(dovetail.folder / "bad.npz", i=bad, x=X[0, :1])
    for way in [], ["--prefer=native"], ["--only=native,reference"], ["--only=reference"]:
        dovetail("run", "m.onnx", "--inputs", "good.npz", ESTIMATE, *way)
        dovetail.refuses(2, "run", "m.onnx", "--inputs", "bad.npz", ESTIMATE, *way, says=["the_node", says])


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("op", ["Div", "Mod"])
def test_division_by_zero(dovetail, op, kind):
    """Of integers: refused, whether the divisor is given, computed, an extent or a constant."""
    number = {np.int64: 7, np.int32: 6, np.uint8: 2}[kind]
    given = of_arrays("ab", [one([5, 6, 7], kind), one([5, 6, 7], kind)])
    forms = {
        "given": ([node(op, "a b", "y", name="the_node")], []),
        "viewed": ([node("Reshape", "b s", "c"), node(op, "a c", "y", name="the_node")], [constant("s", i(1, 3))]),
        "computed": ([node("Sub", "b k", "c"), node(op, "a c", "d", name="the_node"), node("Add", "d a", "y")],
                     [constant("k", one([1], kind))]),
        "of an extent": ([node("Shape", "b", "s"), node("Cast", "s", "c", to=number), node("Sub", "c k", "d"),
                          node(op, "a d", "y", name="the_node")], [constant("k", one([3], kind))]),
        "constant": ([node(op, "a k", "y", name="the_node")], [constant("k", one([1, 0, 2], kind))])}
    np.savez(dovetail.folder / "in.npz", a=one([5, 6, 7], kind), b=one([1, 2, 0], kind))
    np.savez(dovetail.folder / "less.npz", a=one([5, 6, 7], kind), b=one([1, 2, 1], kind))
    for form, (nodes, consts) in forms.items():
        dovetail.write("m.onnx", model(nodes, given, untyped("y"), consts))
        for way in [], ["--only=native,reference"], ["--only=reference"]:
            dovetail.refuses(2, "run", "m.onnx", "--inputs", "less.npz" if form == "computed" else "in.npz", ESTIMATE,
                             *way, says=["the_node", "zero"])


@pytest.mark.parametrize("extents", [[2, 3], ["N", 3], [1, 3], [3], [0, 3]], ids=str)
def test_expand_to_known_extents(dovetail, extents):
    """Extents of the run are held against those of the data where these alone decide the result."""
    shape = tuple(2 if extent == "N" else extent for extent in extents)
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    made = model([node("Add", "a zero", "s"), node("Expand", "x s", "e", name="the_node"), node("Relu", "e", "y")],
                 [value("x", extents), value("a", [2], 7)], untyped("y"), [constant("zero", i(0, 0))])
    dovetail.write("m.onnx", made)
    first = shape[0] if len(shape) == 2 else 1
    good = [(first, 3), (1, 1)] + ([(7, 3)] if first == 1 else [])
    bad = [(first, 5), (first, 0), (first, -3)] + ([(first + 2, 3)] if first != 1 else [])
    for way in [], ["--only=native,reference"], ["--only=reference"]:
        for wanted in good:
            np.savez(dovetail.folder / "in.npz", x=x, a=i(*wanted))
            dovetail("run", "m.onnx", "--inputs", "in.npz", ESTIMATE, "--output", "out.npz", *way)
            with np.load(dovetail.folder / "out.npz") as found:
                np.testing.assert_array_equal(found["y"], np.maximum(x * np.ones(wanted, np.float32), 0))
        for wanted in bad:
            np.savez(dovetail.folder / "in.npz", x=x, a=i(*wanted))
            dovetail.refuses(2, "run", "m.onnx", "--inputs", "in.npz", ESTIMATE, *way, says="the_node")


def test_loops_end_by_their_condition(dovetail):
    """A trip count that no run reaches, and a condition that ends the loop; a count below zero is none."""
    body = graph([node("Less", "n last", "more"), node("Add", "s s", "t")],
                 [value("n", [], 7), value("c", [], 9), value("s", [2])], [value("more", [], 9), value("t", [2])])
    made = model([node("Loop", "count go x", "y", body=body)], [value("count", [], 7), value("x", [2])],
                 [value("y", [2])], [constant("last", one(4)), constant("go", one(True, bool))])
    dovetail.write("m.onnx", made)
    x = np.float32([1, -2])
    for count, times in {FAR: 5, 3: 3, 0: 0, -1: 0, -FAR - 1: 0}.items():
        np.savez(dovetail.folder / "in.npz", count=one(count), x=x)
        dovetail("run", "m.onnx", "--inputs", "in.npz", ESTIMATE, "--output", "out.npz")
        with np.load(dovetail.folder / "out.npz") as found:
            np.testing.assert_array_equal(found["y"], x * 2**times)
