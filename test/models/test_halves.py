# SPDX-License-Identifier: Apache-2.0
"""A small network in f32, f16 and bf16: the 16-bit twins are held to the f32 one, in every mode.

onnxruntime has no bf16 on CPUs, so what all are compared with is its f32 answer for weights and inputs that were
rounded before. The reference provider rounds after each op; own kernels and libraries after several.
"""
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import check
from check import from_bfloat, to_bfloat
from test_models import MODES, binary, planning  # noqa: F401 (fixtures)

TYPES = {"f16": (TensorProto.FLOAT16, 2e-3), "bf16": (TensorProto.BFLOAT16, 2e-2)}


def rounded(x: np.ndarray, kind: str) -> np.ndarray:
    return x.astype(np.float16).astype(np.float32) if kind == "f16" else from_bfloat(to_bfloat(x))


def tensor(name: str, x: np.ndarray, kind: str) -> onnx.TensorProto:
    if kind == "bf16":
        return helper.make_tensor(name, TensorProto.BFLOAT16, x.shape, to_bfloat(x).tobytes(), raw=True)
    return numpy_helper.from_array(x.astype(np.float16 if kind == "f16" else np.float32), name)


def network(kind: str, rounding: str) -> tuple[onnx.ModelProto, dict]:
    """The network in `kind`, with weights and inputs that `rounding` holds exactly."""
    rng = np.random.default_rng(5)

    def noise(*shape, scale=1.0):
        return rounded((rng.standard_normal(shape) * scale).astype(np.float32), rounding)

    element = TYPES[kind][0] if kind in TYPES else TensorProto.FLOAT
    weights = {
        "w1": noise(24, 3, 3, 3, scale=0.2), "b1": noise(24), "w2": noise(24, 1, 5, 5, scale=0.2),
        "w3": noise(40, 24, 1, 1, scale=0.2), "b3": noise(40), "g": noise(40), "h": noise(40),
        "m": noise(40, 33, scale=0.2), "c": noise(33),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MaxPool", ["b"], ["c1"], kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2]),
        helper.make_node("Conv", ["c1", "w2"], ["d"], kernel_shape=[5, 5], pads=[2] * 4, group=24),
        helper.make_node("Sigmoid", ["d"], ["e"]),
        helper.make_node("Mul", ["d", "e"], ["f"]),
        helper.make_node("Conv", ["f", "w3", "b3"], ["k"], kernel_shape=[1, 1]),
        helper.make_node("Reshape", ["k", "rows"], ["l"]),
        helper.make_node("Transpose", ["l"], ["n"], perm=[0, 2, 1]),
        helper.make_node("LayerNormalization", ["n", "g", "h"], ["o"], axis=-1),
        helper.make_node("MatMul", ["o", "m"], ["p"]),
        helper.make_node("Add", ["p", "c"], ["q"]),
        helper.make_node("Softmax", ["q"], ["y"], axis=-1),
    ]
    initializers = [tensor(name, x, kind) for name, x in weights.items()]
    initializers.append(numpy_helper.from_array(np.array([2, 40, 64], np.int64), "rows"))
    graph = helper.make_graph(
        nodes, "halves", [helper.make_tensor_value_info("x", element, [2, 3, 32, 32])],
        [helper.make_tensor_value_info(name, element, [2, 64, 33]) for name in ("y", "q")],
        initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    return model, {"x": noise(2, 3, 32, 32)}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", TYPES)
def test_twins(binary, planning, tmp_path, kind, mode):  # noqa: F811
    twin, inputs = network("f32", kind)
    truth = ort.InferenceSession(twin.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, inputs)
    model, _ = network(kind, kind)
    onnx.checker.check_model(model)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    given = {"x": inputs["x"].astype(np.float16) if kind == "f16" else to_bfloat(inputs["x"])}
    found = check.run(binary, path, given, *planning, *MODES[mode])
    for name, wanted in zip(("y", "q"), truth):
        got = found[name]
        got = from_bfloat(got) if kind == "bf16" else got.astype(np.float32)
        error = np.abs(got - wanted).max() / np.abs(wanted).max()
        assert error <= TYPES[kind][1], f"{name} differs by {error:.3g} of the largest magnitude"
