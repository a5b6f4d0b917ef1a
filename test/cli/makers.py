# SPDX-License-Identifier: Apache-2.0
"""Small ONNX models for the tests of the command line, made by hand where onnx.helper would refuse to."""
import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def value(name: str, shape: list | None, element: int = FLOAT):
    return helper.make_tensor_value_info(name, element, shape)


def untyped(names: str) -> list:
    """Outputs of which nothing is declared."""
    return [ValueInfoProto(name=name) for name in names.split()]


def of_arrays(names, arrays, extents=None) -> list:
    """Inputs of these arrays' types, with their extents or the given ones."""
    return [value(name, list(array.shape) if extents is None else extents[at],
                  helper.np_dtype_to_tensor_dtype(array.dtype)) for at, (name, array) in enumerate(zip(names, arrays))]


def constant(name: str, array) -> TensorProto:
    return numpy_helper.from_array(np.asarray(array), name)


def node(op: str, inputs, outputs, **attributes) -> NodeProto:
    return helper.make_node(op, inputs.split() if isinstance(inputs, str) else inputs,
                            outputs.split() if isinstance(outputs, str) else outputs, **attributes)


def graph(nodes, inputs, outputs, constants=()) -> GraphProto:
    return helper.make_graph(nodes, "g", inputs, outputs, list(constants))


def model(nodes, inputs, outputs, constants=(), opset: int = 17, ir: int = 8, domains=()) -> ModelProto:
    sets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph(nodes, inputs, outputs, constants), opset_imports=sets, ir_version=ir)


def unary(op: str = "Relu", shape=(2, 3), element: int = FLOAT, opset: int = 17, **attributes) -> ModelProto:
    """x -> op -> y"""
    return model([node(op, "x", "y", name="the_node", **attributes)], [value("x", shape, element)],
                 [value("y", None, element)], opset=opset)


def tiny() -> ModelProto:
    """y = relu(a w) + b: two inputs, one constant, two nodes that `--force` can name."""
    weights = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    return model([node("MatMul", "a w", "t", name="product"), node("Relu", "t", "u", name="positive"),
                  node("Add", "u b", "y", name="sum")],
                 [value("a", [2, 4]), value("b", [2, 3])], [value("y", [2, 3])], [constant("w", weights)])


def product(rows: int, depth: int, columns: int) -> ModelProto:
    """A product with constant weights."""
    weights = np.linspace(-1, 1, depth * columns, dtype=np.float32).reshape(depth, columns)
    return model([node("MatMul", ["x", "w"], ["y"], name="product")], [value("x", [rows, depth])],
                 [value("y", [rows, columns])], [constant("w", weights)])


def free() -> ModelProto:
    """y = relu(x) with two free extents."""
    return model([node("Relu", "x", "y", name="positive")], [value("x", ["N", "M"])], [value("y", ["N", "M"])])


def external(location: str, offset: str | None = "0", length: str | None = "48") -> ModelProto:
    """tiny(), with the 48 bytes of its weights in another file."""
    made = tiny()
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in (("location", location), ("offset", offset), ("length", length)):
        if text is not None:
            entry = tensor.external_data.add()
            entry.key, entry.value = key, text
    return made
