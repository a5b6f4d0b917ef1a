#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dovetail beside ONNX Runtime and OpenVINO, in one interleaved run:  peers.py --models NAME[,NAME...]

Every contender keeps a process of its own, so that thread pools do not meet; all are given the same seeded inputs and
the same number of threads, and compute in f32. The parent asks one at a time, in an order shuffled anew each round, so
that a busy or throttled machine strikes all alike. Processes are started anew for every heat, as the same code is
faster or slower by where its memory comes to lie. Reported are medians, and paired ratios (contender over Dovetail, in
the same round) with a 95 % bootstrap interval over heats and rounds. Dovetail's library-first and native-first plans
take part, too; so does, with --twin, Dovetail's plan of another model with the same inputs, such as the one in f32 of a
model in f16. A contender that cannot load the model, fails or is wrong is reported as that. Outputs are compared with
ONNX Runtime without optimisations; where it cannot run the model, with its answer for the model's twin in f32; where it
cannot run that either, with Dovetail's reference provider. The table says with which. How long an artifact takes to
load is taken before each heat in a process of its own. Private memory is anonymous memory: what is kept, and the most
there was while loading and in the first run; beside it stand the bytes of the weights and of the arena. Tables go to
build/bench/peers.md and peers.json. The exit status is 1 where a plan of Dovetail fails or is wrong; a side that is
faster than the chosen plan beyond doubt is named.
"""
import argparse
import dataclasses
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "test/models"))
import check  # noqa: E402

CONTENDERS = ["dovetail", "dovetail library-first", "dovetail native-first", "onnxruntime", "openvino"]
# Whose outputs are the truth; the next where one fails.
JUDGES = {
    "ONNX Runtime": lambda _, *case: check.truth_and_bounds(*case),
    "ONNX Runtime in f32": lambda _, *case: check.twin_truth_and_bounds(*case),
    "Dovetail's reference": check.reference_truth_and_bounds,
}


@dataclasses.dataclass
class Case:
    """A model, the file with its inputs, and what is right; or why nothing can be said about that."""
    model: pathlib.Path
    inputs: pathlib.Path
    judge: str = ""
    truth: dict = dataclasses.field(default_factory=dict)
    bounds: dict = dataclasses.field(default_factory=dict)
    failure: str = ""


class Child:
    """One contender in its process; None instead of an answer where it failed, `failure` says why."""

    def __init__(self, name: str, arguments: list[str]):
        self.name, self.failure = name, ""
        self.process = subprocess.Popen([sys.executable, HERE / "contender.py", *arguments], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.facts = self.read()

    def read(self) -> dict | None:
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"failure": f"ended with {self.process.wait()}"}
        if "failure" in answer:
            self.failure = answer["failure"]
            self.stop()
            return None
        return answer

    def ask(self, **request) -> dict | None:
        if self.failure:
            return None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return self.read()

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def find_model(text: str) -> pathlib.Path:
    path = pathlib.Path(text)
    if path.suffix == ".onnx":
        return path.resolve()
    made = (ROOT / "models/skeletons" / f"{text}.onnx").exists()
    script = ROOT / "models" / ("materialize.py" if made else "fetch.py")
    done = subprocess.run([sys.executable, script, text], stdout=subprocess.PIPE, text=True, check=True)
    return pathlib.Path(done.stdout.strip())


def find_case(options, model: pathlib.Path, given: dict, inputs: pathlib.Path) -> Case:
    np.savez(inputs, **given)
    failures = []
    for judge, ask in JUDGES.items():
        try:
            return Case(model, inputs, judge, *ask(options.binary, model, given))
        except Exception as error:  # pylint: disable=broad-exception-caught
            failures.append(f"{judge}: {error}")
    return Case(model, inputs, failure="nothing to compare with: " + "; ".join(failures))


def is_ours(contender: str) -> bool:
    return contender.partition(" ")[0] in ("dovetail", "twin")


def compile_artifact(options, case: Case, artifact: pathlib.Path, prefer: str) -> str:
    """What went wrong, or nothing. The chosen plan comes first and measures; the sides are planned by the same times."""
    budget = options.budget if prefer == "cost" else 0
    command = [options.binary, "compile", case.model, "--inputs", case.inputs, "--prefer", prefer, "-o", artifact,
               "--threads", str(options.threads), "--budget", str(budget), *options.compile_options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"compile: {done.stderr.strip()}"


def prepare(options, name: str, case: Case, folder: pathlib.Path) -> str:
    """Compiles what the contender needs. What went wrong, or nothing."""
    if case.failure or not is_ours(name):
        return case.failure
    engine, _, side = name.partition(" ")
    prefer = side.removesuffix("-first") if engine == "dovetail" and side else "cost"
    return compile_artifact(options, case, folder / f"{name}.dvt", prefer)


def start(options, name: str, case: Case, folder: pathlib.Path) -> Child:
    engine, path = ("dovetail", folder / f"{name}.dvt") if is_ours(name) else (name, case.model)
    library = options.binary.parent.parent / "lib/libdovetail.so"
    return Child(name, [engine, str(path), str(case.inputs), str(options.threads), str(library),
                        str(folder / f"{name}.npz")])


def loading(options, inputs: pathlib.Path, artifact: pathlib.Path) -> float:
    """Milliseconds from opening an artifact to a session in a new process, without packing its weights."""
    done = subprocess.run([options.binary, "bench", artifact, "--inputs", inputs, "--threads", str(options.threads),
                           "--json", "--seconds", "0.1"], capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    return report["load_ms"] - report["packing_ms"]


def planned_bytes(options, artifact: pathlib.Path) -> dict:
    """Of weights and arena, as the plan has them."""
    done = subprocess.run([options.binary, "explain", artifact, "--json"], capture_output=True, text=True, check=True)
    memory = json.loads(done.stdout)["memory"]
    return {"weight_bytes": memory["weight_bytes"], "arena_bytes": memory["arena_bytes"]}


def ratio(ours: list[np.ndarray], theirs: list[np.ndarray], rng) -> dict:
    """Median of the rounds' ratios by heat; above 1 Dovetail is faster."""
    heats = [b / a for a, b in zip(ours, theirs)]
    draw = lambda values: values[rng.integers(0, len(values), len(values))]
    medians = [np.median(np.concatenate([draw(heats[i]) for i in rng.integers(0, len(heats), len(heats))]))
               for _ in range(2000)]
    low, high = np.percentile(medians, [2.5, 97.5])
    return {"ratio": float(np.median(np.concatenate(heats))), "low": float(low), "high": float(high)}


