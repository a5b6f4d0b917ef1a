# SPDX-License-Identifier: Apache-2.0
"""Models on a device of CUDA with kernels of cuDNN, planned, loaded and run with a double of the library on the
simulated device, and what becomes of a plan where the library is another one, refuses it, or is missing. The double
proves that calls are right, and nothing about the library's own kernels."""
import pathlib
import re

import numpy as np
import pytest

import makers
from device_network import check_run, network

OWN_RUNS = r"step '[^']+': native:\S+ runs instead of cudnn:\S+: "


@pytest.fixture
def double(binary) -> dict:
    folder = pathlib.Path(binary).parents[1] / "lib/dovetail-test"
    if not (folder / "cudnn9/libcudnn.so.9").exists():
        pytest.skip("the double of cuDNN is not built")
    return {"DOVETAIL_DRIVERS": f"cuda={folder / 'libcuda-sim.so'}", "DOVETAIL_VENDOR_PATH": str(folder / "cudnn9")}


def planned(dovetail, double, providers: str, *arguments):
    model = network()
    dovetail("compile", dovetail.write("net.onnx", model), "--target=cuda:sm_90", "--select=estimate", "--no-cache",
             f"--only={providers}", "--prefer=library", *arguments, "-o", "net.dvt", **double)
    return model


@pytest.fixture
def compiled(dovetail, double):
    """With own kernels beside the library's."""
    return planned(dovetail, double, "cudnn,native,reference")


def test_engines_are_planned(dovetail, double):
    planned(dovetail, double, "cudnn,reference")
    report = dovetail("explain", "net.dvt", "--all", **double).stdout
    assert "cudnn:implicit-gemm:eng1:k2=0" in report and "cudnn:pooling:eng0" in report, report
    assert "implicit-gemm:eng5" in report and "f32-winograd" in report and "tf32" in report
    assert "predicted" in report


def test_runs_on_the_simulated_device(dovetail, double):
    model = planned(dovetail, double, "cudnn,reference")
    assert check_run(dovetail, model, error=5e-3, **double) == ""
    for engine in "eng0", "eng1:k2=1", "eng5":
        forced = f"--force=residual=cudnn:implicit-gemm:{engine}"
        model = planned(dovetail, double, "cudnn,reference", forced)
        assert f"implicit-gemm:{engine}" in dovetail("explain", "net.dvt", **double).stdout
        assert check_run(dovetail, model, error=5e-3, **double) == ""


@pytest.mark.parametrize("changed, reason", [
    ({"DOVETAIL_SIMULATED_CUDNN_VERSION": "92001"},
     "provider cudnn has version 1.cuDNN-9.20.1 instead of 1.cuDNN-9.19.0"),
    ({"DOVETAIL_SIMULATED_CUDNN_REFUSES": "all"},
     "loading the plan: CUDNN_STATUS_NOT_SUPPORTED: .*this device does not run plans of engine"),
    ({"DOVETAIL_VENDOR_PATH": "/nonexistent"}, "cudnn")])
def test_own_kernels_stand_in(dovetail, double, compiled, changed, reason):
    """For the library of another version, one that refuses the plan, and one that is missing."""
    assert "cudnn:implicit-gemm" in dovetail("explain", "net.dvt", **double).stdout
    said = check_run(dovetail, compiled, error=5e-3, **double | changed)
    assert re.search(OWN_RUNS + ".*" + reason, said), said


def test_own_kernels_take_less_workspace(dovetail, double, compiled):
    said = check_run(dovetail, compiled, error=5e-3, **double | {"DOVETAIL_SIMULATED_CUDNN_WORKSPACE": str(5 << 30)})
    assert re.search(OWN_RUNS + "the device has no memory for 5[0-9]+ bytes of workspace", said), said


@pytest.mark.parametrize("algorithm", ["winograd", "late", "find:late"])
def test_older_calls_run(dovetail, double, algorithm):
    forced = [f"--force={node}=cudnn:legacy:{name}" for node, name in
              (("residual", algorithm), ("stem", "implicit_gemm"), ("grouped", "implicit_precomp_gemm"))]
    model = planned(dovetail, double, "cudnn,reference", *forced)
    assert f"cudnn:legacy:{algorithm}" in dovetail("explain", "net.dvt", **double).stdout
    assert check_run(dovetail, model, error=5e-3, **double) == ""


@pytest.mark.parametrize("version", ["92001", "8907"])
def test_older_calls_run_on_other_versions(dovetail, double, version):
    weights = np.random.default_rng(5).uniform(-1, 1, (4, 3, 3, 3)).astype(np.float32)
    model = makers.model([makers.node("Conv", "x w", "c", name="conv"), makers.node("Relu", "c", "y")],
                         [makers.value("x", [1, 3, 6, 6])], [makers.value("y", [1, 4, 4, 4])],
                         [makers.constant("w", weights)])
    dovetail("compile", dovetail.write("conv.onnx", model), "--target=cuda:sm_90", "--select=estimate", "--no-cache",
             "--only=cudnn,reference", "--force=conv=cudnn:legacy:gemm", "-o", "conv.dvt", **double)
    x = np.random.default_rng(6).uniform(-1, 1, (1, 3, 6, 6)).astype(np.float32)
    np.save(dovetail.folder / "x.npy", x)
    dovetail("run", "conv.dvt", "--input", "x=x.npy", "--output", "y.npz",
             **double | {"DOVETAIL_SIMULATED_CUDNN_VERSION": version})
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    wanted = np.maximum(np.einsum("ncyxhw,ochw->noyx", windows, weights), 0)
    np.testing.assert_allclose(np.load(dovetail.folder / "y.npz")["y"], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("changed, reason", [
    ({"DOVETAIL_SIMULATED_CUDNN_VERSION": "92001"}, "has version 1.cuDNN-9.20.1 instead of 1.cuDNN-9.19.0"),
    ({"DOVETAIL_SIMULATED_CUDNN_VERSION": "90501"}, "cudnn"),
    ({"DOVETAIL_SIMULATED_CUDNN_REFUSES": "all"}, "this device does not run plans of engine"),
    ({"DOVETAIL_SIMULATED_ARCHITECTURE": "sm_80"}, "sm_80|800")])
def test_without_another_kernel_it_says_why(dovetail, double, changed, reason):
    planned(dovetail, double, "cudnn,reference")
    dovetail.refuses(3, "run", "net.dvt", says=reason, **double | changed)
