#!/usr/bin/env python3
"""Priors that are no mixtures of a few Gaussians: how near the draws of learned priors come to the posterior, over the floor.

Worlds, samples of which priors are learned from: `torus` (three circles), `shell`, `rays` (thirty), `banana` (rotated) and `box`. The truth is
NumPy's: the first, third and fourth are mixtures over a fine grid of angles or places, whose posterior is drawn exactly; the box is drawn by Gibbs
sampling and the shell by Metropolis steps, 1 000 chains each, whose own error is a second such set of draws over the floor. Features have length 1,
noise is 1. A distance is the mean over random directions of W1 between 500 draws and 500 of the truth, over that between two such sets of the truth.
`measure` trains the priors of the cells that are missing in a file of results, one JSON line for each sampler, cell and history, and adds them;
`table` prints a Markdown table of one or more such files.
"""
import needs
import argparse
import json
import os
import pathlib
import re
import resource
import subprocess
import time

import numpy as np
from scipy.special import ndtr, ndtri

import nearness
import script
import thompson

DIRECTIONS, DRAWS, SETS, CHAINS = 100, 500, 2, 1000
SIZES = (5, 50, 500)
CELLS = [(world, d, n) for world, d in (("torus", 6), ("shell", 6), ("rays", 6), ("box", 10), ("banana", 6), ("shell", 16), ("banana", 16)) for n in (300, 10_000)]
# As in family auto.
OPTIONS = {"mixture": ["--option", "components=auto"], "diffusion": ["--option", "training_steps=12000"]}
SAMPLERS = {"mixture": "mixts", "denoiser": "localised", "diffusion": "twisted"}


class Curve:
    """N(mean, diag(scale^2)) with a mean that is uniform over a fine grid: theta @ rotation."""

    def __init__(self, mean, weight, scale, rotation=None):
        self.mean, self.scale, self.d = mean, scale, mean.shape[1]
        self.weight = weight / weight.sum()
        self.rotation = np.eye(self.d) if rotation is None else rotation

    def draw(self, rng, count):
        k = rng.choice(len(self.mean), count, p=self.weight)
        return (self.mean[k] + self.scale * rng.standard_normal((count, self.d))) @ self.rotation

    def posterior(self, rng, x, y, count):
        x = x @ self.rotation.T
        prior = np.diag(self.scale**-2)
        s = np.linalg.inv(prior + x.T @ x)
        h = self.mean * self.scale**-2 + x.T @ y
        log_w = np.log(self.weight) + 0.5 * np.einsum("ki,ki->k", h @ s, h) - 0.5 * (self.mean**2 * self.scale**-2).sum(axis=1)
        w = np.exp(log_w - log_w.max())
        k = rng.choice(len(w), count, p=w / w.sum())
        return (h[k] @ s + rng.standard_normal((count, self.d)) @ np.linalg.cholesky(s).T) @ self.rotation


class Box:
    """Uniform on [-1, 1]^d; the posterior by Gibbs sampling."""
    SWEEPS = 200

    def __init__(self, d):
        self.d = d

    def draw(self, rng, count):
        return rng.uniform(-1, 1, (count, self.d))

    def posterior(self, rng, x, y, count):
        a, b = x.T @ x, x.T @ y
        theta = self.draw(rng, CHAINS)
        for _ in range(self.SWEEPS):
            for i in range(self.d):
                sd = a[i, i]**-0.5
                m = (b[i] - theta @ a[i] + theta[:, i] * a[i, i]) / a[i, i]
                sign = np.where(m > 0, -1, 1)  # the tail that is drawn from is the lower one
                low, high = ndtr((-1 - sign * m) / sd), ndtr((1 - sign * m) / sd)
                u = low + (high - low) * rng.random(CHAINS)
                theta[:, i] = np.clip(sign * (sign * m + sd * ndtri(np.clip(u, 1e-300, 1 - 1e-16))), -1, 1)
        return theta[rng.permutation(CHAINS)[:count]]


