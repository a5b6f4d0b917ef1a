# SPDX-License-Identifier: Apache-2.0
#
# The reference provider against ONNX's own node tests: every model of tensor ops, as a problem whose
# results have extents that only the provider can state, compared with onnx's expected outputs. Run under
# pytest, or by hand for the counts: test_reference_onnx.py [--build FOLDER] [NAME...].
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections import Counter

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "conformance"))

import onnx_node_tests as node_tests  # noqa: E402

BUILD = pathlib.Path(os.environ.get("DOVETAIL_BUILD_DIR", ROOT / "build"))
# Words in the reasons for which a case may be refused; anything else counts as a failure.
ALLOWED = ("sequence", "optional", "STRING", "FLOAT8", "FLOAT4", "INT2", "domain", "GRAPH", "op image_decoder",
           "no op but", "tf_idf_vectorizer", "op scatter is", "op upsample is")


def run_cases(cases, build, provider="reference"):
    """Leaves in each case.folder what problem_run wrote; a crash is charged to the case it hit."""
    program = build / "test" / "problem_run"
    for case in cases:
        (case.folder / "problem.txt").write_text(case.problem)
        for i, (type_name, extents, data) in enumerate(case.inputs):
            header = f"{type_name}[{','.join(map(str, extents))}]\n".encode()
            (case.folder / f"input_{i}").write_bytes(header + data)
    left = list(cases)
    while left:
        command = [str(program), str(build / "lib" / "dovetail"), provider]
        ran = subprocess.run(command + [str(c.folder) for c in left], capture_output=True, text=True)
        rest = [c for c in left if not any((c.folder / f).exists()
                                           for f in ("done", "refused.txt", "failed.txt"))]
        if rest and ran.returncode in (2, 3):  # no case was tried
            raise RuntimeError(ran.stderr)
        if rest:
            (rest[0].folder / "failed.txt").write_text(f"crashed: {ran.returncode} {ran.stderr}")
        left = rest[1:]


