# SPDX-License-Identifier: Apache-2.0
"""Options and commands that do not exist or make no sense, and places that cannot be written."""
import json
import os
import re
import sqlite3

import pytest

import makers
from command import ESTIMATE, ROOT, Command


@pytest.fixture
def tiny(dovetail) -> str:
    return dovetail.write("tiny.onnx", makers.tiny())


@pytest.fixture
def free(dovetail) -> str:
    return dovetail.write("free.onnx", makers.free())


def test_commands(dovetail, tiny):
    dovetail.refuses(2, says="subcommand is required")
    dovetail.refuses(2, "frobnicate", tiny, says="no command 'frobnicate'; the commands are run, compile, bench")
    dovetail.refuses(2, tiny, says="no command 'tiny.onnx'")
    for command in "run", "compile", "bench", "explain":
        dovetail.refuses(2, command, says=f"model is required.*dovetail {command} --help")
        dovetail.refuses(2, command, tiny, "--frobnicate", says="not expected: --frobnicate")
        dovetail.refuses(2, command, tiny, "second.onnx", says="not expected: second.onnx")
    dovetail.refuses(2, "problem", says="text is required")
    dovetail.refuses(2, "problem", "nonsense", says="problem")
    dovetail.refuses(2, "doctor", "--frobnicate", says="not expected")
    for arguments in ["--help"], ["run", "--help"], ["--version"]:
        assert dovetail(*arguments).stderr == ""


WRONG = {
    "--threads": (["0", "-1", "abc", "100000", "2.5", "4x", ""], "from 1 to 1024|needs a value"),
    "--budget": (["-1", "nan", "inf", "abc", "1s", "-0.001"], "--budget: '.*' is not a number of seconds"),
    "--repeat": (["0", "-1", "many", "99999999999999999999"], "--repeat: '.*' is not a whole number from 1"),
    "--prefer": (["nonsense", "Native"], "--prefer: '.*' is none of cost, library, native"),
    "--select": (["nonsense"], "--select: 'nonsense' is none of measure, estimate, replay"),
    "--stop-after": (["nonsense"], "no such stage; the stages are import, graph, regions, plan"),
    "--dump": (["nonsense"], "no such stage; the stages are import, graph, regions, plan"),
    "--dim": (["N", "=3", "N=", "N=abc", "N=-3", "N=2.5", "N=99999999999999999999", "N=9999999999999999"],
              "--dim '.*': (expected NAME=N|'.*' is not a whole number)"),
    "--typical": (["N", "=3", "N=", "N=abc", "N=-3", "N=2.5", "N=9999999999999999"],
                  "--typical '.*': (expected NAME=N|'.*' is not a whole number)"),
    "--memory": (["0", "-1", "1.5MiB", "12MB", "lots", "1048577GiB", "99999999999999999999"],
                 "--memory: '.*' is no size of memory; .* such as 200MiB, or none"),
    "--runs-per-load": (["0", "-1", "many", "2.5", "10000000000"],
                        "--runs-per-load: '.*' is not a whole number from 1 to 1000000000"),
    "--force": (["positive", "=native:x", "positive=", "positive=native", "positive=:"],
                "--force '.*': expected NODE=PROVIDER:ALGORITHM"),
}


@pytest.mark.parametrize("option, text, says", [(option, text, says) for option, (texts, says) in WRONG.items()
                                                for text in texts])
def test_wrong_value(dovetail, free, option, text, says):
    dovetail.refuses(2, "run", free, f"{option}={text}", says=says)


@pytest.mark.parametrize("option", ["--threads", "--only", "--prefer", "--output", "--cache", "--dim", "--typical",
                                    "--force", "--memory", "--runs-per-load"])
def test_value_left_out(dovetail, tiny, option):
    for arguments in [option], [f"{option}="], [option, "--json"]:
        dovetail.refuses(2, "run", tiny, *arguments, says=f"{option} needs a value")


def test_one_value_each(dovetail, tiny):
    """An option that may be repeated takes what follows it and not the model's name after that."""
    dovetail("run", ESTIMATE, "--only", "native,reference", tiny)
    dovetail("run", ESTIMATE, "--dump", "plan", tiny)


