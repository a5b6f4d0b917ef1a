# SPDX-License-Identifier: Apache-2.0
"""Weights quantised in blocks, in both encodings that exporters write, from ONNX to results, against onnxruntime:
com.microsoft.MatMulNBits, and DequantizeLinear of a 4-bit or 8-bit constant before MatMul or Gemm. Weights stay packed
in the artifact, and one native kernel takes both."""
import json
import os
import pathlib
import re
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("DOVETAIL_BUILD_DIR", ROOT / "build"))
FLOAT = TensorProto.FLOAT


def dovetail(*arguments, code=0) -> subprocess.CompletedProcess:
    done = subprocess.run([BUILD / "bin/dovetail", *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, f"{arguments}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def packed(numbers: np.ndarray) -> np.ndarray:
    """Two 4-bit numbers to a byte along the last axis, the first one low."""
    if numbers.shape[-1] % 2:
        numbers = np.concatenate([numbers, np.zeros_like(numbers[..., :1])], axis=-1)
    nibbles = numbers.astype(np.uint8) & 15
    return nibbles[..., ::2] | nibbles[..., 1::2] << 4


def tensor4(name: str, kind: int, numbers: np.ndarray) -> onnx.TensorProto:
    return helper.make_tensor(name, kind, numbers.shape, packed(numbers.reshape(1, -1)).tobytes(), raw=True)


def save(path: pathlib.Path, nodes, rows, depth, columns, constants) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "case", [helper.make_tensor_value_info("x", FLOAT, [*rows, depth])],
                              [helper.make_tensor_value_info("y", FLOAT, [*rows, columns])], constants)
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21),
                                                                   helper.make_opsetid("com.microsoft", 1)])
    onnx.save(model, path)
    return model


