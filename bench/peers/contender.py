# SPDX-License-Identifier: Apache-2.0
"""One contender of peers.py in a process of its own:  contender.py ENGINE MODEL INPUTS THREADS LIBRARY OUTPUTS

Loads the model, runs it once, writes the outputs to OUTPUTS (npz) and answers with its facts. Then each line of
standard input is a request, {"runs": N} or {"memory": true}, and each gets one line of JSON. Dovetail is driven through
its C API (LIBRARY), the others through their Python packages, with inputs bound once where they allow it.
"""
import ctypes
import json
import pathlib
import statistics
import sys
import threading
import time

import numpy as np

# ONNX element types, which the C API shares. Arrays of bf16 are its bits.
TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16, 11: np.float64,
         16: np.uint16}


class Error(ctypes.Structure):
    _fields_ = [("message", ctypes.c_char * 1024)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("extents", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("rank", ctypes.c_uint32), ("type", ctypes.c_int),
                ("memory", ctypes.c_int)]


class LoadOptions(ctypes.Structure):  # a prefix: the library takes what lies beyond struct_size as zero
    _fields_ = [("struct_size", ctypes.c_uint32), ("threads", ctypes.c_uint32)]


class Port(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("type", ctypes.c_int), ("name", ctypes.c_char_p),
                ("rank", ctypes.c_uint32), ("extents", ctypes.c_void_p), ("extent_texts", ctypes.c_void_p)]


def aligned(array: np.ndarray) -> np.ndarray:
    """The same on a 64-byte border, which is bound without a copy."""
    if array.flags["C_CONTIGUOUS"] and array.ctypes.data % 64 == 0:
        return array
    room = np.empty(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    copy = room[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class Dovetail:
    def __init__(self, model, inputs, threads, library):
        self.api, self.error = ctypes.CDLL(library), Error()
        self.api.dvt_session_memory_bytes.restype = ctypes.c_uint64
        options = LoadOptions(ctypes.sizeof(LoadOptions), threads)
        self.model, self.session, self.held = ctypes.c_void_p(), ctypes.c_void_p(), []
        self.call("dvt_model_load", model.encode(), ctypes.byref(options), ctypes.byref(self.model))
        self.call("dvt_session_create", self.model, ctypes.byref(self.session))
        for index, (name, number) in enumerate(self.ports("input")):
            array = aligned(inputs[name])
            if array.dtype != TYPES[number]:
                raise TypeError(f"input '{name}' is given as {array.dtype}, the model takes {np.dtype(TYPES[number])}")
            extents = (ctypes.c_int64 * array.ndim)(*array.shape)
            self.held += [array, extents]
            tensor = Tensor(array.ctypes.data, extents, None, array.ndim, number, 0)
            self.call("dvt_session_bind_input", self.session, index, ctypes.byref(tensor))

    def call(self, name, *arguments):
        if getattr(self.api, name)(*arguments, ctypes.byref(self.error)) != 0:
            raise RuntimeError(self.error.message.decode())

    def ports(self, direction):
        port = Port(ctypes.sizeof(Port))
        for index in range(getattr(self.api, f"dvt_model_{direction}_count")(self.model)):
            self.call(f"dvt_model_{direction}", self.model, index, ctypes.byref(port))
            yield port.name.decode(), port.type

    def run(self):
        if self.api.dvt_session_run(self.session, ctypes.byref(self.error)) != 0:
            raise RuntimeError(self.error.message.decode())

    def outputs(self):
        for index, (name, _) in enumerate(self.ports("output")):
            tensor = Tensor()
            self.call("dvt_session_output", self.session, index, ctypes.byref(tensor))
            dtype = np.dtype(TYPES[tensor.type])
            shape = tensor.extents[:tensor.rank]
            count = int(np.prod(shape)) * dtype.itemsize
            yield name, np.frombuffer(ctypes.string_at(tensor.data, count), dtype).reshape(shape)

    def facts(self):
        return {"arena_bytes": self.api.dvt_session_memory_bytes(self.session)}


class OnnxRuntime:
    def __init__(self, model, inputs, threads, _):
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        self.session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.inputs = {name: np.ascontiguousarray(array) for name, array in inputs.items()}
        for name, array in self.inputs.items():
            self.binding.bind_cpu_input(name, array)
        for value in self.session.get_outputs():
            self.binding.bind_output(value.name)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def outputs(self):
        names = [value.name for value in self.session.get_outputs()]
        return zip(names, self.binding.copy_outputs_to_cpu())

    def facts(self):
        return {}


class OpenVino:
    def __init__(self, model, inputs, threads, _):
        import openvino
        core = openvino.Core()
        network = core.read_model(model)
        network.reshape({port: list(inputs[self.name(port, inputs)].shape) for port in network.inputs})
        compiled = core.compile_model(network, "CPU", {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
                                                       "INFERENCE_PRECISION_HINT": "f32",
                                                       "PERFORMANCE_HINT": "LATENCY"})
        self.compiled, self.request, self.held = compiled, compiled.create_infer_request(), []
        for port in compiled.inputs:
            array = aligned(inputs[self.name(port, inputs)])
            tensor = openvino.Tensor(array, openvino.Shape(array.shape), openvino.Type.bf16) \
                if self.is_bfloat(port) else openvino.Tensor(array, shared_memory=True)
            self.held.append(array)
            self.request.set_tensor(port, tensor)

    @staticmethod
    def name(port, known):
        return next(name for name in port.get_names() if name in known)

    @staticmethod
    def is_bfloat(port):
        return port.get_element_type().get_type_name() == "bf16"

    def run(self):
        self.request.infer()

    def outputs(self):
        for index, port in enumerate(self.compiled.outputs):
            data = self.request.get_output_tensor(index).data
            for name in port.get_names():
                yield name, data.view(np.uint16) if self.is_bfloat(port) else data

    def facts(self):
        return {}


ENGINES = {"dovetail": Dovetail, "onnxruntime": OnnxRuntime, "openvino": OpenVino}


def private_bytes() -> int:
    """Anonymous memory in use, without mapped files; sampled between runs, when every engine holds all it keeps."""
    status = pathlib.Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssAnon"))


class Watch:
    """The most private memory while something goes on, looked at every millisecond."""

    def __enter__(self):
        self.peak, self.ends = private_bytes(), threading.Event()
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        return self

    def look(self):
        while not self.ends.wait(0.001):
            self.peak = max(self.peak, private_bytes())

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()
        self.peak = max(self.peak, private_bytes())


def answer(**facts) -> None:
    print(json.dumps(facts), flush=True)


def main(engine, model, inputs, threads, library, outputs) -> None:
    with np.load(inputs) as arrays:
        given = {name: aligned(array) for name, array in arrays.items()}
    np.savez(outputs, **given)  # what Python itself takes for writing comes before what is counted
    before = private_bytes()
    with Watch() as loading:
        contender = ENGINES[engine](model, given, int(threads), library)
        contender.run()
    peak = private_bytes()
    np.savez(outputs, **dict(contender.outputs()))
    if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)  # what Python took for that is none of the engine's
    answer(**contender.facts())
    for line in sys.stdin:
        request = json.loads(line)
        times = []
        for _ in range(request.get("runs", 0)):
            start = time.perf_counter()
            contender.run()
            times.append(time.perf_counter() - start)
        peak = max(peak, private_bytes())
        if times:
            answer(median=statistics.median(times))
        else:
            answer(private_bytes=peak - before, loading_bytes=loading.peak - before)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception as error:  # pylint: disable=broad-exception-caught
        answer(failure=f"{type(error).__name__}: {error}")