def test_dimensions(dovetail, tiny, free):
    dovetail.refuses(2, "run", free, ESTIMATE, "--dim=Q=3", says="no dimension 'Q' to set to 3; its open .* N, M")
    dovetail.refuses(2, "run", tiny, ESTIMATE, "--dim=N=3", says="no dimension 'N' to set to 3; its open .* none")
    dovetail.refuses(2, "run", free, ESTIMATE, "--dim=N=3", "--dim=N=4", says="'N' the two values 3 and 4")
    dovetail.refuses(3, "run", free, ESTIMATE, "--dim=N=1000000000", "--dim=M=1000", says="memory|too large")
    dovetail("run", free, ESTIMATE, "--dim=N=0", "--dim=M=3")
    dovetail("run", free, ESTIMATE, "--dim=N=3", "--dim=N=3", "--dim=M=3")


def test_typical_sizes(dovetail, tiny, free):
    """Kernels for free extents are timed at sizes that the user gives or that are chosen; the extents stay free."""
    dovetail.refuses(2, "run", free, ESTIMATE, "--typical=Q=3", says="'Q', which is none of the open dimensions: M, N")
    dovetail.refuses(2, "run", tiny, ESTIMATE, "--typical=N=3", says="'N', which is none of the open dimensions: none")
    dovetail.refuses(2, "run", free, "--typical=N=3", "--typical=N=4", says="'N' the two values 3 and 4")
    dovetail.refuses(2, "run", free, ESTIMATE, "--typical=N=0", "--dim=M=3", says="0 of 'N' is impossible.*from 1")
    for arguments, sizes in [([], {"N": 1, "M": 64}), (["--typical=N=7"], {"N": 7, "M": 64}),
                             (["--typical=N=7", "--dim=M=5"], {"N": 7})]:
        report = json.loads(dovetail("explain", free, "--json", "--no-cache", *arguments).stdout)
        assert report["typical_sizes"] == sizes
        (step,) = report["steps"]
        assert step["timed_at"] == sizes and step["micros"] > 0
    assert "timed at M=64, N=7" in dovetail("explain", free, "--no-cache", "--typical=N=7").stdout
    dovetail("compile", free, "--no-cache", "--typical=N=7", "-o", "free.dvt")
    assert json.loads(dovetail("explain", "free.dvt", "--json").stdout)["typical_sizes"] == {"N": 7, "M": 64}
    for rows in 2, 70:
        dovetail("run", "free.dvt", f"--dim=N={rows}", "--dim=M=3")
    dovetail("bench", free, "--no-cache", "--runs=1", "--typical=N=7", "--typical=M=9")


def test_providers(dovetail, tiny):
    dovetail.refuses(3, "run", tiny, ESTIMATE, "--only=nonsense",
                     says="--only=nonsense: there is no such provider; found: .*native.*doctor")
    dovetail.refuses(3, "run", tiny, ESTIMATE, "--only=native,nonsense", says="--only=nonsense")
    dovetail.refuses(2, "run", tiny, ESTIMATE, "--force=nothing=native:x", says="node 'nothing'.*explain")
    for kernel in "native:nonsense", "nonsense:nonsense":
        dovetail.refuses(2, "run", tiny, ESTIMATE, f"--force=positive={kernel}",
                         says=[f"positive={kernel}: no such kernel is on offer", "reference:reference:interpret"])
    done = dovetail("explain", tiny, ESTIMATE, "--force=positive=reference:reference:interpret", "--json")
    assert '"reference:reference:interpret"' in done.stdout


