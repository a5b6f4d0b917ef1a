# SPDX-License-Identifier: Apache-2.0
"""One function per kind of node: it picks operands and attributes at random and emits the node, or gives up.

Attributes go to their edges: negative and repeated axes, unequal pads, dilations, groups, broadcasting both ways, the
same tensor twice.
"""
import numpy as np

F, I64, I32, BOOL, U8, I8 = np.float32, np.int64, np.int32, np.bool_, np.uint8, np.int8
KINDS = []


def kind(weight=1):
    def register(function):
        KINDS.append((weight, function))
        return function
    return register


def axis_of(b, value, last=False) -> int:
    axis = value.rank - 1 if last and b.rng.random() < 0.6 else b.rng.randrange(value.rank)
    return axis - value.rank if b.rng.random() < 0.4 else axis


def some_axes(b, value, most=None) -> list:
    axes = b.rng.sample(range(value.rank), b.rng.randint(1, most or value.rank))
    return [axis - value.rank if b.rng.random() < 0.3 else axis for axis in axes]


@kind(6)
def unary(b):
    x = b.pick()
    op, attributes = b.rng.choice([
        ("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("Abs", {}), ("Neg", {}), ("Erf", {}), ("Softplus", {}),
        ("Softsign", {}), ("HardSwish", {}), ("HardSigmoid", {"alpha": b.rng.choice([0.2, 1 / 6]), "beta": 0.5}),
        ("LeakyRelu", {"alpha": 0.1}), ("Elu", {"alpha": 1.5}), ("Selu", {}), ("Celu", {"alpha": 0.7}),
        ("ThresholdedRelu", {"alpha": 0.5}), ("Identity", {}), ("Sin", {}), ("Cos", {}), ("Atan", {}),
        ("Gelu", {"approximate": b.rng.choice(["none", "tanh"])}), ("Mish", {}), ("Exp", {}), ("Reciprocal", {})])
    if op == "Exp" and np.abs(x.array).max() > 5 or op == "Reciprocal" and np.abs(x.array).min() < 0.05 or \
            op == "ThresholdedRelu" and not x.exact:
        return False
    return x and b.emit(op, [x], exact=op in ("Identity", "Neg", "Abs", "Relu"), **attributes)


@kind(2)
def root(b):
    x = b.pick(where=lambda v: v.array.min() > 0.01)
    return x and b.emit(b.rng.choice(["Sqrt", "Log"]), [x])


@kind(2)
def clip(b):
    x = b.pick()
    bounds = [b.constant(np.float32(v)) if b.rng.random() < 0.8 else None
              for v in (b.rng.choice([-1, 0, 0.3]), b.rng.choice([0.5, 6]))]
    return b.emit("Clip", [x, *bounds], exact=True)


@kind(8)
def binary(b):
    x = b.pick()
    shape = list(x.shape)
    way = b.rng.random()
    if way < 0.15:
        y = x
    elif way < 0.5:
        y = b.operand(shape)
    else:  # broadcast: ones, fewer dimensions, or more of them
        other = [1 if b.rng.random() < 0.5 else extent for extent in shape][b.rng.randint(0, len(shape)):]
        if b.rng.random() < 0.15 and len(shape) < 5 and x.array.size < 1000:
            other = [b.rng.choice([2, 3])] + [1] * (len(shape) - len(other)) + other
        y = b.operand(other)
    op = b.rng.choice(["Add", "Add", "Mul", "Mul", "Sub", "Div", "Max", "Min", "PRelu"])
    if op == "Div" and np.abs(y.array).min() < 0.05:
        return False
    if op == "PRelu":
        return y.rank <= x.rank and b.emit(op, [x, y])
    return b.emit(op, [x, y] if b.rng.random() < 0.6 or op == "Div" else [y, x], exact=op in ("Max", "Min"))


@kind()
def power(b):
    x = b.pick(where=lambda v: v.array.min() > 0.05)
    return x and b.emit("Pow", [x, b.constant(np.float32(b.rng.choice([2, 0.5, 3, -1, 1.7])))])


@kind()
def variadic(b):
    x = b.pick()
    values = [x] + [b.operand(x.shape) for _ in range(b.rng.randint(0, 4))]
    return b.emit(b.rng.choice(["Sum", "Mean", "Max", "Min"]), values)


@kind(2)
def integers(b):
    x = b.pick((I64, I32))
    y = x and b.operand(x.shape if b.rng.random() < 0.6 else x.shape[1:], x.array.dtype.type)
    if not x:
        return bool(b.add(b.noise(b.shape(b.rng.randint(0, 3)), b.rng.choice([I64, I32])), b.rng.random() < 0.3))
    op = b.rng.choice(["Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Abs", "Neg", "Sign"])
    if op in ("Abs", "Neg", "Sign"):
        return b.emit(op, [x])
    if op in ("Div", "Mod") and (y.array == 0).any():
        return False
    return b.emit(op, [x, y])


@kind(2)
def compare(b):
    x = b.pick((F, I64), exact=True)
    return x and b.emit(b.rng.choice(["Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"]),
                        [x, b.operand(x.shape, x.array.dtype.type)] if b.rng.random() < 0.5 else
                        [x, b.constant(x.array.ravel()[0])])


@kind(2)
def logic(b):
    x = b.pick((BOOL,))
    if not x:
        return False
    op = b.rng.choice(["Not", "And", "Or", "Xor"])
    return b.emit(op, [x] if op == "Not" else [x, b.operand(x.shape, BOOL)])


@kind(2)
def where(b):
    condition = b.pick((BOOL,))
    if not condition:
        return False
    x = b.operand(condition.shape)
    y = b.operand(condition.shape if b.rng.random() < 0.5 else condition.shape[1:])
    return b.emit("Where", [condition, x, y], exact=True)


@kind(2)
def cast(b):
    x = b.pick((F, I64, I32, BOOL, U8), exact=True)
    to = b.rng.choice([F, I64, I32, BOOL, F, F])
    if not x or x.array.dtype == F and to != F and np.abs(x.array).max() > 100:
        return False
    from onnx import helper
    return b.emit("Cast", [x], exact=True, to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))