def nbits_model(path, rows, depth, columns, block=32, bits=4, zeros="given", bias=False, act=None, **attributes):
    draw = np.random.default_rng(depth + columns)
    blocks = -(-depth // block)
    weights = draw.integers(0, 1 << bits, (columns, blocks, block))
    constants = [numpy_helper.from_array(packed(weights) if bits == 4 else weights.astype(np.uint8), "w"),
                 numpy_helper.from_array(draw.uniform(0.01, 0.02, (columns, blocks)).astype(np.float32), "s")]
    inputs = ["x", "w", "s", "", "", ""]
    if zeros != "absent":
        points = draw.integers(0, 1 << bits, (columns, blocks))
        if zeros == "float":
            points = points.astype(np.float32)
        else:
            points = packed(points) if bits == 4 else points.astype(np.uint8)
        constants.append(numpy_helper.from_array(points, "z"))
        inputs[3] = "z"
    if bias:
        constants.append(numpy_helper.from_array(draw.uniform(-1, 1, columns).astype(np.float32), "b"))
        inputs[5] = "b"
    while not inputs[-1]:
        inputs.pop()
    stated = {"K": depth, "N": columns, "block_size": block, "bits": bits, **attributes}
    nodes = [helper.make_node("MatMulNBits", inputs, ["m" if act else "y"], name="product", domain="com.microsoft",
                              **stated)]
    if act:
        nodes.append(helper.make_node(act, ["m"], ["y"], name="follower"))
    save(path, nodes, rows, depth, columns, constants)


def qdq_model(path, rows, depth, columns, block=32, kind=TensorProto.INT4, zeros=True, turned=False, gemm=False):
    draw = np.random.default_rng(depth * columns)
    blocks = -(-depth // block)
    signed, bits = kind in (TensorProto.INT4, TensorProto.INT8), 4 if kind in (TensorProto.INT4, TensorProto.UINT4) else 8
    low = -(1 << (bits - 1)) if signed else 0

    def constant(name, numbers):
        if bits == 4:
            return tensor4(name, kind, numbers)
        return numpy_helper.from_array(numbers.astype(np.int8 if signed else np.uint8), name)

    def extents(*of):
        return of[::-1] if turned or gemm else of

    constants = [constant("w", draw.integers(low, low + (1 << bits), extents(depth, columns))),
                 numpy_helper.from_array(draw.uniform(0.01, 0.02, extents(blocks, columns)).astype(np.float32), "s")]
    if zeros:
        constants.append(constant("z", draw.integers(low, low + (1 << bits), extents(blocks, columns))))
    nodes = [helper.make_node("DequantizeLinear", ["w", "s", "z"] if zeros else ["w", "s"], ["d"], name="weights",
                              axis=1 if turned or gemm else 0, block_size=block)]
    if gemm:
        nodes.append(helper.make_node("Gemm", ["x", "d"], ["y"], name="product", transB=1))
    else:
        if turned:
            nodes.append(helper.make_node("Transpose", ["d"], ["t"], name="turn", perm=[1, 0]))
        nodes.append(helper.make_node("MatMul", ["x", "t" if turned else "d"], ["y"], name="product"))
    save(path, nodes, rows, depth, columns, constants)


def check(tmp_path, given, weight_bytes, native_steps=1):
    """Of each size in `given`, against onnxruntime; through native code in one step, and in the reference alone."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = tmp_path / "model.onnx"
    truth = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    for only in ("native,reference", "reference"):
        artifact = tmp_path / "model.dvt"
        dovetail("compile", model, "-o", artifact, f"--only={only}", "--no-cache", "--select=estimate")
        assert weight_bytes <= artifact.stat().st_size < weight_bytes + 100000
        steps = json.loads(dovetail("explain", artifact, "--json", "--all").stdout)["steps"]
        if only != "reference":
            assert [step["kernel"].split(":")[0] for step in steps].count("native") == native_steps == len(steps), steps
        for extents in given:
            x = np.random.default_rng(sum(extents)).uniform(-1, 1, extents).astype(np.float32)
            np.savez(tmp_path / "in.npz", x=x)
            dovetail("run", artifact, f"--inputs={tmp_path / 'in.npz'}", f"--output={tmp_path / 'out.npz'}")
            with np.load(tmp_path / "out.npz") as found:
                wanted = truth.run(None, {"x": x})[0]
                np.testing.assert_allclose(found["y"], wanted, rtol=0, atol=1e-5 * max(1, np.abs(wanted).max()))


@pytest.mark.parametrize("block", [16, 32, 64, 128, 256])
@pytest.mark.parametrize("zeros", ["absent", "given"])
def test_nbits(tmp_path, block, zeros):
    nbits_model(tmp_path / "model.onnx", [3], 600, 183, block, zeros=zeros)
    check(tmp_path, [(3, 600)], 600 * 183 // 2)


@pytest.mark.parametrize("zeros", ["absent", "given"])
def test_nbits_of_eight(tmp_path, zeros):
    nbits_model(tmp_path / "model.onnx", [5], 256, 64, bits=8, zeros=zeros)
    check(tmp_path, [(5, 256)], 256 * 64)


def test_nbits_with_bias_and_follower(tmp_path):
    nbits_model(tmp_path / "model.onnx", [1, 2], 256, 96, bias=True, act="Relu", accuracy_level=0)
    check(tmp_path, [(1, 2, 256)], 256 * 48)


def test_nbits_with_whole_float_zero_points(tmp_path):
    nbits_model(tmp_path / "model.onnx", [2], 128, 50, zeros="float")
    check(tmp_path, [(2, 128)], 64 * 50)


def test_nbits_of_free_rows(tmp_path):
    nbits_model(tmp_path / "model.onnx", ["batch", "rows"], 160, 70)
    check(tmp_path, [(1, 1, 160), (2, 20, 160), (1, 3, 160), (1, 7, 160)], 80 * 70)


KINDS = [TensorProto.INT4, TensorProto.UINT4, TensorProto.INT8, TensorProto.UINT8]


@pytest.mark.parametrize("kind,form,zeros", [(kind, "plain", True) for kind in KINDS] +
                         [(kind, "turned", False) for kind in KINDS] + [(TensorProto.INT4, "gemm", True)])
def test_dequantized(tmp_path, kind, form, zeros):
    qdq_model(tmp_path / "model.onnx", [2], 96, 75, 32, kind, zeros, form == "turned", form == "gemm")
    bits = 4 if kind in (TensorProto.INT4, TensorProto.UINT4) else 8
    check(tmp_path, [(2, 96)], 96 * 75 * bits // 8)


def test_dequantized_of_free_rows(tmp_path):
    qdq_model(tmp_path / "model.onnx", ["rows"], 490, 164, 16)
    check(tmp_path, [(1, 490), (40, 490), (2, 490)], 245 * 164)


def altered(path, change):
    model = onnx.load(path)
    change(model)
    onnx.save(model, path)


def constant(model, name):
    return next(one for one in model.graph.initializer if one.name == name)


def attribute(model, name):
    return next(one for one in model.graph.node[0].attribute if one.name == name)


REFUSED = {
    "depth": (lambda m: setattr(attribute(m, "K"), "i", 128), "K is 128, but A has the last extent 160"),
    "columns": (lambda m: setattr(attribute(m, "N"), "i", 71), r"B is a tensor\(uint8\) of .70,5,16.; with .*71,5,16"),
    "block": (lambda m: setattr(attribute(m, "block_size"), "i", 48), "block_size 48; a power of two"),
    "other block": (lambda m: setattr(attribute(m, "block_size"), "i", 64), "B is a tensor.*it must be.*70,3,32"),
    "bits": (lambda m: setattr(attribute(m, "bits"), "i", 2), "weights of 2 bits; 4 and 8 are supported"),
    "scales": (lambda m: constant(m, "s").CopyFrom(numpy_helper.from_array(np.ones((70, 4), np.float32), "s")),
               "scales is a .* of .70,4.; .* .350. or .70,5."),
    "zero points": (lambda m: constant(m, "z").CopyFrom(numpy_helper.from_array(np.ones((70, 5), np.uint8), "z")),
                    "zero_points is a .* of .70,5.; .* .210. or .70,3."),
    "zero point": (lambda m: constant(m, "z").CopyFrom(numpy_helper.from_array(np.full(350, .5, np.float32), "z")),
                   "element 0.5 at .0,0.; whole numbers from 0 to 15"),
    "missing": (lambda m: m.graph.node[0].attribute.remove(attribute(m, "K")), "lacks the attribute 'K'"),
    "unknown": (lambda m: m.graph.node[0].attribute.append(helper.make_attribute("shuffle", 1)),
                "attribute 'shuffle', which is not supported"),
    "order": (lambda m: m.graph.node[0].input.extend(["z"]), "input g_idx, which is not supported"),
    "operand": (lambda m: m.graph.node[0].input.__setitem__(1, "x"), "B is computed by the model"),
    "few": (lambda m: m.graph.node[0].input.__delitem__(slice(2, None)), "has 2 inputs; 3 to 6 are defined"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refusals(tmp_path, what):
    change, says = REFUSED[what]
    path = tmp_path / "model.onnx"
    nbits_model(path, [2], 160, 70)
    altered(path, change)
    done = dovetail("compile", path, "-o", tmp_path / "model.dvt", "--no-cache", code=2)
    assert len(done.stderr.splitlines()) == 1 and "'product' (MatMulNBits)" in done.stderr, done.stderr
    assert re.search(says, done.stderr), done.stderr
    assert not (tmp_path / "model.dvt").exists()


def test_refuses_scales_that_fit_no_blocks(tmp_path):
    path = tmp_path / "model.onnx"
    qdq_model(path, [2], 96, 75, zeros=False)
    altered(path, lambda m: constant(m, "s").CopyFrom(numpy_helper.from_array(np.ones((4, 75), np.float32), "s")))
    done = dovetail("compile", path, "-o", tmp_path / "model.dvt", "--no-cache", code=2)
    assert "DequantizeLinear 'weights'" in done.stderr and "blocks of 32 along axis 0" in done.stderr, done.stderr
