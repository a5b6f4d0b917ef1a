#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills model skeletons with seeded weights:  materialize.py [--out DIR] [NAME ...]

The architectures are real, the weights are random. A skeleton is an ONNX file whose large
initializers have no data but a recipe in their doc_string: mean, standard deviation, range and kind
of the tensor they stand for. The same name always gets the same weights. The models go to DIR, by
default the cache (see store.py); all skeletons together fill 2.5 GB. Prints the models' paths.
"""
import argparse
import hashlib
import json
import pathlib
import sys
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper

import store

SKELETONS = pathlib.Path(__file__).resolve().parent / "skeletons"
RECIPE = "recipe:"


def values_for(tensor: onnx.TensorProto) -> np.ndarray:
    recipe = json.loads(tensor.doc_string[len(RECIPE):])
    rng = np.random.default_rng(zlib.crc32(tensor.name.encode()))
    shape = tuple(tensor.dims)
    if recipe["kind"] == "float":
        values = rng.standard_normal(shape, dtype=np.float32) * recipe["std"] + recipe["mean"]
        return np.clip(values, recipe["lo"], recipe["hi"])
    return rng.integers(int(recipe["lo"]), int(recipe["hi"]) + 1, shape)


def pack_nibbles(values: np.ndarray) -> bytes:
    """Two elements a byte, the first in the low half, as ONNX stores 4-bit types."""
    flat = values.reshape(-1).astype(np.int64) & 15
    if flat.size % 2:
        flat = np.append(flat, 0)
    return (flat[0::2] | (flat[1::2] << 4)).astype(np.uint8).tobytes()


def fill(tensor: onnx.TensorProto) -> None:
    values = values_for(tensor)
    if tensor.data_type in (TensorProto.INT4, TensorProto.UINT4):
        tensor.raw_data = pack_nibbles(values)
    else:
        dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
        tensor.raw_data = values.astype(dtype).tobytes()
    tensor.ClearField("doc_string")


def materialize(name: str, out: pathlib.Path) -> pathlib.Path:
    """Makes one model unless `out` has it already; returns its path."""
    skeleton = SKELETONS / f"{name}.onnx"
    if not skeleton.exists():
        sys.exit(f"materialize: no skeleton named {name}; there are: "
                 + ", ".join(sorted(p.stem for p in SKELETONS.glob("*.onnx"))))
    path = out / f"{name}.onnx"
    key = hashlib.sha256(skeleton.read_bytes()).hexdigest()
    if not store.is_present(path, key):
        model = onnx.load(skeleton)
        for tensor in model.graph.initializer:
            if tensor.doc_string.startswith(RECIPE):
                fill(tensor)
        store.put(path, key, model.SerializeToString())
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=store.default_folder())
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    names = options.names or sorted(p.stem for p in SKELETONS.glob("*.onnx"))
    for name in names:
        print(materialize(name, options.out))


if __name__ == "__main__":
    main()
