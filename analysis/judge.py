"""Judging what a paper claims by what a study measured.

A judgement is a function of a study's dataset that returns cells, one for each setting and rival: (truth, sentence), truth None
where the runs are too few to tell. Differences are paired, and tested as significance.py does, at its level, without a
correction for several cells: a claim holds only where every cell is true, and each is told.
"""
import dataclasses

import numpy as np

import figure_vits_4
import figure_vits_cost
import load
import page
import significance

HOLDS, PARTLY, FAILS, OPEN, UNTESTED = "holds", "holds in part", "does not hold", "too few runs to tell", "can't be tested here"
VERDICTS = (HOLDS, PARTLY, FAILS, OPEN, UNTESTED)


@dataclasses.dataclass
class Claim:
    where: str                    # place in the paper
    says: str
    study: str                    # name of its file in jobs/, and of its results folder
    judge: callable               # of its dataset: cells


def verdict(cells):
    """All cells true, it holds; some, in part; none, it does not hold where one is false, and is open where none can tell."""
    truths = {truth for truth, _ in cells}
    return HOLDS if truths == {True} else PARTLY if True in truths else FAILS if False in truths else OPEN


# ---- numbers of a study

def index(dataset, policy):
    labels = [str(label) for label in dataset["policy"].values]
    if policy not in labels:
        raise load.BadInput(f"the study has no policy {policy}; it has {', '.join(labels)}")
    return labels.index(policy)


def numbers(dataset, policy, metric=None, at=-1):
    """A metric of each run, [setting, run], NaN where a run is missing: of the last point of each setting, or of another one. A run
    that never reached its target counts as max_steps; `seconds` has no points."""
    metric = load.chosen(dataset, metric, ("seconds",))
    values = dataset[metric].values[:, index(dataset, policy)]
    if metric != "seconds":
        ends = load.last_rounds(dataset) if at == -1 else np.full(len(values), at)
        values = values[np.arange(len(values)), :, ends]
    if metric == figure_vits_4.STEPS:
        values = np.where(np.isfinite(values), values, figure_vits_4.maximum(dataset))
    ok = dataset["status"].values[:, index(dataset, policy)] == load.STATUS_OK
    return np.where(ok, values, np.nan)


def mean(values):
    known = values[np.isfinite(values)]
    return known.mean() if known.size else np.nan


def swept(dataset, key):
    """The value of a swept key in each setting, [setting]."""
    keys = load.swept(dataset)
    if key not in keys:
        raise load.BadInput(f"the study does not sweep {key}; it sweeps {', '.join(keys) or 'nothing'}")
    return keys[key]


def difference(dataset, values):
    """The paired difference of values [run] from 0."""
    return significance.unequal(values, significance.of_runs(dataset))


def sign(found):
    """1 or -1 where a difference is significant, 0 where it is not."""
    return int(np.sign(found.mean)) if found.p < significance.LEVEL else 0


def positive(found):
    """Is a difference above 0? None where it may be either."""
    return {1: True, -1: False, 0: None}[sign(found)]


def within(low, value, high):
    return bool(low <= value <= high) if np.isfinite(value) else None


def said(found):
    return page.value(found.mean, found.se)


# ---- judgements

def lower(policy, rivals, metric=None, at=-1):
    """`policy` is significantly below each rival in each setting."""
    def judge(dataset):
        cells = []
        ours = numbers(dataset, policy, metric, at)
        for rival in rivals:
            more = numbers(dataset, rival, metric, at) - ours
            for s, title in enumerate(load.titles(dataset)):
                found = difference(dataset, more[s])
                cells.append((positive(found), f"{title}: {rival} minus {policy} {said(found)}"))
        return cells
    return judge


def level(policy, rivals, share, metric=None):
    """`policy` is within a share of each rival's mean in each setting: two tests, of the difference with that room on either side."""
    def judge(dataset):
        cells = []
        ours = numbers(dataset, policy, metric)
        for rival in rivals:
            theirs = numbers(dataset, rival, metric)
            for s, title in enumerate(load.titles(dataset)):
                room = share * abs(mean(theirs[s]))
                over, under = (sign(difference(dataset, ours[s] - theirs[s] + shift)) for shift in (-room, room))
                truth = True if over < 0 < under else False if over > 0 or under < 0 else None
                found = difference(dataset, ours[s] - theirs[s])
                cells.append((truth, f"{title}: {policy} minus {rival} {said(found)}, of {page.value(mean(theirs[s]))}"))
        return cells
    return judge