@kind()
def rounding(b):
    x = b.pick(exact=True)
    return x and b.emit(b.rng.choice(["Floor", "Ceil", "Round", "Sign"]), [x], exact=True)


@kind(4)
def reduce(b):
    x = b.pick(ranks=range(1, 6))
    op = b.rng.choice(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceL1", "ReduceSumSquare",
                       "ReduceProd", "ReduceLogSumExp"])
    if not x or op == "ReduceProd" and x.array.size > 64:
        return False
    attributes = {"keepdims": b.rng.randint(0, 1)}
    axes = None if b.rng.random() < 0.15 else some_axes(b, x)
    inputs = [x]
    if axes is not None and b.graph.opset < 18 and op != "ReduceSum":
        attributes["axes"] = axes
    elif axes is not None:
        inputs.append(b.constant(axes, I64))
    elif b.graph.opset >= 18 and b.rng.random() < 0.3:
        attributes["noop_with_empty_axes"] = 1
    return b.emit(op, inputs, exact=op in ("ReduceMax", "ReduceMin"), **attributes)


@kind(2)
def arg(b):
    x = b.pick(ranks=range(1, 5), exact=True)
    return x and b.emit(b.rng.choice(["ArgMax", "ArgMin"]), [x], axis=axis_of(b, x), keepdims=b.rng.randint(0, 1),
                        select_last_index=b.rng.randint(0, 1))


@kind(2)
def softmax(b):
    x = b.pick(ranks=range(1, 6))
    return x and b.emit(b.rng.choice(["Softmax", "Softmax", "LogSoftmax"]), [x], axis=axis_of(b, x, True))


