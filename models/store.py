# SPDX-License-Identifier: Apache-2.0
"""Where models are kept: one folder per machine, so that a second checkout fetches nothing again.

A file counts as present only if its key (a digest of what it was made from) stands beside it.
"""
import os
import pathlib


def default_folder() -> pathlib.Path:
    """The models folder of the cache that scripts/setup uses, too."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("DOVETAIL_CACHE") or pathlib.Path(base) / "dovetail") / "models"


def _key_file(path: pathlib.Path) -> pathlib.Path:
    return path.with_name(f".{path.name}.key")


def is_present(path: pathlib.Path, key: str) -> bool:
    return path.exists() and _key_file(path).exists() and _key_file(path).read_text() == key


def put(path: pathlib.Path, key: str, data: bytes) -> None:
    """Writes a model so that a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(data)
    partial.replace(path)
    _key_file(path).write_text(key)