def test_memory(dovetail):
    """What a plan takes is told, and a bound holds where something fits it."""
    dovetail.write("product.onnx", makers.product(8, 512, 512))

    def memory(*options):
        done = dovetail("explain", "product.onnx", ESTIMATE, "--json", *options)
        return json.loads(done.stdout)["memory"], done.stderr

    free, said = memory("--memory=none")
    assert "bound_bytes" not in free and said == ""
    assert free["weight_bytes"] == 512 * 512 * 4
    assert free["total_bytes"] == sum(free[f"{part}_bytes"] for part in ("packed", "code", "library", "arena"))
    share, said = memory()
    own, least = 800 * 1024, 768 * 1024  # the runtime takes, and a plan may in any case
    bound = max(least, int(1.3 * (share["weight_bytes"] + share["arena_bytes"])) - own)
    assert share["bound_bytes"] == bound
    blas, = (provider for provider in json.loads(dovetail("doctor", "--json").stdout)["providers"]
             if provider["name"] == "blas")
    if all(library["missing"] for library in blas["libraries"]):  # own kernels pack all weights, which is too much here
        assert share["total_bytes"] <= bound or "no plan was found within 0.8 MiB of memory" in said
    else:
        assert share["total_bytes"] <= bound and said == ""
    bound = 1000 * 1024
    small, said = memory(f"--memory={bound // 1024}KiB")
    assert small["bound_bytes"] == bound
    assert small["total_bytes"] <= bound or "no plan was found within 1.0 MiB of memory" in said
    least, said = memory("--memory=1")
    assert "no plan was found within 0.0 MiB of memory; the one of least memory takes" in said
    assert least["total_bytes"] <= small["total_bytes"] <= max(free["total_bytes"], bound)
    dovetail("compile", "product.onnx", ESTIMATE, "--memory=64MiB", "-o", "out.dvt")
    assert json.loads(dovetail("explain", "out.dvt", "--json").stdout)["memory"]["bound_bytes"] == 64 * 2**20
    assert re.search(r"memory: .* beside 1.00 MiB of weights: packed constants .*; the bound is 64.00 MiB",
                     dovetail("explain", "out.dvt").stdout)
    assert "--memory changes nothing" in dovetail("run", "out.dvt", "--memory=none").stderr


def stated_share(text: str) -> tuple[float, int, int]:
    """The share of weights and arena, what is taken off it, and the least bound, as a text for users has them."""
    said = re.search(r"(\d\.\d+) times weights.* less (\d+)KiB for the runtime, but at least (\d+)KiB",
                     " ".join(text.split()))
    assert said, text
    return float(said[1]), int(said[2]) * 1024, int(said[3]) * 1024


@pytest.mark.parametrize("columns", [8, 1024], ids=["the least", "a share"])
def test_default_of_memory(dovetail, columns):
    """The help and the header of the C API state the bound that is kept to."""
    dovetail.write("product.onnx", makers.product(8, 512, columns))
    memory = json.loads(dovetail("explain", "product.onnx", ESTIMATE, "--json").stdout)["memory"]
    for text in dovetail("compile", "--help").stdout, (ROOT / "include/dovetail/dovetail.h").read_text():
        share, own, least = stated_share(text)
        of_model = int(share * (memory["weight_bytes"] + memory["arena_bytes"])) - own
        assert (of_model > least) == (columns == 1024)
        assert memory["bound_bytes"] == max(of_model, least)


def test_replay_of_nothing(dovetail, tiny):
    done = dovetail.raw("run", tiny, "--select=replay", "--cache=other")
    assert done.returncode == 3 and "the cache holds no measurement" in done.stderr


def bad_places(dovetail):
    """Paths that cannot be written, with what is said about them."""
    dovetail.write("file", b"x")
    (dovetail.folder / "folder").mkdir()
    os.mkfifo(dovetail.folder / "pipe")  # and no device: were it not refused, root would replace it
    return {"no/such/out": (2, "there is no folder no/such/"), "file/out": (2, "there is no folder file/"),
            "folder": (2, "it is a folder"), "folder/": (2, "no name of a file"), "pipe": (2, "not a regular file"),
            "/proc/out": (2, "/proc/out: cannot"),
            "tiny.onnx": (2, "it is the model itself")}


def test_places_for_artifacts(dovetail, tiny):
    for place, (code, says) in bad_places(dovetail).items():
        dovetail.refuses(code, "compile", tiny, ESTIMATE, "-o", place, says=says)
    dovetail.refuses(2, "compile", tiny, ESTIMATE, "-o", "x" * 300, says="x: cannot")


def test_places_for_outputs(dovetail, tiny):
    for place, (code, says) in bad_places(dovetail).items():
        code = 3 if place.startswith("/proc") else code
        dovetail.refuses(code, "run", tiny, ESTIMATE, "--output", place, says=says.replace("out: cannot", "out"))