@kind(2)
def normalise(b):
    op = b.rng.choice(["LayerNormalization", "BatchNormalization", "InstanceNormalization", "LpNormalization",
                       "GroupNormalization"])
    x = b.pick(ranks=range(2, 6) if op != "InstanceNormalization" else range(3, 6))
    if not x:
        return False
    if op == "LayerNormalization":
        axis = axis_of(b, x, True)
        tail = x.shape[axis if axis >= 0 else axis + x.rank:]
        inputs = [x, b.operand(tail)] + ([b.operand(tail)] if b.rng.random() < 0.7 else [])
        return np.prod(tail) > 1 and b.emit(op, inputs, axis=axis, epsilon=1e-3)
    if op == "LpNormalization":
        return b.emit(op, [x], axis=axis_of(b, x), p=b.rng.choice([1, 2]))
    channels = (x.shape[1],)
    if op == "GroupNormalization":
        groups = b.rng.choice([g for g in range(1, x.shape[1] + 1) if x.shape[1] % g == 0])
        size = (groups,) if b.graph.opset < 21 else channels
        return x.rank > 2 and b.emit(op, [x, b.operand(size), b.operand(size)], num_groups=groups, epsilon=1e-2)
    scale, shift = b.operand(channels), b.operand(channels)
    if op == "InstanceNormalization":
        return np.prod(x.shape[2:]) > 3 and b.emit(op, [x, scale, shift], epsilon=1e-2)
    return b.emit(op, [x, scale, shift, b.operand(channels), b.add(b.noise(channels, F, 0.3, 2), True)], epsilon=1e-3)


@kind(5)
def mat_mul(b):
    x = b.pick(ranks=range(1, 5))
    if not x or x.shape[-1] > 64:
        return False
    rows = [b.extent() for _ in range(b.rng.choice([0, 1, 1, 1]))]
    inner = x.shape[-1]
    shape = [inner, *rows]
    if rows and x.rank > 2 and b.rng.random() < 0.5:
        shape = [extent if b.rng.random() < 0.6 else 1 for extent in x.shape[:-2]] + shape
    y = b.operand(shape)
    if len(shape) == 2 and x.rank == 2 and x.shape[0] == y.shape[1] and b.rng.random() < 0.2:
        x, y = y, x
    return b.emit("MatMul", [x, y])


@kind(3)
def gemm(b):
    x = b.pick(ranks=[2])
    if not x:
        return False
    trans_a, trans_b = b.rng.randint(0, 1), b.rng.randint(0, 1)
    m, k = x.shape[::-1] if trans_a else x.shape
    n = b.extent()
    y = b.operand((n, k) if trans_b else (k, n))
    c = [b.operand(b.rng.choice([(m, n), (n,), (1, n), (m, 1), ()]))] if b.rng.random() < 0.7 else []
    return b.emit("Gemm", [x, y, *c], transA=trans_a, transB=trans_b, alpha=b.rng.choice([1.0, 0.5]),
                  beta=b.rng.choice([1.0, 2.0, 0.0]))


