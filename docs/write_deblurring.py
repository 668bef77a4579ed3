#!/usr/bin/env python3
"""Write the table and the picture of docs/deblurring.md: learn every prior, draw with every sampler, and say what it takes and how far off it is.

    docs/write_deblurring.py DIR

DIR gets the pictures of data/make_shapes.py, the priors and the draws. What a command took is kept in DIR/costs.json, and such a command is not
run again. The program is taken from THOMPSON_PROGRAM, or build/user/thompson.
"""
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "analysis" / "figures"))

import needs  # noqa: E402, F401  (its folder has just been added)
import figure_tilted_deblur as figure  # noqa: E402
import pages  # noqa: E402

PAGE = ROOT / "docs" / "deblurring.md"
PROGRAM = pathlib.Path(os.environ.get("THOMPSON_PROGRAM", ROOT / "build" / "user" / "thompson")).resolve()
COMPONENTS, NOISE, DRAWS = 64, 0.4, 100
MOST_SECONDS, MOST_BYTES = 240, 6 << 30  # of CPU time, of memory: a command that needs more is stopped
PICTURES = {"pixels": ("shapes.nc", "blurred.nc"), "components": ("components.nc", "blurred_components.nc")}
# Samplers along the stages of a diffusion, with their options.
CHAIN = ["diffts", "dps", "joint", "tilted", "twisted cloud_particles=500"]
# What theta are, and the family of the prior: the options of `train`, and the samplers.
PRIORS = {
    "components gaussian": ("", ["ts"]),
    "components mixture": ("components=8 mixture_starts=1", ["mixts", "localised", "mala", "smc_tempered particles=2000", *CHAIN]),
    "components diffusion": ("stages=12 schedule=log_snr hidden=[256,256] training_steps=400", [*CHAIN[:-1], "twisted", "twisted cloud=false"]),
    "pixels gaussian": ("", ["ts", "tilted", "diffts"]),
    "pixels mixture": ("components=4 mixture_starts=1", ["mixts"]),
    "pixels diffusion": ("stages=5 schedule=log_snr hidden=[800] training_steps=100", ["diffts"]),
}
SHOWN = ["pixels_gaussian_ts", "pixels_mixture_mixts", "components_mixture_mixts", "components_mixture_tilted", "components_diffusion_joint",
         "pixels_diffusion_diffts"]


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


def run(folder, command):
    """CPU seconds of a command and, if it failed, why."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, preexec_fn=limit, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cost = {"seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}
    if done.returncode < 0:
        return cost | {"failure": f"not done after {MOST_SECONDS} s"}
    return cost | ({"failure": done.stderr.strip().splitlines()[-1].removeprefix("thompson: ")} if done.returncode else {})


def options(text):
    return [word for option in text.split() for word in ("--option", option)]


def drawn(prior, sampler):
    """The name of the draws of a sampler: its own, or with options that are words."""
    method, _, own = sampler.partition(" ")
    return "_".join([prior, method, *re.findall(r"[a-z]+=[a-z]+", own)])


def commands():
    """The command that makes each file, under the file's name without its ending, in the order in which they can run."""
    for name, (training, samplers) in PRIORS.items():
        what, family = name.split()
        learned_from, history = PICTURES[what]
        prior = f"{what}_{family}"
        yield prior, ["train", "--theta", learned_from, "--family", family, *options(training), "-o", f"{prior}.nc"]
        for sampler in samplers:
            method, _, own = sampler.partition(" ")
            draws = drawn(prior, sampler)
            yield draws, ["sample", "--prior", f"{prior}.nc", "--data", history, "--sampler", method, "--noise", NOISE, "-n", DRAWS, *options(own),
                          "-o", f"{draws}.nc"]


def costs(folder):
    """What each command took: {name: {seconds, failure}}."""
    path = folder / "costs.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for name, arguments in commands():
        if name in known:
            continue
        print("thompson", *arguments, flush=True)
        known[name] = run(folder, [PROGRAM, *map(str, arguments)])
        path.write_text(json.dumps(known, indent=1), encoding="utf-8")
    return known


def rows(folder, problem, known):
    """The rows of the table; a prior that could not be learned has one."""
    for name, (_, samplers) in PRIORS.items():
        what, family = name.split()
        prior = f"{what}_{family}"
        if "failure" in known[prior]:
            yield [what, family, "", known[prior]["failure"], "", "", "", "", ""]
            continue
        for sampler in samplers:
            draws = drawn(prior, sampler)
            cost, head = known[draws], [what, family, f"`{sampler}`", f"{known[prior]['seconds']:.1f}"]
            if "failure" in cost:
                yield [*head, cost["failure"], "", "", "", ""]
                continue
            path = folder / f"{draws}.nc"
            scores = figure.scores(problem.pictures(path), problem.truth)
            fallbacks = figure.store.opened(path, "").attrs["fallbacks"]
            yield [*head, f"{cost['seconds']:.1f}", f"{scores.error:.3f}", f"{scores.deviation:.3f}", f"{100 * scores.covered:.0f}%", str(fallbacks or "")]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    if not (folder / "blurred_components.nc").exists():
        subprocess.run([sys.executable, ROOT / "data" / "make_shapes.py", folder, "--components", str(COMPONENTS)], check=True)
    known = costs(folder)
    problem = figure.history(folder / "blurred_components.nc")
    picture = folder / "figure_tilted_deblur.png"
    subprocess.run([sys.executable, ROOT / "analysis" / "figures" / "figure_tilted_deblur.py", folder / "blurred_components.nc",
                    *(folder / f"{name}.nc" for name in SHOWN), "-o", picture], check=True)
    shutil.copyfile(picture, PAGE.with_suffix(".png"))
    table = pages.table(["theta", "prior", "sampler", "CPU s to learn", "CPU s to draw", "error of the mean", "sd of the draws", "inside 90% intervals", "fallbacks"],
                        rows(folder, problem, known))
    PAGE.write_text(pages.replaced(PAGE.read_text(encoding="utf-8"), "table", table), encoding="utf-8")


if __name__ == "__main__":
    main()
