# SPDX-License-Identifier: Apache-2.0
"""What `bench` and `explain` report: as JSON for programs, and the same as text."""
import json
import re

import pytest

import makers
from command import ESTIMATE


def duration(micros: float) -> str:
    """As the command prints it."""
    for unit, scale in ("us", 1), ("ms", 1e3):
        if micros < 1e3 * scale:
            number = micros / scale
            digits = 2 if number < 10 else 1 if number < 100 else 0
            return f"{number:.{digits}f} {unit}"
    return f"{micros / 1e6:.1f} s"


def test_bench(dovetail):
    model = dovetail.write("tiny.onnx", makers.tiny())
    dovetail("compile", model, ESTIMATE, "-o", "tiny.dvt")
    for path, arguments in (model, [ESTIMATE]), ("tiny.dvt", []):
        report = json.loads(dovetail("bench", path, *arguments, "--runs=7", "--threads=1", "--json").stdout)
        times = {"median_ms", "p90_ms", "min_ms", "first_ms", "load_ms", "packing_ms", "compile_ms"}
        assert set(report) == times | {"model", "threads", "runs", "arena_bytes"}
        assert all(isinstance(report[key], float) for key in times)
        assert (report["model"], report["threads"], report["runs"]) == (path, 1, 7)
        assert 0 < report["min_ms"] <= report["median_ms"] <= report["p90_ms"]
        assert report["first_ms"] > 0 and report["load_ms"] > 0
        assert 0 <= report["packing_ms"] <= report["load_ms"]
        assert (report["compile_ms"] > 0) == (path == model)
        assert isinstance(report["arena_bytes"], int) and report["arena_bytes"] >= 0


def test_bench_of_steps(dovetail):
    dovetail("compile", dovetail.write("tiny.onnx", makers.tiny()), ESTIMATE, "-o", "tiny.dvt")
    explained = json.loads(dovetail("explain", "tiny.dvt", "--json").stdout)["steps"]
    report = json.loads(dovetail("bench", "tiny.dvt", "--runs=3", "--profile", "--json").stdout)
    assert [(step["nodes"], step["kernel"]) for step in report["steps"]] == \
        [(step["nodes"], step["kernel"]) for step in explained]
    for step in report["steps"]:
        assert set(step) == {"nodes", "kernel", "micros"} and isinstance(step["micros"], float) and step["micros"] >= 0


def test_bench_as_text(dovetail):
    model = dovetail.write("tiny.onnx", makers.tiny())
    said = dovetail("bench", model, ESTIMATE, "--runs=3", "--threads=1").stdout
    number = r"[0-9]+\.[0-9]{3}"
    assert re.fullmatch(rf"median {number} ms, p90 {number} ms, min {number} ms over 3 runs at 1 threads; "
                        rf"load [0-9.]+ ms, of which packing [0-9.]+ ms; first run {number} ms\n", said)


def test_conversions_of_inputs(dovetail):
    """Two kernels in blocks of channels among others that know no blocks: who wants a conversion is charged for it."""
    extents = [2, 5, 7, 3]
    model = makers.model([makers.node("Relu", "x", "a", name="first"), makers.node("Neg", "a", "b", name="negate"),
                          makers.node("Add", "b y", "c", name="add"), makers.node("Relu", "c", "z", name="second")],
                         [makers.value("x", extents), makers.value("y", extents)], [makers.value("z", extents)])
    plugins = f"--plugins={dovetail.binary.parent.parent / 'lib/dovetail-test'}"
    dovetail("compile", dovetail.write("blocks.onnx", model), plugins, "--only=test,reference", "--no-cache",
             "--select=measure", "--prefer=library", "--force=first=test:relu:blocked",
             "--force=second=test:relu:blocked", "-o", "blocks.dvt")
    steps = json.loads(dovetail("explain", "blocks.dvt", plugins, "--json").stdout)["steps"]
    text = dovetail("explain", "blocks.dvt", plugins).stdout.split("\n\n")[1:]
    assert [part.splitlines()[0] for part in text] == [step["nodes"] for step in steps]

    conversions = [step for step in steps if step["conversion"]]
    others = {step["nodes"]: step for step in steps if not step["conversion"]}
    assert len(conversions) == 4 and all(step["micros"] > 0 for step in conversions)
    # Of the first input, of what the two give, and before the second; the result's is no kernel's.
    assert steps[0] is conversions[0] and steps[-1] is conversions[-1]
    assert others["first"]["conversion_micros"] == pytest.approx(conversions[0]["micros"], abs=0.011)
    assert others["second"]["conversion_micros"] == pytest.approx(conversions[2]["micros"], abs=0.011)
    assert sum(step["conversion_micros"] for step in others.values()) == \
        pytest.approx(sum(step["micros"] for step in conversions[:-1]), abs=0.033)
    assert all(step["conversion_micros"] == 0 for step in conversions)

    for step, part in zip(steps, text):
        said = re.search(r"; conversions of its inputs (.*)", part)
        assert (said is None) == step["conversion"]
        if said:
            micros = step["conversion_micros"]
            assert said[1] == (duration(micros) if micros > 0 else "none")