@kind(6)
def conv(b):
    x = b.pick(ranks=range(3, 6))
    if not x:
        return image(b)
    spatial = x.rank - 2
    channels = x.shape[1]
    groups = b.rng.choice([g for g in range(1, channels + 1) if channels % g == 0] if b.rng.random() < 0.4 else [1])
    if b.rng.random() < 0.25:
        groups = channels
    out = groups * b.rng.choice([1, 1, 2, 3, 4] if groups > 1 else [1, 3, 8, 16, 17, 24])
    transposed = b.rng.random() < 0.2
    kernel = [b.rng.choice([1, 1, 2, 3, 3, 5]) for _ in range(spatial)]
    attributes = {"group": groups}
    if b.rng.random() < 0.7:
        attributes["strides"] = [b.rng.choice([1, 1, 2, 3]) for _ in range(spatial)]
    if b.rng.random() < 0.3:
        attributes["dilations"] = [b.rng.choice([1, 2]) for _ in range(spatial)]
    if b.rng.random() < 0.8:
        attributes["pads"] = [b.rng.randint(0, k) for k in kernel * 2]
    elif b.rng.random() < 0.4 and not transposed:
        attributes["auto_pad"] = b.rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    if b.rng.random() < 0.5:
        attributes["kernel_shape"] = kernel
    shape = [channels, out // groups, *kernel] if transposed else [out, channels // groups, *kernel]
    if np.prod(shape) > 20000:
        return False
    bias = [b.operand((out,))] if b.rng.random() < 0.6 else []
    if transposed:
        attributes.pop("auto_pad", None)
        return b.emit("ConvTranspose", [x, b.operand(shape), *bias], **attributes)
    return b.emit("Conv", [x, b.operand(shape), *bias], **attributes)


@kind(2)
def image(b):
    shape = (b.rng.choice([1, 1, 2]), b.rng.choice([1, 3, 4, 8, 16, 17]), *b.shape(b.rng.choice([1, 2, 2, 2, 3]), 256))
    return bool(b.add(b.noise(shape), False))


@kind(3)
def pool(b):
    x = b.pick(ranks=range(3, 6))
    if not x:
        return False
    if b.rng.random() < 0.3:
        op = b.rng.choice(["GlobalAveragePool", "GlobalMaxPool"])
        return b.emit(op, [x], exact=op == "GlobalMaxPool")
    op = b.rng.choice(["MaxPool", "AveragePool", "LpPool"])
    kernel = [b.rng.choice([1, 2, 2, 3, 3]) for _ in range(x.rank - 2)]
    attributes = {"kernel_shape": kernel}
    if b.rng.random() < 0.7:
        attributes["strides"] = [b.rng.choice([1, 2, 3]) for _ in kernel]
    if b.rng.random() < 0.5:
        attributes["pads"] = [b.rng.randint(0, k - 1) for k in kernel * 2]
    elif b.rng.random() < 0.3:
        attributes["auto_pad"] = b.rng.choice(["SAME_UPPER", "SAME_LOWER"])
    if any(n < k for n, k in zip(x.shape[2:], kernel)):
        return False  # onnxruntime counts what lies beyond the pads
    if "auto_pad" in attributes and any(s > k for s, k in zip(attributes.get("strides", kernel), kernel)):
        return False  # onnxruntime pads by less than nothing
    if op != "LpPool" and b.rng.random() < 0.4:
        attributes["ceil_mode"] = 1
    if op == "MaxPool" and b.rng.random() < 0.2 and "auto_pad" not in attributes:  # onnxruntime pads too little
        attributes["dilations"] = [b.rng.choice([1, 2]) for _ in kernel]
    if op == "AveragePool":
        attributes["count_include_pad"] = b.rng.randint(0, 1)
    return b.emit(op, [x], exact=op == "MaxPool", **attributes)


@kind(4)
def transpose(b):
    x = b.pick((F, F, I64, BOOL), ranks=range(1, 6))
    order = list(range(x.rank)) if x else []
    b.rng.shuffle(order)
    return x and b.emit("Transpose", [x], exact=True, **({"perm": order} if b.rng.random() < 0.85 else {}))


@kind(4)
def reshape(b):
    x = b.pick((F, F, I64))
    if not x:
        return False
    factors, rest = [], x.array.size
    while rest > 1 and len(factors) < 4:
        options = [f for f in range(2, min(rest, 33) + 1) if rest % f == 0] or [rest]
        factors.append(b.rng.choice(options))
        rest //= factors[-1]
    factors += [rest] if rest > 1 or not factors else []
    for _ in range(b.rng.choice([0, 0, 1])):
        factors.insert(b.rng.randint(0, len(factors)), 1)
    if b.rng.random() < 0.4:
        factors[b.rng.randrange(len(factors))] = -1
    if x.rank and x.shape[0] == factors[0] and b.rng.random() < 0.5:
        factors[0] = 0
    return b.emit("Reshape", [x, b.constant(factors, I64)], exact=True)


@kind(2)
def flatten(b):
    x = b.pick(ranks=range(1, 6))
    return x and b.emit("Flatten", [x], exact=True, axis=b.rng.randint(-x.rank, x.rank))


@kind(2)
def squeeze(b):
    x = b.pick((F, I64), ranks=range(0, 5))
    if not x:
        return False
    ones = [axis for axis, extent in enumerate(x.shape) if extent == 1]
    if ones and b.rng.random() < 0.6:
        return b.emit("Squeeze", [x, b.constant(b.rng.sample(ones, b.rng.randint(1, len(ones))), I64)], exact=True)
    return b.emit("Unsqueeze", [x, b.constant([b.rng.randint(-x.rank - 1, x.rank)], I64)], exact=True)


@kind(3)
def concat(b):
    x = b.pick((F, F, I64), ranks=range(1, 5))
    if not x:
        return False
    axis = axis_of(b, x)
    values = [x]
    for _ in range(b.rng.randint(0, 3)):
        shape = list(x.shape)
        shape[axis] = b.extent() if b.rng.random() < 0.5 else shape[axis]
        other = x if b.rng.random() < 0.2 else b.operand(shape, x.array.dtype.type)
        values.insert(b.rng.randint(0, len(values)), other)
    return b.emit("Concat", values, exact=True, axis=axis)


@kind(2)
def split(b):
    x = b.pick(ranks=range(1, 5))
    axis = axis_of(b, x) if x else 0
    if not x or x.shape[axis] < 2:
        return False
    first = b.rng.randint(1, x.shape[axis] - 1)
    return b.emit("Split", [x, b.constant([first, x.shape[axis] - first], I64)], results=2, exact=True, axis=axis)


@kind(4)
def slice_(b):
    x = b.pick((F, F, I64), ranks=range(1, 6))
    if not x:
        return False
    axes = some_axes(b, x, min(2, x.rank))
    if len({axis % x.rank for axis in axes}) < len(axes):
        return False
    starts, ends, steps = [], [], []
    for axis in axes:
        extent = x.shape[axis]
        step = b.rng.choice([1, 1, 1, 2, 3, -1, -2])
        first, last = sorted((b.rng.randint(0, extent), b.rng.randint(0, extent)))
        start, end = (first, last) if step > 0 else (last, first - extent - 1 if first == 0 else first - 1)
        if step > 0 and b.rng.random() < 0.3:
            start, end = start - extent if start < extent else start, b.rng.choice([end, 2 ** 31, 2 ** 63 - 1])
        starts.append(start), ends.append(end), steps.append(step)
    dtype = b.rng.choice([I64, I32]) if max(ends) < 2 ** 31 else I64
    inputs = [x, b.constant(starts, dtype), b.constant(ends, dtype), b.constant(axes, dtype)]
    return b.emit("Slice", inputs + ([b.constant(steps, dtype)] if set(steps) != {1} else []), exact=True)


@kind(3)
def gather(b):
    x = b.pick((F, F, I64), ranks=range(1, 5))
    if not x:
        return False
    op = b.rng.choice(["Gather", "Gather", "GatherElements", "GatherND"])
    axis = axis_of(b, x)
    dtype = b.rng.choice([I64, I32])
    if op == "GatherND":
        depth = b.rng.randint(1, x.rank)
        index = np.stack([b.np.integers(-e, e, (4,)) for e in x.shape[:depth]], -1)
        return b.emit(op, [x, b.constant(index, I64)], exact=True)
    if not x.shape[axis]:
        return False
    shape = b.shape(x.rank, 500) if op == "GatherElements" else b.shape(b.rng.randint(0, 2), 30)
    if op == "GatherElements":
        shape = [min(s, e) if i != axis % x.rank else s for i, (s, e) in enumerate(zip(shape, x.shape))]
    index = b.np.integers(-x.shape[axis], x.shape[axis], shape)
    return b.emit(op, [x, b.add(np.asarray(index, dtype), b.rng.random() < 0.6)], exact=True, axis=axis)


@kind(1)
def scatter(b):
    x = b.pick(ranks=range(1, 4))
    if not x:
        return False
    axis = axis_of(b, x)
    shape = [b.rng.randint(1, e) for e in x.shape]
    rows = b.np.permutation(x.shape[axis])[:shape[axis]]
    index = np.broadcast_to(rows.reshape([-1 if i == axis % x.rank else 1 for i in range(x.rank)]), shape)
    return b.emit("ScatterElements", [x, b.constant(np.ascontiguousarray(index), I64), b.operand(shape)], exact=True,
                  axis=axis)


@kind(3)
def pad(b):
    x = b.pick(ranks=range(1, 5))
    mode = b.rng.choice(["constant", "constant", "reflect", "edge", "wrap"])
    if not x or mode == "wrap" and b.graph.opset < 19:
        return False
    amounts = [b.rng.choice([0, 0, 1, 2, 3]) for _ in range(2 * x.rank)]
    if mode == "constant" and b.rng.random() < 0.3:
        amounts[b.rng.randrange(len(amounts))] = -1
    if mode == "reflect":
        amounts = [min(a, e - 1) for a, e in zip(amounts, x.shape * 2)]
    inputs = [x, b.constant(amounts, I64)]
    if mode == "constant" and b.rng.random() < 0.6:
        inputs.append(b.constant(np.float32(b.rng.choice([0, 1.5, -2]))))
    return b.emit("Pad", inputs, exact=True, mode=mode)


@kind(2)
def spread(b):
    x = b.pick((F, F, I64), ranks=range(0, 5))
    if not x or x.array.size > 1000:
        return False
    if b.rng.random() < 0.5:
        shape = [b.rng.choice([e, 1, 3]) if e == 1 else b.rng.choice([e, 1]) for e in x.shape]
        shape = ([b.rng.choice([1, 2])] if b.rng.random() < 0.3 else []) + shape
        return b.emit("Expand", [x, b.constant(shape, I64)], exact=True)
    return x.rank > 0 and b.emit("Tile", [x, b.constant([b.rng.choice([1, 1, 2, 3]) for _ in x.shape], I64)],
                                 exact=True)


@kind(2)
def resize(b):
    x = b.pick(ranks=[3, 4])
    if not x or x.array.size > 3000:
        return False
    mode = b.rng.choice(["nearest", "linear", "cubic"])
    if mode == "cubic" and x.rank != 4:
        return False
    scales = [1.0, 1.0] + [b.rng.choice([2.0, 1.0, 0.5, 1.5]) for _ in x.shape[2:]]
    attributes = {"mode": mode, "coordinate_transformation_mode": b.rng.choice(
        ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])}
    if attributes["coordinate_transformation_mode"] in ("align_corners", "pytorch_half_pixel"):
        scales = [float(round(scale)) for scale in scales]  # implementations differ where extents are cut off
    if mode == "nearest":
        attributes["nearest_mode"] = b.rng.choice(["floor", "round_prefer_floor", "ceil", "round_prefer_ceil"])
    return b.emit("Resize", [x, None, b.constant(scales, F)], exact=mode == "nearest", **attributes)


