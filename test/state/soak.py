# SPDX-License-Identifier: Apache-2.0
"""Runs one session over many shapes in a process of its own: soak.py LIBRARY ARTIFACT KIND SHAPES OUT.npz

Writes what came out and the memory of the process after each run, so that nothing but the session can grow it.
"""
import pathlib
import resource
import sys

import numpy as np

from state_session import Session


def shape_of(kind, rng):
    if kind == "encoder":
        return int(rng.integers(1, 5)), int(rng.integers(1, 65))
    return int(rng.integers(1, 4)), int(rng.integers(8, 200))


def inputs_of(kind, shape, rng):
    if kind == "encoder":
        mask = (rng.random(shape) < 0.8).astype(np.int64)
        mask[:, 0] = 1
        return {"ids": rng.integers(0, 40, shape), "mask": mask}
    return {"x": rng.standard_normal((shape[0], 3, 32, shape[1])).astype(np.float32)}


def pages():
    return int(pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[1])


def cases(kind, count):
    for i in range(count):
        rng = np.random.default_rng(1000 + i)
        shape = shape_of(kind, rng)
        yield shape, inputs_of(kind, shape, rng)


def main():
    library, artifact, kind, count, out = sys.argv[1:]
    session = Session(library, artifact)
    found, memory, kept = {}, [], 0
    for i, (_, inputs) in enumerate(cases(kind, int(count))):
        for name, array in inputs.items():
            session.bind(name, array)
        session.run()
        found[str(i)] = session.output("y")
        kept += found[str(i)].nbytes
        memory.append(pages() * resource.getpagesize() - kept)
    np.savez(out, memory=np.array(memory), **found)


if __name__ == "__main__":
    main()
