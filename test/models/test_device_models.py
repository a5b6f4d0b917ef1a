# SPDX-License-Identifier: Apache-2.0
"""Whole models with their plans on devices, run on simulated ones and compared with onnxruntime.

Compiled in one process, loaded and run in another, whose driver is simulated: it checks every call and runs the host
form of own kernels (docs/decisions/0008); doubles of the vendor's libraries check the calls to them and compute what is
asked of them in plain loops, which proves the calls and nothing about a vendor's kernels. Own kernels alone, libraries
before own ones, and the cheapest of both by estimates. The description of the device makes work there and transfers next
to free, so that whatever has a kernel for the device runs there. At the end stands what was assembled, run and checked.
`--all-models` brings every network, type, architecture and mode together.
"""
import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import check
import device_counts
import small_networks
from test_models import MODELS, binary, case, planning  # noqa: F401 (fixtures)

DRIVERS = {"cuda": "libcuda-sim.so", "rocm": "libamdhip64-sim.so"}
LIBRARIES = {"cuda": "cudnn,cublaslt", "rocm": "miopen,hipblaslt"}
DOUBLES = {"cuda": ["cudnn9", "."], "rocm": ["miopen3", "."]}  # folders beside the drivers
MODES = ["native-first", "library-first", "mixed"]
TARGETS = ["cuda:sm_90", "rocm:gfx942", "cuda:sm_80", "cuda:sm_100", "rocm:gfx90a"]
# Relative to the largest magnitude of an output; f16 rounds each result between kernels, and tf32 as much of operands.
BOUNDS = {"f32": 1e-4, "f16": 1e-2, "tf32": 1e-2}
KINDS = ["f32", "f16"]


def takes_part(at: int, target: str, mode: str) -> bool:
    """What always runs: own kernels and libraries in turns on the one vendor's device and the other's."""
    return target == TARGETS[(at + MODES.index(mode)) % 2]


# Those that always run: each network in one type on one vendor's device and in the other on the other's, and one
# network on every architecture.
SMALL = [pytest.param(name, kind, target, mode, takes_part(at + of, target, mode) or
                      (name, kind, mode) == ("resnet", "f32", "native-first"),
                      id=f"{name}-{kind}-{target.replace(':', '-')}-{mode}")
         for at, name in enumerate(small_networks.NETWORKS) for of, kind in enumerate(KINDS) for target in TARGETS
         for mode in MODES]
REAL = [pytest.param(name, size, target, mode, takes_part(at, target, mode),
                     id=f"{name}-{target.replace(':', '-')}-{mode}")
        for at, (name, size) in enumerate([("mtcnn_onet", (1, 48, 48, 3)), ("mtcnn_rnet", (1, 24, 24, 3)),
                                           ("ppocr_cls", (1, 3, 32, 100)), ("mtcnn_pnet", (1, 12, 12, 3))])
        for target in TARGETS[:2] for mode in MODES]


class Device:
    """Compiles for a target and runs on its simulated device."""

    def __init__(self, config: pytest.Config, command: pathlib.Path, folder: pathlib.Path, target: str,
                 arguments: list[str]):
        self.config, self.binary, self.folder, self.target = config, command, folder, target
        api, architecture = target.split(":")
        build = command.parents[1]
        described = json.loads((build / "lib/dovetail/devices" / f"{api}-{architecture}.json").read_text())
        described |= {"launch_micros": 0, "transfer_micros": 0, "link_gigabytes_per_second": 1e5,
                      "memory_gigabytes_per_second": 1e6,
                      "peak_teraops": {kind: peak * 1e4 for kind, peak in described["peak_teraops"].items()}}
        self.description = folder / "device.json"
        self.description.write_text(json.dumps(described))
        self.arguments = [*arguments, f"--device={self.description}"]
        self.api, self.report = api, folder / "report.json"
        doubles = build / "lib/dovetail-test"
        self.environment = {"DOVETAIL_DRIVERS": f"{api}={doubles / DRIVERS[api]}",
                            "DOVETAIL_VENDOR_PATH": ":".join(str(doubles / folder) for folder in DOUBLES[api]),
                            "DOVETAIL_SIMULATED_ARCHITECTURE": architecture}

    def command(self, *arguments) -> str:
        done = subprocess.run([self.binary, *map(str, arguments)], text=True, capture_output=True, check=False,
                              env={**os.environ, **self.environment})
        assert done.returncode == 0, done.stderr
        return done.stdout

    def planning(self, mode: str) -> list[str]:
        own = "native,reference"
        return {"native-first": [f"--only={own}"],
                "library-first": [f"--only={LIBRARIES[self.api]},{own}", "--prefer=library"],
                "mixed": [f"--only={LIBRARIES[self.api]},{own}"]}[mode]

    def images(self, artifact: pathlib.Path) -> dict:
        """The plan's kernels held against the vendors' tools, and how many there were (test/native/device/PlanImages.cpp)."""
        done = subprocess.run([self.binary.parents[1] / "test/plan-images", artifact], text=True, capture_output=True,
                              check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout).get(self.target.split(":")[1], {})

    def run(self, model: pathlib.Path, inputs: dict, mode: str, *arguments: str,
            check_images: bool = False) -> tuple[dict, dict]:
        """The outputs, and the plan as `explain --json` has it. `arguments` of the compilation."""
        artifact, given = self.folder / "model.dvt", self.folder / "given.npz"
        np.savez(given, **inputs)
        self.command("compile", model, "--inputs", given, "-o", artifact, *self.arguments,
                     *self.planning(mode), *arguments)
        plan = json.loads(self.command("explain", artifact, "--json"))
        found = check.run(self.binary, artifact, inputs,
                          environment=self.environment | {"DOVETAIL_SIMULATED_REPORT": str(self.report)})
        driver = json.loads(self.report.read_text())
        assert driver["architecture"] == self.target.split(":")[1]
        assert driver.get("refusals", 0) == 0
        wanted = check_images or self.config.getoption("--check-images")
        device_counts.add(self.config, self.target, plan, driver, self.images(artifact) if wanted else {})
        return found, plan


