# SPDX-License-Identifier: Apache-2.0
"""scripts/tidy.py with a clang-tidy that only notes what it is asked: findings fail, what passed is remembered."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ["src/support/Hash.cpp", "src/support/Log.cpp"]
FAKE = """#!/bin/sh
[ "$1" = --version ] && echo fake 1 && exit
for source; do :; done
echo "$source" >>"$ASKED"
[ -z "$FINDS" ] || { echo "$source:1:1: error: $FINDS"; exit 1; }
"""


@pytest.fixture
def tidy(tmp_path):
    build = tmp_path / "build"
    build.mkdir()
    entries = [{"directory": str(build), "file": str(ROOT / source), "command": f"c++ -c {ROOT / source}"}
               for source in SOURCES]
    entries.append({"directory": str(build), "file": str(ROOT / "src/graph/Graph.cpp"),
                    "command": "c++ -isystem /usr/lib/llvm-22/include -c Graph.cpp"})
    (build / "compile_commands.json").write_text(json.dumps(entries))
    fake = tmp_path / "bin" / "clang-tidy-22"
    fake.parent.mkdir()
    fake.write_text(FAKE)
    fake.chmod(0o755)

    def run(*arguments, finds=""):
        """What was said, the exit status, and which sources clang-tidy was asked about."""
        asked = tmp_path / "asked"
        asked.write_text("")
        done = subprocess.run([sys.executable, ROOT / "scripts/tidy.py", build, *arguments], text=True, check=False,
                              capture_output=True,
                              env={**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}", "ASKED": str(asked),
                                   "FINDS": finds, "DOVETAIL_CACHE": str(tmp_path / "cache")})
        sources = sorted(os.path.relpath(line, ROOT) for line in asked.read_text().splitlines())
        return done.stdout + done.stderr, done.returncode, sources

    return run


def test_what_passed_is_not_looked_at_again(tidy):
    said, code, asked = tidy()
    assert (code, asked) == (0, SOURCES) and "2 sources: 0 seen before, 2 now, 0 with findings" in said
    said, code, asked = tidy()
    assert (code, asked) == (0, []) and "2 sources: 2 seen before, 0 now" in said


def test_findings_fail_every_time(tidy):
    for _ in range(2):
        said, code, asked = tidy(finds="a mistake")
        assert (code, asked) == (1, SOURCES) and "Log.cpp:1:1: error: a mistake" in said
    assert tidy()[1:] == (0, SOURCES)


def test_what_the_budget_leaves_out_is_named(tidy):
    said, code, asked = tidy("--budget=0")
    assert (code, asked) == (0, [])
    assert all(source in said for source in SOURCES)
    *_, last = said.splitlines()
    assert last.startswith("clang-tidy: 2 of 2 sources were NOT seen, because the 0 s were used up; all are by: ")
    command = last.partition("all are by: ")[2].split()
    assert command[:2] == ["python3", "scripts/tidy.py"] and tidy(*command[3:])[1:] == (0, SOURCES)


def test_nothing_is_said_of_a_budget_that_suffices(tidy):
    assert "NOT seen" not in tidy()[0]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """scripts/tidy.py as a module, and a repository in which it believes to stand."""
    spec = importlib.util.spec_from_file_location("tidy", ROOT / "scripts/tidy.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    for name in "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE":  # as a hook of git's would have them
        monkeypatch.delenv(name, raising=False)
    return module, Checkout(tmp_path)


class Checkout:
    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments, **environment):
        subprocess.run(["git", "-C", self.folder, "-c", "user.name=n", "-c", "user.email=e", *arguments], check=True,
                       capture_output=True, env={**os.environ, **environment})

    def write(self, *names):
        for name in names:
            (self.folder / name).write_text(f"{name}\n{len(list(self.folder.iterdir()))}\n")

    def commit(self, day: int, *names):
        self.write(*names)
        self.git("add", *names)
        self.git("commit", "-q", "-m", "m", GIT_COMMITTER_DATE=f"2020-01-{day:02} 00:00:00 +0000")

    def order(self, module, **headers) -> list[str]:
        """Of all sources here; `headers`: which they include, by their names without an ending."""
        found = {str(path): [self.folder / f"{header}.h" for header in headers.get(path.stem, [])]
                 for path in sorted(self.folder.glob("*.cpp"))}
        return [pathlib.Path(source).stem for source in module.by_interest(found)]


def test_what_was_committed_last_comes_first(checkout):
    module, tree = checkout
    for day, name in (2, "b"), (4, "d"), (3, "c"), (1, "a"):
        tree.commit(day, f"{name}.cpp")
    for path in tree.folder.glob("*.cpp"):
        os.utime(path, (0, 0))  # as if it had just been cloned
    assert tree.order(module) == ["d", "c", "b", "a"]


def test_what_the_default_branch_lacks_comes_before(checkout):
    module, tree = checkout
    tree.commit(1, "base.h", "branch.cpp", "edited.cpp", "includes.cpp")
    tree.commit(9, "late.cpp")
    tree.git("checkout", "-q", "-b", "work")
    tree.commit(2, "branch.cpp", "base.h")
    tree.write("edited.cpp", "new.cpp")
    for age, name in enumerate(["new", "edited", "branch"]):
        os.utime(tree.folder / f"{name}.cpp", (1000 - age, 1000 - age))
    assert tree.order(module, includes=["base"], late=["other"]) == ["new", "edited", "branch", "includes", "late"]


def test_without_git_the_newest_comes_first(checkout, monkeypatch):
    module, tree = checkout
    tree.write("a.cpp", "b.cpp")
    os.utime(tree.folder / "a.cpp", (1000, 1000))
    os.utime(tree.folder / "b.cpp", (2000, 2000))
    monkeypatch.setenv("PATH", str(tree.folder))
    assert tree.order(module) == ["b", "a"]
