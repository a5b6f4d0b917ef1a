# SPDX-License-Identifier: Apache-2.0
"""Runs a model through the command line and compares with onnxruntime without optimisations.

The bound is 1e-4 of the largest magnitude of an output, or three times what onnxruntime differs from itself with all
optimisations on, where that is more. Inputs are seeded; integer inputs stay small enough to be valid indices.
"""
import dataclasses
import pathlib
import subprocess
import tempfile

import numpy as np
import onnxruntime as ort

TYPES = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int8)": np.int8, "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}


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


def make_inputs(path: pathlib.Path, shapes: dict, seed: int = 0) -> dict:
    """Seeded inputs of the given shapes, by input name; integers in {0, 1}."""
    rng = np.random.default_rng(seed)
    inputs = {}
    for value in session(path, ort.GraphOptimizationLevel.ORT_DISABLE_ALL).get_inputs():
        shape = shapes.get(value.name, value.shape)
        dtype = TYPES[value.type]
        if np.issubdtype(dtype, np.floating):
            inputs[value.name] = rng.standard_normal(shape).astype(dtype)
        else:
            inputs[value.name] = rng.integers(0, 2, shape).astype(dtype)
    return inputs


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


def truth_and_bounds(path: pathlib.Path, inputs: dict):
    plain = session(path, ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    names = [value.name for value in plain.get_outputs()]
    truth = dict(zip(names, plain.run(names, inputs)))
    optimised = dict(zip(names, session(path, ort.GraphOptimizationLevel.ORT_ENABLE_ALL).run(names, inputs)))
    bounds = {name: max(1e-4, 3 * difference(truth[name], optimised[name])) for name in names}
    return truth, bounds


def run(binary: pathlib.Path, model: pathlib.Path, inputs: dict, *arguments: str) -> dict:
    """Outputs by name; raises with the command's message where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        given, taken = pathlib.Path(folder, "in.npz"), pathlib.Path(folder, "out.npz")
        np.savez(given, **inputs)
        command = [str(binary), "run", str(model), "--inputs", str(given), "--output", str(taken), *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()}")
        with np.load(taken) as archive:
            return {name: archive[name] for name in archive.files}


def compare(truth: dict, bounds: dict, found: dict) -> Result:
    worst = Result(0, 1e-4, "")
    for name, array in truth.items():
        error = difference(array, found[name]) if name in found else float("inf")
        if error / bounds[name] >= worst.error / worst.bound:
            worst = Result(error, bounds[name], name)
    return worst
