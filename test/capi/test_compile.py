# SPDX-License-Identifier: Apache-2.0
"""dvt_compile does what `dovetail compile` does, and says why where it does not."""
import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

BAD_INPUT, UNAVAILABLE = 2, 3


@pytest.fixture
def folding(built) -> str:
    """y = x + relu(a b), of which all but the sum is constant."""
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, 8])
    constants = [numpy_helper.from_array(np.random.default_rng(at).standard_normal((8, 8), np.float32), name)
                 for at, name in enumerate("ab")]
    nodes = [helper.make_node("MatMul", ["a", "b"], ["t"], name="product"),
             helper.make_node("Relu", ["t"], ["u"], name="positive"),
             helper.make_node("Add", ["x", "u"], ["y"], name="sum")]
    graph = helper.make_graph(nodes, "folding", [value("x")], [value("y")], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, built.work / "folding.onnx")
    return "folding.onnx"


def kernels(built, artifact: str) -> list:
    return [(step["nodes"], step["kernel"]) for step in built.explain(artifact)["steps"]]


def test_constants_are_folded_whoever_may_be_chosen(built, folding):
    """The reference folds them, although no step may run on it."""
    answer = built.compile(folding, "api.dvt", only="native")
    assert answer["code"] == 0, answer["message"]
    made = kernels(built, "api.dvt")
    assert [nodes for nodes, _ in made] == ["sum"] and made[0][1].startswith("native:")
    built.command("compile", folding, "--only=native", "--select=estimate", "--no-cache", "-o", "command.dvt")
    assert made == kernels(built, "command.dvt")


def test_a_provider_that_is_not_there(built, folding):
    answer = built.compile(folding, "api.dvt", only="native,nonsense")
    assert answer["code"] == UNAVAILABLE
    assert re.search("only=nonsense: there is no such provider; found: .*native.*reference", answer["message"])


def test_plugins_that_cannot_be_loaded_are_logged(built, folding):
    folder = built.work / "plugins"
    folder.mkdir()
    (folder / "dovetail_text.so").write_text("not a library\n")
    answer = built.compile(folding, "api.dvt", plugin_path=str(folder), log_level=2)
    assert answer["code"] == 0, answer["message"]
    ((level, message),) = answer["log"]
    assert level == 2 and re.search(r"dovetail_text\.so is not used: not a shared library", message)
    assert built.compile(folding, "api.dvt", plugin_path=str(folder), log_level=3)["log"] == []


def test_lock_files_are_refused(built, folding):
    answer = built.compile(folding, "api.dvt", lock_file="plan.lock")
    assert answer["code"] == BAD_INPUT and "lock_file is 'plan.lock'" in answer["message"]
    assert "cache_path" in answer["message"]
    assert not (built.work / "api.dvt").exists()
