# SPDX-License-Identifier: Apache-2.0
"""What is being done is said on standard error where that is a terminal, and nowhere else; in the end it is erased."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading

import pytest

import makers
from command import ESTIMATE

ERASE = "\r\x1b[K"
PROBLEM = "problem(%0: f32[4,8]) %1: f32[4,8] = relu@14(%0) return(%1)"


def on_terminal(dovetail, *arguments, stream="stderr", columns=200) -> tuple[int, str, str]:
    """The exit code, what went to a terminal in place of `stream`, and what went to the other one."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    other = "stdout" if stream == "stderr" else "stderr"
    process = subprocess.Popen([dovetail.binary, *map(str, arguments)], cwd=dovetail.folder, env=dovetail.environment,
                               text=True, stdin=subprocess.DEVNULL, **{stream: slave, other: subprocess.PIPE})
    os.close(slave)
    watch = threading.Timer(60, process.kill)
    watch.start()
    shown = b""
    try:
        while part := os.read(master, 1 << 16):
            shown += part
    except OSError:  # nobody has the terminal any more
        pass
    said = "".join(filter(None, process.communicate()))
    watch.cancel()
    os.close(master)
    return process.returncode, shown.decode(), said


@pytest.fixture(autouse=True)
def models(dovetail):
    dovetail.write("tiny.onnx", makers.tiny())
    dovetail.write("one.onnx", makers.unary())


COMMANDS = {
    "run": (["run", "tiny.onnx", ESTIMATE, "--repeat=3"],
            ["reading the model", "forming problems 0 of [0-9]+: .*", "asking providers 0 of [0-9]+: .*",
             "choosing: the cheapest kernels", "loading", "running 0 of 3"]),
    "measured": (["run", "one.onnx", "--select=measure", "--no-cache", "--only=native,reference"],
                 ["measuring what promises most 0 of 1: relu", "choosing: the cheapest kernels",
                  "choosing: libraries first", "choosing: own kernels first", "racing whole plans 0 of 3: mixed.*",
                  "racing whole plans 2 of 3: mixed.*", "timing steps: mixed", "loading", "running 0 of 1"]),
    "bench": (["bench", "tiny.onnx", ESTIMATE, "--runs=3"], ["choosing: the cheapest kernels", "timing runs 0 of 3"]),
    "bench for a time": (["bench", "tiny.onnx", ESTIMATE, "--seconds=0"], ["timing runs"]),
    "compile": (["compile", "tiny.onnx", ESTIMATE, "--no-cache", "--plugins=TEST", "--only=test,reference"],
                ["choosing: the cheapest kernels", "building what was chosen [0-9]+ of [0-9]+: .*",
                 "building stand-ins [0-9]+ of [0-9]+: product.*", "writing"]),
    "problem": (["problem", PROBLEM, "--only=native,reference"],
                ["trying: (native|reference):, propose", "trying 1: .*, compile", "timing candidates"]),
    "explain for a device": (["explain", "one.onnx", ESTIMATE, "--target=cuda:sm_90", "--only=native,reference"],
                             ["reading the model", "asking for the device 0 of 1: relu",
                              "choosing: the cheapest kernels"]),
    "check": (["check", "one.onnx", "--only=native,reference", "--no-cache"],
              ["reading model 1 of 1: one.onnx", "checking 0 of 1: problem.*"]),
}


def arguments_of(name: str, dovetail) -> list[str]:
    plugins = str(dovetail.binary.parent.parent / "lib/dovetail-test")
    return [argument.replace("TEST", plugins) for argument in COMMANDS[name][0]]


@pytest.mark.parametrize("name", COMMANDS)
def test_stages(dovetail, name):
    code, shown, result = on_terminal(dovetail, *arguments_of(name, dovetail))
    assert code == 0 and result and "\r" not in result and "\x1b" not in result
    assert shown.startswith(ERASE) and shown.endswith(ERASE) and "\n" not in shown
    lines = iter(shown.split(ERASE))
    for pattern in COMMANDS[name][1]:
        assert any(re.fullmatch(pattern, line) for line in lines), f"no '{pattern}', or not there: {shown.split(ERASE)}"


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_elsewhere(dovetail, name):
    """Standard error is a pipe, and standard output a terminal."""
    code, shown, said = on_terminal(dovetail, *arguments_of(name, dovetail), stream="stdout")
    assert (code, said) == (0, "") and shown and "\x1b" not in shown


def test_lines_fit_the_terminal(dovetail):
    """One that wraps could not be erased."""
    _, shown, _ = on_terminal(dovetail, "run", "tiny.onnx", ESTIMATE, columns=20)
    lines = shown.split(ERASE)
    assert max(map(len, lines)) == 19 and "choosing: the cheap" in lines


def test_messages_begin_a_line(dovetail):
    dovetail("compile", "tiny.onnx", ESTIMATE, "-o", "tiny.dvt")
    code, shown, _ = on_terminal(dovetail, "run", "tiny.dvt", "--budget=1")
    assert code == 0 and f"{ERASE}loading{ERASE}dovetail: warning: tiny.dvt is an artifact" in shown
    code, shown, _ = on_terminal(dovetail, "compile", "tiny.onnx", ESTIMATE, "--force=nothing=native:x")
    assert code == 2 and f"{ERASE}dovetail: error: --force names the node" in shown
    assert shown.endswith("\r\n") and shown.count("\n") == 1
