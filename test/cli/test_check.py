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


def test_counts_by_model(dovetail):
    """A problem of two models counts for each and once in all; candidates are told from refusals."""
    first = dovetail.write("first.onnx", makers.tiny())
    second = dovetail.write("second.onnx", makers.unary("Relu", (2, 3)))
    arguments = ("check", first, second, first, "--only=native,reference", "--no-cache")
    report = json.loads(dovetail(*arguments, "--jobs=2", "--json").stdout)
    rows = report["by_model"]
    assert [row["model"] for row in rows] == [first, second, first]
    assert rows[0] == rows[2] and rows[0]["problems"] == rows[0]["checked"] > 0 == rows[0]["left"]
    assert report["problems"] <= rows[0]["problems"] + rows[1]["problems"] and report["known"] == 0
    total = report["total"]
    assert total["candidates"] == total["correct"] == sum(p["candidates"] for p in report["providers"].values())
    assert total["refused"] == sum(p["refused"] for p in report["providers"].values())
    assert total["built_only"] == 0
    alone = json.loads(dovetail("check", first, "--only=native,reference", "--no-cache", "--json").stdout)
    assert alone["total"] == {key: rows[0][key] for key in alone["total"]}
    text = dovetail(*arguments).stdout
    assert f"{second}: {rows[1]['problems']} problems, {rows[1]['checked']} checked; " in text
    assert f"3 models, {report['problems']} problems, {report['checked']} checked; " in text


def test_budget(dovetail):
    tiny = dovetail.write("tiny.onnx", makers.tiny())
    done = dovetail("check", tiny, "--only=reference", "--budget=0.000001", "--no-cache")
    assert "0 checked; --budget left" in done.stdout


def test_goes_on_where_it_ended(dovetail):
    """What was right is remembered, failures are not, and another cache knows nothing of it."""
    tiny = dovetail.write("tiny.onnx", makers.tiny())
    arguments = ("check", tiny, "--only=native,reference", "--json", "--cache=records")
    first = json.loads(dovetail(*arguments).stdout)
    assert first["known"] == 0
    second = json.loads(dovetail(*arguments, "--budget=0.000001").stdout)  # what is known takes no budget
    assert second["known"] == second["checked"] == first["problems"] and second["total"] == first["total"]
    # A provider more: the others' candidates are known, its own are not.
    wider = json.loads(dovetail("check", tiny, "--only=native,reference,blas", "--json", "--cache=records").stdout)
    assert wider["known"] == 0 and wider["providers"]["native"] == first["providers"]["native"]


def test_failures_are_checked_again(dovetail, binary):
    arguments = ("check", dovetail.write("relu.onnx", makers.unary("Relu", (2, 3))), "--only=wrong_result", "--json",
                 f"--plugins={binary.parent.parent / 'test/planner_plugins'}", "--cache=records")
    first, second = (json.loads(dovetail.raw(*arguments).stdout) for _ in range(2))
    assert first["failures"] == second["failures"] != [] and second["known"] == 0


def test_refusals(dovetail, tiny_artifact):
    dovetail.refuses(2, "check", dovetail.write("a.dvt", tiny_artifact), says="is an artifact")
    dovetail.refuses(2, "check", "missing.onnx", says="missing.onnx")
    dovetail.refuses(2, "check", dovetail.write("tiny.onnx", makers.tiny()), "--budget=-1", says="number of seconds")
    dovetail.refuses(2, "check", dovetail.write("tiny.onnx", makers.tiny()), "--jobs=0", says="whole number")


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
