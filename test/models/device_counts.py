# SPDX-License-Identifier: Apache-2.0
"""What a session of tests has assembled for each kind of device, run there and had checked by simulated drivers."""
import json
import pathlib

import pytest

KEY = pytest.StashKey()  # of the session's counts: by target, by what was counted


def add(config: pytest.Config, target: str, plan: dict, driver: dict, images: dict) -> None:
    """`plan` as `explain --json` has it, `driver` as a simulated one reports, `images` as plan-images counts them."""
    counts = config.stash.setdefault(KEY, {}).setdefault(target, {})
    numbers = {"models": 1, "kernels": plan["device_kernels"]["kernels"],
               **{f"{kind} images": number for kind, number in plan["device_kernels"]["images"].items()},
               **{what: driver.get(what, 0) for what in ("calls", "launches", "library calls")},
               **{what: number for what, number in images.items() if what != "kernels"}}
    for what, number in numbers.items():
        counts[what] = counts.get(what, 0) + number


def send(config: pytest.Config) -> None:
    """From a worker of pytest-xdist to the process that reports."""
    config.workeroutput["device_counts"] = config.stash.get(KEY, {})


def receive(config: pytest.Config, worker: dict) -> None:
    for target, numbers in worker.get("device_counts", {}).items():
        counts = config.stash.setdefault(KEY, {}).setdefault(target, {})
        for what, number in numbers.items():
            counts[what] = counts.get(what, 0) + number


def write(config: pytest.Config, path: pathlib.Path) -> None:
    path.write_text(json.dumps(config.stash.get(KEY, {})))


def summary(config: pytest.Config) -> list[str]:
    """A line for each target."""
    lines = []
    for target, of in sorted(config.stash.get(KEY, {}).items()):
        images = ", ".join(f"{number} {what}" for what, number in sorted(of.items()) if what.endswith(" images"))
        lines.append(f"{target}: {of['models']} models, {of['kernels']} kernels ({images}), {of['launches']} launches, "
                     f"{of['library calls']} library calls, {of['calls']} driver calls checked")
    return lines
