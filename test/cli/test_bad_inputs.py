# SPDX-License-Identifier: Apache-2.0
"""Inputs that do not fit or cannot be read, for a model and for its artifact; and odd files that can be read."""
import io
import zipfile

import numpy as np
import pytest

import makers
from command import ESTIMATE

A = np.arange(8, dtype=np.float32).reshape(2, 4)
B = np.zeros((2, 3), np.float32)


def npy(array, **options) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def npz(**arrays) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def truth(a=A):
    weights = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    return np.maximum(a @ weights, 0)


@pytest.fixture(params=["model", "artifact"])
def tiny(request, dovetail, tiny_artifact) -> list[str]:
    """Arguments that name makers.tiny() in either form."""
    if request.param == "artifact":
        return [dovetail.write("tiny.dvt", tiny_artifact)]
    return [dovetail.write("tiny.onnx", makers.tiny()), ESTIMATE]


def result(dovetail, *arguments) -> np.ndarray:
    dovetail("run", *arguments, "--output", "out.npz")
    return np.load(dovetail.folder / "out.npz")["y"]


WRONG = {
    "name": ({"c": A}, "no input 'c'; .*inputs are a, b"),
    "extent": ({"a": np.ones((2, 5), np.float32)}, r"'a' is given with .*shape \[2,5\], the model takes \[2,4\]"),
    "batch": ({"a": np.ones((3, 4), np.float32)}, r"'a' is given with .*shape \[3,4\], the model takes \[2,4\]"),
    "rank": ({"a": np.ones((2, 4, 1), np.float32)}, r"'a' is given with .*shape \[2,4,1\], the model takes \[2,4\]"),
    "scalar": ({"a": np.float32(1)}, r"'a' is given with .*shape \[\]"),
    "no elements": ({"a": np.ones((0, 4), np.float32)}, r"'a' is given with .*shape \[0,4\]"),
    "whole numbers": ({"a": np.ones((2, 4), np.int64)}, "'a' is given as i64, the model takes f32.*astype"),
    "double": ({"a": np.ones((2, 4))}, "'a' is given as f64, the model takes f32"),
    "one of two": ({"a": A, "b": np.ones((3, 3), np.float32)}, r"'b' is given with .*shape \[3,3\]"),
}


@pytest.mark.parametrize("arrays, says", WRONG.values(), ids=WRONG)
def test_wrong(dovetail, tiny, arrays, says):
    dovetail.refuses(2, "run", *tiny, "--inputs", dovetail.write("in.npz", npz(**arrays)), says=says)


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1:]


GOOD = npy(A)
UNREADABLE = {
    "empty": (b"", "not a .npy file"),
    "magic": (flipped(GOOD, 1), "not a .npy file"),
    "format version": (flipped(GOOD, 6), "unknown version"),
    "minor version": (flipped(GOOD, 7), "unknown version"),
    "header": (GOOD[:20], "cut short"),
    "no elements": (GOOD[:128], "cut short"),
    "last byte": (GOOD[:-1], "cut short"),
    "too long": (GOOD + b"xx", "more bytes than its header states"),
    **{f"header byte {at}": (flipped(GOOD, at), "") for at in range(8, 128, 9)},
    "endless shape": (GOOD.replace(b"(2, 4), }    ", b"(2, 99999999)"), ""),
    "overflowing shape": (GOOD.replace(b"(2, 4), }" + b" " * 20, b"(99999999999, 99999999999),}."), ""),
    "pickled": (npy(np.array([{}, 1], dtype=object), allow_pickle=True), r"element type '\|O' is not supported; use"),
    "records": (npy(np.zeros(2, [("q", "f4")])), "structured arrays are not supported"),
    "text array": (npy(np.array(["a", "b"])), "element type '<U1' is not supported"),
    "complex": (npy(np.ones((2, 4), np.complex64)), "element type '<c8' is not supported"),
    "an .npz": (npz(a=A), "not a .npy file; expected an array written by numpy.save"),
}


