# SPDX-License-Identifier: Apache-2.0
"""Small models with what large decoders and encoders consist of: shared heads, a rotary embedding, a cache, masks."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

F32, I64 = TensorProto.FLOAT, TensorProto.INT64


class Graph:
    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0

    def __call__(self, op, *inputs, **attributes):
        self.count += 1
        name = f"v{self.count}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"{op}_{self.count}", **attributes))
        return name

    def constant(self, array):
        self.count += 1
        self.weights.append(numpy_helper.from_array(np.asarray(array), f"c{self.count}"))
        return f"c{self.count}"

    def ints(self, *numbers):
        return self.constant(np.array(numbers, np.int64))

    def weight(self, *shape):
        return self.constant((self.rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def name(self, value, name):
        self.nodes.append(helper.make_node("Identity", [value], [name], name=f"name_{name}"))

    def model(self, inputs, outputs, opset):
        make = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, "g", [make(n, t, s) for n, t, s in inputs],
                                  [make(n, t, s) for n, t, s in outputs], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def decoder(layers=2, heads=6, shared=2, size=8, vocabulary=50, opset=18, causal=False):
    """Logits and grown caches of `layers` layers; op set 23 has the whole of attention as one op, which may be causal
    instead of taking a mask."""
    g, width = Graph(), heads * size
    whole = opset >= 23
    x = g("Gather", g.weight(vocabulary, width), "ids")
    frequencies = g.constant((1 / 100 ** (np.arange(size // 2) / (size // 2))).astype(np.float32))
    if whole:
        table = np.arange(300)[:, None] * numpy_helper.to_array(g.weights[-1])[None]
        cos, sin = g.constant(np.cos(table).astype(np.float32)), g.constant(np.sin(table).astype(np.float32))
    else:
        at = g("Mul", g("Cast", g("Unsqueeze", "positions", g.ints(2)), to=F32), frequencies)
        both = g("Unsqueeze", g("Concat", at, at, axis=-1), g.ints(1))
        cos, sin = g("Cos", both), g("Sin", both)
    # Each position sees those up to its own: those before it are as many as the cache has.
    total = g("Add", g("Shape", "past_k_0", start=2, end=3), g("Shape", "ids", start=1, end=2))
    zero, one = g.constant(np.array(0, np.int64)), g.constant(np.array(1, np.int64))
    keys = g("Range", zero, g("Squeeze", total), one)
    seen = g("LessOrEqual", g("Unsqueeze", keys, g.ints(0, 1)), g("Unsqueeze", "positions", g.ints(2)))
    mask = g("Unsqueeze", g("Where", seen, g.constant(np.float32(0)), g.constant(np.float32(-1e9))), g.ints(1))

    def split(value, count):
        return g("Transpose", g("Reshape", value, g.ints(0, 0, count, size)), perm=[0, 2, 1, 3])

    def rotate(value):
        low = g("Slice", value, g.ints(0), g.ints(size // 2), g.ints(3))
        high = g("Slice", value, g.ints(size // 2), g.ints(2**62), g.ints(3))
        return g("Add", g("Mul", value, cos), g("Mul", g("Concat", g("Neg", high), low, axis=-1), sin))

    def repeat(value):
        wide = g("Expand", g("Unsqueeze", value, g.ints(2)), g.ints(1, 1, heads // shared, 1, 1))
        return g("Reshape", wide, g.ints(0, heads, -1, size))

    def norm(value):
        scale = g("Sqrt", g("Add", g("ReduceMean", g("Mul", value, value), g.ints(-1)), g.constant(np.float32(1e-5))))
        return g("Mul", g("Mul", value, g("Reciprocal", scale)), g.weight(width))

    for i in range(layers):
        h = norm(x)
        q, k, v = (g("MatMul", h, g.weight(width, n * size)) for n in (heads, shared, shared))
        if whole:
            q = g("RotaryEmbedding", q, cos, sin, "positions", num_heads=heads)
            k = g("RotaryEmbedding", k, cos, sin, "positions", num_heads=shared)
            g.nodes.append(helper.make_node("Attention", [q, k, v, "" if causal else mask, f"past_k_{i}", f"past_v_{i}"],
                                            [f"a{i}", f"present_k_{i}", f"present_v_{i}"], q_num_heads=heads,
                                            kv_num_heads=shared, is_causal=int(causal), name=f"attention_{i}"))
            y = f"a{i}"
        else:
            k = g("Concat", f"past_k_{i}", rotate(split(k, shared)), axis=2)
            v = g("Concat", f"past_v_{i}", split(v, shared), axis=2)
            g.name(k, f"present_k_{i}")
            g.name(v, f"present_v_{i}")
            scores = g("MatMul", rotate(split(q, heads)), g("Transpose", repeat(k), perm=[0, 1, 3, 2]))
            scores = g("Add", g("Mul", scores, g.constant(np.float32(size ** -0.5))), mask)
            y = g("MatMul", g("Softmax", scores, axis=-1), repeat(v))
            y = g("Reshape", g("Transpose", y, perm=[0, 2, 1, 3]), g.ints(0, 0, width))
        x = g("Add", x, g("MatMul", y, g.weight(width, width)))
        h = norm(x)
        gate = g("MatMul", h, g.weight(width, 2 * width))
        gate = g("Mul", g("Mul", gate, g("Sigmoid", gate)), g("MatMul", h, g.weight(width, 2 * width)))
        x = g("Add", x, g("MatMul", gate, g.weight(2 * width, width)))
    g.name(g("MatMul", norm(x), g.weight(width, vocabulary)), "logits")
    pasts = [(f"past_{c}_{i}", F32, ["batch", shared, "past", size]) for i in range(layers) for c in "kv"]
    presents = [(f"present_{c}_{i}", F32, ["batch", shared, "total", size]) for i in range(layers) for c in "kv"]
    return g.model([("ids", I64, ["batch", "seq"]), ("positions", I64, ["batch", "seq"]), *pasts],
                   [("logits", F32, ["batch", "seq", vocabulary]), *presents], opset)


def encoder(layers=2, heads=4, size=8, vocabulary=40):
    """What a BERT does with ids and a mask of any batch and length up to 64."""
    g, width = Graph(1), heads * size
    length = g("Shape", "ids", start=1, end=2)
    places = g("Slice", g.weight(64, width), g.ints(0), length, g.ints(0))
    x = g("Add", g("Gather", g.weight(vocabulary, width), "ids"), places)
    mask = g("Mul", g("Sub", g.constant(np.float32(1)), g("Cast", "mask", to=F32)), g.constant(np.float32(-1e9)))
    mask = g("Unsqueeze", mask, g.ints(1, 2))

    def norm(value):
        return g("LayerNormalization", value, g.weight(width), g.weight(width), axis=-1, epsilon=1e-6)

    x = norm(x)
    for _ in range(layers):
        q, k, v = (g("Transpose", g("Reshape", g("Add", g("MatMul", x, g.weight(width, width)), g.weight(width)),
                                    g.ints(0, 0, heads, size)), perm=[0, 2, 1, 3]) for _ in range(3))
        scores = g("Div", g("MatMul", q, g("Transpose", k, perm=[0, 1, 3, 2])), g.constant(np.float32(size ** 0.5)))
        y = g("MatMul", g("Softmax", g("Add", scores, mask), axis=-1), v)
        y = g("Reshape", g("Transpose", y, perm=[0, 2, 1, 3]), g.ints(0, 0, width))
        x = norm(g("Add", x, g("MatMul", y, g.weight(width, width))))
        h = g("MatMul", x, g.weight(width, 4 * width))
        h = g("Mul", g("Mul", h, g("Add", g("Erf", g("Div", h, g.constant(np.float32(2 ** 0.5)))),
                                   g.constant(np.float32(1)))), g.constant(np.float32(0.5)))
        x = norm(g("Add", x, g("MatMul", h, g.weight(4 * width, width))))
    g.name(x, "y")
    return g.model([("ids", I64, ["batch", "seq"]), ("mask", I64, ["batch", "seq"])],
                   [("y", F32, ["batch", "seq", width])], 18)


def recognizer(classes=20):
    """What a text recogniser does with images of any width: convolutions, pools, one product for each column."""
    g = Graph(2)

    def convolve(value, source, target, groups=1, strides=(1, 1)):
        weight = g.constant((g.rng.standard_normal((target, source // groups, 3, 3)) / 5).astype(np.float32))
        value = g("Conv", value, weight, g.weight(target), pads=[1, 1, 1, 1], group=groups, strides=strides)
        return g("HardSwish", value)

    x = convolve("x", 3, 16, strides=(2, 2))
    x = convolve(x, 16, 16, groups=16)
    x = convolve(x, 16, 24, strides=(2, 1))
    gate = g("Sigmoid", g("Conv", g("GlobalAveragePool", x), g.constant(
        (g.rng.standard_normal((24, 24, 1, 1)) / 5).astype(np.float32)), g.weight(24)))
    x = g("Mul", x, gate)
    x = g("AveragePool", x, kernel_shape=[8, 2], strides=[8, 2])
    x = g("Transpose", g("Squeeze", x, g.ints(2)), perm=[0, 2, 1])
    g.name(g("Softmax", g("Add", g("MatMul", x, g.weight(24, classes)), g.weight(classes)), axis=2), "y")
    return g.model([("x", F32, ["batch", 3, 32, "width"])], [("y", F32, ["batch", "columns", classes])], 18)
