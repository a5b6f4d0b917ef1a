# SPDX-License-Identifier: Apache-2.0
"""Runs a model through the command line and compares with onnxruntime without optimisations.

The bound is 1e-4 of the largest magnitude of an output (1e-2 where a model computes in f16), or three times what
onnxruntime differs from itself with all optimisations on, where that is more. A model in bf16, which onnxruntime lacks
on CPUs, is compared with its twin in f32; the bound is that of f16 times 8, for three bits fewer. Quantised models are
held to a cosine of at least 0.99, or what onnxruntime's optimisations cost where that is more, and to the same largest
element, since fused kernels rightly round in other places than the graph says. Inputs are seeded; integer inputs stay
small enough to be valid indices.
"""
import dataclasses
import os
import pathlib
import subprocess
import tempfile

import numpy as np
import onnx
import onnxruntime as ort

TYPES = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int8)": np.int8, "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}

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


def make_inputs(path: pathlib.Path, given: dict, seed: int = 0) -> dict:
    """Seeded inputs, integers in {0, 1}. `given` is of the kind of OPEN's values."""
    rng = np.random.default_rng(seed)
    inputs = {}
    for value in session(path, ort.GraphOptimizationLevel.ORT_DISABLE_ALL).get_inputs():
        chosen = given.get(value.name, value.shape)
        dtype = TYPES[value.type]
        if isinstance(chosen, np.ndarray):
            inputs[value.name] = chosen
            continue
        shape = [given.get(extent, extent) for extent in chosen]
        if np.issubdtype(dtype, np.floating):
            inputs[value.name] = rng.standard_normal(shape).astype(dtype)
        else:
            inputs[value.name] = rng.integers(0, given.get(f"{value.name} below", 2), shape).astype(dtype)
    return inputs


def is_quantised(model: onnx.ModelProto) -> bool:
    return any(node.op_type in QUANTISED for node in model.graph.node)


def is_half(model: onnx.ModelProto) -> bool:
    return any(tensor.data_type == onnx.TensorProto.FLOAT16 for tensor in model.graph.initializer)


def to_bfloat(x: np.ndarray) -> np.ndarray:
    """Bits of the nearest bf16, the form in which the command takes and gives them."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bfloat(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def twin_in_f32(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same weights and ops, with f32 in place of bf16."""
    twin = onnx.ModelProto()
    twin.CopyFrom(model)
    for tensor in twin.graph.initializer:
        if tensor.data_type == onnx.TensorProto.BFLOAT16:
            numbers = from_bfloat(np.frombuffer(tensor.raw_data, np.uint16)).reshape(tuple(tensor.dims))
            tensor.CopyFrom(onnx.numpy_helper.from_array(numbers, tensor.name))
    for value in (*twin.graph.input, *twin.graph.output, *twin.graph.value_info):
        if value.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return twin


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


def bfloat_difference(truth: np.ndarray, found: np.ndarray) -> float:
    """That of bf16's bits from an f32 truth."""
    return difference(truth, from_bfloat(found)) if found.dtype == np.uint16 else float("inf")


def unlikeness(truth: np.ndarray, found: np.ndarray) -> float:
    """One minus the cosine; infinite where shapes or types differ, or the largest element of a vector is another."""
    if truth.shape != found.shape or truth.dtype != found.dtype or not np.isfinite(found).all():
        return float("inf")
    a, b = truth.astype(np.float64).ravel(), found.astype(np.float64).ravel()
    if sum(extent > 1 for extent in truth.shape) <= 1 and a.size and a.argmax() != b.argmax():
        return float("inf")
    return float(1 - a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-30)) if a.any() or b.any() else 0.0


def truth_and_bounds(path: pathlib.Path, inputs: dict):
    """Outputs by name, and how far others may be from them: a measure and its bound."""
    plain = session(path, ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    names = [value.name for value in plain.get_outputs()]
    truth = dict(zip(names, plain.run(names, inputs)))
    optimised = dict(zip(names, session(path, ort.GraphOptimizationLevel.ORT_ENABLE_ALL).run(names, inputs)))
    model = onnx.load(path, load_external_data=False)
    measure, least, times = (unlikeness, 1e-2, 1) if is_quantised(model) else \
        (difference, 1e-2 if is_half(model) else 1e-4, 3)
    finite = lambda value: value if np.isfinite(value) else 0
    return truth, {name: (measure, max(least, times * finite(measure(truth[name], optimised[name])))) for name in names}


def bfloat_case(path: pathlib.Path, given: dict):
    """Inputs of a model in bf16, the outputs of its twin for them, and the bounds, as of the functions above."""
    with tempfile.TemporaryDirectory() as folder:
        twin = pathlib.Path(folder, "twin.onnx")
        onnx.save(twin_in_f32(onnx.load(path)), twin)
        bits = {name: to_bfloat(array) for name, array in make_inputs(twin, given).items()}
        truth, bounds = truth_and_bounds(twin, {name: from_bfloat(array) for name, array in bits.items()})
    return bits, truth, {name: (bfloat_difference, max(8e-2, bound)) for name, (_, bound) in bounds.items()}


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
