#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy on the sources that do not include MLIR:  tidy.py BUILD [--budget SECONDS]

clang-tidy cannot read g++'s precompiled headers nor some of its flags, so it gets a compilation
database of its own without them, in BUILD/tidy. Sources with MLIR take half a minute each and are
left out. What passed is remembered in the cache folder, beside what scripts/setup keeps there, and
not looked at again, in this checkout or another, until the source, a header that it includes, its
flags or the configuration change. What differs from the default branch comes first, then what
includes that, then what was changed last. When the budget is used up, the rest is named and left for
the next run. The exit status is 1 if anything was found.
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

TIDY = "clang-tidy-22"
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
        command = GCC_ONLY.sub("", entry["command"]) + f" -idirafter {gcc_headers} -Wno-ignored-attributes"
        # Generated headers are not ours to name things in.
        command = re.sub(rf" -I({re.escape(str(build))}/\S+)", r" -isystem \1", command)
        kept.append(entry | {"command": command})
    return kept


def included(build: pathlib.Path) -> dict[str, list[pathlib.Path]]:
    """The headers of the tree that each object was built from, as ninja knows them."""
    listed = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=False).stdout
    headers = {}
    for block in listed.split("\n\n"):
        lines = block.splitlines()
        if lines and "(VALID)" in lines[0]:
            paths = {pathlib.Path(os.path.normpath(build / line.strip())) for line in lines[1:]}
            headers[lines[0].partition(":")[0]] = sorted(p for p in paths if p.is_relative_to(ROOT) and p.is_file())
    return headers


def identity(entry: dict, headers: list[pathlib.Path], shared: bytes) -> str:
    """A digest of all that the findings depend on. Where the checkout stands is none of it."""
    state = hashlib.sha256(shared)
    state.update(entry["command"].replace(entry["directory"], "BUILD").replace(str(ROOT), "ROOT").encode())
    for path in [pathlib.Path(entry["file"]), *headers]:
        state.update(hashlib.sha256(path.read_bytes()).digest())
    return state.hexdigest()


def git(*arguments: str) -> list[str]:
    """What git says of the checkout, by lines; nothing where it has nothing to say."""
    try:
        done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def changed_files() -> set[pathlib.Path]:
    """Those that differ from the commit at which the default branch was left, new ones included."""
    branches = [*git("symbolic-ref", "--short", "refs/remotes/origin/HEAD"), "main", "master"]
    bases = (git("merge-base", "HEAD", branch) for branch in branches)
    base = next((lines[0] for lines in bases if lines), "HEAD")
    names = [*git("diff", "--name-only", "--no-renames", base), *git("ls-files", "--others", "--exclude-standard")]
    return {ROOT / name for name in names}


def commit_times() -> dict[pathlib.Path, int]:
    """When each file was last committed. In a new checkout all files are of the same age."""
    times = {}
    committed = 0
    for line in git("log", "--format=%x00%ct", "--name-only", "--no-renames"):
        if line.startswith("\0"):
            committed = int(line[1:])
        elif line:
            times.setdefault(ROOT / line, committed)
    return times


def by_interest(headers_of: dict[str, list[pathlib.Path]]) -> list[str]:
    """The sources, given with the headers that each includes, in the order in which to look at them."""
    changed, times = changed_files(), commit_times()

    def place(source: str) -> tuple:
        path = pathlib.Path(source)
        distance = 0 if path in changed else 1 if changed.intersection(headers_of[source]) else 2
        written = path.stat().st_mtime
        return distance, -(written if path in changed else times.get(path, written)), source

    return sorted(headers_of, key=place)


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
    homes = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    cache = pathlib.Path(os.environ.get("DOVETAIL_CACHE") or pathlib.Path(homes) / "dovetail") / "tidy"
    cache.mkdir(parents=True, exist_ok=True)

    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    shared = version + (ROOT / ".clang-tidy").read_bytes()
    every = sorted({*ROOT.glob("src/**/*.h"), *ROOT.glob("include/**/*.h"), *ROOT.glob("test/**/*.h")})
    headers = included(build)
    waiting, headers_of = {}, {}  # by source: where it is remembered; what it includes
    for entry in entries:
        built = re.search(r" -o (\S+)", entry["command"])
        mine = headers.get(built[1] if built else "", every)
        stamp = cache / identity(entry, mine, shared)
        if not stamp.exists() and waiting.setdefault(entry["file"], stamp) is stamp:
            headers_of[entry["file"]] = mine
    deadline = time.monotonic() + options.budget
    unseen = []

    def check(source: str) -> str:
        """What clang-tidy finds in a source."""
        if time.monotonic() > deadline:
            unseen.append(os.path.relpath(source, ROOT))
            return ""
        run = subprocess.run([TIDY, "--quiet", "-p", tidy, source], capture_output=True, text=True, check=False)
        if run.returncode == 0:
            waiting[source].touch()
            return ""
        return run.stdout + (run.stderr if not run.stdout else "")

    found = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for text in filter(None, pool.map(check, by_interest(headers_of))):
            print(text, end="", file=sys.stderr, flush=True)
            found += 1
    total = len({entry["file"] for entry in entries})
    print(f"clang-tidy: {total} sources: {total - len(waiting)} seen before, {len(waiting) - len(unseen)} now, "
          f"{found} with findings")
    if unseen:
        print(f"clang-tidy: left for the next run: {' '.join(sorted(unseen))}")
        print(f"clang-tidy: {len(unseen)} of {total} sources were NOT seen, because the {options.budget:g} s were used "
              f"up; all are by: python3 scripts/tidy.py {options.build} --budget=inf")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
