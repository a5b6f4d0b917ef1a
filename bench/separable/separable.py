#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A depthwise convolution and the pointwise one behind it: one kernel beside two.  separable.py [--type f16] [--only native]

For each size the pair is timed in one kernel ('separable'), and each half alone with all candidates, whose cheapest two
that agree on the layout between them stand for two kernels; layouts at the ends are left to each. Between runs as much
memory is read as --footprint says, so that what is between the two has to come from where a model would find it.
Figures are for a quiet machine; --only=native compares native kernels among themselves.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Channels, height, width, window, stride, channels behind: of MobileNet V3, ConvNeXt-like and OCR networks.
SIZES = [(16, 112, 112, 3, 1, 16), (64, 112, 112, 3, 2, 24), (72, 56, 56, 3, 1, 24), (72, 56, 56, 5, 2, 40),
         (120, 28, 28, 5, 1, 40), (240, 28, 28, 3, 2, 80), (200, 14, 14, 3, 1, 80), (480, 14, 14, 3, 1, 112),
         (672, 14, 14, 5, 2, 160), (960, 7, 7, 5, 1, 160), (48, 24, 160, 3, 1, 96), (192, 12, 80, 5, 1, 192)]


class Size:
    def __init__(self, kind: str, channels: int, height: int, width: int, window: int, stride: int, behind: int):
        pad = window // 2
        rows, columns = ((extent + 2 * pad - window) // stride + 1 for extent in (height, width))
        self.name = f"{channels} x {height} x {width}, {window} x {window} by {stride}, to {behind}"
        image, inside, after = (f"{kind}[1,{c},{h},{w}]" for c, h, w in (
            (channels, height, width), (channels, rows, columns), (behind, rows, columns)))
        depthwise = (f"conv@22(%0, %1, %2) {{dilations=[1,1], group={channels}, kernel_shape=[{window},{window}], "
                     f"pads=[{pad},{pad},{pad},{pad}], strides=[{stride},{stride}]}}")
        pointwise = "{dilations=[1,1], group=1, kernel_shape=[1,1], pads=[0,0,0,0], strides=[1,1]}"
        weights = f"%1: const {kind}[{channels},1,{window},{window}], %2: const {kind}[{channels}]"
        self.depthwise = (f"problem(%0: {image}, {weights}) %3: {inside} = {depthwise}; "
                          f"%4: {inside} = relu@14(%3) return(%4)")
        self.pointwise = (f"problem(%0: {inside}, %1: const {kind}[{behind},{channels},1,1], %2: const "
                          f"{kind}[{behind}]) %3: {after} = conv@22(%0, %1, %2) {pointwise} return(%3)")
        self.both = (f"problem(%0: {image}, {weights}, %5: const {kind}[{behind},{channels},1,1], %6: const "
                     f"{kind}[{behind}]) %3: {inside} = {depthwise}; %4: {inside} = relu@14(%3); %7: {after} = "
                     f"conv@22(%4, %5, %6) {pointwise} return(%7)")


def trials(binary: pathlib.Path, problem: str, arguments: list[str]) -> list[dict]:
    done = subprocess.run([binary, "problem", problem, "--json", *arguments], text=True, capture_output=True)
    if done.returncode not in (0, 3):  # 3: some candidate failed, others did not
        sys.exit(f"dovetail problem ended with {done.returncode}: {done.stderr.strip()}")
    return [trial for trial in json.loads(done.stdout)["trials"] if trial["micros"] > 0]


def label(trial: dict) -> str:
    return f"{trial['candidate']['provider']}:{trial['candidate']['algorithm']}"


def fastest(found: list[dict]) -> dict | None:
    return min(found, key=lambda trial: trial["micros"], default=None)


def two(first: list[dict], second: list[dict]) -> tuple[dict, dict] | None:
    """The cheapest pair that agrees on the layout between its kernels."""
    pairs = []
    for layout in {trial["candidate"]["output_layouts"][0] for trial in first}:
        a = fastest([trial for trial in first if trial["candidate"]["output_layouts"][0] == layout])
        b = fastest([trial for trial in second if trial["candidate"]["input_layouts"][0] == layout])
        if a and b:
            pairs.append((a, b))
    return min(pairs, key=lambda pair: pair[0]["micros"] + pair[1]["micros"], default=None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--type", default="f32", choices=["f32", "f16", "bf16"])
    parser.add_argument("--threads", type=int, default=0, help="default: all cores")
    parser.add_argument("--footprint", type=int, default=32 << 20, help="bytes read between two runs (default: 32 MiB)")
    parser.add_argument("--only", default="", help="providers, separated by commas (default: all)")
    arguments = parser.parse_args()
    binary = pathlib.Path(os.environ.get("DOVETAIL_BUILD_DIR", ROOT / "build"), "bin/dovetail")
    if not binary.exists():
        sys.exit(f"{binary} is missing: build first, with scripts/build")
    common = [f"--footprint={arguments.footprint}"]
    common += [f"--threads={arguments.threads}"] if arguments.threads else []
    halves = common + ([f"--only={arguments.only}"] if arguments.only else [])
    for sizes in SIZES:
        size = Size(arguments.type, *sizes)
        one = fastest([trial for trial in trials(binary, size.both, [*common, "--only=native"])
                       if "separable" in trial["candidate"]["algorithm"]])
        pair = two(trials(binary, size.depthwise, halves), trials(binary, size.pointwise, halves))
        if not one or not pair:
            print(f"{size.name}: {'two kernels' if one else 'one kernel'} not on offer", flush=True)
            continue
        apart = pair[0]["micros"] + pair[1]["micros"]
        print(f"{size.name}: {one['micros']:.1f} us in one kernel, {apart:.1f} in two, ratio "
              f"{one['micros'] / apart:.2f} ({label(pair[0])}, {label(pair[1])})", flush=True)


if __name__ == "__main__":
    main()
