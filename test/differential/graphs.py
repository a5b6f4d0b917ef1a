# SPDX-License-Identifier: Apache-2.0
"""Random valid ONNX graphs with known values.

Every node is run by onnxruntime when it is added, so that only valid nodes with finite, tame results stay and every
value of the graph is known. Ops that jump (comparisons, rounding, arg max) take only values that every implementation
has to the bit: inputs, constants, integers, and what only moves those.
"""
import dataclasses
import random

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

TAME = 1e4  # largest magnitude of a value


@dataclasses.dataclass
class Value:
    name: str
    array: np.ndarray
    exact: bool  # the same bits in every implementation

    @property
    def shape(self) -> tuple:
        return self.array.shape

    @property
    def rank(self) -> int:
        return self.array.ndim


@dataclasses.dataclass
class Node:
    op: str
    inputs: list
    outputs: list
    attributes: dict


def type_of(array: np.ndarray) -> int:
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def silent(model: onnx.ModelProto, level=ort.GraphOptimizationLevel.ORT_DISABLE_ALL) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


class Graph:
    """Nodes in order; inputs, constants and every computed value by name."""

    def __init__(self, opset: int):
        self.opset, self.nodes, self.inputs, self.constants = opset, [], {}, {}
        self.values: dict[str, Value] = {}
        self.outputs: list[str] = []
        self.symbolic: dict[str, list] = {}  # extents of inputs as declared, where they are not all numbers

    def model(self) -> onnx.ModelProto:
        """Of what the outputs need."""
        needed, nodes = set(self.outputs), []
        for node in reversed(self.nodes):
            if needed.intersection(node.outputs):
                nodes.append(node)
                needed.update(name for name in node.inputs if name)
        made = [helper.make_node(n.op, n.inputs, n.outputs, name=n.outputs[0] or n.op, **n.attributes)
                for n in reversed(nodes)]
        declare = lambda name, array, extents=None: helper.make_tensor_value_info(
            name, type_of(array), array.shape if extents is None else extents)
        graph = helper.make_graph(
            made, "random", [declare(k, v, self.symbolic.get(k)) for k, v in self.inputs.items() if k in needed],
            # Extents of results are left open: with free inputs they may follow from them.
            [declare(k, self.values[k].array, [None] * self.values[k].rank) for k in self.outputs],
            [numpy_helper.from_array(v, k) for k, v in self.constants.items() if k in needed])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)],
                                 ir_version=8 if self.opset < 19 else 10)

    def given(self) -> dict:
        names = {value.name for value in self.model().graph.input}
        return {name: array for name, array in self.inputs.items() if name in names}


