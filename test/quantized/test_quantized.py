# SPDX-License-Identifier: Apache-2.0
"""Quantised convolutions and matrix products against onnxruntime without optimisations and against the literal graph in
the reference provider: integer results may differ by one quantum, real ones by rounding. Every case runs with the
libraries, and says whether a library's kernel has to have run."""
import dataclasses

import numpy as np
import pytest

from quantized import ROOT, Heavy, Model, dovetail, generations, onnxruntime, quanta, run, steps

CONV = Heavy()
MATMUL = Heavy(op="MatMul", x_shape=(2, 7, 48), channels=40, bias=False)
GEMM = Heavy(op="Gemm", x_shape=(7, 48), channels=40)


def but(base: Heavy, **changes) -> Heavy:
    return dataclasses.replace(base, **changes)


def check(tmp_path, model: Model, fused=True, opset=13, mixed=False, second=True):
    """Right with libraries and without; with `fused`, a library runs the heavy op together with what is around it, and
    without `second` that need not be oneDNN 2. With `mixed`, own kernels take part, too."""
    path = model.save(tmp_path / "model.onnx", opset)
    inputs = model.values()
    truth = onnxruntime(path, inputs)
    literal = run(path, inputs, "--only=reference")
    for name, value in truth.items():
        if value.dtype == np.float32:
            assert np.abs(literal[name] - value).max() <= 1e-5 * max(np.abs(value).max(), 1e-30)
        else:
            assert len(np.unique(value)) > 16, "the case is too easy"
            assert quanta(literal[name], value) <= 1
    libraries = [[f"--only={name},reference"] for name in generations()]
    for arguments in libraries + [[], ["--only=native,reference"]] * mixed:
        found = run(path, inputs, *arguments)
        for name, value in literal.items():
            if value.dtype == np.float32:
                assert np.abs(found[name] - value).max() <= 1e-5 * max(np.abs(value).max(), 1e-30), arguments
            else:
                assert quanta(found[name], value) <= 1, arguments
                assert np.mean(found[name] != value) < 0.02, arguments
    for name in generations() if fused else ():
        kernels = [step["kernel"] for step in steps(path, f"--only={name},reference")]
        assert any(kernel.startswith(f"{name}:") for kernel in kernels) or (name == "onednn2" and not second), kernels
    return path


@pytest.mark.parametrize("base", [CONV, MATMUL, GEMM], ids=lambda h: h.op)
@pytest.mark.parametrize("x,xzero", [("u8", 128), ("u8", 0), ("u8", 255), ("s8", -128), ("s8", 127), ("s8", 3)])
@pytest.mark.parametrize("y,yzero", [("u8", 0), ("u8", 255), ("s8", -7)])
def test_types_and_zero_points(tmp_path, base, x, xzero, y, yzero):
    check(tmp_path, Model(but(base, x=x, xzero=xzero, y=y, yzero=yzero)).qdq())


@pytest.mark.parametrize("base", [CONV, MATMUL, GEMM, but(GEMM, transpose=True)], ids=lambda h: f"{h.op}{h.transpose}")
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("spread", [0, 3])
def test_scales(tmp_path, base, per_channel, spread):
    """Those of channels differ by up to three powers of ten."""
    check(tmp_path, Model(but(base, per_channel=per_channel, spread=spread)).qdq())


@pytest.mark.parametrize("wscale", [1e-6, 1e5])
@pytest.mark.parametrize("base", [but(CONV, bias=False), MATMUL], ids=lambda h: h.op)
def test_scales_far_from_one(tmp_path, base, wscale):
    check(tmp_path, Model(but(base, wscale=wscale, per_channel=False, spread=0)).qdq())


@pytest.mark.parametrize("base", [CONV, MATMUL, GEMM], ids=lambda h: h.op)
@pytest.mark.parametrize("between", [("Relu",), ("Clip",), ("Add",), ("Add", "Relu"), ("Sigmoid",)],
                         ids=lambda b: "+".join(b))
def test_ops_between(tmp_path, base, between):
    check(tmp_path, Model(but(base, between=between)).qdq(), mixed=True)


