#!/usr/bin/env python3
"""Write the tables of docs/results/external.md from published results (data/published) and from results of the studies in jobs/external.

    docs/write_external.py results/mcgdiff results/mcgdiff_others results/bipsda results/bipsda_tomography results/bipsda_phase_retrieval results/bernoulli_glm

Several folders may share the settings or the policies of a study. What the page says of studies that are not given stays as it is.
"""
import pathlib
import re
import sys

import netCDF4
import numpy as np

import pages

PAGE = pages.ROOT / "docs" / "results" / "external.md"
METHODS = ("MCGDiff", "DDRM", "DPS", "RNVP")
BASELINE = "prior weights"  # the right components with the prior's weights
OURS = "twisted"  # knows only the denoiser, as the published methods do
CLICKS = "mixts_32"  # expectation propagation with 32 candidates
NONE = "none printed"
NONLINEAR = {  # the name of a study: its task, and whose row is in the first table
    "bipsda_tomography": ("tomography", OURS),
    "bipsda_phase_retrieval": ("phase retrieval", "smc_tempered"),
}
RIGHT = 0.05  # every mean within this share of a standard deviation, and every deviation within this share of itself


def published_mixture():
    """{(dimension, observed): {method: (distance, half width)}}, as printed."""
    out = {}
    for row in pages.published("mcgdiff"):
        out.setdefault((int(row["dimension"]), int(row["observed"])), {})[row["method"]] = (row["distance"], row["half_width"])
    return out


def best_published(methods):
    """The method with the smallest distance, and what is printed of it."""
    name = min(METHODS, key=lambda method: float(methods[method][0]))
    return f"{name} {' ± '.join(methods[name])}"


def published_clicks():
    """The largest errors of the published reference draws of bernoulli_glm against the means and deviations of importance sampling."""
    moments = {}
    for row in pages.published("bernoulli_glm"):
        moments.setdefault(row["source"], []).append([[float(row[f"{name}{i + 1}"]) for i in range(10)] for name in ("mean", "sd")])
    reference, truth = (np.array(moments[source]) for source in ("reference", "importance"))  # [observation, mean or sd, coordinate]
    of_mean = np.abs(reference[:, 0] - truth[:, 0]) / truth[:, 1]
    return errors(of_mean.max(), np.abs(reference[:, 1] / truth[:, 1] - 1).max())


def errors(of_mean, of_sd):
    return f"{of_mean:.3f} sd, {100 * of_sd:.1f}%"


def largest_errors(of):
    return errors(of["marginal_mean_error"].max(), of["marginal_sd_error"].max())


def half_width(x):
    """Half the width of an interval as in the paper: 1.96 sd / sqrt(n)."""
    return 1.96 * np.std(x, ddof=1) / np.sqrt(len(x))


def cell(x):
    return f"{np.mean(x):.3f} ± {half_width(x):.3f}"


def of_cases(values):
    """The number of each case, at its own number of observations: the others are NaN."""
    values = np.ma.filled(values, np.nan).astype(float).reshape(len(values), -1)
    return np.where(np.isnan(values).all(axis=1), np.nan, np.nansum(values, axis=1))


def read(folder):
    """(name of the study, {setting: {policy or "floor": {variable: values of all problems}}}) of a results folder."""
    out = {}
    with netCDF4.Dataset(pathlib.Path(folder) / "results.nc") as file:
        policies, names = ([str(name) for name in file[variable][:]] for variable in ("policy", "setting"))
        measured = [name for name, variable in file.variables.items() if variable.dimensions[:3] == ("setting", "policy", "run")]
        for s, name in enumerate(names):
            here = out.setdefault(name, {"floor": {}})
            for variable in measured:
                if variable.endswith("_floor"):
                    here["floor"][variable.removesuffix("_floor")] = of_cases(file[variable][s, 0])
                    continue
                for p, policy in enumerate(policies):
                    here.setdefault(policy, {})[variable] = of_cases(file[variable][s, p])
        return re.match(r"name: (\w+)", file.config)[1], out


def numbers(pattern, found):
    """The settings of a study by the numbers in their names, in rising order."""
    return sorted((tuple(map(float, re.search(pattern, name).groups())), here) for name, here in found.items())


def mixture_rows(mixture):
    """{task: the rest of its row in the first table of the page}, as below."""
    printed, rows = published_mixture(), {}
    for (d, observed), here in mixture:
        ours, floor = (cell(here[name]["sliced_wasserstein"]) for name in (OURS, "floor"))
        rows[f"25 Gaussians, d = {d:g}, {observed:g} observed"] = f"{best_published(printed[int(d), int(observed)])} | `{OURS}` {ours} | {floor}"
    return rows


def inpainting_rows(inpainting):
    rows = {}
    for (noise,), here in inpainting:
        ours, floor = (cell(here[name]["sliced_wasserstein"]) for name in (OURS, "floor"))
        rows[f"inpainting, d = 10, noise {noise:g}"] = f"{NONE} | `{OURS}` {ours} | {floor}"
    return rows


def moments_row(published, name, found):
    return f"{published} | `{name}` {largest_errors(found[name])} | {largest_errors(found['floor'])}"


