# SPDX-License-Identifier: Apache-2.0
"""Extents that only the run tells, inside of a model: boxes that suppression keeps, and shapes that Where chooses.

Each model runs with inputs that give results of several lengths, none among them, and is compared with onnxruntime.
"""
import pathlib
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "controlflow"))
from bodies import INT64, check, expected, floats, model, node, value  # noqa: E402


def check_lengths(folder: pathlib.Path, made, all_feeds, lengths: list[int]):
    """Of the result z; else the feeds show less than they should."""
    assert [len(expected(made, feeds)["z"]) for feeds in all_feeds] == lengths
    check(folder, made, *all_feeds, ways=("mixed artifact", "native artifact", "reference"))


def boxes_and_scores(count: int) -> dict:
    """Small whole numbers, so that no rounding decides which boxes overlap; some boxes are empty. Half of the scores
    are below zero, and none is there twice."""
    random = np.random.default_rng(count)
    raw = np.concatenate([random.integers(0, 6, (1, count, 2)), random.integers(-1, 9, (1, count, 2))], 2)
    logits = random.permutation(2 * count).reshape(1, 2, count) - count
    return {"raw": raw.astype(np.float32), "logits": logits.astype(np.float32) / 8}


def test_suppression_of_boxes(tmp_path):
    """The end of a detector: corners and scores are computed, and the boxes that are kept go on."""
    made = model([node("Slice", "raw zero two last", "corner"), node("Slice", "raw two four last", "sides"),
                  node("Relu", "sides", "extents"), node("Add", "corner extents", "far"),
                  node("Concat", "corner far", "boxes", axis=2), node("Relu", "logits", "scores"),
                  node("NonMaxSuppression", "boxes scores most overlap least", "chosen"),
                  node("Gather", "chosen column", "which", axis=1), node("Squeeze", "boxes zero", "flat"),
                  node("Gather", "flat which", "kept", axis=0), node("MatMul", "kept w", "p"), node("Relu", "p", "z")],
                 [value("raw", [1, "N", 4]), value("logits", [1, 2, "N"]), value("most", [1], INT64)],
                 [value("chosen", ["K", 3], INT64), value("kept", ["K", 4]), value("z", ["K", 5])],
                 {"zero": np.int64([0]), "two": np.int64([2]), "four": np.int64([4]), "last": np.int64([2]),
                  "column": np.int64(2), "overlap": np.float32([0.25]), "least": np.float32([0.05]), "w": floats(4, 5)})
    few, many = boxes_and_scores(12), boxes_and_scores(40)
    feeds = [{**few, "most": np.int64([3])}, {**few, "most": np.int64([1])}, {**many, "most": np.int64([100])},
             {**few, "logits": -np.abs(few["logits"]), "most": np.int64([3])}, {**few, "most": np.int64([0])}]
    assert (many["logits"] > 0.05).sum() == 39  # of which some hide others
    check_lengths(tmp_path, made, feeds, [6, 2, 27, 0, 0])


@pytest.mark.parametrize("by", ["extents", "data"])
def test_shape_that_where_chooses(tmp_path, by):
    """Those of two tensors without their last rows: the one with more rows, or the one that the data say. Compiling
    cannot tell which."""
    operands, condition = {"extents": ([], "n m"), "data": ([value("level", [])], "level zero")}[by]
    made = model([node("Shape", "x", "all_x"), node("Sub", "all_x row_less", "s"), node("Gather", "s first", "n"),
                  node("Shape", "y", "all_y"), node("Sub", "all_y row_less", "t"), node("Gather", "t first", "m"),
                  node("Less", condition, "other"), node("Where", "other t s", "shape"),
                  node("Expand", "row shape", "rows"), node("Mul", "rows scale", "scaled"),
                  node("MatMul", "scaled w", "p"), node("Relu", "p", "z"), node("Shape", "z", "extents")],
                 [value("x", ["N", 4]), value("y", ["M", 4]), value("row", [1, 4]), *operands],
                 [value("z", ["K", 3]), value("extents", [2], INT64)],
                 {"row_less": np.int64([1, 0]), "first": np.int64(0), "zero": np.float32(0), "scale": floats(4, seed=2),
                  "w": floats(4, 3)})
    feeds = [{"x": floats(n, 4), "y": floats(m, 4), "row": floats(1, 4, seed=3), "level": np.array(level, np.float32)}
             for n, m, level in [(3, 6, -1), (8, 6, 1), (1, 1, 1), (2, 34, -1), (8, 6, -1)]]
    given = [{name: feed[name] for name in [operand.name for operand in made.graph.input]} for feed in feeds]
    check_lengths(tmp_path, made, given, [5, 7, 0, 33, 7 if by == "extents" else 5])
