# SPDX-License-Identifier: Apache-2.0
"""Whole models through the command line, compared with onnxruntime without optimisations.

Each model runs in every mode: the mixed plan, both preferences, own kernels only, the reference only, and from an
artifact that another process loads. Models with free extents run at three sizes. By default the plans come from
estimates, small models run in several modes and large ones from an artifact alone; `--all-models` brings the rest, and
measures.
"""
import dataclasses
import os
import pathlib
import subprocess
import sys

import pytest

import check

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODES = {
    "mixed": [],
    "native-first": ["--prefer=native"],
    "library-first": ["--prefer=library"],
    "native-only": ["--only=native,reference"],
    "reference-only": ["--only=reference"],
}


@dataclasses.dataclass
class Model:
    name: str
    input: str = ""  # the one that the sizes are for; else the sizes are extents of named dimensions
    sizes: list = dataclasses.field(default_factory=lambda: [()])  # empty: as the model says
    names: tuple = ()  # of the dimensions
    trained: bool = True  # out of a package; else random weights in a skeleton
    # What the default run does: "all" modes and the artifacts at the first size and the mixed plan at the others, or
    # only these modes at the first size; "artifact" is the mixed plan, compiled here and run by another process.
    quick: tuple = ()
    bfloat: bool = False  # in bf16: compared with the twin in f32


MODELS = [
    Model("mtcnn_pnet", "input_1", [(1, 24, 32, 3), (2, 40, 40, 3), (1, 12, 12, 3)], quick=("all",)),
    Model("mtcnn_rnet", "input_2", [(n, 24, 24, 3) for n in (1, 3, 8)], quick=("all",)),
    Model("mtcnn_onet", "input_3", [(n, 48, 48, 3) for n in (1, 2, 5)], quick=("all",)),
    Model("ppocr_cls", "x", [(1, 3, 48, 192), (2, 3, 48, 192), (1, 3, 48, 96), (1, 3, 32, 100)], quick=("all",)),
    Model("ppocrv4_rec", "x", [(1, 3, 48, 320), (2, 3, 48, 160), (1, 3, 48, 96)], quick=("native-only", "artifact")),
    Model("ppocrv4_det", "x", [(1, 3, 224, 320), (1, 3, 64, 96), (1, 3, 160, 160)], quick=("artifact",)),
    Model("mobilenet_v3_large", trained=False, quick=("artifact",)),
    Model("unet_plain_256", trained=False, quick=("native-only", "reference-only", "artifact")),
    *(Model(name, trained=False, quick=("artifact",))
      for name in ("resnet50", "convnext_tiny", "vit_b_16", "bert_base_128")),
    Model("magika_v3_3", "bytes", [(1, 2048), (3, 2048)], quick=("mixed", "native-only")),
    Model("basic_pitch", quick=("native-only",)),
    Model("silero_vad", quick=("mixed", "native-only", "library-first", "reference-only")),
    Model("lstm_bi2", trained=False, quick=("mixed", "native-only", "library-first", "reference-only")),
    Model("minilm_l6_int8", names=("batch", "sequence"), sizes=[(1, 128), (2, 30), (1, 7)], quick=("artifact",)),
    Model("bert_base_dyn", names=("batch", "seq"), sizes=[(1, 128), (2, 40), (1, 200)], trained=False,
          quick=("artifact",)),
    *(Model(f"llama_100m_{kind}", names=("seq", "past"), sizes=[(1, 128), (16, 0), (3, 50)], trained=False, quick=quick)
      for kind, quick in (("dyn", ("artifact",)), ("op23", ()), ("dyn_int4_qdq", ()))),
    Model("llama_100m_decode128", trained=False, quick=("artifact",)),
    *(Model(f"llama_100m_{kind}", trained=False) for kind in ("prefill128", "decode128_int4_nbits")),
    *(Model(name, trained=False, quick=("artifact",)) for name in ("resnet50_int8_qdq", "resnet50_fp16")),
    Model("bert_base_128_int8_qdq", trained=False),
    Model("resnet50_bf16", trained=False, bfloat=True, quick=("artifact",)),
]
SIZED = [pytest.param(model, size, id="-".join([model.name, *("x".join(map(str, s)) for s in [size] if s)]))
         for model in MODELS for size in model.sizes]