@pytest.fixture
def device(request, binary, planning, tmp_path):  # noqa: F811
    return lambda target: Device(request.config, binary, tmp_path, target, planning)


def test_devices_of_little_memory(device, tmp_path):
    """The message has the numbers, and nothing is left behind."""
    model, inputs = small_networks.make("resnet", "f32")
    onnx.save(model, tmp_path / "model.onnx")
    there = device(TARGETS[0])
    there.run(tmp_path / "model.onnx", inputs, "native-first")
    there.environment["DOVETAIL_SIMULATED_BYTES"] = "20000"
    with pytest.raises(RuntimeError, match="exit 3: dovetail: error: .*(has 20000 bytes free|bytes are wanted)") as refused:
        check.run(there.binary, there.folder / "model.dvt", inputs, environment=there.environment)
    assert len(str(refused.value).splitlines()) == 1


def steps_of(plan: dict) -> tuple[list[str], list[str]]:
    """Kernels on the device, and nodes of steps that have theirs on the processor, conversions apart."""
    there = [step["kernel"] for step in plan["steps"] if step.get("on_device")]
    here = [step["nodes"] for step in plan["steps"] if step.get("on_device") is False and not step.get("conversion")]
    return there, here


def bound_of(plan: dict, kind: str) -> float:
    """By the classes of rounding that its steps have."""
    return max(BOUNDS.get(of, 0) for of in {kind} | {step["numerics"] for step in plan["steps"] if "numerics" in step})


def expect_providers(there: list[str], target: str, mode: str) -> None:
    libraries = tuple(f"{name}:" for name in LIBRARIES[target.split(":")[0]].split(","))
    assert there and all(kernel.startswith(("native:", *libraries)) for kernel in there), there
    if mode == "native-first":
        assert all(kernel.startswith("native:") for kernel in there), there
    if mode == "library-first":
        assert any(kernel.startswith(libraries) for kernel in there), there


@pytest.mark.parametrize("name, kind, target, mode, quick", SMALL)
def test_small_networks(request, device, tmp_path, name, kind, target, mode, quick):
    if not quick and not request.config.getoption("--all-models"):
        pytest.skip("runs with --all-models")
    model, inputs = small_networks.make(name, kind)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    twin, feeds = small_networks.make(name, "f32")
    session = ort.InferenceSession(twin.SerializeToString(), providers=["CPUExecutionProvider"])
    truth = dict(zip([value.name for value in session.get_outputs()], session.run(None, feeds)))
    # The images of one network on every architecture.
    found, plan = device(target).run(path, inputs, mode, check_images=(name, kind, mode) == ("resnet", "f32", "native-first"))
    assert set(found) == set(truth)
    bound = bound_of(plan, kind)
    for output, wanted in truth.items():
        assert found[output].dtype == small_networks.ELEMENTS[kind][1]
        error = check.difference(wanted, found[output].astype(np.float32))
        assert error <= bound, f"'{output}' differs by {error:.3g} of the largest magnitude"
    there, here = steps_of(plan)
    expect_providers(there, target, mode)
    # Embeddings may be looked up on the processor, too.
    assert all("gather" in nodes for nodes in here), f"on the processor: {here}"


@pytest.mark.parametrize("name, size, target, mode, quick", REAL)
def test_real_models(request, device, name, size, target, mode, quick):
    if not quick and not request.config.getoption("--all-models"):
        pytest.skip("runs with --all-models")
    path, inputs, truth, bounds = case(next(model for model in MODELS if model.name == name), size)
    # Own kernels without any class but f32; libraries as they come.
    strict = ["--deterministic"] if mode == "native-first" else []
    found, plan = device(target).run(path, inputs, mode, *strict)
    least = bound_of(plan, "f32")
    bounds = {name: (measure, max(least, bound)) for name, (measure, bound) in bounds.items()}
    result = check.compare(truth, bounds, found)
    assert result.right, f"output '{result.output}' differs by {result.error:.3g}, allowed are {result.bound:.3g}"
    there, here = steps_of(plan)
    expect_providers(there, target, mode)
    assert not here, f"on the processor: {here}"