def diverges(policy, rival):
    """The regret of `policy` does not slow down (its second half is above nine tenths of its first) and is several times the
    rival's."""
    def judge(dataset):
        cells = []
        for s, (title, end) in enumerate(zip(load.titles(dataset), load.last_rounds(dataset))):
            half, whole = (mean(numbers(dataset, policy, at=at)[s]) for at in (end // 2, end))
            ratio, times = (whole - half) / half, whole / mean(numbers(dataset, rival)[s])
            truth = bool(ratio > 0.9 and times > 3) if np.isfinite(ratio + times) else None
            cells.append((truth, f"{title}: second half of the rounds {page.value(ratio)} times the regret of the first, in all "
                                 f"{page.value(times)} times that of {rival}"))
        return cells
    return judge


def falls(policy, rival=None, metric=None):
    """From the first to the last setting (runs are paired across settings too) the metric falls, or what the rival has more of it."""
    def judge(dataset):
        values = numbers(dataset, policy, metric)
        if rival:
            values = numbers(dataset, rival, metric) - values
        titles = load.titles(dataset)
        all_of_them = ", ".join(f"{title}: {said(difference(dataset, row))}" for title, row in zip(titles, values))
        fall = difference(dataset, values[0] - values[-1])
        return [(positive(fall), f"{titles[0]} minus {titles[-1]}: {said(fall)} ({all_of_them})")]
    return judge


def rises_along(policy, metric):
    """Within each setting the metric rises from the first to the last point."""
    def judge(dataset):
        cells = []
        first, last = (numbers(dataset, policy, metric, at) for at in (0, -1))
        for s, title in enumerate(load.titles(dataset)):
            found = difference(dataset, last[s] - first[s])
            cells.append((positive(found), f"{title}: last minus first point {said(found)}, first {page.value(mean(first[s]))}"))
        return cells
    return judge


def exponent(policy, key, metric, low, high, start=0):
    """The slope of log metric against log key, over the settings from `start` on, lies in [low, high]."""
    def judge(dataset):
        x = swept(dataset, key).astype(float)
        y = np.array([mean(row) for row in numbers(dataset, policy, metric)])
        keep = np.isfinite(y) & (y > 0) & (x >= start)
        slope = np.polyfit(np.log(x[keep]), np.log(y[keep]), 1)[0] if keep.sum() > 1 else np.nan
        return [(within(low, slope, high), f"{policy}: slope {page.value(slope)} of log {metric} against log {key}")]
    return judge


def rate(policy, metric, low, high):
    """Between the last two points the exponent of the metric lies in [low, high], in each setting."""
    def judge(dataset):
        cells = []
        n = dataset[load.axis(dataset)].values.astype(float)
        for s, title in enumerate(load.titles(dataset)):
            means = [mean(numbers(dataset, policy, metric, at)[s]) for at in range(len(n))]
            slope = np.diff(np.log(means[-2:])).sum() / np.diff(np.log(n[-2:])).sum() if len(n) > 1 else np.nan
            listed = ", ".join(f"{page.value(value)} at {load.plain(point)}" for value, point in zip(means, n))
            cells.append((within(low, slope, high), f"{title}: exponent {page.value(slope)}; {metric} {listed}"))
        return cells
    return judge


def costs(policy, rival, low, high):
    """CPU seconds of a run, as a multiple of the rival's, lie in [low, high] in each setting."""
    def judge(dataset):
        ours, theirs = (numbers(dataset, name, "seconds") for name in (policy, rival))
        ratios = [mean(one) / mean(other) for one, other in zip(ours, theirs)]
        return [(within(low, ratio, high), f"{title}: {policy} costs {page.value(ratio)} times {rival}")
                for title, ratio in zip(load.titles(dataset), ratios)]
    return judge


def sooner(policy, rivals):
    """CPU seconds to the target divergence are fewer than each rival's, in each setting; a run that does not arrive counts with all
    its steps."""
    def judge(dataset):
        one, waiting = figure_vits_cost.step_cost(dataset), figure_vits_cost.burn_in(dataset)

        def seconds(name, s):
            column = index(dataset, name)
            return (mean(numbers(dataset, name, figure_vits_4.STEPS)[s]) + waiting[column]) * one[s, column]

        cells = []
        for s, title in enumerate(load.titles(dataset)):
            for rival in rivals:
                ours, theirs = seconds(policy, s), seconds(rival, s)
                truth = bool(ours < theirs) if np.isfinite(ours + theirs) else None
                cells.append((truth, f"{title}: {policy} {1e3 * ours:.3g} ms, {rival} {1e3 * theirs:.3g} ms"))
        return cells
    return judge


# ---- judgements of judgements

def both(*judges):
    return lambda dataset: [cell for one in judges for cell in one(dataset)]


def where(key, value, one):
    """A judgement of the settings in which a swept key has this value, as text."""
    def judge(dataset):
        keep = [s for s, found in enumerate(swept(dataset, key)) if load.plain(found) == value]
        if not keep:
            raise load.BadInput(f"the study has no setting with {key} = {value}")
        return one(dataset.isel(setting=keep))
    return judge


def untested(reason):
    """In place of a judgement, where no study of ours can tell."""
    def judge(_):
        raise load.BadInput(reason)
    return judge
