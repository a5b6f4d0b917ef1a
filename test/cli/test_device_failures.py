# SPDX-License-Identifier: Apache-2.0
"""Plans whose device, driver or memory is not what they were made for: what is said, and what runs instead."""
import json
import pathlib

import numpy as np
import pytest
from onnx import TensorProto

import makers

FREE = {"launch_micros": 0, "transfer_micros": 0, "link_gigabytes_per_second": 1e5, "memory_gigabytes_per_second": 1e6}


@pytest.fixture
def drivers(dovetail) -> dict:
    folder = pathlib.Path(dovetail.binary).parents[1] / "lib/dovetail-test"
    if not (folder / "libcuda-sim.so").exists():
        pytest.skip("the simulated devices are not built")
    return {"DOVETAIL_DRIVERS": f"cuda={folder}/libcuda-sim.so:rocm={folder}/libamdhip64-sim.so"}


def planned(dovetail, target: str, model=None) -> None:
    """tiny.dvt, with steps on the device: the description makes nothing of launches and transfers."""
    folder = pathlib.Path(dovetail.binary).parents[1] / "lib/dovetail/devices"
    described = json.loads((folder / f"{target.replace(':', '-')}.json").read_text()) | FREE
    described["peak_teraops"] = {kind: peak * 1e4 for kind, peak in described["peak_teraops"].items()}
    device = dovetail.write("device.json", json.dumps(described))
    path = dovetail.write("tiny.onnx", model or makers.tiny())
    dovetail("compile", path, f"--device={device}", "--select=estimate", "--only=native,reference", "-o", "tiny.dvt")
    assert any(step.get("on_device") for step in json.loads(dovetail("explain", "tiny.dvt", "--json").stdout)["steps"])


def given(dovetail) -> list[str]:
    np.savez(dovetail.folder / "in.npz", a=np.ones((2, 4), np.float32), b=np.ones((2, 3), np.float32))
    return ["tiny.dvt", "--inputs=in.npz"]


@pytest.mark.parametrize("target, needed", [("cuda:sm_80", 11000), ("cuda:sm_90", 11080), ("cuda:sm_100", 12070)])
def test_driver_that_is_too_old(dovetail, drivers, target, needed):
    planned(dovetail, target)
    there = drivers | {"DOVETAIL_SIMULATED_ARCHITECTURE": target.split(":")[1]}
    text = f"{needed // 1000}.{needed % 1000 // 10}"
    dovetail.refuses(3, "run", *given(dovetail), DOVETAIL_SIMULATED_DRIVER_VERSION=str(needed - 10), **there,
                     says=f"it needs a driver for CUDA {text} or later, .*libcuda-sim.so is one for .*update the driver")
    assert dovetail("run", *given(dovetail), DOVETAIL_SIMULATED_DRIVER_VERSION=str(needed), **there).stderr == ""


def test_later_devices_run_what_was_compiled_for_earlier_ones(dovetail, drivers):
    planned(dovetail, "cuda:sm_80")
    done = dovetail("run", *given(dovetail), DOVETAIL_SIMULATED_ARCHITECTURE="sm_90", **drivers)
    assert "compiled for cuda:sm_80, the device here is cuda:sm_90: the driver assembles own kernels" in done.stderr
    assert "--target=cuda:sm_90" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("target, other", [("cuda:sm_100", "sm_90"), ("rocm:gfx90a", "gfx942"),
                                           ("rocm:gfx942", "gfx90a")])
def test_devices_that_cannot(dovetail, drivers, target, other):
    planned(dovetail, target)
    dovetail.refuses(3, "run", *given(dovetail), DOVETAIL_SIMULATED_ARCHITECTURE=other, **drivers,
                     says=f"compiled for {target}, the device here is [a-z]*:{other}; compile the model for it with "
                          f"--target=[a-z]*:{other}")


@pytest.mark.parametrize("target", ["cuda:sm_90", "rocm:gfx942"])
def test_constants_that_do_not_fit(dovetail, drivers, target):
    planned(dovetail, target)
    there = drivers | {"DOVETAIL_SIMULATED_ARCHITECTURE": target.split(":")[1]}
    dovetail.refuses(3, "run", *given(dovetail), DOVETAIL_SIMULATED_BYTES="40", **there,
                     says=f"compiled for {target}, which takes 48 bytes of constants on the device and [0-9]+ of "
                          "intermediate results; the device here has 40 bytes free; .*--target=cpu")
    dovetail.refuses(3, "run", *given(dovetail), DOVETAIL_SIMULATED_BYTES="48", **there, says="bytes are wanted")


