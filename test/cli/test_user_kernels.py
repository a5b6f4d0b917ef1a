# SPDX-License-Identifier: Apache-2.0
"""Users' own kernels: manifests that are wrong, kernels that compile and compete, and what is kept of them."""
import json
import pathlib
import shutil

import numpy as np
import pytest

import makers
from command import ESTIMATE, ROOT

KERNELS = ROOT / "test/user/kernels"
TARGET = "--target=cuda:sm_90"
GELU = 'problem(%0: f32[30,50]) %1: f32[30,50] = gelu@20(%0) {approximate="none"} return(%1)'


@pytest.fixture
def kernels(dovetail) -> pathlib.Path:
    """The folder of kernels, to be changed."""
    return pathlib.Path(shutil.copytree(KERNELS, dovetail.folder / "kernels"))


@pytest.fixture
def compiler(dovetail) -> str:
    tools = {tool["name"]: tool for tool in json.loads(dovetail("doctor", "--json").stdout)["tools"]}
    found = [name for name in ("NVRTC", "nvcc") if not tools[name]["missing"]]
    if not found:
        pytest.skip(f"no compiler of CUDA C++: {tools['NVRTC']['missing']}; {tools['nvcc']['missing']}")
    return f"{found[0]} {tools[found[0]]['version']}"


@pytest.fixture
def network(dovetail) -> str:
    """y = gelu(rms_norm(x)), on 64 columns."""
    scale = np.linspace(0.5, 1.5, 64, dtype=np.float32)
    return dovetail.write("network.onnx", makers.model(
        [makers.node("RMSNormalization", "x s", "t", name="norm"), makers.node("Gelu", "t", "y", name="act")],
        [makers.value("x", [48, 64])], [makers.value("y", [48, 64])], [makers.constant("s", scale)], opset=23, ir=10))


def changed(folder: pathlib.Path, **fields) -> str:
    """gelu.json with other fields; None takes one out."""
    path = folder / "gelu.json"
    manifest = json.loads(path.read_text()) | fields
    path.write_text(json.dumps({name: value for name, value in manifest.items() if value is not None}))
    return str(path)


@pytest.mark.parametrize("fields, says", [
    ({"name": None}, "lacks 'name'"),
    ({"name": "my kernel"}, "'name' is 'my kernel'; it is a word"),
    ({"name": 7}, "'name' is 7; it is a text"),
    ({"problems": None}, "lacks 'problems'.*--dump=regions"),
    ({"problems": "gelu"}, "'problems' is \"gelu\"; it is a list of texts"),
    ({"problems": ["gelu"]}, "'problems' has a text that is none: problem text, character 0"),
    ({"problems": ["problem(%0: f32[N]) return(%0)"]}, "'problems' has a text without ops"),
    ({"source": None}, "lacks 'source'"),
    ({"source": "none.cu"}, "'source' is 'none.cu'; there is no file .*kernels/none.cu"),
    ({"source": "gelu.json"}, "'language' is ''; it is cuda or hip"),
    ({"language": "opencl"}, "'language' is 'opencl'"),
    ({"entry": "gelu<float>"}, "'entry' is 'gelu<float>'"),
    ({"blocks": None}, "lacks 'blocks'"),
    ({"blocks": "R C"}, "'blocks' has 'R C', which is no expression"),
    ({"blocks": "K"}, "'blocks' has 'K', but K is no extent of problem"),
    ({"blocks": "in1.elements"}, "'blocks' has 'in1.elements', but"),
    ({"threads": None}, "lacks 'threads'"),
    ({"threads": [256]}, r"'threads' has \[256\]; it is a number, an expression"),
    ({"threads": 1.5}, "'threads' has 1.5"),
    ({"arguments": None}, "'arguments' is missing or no list"),
    ({"arguments": ["in0", "in1", "out0"]}, "'arguments' has 'in1', but there are 1"),
    ({"arguments": ["in0"]}, "'arguments' lacks out0"),
    ({"arguments": ["in0", "out0", {"f16": 1}]}, "a number with a type"),
    ({"arguments": ["in0", "out0", "@"]}, "after @ stands the name of an attribute"),
    ({"definitions": ["N"]}, "'definitions' is .* it is an object"),
    ({"definitions": {"A B": 1}}, "'A B', which is no name of a macro"),
    ({"flags": "-O3"}, "'flags' is \"-O3\"; it is a list of texts"),
    ({"numerics": "exact"}, "'numerics' is 'exact'; the classes of rounding are f32"),
    ({"deterministic": "yes"}, "'deterministic' is \"yes\"; it is true or false"),
    ({"in_place": 1}, "'in_place' is 1"),
    ({"workspace": {}}, "'workspace' has {}"),
    ({"targets": ["rocm:gfx942"]}, "'targets' has 'rocm:gfx942'; a source in CUDA C\\+\\+ is for"),
    ({"host_form": "none.so"}, "'host_form' names .*none.so, which is no file"),
    ({"grid": 3}, "'grid' is no field of a kernel's manifest; they are name, problems"),
])
def test_wrong_manifests(dovetail, kernels, network, fields, says):
    path = changed(kernels, **fields)
    dovetail.refuses(2, "compile", network, TARGET, f"--kernel={path}", says=["gelu.json", says])


