# SPDX-License-Identifier: Apache-2.0
#
# ONNX's own node tests as problems of the plug-in door. onnx builds its test cases in memory: a model
# of (mostly) one node with inputs and expected outputs. cases() yields them as Case objects; a model of
# several nodes becomes a problem of several ops. What cannot be a problem (strings, sequences, control
# flow, element types outside the door) is yielded as a refusal with its reason.
import re
import warnings
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx import AttributeProto, TensorProto, defs, helper, numpy_helper

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from onnx.backend.test.loader import load_model_tests

TYPES = {
    TensorProto.FLOAT: "f32", TensorProto.UINT8: "u8", TensorProto.INT8: "i8",
    TensorProto.UINT16: "u16", TensorProto.INT16: "i16", TensorProto.INT32: "i32",
    TensorProto.INT64: "i64", TensorProto.BOOL: "bool", TensorProto.FLOAT16: "f16",
    TensorProto.DOUBLE: "f64", TensorProto.UINT32: "u32", TensorProto.UINT64: "u64",
    TensorProto.BFLOAT16: "bf16", TensorProto.UINT4: "u4", TensorProto.INT4: "i4",
}


RANDOM_OPS = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
              "RandomUniformLike"}


class Refusal(Exception):
    """Why a model is no problem of the door."""


@dataclass
class Case:
    name: str
    problem: str = ""
    inputs: list = field(default_factory=list)    # (type name, extents, bytes)
    outputs: list = field(default_factory=list)   # (type name, array)
    rtol: float = 1e-3
    atol: float = 1e-7
    random: bool = False                          # only the extents of results can be compared
    refusal: str = ""


def snake_case(name):
    """Conv -> conv, MatMul -> mat_mul, PRelu -> p_relu, GatherND -> gather_nd."""
    if name == "IsNaN":
        return "is_nan"
    name = re.sub(r"([A-Z])([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def packed_bytes(array, type_name):
    """Bytes of a row-major array; 4-bit elements two to a byte, low nibble first."""
    if type_name not in ("i4", "u4"):
        return np.ascontiguousarray(array).tobytes()
    nibbles = np.asarray(array).astype(np.int8).reshape(-1).view(np.uint8) & 15
    if len(nibbles) % 2:
        nibbles = np.append(nibbles, 0).astype(np.uint8)
    return (nibbles[0::2] | nibbles[1::2] << 4).astype(np.uint8).tobytes()


def float_text(value):
    value = float(np.float32(value))
    if np.isnan(value) or np.isinf(value):
        return str(value)
    text = repr(value)
    return text if any(c in text for c in ".e") else text + ".0"


def attribute_text(attribute):
    kind = attribute.type
    if kind == AttributeProto.INT:
        return str(attribute.i)
    if kind == AttributeProto.FLOAT:
        return float_text(attribute.f)
    if kind == AttributeProto.STRING:
        return '"' + attribute.s.decode().replace("\\", "\\\\").replace('"', '\\"') + '"'
    if kind == AttributeProto.INTS:
        return "[" + ",".join(map(str, attribute.ints)) + "]"
    if kind == AttributeProto.FLOATS:
        return "[" + ",".join(map(float_text, attribute.floats)) + ("]" if attribute.floats else "]f")
    if kind == AttributeProto.STRINGS:
        return '"' + ",".join(s.decode() for s in attribute.strings) + '"'
    if kind == AttributeProto.TENSOR and attribute.name == "value":
        # The one element of constant_of_shape.
        array = numpy_helper.to_array(attribute.t).reshape(-1)
        integral = np.issubdtype(array.dtype, np.integer) or array.dtype == np.bool_
        return str(int(array[0])) if integral else float_text(array[0])
    raise Refusal(f"attribute {attribute.name} of kind {AttributeProto.AttributeType.Name(kind)}")


def element_text(value, type_name):
    if type_name == "bool":
        return "1" if value else "0"
    if type_name.startswith(("i", "u")):
        return str(int(value))
    return repr(float(value)) if type_name == "f64" else float_text(value)


def op_text(node, opset, schema, types, numbers, symbols):
    attributes = {a.name: attribute_text(a) for a in node.attribute}
    for name, declared in schema.attributes.items():
        if name not in attributes and declared.default_value.name:
            attributes[name] = attribute_text(declared.default_value)
    results = []
    for name in node.output:
        if not name:
            results.append("_")
            continue
        numbers[name] = len(numbers)
        type_name, rank = types[name]
        extents = []
        for _ in range(rank):
            extents.append(f"s{len(symbols)}")
            symbols.append(extents[-1])
        results.append(f"%{numbers[name]}: {type_name}[{','.join(extents)}]")
    operands = ["_" if not name else f"%{numbers[name]}" for name in node.input]
    text = f"{', '.join(results)} = {snake_case(node.op_type)}@{schema.since_version}({', '.join(operands)})"
    if attributes:
        text += " {" + ", ".join(f"{k}={v}" for k, v in sorted(attributes.items())) + "}"
    return text


def as_array(value):
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, (list, dict)) or value is None:
        raise Refusal("sequences, maps and optionals")
    return np.asarray(value)