@pytest.mark.parametrize("api", ["cuda", "rocm"])
def test_drivers_that_are_none(dovetail, drivers, api):
    planned(dovetail, {"cuda": "cuda:sm_90", "rocm": "rocm:gfx942"}[api])
    dovetail.refuses(3, "run", *given(dovetail), DOVETAIL_DRIVERS=f"{api}=/nowhere/driver.so",
                     says="cannot run here: no driver: .*/nowhere/driver.so.*DOVETAIL_DRIVERS")
    other = drivers["DOVETAIL_DRIVERS"].split(":")[api == "cuda"].split("=")[1]
    dovetail.refuses(3, "run", *given(dovetail), DOVETAIL_DRIVERS=f"{api}={other}",
                     says="cannot run here: .*has no function .*too old or another library")


@pytest.mark.parametrize("target", ["cuda:sm_90", "rocm:gfx942"])
@pytest.mark.parametrize("op, attributes, good, bad, says", [
    ("Gather", {"axis": 0}, [0, 3, -4], [1, 4, 0], r"index 4 is outside \[-4, 3\]"),
    ("GatherND", {}, [[0, 1], [3, -2]], [[0, 1], [0, -3]], r"index -3 is outside \[-2, 1\]")])
def test_indices_that_point_nowhere(dovetail, drivers, target, op, attributes, good, bad, says):
    table = np.arange(8, dtype=np.float32).reshape(4, 2)
    nodes = [makers.node(op, "table at", "rows", name="looked_up", **attributes), makers.node("Relu", "rows", "r"),
             makers.node("ReduceSum", "r", "s", name="total", keepdims=0)]
    planned(dovetail, target, makers.model(nodes, [makers.value("at", list(np.shape(good)), TensorProto.INT64)],
                                           [makers.value("s", [])], [makers.constant("table", table)]))
    for name, indices in {"good": good, "bad": bad}.items():
        np.savez(dovetail.folder / f"{name}.npz", at=np.array(indices, np.int64))
    assert "looked_up" in json.dumps([step for step in
                                      json.loads(dovetail("explain", "tiny.dvt", "--json").stdout)["steps"]
                                      if step.get("on_device")])
    there = drivers | {"DOVETAIL_SIMULATED_ARCHITECTURE": target.split(":")[1]}
    dovetail("run", "tiny.dvt", "--inputs=good.npz", "--output=out.npz", "--repeat=4", **there)
    at = np.array(good)
    wanted = (table[at] if op == "Gather" else table[tuple(at.T)]).sum()
    assert np.load(dovetail.folder / "out.npz")["s"] == wanted
    dovetail.refuses(2, "run", "tiny.dvt", "--inputs=bad.npz", **there, says=["looked_up", says])


@pytest.mark.parametrize("target", ["cuda:sm_90", "rocm:gfx942"])
def test_extents_of_the_run(dovetail, drivers, target):
    """One plan, kernels that take the extents as arguments."""
    weights = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
    nodes = [makers.node("MatMul", "x w", "p", name="product"), makers.node("Softmax", "p", "s", axis=-1),
             makers.node("ReduceSum", "s axes", "y", keepdims=1)]
    planned(dovetail, target, makers.model(nodes, [makers.value("x", ["N", "M", 4])], [makers.value("y", ["N", 1, 6])],
                                           [makers.constant("w", weights), makers.constant("axes", np.array([1]))]))
    there = drivers | {"DOVETAIL_SIMULATED_ARCHITECTURE": target.split(":")[1]}
    for extents in [(1, 1, 4), (3, 40, 4), (2, 7, 4)]:
        x = np.random.default_rng(3).uniform(-2, 2, extents).astype(np.float32)
        np.savez(dovetail.folder / "x.npz", x=x)
        dovetail("run", "tiny.dvt", "--inputs=x.npz", "--output=y.npz", "--repeat=3", **there)
        p = np.exp((x @ weights).astype(np.float64))
        wanted = (p / p.sum(-1, keepdims=True)).sum(1, keepdims=True)
        np.testing.assert_allclose(np.load(dovetail.folder / "y.npz")["y"], wanted, rtol=1e-5)


def test_without_an_assembler_it_says_so(dovetail):
    planned(dovetail, "cuda:sm_90")
    told = dovetail("explain", "tiny.dvt").stdout
    assert "ptx sm_90" in told
    assert ("neither nvJitLink nor ptxas was found" in told) == ("cubin sm_90" not in told)
