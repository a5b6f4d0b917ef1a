# SPDX-License-Identifier: Apache-2.0
"""Model files that cannot be used, from no ONNX at all to one wrong number: one message, exit code 2, no file left."""
import os

import numpy as np
import pytest
from onnx import TensorProto, helper

import makers
from command import ESTIMATE
from makers import constant, model, node, unary, value

ONES = np.ones(2, np.float32)


def without(field: str):
    made = makers.tiny()
    made.ClearField(field)
    return made


NO_ONNX = {
    "empty": (b"", "it is empty"),
    "random": (np.random.default_rng(0).integers(0, 256, 4000, np.uint8).tobytes(), "not a well-formed ONNX model"),
    "text": ("import torch\n" * 50, "not a well-formed ONNX model"),
    "json": ('{"graph": {"node": []}}', "not a well-formed ONNX model"),
    "png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(60), "not a well-formed ONNX model"),
    "zip": (b"PK\x03\x04" + bytes(60), "not a well-formed ONNX model"),
    "zeros": (bytes(100), "not a well-formed ONNX model"),
    "a tensor": (constant("w", ONES), "not a"),
    "a graph": (makers.tiny().graph, "not an ONNX model: it has no graph"),
    "no graph": (without("graph"), "it has no graph"),
    "no format version": (without("ir_version"), "it has no ir_version"),
}


@pytest.mark.parametrize("content, says", NO_ONNX.values(), ids=NO_ONNX)
@pytest.mark.parametrize("command", ["run", "compile"])
def test_no_onnx(dovetail, command, content, says):
    path = dovetail.write("bad.onnx", content)
    dovetail.refuses(2, command, path, ESTIMATE, says=["bad.onnx", says])


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_cut_short(dovetail, share):
    whole = makers.tiny().SerializeToString()
    path = dovetail.write("cut.onnx", whole[:int(len(whole) * share)])
    dovetail.refuses(2, "run", path, ESTIMATE, says=["cut.onnx", "cut short|no graph"])


def test_no_regular_file(dovetail):
    os.mkfifo(dovetail.folder / "pipe")
    os.symlink("loop", dovetail.folder / "loop")
    dovetail.write("file", b"x")
    for path, says in {".": "a folder", "none.onnx": "no such file", "pipe": "not a file", "loop": "no such file",
                       "file/model.onnx": "no such file", "/dev/null": "not a file"}.items():
        for command in "run", "compile", "bench", "explain":
            dovetail.refuses(2, command, path, ESTIMATE, *(["-o", "out.dvt"] if command == "compile" else []),
                             says=[f"error: {path}", says])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable(dovetail):
    path = dovetail.write("locked.onnx", makers.tiny())
    (dovetail.folder / path).chmod(0)
    dovetail.refuses(3, "run", path, ESTIMATE, says=["locked.onnx", "[Pp]ermission"])


def branches():
    then = makers.graph([node("Relu", "x", "a")], [], [value("a", [2])])
    other = makers.graph([node("ReduceSum", "x", "b", keepdims=0)], [], [value("b", [])])
    return model([node("If", "c", "y", name="the_node", then_branch=then, else_branch=other)],
                 [value("x", [2]), value("c", [], TensorProto.BOOL)], [value("y", [2])])


def loop():
    body = makers.graph([node("Identity", "c", "d"), node("Cast", "s", "t", to=TensorProto.INT64)],
                        [value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL), value("s", [2])],
                        [value("d", [], TensorProto.BOOL), value("t", [2], TensorProto.INT64)])
    return model([node("Loop", "n c x", "y", name="the_node", body=body)],
                 [value("n", [], TensorProto.INT64), value("c", [], TensorProto.BOOL), value("x", [2])],
                 [value("y", [2])])


def sequence_input():
    made = model([node("ConcatFromSequence", "x", "y", axis=0)], [], [value("y", None)])
    made.graph.input.append(helper.make_tensor_sequence_value_info("x", makers.FLOAT, None))
    return made


def wrong_extents():
    tensor = constant("w", ONES)
    tensor.dims[0] = 3
    return model([node("Add", "x w", "y")], [value("x", [2])], [value("y", None)], [tensor])


def two(op: str, shapes, elements=(makers.FLOAT, makers.FLOAT), **attributes):
    """a, b -> op -> y"""
    return model([node(op, "a b", "y", name="the_node", **attributes)],
                 [value("a", shapes[0], elements[0]), value("b", shapes[1], elements[1])], [value("y", None)])


def pair(nodes, outputs="y", constants=()):
    return model(nodes, [value("x", [2])], [value(name, [2]) for name in outputs.split()], constants)


