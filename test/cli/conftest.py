# SPDX-License-Identifier: Apache-2.0
"""The command that was built, for each test in a folder of its own, and what tests share."""
import os
import pathlib

import pytest

import makers
from command import ESTIMATE, ROOT, Command


@pytest.fixture(scope="session")
def binary() -> pathlib.Path:
    path = pathlib.Path(os.environ.get("DOVETAIL_BUILD_DIR", ROOT / "build"), "bin/dovetail")
    assert path.exists(), f"{path} is missing: build first, with scripts/build"
    return path


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory) -> pathlib.Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def dovetail(binary, shared_cache, tmp_path) -> Command:
    return Command(binary, tmp_path, shared_cache)


@pytest.fixture(scope="session")
def tiny_artifact(binary, shared_cache, tmp_path_factory) -> bytes:
    """makers.tiny(), compiled."""
    command = Command(binary, tmp_path_factory.mktemp("tiny"), shared_cache)
    command("compile", command.write("tiny.onnx", makers.tiny()), ESTIMATE, "-o", "tiny.dvt")
    return (command.folder / "tiny.dvt").read_bytes()
