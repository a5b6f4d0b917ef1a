# SPDX-License-Identifier: Apache-2.0
"""Runs a model through the command line and compares with onnxruntime without optimisations.

The bound is 1e-4 of the largest magnitude of an output (1e-2 where a model computes in f16, 2e-2 in bf16), or three
times what onnxruntime differs from itself with all optimisations on, where that is more. Quantised models are held to a
cosine of at least 0.99, or what onnxruntime's optimisations cost where that is more, and to the same largest element,
since fused kernels rightly round in other places than the graph says. Inputs are seeded; integer inputs stay small
enough to be valid indices. A model in bf16, of which onnxruntime has few kernels, is compared with its answer for the
model's twin in f32, whose weights and inputs are the same numbers. Arrays of bf16 are its bits, in u16.
"""
import dataclasses
import os
import pathlib
import subprocess
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from google.protobuf.message import Message
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import GraphOptimizationLevel as Level

# What may be lost by the element types of a model.
LEAST = {TensorProto.FLOAT16: 1e-2, TensorProto.BFLOAT16: 2e-2}
TYPE_ATTRIBUTES = {"to", "dtype", "output_dtype", "output_datatype", "softmax_precision", "stash_type"}

# What models leave open: the extents of an input, the extent of a named dimension, an input itself, or the end of an
# integer input's range where noise in {0, 1} says too little.
OPEN = {
    "mtcnn_pnet": {"input_1": (1, 96, 128, 3)}, "mtcnn_rnet": {"input_2": (8, 24, 24, 3)},
    "mtcnn_onet": {"input_3": (8, 48, 48, 3)}, "ppocr_cls": {"x": (1, 3, 48, 192)},
    "ppocrv4_rec": {"x": (1, 3, 48, 320)}, "ppocrv4_det": {"x": (1, 3, 320, 320)},
    "basic_pitch": {"serving_default_input_2:0": (1, 43844, 1)},
    "magika_v3_3": {"bytes": (1, 2048), "bytes below": 257},
    "silero_vad": {"input": (1, 512), "state": (2, 1, 128), "sr": np.array(16000, np.int64)},
    "minilm_l6_int8": {"batch": 1, "sequence": 128}, "bert_base_dyn": {"batch": 1, "seq": 128},
    **{f"llama_100m_{kind}": {"batch": 1, "seq": 1, "past": 128} for kind in ("dyn", "op23", "dyn_int4_qdq")},
}
QUANTISED = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger",
             "MatMulNBits", "QLinearConv", "QLinearMatMul"}


@dataclasses.dataclass
class Result:
    error: float
    bound: float
    output: str

    @property
    def right(self) -> bool:
        return self.error <= self.bound


