# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs models through the C API in a process of its own, so that a crash takes nothing else with it:
worker.py LIBRARY_FOLDER CACHE_FOLDER

Each line of standard input is {"model", "inputs", "outputs", "artifact", "only"}; the answer is {} with the outputs
written, or {"code", "message"}.
"""
import ctypes
import json
import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/peers"))
import contender  # noqa: E402


class CompileOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("threads", ctypes.c_uint32), ("select", ctypes.c_char_p),
                ("prefer", ctypes.c_char_p), ("only", ctypes.c_char_p), ("dimensions", ctypes.c_char_p),
                ("lock_file", ctypes.c_char_p), ("cache_path", ctypes.c_char_p), ("measure_seconds", ctypes.c_double)]


def main(folder: str, cache: str) -> None:
    library = str(pathlib.Path(folder, "libdovetail.so"))
    compiler = ctypes.CDLL(str(pathlib.Path(folder, "libdovetail_compiler.so")))
    for line in sys.stdin:
        request = json.loads(line)
        options = CompileOptions(ctypes.sizeof(CompileOptions), 2, b"estimate", None, request["only"].encode() or None,
                                 None, None, cache.encode(), 0)
        error = contender.Error()
        code = compiler.dvt_compile(request["model"].encode(), request["artifact"].encode(), ctypes.byref(options),
                                    ctypes.byref(error))
        answer = {"code": code, "message": error.message.decode()} if code else {}
        if not code:
            with np.load(request["inputs"]) as arrays:
                given = {name: contender.aligned(array) for name, array in arrays.items()}
            try:
                session = contender.Dovetail(request["artifact"], given, 2, library)
                session.run()
                np.savez(request["outputs"], **dict(session.outputs()))
            except RuntimeError as failure:
                answer = {"code": -1, "message": str(failure)}
            session = None
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