@pytest.mark.parametrize("content, says", UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable_npy(dovetail, tiny_artifact, content, says):
    artifact, file = dovetail.write("tiny.dvt", tiny_artifact), dovetail.write("in.npy", content)
    dovetail.refuses(2, "run", artifact, "--input", f"a={file}", says=["in.npy", says])


def entry(content: bytes, name="a.npy", method=zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr(name, content)
    return file.getvalue()


ARCHIVE = npz(a=A)
UNREADABLE_ARCHIVES = {
    "empty": (b"", "cannot be read as .npz"),
    "text": (b"not an archive", "cannot be read as .npz.*numpy.savez"),
    "start": (ARCHIVE[:10], "cannot be read as .npz"),
    "half": (ARCHIVE[:len(ARCHIVE) // 2], "cannot be read as .npz"),
    "last byte": (ARCHIVE[:-1], ".npz"),
    "an .npy": (GOOD, "cannot be read as .npz"),
    "checksum": (flipped(ARCHIVE, ARCHIVE.index(A.tobytes()) + 5), "entry 'a.npy' is cut short or damaged"),
    "entry of something else": (entry(b"hello"), "entry 'a.npy': not a .npy file"),
    "entry cut short": (entry(GOOD[:-3]), "entry 'a.npy': the file is cut short"),
    "damaged compression": (flipped(entry(GOOD, method=zipfile.ZIP_DEFLATED), 60), "entry 'a.npy'"),
}


@pytest.mark.parametrize("content, says", UNREADABLE_ARCHIVES.values(), ids=UNREADABLE_ARCHIVES)
def test_unreadable_npz(dovetail, tiny_artifact, content, says):
    artifact, file = dovetail.write("tiny.dvt", tiny_artifact), dovetail.write("in.npz", content)
    dovetail.refuses(2, "run", artifact, "--inputs", file, says=["in.npz", says])


def test_options_of_inputs(dovetail, tiny):
    dovetail.write("a.npy", GOOD)
    for given, says in {"a.npy": "expected NAME=FILE.npy", "a=": "expected NAME=FILE.npy", "=a.npy": "expected NAME",
                        "a=none.npy": "none.npy: cannot open: No such file", "a=.": "not a regular file",
                        "z=a.npy": "no input 'z'"}.items():
        dovetail.refuses(2, "run", *tiny, "--input", given, says=says)
    dovetail.refuses(2, "run", *tiny, "--input", "a=a.npy", "--input", "a=a.npy", says="'a' twice")
    dovetail.refuses(2, "run", *tiny, "--inputs", "none.npz", says="none.npz: cannot be read.*No such file")
    dovetail.refuses(2, "run", *tiny, "--inputs", ".", says="cannot be read as .npz")


READABLE = {
    "plain": GOOD,
    "column-major": npy(np.asfortranarray(A)),
    "big-endian": npy(A.astype(">f4")),
    "big-endian and column-major": npy(np.asfortranarray(A.astype(">f4"))),
    "format version 2": b"\x93NUMPY\x02\x00" + GOOD[8:10] + b"\0\0" + GOOD[10:],
    "keys in another order": GOOD.replace(b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }",
                                          b"{'shape': (2, 4), 'fortran_order': False, 'descr': '<f4'}  "),
}


@pytest.mark.parametrize("content", READABLE.values(), ids=READABLE)
def test_readable(dovetail, tiny_artifact, content):
    artifact = dovetail.write("tiny.dvt", tiny_artifact)
    dovetail.write("a.npy", content)
    dovetail.write("b.npy", npy(B))
    y = result(dovetail, artifact, "--input", "a=a.npy", "--input", "b=b.npy")
    np.testing.assert_allclose(y, truth(), rtol=1e-5, atol=1e-5)


def test_compressed_archive(dovetail, tiny):
    file = io.BytesIO()
    np.savez_compressed(file, a=A, b=B)
    y = result(dovetail, *tiny, "--inputs", dovetail.write("in.npz", file.getvalue()))
    np.testing.assert_allclose(y, truth(), rtol=1e-5, atol=1e-5)


def test_what_is_not_given_is_noise(dovetail, tiny):
    """The same seeded noise each time."""
    dovetail.write("none.npz", npz())
    first, second = result(dovetail, *tiny), result(dovetail, *tiny, "--inputs", "none.npz")
    np.testing.assert_array_equal(first, second)
    dovetail.write("a.npz", npz(a=A))
    given = result(dovetail, *tiny, "--inputs", "a.npz")
    assert np.abs(given - truth()).max() > 1e-3, "input b was not given and must not be zero"


@pytest.mark.parametrize("form", ["model", "artifact"])
def test_free_extents(dovetail, form):
    path = dovetail.write("free.onnx", makers.free())
    plan = [path, ESTIMATE]
    if form == "artifact":
        dovetail("compile", *plan, "-o", "free.dvt")
        plan = ["free.dvt"]
    dovetail.refuses(2, "run", *plan, says="'x' has the extent N, which is not fixed; give.*--input.*--dim")
    dovetail.refuses(2, "run", *plan, "--dim", "N=2", says="'x' has the extent M, which is not fixed")
    dovetail.refuses(2, "run", *plan, "--dim", "N=2", "--dim", "Q=2", says="'Q'")
    dovetail.write("x.npy", npy(A - 3))
    np.testing.assert_array_equal(result(dovetail, *plan, "--input", "x=x.npy"), np.maximum(A - 3, 0))
    assert result(dovetail, *plan, "--dim", "N=2", "--dim", "M=5").shape == (2, 5)
    dovetail.refuses(2, "run", *plan, "--input", "x=x.npy", "--dim", "N=3", says="N|'x'")


def test_named_extents_agree(dovetail):
    """One name is one extent: inputs that disagree are refused, and one input fixes the other."""
    made = makers.model([makers.node("Concat", "x z", "y", axis=1)],
                        [makers.value("x", ["N", 2]), makers.value("z", ["N", 3])], [makers.value("y", ["N", 5])])
    path = dovetail.write("m.onnx", made)
    x, z = np.ones((4, 2), np.float32), np.ones((5, 3), np.float32)
    dovetail.write("both.npz", npz(x=x, z=z))
    dovetail.refuses(2, "run", path, ESTIMATE, "--inputs", "both.npz", says=["'[xz]'", "'N'", "4", "5"])
    dovetail.write("one.npz", npz(x=x))
    assert result(dovetail, path, ESTIMATE, "--inputs", "one.npz").shape == (4, 5)
