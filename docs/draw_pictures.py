#!/usr/bin/env python3
"""The pictures of docs/results and the README, drawn from results folders and compressed enough to keep in the repository.

Usage: draw_pictures.py RESULTS [NAME...]      all pictures whose studies are in RESULTS, or the named ones

RESULTS holds one folder for each study below, under the name of its job. A picture whose study is missing is left as it is, with a message.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "analysis" / "figures"))

import style  # noqa: E402
WIDTH, COLOURS = 1300, 256        # width of a picture in pixels; size of its palette
SEEN, SHARES = 20, (1, 0.75, 0.5, 0.25)      # least number of pixels of a drawn colour; its share in its blends with white
SHADES = (0, 0.1, 0.2, 0.35, 0.55)           # black mixed into a method's colour: for its own line, its name and its variants
METHODS = {tuple(int(255 * channel + 0.5) for channel in style.darker(colour, shade))
           for colour in [*(colour for colour, _ in style.POLICIES.values()), *style.COLOURS] for shade in SHADES}
# Picture: the script and its options, and the studies that it reads.
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
    """Compress the picture enough to keep it. Its palette consists of the colours of methods that occur in it and their blends with white, which thin
    lines are made of, and of the most frequent other colours; the rest are mapped to the closest of these."""
    with Image.open(picture) as image:
        image = image.convert("RGB")
        drawn = {colour for count, colour in image.getcolors(1 << 24) if count >= SEEN}
        methods = np.array([colour for colour in METHODS if colour in drawn]).reshape(-1, 3)
        blends = np.concatenate([255 - (255 - methods) * share for share in SHARES]).round().astype(int)
        image.thumbnail((WIDTH, 10 * WIDTH), Image.LANCZOS)
        colours, place, counts = np.unique(np.asarray(image).reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
        kept = np.unique(np.concatenate([blends, colours[np.argsort(-counts, kind="stable")[:COLOURS - len(blends)]].astype(int)]), axis=0)
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
