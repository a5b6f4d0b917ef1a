# SPDX-License-Identifier: Apache-2.0
"""Operands that do not go together: refused by name whether their extents are known when compiling or come with a run,
and whoever would compute."""
import numpy as np
import pytest

from command import ESTIMATE
from makers import constant, model, node, of_arrays, value


def f(*shape) -> np.ndarray:
    return np.asarray(np.random.default_rng(len(shape)).standard_normal(shape), np.float32)


def b(*shape) -> np.ndarray:
    return np.asarray(np.random.default_rng(len(shape)).integers(0, 200, shape), np.uint8)


def i(*numbers) -> np.ndarray:
    return np.array(numbers, np.int64)


# op, attributes, operands that are floats or indices, constants behind them, what the message says
CASES = {
    "reflected nothing": ("Pad", {"mode": "reflect"}, [f(2, 0)], [i(0, 1, 0, 1)], "the axis that is padded"),
    "repeated nothing": ("Pad", {"mode": "edge"}, [f(2, 0)], [i(0, 1, 0, 0)], "the axis that is padded"),
    "wrapped nothing": ("Pad", {"mode": "wrap"}, [f(0, 2)], [i(3, 0, 0, 0)], "the axis that is padded"),
    "padded away": ("Pad", {}, [f(2, 3)], [i(0, -2, 0, -2)], "axis 1 of the result"),
    "wide indices": ("GatherElements", {"axis": 0}, [f(2, 3), np.zeros((1, 4), np.int64)], [], "axis 1 that is indexed"),
    "tall indices": ("GatherElements", {"axis": 1}, [f(2, 3), np.zeros((3, 1), np.int64)], [], "axis 0 that is indexed"),
    "batches of tuples": ("GatherND", {"batch_dims": 1}, [f(2, 3), np.zeros((3, 1), np.int64)], [], "batch dimensions"),
    "updates of elements": ("ScatterElements", {}, [f(2, 3), np.zeros((1, 2), np.int64), f(1, 3)], [], "the updates"),
    "elements scattered wide": ("ScatterElements", {}, [f(2, 3), np.zeros((1, 4), np.int64), f(1, 4)], [],
                                "axis 1 that is indexed"),
    "updates of rows": ("ScatterND", {}, [f(2, 3), np.zeros((2, 1), np.int64), f(2, 4)], [], "the updates"),
    "bias of a product grows": ("Gemm", {}, [f(1, 3), f(3, 4), f(2, 4)], [], "operand 2"),
    "scale of rows grows": ("LayerNormalization", {}, [f(2, 1), f(3)], [], "operand 1"),
    "slope grows": ("PRelu", {}, [f(2, 1), f(3)], [], "operand 1"),
    "bias of a transposed convolution": ("ConvTranspose", {}, [f(1, 4, 2, 2), f(4, 3, 2, 2), f(5)], [], "bias"),
    "mask of too many keys": ("Attention", {}, [f(1, 2, 2, 4), f(1, 2, 3, 4), f(1, 2, 3, 4), f(2, 5)], [],
                              "the mask's last axis"),
    "heads of keys": ("Attention", {}, [f(1, 3, 2, 4), f(1, 2, 3, 4), f(1, 2, 3, 4)], [], "the_node"),
    "image of no whole blocks": ("SpaceToDepth", {"blocksize": 2}, [f(1, 1, 3, 4)], [], "whole blocks of the image"),
    "largest of nothing": ("ArgMax", {"axis": 1}, [f(2, 0)], [], "the axis to look along"),
    "one zero point for three scales": ("DequantizeLinear", {}, [b(2, 3), f(3), b()], [], "zero points"),
    "three zero points for one scale": ("QuantizeLinear", {}, [f(2, 3), f(), b(3)], [], "zero points"),
    "literal index": ("Gather", {"axis": 0}, [f(3, 2)], [i(0, 3)], "is outside|the axis that is indexed"),
    "literal index from behind": ("Gather", {"axis": 1}, [f(3, 2)], [i(0, -3)], "is outside|the axis that is indexed"),
    "literal tuple": ("GatherND", {}, [f(3, 2)], [np.array([[1, 2]])], "is outside|the axis that is indexed"),
    "literal place": ("ScatterElements", {}, [f(3, 2)], [np.array([[3]]), f(1, 1)],
                      "is outside|the axis that is indexed"),
}
WAYS = ["", "--only=native,reference", "--only=reference"]


def made(op, attributes, arrays, constants, free):
    names = "abcd"[:len(arrays)]
    consts = [constant(f"k{at}", array) for at, array in enumerate(constants)]
    # Ranks of weights are free, too, but not what windows are as large as.
    extents = [[f"{name}{d}" if free and d < 2 else extent for d, extent in enumerate(array.shape)]
               for name, array in zip(names, arrays)]
    return model([node(op, [*names, *(k.name for k in consts)], "y", name="the_node", **attributes)],
                 of_arrays(names, arrays, extents), [value("y", None)], consts, opset=23)