class Shell:
    """2 u + 0.1 z, u uniform on the sphere: Metropolis steps for a Gaussian v with u = v / |v|, tempered at first, then theta given u."""
    RADIUS, SCALE, STEPS = 2.0, 0.1, 1500

    def __init__(self, d):
        self.d = d

    def direction(self, v):
        return self.RADIUS * v / np.linalg.norm(v, axis=1, keepdims=True)

    def draw(self, rng, count):
        return self.direction(rng.standard_normal((count, self.d))) + self.SCALE * rng.standard_normal((count, self.d))

    def posterior(self, rng, x, y, count):
        d = self.d
        s = np.linalg.inv(np.eye(d) / self.SCALE**2 + x.T @ x)
        b = x.T @ y
        quadratic, linear = (s / self.SCALE**2 - np.eye(d)) / self.SCALE**2 / 2, s @ b / self.SCALE**2

        def log_density(v):
            u = self.direction(v)
            return ((u @ quadratic + linear) * u).sum(axis=1)

        v, step = rng.standard_normal((CHAINS, d)), 0.5
        now = log_density(v)
        for k in range(self.STEPS):
            temper = min(1, ((k + 1) / (0.4 * self.STEPS))**3)
            new = np.sqrt(1 - step**2) * v + step * rng.standard_normal((CHAINS, d))
            then = log_density(new)
            accept = np.log(rng.random(CHAINS)) < temper * (then - now)
            v[accept], now[accept] = new[accept], then[accept]
            if k < 0.6 * self.STEPS:
                step = np.clip(step * np.exp(0.1 * (accept.mean() - 0.25)), 1e-3, 0.99)
        h = self.direction(v) / self.SCALE**2 + b
        theta = h @ s + rng.standard_normal((CHAINS, d)) @ np.linalg.cholesky(s).T
        return theta[rng.permutation(CHAINS)[:count]]


