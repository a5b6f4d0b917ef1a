# SPDX-License-Identifier: Apache-2.0
"""Compiles a model through the C API in a process of its own:  compile_model.py LIBRARY_FOLDER

Standard input is {"model", "artifact", "options"}, with fields of dvt_compile_options by name; the answer is
{"code", "message", "log", "files"}, the last being names of files that the process maps.
"""
import ctypes
import json
import pathlib
import sys

LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)


class CompileOptions(ctypes.Structure):  # a prefix: the library takes what lies beyond struct_size as zero
    _fields_ = [("struct_size", ctypes.c_uint32), ("threads", ctypes.c_uint32), ("select", ctypes.c_char_p),
                ("prefer", ctypes.c_char_p), ("only", ctypes.c_char_p), ("dimensions", ctypes.c_char_p),
                ("lock_file", ctypes.c_char_p), ("cache_path", ctypes.c_char_p), ("measure_seconds", ctypes.c_double),
                ("plugin_path", ctypes.c_char_p), ("vendor_path", ctypes.c_char_p), ("log_context", ctypes.c_void_p),
                ("log", LOG), ("log_level", ctypes.c_int32)]


class Error(ctypes.Structure):
    _fields_ = [("message", ctypes.c_char * 1024)]


def main(folder: str) -> None:
    request = json.load(sys.stdin)
    compiler = ctypes.CDLL(str(pathlib.Path(folder, "libdovetail_compiler.so")))
    said = []
    options = CompileOptions(struct_size=ctypes.sizeof(CompileOptions),
                             log=LOG(lambda _, level, message: said.append([level, message.decode()])))
    for name, value in request["options"].items():
        setattr(options, name, value.encode() if isinstance(value, str) else value)
    error = Error()
    code = compiler.dvt_compile(request["model"].encode(), request["artifact"].encode(), ctypes.byref(options),
                                ctypes.byref(error))
    lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
    print(json.dumps({"code": code, "message": error.message.decode(), "log": said,
                      "files": sorted({line.rsplit("/", 1)[1] for line in lines if "/" in line})}))


if __name__ == "__main__":
    main(*sys.argv[1:])
