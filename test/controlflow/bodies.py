# SPDX-License-Identifier: Apache-2.0
"""Models with control flow, and the command that runs them in every way there is."""
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("DOVETAIL_BUILD_DIR", ROOT / "build"))
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
# Compiled and run in one process, or by way of an artifact; with kernels of some providers only, or of all.
WAYS = {"mixed": (), "mixed artifact": (), "reference": ("--only=reference",),
        "native artifact": ("--only=native,reference",)}


def node(op: str, inputs: str, outputs: str, **attributes):
    """Names are separated by blanks; '-' stands for an operand that is left out."""
    return helper.make_node(op, ["" if name == "-" else name for name in inputs.split()], outputs.split(), **attributes)


def value(name: str, extents, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, extents)


def body(nodes, inputs=(), outputs=(), constants=None):
    return helper.make_graph(nodes, "body", list(inputs), list(outputs),
                             [numpy_helper.from_array(np.asarray(array), name)
                              for name, array in (constants or {}).items()])


def loop_body(nodes, carried, results, constants=None, condition="go_on"):
    """The iteration is `i` and the condition `go`, handed on as `go_on` unless the body computes another one."""
    kept = [node("Identity", "go", "go_on")] if condition == "go_on" else []
    return body([*kept, *nodes], [value("i", [], INT64), value("go", [], BOOL), *carried],
                [value(condition, [], BOOL), *results], constants)


def model(nodes, inputs, outputs, constants=None, opset=17):
    graph = body(nodes, inputs, outputs, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8 if opset < 19 else 10)
    onnx.checker.check_model(made)
    return made


def floats(*extents, seed=1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(extents).astype(np.float32)


def command(*arguments, code=0) -> subprocess.CompletedProcess:
    done = subprocess.run([BUILD / "bin/dovetail", *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == code, f"{arguments}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def expected(made, feeds, by="onnxruntime") -> dict:
    names = [output.name for output in made.graph.output]
    if by == "onnx":
        found = ReferenceEvaluator(made).run(None, feeds)
    else:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        found = onnxruntime.InferenceSession(made.SerializeToString(), options,
                                             providers=["CPUExecutionProvider"]).run(None, feeds)
    return dict(zip(names, map(np.asarray, found)))


def compute(folder: pathlib.Path, made, all_feeds, way: str) -> list[dict]:
    """The results for each of the feeds."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    onnx.save(made, path)
    options = ["--select=estimate", "--no-cache", *WAYS[way]]
    if way.endswith("artifact"):
        command("compile", path, "-o", folder / "model.dvt", *options)
        path, options = folder / "model.dvt", []
    results = []
    for feeds in all_feeds:
        np.savez(folder / "in.npz", **feeds)
        command("run", path, *options, f"--inputs={folder / 'in.npz'}", f"--output={folder / 'out.npz'}")
        with np.load(folder / "out.npz") as found:
            results.append(dict(found))
    return results


def compare(results: dict, truth: dict, about: str):
    assert set(results) == set(truth), about
    for name, wanted in truth.items():
        found = results[name]
        assert found.shape == wanted.shape, f"{about}: '{name}' has the extents {found.shape}, {wanted.shape} are right"
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4, err_msg=f"{about}: '{name}'")
        else:
            np.testing.assert_array_equal(found, wanted, err_msg=f"{about}: '{name}'")


def check(folder: pathlib.Path, made, *all_feeds, by="onnxruntime", ways=tuple(WAYS)):
    """Every way of running the model gives what onnxruntime (or the onnx reference) gives."""
    arrays = [{name: np.asarray(array) for name, array in feeds.items()} for feeds in all_feeds]
    truths = [expected(made, feeds, by) for feeds in arrays]
    for way in ways:
        for number, results in enumerate(compute(folder / way.replace(" ", "_"), made, arrays, way)):
            compare(results, truths[number], f"{way}, feeds {number}")
