"""Cumulative regret against the round, in one panel: mean over completed runs with a band of one standard error. A policy that
diverges leaves the axis, and the panel says where it ends. Grey area: the floor, if the study has measured it."""
import numpy as np

from thompson import averages, design, wording
import panel
import style

LIKELIHOODS = {"gaussian": "linear bandit", "logistic": "logistic bandit", "poisson": "Poisson bandit"}
MARKS = 6           # markers on a line
WORLDS = {"pool": "arms from a pool", "twin": "twin arm"}


def titles(dataset):
    """A title for each setting; a study with one setting is also named by its likelihood, and without a sweep by what it simulates."""
    likelihood, found = design.config(dataset, "likelihood"), design.titles(dataset)
    if len(found) > 1 or likelihood is None:
        return found
    world = None if design.swept(dataset) else WORLDS.get(design.config(dataset, "problem.family"))
    return [f"{LIKELIHOODS.get(likelihood, likelihood)}, {world or found[0]}"]


def marks(rounds, share):
    """Where a line has its markers: the kept rounds closest to places that are even over all rounds, the first at this share of their distance."""
    wanted = rounds[-1] * (np.arange(MARKS) + share) / MARKS
    return sorted(set(np.abs(rounds[:, None] - wanted).argmin(axis=0).tolist()))


def draw(axis, dataset, s, styles):
    """The regret of all policies in setting s."""
    rounds = dataset["round"].values[:averages.last_rounds(dataset)[s] + 1]
    means, errors = (values[s, :, :len(rounds)] for values in averages.moments(dataset, "regret"))
    finals = means[:, -1]
    cut = panel.ceiling(finals)
    notes = []
    for p, (policy, mean, error) in enumerate(zip(design.labels(dataset), means, errors)):
        axis.plot(rounds, mean, markevery=marks(rounds, p / len(means)), zorder=3, **styles[policy])
        axis.fill_between(rounds, mean - error, mean + error, color=styles[policy]["color"], alpha=0.22 if len(means) < 6 else 0.1, linewidth=0)
        if cut is not None and finals[p] > cut:
            notes.append((f"off axis: {policy}, {wording.value(finals[p], error[-1])}", styles[policy]["color"]))
    if (floor := averages.floor(dataset, "regret")) is not None:
        axis.fill_between(rounds, floor[0][s, :len(rounds)], color=panel.FLOOR, alpha=0.6, linewidth=0, zorder=1)
    notes += panel.unfinished(design.labels(dataset), styles, averages.counts(dataset)[0][s], averages.asked(dataset)[s])
    axis.set_xlim(0, rounds[-1])
    top = cut if cut is not None else axis.get_ylim()[1]
    # Notes are above all lines that stay: each takes a share of the axis.
    axis.set_ylim(0, top / max(0.3, 1 - 0.07 * len(notes)) if np.isfinite(top) and top > 0 else 1)
    style.values(axis)
    panel.write_notes(axis, notes)
    axis.set_xlabel("round")
    panel.name_lines(axis, rounds, means, {label: styles[label] for label in design.labels(dataset)})
