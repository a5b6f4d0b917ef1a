# SPDX-License-Identifier: Apache-2.0
"""ONNX's own test cases that have If, Loop, Scan, sequences or optionals in them: each is computed as it says, or refused for a reason that
is listed here."""
import re
import warnings

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from bodies import command

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from onnx.backend.test.loader import load_model_tests

# What is refused, by a part of the message, and why.
REFUSED = {
    "test_loop16_seq_none": "[Oo]ptional",
    "test_loop13_seq": "of 1 dimensions is put into a sequence of such of 0",  # its input is declared so
    "test_split_to_sequence_2": "lengths that only the run tells",
    "test_scan_sum": "op set 8",
    "test_affine_grid_3d_align_corners_expanded": "numbers of dimensions in the two branches",
}


def array_of(tensor) -> np.ndarray:
    """bf16 in the form that the command takes."""
    array = numpy_helper.to_array(tensor) if isinstance(tensor, onnx.TensorProto) else np.asarray(tensor)
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array


def tensors_of(name: str, given, kind) -> dict:
    """What stands for an input or output: two tensors for a sequence, one more for an optional."""
    if isinstance(given, onnx.OptionalProto) or given is None or kind.HasField("optional_type"):
        inner = numpy_helper.to_optional(given) if isinstance(given, onnx.OptionalProto) else given
        element = kind.optional_type.elem_type
        found = {f"{name}.has_element": np.array(inner is not None)}
        if inner is None:
            inner = [] if element.HasField("sequence_type") else np.zeros(
                [0] * len(element.tensor_type.shape.dim), helper.tensor_dtype_to_np_dtype(element.tensor_type.elem_type))
        return {**found, **tensors_of(name, inner, element)}
    if isinstance(given, onnx.SequenceProto) or isinstance(given, list):
        elements = numpy_helper.to_list(given) if isinstance(given, onnx.SequenceProto) else given
        elements = [np.asarray(element) for element in elements]
        tensor = kind.sequence_type.elem_type.tensor_type
        flat = [np.ravel(element) for element in elements] or [
            np.zeros(0, helper.tensor_dtype_to_np_dtype(tensor.elem_type))]
        shapes = np.array([element.shape for element in elements], np.int64)
        return {f"{name}.data": np.concatenate(flat),
                f"{name}.shapes": shapes if elements else np.zeros((0, len(tensor.shape.dim)), np.int64)}
    return {name: array_of(given)}


def concerns(graph) -> bool:
    return any(node.op_type in ("If", "Loop", "Scan") or "Sequence" in node.op_type.replace("ReverseSequence", "") or
               "Optional" in node.op_type for node in graph.node) or any(
                   not value.type.HasField("tensor_type") for value in graph.input)


CASES = {case.name: case for case in load_model_tests(kind="node")
         if case.model is not None and concerns(case.model.graph)}


@pytest.mark.parametrize("name", sorted(CASES))
def test_case(tmp_path, name):
    case = CASES[name]
    path = tmp_path / "model.onnx"
    onnx.save(case.model, path)
    reason = next((says for pattern, says in REFUSED.items() if re.fullmatch(pattern, name)), None)
    if reason:
        done = command("compile", path, "-o", tmp_path / "model.dvt", "--select=estimate", "--no-cache", code=2)
        assert re.search(reason, done.stderr), done.stderr
        return
    for number, (inputs, outputs) in enumerate(case.data_sets):
        graph = case.model.graph
        feeds = {key: array for value, given in zip(graph.input, inputs)
                 for key, array in tensors_of(value.name, given, value.type).items()}
        truth = {key: array for value, given in zip(graph.output, outputs)
                 for key, array in tensors_of(value.name, given, value.type).items()}
        np.savez(tmp_path / "in.npz", **feeds)
        command("run", path, "--select=estimate", "--no-cache", f"--inputs={tmp_path / 'in.npz'}",
                f"--output={tmp_path / 'out.npz'}")
        with np.load(tmp_path / "out.npz") as found:
            for output, wanted in truth.items():
                np.testing.assert_allclose(found[output], wanted, rtol=case.rtol, atol=max(case.atol, 1e-6),
                                           err_msg=f"data set {number}, '{output}'")
