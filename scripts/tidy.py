#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy on the sources that do not include MLIR:  tidy.py BUILD [--budget SECONDS]

clang-tidy cannot read g++'s precompiled headers nor some of its flags, so it gets a compilation
database of its own without them, in BUILD/tidy. Sources with MLIR take half a minute each and are
left out. A source that passed is not looked at again until it, a header of the tree or the
configuration changes. When the budget is used up, the rest is counted and left for next time.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
GCC_ONLY = re.compile(
    r" -fpch-preprocess| -Winvalid-pch| -fno-semantic-interposition| -Werror\S*"
    r"| -Wno-error=\S+| -Wno-dangling-pointer| -Wno-maybe-uninitialized"
    r"| -include \S*cmake_pch\S*"
)


def commands(build: pathlib.Path) -> list[dict]:
    """The compilation database without MLIR sources, third-party files and g++'s own flags."""
    kept = []
    # Last in the search order: clang's own headers go first, omp.h is only there.
    gcc_headers = subprocess.run(
        ["g++", "-print-file-name=include"], capture_output=True, text=True, check=True
    ).stdout.strip()
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        ours = path.suffix == ".cpp" and path.is_relative_to(ROOT)
        if not ours or path.is_relative_to(build) or path.is_relative_to(ROOT / "cmake"):
            continue
        if re.search(r"/llvm-\d+/include", entry["command"]):
            continue
        command = GCC_ONLY.sub("", entry["command"]) + f" -idirafter {gcc_headers}"
        # Generated headers are not ours to name things in.
        command = re.sub(rf" -I({re.escape(str(build))}/\S+)", r" -isystem \1", command)
        kept.append(entry | {"command": command})
    return kept


def digest(paths: list[pathlib.Path]) -> str:
    state = hashlib.sha256()
    for path in paths:
        state.update(path.read_bytes())
    return state.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--budget", type=float, default=240, metavar="SECONDS")
    options = parser.parse_args()
    build = options.build.resolve()
    tidy = build / "tidy"
    tidy.mkdir(exist_ok=True)
    entries = commands(build)
    (tidy / "compile_commands.json").write_text(json.dumps(entries, indent=1))

    shared = [ROOT / ".clang-tidy", *sorted(ROOT.glob("src/**/*.h")), *ROOT.glob("include/**/*.h")]
    base = digest(shared)
    deadline = time.monotonic() + options.budget
    skipped = 0

    def check(path: pathlib.Path) -> str:
        """What clang-tidy found in a source; nothing if it passed now or before."""
        nonlocal skipped
        stamp = tidy / hashlib.sha256((base + digest([path])).encode()).hexdigest()
        if stamp.exists():
            return ""
        if time.monotonic() > deadline:
            skipped += 1
            return ""
        run = subprocess.run(
            ["clang-tidy", "--quiet", "-p", tidy, path], capture_output=True, text=True, check=False
        )
        if run.returncode == 0:
            stamp.touch()
            return ""
        return run.stdout + (run.stderr if not run.stdout else "")

    sources = sorted({pathlib.Path(e["file"]) for e in entries})
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = 0
        for text in filter(None, pool.map(check, sources)):
            print(text, end="", file=sys.stderr, flush=True)
            found += 1
    if skipped:
        print(f"clang-tidy: {skipped} of {len(sources)} sources not looked at (budget used up)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