@pytest.mark.parametrize("changes", [dict(kernel=1, pad=0), dict(stride=2), dict(group=4), dict(channels=16, group=16),
                                     dict(kernel=5, pad=0), dict(x_shape=(2, 3, 20, 17)), dict(channels=7)],
                         ids=lambda c: ",".join(c))
def test_windows(tmp_path, changes):
    check(tmp_path, Model(but(CONV, **changes)).qdq())


@pytest.mark.parametrize("base", [CONV, MATMUL], ids=lambda h: h.op)
@pytest.mark.parametrize("x,w,y", [("u8", "s8", "u8"), ("s8", "s8", "s8"), ("u8", "u8", "u8")])
@pytest.mark.parametrize("per_channel", [True, False])
def test_qlinear(tmp_path, base, x, w, y, per_channel):
    if per_channel and w == "u8":
        pytest.skip("onnxruntime has no such kernel")
    zeros = dict(xzero=100 if x == "u8" else 11, wzero=131 if w == "u8" else 0, yzero=90 if y == "u8" else -30)
    check(tmp_path, Model(but(base, x=x, w=w, y=y, per_channel=per_channel, **zeros)).qlinear(), fused=w == "s8")


@pytest.mark.parametrize("w,wzero", [("s8", 0), ("u8", 128), ("u8", 100)])
@pytest.mark.parametrize("per_channel", [True, False])
def test_dynamic_matmul(tmp_path, w, wzero, per_channel):
    check(tmp_path, Model(but(MATMUL, w=w, wzero=wzero, per_channel=per_channel)).integer(), mixed=True)


@pytest.mark.parametrize("w,wzero", [("u8", 128), ("u8", 90)])
def test_dynamic_conv(tmp_path, w, wzero):
    check(tmp_path, Model(but(CONV, w=w, wzero=wzero)).integer(), fused=wzero == 128)


def test_weights_of_u8(tmp_path):
    check(tmp_path, Model(but(CONV, w="u8", wzero=128)).qdq())
    check(tmp_path, Model(but(MATMUL, w="u8", wzero=117, per_channel=False)).qdq())


def test_fan_out(tmp_path):
    """One dequantisation feeds two convolutions and an addition, as in a residual block."""
    model = Model(but(CONV, channels=16)).qdq()
    model.node("DequantizeLinear", "y ys yz", "yf")
    model.node("Conv", "yf wf", "second", **model.window())
    model.node("QuantizeLinear", "second ys yz", "secondq")
    model.node("DequantizeLinear", "secondq ys yz", "secondf")
    model.node("Add", "yf secondf", "sum")
    model.node("Relu", "sum", "positive")
    model.node("QuantizeLinear", "positive ys yz", "z")
    model.node("Conv", "yf wf", "real", **model.window())
    model.outputs = {"z": np.uint8, "secondq": np.uint8, "real": np.float32}
    path = model.save(tmp_path / "model.onnx")
    inputs = model.values()
    truth, found = onnxruntime(path, inputs), run(path, inputs, "--only=onednn,reference")
    # One quantum of y becomes at most the sum of a row of weights, and rarely more than a few.
    assert quanta(found["z"], truth["z"]) <= 4
    assert np.abs(found["real"] - truth["real"]).max() <= 0.02 * np.abs(truth["real"]).max()


@pytest.mark.parametrize("op,other", [("Add", "s8"), ("Add", "f32"), ("Sub", "u8")])
@pytest.mark.parametrize("result", ["u8", "s8", "f32"])
@pytest.mark.parametrize("relu", [True, False])
def test_sums_of_quantised_tensors(tmp_path, op, other, result, relu):
    """Of two grids, with the result on a third."""
    model = Model(but(CONV, x_shape=(2, 17, 5, 6)))
    kinds = {"u8": np.uint8, "s8": np.int8, "f32": np.float32}
    model.inputs = {"x": (np.uint8, (2, 17, 5, 6)), "r": (kinds[other], (2, 17, 5, 6))}
    model.node("DequantizeLinear", "x xs xz", "a")
    second = "r"
    if other != "f32":
        model.add("rs", np.float32(0.013))
        model.add("rz", np.array(-9 if other == "s8" else 77, kinds[other]))
        model.node("DequantizeLinear", "r rs rz", "b")
        second = "b"
    model.node(op, f"a {second}", "sum")
    if relu:
        model.node("Relu", "sum", "sumr")
    last = "sumr" if relu else "sum"
    if result == "f32":
        model.node("Identity", last, "y")
    else:
        model.constants["yz"] = np.array(-20 if result == "s8" else 99, kinds[result])
        model.node("QuantizeLinear", f"{last} ys yz", "y")
    model.outputs = {"y": kinds[result]}
    check(tmp_path, model, fused=kinds[other] != np.float32, mixed=True, second=False)


