# SPDX-License-Identifier: Apache-2.0
"""The include check passes on this tree and finds each kind of violation in a made-up one."""
import importlib.util
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "check-includes.py"


def design() -> dict[str, set[str]]:
    """By room, what the table of the design says that it may include."""
    rows = re.findall(r"^\| `src/(\w+)/` \|.*\| ([^|]*) \|$", (ROOT / "docs/design.md").read_text(), re.MULTILINE)

    def rooms(text: str) -> set[str]:
        return set() if text in ("nothing", "the door only") else set(text.split(", "))

    stated = {}
    for room, text in rows:
        text, *parts = text.split("; ")
        stated[room] = rooms(text)
        for part in parts:  # `native`, which is so: codegen, ...
            who, _, what = part.partition(": ")
            stated[f"{room}/{who.split('`')[1]}"] = {f"{room}/native" if other == "native" else other
                                                     for other in rooms(what)}
    return stated


def test_the_design_says_the_same():
    spec = importlib.util.spec_from_file_location("check_includes", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    # "tools" are told apart in the script only.
    assert design() == {room: may for room, may in script.ALLOWED.items() if not room.startswith("tools")}


def check(root):
    return subprocess.run(
        [sys.executable, SCRIPT, root], capture_output=True, text=True, check=False
    )


def make(root, files):
    for room in ("support", "graph", "runtime", "codegen", "plan", "providers"):
        (root / "src" / room).mkdir(parents=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_this_tree_obeys():
    result = check(ROOT)
    assert result.returncode == 0, result.stderr


def test_allowed_includes_pass(tmp_path):
    make(tmp_path, {
        "src/graph/Graph.cpp": '#include "graph/Graph.h"\n#include "support/Hash.h"\n',
        "src/providers/native/Emit.cpp": '#include "codegen/Tile.h"\n',
        "src/providers/onednn/Conv.cpp": '#include "dovetail/provider.h"\n#include "Local.h"\n',
        "tools/dovetail-opt/main.cpp": '#include "plan/Choose.h"\n',
    })
    assert check(tmp_path).returncode == 0


def test_violations_are_named_with_file_and_line(tmp_path):
    make(tmp_path, {
        "src/support/Hash.cpp": '// first\n#include "graph/Graph.h"\n',
        "src/runtime/Session.cpp": '#include "codegen/Tile.h"\n',
        "src/providers/onednn/Conv.cpp": '#include "support/Hash.h"\n',
        "src/providers/blas/Gemm.cpp": '#include "providers/onednn/Conv.h"\n',
        "tools/dovetail/main.cpp": '#include "codegen/Tile.h"\n',
    })
    result = check(tmp_path)
    assert result.returncode == 1
    assert sorted(result.stderr.splitlines()) == [
        "src/providers/blas/Gemm.cpp:1: providers/blas must not include providers/onednn",
        "src/providers/onednn/Conv.cpp:1: providers/onednn must not include support",
        "src/runtime/Session.cpp:1: runtime must not include codegen",
        "src/support/Hash.cpp:2: support must not include graph",
        "tools/dovetail/main.cpp:1: tools/dovetail must not include codegen",
    ]