@pytest.mark.parametrize("arguments", [["compile", "-o", "out.dvt"], ["run", "--output", "out.npz"]],
                         ids=["compile", "run"])
def test_no_room(dovetail, tiny, arguments):
    """As on a full disk: writing fails in the middle, and nothing is left."""
    command, *rest = arguments
    before = dovetail.files()
    done = dovetail.raw(command, tiny, ESTIMATE, "--no-cache", *rest, largest_file=100)
    assert done.returncode == 3, done.stderr
    assert len(done.stderr.splitlines()) == 1 and "File too large" in done.stderr
    assert dovetail.files() == before


def test_a_failed_compile_keeps_the_old_artifact(dovetail, tiny):
    dovetail.write("out.dvt", b"what was there before")
    dovetail.refuses(2, "compile", tiny, ESTIMATE, "--force=nothing=native:x", "-o", "out.dvt", says="nothing")
    dovetail("compile", tiny, ESTIMATE, "-o", "out.dvt")
    assert (dovetail.folder / "out.dvt").read_bytes().startswith(b"DOVETAIL")


# ---- the plan cache ----------------------------------------------------------------------------

def test_cache_cannot_be_there(dovetail, tiny):
    dovetail.write("file", b"x")
    (dovetail.folder / "cache/plans.sqlite").mkdir(parents=True)
    for place in "file", "file/cache", "/proc/cache", "cache":
        dovetail.refuses(3, "run", tiny, ESTIMATE, f"--cache={place}", says=[f"plan cache.* {place}", "--cache DIR",
                                                                            "--no-cache"])
    dovetail.refuses(3, "run", tiny, ESTIMATE, says="plan cache", DOVETAIL_CACHE="file")
    dovetail("run", tiny, ESTIMATE, "--no-cache", DOVETAIL_CACHE="file")


def test_preparing(dovetail):
    """What loading the kernels takes is told, and to how many runs it is charged."""
    path = dovetail.write("one.onnx", makers.unary())
    for options, runs in ([], 200), (["--runs-per-load=7"], 7):
        report = json.loads(dovetail("explain", path, "--json", "--budget=1", "--cache=cache", *options).stdout)
        told = report["preparation"]
        assert told["runs_per_load"] == runs and told["kernels"] == 1 and told["unknown"] == 0
        (step,) = report["steps"]
        assert told["millis"] == step["prepare_millis"] > 0
        assert told["charged_micros"] == pytest.approx(max(0, told["millis"] - 5) * 1000 / runs)
    said = dovetail("explain", path, "--budget=1", "--cache=cache", "--runs-per-load=7").stdout
    assert re.search(r"preparing: \d+\.\d ms for 1 kernels, .* shared by 7 runs", said)
    report = json.loads(dovetail("explain", path, ESTIMATE, "--json").stdout)
    assert report["preparation"]["runs_per_load"] == 0  # estimates know nothing of it
    dovetail("compile", path, "--budget=1", "--cache=cache", "-o", "one.dvt")
    done = dovetail("explain", "one.dvt", "--runs-per-load=9", "--json")
    assert "--runs-per-load changes nothing" in done.stderr
    assert json.loads(done.stdout)["preparation"]["runs_per_load"] == 200


def warned(dovetail, *arguments) -> str:
    done = dovetail(*arguments)
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("dovetail: warning: "), done.stderr
    return lines[0]


MEASURE = ["--select=measure", "--budget=1"]


@pytest.fixture(scope="session")
def filled_cache(binary, tmp_path_factory) -> bytes:
    command = Command(binary, tmp_path_factory.mktemp("filled"), tmp_path_factory.mktemp("unused"))
    path = command.write("one.onnx", makers.unary())
    command("run", path, *MEASURE, "--cache=cache")
    for row in sqlite3.connect(command.folder / "cache/plans.sqlite").execute("PRAGMA wal_checkpoint(TRUNCATE)"):
        assert row[0] == 0
    return (command.folder / "cache/plans.sqlite").read_bytes()