@pytest.mark.parametrize("kind,zero", [("u8", 0), ("u8", 130), ("s8", -128), ("s8", 5)])
def test_quantisation_alone(tmp_path, kind, zero):
    model = Model(but(CONV, x_shape=(1, 24, 7, 5)))
    model.inputs = {"x": (np.float32, (1, 24, 7, 5))}
    model.add("zero", np.array(zero, np.uint8 if kind == "u8" else np.int8))
    model.node("QuantizeLinear", "x xs zero", "q")
    model.node("DequantizeLinear", "q ys zero", "y")
    model.node("QuantizeLinear", "y xs zero", "again")
    integer = model.constants["zero"].dtype.type
    model.outputs = {"q": integer, "y": np.float32, "again": integer}
    path = model.save(tmp_path / "model.onnx")
    inputs = model.values()
    truth = onnxruntime(path, inputs)
    for only in ("reference", "onednn,reference"):
        found = run(path, inputs, f"--only={only}")
        assert quanta(found["q"], truth["q"]) <= 1 and quanta(found["again"], truth["again"]) <= 2
        assert np.abs(found["y"] - truth["y"]).max() <= 1.001 * model.constants["ys"]


@pytest.mark.parametrize("opset", [13, 19, 21])
def test_movement_stays_in_integers(tmp_path, opset):
    """Reshape, transpose, max-pool, slice, gather and concat between equal grids cost no conversion."""
    model = Model(but(CONV, channels=16)).qdq()
    model.add("to", np.array([1, 16, 99], np.int64))
    model.add("some", np.array([3, 0, 5], np.int64))
    for i, (op, extra, attributes) in enumerate([
            ("MaxPool", "", {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [1, 1, 1, 1]}),
            ("Reshape", " to", {}), ("Transpose", "", {"perm": [0, 2, 1]}), ("Gather", " some", {"axis": 1})]):
        before = "y" if i == 0 else f"q{i - 1}"
        model.node("DequantizeLinear", f"{before} ys yz", f"f{i}")
        model.node(op, f"f{i}" + extra, f"m{i}", **attributes)
        model.node("QuantizeLinear", f"m{i} ys yz", f"q{i}")
    model.outputs = {"q3": np.uint8}
    path = check(tmp_path, model, opset=opset, mixed=True)
    ops = [step["ops"] for step in steps(path, "--only=onednn,reference")]
    assert not any("quantize" in text and "conv" not in text for text in ops), ops


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("form", ["product", "dequantised"])
def test_weights_alone(tmp_path, per_channel, form):
    """Activations stay f32; weights are written as a cast and a product, or dequantised."""
    model = Model(but(MATMUL, per_channel=per_channel, spread=2))
    model.inputs = {"x": (np.float32, (2, 7, 48)), "rows": (np.int64, (2, 3))}
    model.add("table", model.rng.integers(-128, 128, (11, 6)).astype(np.int8))
    model.add("tablescale", model.rng.uniform(0.1, 1, (11, 1)).astype(np.float32))
    if form == "product":
        model.node("Cast", "w", "wc", to=1)
        model.node("Mul", "wc ws", "wf")
    else:
        model.node("DequantizeLinear", "w ws wz", "wf", **({"axis": 1} if per_channel else {}))
    model.node("MatMul", "x wf", "product")
    model.add("addend", model.rng.standard_normal(40).astype(np.float32))
    model.node("Add", "product addend", "y")
    model.node("Cast", "table", "tc", to=1)
    model.node("Mul", "tc tablescale", "tf")
    model.node("Gather", "tf rows", "picked", axis=0)
    model.outputs = {"y": np.float32, "picked": np.float32}
    path = model.save(tmp_path / "model.onnx")
    inputs = {"x": model.rng.standard_normal((2, 7, 48)).astype(np.float32), "rows": np.array([[0, 10, 3], [-1, 5, 5]])}
    truth = onnxruntime(path, inputs)
    for only in ("reference", "onednn,reference"):
        found = run(path, inputs, f"--only={only}")
        assert np.abs(found["y"] - truth["y"]).max() <= 1e-5 * np.abs(truth["y"]).max()
        assert np.array_equal(found["picked"], truth["picked"])
    plan = steps(path, "--only=onednn,reference")
    assert any("onednn" in step["kernel"] and "dequantize_linear+mat_mul" in step["ops"] for step in plan), plan
    assert not any("i8[11,6]" in step["problem"] and "f32[11,6]" in step["problem"] for step in plan), plan


