# SPDX-License-Identifier: Apache-2.0
"""Plans with steps of cuBLASLt and hipBLASLt: compiled without library or device, run on doubles of both."""
import json
import pathlib

import numpy as np
import pytest

import makers
from command import ESTIMATE

PROVIDERS = {"cuda:sm_90": "cublaslt", "rocm:gfx942": "hipblaslt"}


@pytest.fixture
def simulated(dovetail) -> dict:
    folder = pathlib.Path(dovetail.binary).parents[1] / "lib/dovetail-test"
    drivers = {"DOVETAIL_DRIVERS": f"cuda={folder}/libcuda-sim.so:rocm={folder}/libamdhip64-sim.so"}
    if not (folder / "libcublasLt.so.13").exists():
        pytest.skip("the simulated devices are not built")
    return drivers | {"DOVETAIL_VENDOR_PATH": str(folder)}


@pytest.fixture(params=PROVIDERS)
def target(request) -> str:
    return request.param


def compiled(dovetail, target: str, element=np.float32, algorithm="gemm:late"):
    """y = (gelu(relu(x u + b) v + c) w + x); operands, what must come out, and the artifact's name."""
    random = np.random.default_rng(5)
    arrays = {name: (random.uniform(-1, 1, extents) / 2).astype(element) for name, extents in
              {"u": (8, 24), "b": (24,), "v": (24, 16), "c": (16,), "w": (16, 8)}.items()}
    x = random.uniform(-1, 1, (5, 8)).astype(element)
    nodes = [makers.node("Gemm", "x u b", "p", name="first"), makers.node("Relu", "p", "q", name="positive"),
             makers.node("MatMul", "q v", "r", name="second"), makers.node("Add", "r c", "s", name="shifted"),
             makers.node("Gelu", "s", "t", name="bent", approximate="tanh"),
             makers.node("MatMul", "t w", "o", name="third"), makers.node("Add", "o x", "y", name="residual")]
    kind = makers.helper.np_dtype_to_tensor_dtype(np.dtype(element))
    model = makers.model(nodes, [makers.value("x", [5, 8], kind)], [makers.value("y", [5, 8], kind)],
                         [makers.constant(name, array) for name, array in arrays.items()], opset=20)
    path = dovetail.write("layers.onnx", model)
    np.savez(dovetail.folder / "in.npz", x=x)
    provider = PROVIDERS[target]
    forced = [f"--force={node}={provider}:{algorithm}" for node in ("first", "second", "third")]
    dovetail("compile", path, ESTIMATE, f"--target={target}", f"--only={provider},reference", *forced,
             "-o", "layers.dvt")
    u, b, v, c, w = (arrays[name].astype(np.float64) for name in "ubvcw")
    t = np.maximum(x @ u + b, 0) @ v + c
    t = t / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (t + 0.044715 * t**3)))
    return t @ w + x


@pytest.mark.parametrize("algorithm", ["gemm:late", "gemm:measured"])
@pytest.mark.parametrize("element, error", [(np.float32, 1e-5), (np.float16, 4e-3)])
def test_layers_run_on_the_device(dovetail, simulated, target, element, error, algorithm):
    truth = compiled(dovetail, target, element, algorithm)
    done = dovetail("run", "layers.dvt", "--inputs=in.npz", "--output=out.npz", **simulated)
    assert done.stderr == ""
    np.testing.assert_allclose(np.load(dovetail.folder / "out.npz")["y"], truth, rtol=0, atol=error)
    steps = json.loads(dovetail("explain", "layers.dvt", "--json").stdout)
    assert json.dumps(steps).count(f"{PROVIDERS[target]}:{algorithm}") >= 3


def test_doctor_lists_the_libraries(dovetail, simulated):
    report = json.loads(dovetail("doctor", "--json", **simulated).stdout)
    found = {library["name"]: library for provider in report["providers"] for library in provider["libraries"]}
    for name, version in {"cuBLASLt": "13", "hipBLASLt": "1"}.items():
        assert found[name]["missing"] == "" and "lib/dovetail-test" in found[name]["path"]
        assert found[name]["version"] == version
    report = json.loads(dovetail("doctor", "--json").stdout)
    hip, = (library for provider in report["providers"] for library in provider["libraries"]
            if library["name"] == "hipBLASLt")
    assert hip["missing"] == "" or "ROCm from 6.0 on has it" in hip["missing"]


def test_without_the_library_it_says_how_to_get_it(dovetail, simulated, target):
    compiled(dovetail, target)
    simulated["DOVETAIL_VENDOR_PATH"] = "/nonexistent"
    dovetail.refuses(3, "run", "layers.dvt", "--inputs=in.npz", **simulated,
                     says=f"no kernel can run it here: {PROVIDERS[target]}:gemm:late: .*"
                          "(was not found|opening the device)")


def test_no_algorithm_is_said(dovetail, simulated, target):
    compiled(dovetail, target)
    dovetail.refuses(3, "run", "layers.dvt", "--inputs=in.npz", DOVETAIL_SIMULATED_LT_NO_ALGORITHM="1", **simulated,
                     says="has no algorithm for this product on this device within [0-9]+ bytes.*STATUS_NOT_SUPPORTED")


def test_one_kernel_here_and_there(dovetail, simulated, target):
    """The same problem has kernels of the same name on the processor and on the device; each step gets its own."""
    random = np.random.default_rng(7)
    u, v = (random.standard_normal(extents).astype(np.float32) for extents in [(512, 128), (128, 512)])
    nodes = [makers.node("Softmax", "x", "y", name="here"), makers.node("MatMul", "z u", "a"),
             makers.node("MatMul", "a v", "b"), makers.node("MatMul", "b u", "c"),
             makers.node("Softmax", "c", "s", name="there"), makers.node("MatMul", "s v", "p"),
             makers.node("MatMul", "c v", "q")]
    model = makers.model(nodes, [makers.value("x", [128, 128]), makers.value("z", [128, 512])],
                         makers.of_arrays("ypq", [random.standard_normal(e, np.float32) for e in
                                                  [(128, 128), (128, 512), (128, 512)]]),
                         [makers.constant("u", u), makers.constant("v", v)])
    path = dovetail.write("both.onnx", model)
    x = random.standard_normal((128, 128)).astype(np.float32)
    np.savez(dovetail.folder / "in.npz", x=x, z=np.zeros((128, 512), np.float32))
    dovetail("compile", path, ESTIMATE, f"--target={target}", "--only=native,reference", "-o", "both.dvt")
    steps = {step["nodes"]: step for step in json.loads(dovetail("explain", "both.dvt", "--json").stdout)["steps"]}
    here, there = steps["here"], steps["there"]
    assert (here["on_device"], there["on_device"]) == (False, True)
    assert here["problem"] == there["problem"] and here["kernel"] == there["kernel"]
    dovetail("run", "both.dvt", "--inputs=in.npz", "--output=out.npz", **simulated)
    with np.load(dovetail.folder / "out.npz") as found:
        powers = np.exp(x - x.max(axis=1, keepdims=True))
        np.testing.assert_allclose(found["y"], powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)
        np.testing.assert_allclose(found["p"], np.full((128, 128), 1 / 128) @ v, rtol=0, atol=1e-3)