BAD_GRAPHS = {
    "cycle": (pair([node("Add", "x u", "t", name="first"), node("Relu", "t", "u", name="second")], "u"),
              "a cycle.*'first'.*'second'"),
    "feeds itself": (pair([node("Add", "x y", "y", name="first")]), "a cycle.*'first'"),
    "dangling operand": (pair([node("Add", "x nowhere", "y", name="the_node")]), "'the_node'.*'nowhere'"),
    "dangling output": (pair([node("Relu", "x", "y")], "z"), "output 'z' is produced by no node"),
    "value given twice": (pair([node("Relu", "x", "y", name="a"), node("Abs", "x", "y", name="b")]),
                          "'y' is produced by both 'a' and 'b'"),
    "output named twice": (pair([node("Relu", "x", "y")], "y y"), "twice the output 'y'"),
    "input named twice": (model([node("Relu", "x", "y")], [value("x", [2])] * 2, [value("y", [2])]),
                          "twice the input 'x'"),
    "initializer named twice": (pair([node("Add", "x w", "y")], constants=[constant("w", ONES)] * 2),
                                "two initializers 'w'"),
    "input written": (pair([node("Relu", "x", "x", name="a")], "x"), "'x' is produced by 'a' but is also an input"),
    "no outputs": (model([node("Relu", "x", "y")], [value("x", [2])], []), "no outputs"),
    "unknown op": (unary("Frobnicate"), "'the_node' .Frobnicate.: there is no ONNX op of this name"),
    "unknown domain": (model([node("Frobnicate", "x", "y", name="the_node", domain="com.example")], [value("x", [2])],
                             [value("y", [2])], domains=["com.example"]),
                       "'the_node'.*com.example.Frobnicate is not known; supported are"),
    "future op set": (unary(opset=99), "version 99 of the ONNX op set; versions 7 to"),
    "op set 0": (unary(opset=0), "version 0 of the ONNX op set"),
    "old op set": (unary(opset=6), "version 6 of the ONNX op set; versions 7 to .* are supported; export"),
    "no op set": (without("opset_import"), "does not state the version"),
    "future format": (model([node("Relu", "x", "y")], [value("x", [2])], [value("y", [2])], ir=999),
                      "version 999 of ONNX's format; versions 3 to"),
    "branches that differ": (branches(), "'the_node' .If.: output 0 has other types or numbers of dimensions"),
    "loop that changes a type": (loop(), "'the_node' .Loop.: 's', carried .*, changes its type"),
    "sequence": (model([node("SequenceConstruct", "x x", "s"), node("Relu", "s", "y", name="the_node")],
                       [value("x", [2])], [value("y", None)]),
                 "'the_node' .Relu.: operand 0 is a sequence, where a tensor is needed"),
    "sequence input": (sequence_input(), "'x' is a sequence, and the model does not say how many dimensions"),
    "input without a shape": (model([node("Relu", "x", "y")], [value("x", None)], [value("y", None)]),
                              "'x' has no shape.*--input"),
    "element type 999": (unary("Identity", element=999), "'x' has the element type number 999"),
    "cast to float8": (model([node("Cast", "x", "t", name="the_node", to=TensorProto.FLOAT8E4M3FN),
                              node("Cast", "t", "y", to=1)], [value("x", [2])], [value("y", [2])], opset=19),
                       "'the_node'.*not supported"),
    "types that do not go together": (two("Add", ([2], [2]), (makers.FLOAT, TensorProto.INT64)),
                                      "'the_node' .Add.*int64"),
    "type an op does not take": (unary("Not"), "'the_node' .Not.*float"),
    "declared type": (model([node("Relu", "x", "y")], [value("x", [2])], [value("y", [2], TensorProto.INT64)]),
                      "'y' is declared as INT64.*FLOAT"),
    "text for a number": (unary("LeakyRelu", alpha="much"), "'the_node'.*alpha.*FLOAT.*STRING"),
    "fraction for a whole number": (unary("Softmax", axis=1.5), "'the_node'.*axis.*INT.*FLOAT"),
    "unknown attribute": (unary("Relu", slope=0.5), "'the_node'.*slope"),
    "attribute left out": (unary("Cast"), "'the_node' .Cast.*to"),
    "axis outside": (unary("Softmax", axis=7), "'the_node': axis 7 is out of range for rank 2"),
    "axis twice": (unary("Transpose", perm=[0, 0]), "'the_node': axis 0 is named twice"),
    "no operands": (pair([node("Relu", [], "y", name="the_node")]), "'the_node'"),
    "too many operands": (pair([node("Relu", "x x x", "y", name="the_node")]), "'the_node'.*3"),
    "too many outputs": (pair([node("Relu", "x", "y z", name="the_node")]), "'the_node'.*2"),
    "inner extents": (two("MatMul", ([2, 3], [4, 5])), "'the_node': inner extents: 3 and 4"),
    "broadcast": (two("Add", ([2, 3], [2, 4])), r"'the_node'.*\[2,3\] and \[2,4\]"),
    "reshape": (model([node("Reshape", "x s", "y", name="the_node")], [value("x", [2, 3])], [value("y", None)],
                      [constant("s", np.array([4, -1]))]), "'the_node'.*reshape"),
    "concat": (two("Concat", ([2, 3], [3, 4]), axis=0), "'the_node'"),
    "channels": (two("Conv", ([1, 2, 4, 4], [1, 1, 3, 3])), "'the_node'.*channels"),
    "stride 0": (two("Conv", ([1, 1, 4, 4], [1, 1, 3, 3]), strides=[0, 0]), "'the_node'.*strides"),
    "too few bytes": (wrong_extents(), "'w'.*needs 12 bytes.*has 8"),
    "extent out of all proportion": (unary(shape=[1 << 41, 2]), "'x' has the impossible extent"),
}


