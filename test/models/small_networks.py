# SPDX-License-Identifier: Apache-2.0
"""Small networks of the kinds that real models are made of, with seeded weights, in f32 or f16.

Each has the ops and the structure of its kind and few elements: residual blocks of convolutions, an inverted residual
with squeeze and excitation, a transformer's encoder layer, and a decoder's layer with a cache. Weights are f16 numbers
in either type, so that the f32 network is the truth for both.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ELEMENTS = {"f32": (TensorProto.FLOAT, np.float32), "f16": (TensorProto.FLOAT16, np.float16)}


class Builder:
    """Collects nodes and weights; names of results are made up."""

    def __init__(self, kind: str, seed: int):
        self.element, self.dtype = ELEMENTS[kind]
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []
        self.feeds = {}

    def noise(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        return (self.rng.standard_normal(shape) * scale).astype(np.float16)

    def __call__(self, op: str, *operands: str, **attributes) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, operands, [name], name=f"{op.lower()}_{len(self.nodes)}", **attributes))
        return name

    def split(self, x: str, axis: int) -> tuple[str, str]:
        """Into halves."""
        names = f"t{len(self.nodes)}a", f"t{len(self.nodes)}b"
        self.nodes.append(helper.make_node("Split", [x], names, name=f"split_{len(self.nodes)}", axis=axis,
                                           num_outputs=2))
        return names

    def constant(self, array: np.ndarray) -> str:
        array = array.astype(self.dtype) if np.issubdtype(array.dtype, np.floating) else array
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def numbers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def scalar(self, value: float) -> str:
        return self.constant(np.array(value, np.float32))

    def input(self, name: str, array: np.ndarray) -> str:
        element = self.element if np.issubdtype(array.dtype, np.floating) else TensorProto.INT64
        self.inputs.append(helper.make_tensor_value_info(name, element, array.shape))
        self.feeds[name] = array.astype(self.dtype) if element == self.element else array
        return name

    def output(self, name: str, value: str, shape: list[int]) -> None:
        self.nodes.append(helper.make_node("Identity", [value], [name], name=f"out_{name}"))
        self.outputs.append(helper.make_tensor_value_info(name, self.element, shape))

    def conv(self, x: str, into: int, out: int, window: int, stride: int = 1, group: int = 1) -> str:
        weights = self.noise(out, into // group, window, window, scale=(into // group * window * window) ** -0.5)
        return self("Conv", x, self.constant(weights), self.constant(self.noise(out, scale=0.1)),
                    kernel_shape=[window, window], pads=[window // 2] * 4, strides=[stride, stride], group=group)

    def dense(self, x: str, into: int, out: int) -> str:
        y = self("MatMul", x, self.constant(self.noise(into, out, scale=into ** -0.5)))
        return self("Add", y, self.constant(self.noise(out, scale=0.1)))

    def model(self) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "small", self.inputs, self.outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def classifier(b: Builder, x: str, channels: int, classes: int) -> None:
    y = b("Flatten", b("GlobalAveragePool", x), axis=1)
    y = b("Gemm", y, b.constant(b.noise(channels, classes, scale=channels ** -0.5)), b.constant(b.noise(classes)))
    b.output("scores", b("Softmax", y, axis=-1), [1, classes])
    b.output("logits", y, [1, classes])


def resnet(b: Builder) -> None:
    """A stem and two bottlenecks, the first of which halves the image and projects its input."""
    x = b("Relu", b.conv(b.input("image", b.noise(1, 3, 24, 24)), 3, 16, 7, stride=2))
    x = b("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    for into, out, stride in (16, 32, 2), (32, 32, 1):
        y = b("Relu", b.conv(x, into, 8, 1))
        y = b("Relu", b.conv(y, 8, 8, 3, stride=stride))
        y = b.conv(y, 8, out, 1)
        x = b("Relu", b("Add", y, x if into == out else b.conv(x, into, out, 1, stride=stride)))
    classifier(b, x, 32, 10)


def mobilenet(b: Builder) -> None:
    """A stem and two inverted residuals with squeeze and excitation."""
    x = b("HardSwish", b.conv(b.input("image", b.noise(1, 3, 20, 20)), 3, 8, 3, stride=2))
    for stride in 2, 1:
        y = b("HardSwish", b.conv(x, 8, 24, 1))
        y = b("HardSwish", b.conv(y, 24, 24, 5, stride=stride, group=24))
        s = b("Relu", b.conv(b("GlobalAveragePool", y), 24, 8, 1))
        y = b("Mul", y, b("HardSigmoid", b.conv(s, 8, 24, 1), alpha=1 / 6, beta=0.5))
        y = b.conv(y, 24, 8, 1)
        x = b("Add", y, x) if stride == 1 else y
    classifier(b, x, 8, 10)


def heads(b: Builder, x: str, length: int, count: int, size: int) -> str:
    """[1,length,count*size] to [1,count,length,size]"""
    return b("Transpose", b("Reshape", x, b.numbers(1, length, count, size)), perm=[0, 2, 1, 3])


def attend(b: Builder, q: str, k: str, v: str, mask: str, size: int, length: int, width: int) -> str:
    scores = b("MatMul", q, b("Transpose", k, perm=[0, 1, 3, 2]))
    scores = b("Add", b("Mul", scores, b.scalar(size ** -0.5)), mask)
    y = b("MatMul", b("Softmax", scores, axis=-1), v)
    return b("Reshape", b("Transpose", y, perm=[0, 2, 1, 3]), b.numbers(1, length, width))


def bert(b: Builder) -> None:
    """One encoder layer behind word and position embeddings."""
    length, width, count = 9, 32, 4
    ids = b.input("ids", b.rng.integers(0, 50, (1, length)))
    hidden = np.where(np.arange(length) < length - 2, 0, -1e4).astype(np.float32)
    mask = b.input("mask", hidden.reshape(1, 1, 1, length))

    def norm(x: str) -> str:
        return b("LayerNormalization", x, b.constant(1 + b.noise(width, scale=0.1)),
                 b.constant(b.noise(width, scale=0.1)), axis=-1, epsilon=1e-5)

    x = b("Gather", b.constant(b.noise(50, width)), ids, axis=0)
    x = norm(b("Add", x, b.constant(b.noise(1, length, width))))
    q, k, v = (heads(b, b.dense(x, width, width), length, count, width // count) for _ in range(3))
    y = attend(b, q, k, v, mask, width // count, length, width)
    x = norm(b("Add", b.dense(y, width, width), x))
    y = b.dense(b("Gelu", b.dense(x, width, 2 * width)), 2 * width, width)
    b.output("hidden", norm(b("Add", y, x)), [1, length, width])


def decoder(b: Builder) -> None:
    """One layer for one token: root-mean-square norm, rotary embedding, a cache, a gated feed-forward, logits."""
    past, width, count, vocabulary = 7, 32, 4, 40
    size = width // count
    x = b.input("x", b.noise(1, 1, width))
    caches = [b.input(name, b.noise(1, count, past, size)) for name in ("past_key", "past_value")]
    angles = past / 100 ** (np.arange(size // 2) / (size // 2))
    cos, sin = (b.constant(f(np.concatenate([angles, angles])).reshape(1, 1, 1, size).astype(np.float16))
                for f in (np.cos, np.sin))

    def norm(x: str) -> str:
        mean = b("ReduceMean", b("Mul", x, x), b.numbers(-1), keepdims=1)
        y = b("Div", x, b("Sqrt", b("Add", mean, b.scalar(1e-3))))
        return b("Mul", y, b.constant(1 + b.noise(width, scale=0.1)))

    def rotate(x: str) -> str:
        first, second = b.split(x, axis=-1)
        return b("Add", b("Mul", x, cos), b("Mul", b("Concat", b("Neg", second), first, axis=-1), sin))

    y = norm(x)
    q, k, v = (heads(b, b.dense(y, width, width), 1, count, size) for _ in range(3))
    k = b("Concat", caches[0], rotate(k), axis=2)
    v = b("Concat", caches[1], v, axis=2)
    b.output("present_key", k, [1, count, past + 1, size])
    b.output("present_value", v, [1, count, past + 1, size])
    mask = b.constant(np.zeros((1, 1, 1, past + 1), np.float32))
    x = b("Add", b.dense(attend(b, rotate(q), k, v, mask, size, 1, width), width, width), x)
    y = norm(x)
    gate = b.dense(y, width, 2 * width)
    y = b("Mul", b("Mul", gate, b("Sigmoid", gate)), b.dense(y, width, 2 * width))
    x = b("Add", b.dense(y, 2 * width, width), x)
    b.output("logits", b.dense(norm(x), width, vocabulary), [1, 1, vocabulary])


NETWORKS = {"resnet": resnet, "mobilenet": mobilenet, "bert": bert, "decoder": decoder}


def make(name: str, kind: str) -> tuple[onnx.ModelProto, dict]:
    """The network in "f32" or "f16", and inputs for it."""
    builder = Builder(kind, seed=7)
    NETWORKS[name](builder)
    model = builder.model()
    onnx.checker.check_model(model)
    return model, builder.feeds
