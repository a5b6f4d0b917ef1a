# SPDX-License-Identifier: Apache-2.0
"""A small network for plans on devices: what libraries of convolutions take, and what may follow it."""
import numpy as np
import onnxruntime

import makers


def network():
    """Convolutions with all that may follow them, pools, and a classifier."""
    draw = np.random.default_rng(3)

    def weights(name, *shape):
        return makers.constant(name, draw.uniform(-0.5, 0.5, shape).astype(np.float32))

    nodes = [makers.node("Conv", "x w0 b0", "c0", name="stem", pads=[1, 1, 1, 1], strides=[2, 2]),
             makers.node("Relu", "c0", "r0"),
             makers.node("MaxPool", "r0", "p0", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1]),
             makers.node("Conv", "p0 w1", "c1", name="residual", pads=[1, 1, 1, 1]),
             makers.node("Add", "c1 p0", "a1"),
             makers.node("Relu", "a1", "r1"),
             makers.node("Conv", "r1 w2 b2", "c2", name="grouped", group=2, pads=[1, 1, 1, 1]),
             makers.node("Sigmoid", "c2", "s2"),
             makers.node("GlobalAveragePool", "s2", "g"),
             makers.node("Flatten", "g", "f"),
             makers.node("Gemm", "f w3", "l"),
             makers.node("Softmax", "l", "y")]
    constants = [weights("w0", 8, 3, 3, 3), weights("b0", 8), weights("w1", 8, 8, 3, 3), weights("w2", 8, 4, 3, 3),
                 weights("b2", 8), weights("w3", 8, 5)]
    return makers.model(nodes, [makers.value("x", [2, 3, 12, 10])], [makers.value("y", [2, 5])], constants)


def check_run(dovetail, model, artifact: str = "net.dvt", error: float = 1e-5, **environment) -> str:
    """Runs the artifact twice and compares with onnxruntime. What was said on standard error."""
    x = np.random.default_rng(4).uniform(-1, 1, (2, 3, 12, 10)).astype(np.float32)
    np.save(dovetail.folder / "x.npy", x)
    done = dovetail("run", artifact, "--input", "x=x.npy", "--output", "y.npz", "--repeat", "2", **environment)
    wanted = onnxruntime.InferenceSession(model.SerializeToString(),
                                          providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    np.testing.assert_allclose(np.load(dovetail.folder / "y.npz")["y"], wanted, rtol=error, atol=error / 10)
    return done.stderr
