# SPDX-License-Identifier: Apache-2.0
"""Runs one session over many shapes in a process of its own: soak.py LIBRARY ARTIFACT KIND SHAPES FOLDER

Results go to a file as they come, so that nothing but the session can make the process grow; its memory after each run
is written at the end.
"""
import pathlib
import resource
import sys

import numpy as np

from state_session import Session


def encoder(rng):
    shape = int(rng.integers(1, 5)), int(rng.integers(1, 65))
    mask = (rng.random(shape) < 0.8).astype(np.int64)
    mask[:, 0] = 1
    return {"ids": rng.integers(0, 40, shape), "mask": mask}


def recognizer(rng):
    shape = int(rng.integers(1, 4)), 3, 32, int(rng.integers(8, 200))
    return {"x": rng.standard_normal(shape).astype(np.float32)}


def bert(rng):
    shape = int(rng.integers(1, 3)), int(rng.integers(1, 97))
    mask = (rng.random(shape) < 0.8).astype(np.int64)
    mask[:, 0] = 1
    return {"input_ids": rng.integers(0, 30522, shape), "attention_mask": mask,
            "token_type_ids": rng.integers(0, 2, shape)}


def text_line(rng):
    shape = int(rng.integers(1, 3)), 3, 48, int(rng.integers(16, 481))
    return {"x": rng.standard_normal(shape).astype(np.float32)}


# Inputs of one run by a model of test/state/state_models.py, or of models/.
KINDS = {"encoder": encoder, "recognizer": recognizer, "bert_base_dyn": bert, "ppocrv4_rec": text_line}


def cases(kind, count):
    for i in range(count):
        yield KINDS[kind](np.random.default_rng(1000 + i))


def pages():
    return int(pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[1])


def main():
    library, artifact, kind, count, folder = sys.argv[1:]
    session = Session(library, artifact)
    memory = []
    with open(pathlib.Path(folder, "results"), "wb") as results:
        for inputs in cases(kind, int(count)):
            for name, array in inputs.items():
                session.bind(name, array)
            session.run()
            for name in sorted(session.outputs):
                np.save(results, session.output(name))
            memory.append(pages() * resource.getpagesize())
    np.save(pathlib.Path(folder, "memory.npy"), np.array(memory))


if __name__ == "__main__":
    main()