def constant_of(node):
    """Element type and array of a Constant node."""
    attribute = node.attribute[0]
    if attribute.type == AttributeProto.TENSOR:
        return attribute.t.data_type, numpy_helper.to_array(attribute.t)
    value = helper.get_attribute_value(attribute)
    if attribute.name in ("value_int", "value_ints"):
        return TensorProto.INT64, np.asarray(value, np.int64)
    if attribute.name in ("value_float", "value_floats"):
        return TensorProto.FLOAT, np.asarray(value, np.float32)
    raise Refusal(f"Constant with {attribute.name}")


def add_evaluated_types(model, values, types):
    """Types and ranks that shape inference does not find, from a run of onnx's own evaluator."""
    feeds = {info.name: values[info.name][1] for info in model.graph.input}
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            results = ReferenceEvaluator(model).run(None, feeds, intermediate=True)
    except Exception as reason:  # the evaluator may fail in any way
        raise Refusal(f"no types of intermediate values: {reason}") from reason
    for name, array in results.items():
        if isinstance(array, (np.ndarray, np.generic)) and array.dtype != object:
            element = helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)
            if element in TYPES:
                types.setdefault(name, (TYPES[element], np.ndim(array)))


def problem_of(model, inputs, outputs, literals):
    """Problem text and the operands that are left to hand over."""
    graph = model.graph
    opset = {o.domain or "": o.version for o in model.opset_import}
    values = {}
    for info, array in zip(graph.input, inputs):
        if not info.type.HasField("tensor_type"):
            raise Refusal(f"operand of kind {info.type.WhichOneof('value')}")
        values[info.name] = (info.type.tensor_type.elem_type, as_array(array))
    for tensor in graph.initializer:
        values[tensor.name] = (tensor.data_type, numpy_helper.to_array(tensor))
    constants = set()
    for node in graph.node:
        if node.op_type == "Constant":
            values[node.output[0]] = constant_of(node)
            constants.add(node.output[0])
    types, numbers, symbols, declared, operands = {}, {}, [], [], []
    for name, (element, array) in values.items():
        if element not in TYPES:
            raise Refusal(f"element type {TensorProto.DataType.Name(element)}")
        types[name] = (TYPES[element], array.ndim)
    for info, array in zip(graph.output, outputs):
        if not info.type.HasField("tensor_type"):
            raise Refusal(f"result of kind {info.type.WhichOneof('value')}")
        element = info.type.tensor_type.elem_type
        if element not in TYPES:
            raise Refusal(f"element type {TensorProto.DataType.Name(element)}")
        types[info.name] = (TYPES[element], as_array(array).ndim)
    for info in onnx.shape_inference.infer_shapes(model, data_prop=True).graph.value_info:
        tensor = info.type.tensor_type
        if tensor.elem_type in TYPES and tensor.HasField("shape"):
            types.setdefault(info.name, (TYPES[tensor.elem_type], len(tensor.shape.dim)))
    if any(name and name not in types for node in graph.node for name in node.output):
        add_evaluated_types(model, values, types)

    first = graph.node[0].input[0] if graph.node and graph.node[0].input else ""
    is_literal = {name: name in constants or
                  (literals and name != first and types[name][0] in ("i64", "i32") and
                   0 < array.size <= 64) for name, (_, array) in values.items()}
    for name in sorted(values, key=lambda n: is_literal[n]):
        array, type_name = values[name][1], types[name][0]
        numbers[name] = len(numbers)
        extents = ",".join(map(str, array.shape))
        text = f"%{numbers[name]}: {type_name}[{extents}]"
        if is_literal[name]:
            text += " {" + ",".join(element_text(v, type_name) for v in array.reshape(-1)) + "}"
        else:
            operands.append((type_name, array.shape, packed_bytes(array, type_name)))
        declared.append(text)
    ops = []
    for node in graph.node:
        if node.op_type == "Constant":
            continue
        if node.domain not in ("", "ai.onnx"):
            raise Refusal(f"domain {node.domain}")
        for name in node.output:
            if name and name not in types:
                raise Refusal(f"type of {name} is not known")
        schema = defs.get_schema(node.op_type, opset.get("", 1), "")
        ops.append(op_text(node, opset, schema, types, numbers, symbols))
    if not ops:
        raise Refusal("no op but Constant")
    text = f"problem({', '.join(declared)}) {'; '.join(ops)} return("
    text += ", ".join(f"%{numbers[info.name]}" for info in graph.output) + ")"
    if symbols:
        text += " where " + ", ".join(f"{s} in 0..1000000000" for s in sorted(symbols))
    return text, operands


def cases(literals=False, single=True):
    """All node tests; `literals` makes operands of a few integers literals of the problem."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="node")
    for test in tests:
        if single and len(test.model.graph.node) != 1:
            continue
        for i, (inputs, outputs) in enumerate(test.data_sets):
            case = Case(f"{test.name}_{i}" if len(test.data_sets) > 1 else test.name,
                        rtol=test.rtol, atol=test.atol)
            case.random = (any(n.op_type in RANDOM_OPS for n in test.model.graph.node) or
                           test.name.startswith("test_training_dropout"))
            try:
                case.problem, case.inputs = problem_of(test.model, inputs, outputs, literals)
                case.outputs = [(TYPES[info.type.tensor_type.elem_type], as_array(array))
                                for info, array in zip(test.model.graph.output, outputs)]
            except Refusal as reason:
                case.refusal = str(reason)
            yield case
