# SPDX-License-Identifier: Apache-2.0
"""scripts/tidy.py with a clang-tidy that only notes what it is asked: findings fail, what passed is remembered."""
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
    assert "2 not seen" in said and all(source in said for source in SOURCES)