def read_tensor(path):
    import ml_dtypes
    header, data = path.read_bytes().split(b"\n", 1)
    type_name, extents = header.decode().rstrip("]").split("[")
    extents = [int(e) for e in extents.split(",") if e]
    if type_name in ("i4", "u4"):
        packed = np.frombuffer(data, np.uint8)
        nibbles = np.stack([packed & 15, packed >> 4], -1).reshape(-1)[:int(np.prod(extents))]
        values = np.where((type_name == "i4") & (nibbles > 7), nibbles.astype(np.int8) - 16, nibbles)
        return values.astype(np.int8 if type_name == "i4" else np.uint8).reshape(extents)
    dtype = {"bool": np.bool_, "bf16": ml_dtypes.bfloat16}.get(type_name)
    dtype = dtype or np.dtype(type_name[0] + str(int(type_name[1:]) // 8))
    return np.frombuffer(data, dtype).reshape(extents)


def difference(case):
    """Nothing, or what differs between the results and what onnx expects."""
    for i, (type_name, expected) in enumerate(case.outputs):
        found = read_tensor(case.folder / f"output_{i}")
        if found.shape != expected.shape:
            return f"result {i} has extents {found.shape}, expected {expected.shape}"
        if case.random:
            continue
        if type_name in ("f32", "f64", "f16", "bf16"):
            # onnx computes step by step in the type itself; its rounding is a few units in the last place
            # of the largest element.
            unit = {"bf16": 2**-7, "f16": 2**-10, "f32": 2**-23, "f64": 2**-52}[type_name]
            a, b = found.astype(np.float64), expected.astype(np.float64)
            largest = np.abs(b[np.isfinite(b)]).max(initial=0)
            atol = max(case.atol, 4 * unit * largest)
            if not np.allclose(a, b, rtol=max(case.rtol, unit), atol=atol, equal_nan=True):
                return f"result {i}: {a.reshape(-1)[:8]}, expected {b.reshape(-1)[:8]}"
        else:
            a, b = found.astype(np.int64), expected.astype(np.int64)
            if not np.array_equal(a, b):
                return f"result {i}: {a.reshape(-1)[:8]}, expected {b.reshape(-1)[:8]}"
    return None


def judge(build, literals, single, names=()):
    """(passed, refused {name: reason}, failed {name: reason}) of all cases."""
    passed, refused, failed = [], {}, {}
    root = pathlib.Path(tempfile.mkdtemp(prefix="dovetail-onnx-"))
    try:
        cases = []
        for case in node_tests.cases(literals=literals, single=single):
            if names and not any(n in case.name for n in names):
                continue
            if case.refusal:
                refused[case.name] = case.refusal
                continue
            case.folder = root / case.name
            case.folder.mkdir()
            cases.append(case)
        run_cases(cases, build)
        for case in cases:
            if (case.folder / "refused.txt").exists():
                refused[case.name] = (case.folder / "refused.txt").read_text()
            elif (case.folder / "failed.txt").exists():
                failed[case.name] = (case.folder / "failed.txt").read_text()
            elif (wrong := difference(case)) is not None:
                failed[case.name] = wrong
            else:
                passed.append(case.name)
    finally:
        shutil.rmtree(root)
    return passed, refused, failed


@pytest.mark.parametrize("literals", [False, True], ids=["operands", "literals"])
def test_reference_matches_onnx(literals):
    passed, refused, failed = judge(BUILD, literals, single=False)
    print(f"{len(passed)} passed, {len(refused)} refused, {len(failed)} failed")
    unexpected = {n: r for n, r in refused.items() if not any(word in r for word in ALLOWED)}
    assert not failed, "\n".join(f"{n}: {r}" for n, r in failed.items())
    assert not unexpected, "\n".join(f"{n}: {r}" for n, r in unexpected.items())
    assert len(passed) > 1400


def draw(text, *inputs):
    """First result of a problem whose operands are f32 arrays."""
    case = node_tests.Case("random", problem=text)
    case.inputs = [("f32", a.shape, a.astype(np.float32).tobytes()) for a in inputs]
    with tempfile.TemporaryDirectory(prefix="dovetail-random-") as folder:
        case.folder = pathlib.Path(folder)
        run_cases([case], BUILD)
        assert (case.folder / "done").exists(), [f.read_text() for f in case.folder.glob("*.txt")]
        return read_tensor(case.folder / "output_0")


def test_random_numbers_have_their_distributions():
    count = 100000
    uniform = draw(f"problem() %0: f32[{count}] = random_uniform@22() {{dtype=1, high=3.0, low=-1.0, "
                   f"seed=7.0, shape=[{count}]}} return(%0)")
    assert uniform.min() >= -1 and uniform.max() < 3
    assert abs(uniform.mean() - 1) < 0.02 and abs(uniform.std() - 4 / 12**0.5) < 0.02
    normal = draw(f"problem() %0: f32[{count}] = random_normal@22() {{dtype=1, mean=2.0, scale=3.0, "
                  f"seed=7.0, shape=[{count}]}} return(%0)")
    assert abs(normal.mean() - 2) < 0.05 and abs(normal.std() - 3) < 0.05
    assert abs(np.mean(np.abs(normal - 2) < 3) - 0.6827) < 0.01
    coins = draw(f"problem(%0: f32[{count}]) %1: f32[{count}] = bernoulli@22(%0) {{seed=1.0}} return(%1)",
                 np.full(count, 0.25))
    assert set(np.unique(coins)) == {0, 1} and abs(coins.mean() - 0.25) < 0.01
    faces = draw("problem(%0: f32[1,3]) %1: i32[1,50000] = multinomial@22(%0) "
                 "{dtype=6, sample_size=50000, seed=1.0} return(%1)", np.log([[0.5, 0.3, 0.2]]))
    assert np.allclose(np.bincount(faces[0]) / 50000, [0.5, 0.3, 0.2], atol=0.01)
    kept = draw(f"problem(%0: f32[{count}], %1: f32[] {{0.75}}, %2: bool[] {{1}}) %3: f32[{count}] = "
                "dropout@22(%0, %1, %2) {seed=1} return(%3)", np.ones(count))
    assert set(np.unique(kept)) == {0, 4} and abs(kept.mean() - 1) < 0.03


def test_same_seed_same_numbers():
    text = "problem() %0: f32[9] = random_normal@22() {dtype=1, mean=0.0, scale=1.0, seed=%s, shape=[9]} return(%0)"
    first, again, other = (draw(text.replace("%s", seed)) for seed in ("1.0", "1.0", "2.0"))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    parser.add_argument("--literals", action="store_true")
    parser.add_argument("--single", action="store_true", help="models of one node only")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    passed, refused, failed = judge(options.build, options.literals, options.single, options.names)
    for name, reason in sorted(failed.items()):
        print(f"FAILED {name}: {reason}")
    for reason, count in Counter(refused.values()).most_common():
        print(f"refused {count}: {reason}")
    print(f"{len(passed)} passed, {len(refused)} refused, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