@pytest.mark.parametrize("a", ["u8", "s8"])
@pytest.mark.parametrize("b", ["u8", "s8"])
@pytest.mark.parametrize("turned", [True, False])
def test_products_of_activations(tmp_path, a, b, turned):
    """As in attention: neither side is constant, and the right one may come transposed."""
    model = Model(but(MATMUL, x_shape=(2, 3, 9, 32), channels=11, y="s8", yzero=2))
    shape = (2, 3, 11, 32) if turned else (2, 3, 32, 11)
    kinds = {"u8": np.uint8, "s8": np.int8}
    model.inputs = {"x": (kinds[a], (2, 3, 9, 32)), "r": (kinds[b], shape)}
    model.constants["xz"] = np.array(120 if a == "u8" else 6, kinds[a])
    model.add("rs", np.float32(0.004))
    model.add("rz", np.array(131 if b == "u8" else -14, kinds[b]))
    model.node("DequantizeLinear", "x xs xz", "left")
    model.node("DequantizeLinear", "r rs rz", "right")
    if turned:
        model.node("Transpose", "right", "upright", perm=[0, 1, 3, 2])
    model.node("MatMul", "left " + ("upright" if turned else "right"), "product")
    model.node("QuantizeLinear", "product ys yz", "y")
    model.outputs = {"y": np.int8}
    path = check(tmp_path, model, second=b == "s8")
    ops = [step["ops"] for step in steps(path, "--only=onednn,reference") if "onednn" in step["kernel"]]
    assert any("mat_mul" in text and "quantize" in text for text in ops), ops


@pytest.mark.parametrize("base,form", [(MATMUL, "qdq"), (CONV, "qdq"), (MATMUL, "integer"), (CONV, "qlinear")],
                         ids=lambda v: v if isinstance(v, str) else v.op)
def test_free_extents(tmp_path, base, form):
    """One plan serves batches of several sizes."""
    model = getattr(Model(base), form)()
    name, (kind, shape) = next(iter(model.inputs.items()))
    model.inputs[name] = (kind, ("N", *shape[1:]))
    path = model.save(tmp_path / "model.onnx")
    for size in (3, 1, 5):
        model.inputs[name] = (kind, (size, *shape[1:]))
        inputs = model.values()
        truth, found = onnxruntime(path, inputs), run(path, inputs, "--only=onednn,reference")
        if truth["y"].dtype == np.float32:
            assert np.abs(found["y"] - truth["y"]).max() <= 1e-5 * np.abs(truth["y"]).max()
        else:
            assert quanta(found["y"], truth["y"]) <= 1


@pytest.mark.parametrize("scale", [2e-38, 1e-42])
def test_channels_that_are_all_bias(tmp_path, scale):
    """A bias divided by such a scale is no number that f32 has."""
    model = Model(but(CONV, bias=False, between=("Add",), spread=0)).qdq()
    model.constants["ws"][[3, 17]] = scale
    check(tmp_path, model)


