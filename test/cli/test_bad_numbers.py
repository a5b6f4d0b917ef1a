# SPDX-License-Identifier: Apache-2.0
"""Scales of zero, lengths of sequences beyond the sequence, and caches of foreign shapes: what ONNX defines, or an error
that names the node or the input. Never a crash, and never numbers of other memory."""
import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from command import ESTIMATE
from makers import constant, model, node, of_arrays, untyped, value

WAYS = [], ["--only=native,reference"], ["--only=reference"]
X = np.float32([[-300, -2, -0.25, 0.5, 3, 1e30]])
ZERO = np.float32(0)


def results(dovetail, made, feeds: dict, *way) -> dict:
    dovetail.write("m.onnx", made)
    np.savez(dovetail.folder / "in.npz", **feeds)
    dovetail("run", "m.onnx", "--inputs", "in.npz", ESTIMATE, "--output", "out.npz", *way)
    with np.load(dovetail.folder / "out.npz") as found:
        return dict(found)


@pytest.mark.parametrize("known", [True, False], ids=["constant", "given"])
@pytest.mark.parametrize("kind, low, high", [(np.uint8, 0, 255), (np.int8, -128, 127)])
def test_quantised_by_a_scale_of_zero(dovetail, kind, low, high, known):
    """A constant one is refused; by one that the run gives, what is not zero saturates, whatever the zero point."""
    arrays = {"x": X, "s": ZERO, "z": np.array(7, kind)}
    given = ["x"] if known else list(arrays)
    made = model([node("QuantizeLinear", "x s z", "y", name="the_node")],
                 of_arrays(given, [arrays[name] for name in given]), untyped("y"),
                 [constant(name, arrays[name]) for name in arrays if name not in given])
    for way in WAYS:
        if known:
            dovetail.refuses(2, "run", dovetail.write("m.onnx", made), ESTIMATE, *way, says=["the_node", "scale 0"])
            continue
        found = results(dovetail, made, {name: arrays[name] for name in given}, *way)["y"]
        np.testing.assert_array_equal(found, np.where(X < 0, low, high).astype(kind), err_msg=str(way))


@pytest.mark.parametrize("scales", [ZERO, np.zeros(4, np.float32)], ids=["one", "by channel"])
def test_dequantised_by_scales_of_zero(dovetail, scales):
    weights = np.random.default_rng(0).integers(-128, 128, (4, 3, 1, 1), np.int8)
    zeros = np.zeros(scales.shape, np.int8)
    made = model([node("DequantizeLinear", "w s z", "f", axis=0), node("Conv", "x f", "y", name="the_node")],
                 [value("x", [1, 3, 5, 5])], untyped("y"),
                 [constant("w", weights), constant("s", scales), constant("z", zeros)])
    x = np.random.default_rng(1).standard_normal((1, 3, 5, 5)).astype(np.float32)
    for way in WAYS:
        assert not results(dovetail, made, {"x": x}, *way)["y"].any()


@pytest.mark.parametrize("x", [np.zeros((2, 3), np.float32), np.full((2, 3), 2.5, np.float32),
                               np.full((2, 3), -2.5, np.float32), np.float32([[-1, 0, 2], [0.5, 1, -2]])], ids=["zeros", "above", "below", "both"])
def test_dynamic_quantisation_as_defined(dovetail, x):
    """Of zeros, too, for which ONNX's formula gives a scale of zero and its reference takes the range for one."""
    made = model([node("DynamicQuantizeLinear", "x", "y s z", name="the_node")], [value("x", [2, 3])],
                 [value("y", [2, 3], 2), value("s", []), value("z", [], 2)])
    truth = dict(zip("ysz", ReferenceEvaluator(made).run(None, {"x": x})))
    for way in WAYS:
        for name, found in results(dovetail, made, {"x": x}, *way).items():
            np.testing.assert_array_equal(found, truth[name], err_msg=f"{name} {way}")