@pytest.mark.parametrize("free", [False, True], ids=["known", "free"])
@pytest.mark.parametrize("name", CASES)
def test_refused(dovetail, name, free):
    op, attributes, arrays, constants, says = CASES[name]
    dovetail.write("m.onnx", made(op, attributes, arrays, constants, free))
    np.savez(dovetail.folder / "in.npz", **dict(zip("abcd", arrays)))
    for way in WAYS:
        dovetail.refuses(2, "run", "m.onnx", "--inputs", "in.npz", ESTIMATE, *([way] if way else []),
                         says=["the_node", says])


# Numbers that no model means, where arithmetic would leave 64 bits.
FAR = 2**63 - 1
BEYOND = {
    "dilations": ("Conv", {"dilations": [2**62, 1]}, [f(1, 1, 8, 8), f(1, 1, 3, 3)], [], "dilations"),
    "strides": ("Conv", {"strides": [FAR, 1]}, [f(1, 1, 8, 8), f(1, 1, 3, 3)], [], "strides"),
    "pads": ("Conv", {"pads": [FAR, 0, FAR, 0]}, [f(1, 1, 8, 8), f(1, 1, 3, 3)], [], "pads"),
    "window": ("MaxPool", {"kernel_shape": [FAR, 1]}, [f(1, 1, 8, 8)], [], "kernel_shape"),
    "output padding": ("ConvTranspose", {"output_padding": [FAR, FAR]}, [f(1, 1, 4, 4), f(1, 1, 3, 3)], [],
                       "output_padding"),
    "blocks of channels": ("DepthToSpace", {"blocksize": 2**33}, [f(1, 4, 2, 2)], [], "the_node"),
    "blocks of images": ("SpaceToDepth", {"blocksize": 2**33}, [f(1, 4, 2, 2)], [], "blocksize is"),
    "negative output padding": ("ConvTranspose", {"output_padding": [-5, -5]}, [f(1, 1, 4, 4), f(1, 1, 3, 3)], [],
                                "output_padding"),
    "norm of order 0": ("LpNormalization", {"p": 0}, [f(2, 3)], [], "p is 0"),
    "padding": ("Pad", {}, [f(2, 3)], [i(FAR, 0, 1, 0)], "the_node"),
    "shape": ("Expand", {}, [f(1)], [i(FAR, FAR)], "more elements than"),
    "scale": ("Resize", {}, [f(1, 1, 3, 3)], [f(0), np.array([1, 1, np.nan, 1], np.float32)], "scale 2 is nan"),
    "endless scale": ("Resize", {}, [f(1, 1, 3, 3)], [f(0), np.array([1, 1, 1, np.inf], np.float32)],
                      "scale 3 is inf"),
    "range to nowhere": ("Range", {}, [], [np.float32(0), np.float32(np.nan), np.float32(1)], "is not a range"),
    "range of too many": ("Range", {}, [], [np.float32(0), np.float32(1e30), np.float32(1)], "is not a range"),
}


@pytest.mark.parametrize("name", BEYOND)
def test_beyond_all_numbers(dovetail, name):
    op, attributes, arrays, constants, says = BEYOND[name]
    dovetail.write("m.onnx", made(op, attributes, arrays, constants, False))
    dovetail.refuses(2, "run", "m.onnx", ESTIMATE, says=["the_node", says])


@pytest.mark.parametrize("step, expected", [(FAR, [1]), (-FAR - 1, [1]), (2**40, [1]), (-1, [1, 0])])
def test_steps_of_any_length(dovetail, step, expected):
    """Of numbers that are known when compiling and of those that are not."""
    nodes = [node("Shape", "x", "s"), node("Slice", "s from to zero step", "extents"),
             node("Slice", "x from to zero step", "y")]
    end = FAR if step > 0 else -FAR
    consts = [constant(name, i(number)) for name, number in
              {"from": 1, "to": end, "zero": 0, "step": step}.items()]
    dovetail.write("m.onnx", model(nodes, [value("x", [2, 5])], [value("extents", None, 7), value("y", None)], consts))
    x = f(2, 5)
    np.save(dovetail.folder / "x.npy", x)
    dovetail("run", "m.onnx", ESTIMATE, "--input", "x=x.npy", "--output", "out.npz")
    with np.load(dovetail.folder / "out.npz") as found:
        np.testing.assert_array_equal(found["extents"], np.array([2, 5])[expected])
        np.testing.assert_array_equal(found["y"], x[expected])