def summary(page, rows):
    """The first table of the page, with new rows in the place of those of the same tasks."""
    old = re.findall(r"^\| (.*?) \| (.*) \|$", pages.split(page, "summary")[1], re.MULTILINE)[1:]
    merged = {**dict(old), **rows}
    return "\n".join(["| task | best published | ours | floor |", "|---|---|---|---|", *(f"| {task} | {rest} |" for task, rest in merged.items())])


def mixture_tables(mixture):
    printed = published_mixture()
    policies = [name for name in mixture[0][1] if name != "floor"]
    lines = ["| d, observed | " + " | ".join(METHODS) + " | " + " | ".join(f"`{name}`" for name in policies) + " | floor | " + f"{BASELINE} |",
             "|---" * (len(METHODS) + len(policies) + 3) + "|"]
    for (d, observed), here in mixture:
        methods = printed[int(d), int(observed)]
        row = [" ± ".join(methods[method]) for method in METHODS]
        row += [cell(here[name]["sliced_wasserstein"]) for name in [*policies, "floor"]] + [" ± ".join(methods[BASELINE])]
        lines.append(f"| {d:g}, {observed:g} | " + " | ".join(row) + " |")
    lines += ["", "| d, observed | sampler | CPU s per problem | denoiser calls per draw | distinct draws | worst problem |", "|---|---|---|---|---|---|"]
    for (d, observed), here in mixture:
        for policy in policies:
            of = here[policy]
            distinct = "all" if np.isnan(of["distinct"]).all() else f"{of['distinct'].mean():.2f}"
            lines.append(f"| {d:g}, {observed:g} | `{policy}` | {np.mean(of['seconds']):.2f} | {of['oracle_calls'].mean():.0f} | {distinct} | {of['sliced_wasserstein'].max():.2f} |")
    return "\n".join(lines)


def distance_table(head, settings):
    """The distances of all samplers, and the floor, in each setting: [(its numbers, what was read)]."""
    policies = [name for name in settings[0][1] if name != "floor"]
    lines = [f"| {head} | " + " | ".join(f"`{name}`" for name in policies) + " | floor |", "|---" * (len(policies) + 2) + "|"]
    for values, here in settings:
        label = ", ".join(f"{value:g}" for value in values)
        lines.append(f"| {label} | " + " | ".join(cell(here[name]["sliced_wasserstein"]) for name in [*policies, "floor"]) + " |")
    return "\n".join(lines)


def moments_table(found):
    """Distances and errors of moments of the only setting of a study."""
    lines = ["| sampler | sliced Wasserstein | largest error of a mean, of a deviation | CPU s per posterior |", "|---|---|---|---|"]
    for name, of in found.items():
        seconds = f"{of['seconds'].mean():.1f}" if "seconds" in of else ""
        shown = name if name == "floor" else f"`{name}`"
        lines.append(f"| {shown} | {cell(of['sliced_wasserstein'])} | {largest_errors(of)} | {seconds} |")
    return "\n".join(lines)


def verdict_table(found):
    """How many posteriors each sampler gets right, the best first, and its largest errors."""
    def right(of):
        return int(((of["marginal_mean_error"] <= RIGHT) & (of["marginal_sd_error"] <= RIGHT)).sum())

    cases = len(found["floor"]["marginal_mean_error"])
    lines = [f"| sampler | right, of {cases} posteriors | largest error of a mean, of a deviation | sliced Wasserstein | CPU s per posterior |", "|---|---|---|---|---|"]
    for name, of in sorted(found.items(), key=lambda item: -right(item[1])):
        seconds = f"{of['seconds'].mean():.2g}" if "seconds" in of else ""
        shown = name if name == "floor" else f"`{name}`"
        lines.append(f"| {shown} | {right(of)} | {largest_errors(of)} | {cell(of['sliced_wasserstein'])} | {seconds} |")
    return "\n".join(lines)


def tables(folders):
    """({name of a table: text}, {task: the rest of its row in the first table}) of the studies in these folders."""
    found, texts, rows = {}, {}, {}
    for folder in folders:
        name, results = read(folder)
        for setting, here in results.items():
            found.setdefault(name, {}).setdefault(setting, {}).update(here)
    for name, settings in found.items():
        first = next(iter(settings.values()))
        if name == "mcgdiff":
            mixture = numbers(r"mcgdiff_(\d+)_(\d+)", settings)
            texts["mixture"] = mixture_tables(mixture)
            rows |= mixture_rows(mixture)
        elif name == "mcgdiff_others":
            texts["others"] = distance_table("d, observed", numbers(r"mcgdiff_(\d+)_(\d+)", settings))
        elif name == "bipsda":
            inpainting = numbers(r"inpainting_([\d.]+)\.nc", settings)
            texts["inpainting"] = distance_table("noise", inpainting)
            rows |= inpainting_rows(inpainting)
        elif name == "bernoulli_glm":
            texts["clicks"] = moments_table(first)
            rows["ten logistic regressions, d = 10"] = moments_row(f"reference draws {published_clicks()}", CLICKS, first)
        else:
            task, best = NONLINEAR[name]
            texts[task] = verdict_table(first)
            rows[f"{task}, d = 10"] = moments_row(NONE, best, first)
    return texts, rows


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    page = PAGE.read_text(encoding="utf-8")
    texts, rows = tables(sys.argv[1:])
    for name, text in texts.items():
        page = pages.replaced(page, name, text)
    PAGE.write_text(pages.replaced(page, "summary", summary(page, rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
