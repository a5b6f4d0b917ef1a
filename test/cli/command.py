# SPDX-License-Identifier: Apache-2.0
"""The command under test, and what every refusal must look like."""
import os
import pathlib
import re
import resource
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
ESTIMATE = "--select=estimate"


class Command:
    """Runs `dovetail` in a folder of its own, with a cache that all tests of a session share."""

    def __init__(self, binary: pathlib.Path, folder: pathlib.Path, cache: pathlib.Path):
        self.binary, self.folder = binary, folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.environment = {**os.environ, "DOVETAIL_CACHE": str(cache), "TMPDIR": str(self.temporary)}
        self.environment.pop("DOVETAIL_PLUGINS", None)

    def raw(self, *arguments, largest_file: int | None = None, **environment) -> subprocess.CompletedProcess:
        """`largest_file`: writing more bytes to a file fails, as on a full disk."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

        return subprocess.run([self.binary, *map(str, arguments)], cwd=self.folder, text=True, capture_output=True,
                              env={**self.environment, **environment}, stdin=subprocess.DEVNULL, timeout=60,
                              check=False, preexec_fn=limit if largest_file is not None else None)

    def __call__(self, *arguments, **environment) -> subprocess.CompletedProcess:
        """Expects success."""
        done = self.raw(*arguments, **environment)
        assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
        return done

    def refuses(self, code: int, *arguments, says: str | list[str], **environment) -> str:
        """Expects one message, which matches every pattern of `says`, and nothing else: no result, no file."""
        before = self.files()
        done = self.raw(*arguments, **environment)
        assert done.returncode == code, f"exit code {done.returncode} instead of {code}: {done.stderr}"
        assert done.stdout == ""
        lines = done.stderr.splitlines()
        assert len(lines) == 1 and lines[0].startswith("dovetail: error: "), done.stderr
        for pattern in [says] if isinstance(says, str) else says:
            assert re.search(pattern, lines[0]), f"'{lines[0]}' does not match '{pattern}'"
        assert self.files() == before
        return lines[0]

    def files(self) -> dict:
        found = {}
        for folder, _, names in os.walk(self.folder):
            for name in names:
                about = os.lstat(os.path.join(folder, name))
                found[os.path.join(folder, name)] = about.st_size, about.st_mtime_ns
        return found

    def write(self, name: str, content) -> str:
        """A file in the command's folder: bytes, text or a protobuf message."""
        if isinstance(content, str):
            content = content.encode()
        elif not isinstance(content, bytes):
            content = content.SerializeToString()
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return name