@pytest.fixture(scope="session")
def binary(request) -> pathlib.Path:
    given = request.config.getoption("--dovetail")
    path = pathlib.Path(given or pathlib.Path(os.environ.get("DOVETAIL_BUILD_DIR", ROOT / "build"), "bin/dovetail"))
    assert path.exists(), f"{path} is missing: build first, with scripts/build"
    return path


@pytest.fixture(scope="session")
def planning(request, tmp_path_factory) -> list[str]:
    """Arguments of every plan; a cache of its own keeps yesterday's measurements out of today's tests."""
    select = ["--budget=20"] if request.config.getoption("--all-models") else ["--select=estimate"]
    return [*select, f"--cache={tmp_path_factory.mktemp('cache')}"]


def take_part(request, model: Model, size: tuple = (), mode: str = "artifact") -> None:
    first = not size or size == model.sizes[0]
    quick = (first or mode == "mixed") if "all" in model.quick else first and mode in model.quick
    if not request.config.getoption("--all-models") and not quick:
        pytest.skip("runs with --all-models")


_cases = {}


def case(model: Model, size: tuple):
    """Path, inputs, truth and bounds; made once for all modes."""
    key = model.name, size
    if key not in _cases:
        _cases.clear()  # one at a time: some models are large
        script = ROOT / "models" / ("fetch.py" if model.trained else "materialize.py")
        done = subprocess.run([sys.executable, script, model.name], stdout=subprocess.PIPE, text=True, check=True)
        path = pathlib.Path(done.stdout.strip())
        given = check.OPEN.get(model.name, {}) | ({model.input: size} if model.input else dict(zip(model.names, size)))
        inputs = check.make_inputs(path, given)
        find_truth = check.twin_truth_and_bounds if model.bfloat else check.truth_and_bounds
        _cases[key] = path, inputs, *find_truth(path, inputs)
    return _cases[key]


def expect_right(truth, bounds, found) -> None:
    assert set(truth) == set(found)
    result = check.compare(truth, bounds, found)
    assert result.right, f"output '{result.output}' differs by {result.error:.3g}, allowed are {result.bound:.3g}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("model, size", SIZED)
def test_run(request, binary, planning, model, size, mode):
    take_part(request, model, size, mode)
    path, inputs, truth, bounds = case(model, size)
    expect_right(truth, bounds, check.run(binary, path, inputs, *planning, *MODES[mode]))


@pytest.mark.parametrize("model, size", SIZED)
def test_artifact(request, binary, planning, tmp_path, model, size):
    """Compiled for this size in one process, loaded in another."""
    take_part(request, model, size)
    path, inputs, truth, bounds = case(model, size)
    artifact, given = tmp_path / "model.dvt", tmp_path / "in.npz"
    check.np.savez(given, **inputs)
    done = subprocess.run([binary, "compile", path, "--inputs", given, "-o", artifact, *planning], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    expect_right(truth, bounds, check.run(binary, artifact, inputs))


@pytest.mark.parametrize("planned, given", [(2, 1), (1, 2)])
def test_artifact_with_other_threads(binary, planning, tmp_path, planned, given):
    """The planned kernels run with any number of threads."""
    model = next(model for model in MODELS if model.name == "mtcnn_onet")
    path, inputs, truth, bounds = case(model, model.sizes[0])
    artifact, files = tmp_path / "model.dvt", [tmp_path / "in.npz", tmp_path / "out.npz"]
    check.np.savez(files[0], **inputs)
    subprocess.run([binary, "compile", path, "--inputs", files[0], "-o", artifact, f"--threads={planned}", *planning],
                   check=True, capture_output=True)
    done = subprocess.run([binary, "run", artifact, "--inputs", files[0], "--output", files[1], f"--threads={given}"],
                          check=True, capture_output=True, text=True)
    assert done.stderr == ""
    with check.np.load(files[1]) as found:
        expect_right(truth, bounds, dict(found))


@pytest.mark.parametrize("model", [model for model in MODELS if len(model.sizes) > 1], ids=lambda model: model.name)
def test_artifact_with_free_extents(request, binary, planning, tmp_path, model):
    """Compiled once without sizes, run at all of them."""
    take_part(request, model, mode="free extents")
    artifact = tmp_path / "model.dvt"
    done = subprocess.run([binary, "compile", case(model, model.sizes[0])[0], "-o", artifact, *planning], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    for size in model.sizes:
        _, inputs, truth, bounds = case(model, size)
        expect_right(truth, bounds, check.run(binary, artifact, inputs))
