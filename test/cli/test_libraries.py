# SPDX-License-Identifier: Apache-2.0
"""One plan with a step of each BLAS library that is here, and what becomes of it where a library is gone."""
import json

import numpy as np
import pytest

import makers
from command import ESTIMATE

# Each library with an algorithm of its own and the file by which it is found.
LIBRARIES = {"MKL": ("mkl:gemm-packed", "libmkl_rt"), "OpenBLAS": ("openblas:sgemm", "openblas"),
             "BLIS": ("blis:sgemm", "libblis"), "libxsmm": ("xsmm:brgemm-packed", "libxsmm")}


@pytest.fixture(scope="session")
def curtain(binary):
    def hide(*libraries) -> dict:
        return {"LD_PRELOAD": str(binary.parents[1] / "test/curtain.so"),
                "HIDDEN": ":".join(LIBRARIES[name][1] for name in libraries)}
    return hide


def libraries(dovetail, **environment) -> dict:
    """What doctor says of the provider's libraries, by name."""
    report = json.loads(dovetail("doctor", "--json", **environment).stdout)
    blas, = (provider for provider in report["providers"] if provider["name"] == "blas")
    return {library["name"]: library for library in blas["libraries"]}


@pytest.fixture
def plan(dovetail):
    """A model with a product for each library that is here, compiled; with what it must give."""
    present = [name for name, library in libraries(dovetail).items() if not library["missing"]]
    if not present:
        pytest.skip("no BLAS library is here")
    random = np.random.default_rng(3)
    weights = [random.uniform(-1, 1, (64, 64)).astype(np.float32) / 8 for _ in present]
    nodes, constants, last = [], [], "x"
    x = random.uniform(-1, 1, (16, 64)).astype(np.float32)
    truth = x.astype(np.float64)
    for i, weight in enumerate(weights):
        nodes += [makers.node("MatMul", [last, f"w{i}"], [f"p{i}"], name=f"product{i}"),
                  makers.node("Relu", [f"p{i}"], [f"r{i}"], name=f"positive{i}")]
        constants.append(makers.constant(f"w{i}", weight))
        truth, last = np.maximum(truth @ weight, 0), f"r{i}"
    path = dovetail.write("products.onnx", makers.model(nodes, [makers.value("x", [16, 64])],
                                                        [makers.value(last, [16, 64])], constants))
    np.savez(dovetail.folder / "in.npz", x=x)
    forced = [f"--force=product{i}=blas:{LIBRARIES[name][0]}" for i, name in enumerate(present)]
    dovetail("compile", path, ESTIMATE, "--threads=2", *forced, "-o", "products.dvt")
    return present, last, truth


def run(dovetail, output, **environment):
    done = dovetail("run", "products.dvt", "--inputs=in.npz", "--output=out.npz", **environment)
    return done, np.load(dovetail.folder / "out.npz")[output]


def test_each_has_its_step(dovetail, plan):
    present, output, truth = plan
    explained = dovetail("explain", "products.dvt").stdout
    for name in present:
        assert f"blas:{LIBRARIES[name][0]}" in explained
    done, result = run(dovetail, output)
    assert done.stderr == ""
    np.testing.assert_allclose(result, truth, rtol=1e-4, atol=1e-5)


def test_one_that_is_gone_is_replaced_and_named(dovetail, plan, curtain):
    present, output, truth = plan
    for name in present:
        assert libraries(dovetail, **curtain(name))[name]["missing"].startswith(f"{name} was not found")
        done, result = run(dovetail, output, **curtain(name))
        np.testing.assert_allclose(result, truth, rtol=1e-4, atol=1e-5)
        lines = done.stderr.splitlines()
        assert len(lines) == 1 and f"{name} was not found" in lines[0], done.stderr
        assert f"blas:{LIBRARIES[name][0]}" in lines[0]
        for other in present:
            assert other == name or LIBRARIES[other][0] not in lines[0], "others keep their steps"
        assert f"{name} was not found" in dovetail("explain", "products.dvt", **curtain(name)).stdout


def test_none_is_needed(dovetail, plan, curtain):
    _, output, truth = plan
    hidden = curtain(*LIBRARIES)
    assert all(library["missing"] for library in libraries(dovetail, **hidden).values())
    _, result = run(dovetail, output, **hidden)
    np.testing.assert_allclose(result, truth, rtol=1e-4, atol=1e-5)
    dovetail("run", "products.onnx", ESTIMATE, "--inputs=in.npz", "--output=out.npz", **hidden)
    np.testing.assert_allclose(np.load(dovetail.folder / "out.npz")[output], truth, rtol=1e-4, atol=1e-5)
