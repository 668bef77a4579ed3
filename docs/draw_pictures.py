#!/usr/bin/env python3
"""The pictures of docs/results and the README, drawn from results folders and made small enough to keep.

Usage: draw_pictures.py RESULTS [NAME...]      all whose studies are in RESULTS, or those named

RESULTS holds one folder for each study below, by the name of its job. A picture whose study is missing is left as it is, and said so.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH, COLOURS = 1300, 256        # of a picture in pixels; of its palette
# Where it goes: the script and its options, and the studies that it reads.
PICTURES = {
    "docs/frontier.png": (["figure_frontier.py"], ["frontier", "frontier_exact"]),
    "docs/study.png": (["ablation.py", "--against", "problem.noise"], ["noise"]),      # the README's own study
    "docs/results/regret.png": (["figure_diffts_2.py"], ["figure2"]),
    "docs/results/posterior.png": (["figure_diffts_7.py"], ["localised"]),
    "docs/results/priors.png": (["ablation.py", "--at", "50"], ["prior_pays"]),
    "docs/results/stages.png": (["ablation.py", "--at", "50"], ["schedules_sphere"]),
    "docs/results/temper.png": (["figure_temper.py"], ["temper_mnist"]),
    "docs/results/guard.png": (["figure_guard.py"], ["guard", "guard_localised", "guard_mixture"]),
    "docs/results/guard_tasks.png": (["figure_guard_tasks.py"], ["guard_tasks", "guard_tasks_localised"]),
    "docs/results/stream.png": (["figure_stream.py"], ["stream"]),
    "docs/results/past_tasks.png": (["figure_logs.py"], ["ablation_logs"]),
}


def shrink(picture, target):
    """The picture, made small enough to keep. Its palette is of the colours that most pixels have, so that those of methods stay what they are;
    blends at the edges of lines become the closest of them."""
    with Image.open(picture) as image:
        image = image.convert("RGB")
        image.thumbnail((WIDTH, 10 * WIDTH), Image.LANCZOS)
        colours, place, counts = np.unique(np.asarray(image).reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
        kept = colours[np.argsort(-counts, kind="stable")[:COLOURS]].astype(int)
        closest = np.array([np.abs(kept - colour).sum(axis=1).argmin() for colour in colours.astype(int)], np.uint8)
        small = Image.fromarray(closest[place].reshape(image.height, image.width), "P")
        small.putpalette(kept.astype(np.uint8).tobytes())
        small.save(target, optimize=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", metavar="RESULTS", type=pathlib.Path)
    parser.add_argument("names", metavar="NAME", nargs="*", help="stem of a picture, such as regret")
    arguments = parser.parse_args()
    for target, ((script, *options), studies) in PICTURES.items():
        if arguments.names and pathlib.Path(target).stem not in arguments.names:
            continue
        folders = [arguments.results / study for study in studies]
        missing = [folder for folder in folders if not (folder / "results.nc").exists()]
        if missing:
            print(f"{target}: left as it is, {missing[0]} has no results.nc", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as scratch:
            picture = pathlib.Path(scratch) / "picture.png"
            subprocess.run([sys.executable, ROOT / "analysis/figures" / script, *folders, "-o", picture, *options], check=True)
            (ROOT / target).parent.mkdir(exist_ok=True)
            shrink(picture, ROOT / target)
        print(target)


if __name__ == "__main__":
    main()
