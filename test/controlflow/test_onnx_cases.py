# SPDX-License-Identifier: Apache-2.0
"""ONNX's own test cases that have If, Loop or Scan in them: each is computed as it says, or refused for a reason that
is listed here."""
import re
import warnings

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from bodies import command

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from onnx.backend.test.loader import load_model_tests

# What is refused, by a part of the message, and why.
REFUSED = {
    "test_if_seq": "[Ss]equence",
    "test_if_opt": "[Oo]ptional|[Ss]equence",
    "test_loop13_seq": "[Ss]equence",
    "test_loop16_seq_none": "[Oo]ptional|[Ss]equence",
    "test_scan_sum": "op set 8",
    "test_sequence_map_.*": "[Ss]equence",
    "test_affine_grid_3d_align_corners_expanded": "numbers of dimensions in the two branches",
}


def array_of(tensor) -> np.ndarray:
    """bf16 in the form that the command takes."""
    array = numpy_helper.to_array(tensor) if isinstance(tensor, onnx.TensorProto) else np.asarray(tensor)
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array


def has_bodies(graph) -> bool:
    return any(node.op_type in ("If", "Loop", "Scan") for node in graph.node)


CASES = {case.name: case for case in load_model_tests(kind="node")
         if case.model is not None and has_bodies(case.model.graph)}


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
        arrays = [array_of(tensor) for tensor in [*inputs, *outputs]]
        names = [value.name for value in [*case.model.graph.input, *case.model.graph.output]]
        feeds = dict(zip(names[:len(inputs)], arrays))
        np.savez(tmp_path / "in.npz", **feeds)
        command("run", path, "--select=estimate", "--no-cache", f"--inputs={tmp_path / 'in.npz'}",
                f"--output={tmp_path / 'out.npz'}")
        with np.load(tmp_path / "out.npz") as found:
            for output, wanted in zip(names[len(inputs):], arrays[len(inputs):]):
                np.testing.assert_allclose(found[output], wanted, rtol=case.rtol, atol=max(case.atol, 1e-6),
                                           err_msg=f"data set {number}, '{output}'")
