# SPDX-License-Identifier: Apache-2.0
"""Valid models at the edges of what ONNX allows, computed as onnxruntime computes them."""
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from command import ESTIMATE
from makers import FLOAT, constant, model, node, value

BOOL, INT32, INT64, DOUBLE, UINT8 = (TensorProto.BOOL, TensorProto.INT32, TensorProto.INT64, TensorProto.DOUBLE,
                                     TensorProto.UINT8)


def floats(*shape, seed=1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def numbers(*shape, seed=1, kind=np.int64) -> np.ndarray:
    return np.random.default_rng(seed).integers(0 if kind == np.uint8 else -9, 9, shape).astype(kind)


def elementwise(op: str, *arrays, out=FLOAT, opset=17, **attributes):
    """The op on these arrays as inputs, and the arrays."""
    names = "abcd"[:len(arrays)]
    kinds = {np.float32: FLOAT, np.int64: INT64, np.int32: INT32, np.bool_: BOOL, np.float64: DOUBLE, np.uint8: UINT8}
    inputs = [value(name, list(array.shape), kinds[array.dtype.type]) for name, array in zip(names, arrays)]
    made = model([node(op, list(names), "y", **attributes)], inputs, [value("y", None, out)], opset=opset)
    return made, dict(zip(names, arrays))


def chain(length: int):
    nodes = [node("Add" if i % 2 else "Mul", f"t{i} w{i % 3}", f"t{i + 1}") for i in range(length)]
    return model(nodes, [value("t0", [2, 5])], [value(f"t{length}", [2, 5])],
                 [constant(f"w{i}", np.full(5, 0.9 + i / 10, np.float32)) for i in range(3)])


def alternating(length: int):
    """A chain that nothing fuses or folds as a whole."""
    nodes = [node(["Transpose", "Relu", "Softmax", "Sin"][i % 4], f"t{i}", f"t{i + 1}") for i in range(length)]
    return model(nodes, [value("t0", [3, 3])], [value(f"t{length}", [3, 3])])


def fan(width: int):
    nodes = [node("Mul", "x w", f"m{i}") if i % 2 else node("Exp", "x", f"m{i}") for i in range(width)]
    return model([*nodes, node("Sum", [f"m{i}" for i in range(width)], "y")], [value("x", [4])], [value("y", [4])],
                 [constant("w", np.arange(4, dtype=np.float32))])


def many(op: str, count: int, **attributes):
    """One op on many inputs, and what follows."""
    names = [f"x{i}" for i in range(count)]
    return model([node(op, names, "t", **attributes), node("Relu", "t", "y")], [value(name, [1, 3]) for name in names],
                 [value("y", None)]), {name: floats(1, 3, seed=i) for i, name in enumerate(names)}


def dense(layers: int):
    """Every convolution reads all results before it, side by side."""
    nodes, weights, before = [], [], ["x"]
    for i in range(layers):
        weights.append(constant(f"w{i}", 0.1 * floats(4, 4 * (i + 1), 3, 3, seed=i)))
        nodes += [node("Concat", list(before), f"c{i}", axis=1), node("Conv", f"c{i} w{i}", f"v{i}", pads=[1] * 4),
                  node("Relu", f"v{i}", f"r{i}")]
        before.append(f"r{i}")
    nodes.append(node("Concat", before, "y", axis=1))
    return model(nodes, [value("x", [1, 4, 6, 6])], [value("y", None)], weights), {"x": floats(1, 4, 6, 6)}


def initializer_inputs(ir: int = 3):
    """As it had to be before version 4 of the format: every initializer is an input, too."""
    return model([node("Gemm", "x w b", "y")], [value("x", [2, 4]), value("w", [4, 3]), value("b", [3])],
                 [value("y", [2, 3])], [constant("w", floats(4, 3)), constant("b", floats(3))], opset=9, ir=ir)


def typed_constants():
    """Elements in the typed fields instead of raw bytes."""
    whole = helper.make_tensor("n", INT64, [3], [1, -2, 3])
    real = helper.make_tensor("f", FLOAT, [3], [0.5, -1.5, 2.5])
    return model([node("Cast", "n", "c", to=FLOAT), node("Mul", "c f", "p"), node("Add", "x p", "y")],
                 [value("x", [3])], [value("y", [3])], [whole, real])


X = {"x": floats(2, 3)}
CASES = {
    "concat of 13": many("Concat", 13, axis=1),
    "concat of 150": many("Concat", 150, axis=0),
    "sum of 40": many("Sum", 40),
    "max of 14": many("Max", 14),
    "densely connected": dense(14),
    "identity alone": (model([node("Identity", "x", "y")], [value("x", [2, 3])], [value("y", [2, 3])]), X),
    "two identities": (model([node("Identity", "x", "t"), node("Identity", "t", "y")], [value("x", [2, 3])],
                             [value("y", [2, 3])]), X),
    "an output is an input": (model([node("Relu", "x", "y")], [value("x", [2, 3])],
                                    [value("x", [2, 3]), value("y", [2, 3])]), X),
    "an output is an initializer": (model([node("Add", "x w", "y")], [value("x", [2, 3])],
                                          [value("w", [3]), value("y", [2, 3])], [constant("w", floats(3))]), X),
    "an output is folded": (model([node("Add", "w w", "y"), node("Relu", "x", "z")], [value("x", [2, 3])],
                                  [value("y", [3]), value("z", [2, 3])], [constant("w", floats(3))]), X),
    "one value returned twice": (model([node("Relu", "x", "t"), node("Identity", "t", "y"), node("Identity", "t", "z")],
                                       [value("x", [2, 3])], [value(name, [2, 3]) for name in "tyz"]), X),
    "unused input": (model([node("Relu", "x", "y")], [value("u", [7]), value("x", [2, 3])], [value("y", [2, 3])]),
                     {**X, "u": floats(7)}),
    "unused node": (model([node("Relu", "x", "y"), node("Exp", "x", "dead")],
                          [value("x", [2, 3])], [value("y", [2, 3])]), X),
    "out of order": (model([node("Relu", "t", "y"), node("Exp", "x", "t")], [value("x", [2, 3])],
                           [value("y", [2, 3])]), X),
    "same operand twice": (model([node("Mul", "x x", "t"), node("MatMul", "t t", "y")], [value("x", [3, 3])],
                                 [value("y", [3, 3])]), {"x": floats(3, 3)}),
    "odd names": (model([node("Add", ["the input/0:x", "größe ✓"], ["t\u3000="], name="a b/c"),
                         node("Relu", ["t\u3000="], ["out put"], name="ü=")],
                        [value("the input/0:x", [2]), value("größe ✓", [2])], [value("out put", [2])]),
                  {"the input/0:x": floats(2), "größe ✓": floats(2, seed=2)}),
    "no names": (model([node("Exp", "x", "t"), node("Neg", "t", "y")], [value("x", [2, 3])], [value("y", [2, 3])]), X),
    "operand left out": (model([node("Clip", ["x", "", "most"], "y")], [value("x", [2, 3])], [value("y", [2, 3])],
                               [constant("most", np.float32(0.3))]), X),
    "trailing operand left out": (model([node("Clip", ["x", "least", ""], "y")], [value("x", [2, 3])],
                                        [value("y", [2, 3])], [constant("least", np.float32(0.1))]), X),
    "result left out": (model([node("LSTM", "x w r", ["", "h"], hidden_size=4)], [value("x", [5, 2, 3])],
                              [value("h", None)], [constant("w", floats(1, 16, 3)), constant("r", floats(1, 16, 4))]),
                        {"x": floats(5, 2, 3)}),
    "initializers are inputs": (initializer_inputs(), {"x": floats(2, 4)}),
    "initializer overridden": (initializer_inputs(8), {"x": floats(2, 4), "b": floats(3, seed=9)}),
    "typed constants": (typed_constants(), {"x": floats(3)}),
    "op set 7": (model([node("BatchNormalization", "x s b m v", "y", epsilon=0.1)], [value("x", [2, 3, 4])],
                       [value("y", [2, 3, 4])],
                       [constant(n, np.abs(floats(3, seed=i))) for i, n in enumerate("sbmv")], opset=7),
                 {"x": floats(2, 3, 4)}),
    "scalar": elementwise("Exp", np.array(0.5, np.float32)),
    "scalar and tensor": elementwise("Mul", np.array(2.5, np.float32), floats(2, 3)),
    "scalar product": elementwise("MatMul", floats(4), floats(4, seed=2)),
    "matrix and vector": elementwise("MatMul", floats(2, 3, 4), floats(4)),
    "one element": elementwise("Softmax", floats(1, 1)),
    "reduced to a scalar": elementwise("ReduceSum", floats(2, 3), keepdims=0),
    "rank 6": elementwise("Add", floats(2, 1, 3, 1, 2, 2), floats(1, 2, 1, 3, 2, 1)),
    "rank 7": elementwise("Transpose", floats(2, 1, 3, 1, 2, 2, 2), perm=[6, 0, 5, 1, 4, 2, 3]),
    "rank 8": elementwise("ReduceMax", floats(2, 1, 2, 1, 2, 2, 1, 2), axes=[0, 3, 7]),
    "no elements": elementwise("Relu", floats(0, 3)),
    "no elements broadcast": elementwise("Add", floats(0, 3), floats(1, 3)),
    "no elements summed": elementwise("ReduceSum", floats(2, 0), keepdims=0),
    "no inner elements": elementwise("MatMul", floats(2, 0), floats(0, 3)),
    "no rows": elementwise("MatMul", floats(0, 4), floats(4, 3)),
    "nothing joined": elementwise("Concat", floats(2, 0), floats(2, 3), axis=1),
    "infinities": elementwise("Mul", np.array([np.inf, -np.inf, np.nan, 0], np.float32),
                              np.array([0, 2, 1, -1], np.float32)),
    "maximum of not-a-number": elementwise("Max", np.array([np.nan, 1, -0.0], np.float32),
                                           np.array([1, np.nan, 0], np.float32)),
    "int64 sum": elementwise("Add", numbers(3, 4) * 2**40, numbers(3, 4, seed=2), out=INT64),
    "int64 product": elementwise("Mul", numbers(3, 4) * 2**33 + 1, numbers(4, seed=2), out=INT64),
    "int64 quotient": elementwise("Div", numbers(3, 4), np.array([1, -2, 3, -4]), out=INT64),
    "int64 remainder": elementwise("Mod", numbers(3, 4), np.array([2, -3, 5, -4]), out=INT64),
    "int64 matrix product": elementwise("MatMul", numbers(2, 3, kind=np.int32), numbers(3, 4, kind=np.int32),
                                        out=INT32),
    "int32 wraps around": elementwise("Add", np.array([2**31 - 1], np.int32), np.array([1], np.int32), out=INT32),
    "int64 sums up": elementwise("ReduceSum", numbers(3, 4) * 2**40, out=INT64),
    "uint8 sum": elementwise("Add", numbers(9, kind=np.uint8), numbers(9, seed=2, kind=np.uint8), out=UINT8, opset=17),
    "bool and": elementwise("And", numbers(9) > 0, numbers(9, seed=2) > 0, out=BOOL),
    "bool not": elementwise("Not", numbers(9) > 0, out=BOOL),
    "bool xor": elementwise("Xor", numbers(3, 1) > 0, numbers(3, seed=2) > 0, out=BOOL),
    "comparison": elementwise("Less", floats(3, 3), floats(3, seed=2), out=BOOL),
    "where": elementwise("Where", numbers(3, 3) > 0, floats(3), floats(3, 1, seed=2)),
    "doubles": elementwise("Exp", np.linspace(-3, 3, 7), out=DOUBLE),
    "double matrix product": elementwise("MatMul", floats(3, 4).astype(np.float64), floats(4, 5).astype(np.float64),
                                         out=DOUBLE),
    "double softmax": elementwise("Softmax", floats(3, 4).astype(np.float64), out=DOUBLE),
    "first of many, as many as a run says": (
        model([node("TopK", "x k", "v i"), node("Relu", "v", "y")], [value("x", [2, 5]), value("k", [1], INT64)],
              [value("y", None), value("i", None, INT64)]), {"x": floats(2, 5), "k": np.array([3])}),
    "places that a run says": (
        model([node("RoiAlign", "x r b", "y", output_height=2, output_width=2)],
              [value("x", [2, 1, 5, 5]), value("r", [2, 4]), value("b", [2], INT64)], [value("y", None)]),
        {"x": floats(2, 1, 5, 5), "r": np.array([[0, 0, 3, 3], [1, 1, 4, 2]], np.float32), "b": np.array([1, 0])}),
    "shape of": (model([node("Shape", "x", "s"), node("Size", "x", "n")], [value("x", [2, 3])],
                       [value("s", [2], INT64), value("n", [], INT64)]), X),
    "a constant of a shape that the run tells": (
        model([node("Reshape", "c s", "r"), node("Add", "r d", "y")], [value("s", [1], INT64)], [value("y", None, INT64)],
              [constant("c", np.array([2, 3, 4, 5])), constant("d", np.array([10, 20, 30, 40]))]), {"s": np.array([4])}),
    "int32 of more than 32 bits": (
        model([node("Cast", "c", "n", to=INT32), node("Equal", "n five", "e"), node("And", "e x", "y")],
              [value("x", [1], BOOL)], [value("y", [1], BOOL)],
              [constant("c", np.array([2**32 + 5])), constant("five", np.array([5], np.int32))]), {"x": np.array([True])}),
    "turned round, and empty": (
        model([node("NonZero", "x", "n"), node("Slice", "n from to axis step", "y")], [value("x", [4])],
              [value("y", None, INT64)],
              [constant("from", np.array([-1])), constant("to", np.array([1 - 2**63])), constant("axis", np.array([1])),
               constant("step", np.array([-1]))]), {"x": np.zeros(4, np.float32)}),
    "a slice from in front of the first": (
        model([node("Slice", "x from to axis step", "t"), node("Relu", "t", "y")], [value("x", [5])], [value("y", None)],
              [constant("from", np.array([-100])), constant("to", np.array([-200])), constant("axis", np.array([0])),
               constant("step", np.array([-1]))]), {"x": np.arange(1, 6, dtype=np.float32)}),
    "a scale that widens": (
        model([node("Mul", "q s", "a"), node("MatMul", "a k", "b"), node("Softmax", "b", "c"), node("MatMul", "c v", "y")],
              [value("q", [1, 4, 8, 16]), value("k", [1, 4, 16, 8]), value("v", [1, 4, 8, 16])], [value("y", None)],
              [constant("s", np.full((2, 1, 1, 1), 0.125, np.float32))]),
        {"q": floats(1, 4, 8, 16), "k": floats(1, 4, 16, 8, seed=2), "v": floats(1, 4, 8, 16, seed=3)}),
    "resized half an element further": (
        model([node("Resize", "x roi scales", "y", mode="nearest", nearest_mode="floor",
                    coordinate_transformation_mode="tf_half_pixel_for_nn")], [value("x", [1, 1, 4, 4])],
              [value("y", None)], [constant("roi", np.zeros(0, np.float32)),
                                   constant("scales", np.array([1, 1, 2, 1.5], np.float32))], opset=11),
        {"x": floats(1, 1, 4, 4)}),
    "resized to one": (
        model([node("Resize", ["x", "", "", "n"], "y", mode="linear", coordinate_transformation_mode="pytorch_half_pixel")],
              [value("x", [1, 1, 1, 49])], [value("y", None)], [constant("n", np.array([1, 1, 1, 1]))]),
        {"x": floats(1, 1, 1, 49)}),
    "remainders of large floats": elementwise("Mod", np.full(17, 1e20, np.float32), np.full(17, 3, np.float32), fmod=1),
    "padded with the largest integer": (
        model([node("Pad", "x p w", "y")], [value("x", [4], INT64)], [value("y", None, INT64)],
              [constant("p", np.array([1, 1])), constant("w", np.int64(2**63 - 1))]), {"x": np.arange(4)}),
    "batches of one in the middle": (
        model([node("Transpose", "x", "t", perm=[1, 2, 0, 3]), node("MatMul", "t w", "p"), node("Add", "p b", "y")],
              [value("x", [3, 2, 1, 8]), value("b", [2, 1, 1, 16])], [value("y", None)], [constant("w", floats(8, 16))]),
        {"x": floats(3, 2, 1, 8, seed=2), "b": floats(2, 1, 1, 16, seed=3)}),
    "2000 ops that may fuse": (chain(2000), {"t0": floats(2, 5)}),
    "2000 ops in a row": (alternating(2000), {"t0": floats(3, 3)}),
    "300 consumers": (fan(300), {"x": floats(4)}),
}


@pytest.mark.parametrize("made, inputs", CASES.values(), ids=CASES)
def test_odd_model(dovetail, made, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    truth = dict(zip((output.name for output in session.get_outputs()), session.run(None, inputs)))
    arguments = []
    for i, (name, array) in enumerate(inputs.items()):
        np.save(dovetail.folder / f"i{i}.npy", array)
        arguments += ["--input", f"{name}=i{i}.npy"]
    path = dovetail.write("odd.onnx", made)
    done = dovetail("run", path, ESTIMATE, *arguments, "--output", "out.npz")
    assert done.stderr == ""
    found = read(dovetail.folder / "out.npz")
    assert set(found) == set(truth)
    for name, expected in truth.items():
        assert found[name].dtype == np.asarray(expected).dtype and found[name].shape == np.shape(expected), name
        if found[name].dtype.kind == "f":
            np.testing.assert_allclose(found[name], expected, rtol=1e-4, atol=1e-5, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], expected, err_msg=name)


def read(path) -> dict:
    """np.load gives names that hold a '/' as they are, and others without .npy."""
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


@pytest.mark.parametrize("name", ["an output is an input", "one value returned twice", "no elements", "scalar",
                                  "initializers are inputs", "odd names", "int64 sum", "2000 ops in a row"])
def test_odd_artifact(dovetail, name):
    """Compiled and loaded again, the same."""
    made, inputs = CASES[name]
    path = dovetail.write("odd.onnx", made)
    arguments = []
    for i, (given, array) in enumerate(inputs.items()):
        np.save(dovetail.folder / f"i{i}.npy", array)
        arguments += ["--input", f"{given}=i{i}.npy"]
    dovetail("compile", path, ESTIMATE, "-o", "odd.dvt")
    dovetail("run", path, ESTIMATE, *arguments, "--output", "direct.npz")
    dovetail("run", "odd.dvt", *arguments, "--output", "loaded.npz")
    direct, loaded = read(dovetail.folder / "direct.npz"), read(dovetail.folder / "loaded.npz")
    assert set(direct) == set(loaded)
    for output, array in direct.items():
        np.testing.assert_array_equal(array, loaded[output])


def test_noise_is_no_input_of_every_model(dovetail):
    """Whole plans are timed with noise; where it is refused, they are not timed."""
    divided, given = elementwise("Div", numbers(16), np.arange(1, 17), out=INT64)
    path = dovetail.write("divided.onnx", divided)
    np.savez(dovetail.folder / "in.npz", **given)
    dovetail("compile", path, "--select=measure", "--budget=2", "--cache=here", "-o", "divided.dvt")
    dovetail("run", "divided.dvt", "--inputs=in.npz", "--output=out.npz")
    wanted, = onnxruntime.InferenceSession(divided.SerializeToString()).run(None, given)
    np.testing.assert_array_equal(np.load(dovetail.folder / "out.npz")["y"], wanted)


def test_infinities_stay_when_resized(dovetail):
    made = model([node("Resize", ["x", "", "", "n"], "y", mode="linear")], [value("x", [1, 16, 4, 6])],
                 [value("y", [1, 16, 7, 15])], [constant("n", np.array([1, 16, 7, 15]))])
    path = dovetail.write("resize.onnx", made)
    np.save(dovetail.folder / "x.npy", np.full((1, 16, 4, 6), -np.inf, np.float32))
    dovetail("run", path, ESTIMATE, "--input", "x=x.npy", "--output", "out.npz")
    assert np.all(read(dovetail.folder / "out.npz")["y"] == -np.inf)