def session(path: pathlib.Path, level) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 2
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def to_bfloat(x: np.ndarray) -> np.ndarray:
    """Bits of the nearest bf16."""
    bits = np.asarray(x, np.float32, order="C").view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bfloat(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def array_type(element: int) -> np.dtype:
    """That of arrays of an ONNX type."""
    return np.dtype(np.uint16) if element == TensorProto.BFLOAT16 else helper.tensor_dtype_to_np_dtype(element)


def narrow(array: np.ndarray, element: int) -> np.ndarray:
    return to_bfloat(array) if element == TensorProto.BFLOAT16 else array.astype(array_type(element))


def wide(array: np.ndarray, element: int) -> np.ndarray:
    """16-bit floats as f32; others as they are."""
    if element == TensorProto.BFLOAT16:
        return from_bfloat(array)
    return array.astype(np.float32) if element == TensorProto.FLOAT16 else array


def input_types(path: pathlib.Path) -> dict:
    """Element types and shapes of a model's inputs."""
    graph = onnx.load(path, load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}
    return {value.name: value.type.tensor_type for value in graph.input if value.name not in constants}


def make_inputs(path: pathlib.Path, given: dict, seed: int = 0) -> dict:
    """Seeded inputs, integers in {0, 1}. `given` is of the kind of OPEN's values."""
    rng = np.random.default_rng(seed)
    inputs = {}
    for name, kind in input_types(path).items():
        chosen = given.get(name, [extent.dim_param or (extent.dim_value if extent.HasField("dim_value") else "?")
                                  for extent in kind.shape.dim])
        if isinstance(chosen, np.ndarray):
            inputs[name] = chosen
            continue
        shape = [given.get(extent, extent) for extent in chosen]
        if unknown := [extent for extent in shape if isinstance(extent, str)]:
            raise ValueError(f"{path.name}: input '{name}' leaves {', '.join(unknown)} open; check.OPEN has no size")
        if kind.elem_type in LEAST or array_type(kind.elem_type).kind == "f":
            inputs[name] = narrow(rng.standard_normal(shape), kind.elem_type)
        else:
            inputs[name] = narrow(rng.integers(0, given.get(f"{name} below", 2), shape), kind.elem_type)
    return inputs


def cast_inputs(inputs: dict, path: pathlib.Path, other: pathlib.Path) -> dict:
    """A model's inputs as another takes them: by name, or else in the same order, with its element types."""
    types, others = input_types(path), input_types(other)
    if len(types) != len(others):
        raise ValueError(f"{path.name} has {len(types)} inputs, {other.name} {len(others)}")
    names = others if types.keys() == others.keys() else types
    return {name: narrow(wide(inputs[of], types[of].elem_type), kind.elem_type)
            for of, (name, kind) in zip(names, others.items())}


def is_quantised(model: onnx.ModelProto) -> bool:
    return any(node.op_type in QUANTISED for node in model.graph.node)


def least_bound(model: onnx.ModelProto) -> float:
    values = [value.type.tensor_type.elem_type for value in [*model.graph.input, *model.graph.output]]
    return max(LEAST.get(kind, 1e-4) for kind in values + [tensor.data_type for tensor in model.graph.initializer])


def widen(message: Message) -> None:
    """Makes a model, or a part of one, its twin in f32: no 16-bit floats, and the same numbers in constants."""
    if isinstance(message, TensorProto):
        if message.data_type in LEAST:
            values = numpy_helper.to_array(message).astype(np.float32)
            message.CopyFrom(numpy_helper.from_array(values, message.name))
        return
    if isinstance(message, onnx.TypeProto.Tensor) and message.elem_type in LEAST:
        message.elem_type = TensorProto.FLOAT
    if isinstance(message, onnx.AttributeProto) and message.name in TYPE_ATTRIBUTES and message.i in LEAST:
        message.i = TensorProto.FLOAT
    for field, value in message.ListFields():
        if field.message_type:
            for part in [value] if isinstance(value, Message) else value:
                widen(part)


def difference(truth: np.ndarray, found: np.ndarray) -> float:
    """Largest difference relative to the largest magnitude; infinite where shapes, types or NaNs differ."""
    if truth.shape != found.shape or truth.dtype != found.dtype:
        return float("inf")
    if truth.size == 0:
        return 0.0
    if not np.issubdtype(truth.dtype, np.floating):
        return 0.0 if np.array_equal(truth, found) else float("inf")
    a, b = truth.astype(np.float64), found.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return float("inf")
    a, b = np.nan_to_num(a), np.nan_to_num(b)
    return float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-30))


def unlikeness(truth: np.ndarray, found: np.ndarray) -> float:
    """One minus the cosine; infinite where shapes or types differ, or the largest element of a vector is another."""
    if truth.shape != found.shape or truth.dtype != found.dtype or not np.isfinite(found).all():
        return float("inf")
    a, b = truth.astype(np.float64).ravel(), found.astype(np.float64).ravel()
    if sum(extent > 1 for extent in truth.shape) <= 1 and a.size and a.argmax() != b.argmax():
        return float("inf")
    return float(1 - a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-30)) if a.any() or b.any() else 0.0


