# SPDX-License-Identifier: Apache-2.0
"""Quantised models of one heavy op, in the forms that exporters write, and their answers by several ways.

A form says how the op is written: between DequantizeLinear and QuantizeLinear, as QLinearConv or QLinearMatMul, or as
ConvInteger or MatMulInteger with a cast and a product behind it. Scales are chosen so that results use the range.
"""
import dataclasses
import functools
import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("DOVETAIL_BUILD_DIR", ROOT / "build"))
TYPES = {"u8": np.uint8, "s8": np.int8}


@dataclasses.dataclass
class Heavy:
    """One convolution or matrix product."""
    op: str = "Conv"  # Conv, MatMul, Gemm
    x: str = "u8"
    w: str = "s8"
    y: str = "u8"
    xzero: int = 128
    wzero: int = 0
    yzero: int = 120
    per_channel: bool = True
    bias: bool = True
    between: tuple = ()  # element-wise ops before the quantisation
    group: int = 1
    spread: float = 1.0  # of the scales of channels, as a power of ten
    wscale: float = 1.0
    kernel: int = 3
    pad: int = 1
    stride: int = 1
    x_shape: tuple = (1, 16, 9, 11)
    channels: int = 24
    transpose: bool = False  # Gemm: transB


class Model:
    """Nodes and constants of a model whose input is `x`."""

    def __init__(self, heavy: Heavy, seed: int = 0):
        self.heavy = heavy
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs, self.outputs = [], {}, {}, {}
        h = heavy
        if h.op == "Conv":
            w_shape = (h.channels, h.x_shape[1] // h.group, h.kernel, h.kernel)
            terms, axis = int(np.prod(w_shape[1:])), 0
        else:
            w_shape = (h.x_shape[-1], h.channels)
            terms, axis = h.x_shape[-1], 1
            if h.transpose:
                w_shape, axis = w_shape[::-1], 0
        self.axis = axis
        low, high = np.iinfo(TYPES[h.w]).min, np.iinfo(TYPES[h.w]).max
        self.add("w", self.rng.integers(low, high + 1, w_shape).astype(TYPES[h.w]))
        count = h.channels if h.per_channel else 1
        powers = self.rng.uniform(-h.spread, 0, count) if h.per_channel else np.zeros(1)
        wscale = (h.wscale / (73 * np.sqrt(terms)) * 10.0 ** powers).astype(np.float32)
        self.add("ws", wscale if h.per_channel else wscale[0].reshape(()))
        self.add("wz", np.full(count, h.wzero, TYPES[h.w]) if h.per_channel else np.array(h.wzero, TYPES[h.w]))
        self.add("xs", np.float32(0.02))
        self.add("xz", np.array(h.xzero, TYPES[h.x]))
        self.add("ys", np.float32(0.035 * h.wscale))
        self.add("yz", np.array(h.yzero, TYPES[h.y]))
        self.bias = self.rng.integers(-20000, 20000, h.channels).astype(np.int32)

    def add(self, name: str, value) -> str:
        self.constants[name] = np.asarray(value)
        return name

    def node(self, op: str, inputs: str, outputs: str, **attributes):
        self.nodes.append(helper.make_node(op, inputs.split(), outputs.split(), name=f"{op}_{len(self.nodes)}",
                                           **attributes))

    def window(self) -> dict:
        h = self.heavy
        if h.op != "Conv":
            return {}
        return {"group": h.group, "kernel_shape": [h.kernel] * 2, "pads": [h.pad] * 4, "strides": [h.stride] * 2}

    def qdq(self) -> "Model":
        """x (integers) -> DequantizeLinear -> op -> ... -> QuantizeLinear."""
        h = self.heavy
        self.inputs["x"] = (TYPES[h.x], h.x_shape)
        self.node("DequantizeLinear", "x xs xz", "xf")
        self.node("DequantizeLinear", "w ws wz", "wf", **({"axis": self.axis} if h.per_channel else {}))
        operands = "xf wf"
        if h.bias and h.op != "MatMul":
            self.add("b", self.bias)
            self.add("bs", self.constants["xs"] * self.constants["ws"])
            self.add("bz", np.zeros_like(self.constants["bs"], np.int32))
            self.node("DequantizeLinear", "b bs bz", "bf", **({"axis": 0} if h.per_channel else {}))
            operands += " bf"
        self.node(h.op, operands, "t0", **self.window(), **({"transB": 1} if h.transpose else {}))
        current = "t0"
        for i, op in enumerate(h.between):
            extra = ""
            if op == "Clip":
                extra = f" {self.add('low', np.float32(-1))} {self.add('high', np.float32(2.5))}"
            elif op == "Add":
                shape = (1, h.channels, 1, 1) if h.op == "Conv" else (h.channels,)
                extra = " " + self.add("addend", self.rng.standard_normal(shape).astype(np.float32))
            self.node(op, current + extra, f"t{i + 1}")
            current = f"t{i + 1}"
        self.node("QuantizeLinear", f"{current} ys yz", "y")
        self.outputs["y"] = TYPES[h.y]
        return self

    def qlinear(self) -> "Model":
        h = self.heavy
        self.inputs["x"] = (TYPES[h.x], h.x_shape)
        bias = ""
        if h.bias and h.op == "Conv":
            bias = " " + self.add("b", self.bias)
        op = "QLinearConv" if h.op == "Conv" else "QLinearMatMul"
        self.node(op, "x xs xz w ws wz ys yz" + bias, "y", **self.window())
        self.outputs["y"] = TYPES[h.y]
        return self

    def integer(self) -> "Model":
        """As dynamic quantisation writes it; x is f32."""
        h = self.heavy
        self.inputs["x"] = (np.float32, h.x_shape)
        self.node("DynamicQuantizeLinear", "x", "xq dxs dxz")
        op = "ConvInteger" if h.op == "Conv" else "MatMulInteger"
        self.constants["wz"] = np.array(h.wzero, TYPES[h.w])
        if h.op == "Conv" and self.constants["ws"].ndim == 1:
            self.constants["ws"] = self.constants["ws"].reshape(-1, 1, 1)
        self.node(op, "xq w dxz wz", "sums", **self.window())
        self.node("Cast", "sums", "real", to=TensorProto.FLOAT)
        self.node("Mul", "dxs ws", "scales")
        self.node("Mul", "real scales", "y0")
        shape = (h.channels, 1, 1) if h.op == "Conv" else (h.channels,)
        self.add("addend", self.rng.standard_normal(shape).astype(np.float32))
        self.node("Add", "y0 addend", "y")
        self.outputs["y"] = np.float32
        return self

    def save(self, path: pathlib.Path, opset: int = 13) -> pathlib.Path:
        used = {name for node in self.nodes for name in node.input}
        kind = helper.np_dtype_to_tensor_dtype
        graph = helper.make_graph(
            self.nodes, "quantized",
            [helper.make_tensor_value_info(n, kind(np.dtype(t)), s) for n, (t, s) in self.inputs.items()],
            [helper.make_tensor_value_info(n, kind(np.dtype(t)), None) for n, t in self.outputs.items()],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items() if name in used])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
        return path

    def values(self) -> dict:
        made = {}
        for name, (kind, shape) in self.inputs.items():
            if kind == np.float32:
                made[name] = self.rng.standard_normal(shape).astype(np.float32)
            else:
                info = np.iinfo(kind)
                made[name] = self.rng.integers(info.min, info.max + 1, shape).astype(kind)
        return made


