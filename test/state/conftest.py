# SPDX-License-Identifier: Apache-2.0
"""Options, and what was built."""
import os
import pathlib
import subprocess

import onnx
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    parser.addoption("--all-shapes", action="store_true", help="5,000 random shapes of each model instead of 60")


class Built:
    def __init__(self, folder: pathlib.Path, work: pathlib.Path):
        self.binary, self.library, self.work = folder / "bin/dovetail", folder / "lib/libdovetail.so", work

    def raw(self, *arguments):
        return subprocess.run([self.binary, *map(str, arguments)], text=True, capture_output=True, check=False,
                              cwd=self.work)

    def compile(self, model, *arguments, name="model"):
        """Paths of the model and its artifact."""
        path, artifact = self.work / f"{name}.onnx", self.work / f"{name}.dvt"
        onnx.save(model, path)
        done = self.raw("compile", path, "-o", artifact, "--select=estimate", "--no-cache", *arguments)
        assert done.returncode == 0, done.stderr
        return path, artifact


@pytest.fixture
def built(tmp_path) -> Built:
    folder = pathlib.Path(os.environ.get("DOVETAIL_BUILD_DIR", ROOT / "build"))
    assert (folder / "bin/dovetail").exists(), f"{folder} is missing: build first, with scripts/build"
    return Built(folder, tmp_path)
