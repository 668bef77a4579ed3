#!/usr/bin/env python3
"""Priors that are not mixtures of a few Gaussians: how close the draws of learned priors come to the posterior, relative to the floor.

Worlds, from samples of which priors are learned: `torus` (three circles), `shell`, `rays` (thirty), `banana` (rotated) and `box`. The true posterior
is computed in NumPy: the first, third and fourth worlds are mixtures over a fine grid of angles or places, whose posterior is drawn exactly; the box is
drawn by Gibbs sampling and the shell by Metropolis steps, 1 000 chains each, whose own error is a second such set of draws over the floor. Features have
length 1, noise is 1. A distance is the mean over random directions of W1 between 500 draws and 500 true ones, over that between two sets of true ones.
`measure` trains the priors of the cells that are missing in a file of results, one JSON line for each sampler, cell and history, and adds them;
`table` prints a Markdown table of one or more such files and what it says about `auto`, and draws it with -o.
"""
import needs
import json
import os
import pathlib
import re
import resource
import subprocess
import time

import numpy as np
from scipy.special import ndtr, ndtri

import drawing
import nearness
import script
import style
import thompson

DIRECTIONS, DRAWS, SETS, CHAINS = 100, 500, 2, 1000
SIZES = (5, 50, 500)
CELLS = [(world, d, n) for world, d in (("torus", 6), ("shell", 6), ("rays", 6), ("box", 10), ("banana", 6), ("shell", 16), ("banana", 16)) for n in (300, 10_000)]
# As in family auto.
OPTIONS = {"mixture": ["--option", "components=auto"], "diffusion": ["--option", "training_steps=12000"]}
SAMPLERS = {"mixture": "mixts", "denoiser": "localised", "diffusion": "twisted"}
NAMES = [*SAMPLERS.values(), "auto"]


class Curve:
    """N(mean, diag(scale^2)) whose mean is uniform over a fine grid: theta @ rotation."""

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
                sign = np.where(m > 0, -1, 1)  # draws are from the lower tail
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
    """A prior file, the CPU seconds that training took, and what was printed."""
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
        if family == picked:  # the same fit, with the same draws; if fitted again, it took the seconds that the judged fits leave
            again = float(re.search(r"(\S+) CPU seconds", printed).group(1)) - sum(fits.values())
            path, seconds[family] = priors.pop("auto")[0], again if "fitted again" in printed else fits[family]
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


def mean_and_error(priors):
    """Mean over learned priors, each a list of histories, and the larger of the standard errors over histories and over priors."""
    every, means = np.concatenate(priors), [np.mean(values) for values in priors]
    errors = [np.std(values, ddof=1) / np.sqrt(len(values)) for values in (every, means) if len(values) > 1]
    return np.mean(means), max(errors)


def collect(paths):
    """{(world, d, samples, name): {n: (mean, error)}}, the microseconds per draw for each name, and the rows about learning."""
    ratio, spent, learned = {}, {}, []
    for row in (row for path in paths for row in read(path)):
        if "name" in row:
            sizes = ratio.setdefault((row["world"], row["d"], row["samples"], row["name"]), {})
            sizes.setdefault(row["n"], {}).setdefault(row["replicate"], []).append(row["ratio"])
            spent.setdefault(row["name"], []).append(1e6 * row["spent"])
        else:
            learned.append(row)
    return {key: {n: mean_and_error(list(sizes[n].values())) for n in SIZES} for key, sizes in ratio.items()}, spent, learned


def words(world, d, samples):
    return f"{world}, d = {d}, {samples:,} samples".replace(",000", " 000")


def cell(values):
    """Means after 5, 50 and 500 observations, and the largest of their standard errors."""
    return ", ".join(f"{values[n][0]:.2f}" for n in SIZES) + f" ({max(values[n][1] for n in SIZES):.2f})" if values else ""


def shares(what, ratios, limit):
    print(f"{what}: at most {limit} in {np.sum(np.array(ratios) <= limit)} of {len(ratios)} cells, {max(ratios):.2f} at worst")


