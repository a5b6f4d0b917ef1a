# SPDX-License-Identifier: Apache-2.0
"""LSTM, GRU and RNN with the options of ONNX, against onnxruntime. A model holds many nodes, each with other options,
so that one compilation serves them all. onnxruntime has no batchwise layout: those nodes are judged by their twins of
the other layout, with operands and results transposed."""
import itertools
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("DOVETAIL_BUILD_DIR", ROOT / "build"))
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
SIDES = {"native": "--only=native,reference", "onednn": "--only=onednn,reference", "mixed": "--prefer=cost"}


def command(*arguments, code=0) -> subprocess.CompletedProcess:
    done = subprocess.run([BUILD / "bin/dovetail", *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          check=False)
    assert done.returncode == code, f"{arguments}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


class Net:
    """One recurrent node with its constants, and the values that only its runs know."""

    def __init__(self, number, op, direction="forward", layout=0, lengths=None, states=True, known_states=False,
                 bias=True, peepholes=False, results="yhc", steps=5, batch=3, width=7, hidden=9, **attributes):
        self.name, self.op, self.layout, self.attributes = f"n{number}", op, layout, attributes
        self.direction, self.hidden = direction, hidden
        self.sides = 2 if direction == "bidirectional" else 1
        self.results = [r for r in "yhc"[:3 if op == "LSTM" else 2]]
        self.wanted = [r for r in self.results if r in results]
        random = np.random.default_rng(number)
        rows = GATES[op] * hidden

        def numbers(*extents):
            return random.uniform(-1, 1, extents).astype(np.float32)

        self.constants = {"w": numbers(self.sides, rows, width), "r": numbers(self.sides, rows, hidden) / hidden**0.5}
        if bias:
            self.constants["b"] = numbers(self.sides, 2 * rows)
        if peepholes:
            self.constants["p"] = numbers(self.sides, 3 * hidden)
        self.feeds = {"x": numbers(steps, batch, width)}
        for state in ("h0", "c0")[:2 if op == "LSTM" else 1] if states else ():
            (self.constants if known_states else self.feeds)[state] = numbers(self.sides, batch, hidden)
        if lengths is not None:
            self.feeds["lengths"] = np.array(lengths, np.int32)
        self.steps, self.batch, self.width = steps, batch, width

    def outside(self, name, array, layout):
        """As the layout has it, from the layout of time first."""
        if not layout:
            return array
        return np.transpose(array, (2, 0, 1, 3) if name == "y" else (1, 0, 2))

    def node(self, layout):
        names = ["x", "w", "r", "b", "lengths", "h0", "c0", "p"][:8 if self.op == "LSTM" else 6]
        known = {**self.constants, **self.feeds}
        inputs = [f"{self.name}.{name}" if name in known else "" for name in names]
        while not inputs[-1]:
            inputs.pop()
        outputs = [f"{self.name}.{r}" if r in self.wanted else "" for r in self.results]
        while not outputs[-1]:
            outputs.pop()
        extra = {"layout": 1} if layout else {}
        return helper.make_node(self.op, inputs, outputs, self.name, hidden_size=self.hidden, direction=self.direction,
                                **extra, **self.attributes)


def build(nets, truth, symbolic=False, opset=17):
    """The model of all nets and its feeds; `truth`: time first, as onnxruntime takes it."""
    nodes, inputs, outputs, constants, feeds = [], [], [], [], {}
    for net in nets:
        layout = 0 if truth else net.layout
        nodes.append(net.node(layout))
        for name, array in net.constants.items():
            array = net.outside(name, array, layout) if name in ("h0", "c0") else array
            constants.append(numpy_helper.from_array(np.ascontiguousarray(array), f"{net.name}.{name}"))
        for name, array in net.feeds.items():
            array = array if name == "lengths" else net.outside(name, array, layout)
            kind = TensorProto.INT32 if name == "lengths" else TensorProto.FLOAT
            names = {net.steps: "T", net.batch: "N"}
            extents = [names.get(n, n) if symbolic else n for n in array.shape]
            inputs.append(helper.make_tensor_value_info(f"{net.name}.{name}", kind, extents))
            feeds[f"{net.name}.{name}"] = np.ascontiguousarray(array)
        for name in net.wanted:
            rank = 4 if name == "y" else 3
            outputs.append(helper.make_tensor_value_info(f"{net.name}.{name}", TensorProto.FLOAT, [None] * rank))
    graph = helper.make_graph(nodes, "recurrent", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), feeds


def truth_of(nets):
    model, feeds = build(nets, True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = dict(zip([output.name for output in session.get_outputs()], session.run(None, feeds)))
    return {f"{net.name}.{name}": net.outside(name, found[f"{net.name}.{name}"], net.layout)
            for net in nets for name in net.wanted}


def run(folder, model, feeds, side, code=0, options=()):
    onnx.save(model, folder / "model.onnx")
    np.savez(folder / "in.npz", **feeds)
    done = command("run", folder / "model.onnx", "--select=estimate", "--no-cache", SIDES[side], *options,
                   f"--inputs={folder / 'in.npz'}", f"--output={folder / 'out.npz'}", code=code)
    if code:
        return done
    with np.load(folder / "out.npz") as found:
        return dict(found)


def check(folder, nets, side, **form):
    model, feeds = build(nets, False, **form)
    found = run(folder, model, feeds, side)
    for name, wanted in truth_of(nets).items():
        about = next(f"{net.op} {net.direction} layout={net.layout} {net.attributes} {sorted(net.feeds)} {name}"
                     for net in nets if name.startswith(net.name + "."))
        assert found[name].shape == wanted.shape, about
        np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=1e-5, err_msg=about)


DIRECTIONS = ("forward", "reverse", "bidirectional")


def every_option(op):
    """Each combination of direction, layout, states and lengths, the other options taking turns."""
    turns = itertools.count()
    for direction, layout, states, lengths in itertools.product(DIRECTIONS, (0, 1), (False, True), (None, [5, 1, 3])):
        turn = next(turns)
        attributes = {"clip": 0.6} if turn % 3 == 1 else {}
        if op == "GRU":
            attributes["linear_before_reset"] = turn % 2
        if op == "LSTM" and turn % 5 == 2:
            attributes["input_forget"] = 1
        yield Net(turn, op, direction, layout, lengths, states, known_states=turn % 4 == 3, bias=turn % 7 != 4,
                  peepholes=op == "LSTM" and turn % 4 == 1, results=("yhc", "y", "h", "yc", "hc")[turn % 5],
                  batch=3, **attributes)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("op", GATES)
def test_every_option(tmp_path, op, side):
    check(tmp_path, [net for net in every_option(op) if net.wanted], side)


@pytest.mark.parametrize("side", ("native", "onednn"))
def test_sizes(tmp_path, side):
    """Hidden units and batches around what fits a vector, a tile and a task."""
    sizes = [(1, 1, 1, 1), (2, 1, 3, 16), (3, 1, 16, 17), (1, 5, 40, 64), (7, 26, 8, 33), (40, 2, 5, 48),
             (9, 1, 31, 130)]
    nets = [Net(100 + i, op, DIRECTIONS[i % 3], steps=steps, batch=batch, width=width, hidden=hidden,
                **({"linear_before_reset": 1} if op == "GRU" and i % 2 else {}))
            for i, ((steps, batch, width, hidden), op) in enumerate(itertools.product(sizes, GATES))]
    check(tmp_path, nets, side)


def test_activations(tmp_path):
    functions = [("Relu", [], []), ("Affine", [0.7], [0.1]), ("LeakyRelu", [0.2], []), ("ThresholdedRelu", [0.3], []),
                 ("ScaledTanh", [0.9], [0.8]), ("HardSigmoid", [0.3], [0.4]), ("Elu", [0.7], []), ("Softsign", [], []),
                 ("Softplus", [], []), ("Sigmoid", [], [])]
    nets = [Net(i, "RNN", activations=[name], **({"activation_alpha": alpha} if alpha else {}),
                **({"activation_beta": beta} if beta else {}))
            for i, (name, alpha, beta) in enumerate(functions)]
    nets.append(Net(20, "LSTM", "bidirectional", activation_alpha=[0.3, 0.5], activation_beta=[0.4],
                    activations=["HardSigmoid", "Tanh", "Softsign", "Sigmoid", "Elu", "Tanh"]))
    nets.append(Net(21, "GRU", "bidirectional", activations=["Sigmoid", "Softsign", "HardSigmoid", "Tanh"],
                    activation_alpha=[0.25], activation_beta=[0.5]))
    check(tmp_path, nets, "native")


@pytest.mark.parametrize("side", SIDES)
def test_extents_known_when_running(tmp_path, side):
    nets = [Net(i, op, direction, layout, lengths, steps=11, batch=10, width=6, hidden=20)
            for i, (op, direction, layout, lengths) in enumerate(
                [("LSTM", "bidirectional", 0, None), ("GRU", "reverse", 1, range(1, 11)),
                 ("LSTM", "reverse", 0, range(1, 11)), ("RNN", "bidirectional", 1, None)])]
    check(tmp_path, nets, side, symbolic=True)


@pytest.mark.parametrize("side", ("native", "mixed"))
@pytest.mark.parametrize("lengths", ([5, 6, 1], [5, -1, 2]))
def test_lengths_outside_the_sequence(tmp_path, side, lengths):
    model, feeds = build([Net(1, "LSTM", lengths=lengths)], False)
    done = run(tmp_path, model, feeds, side, code=2)
    assert f"sequence length {lengths[1]} is outside [0, 5]" in done.stderr


def test_sequences_without_steps(tmp_path):
    """Their states stay as they were."""
    net = Net(1, "LSTM", "bidirectional", lengths=[0, 2, 0])
    model, feeds = build([net], False)
    found = run(tmp_path, model, feeds, "native")
    assert not found["n1.y"][:, :, [0, 2]].any()
    np.testing.assert_array_equal(found["n1.h"][:, [0, 2]], net.feeds["h0"][:, [0, 2]])
    np.testing.assert_array_equal(found["n1.c"][:, [0, 2]], net.feeds["c0"][:, [0, 2]])
    np.testing.assert_allclose(found["n1.y"][1, 0, 1], found["n1.h"][0, 1])


@pytest.mark.parametrize("name, extents", (("w", (1, 35, 7)), ("r", (1, 36, 8)), ("b", (1, 71))))
def test_weights_that_do_not_fit(tmp_path, name, extents):
    net = Net(1, "LSTM")
    net.constants[name] = np.linspace(0, 1, num=np.prod(extents), dtype=np.float32).reshape(extents)
    model, feeds = build([net], False)
    assert "n1" in run(tmp_path, model, feeds, "mixed", code=2).stderr
