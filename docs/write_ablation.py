#!/usr/bin/env python3
"""Write docs/results/ablation_all.md and its pictures from the results of jobs/ablation_all.yaml, in a bandit and in a posterior study.

    docs/write_ablation.py results/ablation_all results/ablation_all_posterior
"""
import datetime
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "analysis" / "tools"))
import needs  # noqa: E402, F401  (lets the next ones be found)
import ablation  # noqa: E402
import caption  # noqa: E402
import drawing  # noqa: E402
import numpy as np  # noqa: E402
import panel  # noqa: E402
import sensitivity  # noqa: E402
from draw_pictures import shrink  # noqa: E402
from thompson import design, metrics, store, wording  # noqa: E402

PAGE = ROOT / "docs" / "results" / "ablation_all.md"
KEYS = {"prior.stages": "stages", "prior.train_samples": "training samples", "problem.condition_number": "condition number", "problem.noise": "noise",
        "problem.arms": "arms", "problem.dimension": "dimension"}
NEGLIGIBLE = 0.05  # a share of the variance
# What is explained of each study: the metric, whether over its floor, its picture, and in words.
PARTS = {"bandit": ("regret", False, "ablation_all_regret.png", "regret"),
         "posterior": ("sliced_wasserstein", True, "ablation_all_distance.png", "distance to the exact posterior, over that of exact draws")}


def drivers(found):
    """The keys that certainly matter to each policy, by their total indices, in one line for each."""
    lines = []
    for label, one in found.items():
        value, half = one.value[1], one.half[1]
        order = [j for j in np.argsort(-value) if value[j] - half[j] > 0]
        named = ", ".join(f"{list(KEYS.values())[j]} {value[j]:.2f} ± {half[j]:.2f}" for j in order)
        lines.append(f"- `{label}`: {named or 'none for certain'}")
    return "\n".join(lines)


def leader(found):
    """Which key has the largest total index, and for which policies; undecided where its interval holds 0."""
    first = {}
    for label, one in found.items():
        j = int(np.nanargmax(one.value[1]))
        key = list(KEYS.values())[j]
        word = f"{key} {'matter' if key.endswith('s') else 'matters'} most to" if one.value[1, j] > one.half[1, j] else "undecided for"
        first.setdefault(word, []).append(f"`{label}`")
    return "; ".join(f"{word} {', '.join(policies)}" for word, policies in first.items())


def negligible(found):
    """Which keys have little of the variance with any policy, by total indices with their intervals; nothing if there are none."""
    bounds = {word: max(one.value[1, j] + one.half[1, j] for one in found.values()) for j, word in enumerate(KEYS.values())}
    named = ", ".join(f"{word} {bound:.2f}" for word, bound in bounds.items() if bound < NEGLIGIBLE)
    return f"Shares that are small with every policy, at most: {named}.\n\n" if named else ""


def number(value):
    """Two digits behind the point, without a sign in front of nothing."""
    return f"{value:.2f}".replace("-0.00", "0.00")


def table(found):
    rows = ["| | " + " | ".join(KEYS.values()) + " |", "|---" * (1 + len(KEYS)) + "|"]
    for label, one in found.items():
        cells = [f"{number(one.value[0, j])}, {number(one.value[1, j])} ± {number(one.half[1, j])}" for j in range(len(KEYS))]
        rows.append(f"| `{label}` | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def draw(figure, name):
    """Saves a picture of the page, small enough to keep."""
    drawing.save(figure, [PAGE.parent / name])
    shrink(PAGE.parent / name, PAGE.parent / name)


def part(folder):
    """Draws the picture of a study: (kind, dataset, indices of each policy, its section)."""
    dataset = store.results(folder, None)
    kind = store.AXES[store.axis(dataset)]
    metric, over_floor, picture, words = PARTS[kind]
    found = sensitivity.analyse(dataset, sensitivity.measured(dataset, metric, None, True, over_floor))
    sentences = [f"Shares of the variance of the logarithm of the {words}. Bars: 95% intervals.", *caption.facts([dataset])]
    draw(sensitivity.draw(list(KEYS.values()), found, design.policy_names(dataset), sentences), picture)
    by_key = picture.replace(".png", "_by_key.png")
    draw(panel.page(ablation.panels(dataset, metric), [dataset]), by_key)
    values = metrics.measured(dataset, metric, None)
    means = values[0] / values[2][0][:, None] if over_floor else values[0]
    spans = "; ".join(f"`{label}` {np.nanmedian(own):.3g} ({np.nanquantile(own, 0.1):.3g} to {np.nanquantile(own, 0.9):.3g})" for label, own in zip(design.labels(dataset), means.T))
    section = (f"## {words[0].upper()}{words[1:].split(' to ')[0]}\n\n![Indices of each key for each policy]({picture})\n\n"
               f"What certainly matters to the {words}, with total indices:\n\n{drivers(found)}\n\n"
               f"{negligible(found)}"
               f"First order, and total with its interval:\n\n{table(found)}\n\n"
               f"Median over the settings (10% to 90% of them): {spans}.\n\n"
               f"Means by each key ([`ablation.py`](../../analysis/figures/ablation.py)):\n\n![Mean over the design in bins of each key, for each policy]({by_key})\n")
    return kind, dataset, found, section


def ranges(dataset):
    """The ranges of the keys as the study gives them."""
    swept = design.study(dataset)["sweep"]
    return ", ".join(f"{words} {swept[key]['from']} to {swept[key]['to']}" for key, words in KEYS.items())


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    parts = {kind: rest for kind, *rest in map(part, sys.argv[1:])}
    dataset = parts["bandit"][0]
    assert list(design.swept(dataset)) == list(KEYS)
    commit = re.search(r"\b([0-9a-f]{7})", dataset.attrs["source"].partition("commit")[2])[1]
    date = datetime.date.fromtimestamp((pathlib.Path(sys.argv[1]) / "results.nc").stat().st_mtime)
    points = " and ".join(dict.fromkeys(f"{design.config(one, 'design.points')} ({kind} study)" for kind, (one, _, _) in parts.items()))
    seconds = sum(float(np.nansum(one["seconds"].values) + np.nansum(one["seconds_train"].values)) for one, _, _ in parts.values())
    PAGE.write_text(f"""<!-- Written by docs/write_ablation.py: change that, not this page. -->
# Which of six keys matters, and to which policy?

**Regret: {leader(parts["bandit"][1])}. Distance to the posterior: {leader(parts["posterior"][1])}.**

*Measured on {date.day} {date:%B %Y} (commit {commit}).*

[`jobs/ablation_all.yaml`](../../jobs/ablation_all.yaml) varies six keys at once, on six Gaussians on a sphere: {ranges(dataset)}; all but the dimension are even over their logarithms.
Its settings are groups of {len(KEYS) + 2} points, {points}, with {dataset.sizes["run"]} runs each, {wording.plain(round(seconds / 60, 1))} CPU minutes in all; `--resume --set design.points=N` continues a study with more groups.
The first order of a key is the share of the variance over these settings that would go if only this key were known, the total index the share that would stay if all others were known; the difference is what it does together with others.
Both are of logarithms, so that settings with much regret do not decide alone ([`sensitivity.py`](../../analysis/tools/sensitivity.py) says which estimators these are). A key that a policy does not use has index 0.

{parts["bandit"][2]}
{parts["posterior"][2]}
Written by `docs/write_ablation.py` from the results of

    thompson run jobs/ablation_all.yaml
    thompson run jobs/ablation_all.yaml --set study=posterior --set 'metrics=[sliced_wasserstein]' --set name=ablation_all_posterior
""", encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
