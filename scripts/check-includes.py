#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no room includes a room it must not know:  check-includes.py [ROOT]

Reads every `#include "..."` under src/, include/ and tools/ and compares it with the table of the
design: which room may include which. A room's own headers, the installed C headers and everything
from outside the tree are always allowed. Headers generated into the build tree count as the room
of their path. Prints one line per violation; the exit status is 1 if there is any.
"""
import pathlib
import re
import sys

# What each room may include besides itself and include/dovetail. "all" is every room.
ALLOWED = {
    "support": set(),
    "graph": {"support"},
    "import": {"graph", "support"},
    "artifact": {"support"},
    "device": {"support"},
    "runtime": {"artifact", "device", "support"},
    "toolchain": {"support"},
    "codegen": {"graph", "device", "toolchain", "support"},
    "plan": {"graph", "artifact", "device", "support"},
    "driver": {"all"},
    "capi": {"driver", "runtime", "artifact", "device", "support"},
    # A provider sees nothing of the tree but the door, its own folder and the headers that stand
    # in src/providers itself.
    "providers": set(),
    "providers/native": {"codegen", "graph", "device", "support"},
    # Loads and launches its kernels as native does.
    "providers/user": {"toolchain", "providers/native", "codegen", "device", "support"},
    # The command explains and measures, so it sees plans and trials, not only the C API
    # (docs/decisions); the worker is the far end of measuring, which is plan's; the pass driver sees
    # single passes.
    "tools": set(),
    "tools/dovetail": {"driver", "plan", "runtime", "artifact", "device", "toolchain", "support"},
    "tools/dovetail-worker": {"plan", "artifact", "support"},
    "tools/dovetail-opt": {"driver", "graph", "import", "plan", "codegen", "support"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
SOURCES = {".h", ".cpp", ".c", ".inc", ".cu"}


def room_of(path: pathlib.PurePath) -> str:
    """The room that a path below src/ or tools/ is in: `graph`, `providers/onednn`, ..."""
    parts = path.parts
    deep = parts[0] in ("providers", "tools") and len(parts) > 2
    return "/".join(parts[: 2 if deep else 1])


def allowed_for(room: str) -> set[str]:
    return ALLOWED.get(room, ALLOWED.get(room.split("/")[0], set()))


def violations(root: pathlib.Path) -> list[str]:
    rooms = {p.name for p in (root / "src").iterdir() if p.is_dir()}
    found = []
    for top in ("src", "tools"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in SOURCES or not path.is_file():
                continue
            below = path.relative_to(root / "src" if top == "src" else root)
            room = room_of(below)
            text = path.read_text(encoding="utf-8", errors="replace")
            for match in INCLUDE.finditer(text):
                included = pathlib.PurePosixPath(match[1])
                # Relative to the including file, or outside the tree: not a room.
                if len(included.parts) < 2 or included.parts[0] not in rooms:
                    continue
                other = room_of(included)
                may = allowed_for(room)
                shared = other == "providers" and room.startswith("providers/")
                if other == room or shared or "all" in may or other in may or other.split("/")[0] in may:
                    continue
                line = text.count("\n", 0, match.start(1)) + 1
                found.append(f"{path.relative_to(root)}:{line}: {room} must not include {other}")
    return found


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    found = violations(root.resolve())
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