def table(arguments):
    found, spent, learned = collect(arguments.results)
    print("| | " + " | ".join(f"`{name}`" for name in NAMES) + " | truth again |\n|" + "---|" * 6)
    cells = [key for key in CELLS if (*key, "truth") in found]
    for key in cells:
        print(f"| {words(*key)} | " + " | ".join(cell(found.get((*key, name))) for name in (*NAMES, "truth")) + " |")
    print("| microseconds per draw | " + " | ".join(f"{min(spent[name]):.0f} to {max(spent[name]):.0f}" if name in spent else "" for name in NAMES) + " | |\n")
    if all((*key, name) in found for key in cells for name in NAMES):
        mean = {key: {n: value[0] for n, value in sizes.items()} for key, sizes in found.items()}
        each = [(key, n) for key in cells for n in SIZES]
        shares("`localised` over `mixts`", [mean[*key, "localised"][n] / mean[*key, "mixts"][n] for key, n in each], 1.2)
        shares("`auto` over the best", [mean[*key, "auto"][n] / min(mean[*key, name][n] for name in NAMES) for key, n in each], 1.15)
        cost = [(row["d"], row["seconds"].pop("auto") / max(row["seconds"].values())) for row in learned]
        for d in sorted({d for d, _ in cost}):
            print(f"CPU seconds of `auto` over those of the slowest fit, d = {d}: {min(c for e, c in cost if e == d):.1f} to {max(c for e, c in cost if e == d):.1f}")
    if arguments.output:
        drawing.save(draw(found, cells), arguments.output)


def draw(found, cells):
    """Distance against observations, a panel for each world and number of samples."""
    style.use()
    worlds, counts = list(dict.fromkeys(key[:2] for key in cells)), sorted({key[2] for key in cells})
    figure, axes = style.plt.subplots(len(counts), len(worlds), sharex=True, sharey=True, squeeze=False,
                                      figsize=style.LOOK.size or (1.6 * len(worlds), 2.4 * len(counts)))
    looks = style.lines({name: name for name in NAMES[:3]})
    # The family that auto picked is drawn underneath it.
    looks["auto"] = {"color": style.TEXT, "marker": "o", "markersize": 10, "linestyle": "none", "markerfacecolor": "none"}
    for key in cells:
        axis = axes[counts.index(key[2]), worlds.index(key[:2])]
        for place, name in enumerate(name for name in NAMES if (*key, name) in found):
            values = np.array([found[*key, name][n] for n in SIZES])
            axis.errorbar(np.array(SIZES) * 1.1 ** (place % 3), values[:, 0], values[:, 1] if name != "auto" else None, capsize=2, label=name, **looks[name])
        axis.axhline(1, color=style.FAINT, linewidth=0.8, zorder=0)
        axis.set_title(f"{key[0]}, d = {key[1]}" if key[2] == counts[0] else "")
    for axis, samples in zip(axes[:, 0], counts):
        axis.set_ylabel(f"{samples:,} samples\ndistance over floor".replace(",000", " 000"))
    axes[0, 0].set(xscale="log", yscale="log", xlim=(3, 900))
    for ticks, values in ((axes[0, 0].xaxis, SIZES), (axes[0, 0].yaxis, (1, 2, 3, 5, 10))):
        ticks.set_ticks(values, [f"{value:g}" for value in values])
        ticks.set_ticks([], minor=True)
    figure.supxlabel("observations", fontsize=9, color=style.TEXT)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="lower center", bbox_to_anchor=(0.5, 1), ncols=4)
    figure.tight_layout()
    return figure


def main():
    parser = drawing.options(__doc__, values=False)
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("results", nargs="+", help="files of JSON lines; measure appends to the first")
    parser.add_argument("--program", default="thompson")
    parser.add_argument("--folder", default="beyond", help="folder for the priors")
    parser.add_argument("--replicates", type=int, default=1, help="learned priors per cell")
    parser.add_argument("--histories", type=int, default=6, help="histories for each prior and n")
    parser.add_argument("--families", nargs="*", default=[*SAMPLERS, "auto"], choices=[*SAMPLERS, "auto"])
    parser.add_argument("--cells", nargs="*", help="cells, such as torus6-300 (default: all)")
    arguments = drawing.parse(parser)
    if arguments.what == "table":
        table(arguments)
    else:
        measure(arguments)


if __name__ == "__main__":
    script.run(main)