class Builder:
    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.np = np.random.default_rng(seed)
        self.graph = Graph(self.rng.choice([13, 17, 18, 19, 20, 21]))
        self.count = 0

    # ---- values ----------------------------------------------------------------------------------------------------
    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def noise(self, shape, dtype=np.float32, low=None, high=None) -> np.ndarray:
        if dtype == np.bool_:
            return self.np.random(shape) < 0.5
        if np.issubdtype(dtype, np.integer):
            least = 0 if np.issubdtype(dtype, np.unsignedinteger) else -9
            return self.np.integers(least if low is None else low, 10 if high is None else high, shape).astype(dtype)
        array = self.np.standard_normal(shape) if low is None else self.np.uniform(low, high, shape)
        return np.asarray(array, dtype)

    def add(self, array: np.ndarray, constant: bool) -> Value:
        value = Value(self.name("c" if constant else "x"), np.asarray(array), True)
        (self.graph.constants if constant else self.graph.inputs)[value.name] = value.array
        self.graph.values[value.name] = value
        return value

    def constant(self, array, dtype=None) -> Value:
        array = np.asarray(array, dtype)
        if self.rng.random() < 0.5:  # shared where there is one like it
            for value in self.graph.values.values():
                if value.name in self.graph.constants and value.array.dtype == array.dtype and \
                        np.array_equal(value.array, array):
                    return value
        return self.add(array, True)

    def operand(self, shape, dtype=np.float32, low=None, high=None) -> Value:
        """A value of this very shape: one that exists, a constant, or a new input."""
        found = [v for v in self.graph.values.values() if v.shape == tuple(shape) and v.array.dtype == dtype]
        if low is None and found and self.rng.random() < 0.6:
            return self.rng.choice(found)
        return self.add(self.noise(shape, dtype, low, high), self.rng.random() < 0.6)

    def pick(self, dtypes=(np.float32,), ranks=range(0, 9), exact=False, where=lambda v: True) -> Value | None:
        """Recent values are taken more often, so that chains grow."""
        found = [v for v in self.graph.values.values() if v.array.dtype.type in dtypes and v.rank in ranks and
                 (v.exact or not exact) and v.array.size <= 20000 and where(v)]
        if not found:
            return None
        return found[-1 - min(int(self.rng.expovariate(0.4)), len(found) - 1)] if self.rng.random() < 0.7 \
            else self.rng.choice(found)

    def extent(self) -> int:
        return self.rng.choice([1, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 31, 32, 33])

    def shape(self, rank: int, most: int = 4000) -> tuple:
        shape = [self.extent() for _ in range(rank)]
        while np.prod(shape) > most:
            shape[self.rng.randrange(rank)] = self.rng.choice([1, 2, 3])
        return tuple(shape)

    # ---- nodes -----------------------------------------------------------------------------------------------------
    def emit(self, op: str, inputs: list, results: int = 1, exact: bool = False, **attributes) -> bool:
        """False where onnxruntime refuses the node or its results are not tame."""
        names = [value.name if value else "" for value in inputs]
        node = Node(op, names, [self.name("v") for _ in range(results)], attributes)
        used = {value.name: value.array for value in inputs if value}
        trial = helper.make_graph([helper.make_node(op, names, node.outputs, **attributes)], "one",
                                  [helper.make_tensor_value_info(k, type_of(v), v.shape) for k, v in used.items()],
                                  [helper.make_empty_tensor_value_info(name) for name in node.outputs])
        model = helper.make_model(trial, opset_imports=[helper.make_opsetid("", self.graph.opset)],
                                  ir_version=8 if self.graph.opset < 19 else 10)
        try:
            arrays = silent(model).run(None, used)
        except Exception:  # whatever onnxruntime has against the node
            return False
        for array in arrays:
            if array.size > 20000 or array.ndim > 6 or array.size == 0 or type(array) is not np.ndarray:
                return False
            if np.issubdtype(array.dtype, np.floating) and (
                    not np.isfinite(array).all() or np.abs(array.astype(np.float64)).max() > TAME):
                return False
            if np.issubdtype(array.dtype, np.integer) and np.abs(array.astype(np.float64)).max() > 1e6:
                return False
        self.graph.nodes.append(node)
        whole = all(value is None or value.exact for value in inputs)
        for name, array in zip(node.outputs, arrays):
            same = whole and (exact or not np.issubdtype(array.dtype, np.floating))
            self.graph.values[name] = Value(name, array, same)
        return True

    def finish(self) -> Graph:
        """What nothing reads is an output, and so are a few that something does read, and perhaps an input."""
        graph = self.graph
        read = {name for node in graph.nodes for name in node.inputs}
        computed = [name for node in graph.nodes for name in node.outputs if name]
        graph.outputs = [name for name in computed if name not in read or self.rng.random() < 0.1]
        if self.rng.random() < 0.4:  # free extents
            weights = {node.inputs[1] for node in graph.nodes if node.op.startswith("Conv")}  # they name the window
            for name, array in graph.inputs.items():
                if array.ndim and name not in weights and self.rng.random() < 0.7:
                    extents = list(array.shape)
                    axis = self.rng.randrange(array.ndim)
                    extents[axis] = f"{name}_{axis}"
                    graph.symbolic[name] = extents
        return graph


def perturbed(graph: Graph, rng) -> dict:
    """The inputs, a little off."""
    return {name: array if not np.issubdtype(array.dtype, np.floating) else
            np.asarray(array * (1 + 2e-6 * rng.standard_normal(array.shape)), array.dtype)
            for name, array in graph.given().items()}
