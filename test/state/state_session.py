# SPDX-License-Identifier: Apache-2.0
"""libdovetail from Python, as far as the tests of this folder need it: load, bind, feed back, run, read."""
import ctypes
import pathlib

import numpy as np

TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16, 11: np.float64}
NUMBERS = {np.dtype(kind): number for number, kind in TYPES.items()}


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("extents", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("rank", ctypes.c_uint32), ("type", ctypes.c_int),
                ("memory", ctypes.c_int)]


class Port(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("type", ctypes.c_int), ("name", ctypes.c_char_p),
                ("rank", ctypes.c_uint32), ("extents", ctypes.POINTER(ctypes.c_int64)),
                ("extent_texts", ctypes.POINTER(ctypes.c_char_p))]


class State(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("input", ctypes.c_uint32), ("output", ctypes.c_uint32),
                ("grows", ctypes.c_int32)]


class Refused(RuntimeError):
    pass


class Session:
    """A model and one session of it."""

    def __init__(self, library: pathlib.Path, artifact: pathlib.Path):
        self.dll = ctypes.CDLL(str(library))
        self.dll.dvt_session_run.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self.model, self.session = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("dvt_model_load", str(artifact).encode(), None, ctypes.byref(self.model))
        self.call("dvt_session_create", self.model, ctypes.byref(self.session))
        self.inputs, self.outputs = self.ports("input"), self.ports("output")
        self.kept = {}

    def close(self):
        self.dll.dvt_session_release(self.session)
        self.dll.dvt_model_release(self.model)

    def call(self, name, *arguments):
        error = ctypes.create_string_buffer(1024)
        if getattr(self.dll, name)(*arguments, error) != 0:
            raise Refused(error.value.decode())

    def ports(self, kind):
        names = {}
        for i in range(getattr(self.dll, f"dvt_model_{kind}_count")(self.model)):
            port = Port(struct_size=ctypes.sizeof(Port))
            self.call(f"dvt_model_{kind}", self.model, ctypes.c_uint32(i), ctypes.byref(port))
            texts = [port.extent_texts[d].decode() for d in range(port.rank)]
            names[port.name.decode()] = (i, texts)
        return names

    def states(self):
        found = []
        for i in range(self.dll.dvt_model_state_count(self.model)):
            state = State(struct_size=ctypes.sizeof(State))
            self.call("dvt_model_state", self.model, ctypes.c_uint32(i), ctypes.byref(state))
            found.append((state.input, state.output, bool(state.grows)))
        return found

    def bind(self, name, array):
        index = self.inputs[name][0]
        array = np.ascontiguousarray(array)
        extents = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        tensor = Tensor(array.ctypes.data, extents, None, array.ndim, NUMBERS[array.dtype], 0)
        self.call("dvt_session_bind_input", self.session, ctypes.c_uint32(index), ctypes.byref(tensor))
        self.kept[name] = array

    def feed_back(self, output, input):
        self.call("dvt_session_feed_back", self.session, ctypes.c_uint32(output), ctypes.c_uint32(input))

    def reserve(self, input, length):
        self.call("dvt_session_reserve_state", self.session, ctypes.c_uint32(input), ctypes.c_int64(length))

    def run(self):
        self.call("dvt_session_run", self.session)

    def tensor(self, name):
        tensor = Tensor()
        self.call("dvt_session_output", self.session, ctypes.c_uint32(self.outputs[name][0]), ctypes.byref(tensor))
        return tensor

    def output(self, name):
        tensor = self.tensor(name)
        kind = np.dtype(TYPES[tensor.type])
        shape = [tensor.extents[d] for d in range(tensor.rank)]
        if 0 in shape:
            return np.zeros(shape, kind)
        steps = [tensor.strides[d] for d in range(tensor.rank)] if tensor.strides else None
        if steps is None:
            steps = [int(np.prod(shape[d + 1:])) for d in range(len(shape))]
        last = sum((extent - 1) * step for extent, step in zip(shape, steps))
        memory = (ctypes.c_uint8 * ((last + 1) * kind.itemsize)).from_address(tensor.data)
        flat = np.frombuffer(memory, kind)
        return np.lib.stride_tricks.as_strided(flat, shape, [step * kind.itemsize for step in steps]).copy()