def test_wrong_options(dovetail, kernels, network):
    mine = str(kernels / "gelu.json")
    dovetail.refuses(2, "compile", network, f"--kernel={mine}", says="are for devices; name one with --target")
    dovetail.refuses(2, "compile", network, TARGET, "--kernel=none.json", says="there is no such file")
    dovetail.refuses(2, "compile", network, TARGET, f"--kernel={kernels / 'gelu.cu'}", says="ends in .json")
    dovetail.refuses(2, "compile", network, TARGET, f"--kernel={mine}", f"--kernel={mine}",
                     says="the name 'gelu' was given to another")
    broken = dovetail.write("broken.json", "{")
    dovetail.refuses(2, "compile", network, TARGET, f"--kernel={broken}", says="broken.json: is not a JSON object")
    dovetail.refuses(2, "compile", network, TARGET, f"--save-temps={network}", says="is no folder")
    dovetail.refuses(3, "compile", network, TARGET, "--only=user", says="no such provider")


def test_doctor_names_the_tools(dovetail):
    report = json.loads(dovetail("doctor", "--json").stdout)
    assert [tool["name"] for tool in report["tools"]] == ["NVRTC", "nvcc", "nvJitLink", "ptxas", "hiprtc", "hipcc", "LLD"]
    for tool in report["tools"]:
        assert bool(tool["version"]) != bool(tool["missing"]), tool
    assert "tool       NVRTC" in dovetail("doctor").stdout


def trials(dovetail, *arguments, code: int = 0) -> list:
    done = dovetail.raw("problem", GELU, TARGET, "--json", "--only=user,native", *arguments)
    assert done.returncode == code, done.stderr
    return [trial for trial in json.loads(done.stdout)["trials"] if trial["candidate"]["provider"] == "user"]


def test_a_kernel_is_a_candidate(dovetail, kernels, compiler):
    trial, = trials(dovetail, f"--kernel={kernels / 'gelu.json'}")
    assert trial["candidate"]["algorithm"] == "gelu" and trial["outcome"] == "checked"


def test_a_compiler_is_heard(dovetail, kernels, compiler):
    source = kernels / "gelu.cu"
    source.write_text(source.read_text().replace("erff(", "errf("))
    trial, = trials(dovetail, f"--kernel={kernels / 'gelu.json'}", code=3)
    assert trial["outcome"] == "build failed"
    assert f"gelu.cu does not compile for sm_90 with {compiler}: " in trial["detail"]
    assert 'identifier "errf" is undefined' in trial["detail"]


def test_a_kernel_that_does_not_compile_is_warned_of(dovetail, kernels, network, compiler):
    source = kernels / "gelu.cu"
    source.write_text(source.read_text().replace("erff(", "errf("))
    arguments = [network, f"--device={described(dovetail)}", ESTIMATE, f"--kernel={kernels / 'gelu.json'}", "-o", "n.dvt"]
    done = dovetail("compile", *arguments, "--only=user,reference")
    assert "warning: the kernel user:gelu is not used: build failed" in done.stderr and "errf" in done.stderr
    dovetail.refuses(3, "compile", *arguments[:-1], "m.dvt", "--force=act=user:gelu",
                     says="--force act=user:gelu: this kernel cannot be used: .*errf")


def test_missing_compilers_cost_the_candidate(dovetail, kernels, network):
    tools = {tool["name"]: tool for tool in json.loads(dovetail("doctor", "--json").stdout)["tools"]}
    if not tools["hiprtc"]["missing"] or not tools["hipcc"]["missing"]:
        pytest.skip("a compiler of HIP C++ is here")
    shutil.copy(kernels / "gelu.cu", kernels / "gelu.hip")
    mine = changed(kernels, source="gelu.hip")
    told = dovetail("problem", GELU, "--target=rocm:gfx942", f"--kernel={mine}", "--only=user,native", "--json")
    refusals = [refusal[2] for refusal in json.loads(told.stdout)["refusals"] if refusal[0] == "user"]
    assert any("no compiler of HIP C++ for gfx942 is here (hiprtc: " in reason for reason in refusals)
    dovetail.refuses(2, "compile", network, "--target=rocm:gfx942", f"--kernel={mine}", "--force=act=user:gelu",
                     says="no such kernel is on offer")


