# SPDX-License-Identifier: Apache-2.0
"""Indices that point nowhere: refused by every provider, whether they come with a run or with the model."""
import numpy as np
import pytest
from onnx import TensorProto

from command import ESTIMATE
from makers import constant, model, node, value

X = np.arange(15, dtype=np.float32).reshape(3, 5)
# op, attributes, shape of the indices, good and bad ones for X, the range
CASES = {
    "gather": ("Gather", {"axis": 1}, [2], [-5, 4], [0, 5], r"5 is outside \[-5, 4\]"),
    "gather from behind": ("Gather", {"axis": 0}, [2], [-3, 2], [1, -4], r"-4 is outside \[-3, 2\]"),
    "elements": ("GatherElements", {"axis": 0}, [1, 5], [[0, 1, 2, -1, -3]], [[0, 1, 2, 3, 0]],
                 r"3 is outside \[-3, 2\]"),
    "rows": ("GatherND", {}, [2, 2], [[2, 4], [-3, -5]], [[0, 0], [4, 4]], r"4 is outside \[-3, 2\]"),
    "columns of rows": ("GatherND", {}, [2, 2], [[2, 4], [0, 0]], [[2, 5], [0, 0]], r"5 is outside \[-5, 4\]"),
}
WAYS = ["", "--only=native,reference", "--only=reference"]


def gathering(op, attributes, shape, free):
    x = value("x", ["N", "M"] if free else [3, 5])
    return model([node(op, "x at", "y", name="the_node", **attributes)],
                 [x, value("at", shape, TensorProto.INT64)], [value("y", None)])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_index_at_run_time(dovetail, name, free, way):
    op, attributes, shape, good, bad, says = CASES[name]
    dovetail.write("g.onnx", gathering(op, attributes, shape, free))
    np.savez(dovetail.folder / "good.npz", x=X, at=np.array(good, np.int64))
    np.savez(dovetail.folder / "bad.npz", x=X, at=np.array(bad, np.int64))
    options = [ESTIMATE, *([way] if way else [])]
    dovetail("run", "g.onnx", "--inputs", "good.npz", *options)
    dovetail.refuses(2, "run", "g.onnx", "--inputs", "bad.npz", *options, says=["the_node", says])


@pytest.mark.parametrize("way", WAYS)
def test_empty_axis(dovetail, way):
    dovetail.write("g.onnx", gathering("Gather", {"axis": 0}, [2], True))
    np.savez(dovetail.folder / "bad.npz", x=X[:0], at=np.array([-1, 0]))
    dovetail.refuses(2, "run", "g.onnx", "--inputs", "bad.npz", ESTIMATE, *([way] if way else []), says=["the_node", "the axis that is indexed"])


def test_index_of_the_model(dovetail):
    made = model([node("Gather", "x at", "y", name="the_node", axis=1)], [value("x", [3, 5])], [value("y", None)],
                 [constant("at", np.array([1, 7]))])
    dovetail.write("g.onnx", made)
    dovetail.refuses(2, "run", "g.onnx", ESTIMATE, says=["the_node", r"7 is outside \[-5, 4\]"])
