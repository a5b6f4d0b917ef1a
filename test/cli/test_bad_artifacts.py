# SPDX-License-Identifier: Apache-2.0
"""Artifacts that were cut, altered, made by another version or for another machine."""
import os
import pathlib
import random
import struct
import subprocess

import pytest

import makers
from command import ESTIMATE


@pytest.fixture(scope="session")
def reseal(binary) -> pathlib.Path:
    """Replaces bytes of an artifact and makes its digests fit again."""
    path = binary.parent / "artifact-reseal"
    assert path.exists(), f"{path} is missing: build first, with scripts/build"
    return path


@pytest.mark.parametrize("share", [0, 0.0001, 0.001, 0.005, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1])
def test_cut_short(dovetail, tiny_artifact, share):
    length = min(int(len(tiny_artifact) * share), len(tiny_artifact) - 1)
    path = dovetail.write("cut.dvt", tiny_artifact[:length])
    dovetail.refuses(2, "run", path, says=["cut.dvt", "cut short" if length >= 8 else "empty|cut short"])


def sections(artifact: bytes) -> list[range]:
    """Where bytes with a meaning stand: the header and its four sections."""
    header = 24 + 16 * 4 + 48
    found = [range(header)]
    for kind in range(4):
        offset, length = struct.unpack_from("<QQ", artifact, 24 + 16 * kind)
        found.append(range(offset, offset + length))
    return [part for part in found if part]


def test_altered(dovetail, tiny_artifact):
    """Single bits, spread over all sections and what is between them: none goes unnoticed."""
    choose = random.Random(7)
    places = [choose.choice(part) for part in sections(tiny_artifact) for _ in range(12)]
    places += [choose.randrange(len(tiny_artifact)) for _ in range(20)]
    for place in places:
        altered = bytearray(tiny_artifact)
        altered[place] ^= 1 << choose.randrange(8)
        path = dovetail.write("altered.dvt", bytes(altered))
        dovetail.refuses(2, "run", path, says="altered.dvt: .*" if place >= 8 else "")


def test_other_contents(dovetail, tiny_artifact):
    magic, rest = tiny_artifact[:8], tiny_artifact[12:]
    for content, says in {magic + bytes(5000): "format version 0, this is version",
                          magic + b"\xff" * 5000: "format version 4294967295, this is version",
                          magic + struct.pack("<I", 1) + rest: "written in format version 1.*compile the model again",
                          tiny_artifact + b"x": "1 bytes were appended", tiny_artifact * 2: "appended",
                          tiny_artifact[::-1]: "not a well-formed ONNX model"}.items():
        for command in "run", "bench", "explain":
            dovetail.refuses(2, command, dovetail.write("other.dvt", content), says=["other.dvt", says])


def resealed(dovetail, reseal, artifact: bytes, old: str, new: str) -> str:
    path = dovetail.write("resealed.dvt", artifact)
    subprocess.run([reseal, path, old, new], cwd=dovetail.folder, check=True, timeout=60)
    return path


def test_other_processor(dovetail, reseal, tiny_artifact):
    assert b"avx2" in tiny_artifact
    path = resealed(dovetail, reseal, tiny_artifact, "avx2", "avx9")
    dovetail.refuses(3, "run", path, says="compiled for a processor with avx9, which this one lacks; compile the model")


def test_other_architecture(dovetail, reseal, tiny_artifact):
    path = resealed(dovetail, reseal, tiny_artifact, "x86-64", "z80-64")
    dovetail.refuses(3, "run", path, says="compiled for z80-64, this machine is x86-64")


def test_plan_made_up(dovetail, reseal, tiny_artifact):
    """Digests that fit do not help a plan that makes no sense."""
    path = resealed(dovetail, reseal, tiny_artifact, "problem(", "p@oblem(")
    dovetail.refuses(2, "run", path, says="resealed.dvt: .*compile the model again")


def test_library_gone(dovetail, reseal):
    """Planned with a provider that is not here: another one takes over, and that is said."""
    dovetail.write("tiny.onnx", makers.tiny())
    dovetail("compile", "tiny.onnx", ESTIMATE, "--only=native,reference", "-o", "native.dvt")
    artifact = (dovetail.folder / "native.dvt").read_bytes()
    path = resealed(dovetail, reseal, artifact, "native", "nativ3")
    done = dovetail("run", path)
    assert "warning" in done.stderr and "nativ3" in done.stderr


def test_not_for_compile(dovetail, tiny_artifact):
    path = dovetail.write("tiny.dvt", tiny_artifact)
    dovetail.refuses(2, "compile", path, "-o", "again.dvt", says="tiny.dvt is an artifact already")


def test_plan_is_made(dovetail, tiny_artifact):
    path = dovetail.write("tiny.dvt", tiny_artifact)
    for option in ("--prefer=native", "--only=reference", "--force=sum=reference:x", "--dump=plan", "--stop-after=plan",
                   "--deterministic"):
        dovetail.refuses(2, "run", path, option, says="is an artifact, whose plan is made.*need the model")
    dovetail.refuses(2, "run", path, "--dim", "N=3", says="fixed dimensions")
    for options in ["--select=measure"], ["--budget=5", "--cache=other"]:
        done = dovetail("run", path, *options)
        named = " or ".join(option.partition("=")[0] for option in options)
        assert done.stderr == f"dovetail: warning: {path} is an artifact, whose plan is made; {named} changes nothing\n"
        assert not (dovetail.folder / "other").exists()


def test_no_regular_file(dovetail):
    os.mkfifo(dovetail.folder / "pipe.dvt")
    dovetail.refuses(2, "run", "pipe.dvt", says="not a file")