@kind()
def rearrange(b):
    x = b.pick(ranks=[4])
    if not x or x.name in b.graph.inputs:  # whose channels may be left open
        return False
    if x.shape[1] % 4 == 0 and b.rng.random() < 0.6:
        return b.emit("DepthToSpace", [x], exact=True, blocksize=2, mode=b.rng.choice(["DCR", "CRD"]))
    return b.emit("SpaceToDepth", [x], exact=True, blocksize=b.rng.choice([1, 2]))


@kind()
def accumulate(b):
    x = b.pick(ranks=range(1, 5))
    return x and b.emit("CumSum", [x, b.constant(axis_of(b, x), I64)], exclusive=b.rng.randint(0, 1),
                        reverse=b.rng.randint(0, 1))


@kind()
def top_k(b):
    x = b.pick(ranks=range(1, 4), exact=True, where=lambda v: len(np.unique(v.array)) == v.array.size)
    axis = axis_of(b, x) if x else 0
    return x and b.emit("TopK", [x, b.constant([b.rng.randint(1, x.shape[axis])], I64)], results=2, exact=True,
                        axis=axis, largest=b.rng.randint(0, 1), sorted=1)


@kind(1)
def shape_arithmetic(b):
    x = b.pick(ranks=range(1, 5))
    if not x or not b.emit("Shape", [x]):
        return False
    shape = list(b.graph.values.values())[-1]
    if b.rng.random() < 0.5:
        return b.emit("Gather", [shape, b.constant(b.rng.randrange(x.rank), I64)])
    return b.emit("ConstantOfShape", [shape], exact=True)


