# SPDX-License-Identifier: Apache-2.0
"""What was built, and a folder to use it in."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Built:
    def __init__(self, folder: pathlib.Path, work: pathlib.Path):
        self.folder, self.work = folder, work
        self.environment = {**os.environ, "DOVETAIL_CACHE": str(work / "cache")}
        self.environment.pop("DOVETAIL_PLUGINS", None)

    def run(self, *arguments, given: str = "") -> str:
        done = subprocess.run([*map(str, arguments)], cwd=self.work, env=self.environment, input=given, text=True,
                              capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def command(self, *arguments) -> str:
        return self.run(self.folder / "bin/dovetail", *arguments)

    def explain(self, artifact: str) -> dict:
        return json.loads(self.command("explain", artifact, "--json"))

    def compile(self, model: str, artifact: str, **options) -> dict:
        """Through dvt_compile."""
        request = {"model": model, "artifact": artifact, "options": {"select": "estimate", "cache_path": "", **options}}
        return json.loads(self.run(sys.executable, pathlib.Path(__file__).with_name("compile_model.py"),
                                   self.folder / "lib", given=json.dumps(request)))


@pytest.fixture(scope="session")
def build_folder() -> pathlib.Path:
    folder = pathlib.Path(os.environ.get("DOVETAIL_BUILD_DIR", ROOT / "build"))
    assert (folder / "bin/dovetail").exists(), f"{folder} is missing: build first, with scripts/build"
    return folder


@pytest.fixture
def built(build_folder, tmp_path) -> Built:
    return Built(build_folder, tmp_path)


@pytest.fixture(scope="session")
def built_once(build_folder, tmp_path_factory) -> Built:
    """With a folder that all tests of a session share."""
    return Built(build_folder, tmp_path_factory.mktemp("shared"))