@pytest.mark.parametrize("made, says", BAD_GRAPHS.values(), ids=BAD_GRAPHS)
def test_bad_graph(dovetail, made, says):
    dovetail.refuses(2, "compile", dovetail.write("bad.onnx", made), ESTIMATE, says=says)


@pytest.mark.parametrize("element", ["STRING", "COMPLEX64", "COMPLEX128", "FLOAT8E4M3FN", "FLOAT8E5M2", "FLOAT4E2M1",
                                     "UNDEFINED"])
def test_unsupported_type(dovetail, element):
    made = unary("Identity", element=getattr(TensorProto, element), opset=21)
    dovetail.refuses(2, "run", dovetail.write("bad.onnx", made), ESTIMATE, says=f"'x' has the element type {element}")


BAD_EXTERNAL = {
    "missing": (("gone.bin",), "cannot find 'gone.bin'"),
    "too short": (("w.bin", "16"), "48 bytes at offset 16 of 'w.bin', which has only 48"),
    "beyond": (("w.bin", "4096"), "at offset 4096"),
    "far beyond": (("w.bin", str(2**64 - 8)), "at offset 18446744073709551608"),
    "other length": (("w.bin", "0", "44"), "needs 48 bytes of data but has 44"),
    "negative": (("w.bin", "-4"), "'-4' of its external data is not a number"),
    "text": (("w.bin", "four"), "'four' of its external data is not a number"),
    "parent folder": (("../w.bin",), "leads out of the model's folder"),
    "roundabout": (("sub/../../w.bin",), "leads out of the model's folder"),
    "absolute": (("/etc/hostname",), "is an absolute path"),
    "link out": (("link.bin",), "is a link that leads out"),
    "folder linked out": (("etc/hostname",), "is a link that leads out"),
    "folder": (("sub",), "a folder, not a file"),
    "pipe": (("pipe",), "special, not a file"),
    "no name": (("",), "is not a file name"),
    "zero byte": (("w.bin\0x",), "is not a file name"),
}


@pytest.mark.parametrize("entries, says", BAD_EXTERNAL.values(), ids=BAD_EXTERNAL)
def test_external_data(dovetail, entries, says):
    weights = np.ones(12, np.float32).tobytes()
    dovetail.write("model/w.bin", weights)
    dovetail.write("w.bin", weights)
    (dovetail.folder / "model/sub").mkdir()
    os.symlink("../w.bin", dovetail.folder / "model/link.bin")
    os.symlink("/etc", dovetail.folder / "model/etc")
    os.mkfifo(dovetail.folder / "model/pipe")
    path = dovetail.write("model/m.onnx", makers.external(*entries))
    dovetail.refuses(2, "compile", path, ESTIMATE, "-o", "out.dvt", says=["tensor 'w'", says])
    # The very same model runs with an honest location.
    dovetail("run", dovetail.write("model/m.onnx", makers.external("w.bin")), ESTIMATE)


def test_more_memory_than_there_is(dovetail):
    path = dovetail.write("huge.onnx", unary(shape=[1 << 20, 1 << 20]))
    dovetail.refuses(3, "run", path, ESTIMATE, says="memory")


def test_another_output_shape_is_said(dovetail):
    made = unary()
    made.graph.output[0].CopyFrom(value("y", [4, 5]))
    done = dovetail("run", dovetail.write("m.onnx", made), ESTIMATE)
    assert "warning" in done.stderr and "output 'y' is declared with another shape" in done.stderr