def dovetail(*arguments, code=0) -> subprocess.CompletedProcess:
    done = subprocess.run([BUILD / "bin/dovetail", *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, f"{arguments}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def run(path: pathlib.Path, inputs: dict, *arguments: str) -> dict:
    given, taken = path.with_suffix(".in.npz"), path.with_suffix(".out.npz")
    np.savez(given, **inputs)
    dovetail("run", path, "--select=estimate", "--no-cache", "--threads=2", f"--inputs={given}", f"--output={taken}",
             *arguments)
    with np.load(taken) as archive:
        return {name: archive[name] for name in archive.files}


def steps(path: pathlib.Path, *arguments: str) -> list:
    """The plan's steps, as explain has them."""
    artifact = path.with_suffix(".dvt")
    dovetail("compile", path, "-o", artifact, "--select=estimate", "--no-cache", "--threads=2", *arguments)
    return json.loads(dovetail("explain", artifact, "--json", "--all").stdout)["steps"]


@functools.cache
def generations() -> tuple:
    """The providers of oneDNN whose library is here."""
    providers = json.loads(dovetail("doctor", "--json").stdout)["providers"]
    return tuple(provider["name"] for provider in providers if provider["name"] in ("onednn", "onednn2")
                 and not any(library["missing"] for library in provider["libraries"]))


def onnxruntime(path: pathlib.Path, inputs: dict) -> dict:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))


def quanta(a: np.ndarray, b: np.ndarray) -> int:
    """Largest difference of integers."""
    assert a.shape == b.shape and a.dtype == b.dtype, (a.shape, b.shape, a.dtype, b.dtype)
    return int(np.abs(a.astype(np.int64) - b.astype(np.int64)).max(initial=0))
