# SPDX-License-Identifier: Apache-2.0
"""silero_vad, a trained detector of voices: a model for each of two sampling rates in the branches of one conditional,
with conditionals on shapes inside, and an LSTM whose state goes from window to window."""
import pathlib
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest

from bodies import ROOT, command


@pytest.fixture(scope="module")
def detector() -> pathlib.Path:
    done = subprocess.run([sys.executable, ROOT / "models/fetch.py", "silero_vad"], stdout=subprocess.PIPE, text=True,
                          check=True)
    return pathlib.Path(done.stdout.strip())


@pytest.mark.parametrize("rate, samples", [(16000, 576), (8000, 288)])
def test_windows_in_turn(tmp_path, detector, rate, samples):
    session = onnxruntime.InferenceSession(detector, providers=["CPUExecutionProvider"])
    noise = np.random.default_rng(rate)
    feeds = {"input": np.zeros((1, samples), np.float32), "state": np.zeros((2, 1, 128), np.float32),
             "sr": np.array(rate)}
    given, found, artifact = tmp_path / "in.npz", tmp_path / "out.npz", tmp_path / "model.dvt"
    np.savez(given, **feeds)
    done = command("compile", detector, f"--inputs={given}", "-o", artifact, "--select=estimate", "--no-cache")
    # The branch of the lower rate does not take as many samples; the other one takes any.
    assert ("else branch contradicts the shapes" in done.stderr) == (rate == 16000)
    for _ in range(4):
        feeds["input"] = (noise.standard_normal((1, samples)) / 4).astype(np.float32)
        np.savez(given, **feeds)
        command("run", artifact, f"--inputs={given}", f"--output={found}")
        truth = session.run(None, feeds)
        with np.load(found) as results:
            for output, wanted in zip(session.get_outputs(), truth):
                np.testing.assert_allclose(results[output.name], wanted, rtol=1e-4, atol=1e-5)
        feeds["state"] = truth[1]
