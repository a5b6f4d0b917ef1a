#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads text from a picture with two trained models that Dovetail compiles:  scripts/demo [OPTION...]

Draws a picture with known text, compiles a text detector and a text recogniser (PP-OCRv4) into artifacts, runs both in
separate processes and prints what was read beside what was drawn. Then it shows how the detector's plan joins library
kernels and Dovetail's own, and times that plan against one that takes libraries first and one that takes own kernels
first. The exit status is 0 only if at least one line was read right.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from PIL import Image, ImageDraw, ImageFont

ROOT = pathlib.Path(__file__).resolve().parent.parent
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
LINES = ["Dovetail joins kernels", "from libraries 2026", "and kernels of its own"]
SIZE = (480, 192)  # of the picture; the detector wants multiples of 32
ROUNDS = 5  # of timing
TEXT_HEIGHT, TEXT_WIDTH = 48, 320  # of the pictures that the recogniser gets


def draw(path: pathlib.Path) -> Image.Image:
    picture = Image.new("RGB", SIZE, "white")
    pen = ImageDraw.Draw(picture)
    # Another engine, where Pillow finds one, would put the letters elsewhere; narrow gaps the recogniser reads as none.
    font = ImageFont.truetype(FONT, 28, layout_engine=ImageFont.Layout.BASIC)
    for row, line in enumerate(LINES):
        pen.text((24, 16 + 60 * row), line.replace(" ", "  "), fill=(20, 20, 60), font=font)
    picture.save(path)
    return picture


def as_tensor(picture: Image.Image, mean, deviation) -> np.ndarray:
    """The picture as the models take it: [1,3,H,W], blue first, scaled and shifted by channel."""
    pixels = np.asarray(picture, np.float32)[:, :, ::-1] / 255
    return np.ascontiguousarray(((pixels - mean) / deviation).transpose(2, 0, 1)[None], np.float32)


def find_boxes(probability: np.ndarray, threshold: float = 0.3, least: int = 100) -> list[tuple]:
    """Boxes around connected pixels above the threshold, grown back to the text's size, from top to bottom."""
    inside, boxes = probability > threshold, []
    for start in zip(*np.nonzero(inside)):
        if not inside[start]:
            continue
        inside[start], reached, edge = False, [start], [start]
        while edge:
            y, x = edge.pop()
            for near in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                if 0 <= near[0] < inside.shape[0] and 0 <= near[1] < inside.shape[1] and inside[near]:
                    inside[near] = False
                    reached.append(near)
                    edge.append(near)
        if len(reached) < least:
            continue
        (top, left), (bottom, right) = np.min(reached, 0), np.max(reached, 0)
        margin = round(0.5 * (bottom - top + 1))  # the model marks the core of a line only
        boxes.append((max(left - margin, 0), max(top - margin, 0), right + margin + 1, bottom + margin + 1))
    return sorted(boxes, key=lambda box: box[1])


def decode(scores: np.ndarray, characters: list[str]) -> str:
    """The best class at each position; repeats merge and class 0 (nothing) goes: CTC without a search."""
    best = scores.argmax(-1)
    return "".join(characters[k] for k, before in zip(best, [0, *best]) if k and k != before).strip()


class Dovetail:
    """The command, and the folder that inputs, outputs and artifacts go to."""

    def __init__(self, binary: pathlib.Path, folder: pathlib.Path, planning: list[str]):
        self.binary, self.folder, self.planning = binary, folder, planning

    def __call__(self, *arguments) -> str:
        command = [str(self.binary), *map(str, arguments)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f"demo: this command failed with exit status {done.returncode}: {' '.join(command)}")
        return done.stdout

    def save(self, name: str, tensor: np.ndarray) -> pathlib.Path:
        path = self.folder / f"{name}.npz"
        np.savez(path, x=tensor)
        return path

    def compile(self, model: pathlib.Path, sample: pathlib.Path, prefer: str = "cost") -> pathlib.Path:
        """An artifact for inputs of the sample's shape."""
        artifact = self.folder / f"{model.stem}-{prefer}.dvt"
        print("  " + self("compile", model, "--inputs", sample, "--prefer", prefer, "-o", artifact,
                          *self.planning).strip().replace(f"{self.folder}/", ""), flush=True)
        return artifact

    def run(self, artifact: pathlib.Path, sample: pathlib.Path) -> np.ndarray:
        output = self.folder / "output.npz"
        self("run", artifact, "--inputs", sample, "--output", output)
        with np.load(output) as arrays:
            return arrays[arrays.files[0]]


