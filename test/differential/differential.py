#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random graphs through every provider, compared with onnxruntime:  differential.py --graphs 5000 --seed 1

Each graph runs with all providers and with some of them forced. The bound of an element is a part of its output's
largest magnitude (taken as 0.1 at least, as what cancels leaves the rounding of its terms) plus a multiple of what
changes when the inputs are a little off, so that ill-conditioned graphs are not blamed on kernels. What differs, is
refused, crashes or hangs is cut down to the nodes it takes and kept in --out as a model with its inputs; the exit code
is 1 then.
"""
import argparse
import json
import os
import pathlib
import random
import selectors
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import graphs  # noqa: E402
import ops  # noqa: E402

WAYS = ["", "native,reference", "onednn,reference", "onednn2,reference", "blas,reference", "reference"]
PARTS = {np.dtype(np.float32): 2e-5, np.dtype(np.float16): 5e-3, np.dtype(np.float64): 1e-6}


class Worker:
    def __init__(self, build: pathlib.Path, folder: pathlib.Path, seconds: float = 120):
        self.command = [sys.executable, HERE / "worker.py", build / "lib", folder / "cache"]
        self.folder, self.seconds, self.process = folder, seconds, None
        self.plugins = build / "lib/dovetail"

    def has(self, way: str) -> bool:
        """Whether the providers are built; a build without vendor headers lacks some."""
        return all((self.plugins / f"dovetail_{name}.so").exists() for name in way.split(",") if name)

    def stop(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None

    def ask(self, **request) -> dict:
        if not self.process:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                            stderr=subprocess.DEVNULL, env=os.environ | {"OMP_WAIT_POLICY": "passive"})
        print(json.dumps(request), file=self.process.stdin, flush=True)
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            answered = selector.select(self.seconds)
        line = self.process.stdout.readline() if answered else ""
        if line:
            return json.loads(line)
        code = self.process.poll() if answered else None
        self.stop()
        return {"code": -2, "message": f"no answer in {self.seconds:.0f} s" if code is None and not answered else
                "the process died"}


def truth_and_bounds(graph: graphs.Graph) -> tuple[dict, dict]:
    session = graphs.silent(graph.model())
    given = graph.given()
    truth = dict(zip(graph.outputs, session.run(graph.outputs, given)))
    rng = np.random.default_rng(0)
    bounds = {}
    for name, array in truth.items():
        if np.issubdtype(array.dtype, np.floating):
            bounds[name] = np.full(array.shape, PARTS[array.dtype] * max(np.abs(array).max(), 0.1), np.float64)
    for _ in range(2):
        off = dict(zip(graph.outputs, session.run(graph.outputs, graphs.perturbed(graph, rng))))
        for name, bound in bounds.items():
            if off[name].shape == truth[name].shape:
                moved = np.abs(off[name].astype(np.float64) - truth[name].astype(np.float64))
                bound += 10 * moved + 3 * moved.max()
    return truth, bounds


def wrong(truth: dict, bounds: dict, found: dict) -> str:
    """What is wrong with the outputs found; empty where nothing is."""
    for name, array in truth.items():
        if name not in found or found[name].shape != array.shape or found[name].dtype != array.dtype:
            got = f"{found[name].dtype}{found[name].shape}" if name in found else "nothing"
            return f"output {name}: {array.dtype}{array.shape} expected, found {got}"
        if name in bounds:
            far = ~(np.abs(found[name].astype(np.float64) - array.astype(np.float64)) <= bounds[name])
        else:
            far = found[name] != array
        if far.any():
            at = tuple(int(i) for i in np.argwhere(far)[0])
            return f"output {name}{list(at)}: {array[at]} expected, found {found[name][at]} ({far.sum()} of {far.size})"
    return ""


def try_graph(worker: Worker, graph: graphs.Graph, way: str) -> str:
    """What goes wrong; empty where nothing does."""
    truth, bounds = truth_and_bounds(graph)
    folder = worker.folder
    model, inputs, outputs = folder / "graph.onnx", folder / "in.npz", folder / "out.npz"
    onnx.save(graph.model(), model)
    np.savez(inputs, **graph.given())
    outputs.unlink(missing_ok=True)
    answer = worker.ask(model=str(model), inputs=str(inputs), outputs=str(outputs), only=way,
                        artifact=str(folder / "graph.dvt"))
    if answer:
        return f"code {answer['code']}: {answer['message']}"
    with np.load(outputs) as found:
        return wrong(truth, bounds, dict(found))


def shrink(worker: Worker, graph: graphs.Graph, way: str) -> graphs.Graph:
    """The fewest outputs and nodes that still fail: nodes give way to inputs with the values they had."""
    def fails(changed: graphs.Graph) -> bool:
        try:
            return bool(try_graph(worker, changed, way))
        except Exception:  # no valid graph any more
            return False

    def variant(nodes, inputs, outputs, symbolic=None):
        made = graphs.Graph(graph.opset)
        made.nodes, made.inputs, made.outputs = nodes, inputs, outputs
        made.constants, made.values = graph.constants, graph.values
        made.symbolic = graph.symbolic if symbolic is None else symbolic
        return made

    best = graph
    for name in [node_output for node in reversed(graph.nodes) for node_output in node.outputs]:
        alone = variant(graph.nodes, graph.inputs, [name])
        if fails(alone):
            best = alone
    if fails(variant(best.nodes, best.inputs, best.outputs, {})):
        best = variant(best.nodes, best.inputs, best.outputs, {})
        graph.symbolic = {}
    for node in list(best.nodes):
        rest = [other for other in best.nodes if other is not node]
        taken = {name: graph.values[name].array for name in node.outputs if name}
        if set(taken).intersection(best.outputs):
            continue
        cut = variant(rest, best.inputs | taken, best.outputs, best.symbolic)
        if fails(cut):
            best = cut
    return best


def text_of(graph: graphs.Graph) -> str:
    return onnx.printer.to_text(graph.model())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1, help="of the first graph; the next ones follow")
    parser.add_argument("--nodes", type=int, default=14, help="of a graph, at most")
    parser.add_argument("--ways", type=int, default=2, help="to run each graph in, besides with all providers")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after these")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build")
    parser.add_argument("--out", type=pathlib.Path, help="where finds go (default: differential/ in the build folder)")
    options = parser.parse_args()
    out = options.out or options.build / "differential"
    start, finds, nodes, seen = time.monotonic(), 0, 0, set()
    with tempfile.TemporaryDirectory() as text:
        worker = Worker(options.build, pathlib.Path(text))
        for seed in range(options.seed, options.seed + options.graphs):
            if time.monotonic() - start > options.seconds:
                break
            graph, ways = make(seed, options.nodes, options.ways)
            nodes += len(graph.nodes)
            for way in filter(worker.has, ways):
                problem = try_graph(worker, graph, way)
                if not problem:
                    continue
                small = shrink(worker, graph, way)
                problem = try_graph(worker, small, way) or problem
                finds += 1
                out.mkdir(parents=True, exist_ok=True)
                onnx.save(small.model(), out / f"{seed}.onnx")
                np.savez(out / f"{seed}.npz", **small.given())
                ops_left = "+".join(node.op_type for node in small.model().graph.node)
                print(f"seed {seed}, providers '{way or 'all'}': {problem}\n{text_of(small)}\n" if ops_left not in seen
                      else f"seed {seed}, providers '{way or 'all'}': {ops_left} again: {problem}", flush=True)
                seen.add(ops_left)
                break
        worker.stop()
    print(f"{seed - options.seed + 1} graphs of {nodes} nodes, {finds} finds, {time.monotonic() - start:.0f} s")
    return 1 if finds else 0


def make(seed: int, nodes: int, ways: int) -> tuple[graphs.Graph, list[str]]:
    """A graph that the checker has nothing against, and the ways to run it in."""
    for attempt in range(100):
        builder = graphs.Builder(seed * 100 + attempt)
        ops.grow(builder, builder.rng.randint(1, nodes))
        graph = builder.finish()
        try:
            onnx.checker.check_model(graph.model(), full_check=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
            continue
        if graph.outputs:
            return graph, [WAYS[0], *random.Random(seed).sample(WAYS[1:], ways)]
    raise RuntimeError(f"no valid graph for seed {seed}")


if __name__ == "__main__":
    sys.exit(main())
