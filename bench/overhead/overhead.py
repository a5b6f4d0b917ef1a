#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the runtime takes beside kernels:  overhead.py [--kinds KIND,...] [--steps N] [--threads N]

Models of many tiny steps that cannot be one kernel are compiled and run; their time by the step is set beside that of
the same kernels called alone, one after the other on memory that is in the cache ('dovetail problem'). What is between
is the runtime's: a call, and what the caches lose by going from one kernel to the next. Kinds: softmax (rows and columns
in turn), matmul (a row by 8 x 8), loop (an iteration of a Loop of four steps), scan (likewise of a Scan), lengths (a
cache that grows by a position with each token: each length is new to the session). Figures are for a quiet machine.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
KINDS = ["softmax", "matmul", "loop", "scan", "lengths"]
BODY = 4  # steps of an iteration


def value(name: str, shape: list, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name: str, content) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(content), name)


def model(nodes: list, inputs: list, outputs: list, constants: list) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "overhead", inputs, outputs, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    onnx.checker.check_model(made)
    return made


def softmaxes(steps: int, first: str, last: str, prefix: str = "") -> list:
    """A chain along the two last axes in turn: no kernel of rows takes in two of them."""
    names = [first, *(f"{prefix}t{i}" for i in range(1, steps)), last]
    return [helper.make_node("Softmax", [names[i]], [names[i + 1]], f"{prefix}softmax{i}", axis=-1 - i % 2)
            for i in range(steps)]


def make_softmax(steps: int) -> onnx.ModelProto:
    return model(softmaxes(steps, "x", "y"), [value("x", [4, 8])], [value("y", [4, 8])], [])


def make_matmul(steps: int) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    names = ["x", *(f"t{i}" for i in range(1, steps)), "y"]
    weights = [constant(f"w{i}", np.linalg.qr(rng.standard_normal((8, 8)))[0].astype(np.float32))
               for i in range(steps)]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]], f"matmul{i}") for i in range(steps)]
    return model(nodes, [value("x", [1, 8])], [value("y", [1, 8])], weights)


def make_loop(steps: int) -> onnx.ModelProto:
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["goes_on"]), *softmaxes(BODY, "carried", "next", "body_")], "body",
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("carried", [4, 8])],
        [value("goes_on", [], TensorProto.BOOL), value("next", [4, 8])])
    node = helper.make_node("Loop", ["count", "", "x"], ["y"], "loop", body=body)
    return model([node], [value("x", [4, 8])], [value("y", [4, 8])], [constant("count", np.int64(steps))])


def make_scan(steps: int) -> onnx.ModelProto:
    body = helper.make_graph(
        [helper.make_node("Add", ["carried", "row"], ["sum"]), *softmaxes(BODY - 1, "sum", "next", "body_"),
         helper.make_node("Identity", ["next"], ["given"])], "body",
        [value("carried", [4, 16]), value("row", [4, 16])], [value("next", [4, 16]), value("given", [4, 16])])
    node = helper.make_node("Scan", ["x", "rows"], ["y", "all"], "scan", body=body, num_scan_inputs=1)
    return model([node], [value("x", [4, 16]), value("rows", [steps, 4, 16])],
                 [value("y", [4, 16]), value("all", [steps, 4, 16])], [])


def make_lengths(steps: int) -> onnx.ModelProto:
    nodes = [helper.make_node("Concat", ["past_0", "x"], ["present_0"], "append", axis=1),
             *softmaxes(steps - 1, "present_0", "y")]
    return model(nodes, [value("past_0", [1, "P", 8]), value("x", [1, 1, 8])],
                 [value("present_0", [1, "P1", 8]), value("y", [1, "P1", 8])], [])


class Command:
    """The command that was built, with a cache of its own."""

    def __init__(self, folder: str, threads: int):
        self.binary = pathlib.Path(os.environ.get("DOVETAIL_BUILD_DIR", ROOT / "build"), "bin/dovetail")
        self.cache, self.threads = pathlib.Path(folder, "cache"), threads
        if not self.binary.exists():
            sys.exit(f"{self.binary} is missing: build first, with scripts/build")

    def __call__(self, *arguments) -> dict:
        common = [f"--threads={self.threads}"] if self.threads else []
        done = subprocess.run([self.binary, *map(str, arguments), *common, "--json"], text=True, capture_output=True,
                              env={**os.environ, "DOVETAIL_CACHE": str(self.cache)})
        if done.returncode not in (0, 3):  # 3: some candidate of a problem failed, others did not
            sys.exit(f"dovetail {arguments[0]} ended with {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def alone(self, step: dict) -> float | None:
        """Microseconds of a step's kernel on its own; nothing where the runtime does the step."""
        if "problem" not in step:
            return None
        provider = step["kernel"].split(":")[0]
        trials = self("problem", step["problem"], f"--only={provider}")["trials"]
        times = [t["micros"] for t in trials
                 if f"{t['candidate']['provider']}:{t['candidate']['algorithm']}" == step["kernel"] and t["micros"] > 0]
        return min(times, default=None)


def measure(command: Command, kind: str, path: str, steps: int) -> dict:
    """Microseconds by the step, or by the iteration or token, and the sum of its kernels alone."""
    plan = command("explain", path, "--all")["steps"]
    known: dict[tuple, float | None] = {}
    if kind == "lengths":
        tokens = 200
        times = command("bench", path, "--tokens", tokens)
        return {"kind": kind, "steps": len(plan), "micros": 1e3 * times["p50_ms"] / len(plan), "alone": None}
    for step in plan:
        if (key := (step.get("problem"), step["kernel"])) not in known:
            known[key] = command.alone(step)
    inside = [step for step in plan if step["block"] > 0] or plan
    rounds = steps if inside is not plan else len(plan)
    alone = [known[step.get("problem"), step["kernel"]] for step in inside]
    median = min(command("bench", path, "--seconds=1")["median_ms"] for _ in range(3))
    total = sum(time for time in alone if time is not None)
    return {"kind": kind, "steps": len(inside), "micros": 1e3 * median / rounds,
            "alone": total if inside is not plan else total / rounds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", default=",".join(KINDS), help="separated by commas (default: all)")
    parser.add_argument("--steps", type=int, default=400, help="of a model, or iterations of a loop")
    parser.add_argument("--threads", type=int, default=0, help="default: all cores")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    chosen = arguments.kinds.split(",")
    if unknown := set(chosen) - set(KINDS):
        parser.error(f"no kind {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    if arguments.steps < 2:
        parser.error("--steps of at least 2")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        command = Command(folder, arguments.threads)
        for kind in chosen:
            path = str(pathlib.Path(folder, f"{kind}.onnx"))
            onnx.save(globals()[f"make_{kind}"](arguments.steps), path)
            rows.append(measure(command, kind, path, arguments.steps))
            if not arguments.json:
                print_row(rows[-1])
    if arguments.json:
        print(json.dumps(rows, indent=2))


def print_row(row: dict) -> None:
    unit = {"loop": "an iteration", "scan": "an iteration"}.get(row["kind"], "a step")
    text = f"{row['kind']:8} {row['steps']} steps: {1e3 * row['micros']:.0f} ns for {unit}"
    if row["alone"] is not None:
        text += f", {1e3 * row['alone']:.0f} in kernels alone, {1e3 * (row['micros'] - row['alone']):.0f} beside them"
    print(text, flush=True)


if __name__ == "__main__":
    main()