def described(dovetail) -> str:
    """A device on which work is free, so that what can be there is there."""
    folder = pathlib.Path(dovetail.binary).parents[1] / "lib/dovetail/devices"
    device = json.loads((folder / "cuda-sm_90.json").read_text())
    device |= {"launch_micros": 0, "transfer_micros": 0, "link_gigabytes_per_second": 1e5}
    return dovetail.write("device.json", json.dumps(device))


def simulated(dovetail) -> dict:
    build = pathlib.Path(dovetail.binary).parents[1]
    return {"DOVETAIL_DRIVERS": f"cuda={build / 'lib/dovetail-test/libcuda-sim.so'}",
            "DOVETAIL_SIMULATED_ARCHITECTURE": "sm_90"}


def compile_forced(dovetail, network: str, kernels: pathlib.Path, *arguments):
    return dovetail("compile", network, f"--device={described(dovetail)}", ESTIMATE, "--only=user,native,reference",
                    f"--kernel={kernels / 'gelu.json'}", f"--kernel={kernels / 'rms_norm.json'}",
                    "--force=act=user:gelu", "--force=norm=user:rms_norm", "-o", "n.dvt", *arguments)


def test_a_plan_has_them_and_keeps_what_they_are_made_of(dovetail, kernels, network, compiler):
    compile_forced(dovetail, network, kernels, "--save-temps=temps")
    plan = json.loads(dovetail("explain", "n.dvt", "--json").stdout)
    chosen = [step["kernel"] for step in plan["steps"]]
    assert "user:gelu" in chosen and "user:rms_norm" in chosen
    kept = {path.name.split("-", 1)[1]: path for path in (dovetail.folder / "temps").iterdir()}
    assert {"user-gelu.cu", "user-gelu.json", "user-gelu.sm_90.ptx", "user-gelu.txt",
            "user-rms_norm.cu"} <= kept.keys()
    assert kept["user-gelu.cu"].read_text() == (kernels / "gelu.cu").read_text()
    assert ".entry gelu(" in kept["user-gelu.sm_90.ptx"].read_text()
    assert "launch    gelu: 12 blocks of 256 threads" in kept["user-gelu.txt"].read_text()
    if "user-gelu.sm_90.cubin" in kept:
        assert kept["user-gelu.sm_90.cubin"].read_bytes()[:4] == b"\x7fELF"
        assert "Compiling entry function 'gelu'" in kept["user-gelu.log"].read_text()
        assert " registers" in kept["user-gelu.txt"].read_text()


def test_one_that_does_not_work_in_place_keeps_its_place(dovetail, kernels, network, compiler):
    changed(kernels, in_place=False)
    compile_forced(dovetail, network, kernels)
    told = dovetail("explain", "n.dvt").stdout
    assert "user:gelu" in told and " registers" in told


def test_a_network_runs_with_them_on_a_simulated_device(dovetail, kernels, network, compiler):
    forms = pathlib.Path(dovetail.binary).parents[1] / "test/user-kernels"
    for name, form in [("gelu", "Gelu.so"), ("rms_norm", "RmsNorm.so")]:
        path = kernels / f"{name}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"host_form": str(forms / form)}))
    compile_forced(dovetail, network, kernels)
    x = np.random.default_rng(7).standard_normal((48, 64)).astype(np.float32)
    np.save(dovetail.folder / "x.npy", x)
    done = dovetail("run", "n.dvt", "--input=x=x.npy", "--output=y.npz", **simulated(dovetail))
    assert done.stderr == ""
    dovetail("run", network, "--input=x=x.npy", "--output=cpu.npz", "--only=reference", ESTIMATE)
    y, cpu = (np.load(dovetail.folder / file)["y"] for file in ("y.npz", "cpu.npz"))
    assert np.abs(y - cpu).max() <= 1e-5 * np.abs(cpu).max()
    steps = json.loads(dovetail("bench", "n.dvt", "--runs=3", "--profile", "--json", **simulated(dovetail)).stdout)
    assert {"user:gelu", "user:rms_norm"} <= {step["kernel"] for step in steps["steps"]}


def test_without_a_host_form_another_kernel_runs_there(dovetail, kernels, network, compiler):
    compile_forced(dovetail, network, kernels)
    done = dovetail("run", "n.dvt", **simulated(dovetail))
    assert "a simulated device runs host forms only" in done.stderr


def test_the_documents_example_is_the_one_tested():
    text = (ROOT / "docs/users-kernels.md").read_text()
    for name, language in [("gelu.cu", "cuda"), ("gelu.json", "json")]:
        shown = text.split(f"```{language}\n")[1].split("```")[0]
        tested = (KERNELS / name).read_text()
        assert shown == tested.removeprefix("// SPDX-License-Identifier: Apache-2.0\n")