def show_plan(report: dict) -> None:
    """Ten lines: who computes how much of the model, and the dearest kernels."""
    shares, kernels = (collections.defaultdict(lambda: [0, 0, 0.0]) for _ in range(2))
    for step in report["steps"]:
        who = "layout conversions" if step.get("conversion") else step["kernel"].split(":")[0]
        for entry in (shares[who], kernels[step["kernel"], step.get("ops", "")]):
            entry[0] += 1
            entry[1] += step.get("micros", -1) < 0
            entry[2] += max(step.get("micros", -1), 0)
    total = sum(micros for _, _, micros in shares.values()) or 1
    dearest = lambda table: sorted(table.items(), key=lambda item: -item[1][2])
    for who, (count, untimed, micros) in dearest(shares)[:5]:
        print(f"  {count:4} steps  {100 * micros / total:5.1f} % of the time  {who}"
              + (f" ({untimed} not timed within the budget)" if untimed else ""))
    for (kernel, ops), (count, _, micros) in dearest(kernels)[:10 - min(len(shares), 5)]:
        print(f"  {count:4} times {micros:7.0f} us in all  {kernel:44} {ops:.40}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/bin/dovetail", help="the dovetail command")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/demo", help="for pictures and artifacts")
    parser.add_argument("--budget", type=float, default=40, help="seconds of measuring for each plan")
    parser.add_argument("--cache", help="folder of the plan cache")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    planning = ["--budget", str(options.budget), *(["--cache", options.cache] if options.cache else [])]
    dovetail = Dovetail(options.binary, options.folder, planning)

    fetch = subprocess.run([sys.executable, ROOT / "models/fetch.py", "ppocrv4_det", "ppocrv4_rec"],
                           stdout=subprocess.PIPE, text=True, check=True)
    detector, recogniser = map(pathlib.Path, fetch.stdout.split())
    facts = {entry.key: entry.value for entry in onnx.load(recogniser).metadata_props}
    characters = ["", *facts["character"].splitlines(), " "]

    picture_file = options.folder / "picture.png"
    picture = draw(picture_file)
    print("Compiling (kernels are measured; a second time they come from the plan cache):", flush=True)
    sample = dovetail.save("picture", as_tensor(picture, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
    # The chosen plan comes last, so that it knows all that was measured for the two sides it must beat.
    artifacts = {side: dovetail.compile(detector, sample, side) for side in ("library", "native", "cost")}
    detect = artifacts["cost"]
    blank = dovetail.save("blank", np.zeros((1, 3, TEXT_HEIGHT, TEXT_WIDTH), np.float32))
    recognise = dovetail.compile(recogniser, blank)

    read = []
    for box in find_boxes(dovetail.run(detect, sample)[0, 0]):
        line = picture.crop(box)
        width = min(TEXT_WIDTH, round(line.width * TEXT_HEIGHT / line.height))
        tensor = np.zeros((1, 3, TEXT_HEIGHT, TEXT_WIDTH), np.float32)
        tensor[:, :, :, :width] = as_tensor(line.resize((width, TEXT_HEIGHT), Image.Resampling.BILINEAR), 0.5, 0.5)
        read.append(decode(dovetail.run(recognise, dovetail.save("line", tensor))[0], characters))
    print(f"\nDrawn in {picture_file}, and read by the models:")
    for row in range(max(len(LINES), len(read))):
        drawn = LINES[row] if row < len(LINES) else "(nothing)"
        found = read[row] if row < len(read) else "(nothing)"
        print(f"  {drawn:28} {found:28} {'same' if drawn == found else 'different'}")

    report = json.loads(dovetail("explain", detect, "--json"))
    print(f"\nThe detector's plan: {len(report['steps'])} steps on {report['target'].split(' l1=')[0]}")
    show_plan(report)
    print("\nThe whole detector, timed in turns while choosing:")
    for timing in report["whole_model"]:
        print(f"  {timing['plan']:20} {timing['micros'] / 1e3:8.2f} ms  ({timing['low'] / 1e3:.2f} to "
              f"{timing['high'] / 1e3:.2f}){'  chosen' if timing['chosen'] else ''}")
    print("and timed now, in turns:", flush=True)
    rounds = {side: [] for side in artifacts}
    for _ in range(ROUNDS):
        for side, artifact in artifacts.items():
            rounds[side].append(json.loads(dovetail("bench", artifact, "--seconds", 0.5, "--json"))["median_ms"])
    for side, times in rounds.items():
        name = "chosen plan" if side == "cost" else f"{side}-first"
        ratio = np.median(np.divide(times, rounds["cost"]))
        beside = "" if side == "cost" else f", {ratio:.2f} times the chosen plan"
        print(f"  {name:20} {np.median(times):8.2f} ms{beside}")
    if not set(read) & set(LINES):
        sys.exit("demo: not one line was read right")


if __name__ == "__main__":
    main()