@pytest.mark.parametrize("free", [False, True], ids=["known", "free"])
@pytest.mark.parametrize("op, gates", [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_lengths_of_sequences(dovetail, op, gates, free):
    """Longer than the sequence or negative: refused. Zero: the state is what it was."""
    steps, batch, width, hidden = 4, 2, 3, 5
    rng = np.random.default_rng(0)
    weights = [constant("w", rng.standard_normal((1, gates * hidden, width)).astype(np.float32)),
               constant("r", rng.standard_normal((1, gates * hidden, hidden)).astype(np.float32))]
    x = rng.standard_normal((steps, batch, width)).astype(np.float32)
    extents = [["T", "N", width], ["N"]] if free else None
    given = np.array([4, 2], np.int32)
    for computed in (False, True):
        nodes = [node(op, ["x", "w", "r", "", "l"], ["y", "h"], name="the_node", hidden_size=hidden)]
        constants = list(weights)
        if computed:
            nodes = [node("Add", "n none", "l"), *nodes]
            constants.append(constant("none", np.array([0], np.int32)))
        names = ["x", "n" if computed else "l"]
        made = model(nodes, of_arrays(names, [x, given], extents), untyped("y h"), constants)
        for way in WAYS:
            for good in ([4, 2], [0, 4], [0, 0]):
                found = results(dovetail, made, {"x": x, names[1]: np.array(good, np.int32)}, *way)
                for row, length in enumerate(good):
                    assert not found["y"][length:, :, row].any()
                    assert np.isfinite(found["h"]).all() and (length or not found["h"][:, row].any())
            for bad in ([5, 1], [1, -1], [2**31 - 1, 1], [-2**31, 4]):
                np.savez(dovetail.folder / "in.npz", **{"x": x, names[1]: np.array(bad, np.int32)})
                dovetail.refuses(2, "run", "m.onnx", "--inputs", "in.npz", ESTIMATE, *way, says=["the_node", "length"])


CACHE = {"batches": ((2, 2, 3, 4), "past_0|the_node"), "heads": ((1, 3, 3, 4), "past_0"),
         "depth": ((1, 2, 3, 5), "past_0"), "dimensions": ((2, 3, 4), "past_0"),
         "lengths": ((1, 2, 5, 4), "past_1|past_0|the_node")}


@pytest.mark.parametrize("state", [[], ["--state=auto"]], ids=["plain", "state"])
@pytest.mark.parametrize("name", CACHE)
def test_caches_of_foreign_shapes(dovetail, name, state):
    """Two caches of one length, to which a step appends, and a mask over all positions."""
    shape, says = CACHE[name]
    nodes = [node("Concat", "past_0 x", "present_0", axis=2), node("Concat", "past_1 x", "present_1", axis=2),
             node("Mul", "present_0 present_1", "p"), node("ReduceSum", "p axis", "s", keepdims=0),
             node("Add", "s mask", "y", name="the_node")]
    made = model(nodes, [value("past_0", [1, 2, "P", 4]), value("past_1", [1, 2, "P", 4]), value("x", [1, 2, 1, 4]),
                         value("mask", [1, 2, "M"])],
                 [value("present_0", [1, 2, "Q", 4]), value("present_1", [1, 2, "Q", 4]), value("y", [1, 2, "Q"])],
                 [constant("axis", np.array([3], np.int64))])
    dovetail.write("m.onnx", made)
    ones = {"past_0": np.ones((1, 2, 3, 4), np.float32), "past_1": np.ones((1, 2, 3, 4), np.float32),
            "x": np.ones((1, 2, 1, 4), np.float32), "mask": np.ones((1, 2, 4), np.float32)}
    for way in [], ["--only=native,reference"]:
        assert (results(dovetail, made, ones, *state, *way)["y"] == 5).all()
        np.savez(dovetail.folder / "in.npz", **{**ones, "past_0": np.ones(shape, np.float32)})
        dovetail.refuses(2, "run", "m.onnx", "--inputs", "in.npz", ESTIMATE, *state, *way, says=says)
        np.savez(dovetail.folder / "in.npz", **{**ones, "mask": np.ones((1, 2, 6), np.float32)})
        dovetail.refuses(2, "run", "m.onnx", "--inputs", "in.npz", ESTIMATE, *state, *way, says="the_node")


@pytest.mark.parametrize("zero", [np.array(3, np.int8), np.array([1, 2], np.uint8), np.array(256, np.int32)], ids=str)
def test_zero_points_that_do_not_fit(dovetail, zero):
    """Of another type than what is dequantised, or as many as nothing has: refused before anything runs."""
    made = model([node("DequantizeLinear", "x s z", "y", name="the_node")], [value("x", [2, 3], 2)], untyped("y"),
                 [constant("s", np.float32(1)), constant("z", zero)])
    dovetail.refuses(2, "run", dovetail.write("m.onnx", made), ESTIMATE, says="the_node")