def race(options, children: list[Child], order: random.Random) -> dict[str, list[float]]:
    """Medians of each round in milliseconds, by contender."""
    begin = time.monotonic()
    times: dict[str, list[float]] = {child.name: [] for child in children}
    runs = {}
    for child in children:
        answer = child.ask(runs=3)  # warm-up; afterwards each turn lasts about as long for everyone
        runs[child.name] = max(1, min(50, round(0.1 / max(answer["median"], 1e-6)))) if answer else 0
    for number in range(max(options.rounds // options.heats, 1)):
        if number >= 5 and time.monotonic() - begin > options.seconds / options.heats:
            break
        for child in order.sample(children, len(children)):
            answer = child.ask(runs=runs[child.name])
            if answer:
                times[child.name].append(answer["median"] * 1e3)
    return times


def bench(options, name: str) -> list[dict]:
    model = find_model(name)
    given = check.make_inputs(model, check.OPEN.get(model.stem, {}))
    order = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        cases = dict.fromkeys(options.contenders, find_case(options, model, given, folder / "inputs.npz"))
        if options.twin:
            twin = find_model(options.twin)
            cases[f"twin {twin.stem}"] = find_case(options, twin, check.cast_inputs(given, model, twin),
                                                   folder / "twin.npz")
        rows = {contender: {"model": model.stem, "contender": contender} for contender in cases}
        facts, times, loads = ({contender: [] for contender in rows} for _ in range(3))
        for contender, row in rows.items():
            if failure := prepare(options, contender, cases[contender], folder):
                row["failure"] = failure
        for _ in range(options.heats):
            for contender in rows:
                if is_ours(contender) and "failure" not in rows[contender]:
                    loads[contender].append(loading(options, cases[contender].inputs, folder / f"{contender}.dvt"))
            children = [start(options, contender, cases[contender], folder)
                        for contender, row in rows.items() if "failure" not in row]
            heat = race(options, [child for child in children if not child.failure], order)
            for child in children:
                memory = child.ask(memory=True)
                if child.failure:
                    rows[child.name]["failure"] = child.failure
                    continue
                times[child.name].append(np.array(heat[child.name]))
                facts[child.name].append(memory | child.facts)
                child.stop()
        for contender, row in rows.items():
            if "failure" in row:
                continue
            with np.load(folder / f"{contender}.npz") as arrays:
                found = check.compare(cases[contender].truth, cases[contender].bounds, dict(arrays))
            row |= {"ms": float(np.median(np.concatenate(times[contender]))),
                    "heats_ms": [float(np.median(heat)) for heat in times[contender]],
                    "rounds": sum(map(len, times[contender])), "error": found.error, "bound": found.bound,
                    "right": found.right, "judge": cases[contender].judge,
                    **{key: float(np.median([fact[key] for fact in facts[contender]])) for key in facts[contender][0]}}
            if is_ours(contender):
                row |= planned_bytes(options, folder / f"{contender}.dvt")
            if loads[contender]:
                row |= {"loads_ms": loads[contender], "load_ms": float(np.median(loads[contender]))}
            if contender != "dovetail" and "ms" in rows.get("dovetail", {}):
                row |= ratio(times["dovetail"], times[contender], np.random.default_rng(options.seed))
    return list(rows.values())


def table(rows: list[dict]) -> str:
    lines = ["| model | contender | median ms | over Dovetail (95 %) | private memory | while loading | "
             "weights + arena | loading without packing | result | compared with |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    mib = lambda row, *keys: f"{sum(row[key] for key in keys) / 2**20:.1f} MiB" if all(k in row for k in keys) else ""
    for row in rows:
        if "failure" in row:
            why = " ".join(row["failure"].replace("|", "/").split())[:120]
            lines.append(f"| {row['model']} | {row['contender']} | | | | | | | failed: {why} | |")
            continue
        over = f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})" if "ratio" in row else ""
        right = "right" if row["right"] else f"WRONG by {row['error']:.2g}"
        lines.append(f"| {row['model']} | {row['contender']} | {row['ms']:.2f} | {over} | {mib(row, 'private_bytes')} | "
                     f"{mib(row, 'loading_bytes')} | {mib(row, 'weight_bytes', 'arena_bytes')} | "
                     f"{format(row['load_ms'], '.0f') + ' ms' if 'load_ms' in row else ''} | {right} | "
                     f"{row['judge']} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=lambda text: text.split(","), default=["ppocr_cls", "mobilenet_v3_large"],
                        help="names from models/, or ONNX files")
    parser.add_argument("--contenders", type=lambda text: text.split(","), default=CONTENDERS)
    parser.add_argument("--twin", default="", metavar="NAME",
                        help="one more contender: Dovetail with this model, given the same inputs in its types")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--heats", type=int, default=4, help="all processes are started anew for each")
    parser.add_argument("--rounds", type=int, default=40, help="of all heats, at most")
    parser.add_argument("--seconds", type=float, default=30, help="for the rounds of one model; a heat has five")
    parser.add_argument("--seed", type=int, default=0, help="of the order in the rounds")
    parser.add_argument("--budget", type=float, default=120, help="seconds of measuring while Dovetail compiles")
    parser.add_argument("--compile-options", type=str.split, default=[], help="more for 'dovetail compile'")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/bin/dovetail", help="the dovetail command")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/bench")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for model in options.models:
        rows += bench(options, model)
        print(table(rows), flush=True)
        (options.out / "peers.md").write_text(table(rows) + "\n")
        (options.out / "peers.json").write_text(json.dumps(rows, indent=1))
    ours = [row for row in rows if is_ours(row["contender"])]
    for row in ours:
        if row["contender"].startswith("dovetail ") and row.get("high", 1) < 1:
            print(f"{row['model']}: {row['contender']} is faster than the chosen plan")
    sys.exit(any("failure" in row or not row["right"] for row in ours))


if __name__ == "__main__":
    main()
