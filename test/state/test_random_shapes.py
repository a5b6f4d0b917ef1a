# SPDX-License-Identifier: Apache-2.0
"""One session over many random shapes: every answer right, memory flat. `--all-shapes` runs 5,000 of each model, and of
two whole ones (half an hour)."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnxruntime as ort
import pytest

import state_models
import soak

MIB = 1 << 20
MODES = {"mixed": [], "native": ["--only=native,reference"], "libraries": ["--only=onednn,blas,reference"]}
MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
WHOLE = {"bert_base_dyn": "materialize.py", "ppocrv4_rec": "fetch.py"}


def check(built, kind, count, path, artifact):
    done = subprocess.run([sys.executable, pathlib.Path(soak.__file__), built.library, artifact, kind, str(count),
                           built.work], capture_output=True, text=True, check=False,
                          env={**os.environ, "MALLOC_ARENA_MAX": "1"})
    assert done.returncode == 0, done.stderr
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    truth = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = sorted(output.name for output in truth.get_outputs())
    with open(built.work / "results", "rb") as results:
        for inputs in soak.cases(kind, count):
            for name, expected in zip(names, truth.run(names, inputs)):
                found = np.load(results)
                shapes = [array.shape for array in inputs.values()]
                assert found.shape == expected.shape, f"{name} of {shapes}"
                error = np.abs(found - expected).max() / np.abs(expected).max()
                assert error <= 1e-4, f"{name} of {shapes}: {error}"
    memory = np.load(built.work / "memory.npy")
    # After the first quarter every buffer has about its largest size and the caches of kernels are full.
    early, late = memory[count // 4:count // 2].max(), memory[-count // 4:].max()
    assert late - early <= 8 * MIB + 0.02 * early, f"grew from {early / MIB:.1f} to {late / MIB:.1f} MiB"
    print(f"{kind}: {count} runs, {early / MIB:.1f} MiB, then {late / MIB:.1f}")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["encoder", "recognizer"])
def test_random_shapes(request, built, kind, mode):
    count = 5000 if request.config.getoption("--all-shapes", default=False) else 60
    path, artifact = built.compile(getattr(state_models, kind)(), *MODES[mode], name=kind)
    check(built, kind, count, path, artifact)


@pytest.mark.parametrize("name", WHOLE)
def test_random_shapes_of_whole_models(request, built, name):
    if not request.config.getoption("--all-shapes", default=False):
        pytest.skip("runs with --all-shapes")
    made = subprocess.run([sys.executable, MODELS / WHOLE[name], name], stdout=subprocess.PIPE, text=True, check=True)
    path = pathlib.Path(made.stdout.strip())
    artifact = built.work / "model.dvt"
    done = built.raw("compile", path, "-o", artifact, "--select=estimate", "--no-cache")
    assert done.returncode == 0, done.stderr
    check(built, name, 5000, path, artifact)
