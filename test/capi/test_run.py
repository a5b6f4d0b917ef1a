# SPDX-License-Identifier: Apache-2.0
"""What libdovetail promises a program that runs artifacts: no compiler in its process, no allocation for each run, one
copy of packed weights for all sessions."""
import json
import pathlib
import re
import shutil

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILER = re.compile("LLVM|MLIR|protobuf|onnx|compiler", re.IGNORECASE)


def network() -> onnx.ModelProto:
    """Convolution, pool, products and softmax, with 2 MiB of weights that a few rows make worth packing."""
    random = np.random.default_rng(5)
    constants = [numpy_helper.from_array((random.standard_normal(shape) / fan ** 0.5).astype(np.float32), name)
                 for name, shape, fan in [("filters", (16, 3, 3, 3), 27), ("shifts", (16,), 16),
                                          ("wide", (1024, 512), 1024), ("narrow", (512, 10), 512)]]
    constants.append(numpy_helper.from_array(np.array([8, 1024]), "rows"))
    nodes = [helper.make_node("Conv", ["x", "filters", "shifts"], ["c"], pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node("Reshape", ["p", "rows"], ["f"]),
             helper.make_node("MatMul", ["f", "wide"], ["h"]),
             helper.make_node("Relu", ["h"], ["g"]),
             helper.make_node("MatMul", ["g", "narrow"], ["l"]),
             helper.make_node("Softmax", ["l"], ["y"])]
    graph = helper.make_graph(nodes, "network", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 3, 16, 16])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 10])], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def build_program(built) -> pathlib.Path:
    """RunArtifact.c, with the installed header and libdovetail alone."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "a C compiler built Dovetail and is wanted here, too"
    program, libraries = built.work / "run-artifact", built.folder / "lib"
    built.run(compiler, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include",
              pathlib.Path(__file__).with_name("RunArtifact.c"), "-o", program, "-L", libraries, "-ldovetail",
              f"-Wl,-rpath,{libraries}")
    return program


class Runs:
    """The network compiled for some providers and run by the program that counts, each way once."""

    def __init__(self, built):
        self.built, self.known, self.program = built, {}, build_program(built)
        self.here = {provider["name"] for provider in json.loads(built.command("doctor", "--json"))["providers"]
                     if not provider["libraries"] or any(not library["missing"] for library in provider["libraries"])}
        onnx.save(network(), built.work / "network.onnx")

    def __call__(self, provider: str, threads: int) -> dict:
        if provider not in self.here:
            pytest.skip(f"the provider {provider} is not here")
        if (provider, threads) not in self.known:
            artifact = f"{provider}-{threads}.dvt"
            self.built.command("compile", "network.onnx", f"--only={provider},native", f"--threads={threads}",
                               "--prefer=native" if provider == "native" else "--prefer=library", "--select=estimate",
                               "--no-cache", "--memory=none", "-o", artifact)
            report = json.loads(self.built.run(self.program, artifact, threads))
            report["packed_bytes"] = self.built.explain(artifact)["memory"]["packed_bytes"]
            assert any(kernel.startswith(f"{provider}:") for kernel in report["running"]), report["running"]
            self.known[provider, threads] = report
        return self.known[provider, threads]


@pytest.fixture(scope="session")
def runs(built_once) -> Runs:
    return Runs(built_once)


ALL = pytest.mark.parametrize("provider", ["native", "onednn", "blas"])


@ALL
def test_results(runs, provider):
    x = (7 * np.arange(8 * 3 * 16 * 16) % 17 - 8).astype(np.float32).reshape(8, 3, 16, 16) / 8
    session = onnxruntime.InferenceSession(network().SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x})
    for output in runs(provider, 1)["outputs"]:
        np.testing.assert_allclose(np.reshape(output, expected.shape), expected, rtol=1e-4, atol=1e-6)


@ALL
def test_no_compiler_in_the_process(runs, provider):
    files = runs(provider, 1)["files"]
    assert {"libdovetail.so", "dovetail_native.so"} <= set(files)
    assert [name for name in files if COMPILER.search(name)] == []


def test_a_compiler_would_be_seen(runs):
    """As the test before looks for it."""
    answer = runs.built.compile("network.onnx", "api.dvt")
    assert answer["code"] == 0, answer["message"]
    found = {COMPILER.search(name)[0] for name in answer["files"] if COMPILER.search(name)}
    assert {"LLVM", "MLIR", "protobuf"} <= found


@pytest.mark.parametrize("threads", [1, 2])
def test_no_allocation_for_each_run(runs, threads):
    report = runs("native", threads)
    assert report["load"]["malloc_calls"] > 100  # those of libraries are seen
    assert report["runs"] == {"malloc_calls": 0, "host_calls": 0}


@pytest.mark.parametrize("provider", ["onednn", "blas"])
def test_only_libraries_allocate_for_each_run(runs, provider):
    """oneDNN does in every call of a primitive, MKL in some; the runtime asks for nothing."""
    assert runs(provider, 1)["runs"]["host_calls"] == 0


@ALL
def test_sessions_share_packed_weights(runs, provider):
    report = runs(provider, 1)
    packed = report["packed_bytes"]
    if packed < 1024 * 512 * 4 and provider != "native":
        pytest.skip(f"{provider} packs no weights on this machine")
    assert packed >= 1024 * 512 * 4 and report["load"]["host_bytes"] >= packed
    first, second = report["sessions"]
    assert first["host_bytes"] == second["host_bytes"] > 0
    # What a library keeps for the process comes with the first.
    assert second["host_bytes"] + second["malloc_bytes"] < packed / 4
    assert report["host_bytes_left"] == 0
