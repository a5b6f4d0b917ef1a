# SPDX-License-Identifier: Apache-2.0
"""A decoder token by token through states that grow in place, against onnxruntime that is given its caches anew."""
import json

import numpy as np
import onnxruntime as ort
import pytest

import state_models
from state_session import Refused, Session

MODES = {"mixed": [], "native": ["--only=native,reference"], "libraries": ["--only=onednn,blas,reference"],
         "reference": ["--only=reference"]}


def truth_session(path):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def feed(rng, batch, tokens, past):
    positions = np.broadcast_to(np.arange(past, past + tokens), (batch, tokens))
    return {"ids": rng.integers(0, 50, (batch, tokens)), "positions": positions.astype(np.int64)}


def caches(truth, batch, length, rng):
    return {i.name: rng.standard_normal((batch, i.shape[1], length, i.shape[3])).astype(np.float32)
            for i in truth.get_inputs() if i.name.startswith("past")}


def close(found, expected, what):
    assert found.shape == expected.shape, what
    assert np.abs(found - expected).max(initial=0) <= 1e-4 * max(np.abs(expected).max(initial=0), 1e-6), what


def start(session, pasts):
    states = session.states()
    assert len(states) == len(pasts) and all(grows for _, _, grows in states)
    for input, output, _ in states:
        session.feed_back(output, input)
        session.reserve(input, 40)
    for name, array in pasts.items():
        session.bind(name, array)


@pytest.mark.parametrize("form", [{"opset": 18}, {"opset": 23}, {"opset": 23, "causal": True}],
                         ids=["split", "whole", "causal"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("batch, past", [(1, 0), (2, 3)])
def test_token_by_token(built, form, mode, batch, past):
    path, artifact = built.compile(state_models.decoder(**form), "--state=auto", *MODES[mode])
    truth, session, rng = truth_session(path), Session(built.library, artifact), np.random.default_rng(3)
    assert session.inputs["past_k_1"][1] == ["batch", "2", "past", "8"]
    pasts = caches(truth, batch, past, rng)
    start(session, pasts)
    memory = None
    for tokens in (5, 1, 1, 3, 1, 1, 1):
        given = feed(rng, batch, tokens, past)
        for name, array in given.items():
            session.bind(name, array)
        session.run()
        names = [output.name for output in truth.get_outputs()]
        expected = dict(zip(names, truth.run(names, {**given, **pasts})))
        for name, array in expected.items():
            close(session.output(name), array, f"{name} at {past}")
        pasts = {name.replace("present", "past"): array for name, array in expected.items() if name != "logits"}
        past += tokens
        before, memory = memory, session.tensor("present_k_0").data
        assert before in (None, memory), "the cache moved"
    session.close()


def test_without_feeding_back(built):
    """The same artifact, its caches given at each run: results are dense and in the model's order."""
    path, artifact = built.compile(state_models.decoder(), "--state=auto")
    truth, session, rng = truth_session(path), Session(built.library, artifact), np.random.default_rng(4)
    for batch, tokens, past in [(1, 1, 7), (2, 4, 3), (1, 2, 0), (3, 1, 1), (1, 1, 7)]:
        given = {**feed(rng, batch, tokens, past), **caches(truth, batch, past, rng)}
        for name, array in given.items():
            session.bind(name, array)
        session.run()
        for output, array in zip(truth.get_outputs(), truth.run(None, given)):
            assert not session.tensor(output.name).strides
            close(session.output(output.name), array, f"{output.name} of {batch}, {tokens}, {past}")


def test_bad_shapes_are_one_error_and_change_nothing(built):
    path, artifact = built.compile(state_models.decoder(), "--state=auto")
    truth, session, rng = truth_session(path), Session(built.library, artifact), np.random.default_rng(5)
    pasts = caches(truth, 1, 2, rng)
    start(session, pasts)
    for name, array in feed(rng, 1, 1, 2).items():
        session.bind(name, array)
    session.run()
    with pytest.raises(Refused, match="past_k_0.*batch,2,past,8"):
        session.bind("past_k_0", np.zeros((1, 3, 2, 8), np.float32))
    session.bind("ids", np.zeros((2, 1), np.int64))  # batch 2 beside caches of 1
    with pytest.raises(Refused, match="bound with"):
        session.run()
    given = feed(rng, 1, 1, 3)
    for name, array in given.items():
        session.bind(name, array)
    session.run()
    assert session.output("present_v_1").shape == (1, 2, 4, 8)
    assert np.isfinite(session.output("logits")).all()


def bench(built, *arguments):
    done = built.raw("bench", *arguments, "--select=estimate", "--no-cache", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_bench_tokens(built):
    path, artifact = built.compile(state_models.decoder(), "--state=auto")
    for model, past, length in [(path, [], 0), (artifact, ["--past=9"], 9)]:
        report, says = bench(built, model, "--tokens=7", *past)
        assert says.count("dovetail:") <= 1, says  # an artifact's plan is made
        assert (report["past_before"], report["past_after"]) == (length, length + 7)
        assert report["in_place"] and report["states"] == 4 and report["tokens"] == 7
        assert 0 < report["p50_ms"] <= report["p95_ms"] <= report["max_ms"]
        assert report["tokens_per_second"] > 0
    _, plain = built.compile(state_models.decoder(), name="plain")
    report, says = bench(built, plain, "--tokens=3")
    assert not report["in_place"] and "copied" in says and report["past_before"] == 1


def refuses(built, *arguments, says):
    done = built.raw(*arguments)
    assert done.returncode == 2 and done.stdout == "", done
    assert len(done.stderr.splitlines()) == 1 and says in done.stderr, done.stderr


def test_bench_tokens_refuses(built):
    path, artifact = built.compile(state_models.encoder(), name="encoder")
    refuses(built, "bench", path, "--tokens=3", "--no-cache", says="no state was found by name")
    refuses(built, "bench", artifact, "--tokens=3", says="no state was found by name")
    refuses(built, "bench", path, "--tokens=3", "--state=ids=nothing", says="there is no output 'nothing'")
    refuses(built, "bench", path, "--tokens=3", "--state=ids", says="expected IN=OUT")
    refuses(built, "bench", path, "--tokens=3", "--state=ids=y", "--select=estimate", "--no-cache",
            says="differs from its output in type or rank")
    refuses(built, "bench", path, "--tokens=0", says="--tokens")
    refuses(built, "bench", path, "--past=3", says="--tokens")
    path, artifact = built.compile(state_models.decoder(), "--dim=past=4", name="fixed")
    refuses(built, "bench", artifact, "--tokens=3", says="export the model with a free length")
    _, plain = built.compile(state_models.decoder(), name="plain")
    refuses(built, "bench", plain, "--tokens=3", "--past=0", says="compile it with --state auto")
