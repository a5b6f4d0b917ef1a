# SPDX-License-Identifier: Apache-2.0
"""dovetail check: every candidate for the problems of some models, against the reference."""
import json

import makers


def test_counts(dovetail):
    """Models that share a problem have it checked once; what one provider offers is told apart from the others'."""
    first = dovetail.write("first.onnx", makers.tiny())
    second = dovetail.write("second.onnx", makers.unary("Relu", (2, 3)))
    report = json.loads(dovetail("check", first, second, "--only=native,reference", "--json").stdout)
    assert report["models"] == 2 and report["left"] == 0 and report["failures"] == []
    assert report["problems"] == report["checked"] > 3
    assert set(report["providers"]) == {"native", "reference"}
    for count in report["providers"].values():
        assert count["candidates"] == count["correct"] > 0 and count["failed"] == {}
    again = json.loads(dovetail("check", second, first, second, "--only=native,reference", "--json").stdout)
    assert again["models"] == 3 and again["problems"] == report["problems"]


def test_free_extents_and_bodies(dovetail):
    body = makers.graph([makers.node("Exp", "x", "b")], [], [makers.value("b", ["N", "M"])])
    other = makers.graph([makers.node("Relu", "x", "c")], [], [makers.value("c", ["N", "M"])])
    made = makers.model([makers.node("If", "go", "y", then_branch=body, else_branch=other)],
                        [makers.value("x", ["N", "M"]), makers.value("go", [], 9)], [makers.value("y", None)])
    report = json.loads(dovetail("check", dovetail.write("if.onnx", made), "--only=native,reference", "--json").stdout)
    assert report["failures"] == [] and report["checked"] >= 4  # both ops, with free extents and with numbers


def test_budget(dovetail):
    done = dovetail("check", dovetail.write("tiny.onnx", makers.tiny()), "--only=reference", "--budget=0.000001")
    assert "0 checked; --budget left" in done.stdout


def test_refusals(dovetail, tiny_artifact):
    dovetail.refuses(2, "check", dovetail.write("a.dvt", tiny_artifact), says="is an artifact")
    dovetail.refuses(2, "check", "missing.onnx", says="missing.onnx")
    dovetail.refuses(2, "check", dovetail.write("tiny.onnx", makers.tiny()), "--budget=-1", says="number of seconds")


def test_failures(dovetail, binary):
    """A provider that computes wrongly: its candidate is named with its problem, and the exit code tells."""
    arguments = ("check", dovetail.write("relu.onnx", makers.unary("Relu", (2, 3))), "--only=wrong_result",
                 f"--plugins={binary.parent.parent / 'test/planner_plugins'}")
    done = dovetail.raw(*arguments)
    assert done.returncode == 3, done.stderr
    assert "wrong_result:" in done.stdout and "problem(%0: f32[2,3])" in done.stdout
    report = json.loads(dovetail.raw(*arguments, "--json").stdout)
    count = report["providers"]["wrong_result"]
    assert count["candidates"] > count["correct"] and sum(count["failed"].values()) == len(report["failures"]) > 0
    assert all(found["candidate"].startswith("wrong_result:") for found in report["failures"])