def make_world(name, d):
    rng = np.random.default_rng(17)
    if name == "torus":
        angle = 2 * np.pi * np.arange(64) / 64
        circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        mean = np.concatenate([circle[part.ravel()] for part in np.meshgrid(*[np.arange(64)] * (d // 2), indexing="ij")], axis=1)
        return Curve(mean, np.ones(len(mean)), np.full(d, 0.1))
    if name == "rays":
        u = rng.standard_normal((30, d))
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        mean = (u[:, None] * np.linspace(0.2, 3, 100)[:, None]).reshape(-1, d)
        return Curve(mean, np.ones(len(mean)), np.full(d, 0.05))
    if name == "banana":
        t, mean = np.linspace(-3.5, 3.5, 300), np.zeros((300, d))
        mean[:, 0], mean[:, 1] = t, t**2 - 1
        return Curve(mean, np.exp(-t**2 / 2), np.r_[0.05, 0.2, np.full(d - 2, 0.5)], np.linalg.qr(rng.standard_normal((d, d)))[0])
    return Box(d) if name == "box" else Shell(d)


def train(program, folder, theta, family, replicate, more=()):
    """A prior file, the CPU seconds that it took, and what was printed."""
    path, log = folder / f"{family}.nc", folder / f"{family}.txt"
    if not path.exists():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = subprocess.run([program, "train", "--family", family, "--theta", theta, "-o", path, "--seed", str(replicate), *more], check=True,
                               capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        log.write_text(f"{after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.2f}\n{found.stdout}{found.stderr}")
    return path, float(log.read_text().splitlines()[0]), log.read_text()


def histories(rng, world, n, count):
    for _ in range(count):
        x = nearness.unit_rows(rng, n, world.d)
        yield x, x @ world.draw(rng, 1)[0] + rng.standard_normal(n)


def measure_history(rng, world, x, y, priors):
    columns = nearness.directions(rng, world.d, DIRECTIONS)
    true = [nearness.along(world.posterior(rng, x, y, CHAINS).reshape(SETS, DRAWS, -1), columns) for _ in range(2)]
    floor = np.mean([nearness.distance(some[:1], some[1:]) for some in true])
    out = {"truth": (nearness.distance(*true) / floor, 0)}
    for name, (path, sampler, options) in priors.items():
        before = time.process_time()
        posterior = thompson.Posterior(path, sampler, noise=1.0, seed=1, **options)
        posterior.observe(x, y)
        draws, spent = nearness.drawn(posterior, SETS, DRAWS, before)
        out[name] = (nearness.distance(nearness.along(draws, columns), np.concatenate(true)) / floor, spent / (SETS * DRAWS))
    return out


def measure_cell(arguments, world, d, samples, replicate, write):
    # Not hash(), which Python salts.
    rng = np.random.default_rng([sum(map(ord, world)), d, samples, replicate])
    here, folder = make_world(world, d), pathlib.Path(arguments.folder) / f"{world}{d}-{samples}-{replicate}"
    folder.mkdir(parents=True, exist_ok=True)
    theta = folder / "theta.csv"
    if not theta.exists():
        np.savetxt(theta, here.draw(rng, samples), delimiter=",")
    priors, seconds, picked, fits = {}, {}, None, {}
    if "auto" in arguments.families:
        path, seconds["auto"], printed = train(arguments.program, folder, theta, "auto", replicate)
        picked = re.search(r"(\w+) +\w+ [^\n]* chosen", printed).group(1)
        fits = {row[0]: float(row[1]) for row in re.findall(r"\n  (\w+) +\w+ [^\n]*\) +(\S+) +\S+(?:  chosen)?(?=\n)", printed)}
        priors["auto"] = (path, "auto", {})
    for family in SAMPLERS:
        if family not in arguments.families:
            continue
        if family == picked:  # the same fit, with the same draws; its seconds are what the judged ones leave
            path, seconds[family] = priors.pop("auto")[0], float(re.search(r"(\S+) CPU seconds", printed).group(1)) - sum(fits.values())
        else:
            path, seconds[family], _ = train(arguments.program, folder, theta, family, replicate, OPTIONS.get(family, []))
        priors[SAMPLERS[family]] = (path, SAMPLERS[family], {})
    same = SAMPLERS.get(picked)
    write({"world": world, "d": d, "samples": samples, "replicate": replicate, "seconds": seconds, "picked": picked, "judged": fits})
    for n in SIZES:
        for h, (x, y) in enumerate(histories(np.random.default_rng([d, samples, n, replicate]), here, n, arguments.histories)):
            found = measure_history(rng, here, x, y, priors)
            found.update({"auto": found[same]} if same in found else {})
            for name, (ratio, spent) in found.items():
                write({"world": world, "d": d, "samples": samples, "replicate": replicate, "n": n, "history": h, "name": name, "ratio": ratio, "spent": spent})


def measure(arguments):
    done = {(row["world"], row["d"], row["samples"], row["replicate"]) for row in read(arguments.results[0])} if os.path.exists(arguments.results[0]) else set()
    for replicate in range(arguments.replicates):
        for world, d, samples in sorted(CELLS, key=lambda cell: cell[2]):
            if (world, d, samples, replicate) in done or arguments.cells and f"{world}{d}-{samples}" not in arguments.cells:
                continue
            rows = []
            measure_cell(arguments, world, d, samples, replicate, rows.append)
            with open(arguments.results[0], "a") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)


def read(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def cell(values):
    """Means over histories and priors after 5, 50 and 500 observations, and the largest standard error of one."""
    if not values:
        return ""
    error = max(np.std(values[n], ddof=1) / np.sqrt(len(values[n])) for n in SIZES)
    return ", ".join(f"{np.mean(values[n]):.2f}" for n in SIZES) + f" ({error:.2f})"


def table(paths):
    names, ratio, spent = ["mixts", "localised", "twisted", "auto", "truth"], {}, {}
    for row in (row for path in paths for row in read(path) if "name" in row):
        key = row["world"], row["d"], row["samples"], row["name"]
        ratio.setdefault(key, {}).setdefault(row["n"], []).append(row["ratio"])
        spent.setdefault(row["name"], []).append(1e6 * row["spent"])
    print("| | " + " | ".join(f"`{name}`" for name in names[:4]) + " | truth again |\n|" + "---|" * 6)
    for world, d, samples in CELLS:
        if any((world, d, samples, name) in ratio for name in names):
            print(f"| {world}, d = {d}, {samples:,} samples | ".replace(",000", " 000") + " | ".join(cell(ratio.get((world, d, samples, name))) for name in names) + " |")
    print("| microseconds per draw | " + " | ".join(f"{min(spent[name]):.0f} to {max(spent[name]):.0f}" if name in spent else "" for name in names[:4]) + " | |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("results", nargs="+", help="JSON lines; the first is what is added to")
    parser.add_argument("--program", default="thompson")
    parser.add_argument("--folder", default="beyond", help="of the priors")
    parser.add_argument("--replicates", type=int, default=1, help="learned priors for each cell")
    parser.add_argument("--histories", type=int, default=6, help="for each prior and n")
    parser.add_argument("--families", nargs="*", default=[*SAMPLERS, "auto"], choices=[*SAMPLERS, "auto"])
    parser.add_argument("--cells", nargs="*", help="such as torus6-300; all without")
    arguments = parser.parse_args()
    if arguments.what == "table":
        table(arguments.results)
    else:
        measure(arguments)


if __name__ == "__main__":
    script.run(main)