def test_corrupt_cache(dovetail, filled_cache):
    """Set aside and begun anew."""
    path = dovetail.write("one.onnx", makers.unary())
    damaged = bytearray(filled_cache)
    for at in range(0, 4096, 3):
        damaged[at] ^= 0x5A
    for content in b"no database " * 100, bytes(damaged), b"SQLite format 3\0" + bytes(4000):
        dovetail.write("cache/plans.sqlite", content)
        assert "was corrupt; it was set aside" in warned(dovetail, "run", path, *MEASURE, "--cache=cache")
        assert dovetail("run", path, *MEASURE, "--cache=cache").stderr == ""
        assert (dovetail.folder / "cache/plans.sqlite.corrupt").read_bytes() == content


def test_altered_kernels_in_the_cache(dovetail, filled_cache):
    """They would be run: what does not fit its digest is measured again."""
    path = dovetail.write("one.onnx", makers.unary())
    dovetail.write("cache/plans.sqlite", filled_cache)
    compiled = dovetail("compile", path, *MEASURE, "--cache=cache", "-o", "a.dvt", "--json")
    assert '"problems_from_cache": 1' in compiled.stdout
    with sqlite3.connect(dovetail.folder / "cache/plans.sqlite") as database:
        changed = database.execute("UPDATE kernels SET bytes = zeroblob(length(bytes))").rowcount
        assert changed > 0
    compiled = dovetail("compile", path, *MEASURE, "--cache=cache", "-o", "b.dvt", "--json")
    assert '"problems_from_cache": 0' in compiled.stdout
    dovetail("run", "b.dvt")


def test_cache_of_a_newer_version(dovetail, filled_cache):
    path = dovetail.write("one.onnx", makers.unary())
    dovetail.write("cache/plans.sqlite", filled_cache)
    with sqlite3.connect(dovetail.folder / "cache/plans.sqlite") as database:
        database.execute("PRAGMA user_version = 99")
    assert "written by a newer Dovetail" in warned(dovetail, "run", path, *MEASURE, "--cache=cache")
    with sqlite3.connect(dovetail.folder / "cache/plans.sqlite") as database:
        assert database.execute("SELECT count(*) FROM evaluations").fetchone()[0] > 0


def test_cache_of_an_older_version(dovetail, filled_cache):
    path = dovetail.write("one.onnx", makers.unary())
    dovetail.write("cache/plans.sqlite", filled_cache)
    with sqlite3.connect(dovetail.folder / "cache/plans.sqlite") as database:
        database.execute("PRAGMA user_version = 1")
        database.execute("ALTER TABLE evaluations DROP COLUMN trials")
    assert dovetail("run", path, *MEASURE, "--cache=cache").stderr == ""


def test_cache_that_fills_up_is_said_once(dovetail, filled_cache):
    """Nothing more can be written to it from some point on: the run succeeds, and remembers nothing."""
    path = dovetail.write("two.onnx", makers.tiny())
    dovetail.write("cache/plans.sqlite", filled_cache)
    count = "SELECT count(*) FROM evaluations"
    with sqlite3.connect(dovetail.folder / "cache/plans.sqlite") as database:
        database.execute("CREATE TRIGGER full BEFORE INSERT ON evaluations BEGIN SELECT RAISE(FAIL, 'it is full'); END")
        before = database.execute(count).fetchone()
    assert re.search("the plan cache cache/plans.sqlite cannot be written: .*; measurements of this run are not kept",
                     warned(dovetail, "run", path, "--only=native,reference", "--cache=cache"))
    with sqlite3.connect(dovetail.folder / "cache/plans.sqlite") as database:
        assert database.execute(count).fetchone() == before


def test_cache_without_room_for_a_byte(dovetail, filled_cache):
    """It cannot be opened for writing, which is known before anything is measured."""
    path = dovetail.write("two.onnx", makers.tiny())
    dovetail.write("cache/plans.sqlite", filled_cache)
    done = dovetail.raw("run", path, *MEASURE, "--cache=cache", largest_file=1)
    assert (done.returncode, done.stdout) == (3, "")
    assert re.fullmatch("dovetail: error: the plan cache cache/plans.sqlite cannot be written: .*; choose another "
                        "folder with --cache DIR, or none with --no-cache\n", done.stderr)
    assert dovetail("run", path, ESTIMATE, "--cache=cache").stderr == ""  # and is as good as before
