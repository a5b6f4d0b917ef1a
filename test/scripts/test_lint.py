# SPDX-License-Identifier: Apache-2.0
"""scripts/lint --quick in a made-up tree: every kind of source needs its SPDX line and has a bounded length."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPDX = "SPDX-License-Identifier: Apache-2.0\n"
SOURCES = {"CMakeLists.txt": "# ", "src/graph/CMakeLists.txt": "# ", "src/graph/Ops.inc": "// ",
           "src/graph/A.cpp": "// ", "src/graph/A.h": "// ", "test/k.cu": "// ", "test/a.py": "# ", "scripts/build": "# ", ".ci/run": "# "}


@pytest.fixture
def tree(tmp_path):
    """A repository in which all is well, and what lint says of it."""
    for name in "scripts/lint", "scripts/check-includes.py", ".clang-format":
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name, comment in SOURCES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(comment + SPDX)
    (tmp_path / "scripts/requirements.txt").write_text("cmake\n")
    (tmp_path / "test/problems.txt").write_text("no source\n")
    environment = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    for arguments in ["init", "-q"], ["add", "."]:
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True, env=environment)

    def lint():
        done = subprocess.run([tmp_path / "scripts/lint", "--quick"], text=True, capture_output=True, check=False,
                              env=environment)
        return done.returncode, done.stdout + done.stderr

    return tmp_path, lint


def test_a_good_tree_passes(tree):
    assert tree[1]() == (0, "")


def test_spdx_lines(tree):
    folder, lint = tree
    for name, comment in SOURCES.items():
        (folder / name).write_text(comment + "Something\n")
    code, said = lint()
    assert code == 1 and sorted(said.splitlines()) == sorted(f"{name}: no SPDX line at the top" for name in SOURCES)


@pytest.mark.parametrize("name", ["src/graph/Ops.inc", "test/k.cu", "src/graph/CMakeLists.txt"])
def test_lengths(tree, name):
    folder, lint = tree
    (folder / name).write_text(SOURCES[name] + SPDX + f"{SOURCES[name]}x\n" * 800)
    assert lint() == (1, f"{name}: more than 800 lines\n")
