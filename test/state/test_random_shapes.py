# SPDX-License-Identifier: Apache-2.0
"""One session over many random shapes: every answer right, memory flat. `--all-shapes` runs 5,000 of each model."""
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


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["encoder", "recognizer"])
def test_random_shapes(request, built, kind, mode):
    count = 5000 if request.config.getoption("--all-shapes", default=False) else 60
    path, artifact = built.compile(getattr(state_models, kind)(), *MODES[mode], name=kind)
    out = built.work / "out.npz"
    done = subprocess.run([sys.executable, pathlib.Path(soak.__file__), built.library, artifact, kind, str(count), out],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "MALLOC_ARENA_MAX": "1"})
    assert done.returncode == 0, done.stderr
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    truth = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    with np.load(out) as found:
        for i, (shape, inputs) in enumerate(soak.cases(kind, count)):
            expected = truth.run(None, inputs)[0]
            assert found[str(i)].shape == expected.shape, shape
            error = np.abs(found[str(i)] - expected).max() / np.abs(expected).max()
            assert error <= 1e-4, f"{shape}: {error}"
        memory = found["memory"]
    # After the first quarter every buffer has about its largest size and the caches of kernels are full.
    early, late = memory[count // 4:count // 2].max(), memory[-count // 4:].max()
    assert late - early <= 8 * MIB + 0.02 * early, f"grew from {early / MIB:.1f} to {late / MIB:.1f} MiB"