@kind(1)
def one_hot(b):
    x = b.pick((I64,), ranks=range(0, 3))
    return x and b.emit("OneHot", [x, b.constant(12, I64), b.constant([0.5, 2.0], F)], exact=True,
                        axis=b.rng.choice([-1, 0]))


@kind(2)
def quantise(b):
    x = b.pick(ranks=range(1, 5), exact=True)
    if not x:
        return False
    dtype = b.rng.choice([U8, I8])
    axis = axis_of(b, x)
    channel = b.rng.random() < 0.4
    count = (x.shape[axis],) if channel else ()
    scale = b.constant(b.noise(count, F, 0.02, 0.2))
    zero = b.constant(b.noise(count, dtype, -5 if dtype == I8 else 100, 6 if dtype == I8 else 140))
    return b.emit("QuantizeLinear", [x, scale, zero], **({"axis": axis} if channel else {}))


@kind(2)
def dequantise(b):
    x = b.pick((U8, I8), ranks=range(1, 5))
    if not x:
        return False
    axis = axis_of(b, x)
    channel = b.rng.random() < 0.4
    count = (x.shape[axis],) if channel else ()
    zero = [b.constant(b.noise(count, x.array.dtype.type, 0, 6))] if b.rng.random() < 0.7 else []
    return b.emit("DequantizeLinear", [x, b.constant(b.noise(count, F, 0.02, 0.2)), *zero],
                  **({"axis": axis} if channel else {}))


@kind()
def einsum(b):
    x = b.pick(ranks=[2, 3], where=lambda v: v.array.size < 2000)
    if not x:
        return False
    if x.rank == 2:
        y = b.operand((x.shape[1], b.extent()))
        return b.emit("Einsum", [x, y], equation=b.rng.choice(["ij,jk->ik", "ij,jk->ki", "ij,jk->k"]))
    y = b.operand((x.shape[0], b.extent(), x.shape[2]))
    return b.emit("Einsum", [x, y], equation=b.rng.choice(["bij,bkj->bik", "bij,bkj->bki"]))


def grow(builder, nodes: int) -> None:
    """Adds about this many nodes."""
    rng = builder.rng
    for _ in range(rng.randint(1, 3)):
        builder.add(builder.noise(builder.shape(rng.choice([1, 2, 2, 3, 3, 4, 4]))), False)
    kinds = [function for weight, function in KINDS for _ in range(weight)]
    favoured = rng.sample(kinds, 6)  # graphs of few kinds of ops fuse more
    for _ in range(4 * nodes):
        if len(builder.graph.nodes) >= nodes:
            break
        rng.choice(favoured if rng.random() < 0.4 else kinds)(builder)