def test_libraries_held_to_older_instructions(monkeypatch):
    """Without those for bytes, libraries have implementations whose sums saturate at 16 bits."""
    monkeypatch.setenv("DNNL_MAX_CPU_ISA", "AVX512_CORE")
    lines = (ROOT / "test/providers/problems/quantized.txt").read_text().splitlines()
    problems = [line for line in lines if "const i8" in line and "relu@14" in line]
    assert len(problems) >= 5
    only = ",".join((*generations(), "reference"))
    for problem in problems:
        dovetail("problem", problem, f"--only={only}", "--no-timing", "--threads=2")


def test_equal_problems_of_different_numbers(tmp_path):
    """Two convolutions that differ in nothing but constants, scales and biases among these."""
    model = Model(CONV).qdq()
    model.add("w2", model.rng.permutation(model.constants["w"]))
    model.add("ws2", model.constants["ws"] * np.linspace(0.3, 1.2, len(model.constants["ws"]), dtype=np.float32))
    model.add("b2", model.bias[::-1].copy())
    model.add("bs2", model.constants["xs"] * model.constants["ws2"])
    model.node("DequantizeLinear", "w2 ws2 wz", "w2f", axis=0)
    model.node("DequantizeLinear", "b2 bs2 bz", "b2f", axis=0)
    model.node("Conv", "xf w2f b2f", "u0", **model.window())
    model.node("QuantizeLinear", "u0 ys yz", "y2")
    model.outputs["y2"] = np.uint8
    path = check(tmp_path, model)
    for name in generations():
        problems = [step["problem"] for step in steps(path, f"--only={name},reference") if "conv" in step["ops"]]
        assert len(problems) == 2 and problems[0] == problems[1], problems


@pytest.mark.parametrize("terms", [250, 1500])
@pytest.mark.parametrize("zero", [0, 3])
def test_sums_are_exact(tmp_path, terms, zero):
    """Of bytes near the ends of their ranges; those of 1500 products are not all numbers of f32."""
    model = Model(but(MATMUL, x_shape=(5, terms)))
    model.inputs = {"x": (np.uint8, (5, terms))}
    model.constants["w"] = model.rng.integers(100, 128, (terms, 40)).astype(np.int8)
    model.constants["xz"] = np.array(zero, np.uint8)
    model.node("MatMulInteger", "x w xz", "y")
    model.outputs = {"y": np.int32}
    path = model.save(tmp_path / "model.onnx")
    inputs = {"x": model.rng.integers(200, 256, (5, terms)).astype(np.uint8)}
    truth = (inputs["x"].astype(np.int64) - zero) @ model.constants["w"].astype(np.int64)
    assert (np.abs(truth).max() > 2**24) == (terms > 258)
    for name in (*generations(), "native", "reference"):
        found = run(path, inputs, f"--only={name},reference")
        assert np.array_equal(found["y"], truth), name


def refused(tmp_path, model: Model, *words, code=2):
    path = model.save(tmp_path / "model.onnx")
    message = dovetail("compile", path, "-o", tmp_path / "out.dvt", "--select=estimate", "--no-cache",
                       code=code).stderr
    assert all(word in message for word in words), message
    assert not (tmp_path / "out.dvt").exists()


def test_scale_of_zero_is_refused(tmp_path):
    model = Model(CONV).qdq()
    model.constants["ys"] = np.float32(0)
    refused(tmp_path, model, "QuantizeLinear", "scale 0")
    model = Model(CONV).qlinear()
    model.constants["ys"] = np.float32(-1)
    refused(tmp_path, model, "QLinearConv", "scale -1")


def test_zero_point_of_another_type_is_refused(tmp_path):
    model = Model(but(CONV, x="s8", xzero=0)).qdq()
    model.constants["xz"] = np.array(0, np.uint8)
    refused(tmp_path, model, "DequantizeLinear", "uint8", "int8")
    model = Model(MATMUL).qlinear()
    model.constants["xz"] = np.array(0, np.int8)
    refused(tmp_path, model, "QLinearMatMul", "uint8", "int8")


def test_scales_of_another_number_are_refused(tmp_path):
    model = Model(CONV).qdq()
    model.constants["ws"] = np.ones(5, np.float32)
    path = model.save(tmp_path / "model.onnx")
    message = dovetail("run", path, "--select=estimate", "--no-cache", code=2).stderr
    assert "DequantizeLinear" in message, message