def onnxruntime_outputs(path: pathlib.Path, inputs: dict) -> list[dict]:
    """Those without optimisations, and those with all."""
    answers = []
    for level in (Level.ORT_DISABLE_ALL, Level.ORT_ENABLE_ALL):
        made = session(path, level)
        names = [value.name for value in made.get_outputs()]
        answers.append(dict(zip(names, made.run(names, inputs))))
    return answers


def bounds_for(model: onnx.ModelProto, truth: dict, other: dict) -> dict:
    """A measure and its bound by output. `other` differs from the truth by what may be lost without being wrong."""
    measure, least, times = (unlikeness, 1e-2, 1) if is_quantised(model) else (difference, least_bound(model), 3)
    finite = lambda value: value if np.isfinite(value) else 0
    return {name: (measure, max(least, times * finite(measure(truth[name], other[name])))) for name in truth}


def of_type(measure, element: int):
    """The same for a truth in f32 and outputs of this type."""
    return lambda truth, found: \
        measure(truth, wide(found, element)) if found.dtype == array_type(element) else float("inf")


def truth_and_bounds(path: pathlib.Path, inputs: dict):
    """Outputs by name, and how far others may be from them: a measure and its bound."""
    truth, optimised = onnxruntime_outputs(path, inputs)
    return truth, bounds_for(onnx.load(path, load_external_data=False), truth, optimised)


def widened_bounds(model: onnx.ModelProto, truth: dict, other: dict) -> dict:
    """Those of a model whose truth is in f32 where its outputs are 16-bit floats."""
    elements = {value.name: value.type.tensor_type.elem_type for value in model.graph.output}
    return {name: (of_type(measure, elements[name]), bound)
            for name, (measure, bound) in bounds_for(model, truth, other).items()}


def twin_truth_and_bounds(path: pathlib.Path, inputs: dict):
    """The same from onnxruntime's answers for the model's twin in f32. The bounds are those of the model's types."""
    model, twin, types = onnx.load(path, load_external_data=False), onnx.load(path), input_types(path)
    widen(twin)
    inputs = {name: wide(array, types[name].elem_type) for name, array in inputs.items()}
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(twin, pathlib.Path(folder, "twin.onnx"))
        truth, optimised = onnxruntime_outputs(pathlib.Path(folder, "twin.onnx"), inputs)
    return truth, widened_bounds(model, truth, optimised)


def reference_truth_and_bounds(binary: pathlib.Path, path: pathlib.Path, inputs: dict):
    """The same from the reference provider, which takes each op by itself, as the model says."""
    model = onnx.load(path, load_external_data=False)
    found = run(binary, path, inputs, "--only=reference", "--select=estimate")
    truth = {value.name: wide(found[value.name], value.type.tensor_type.elem_type) for value in model.graph.output}
    return truth, widened_bounds(model, truth, truth)


def run(binary: pathlib.Path, model: pathlib.Path, inputs: dict, *arguments: str,
        environment: dict | None = None) -> dict:
    """Outputs by name; raises with the command's message where it fails. `environment` beside this process's own."""
    with tempfile.TemporaryDirectory() as folder:
        given, taken = pathlib.Path(folder, "in.npz"), pathlib.Path(folder, "out.npz")
        np.savez(given, **inputs)
        command = [str(binary), "run", str(model), "--inputs", str(given), "--output", str(taken), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(environment or {})})
        if done.returncode != 0:
            raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()}")
        with np.load(taken) as archive:
            return {name: archive[name] for name in archive.files}


def compare(truth: dict, bounds: dict, found: dict) -> Result:
    worst = Result(0, 1e-4, "")
    for name, array in truth.items():
        measure, bound = bounds[name]
        error = measure(array, found[name]) if name in found else float("inf")
        if error / bound >= worst.error / worst.bound:
            worst = Result(error, bound, name)
    return worst
