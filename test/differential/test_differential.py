# SPDX-License-Identifier: Apache-2.0
"""Random graphs of fixed seeds, and what the random search found before."""
import os
import pathlib

import numpy as np
import onnx
import pytest

import differential

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("DOVETAIL_BUILD_DIR", ROOT / "build"))
# What the search found, cut down: a graph as text, and the extents of its inputs.
FINDS = {
    "a fraction as scale of a free extent": ("""
        f (float[3, 7, n] x) => (float[?, ?, ?] y) <float[3] s = {1, 1, 1.5}> {
          y = Resize <coordinate_transformation_mode = "half_pixel", mode = "linear"> (x, , s)
        }""", {"x": (3, 7, 33)}),
    "gathered elements with a free extent that is one": ("""
        f (float[n, 5, 12, 9] x, float[m] b) => (float[?, ?] y) <int64[2, 3] at = {-3, -3, -1, 1, 4, -11}> {
          v = GatherND (x, at)
          y = Sub (v, b)
        }""", {"x": (3, 5, 12, 9), "b": (1,)}),
    "pad and expand with a free extent that is one": ("""
        f (float[2, 3] x, float[1, m] b) => (float[?, ?] y) <int64[4] at = {0, 1, 0, 1}> {
          v = Pad (x, at)
          y = Add (v, b)
        }""", {"x": (2, 3), "b": (1, 1)}),
    "blocks of free channels": ("""
        f (float[2, c, 3, 5] x) => (float[?, ?, ?, ?] y) { y = DepthToSpace <blocksize = 2, mode = "CRD"> (x) }
        """, {"x": (2, 12, 3, 5)}),
    "comparisons and sums at the ends of 64 bits": ("""
        f (int64[2] x) => (bool[?] y, int64[?] z) <int64[2] a = {9223372036854775807, 5}, int64 b = {9223372036854775807}> {
          y = GreaterOrEqual (a, b)
          s = Add (a, b)
          z = Add (s, x)
        }""", {"x": (2,)}),
    "integers by what is known at run time only": ("""
        f (int64[3, 5] x, int64[5] b) => (int64[?, ?] y, int64[?, ?] z) {
          y = Div (x, b)
          z = Mod (x, b)
        }""", {"x": (3, 5), "b": (5,)}),
}


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    worker = differential.Worker(BUILD, tmp_path_factory.mktemp("differential"))
    yield worker
    worker.stop()


@pytest.mark.parametrize("first", range(1, 101, 10))
def test_random_graphs(worker, first):
    for seed in range(first, first + 10):
        graph, ways = differential.make(seed, 14, 1)
        for way in filter(worker.has, ways):
            problem = differential.try_graph(worker, graph, way)
            assert not problem, f"seed {seed}, providers '{way}': {problem}\n{differential.text_of(graph)}"


@pytest.mark.parametrize("way", differential.WAYS)
@pytest.mark.parametrize("name", FINDS)
def test_finds(worker, name, way):
    if not worker.has(way):
        pytest.skip("not built here")
    text, extents = FINDS[name]
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 19]> {text}')
    rng = np.random.default_rng(0)
    inputs = {value.name: rng.standard_normal(extents[value.name]).astype(np.float32)
              if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
              else rng.integers(1, 9, extents[value.name]) for value in model.graph.input}
    expected = differential.graphs.silent(model).run(None, inputs)
    onnx.save(model, worker.folder / "find.onnx")
    np.savez(worker.folder / "find.npz", **inputs)
    answer = worker.ask(model=str(worker.folder / "find.onnx"), inputs=str(worker.folder / "find.npz"), only=way,
                        outputs=str(worker.folder / "found.npz"), artifact=str(worker.folder / "find.dvt"))
    assert not answer
    with np.load(worker.folder / "found.npz") as found:
        for value, array in zip(model.graph.output, expected):
            np.testing.assert_allclose(found[value.name], array, rtol=1e-5, atol=1e-5)
