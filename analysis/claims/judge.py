"""Judges what a paper claims by what a study measured.

A judgement is a function of a study's dataset that returns cells, one for each setting and rival. Differences are paired, and
tested as in significance.py, at its level; the tests of the cells under one verdict get Holm's correction, whether they speak
for the claim or against it. What is judged by means alone (such as costs, in judge_cost.py) is not a test.
"""
import dataclasses

import numpy as np

from thompson import Error, averages, design, significance, store, wording
import convergence

HOLDS, SO_FAR, PARTLY = "holds", "holds where runs are enough", "holds in part"
FAILS, OPEN, NOT_RUN, UNTESTED = "does not hold", "undecided, too few runs", "not run", "can't be tested here"
EXPLAINED = (PARTLY, FAILS, OPEN) # verdicts that need a reason
VERDICTS = (HOLDS, SO_FAR, PARTLY, FAILS, OPEN, NOT_RUN, UNTESTED)


class Untestable(Error):
    """No study of ours can test the claim; the text says why."""


@dataclasses.dataclass
class Claim:
    where: str                    # place in the paper
    says: str
    study: str                    # name of its file in jobs/, and of its results folder; None if no study can test it
    judge: callable               # maps its dataset to cells
    reason: str = ""              # why it does not hold, holds in part or stays open; given where that is the verdict
    shown: str = ""               # the study that shows the reason; empty if the reason says that there is no explanation


@dataclasses.dataclass
class Cell:
    truth: bool                   # whether the means support it; None if there are no means
    sentence: str
    p: float = None               # p-value of that, two-sided, NaN if there are too few runs; None: not a test


def decided(cells):
    """The cells, with truth None where it is not significant after Holm's correction for the number of tests among them."""
    tested = [cell for cell in cells if cell.p is not None]
    certain = {id(cell) for cell, p in zip(tested, significance.holm([cell.p for cell in tested])) if p < significance.LEVEL}
    return [cell if cell.p is None or id(cell) in certain else dataclasses.replace(cell, truth=None) for cell in cells]


def verdict(cells):
    """If all cells are true, the claim holds; if some are, it holds where runs suffice if no mean speaks against it, else in part; if none is,
    it does not hold if one is false, and is undecided if there are too few runs for all."""
    truths, means = {cell.truth for cell in decided(cells)}, {cell.truth for cell in cells}
    if True in truths:
        return PARTLY if False in means else SO_FAR if None in truths else HOLDS
    return FAILS if False in truths else OPEN


# ---- numbers of a study

def index(dataset, policy):
    known = design.labels(dataset)
    if policy not in known:
        raise Error(f"the study has no policy {policy}; it has {', '.join(known)}")
    return known.index(policy)


def numbers(dataset, policy, metric=None, at=-1):
    """A metric of each run, [setting, run], NaN where a run is missing: at the last point of each setting, or at another one. A run
    that never reached its target counts as max_steps; `seconds` has no points."""
    metric = store.chosen(dataset, metric, ("seconds",))
    values = dataset[metric].values[:, index(dataset, policy)]
    if metric != "seconds":
        values = averages.at_end(dataset, values) if at == -1 else values[..., at]
    if metric == convergence.STEPS:
        values = np.where(np.isfinite(values), values, convergence.maximum(dataset))
    ok = dataset["status"].values[:, index(dataset, policy)] == store.STATUS_OK
    return np.where(ok, values, np.nan)


def mean(values):
    known = values[np.isfinite(values)]
    return known.mean() if known.size else np.nan


def swept(dataset, key):
    """The value of a swept key in each setting, [setting]."""
    keys = design.swept(dataset)
    if key not in keys:
        raise Error(f"the study does not sweep {key}; it sweeps {', '.join(keys) or 'nothing'}")
    return keys[key]


def difference(dataset, values):
    """The paired difference of the values [run] from 0."""
    return significance.unequal(values, significance.of_runs(dataset))


def positive(found, sentence):
    """The cell for: a difference is above 0."""
    return Cell(bool(found.mean > 0) if np.isfinite(found.mean) else None, sentence, found.p)


def inside(dataset, low, values, high, sentence):
    """The cell for: the mean of values [run] lies between the two. It does if two tests say so, one for each end; it does not if
    the test at the end beyond which it lies says so."""
    over, under = difference(dataset, values - low), difference(dataset, values - high)
    if not np.isfinite(over.mean):
        return Cell(None, sentence, np.nan)
    if over.mean > 0 > under.mean:
        return Cell(True, sentence, max(over.p, under.p))
    return Cell(False, sentence, under.p if under.mean >= 0 else over.p)


def settings(dataset, key, holds):
    """The settings in which the value of a swept key, as text, satisfies `holds`."""
    keep = [s for s, found in enumerate(swept(dataset, key)) if holds(wording.plain(found))]
    if not keep:
        raise Error(f"the study has no such setting of {key}; it has {', '.join(map(wording.plain, swept(dataset, key)))}")
    return keep


def said(found):
    return wording.value(found.mean, found.se)


# ---- judgements

def lower(policy, rivals, metric=None, at=-1, share=0.0):
    """`policy` is below each rival in each setting, by more than a share of the rival's mean."""
    def judge(dataset):
        cells = []
        ours = numbers(dataset, policy, metric, at)
        for rival in rivals:
            more = numbers(dataset, rival, metric, at) - ours
            for s, title in enumerate(design.titles(dataset)):
                theirs = mean(numbers(dataset, rival, metric, at)[s])
                cells.append(positive(difference(dataset, more[s] - share * abs(theirs)), f"{title}: {rival} minus {policy} "
                                      + said(difference(dataset, more[s])) + (f", of {wording.value(theirs)}" if share else "")))
        return cells
    return judge


def level(policy, rivals, share, metric=None, at=-1):
    """`policy` is within a share of each rival's mean in each setting."""
    def judge(dataset):
        cells = []
        ours = numbers(dataset, policy, metric, at)
        for rival in rivals:
            theirs = numbers(dataset, rival, metric, at)
            for s, title in enumerate(design.titles(dataset)):
                more, room = ours[s] - theirs[s], share * abs(mean(theirs[s]))
                cells.append(inside(dataset, -room, more, room, f"{title}: {policy} minus {rival} {said(difference(dataset, more))}, of "
                                                                f"{wording.value(mean(theirs[s]))}"))
        return cells
    return judge


def diverges(policy, rival):
    """The regret of `policy` does not slow down (its second half is above nine tenths of its first) and is several times the
    rival's."""
    def judge(dataset):
        cells = []
        for s, (title, middle, end) in enumerate(zip(design.titles(dataset), averages.half_rounds(dataset), averages.last_rounds(dataset))):
            half, whole = (mean(numbers(dataset, policy, at=at)[s]) for at in (middle, end))
            before, rounds = dataset[store.axis(dataset)].values[[middle, end]]
            ratio = (whole - half) / half * before / (rounds - before) if middle < end else np.nan
            times = whole / mean(numbers(dataset, rival)[s])
            truth = bool(ratio > 0.9 and times > 3) if np.isfinite(ratio + times) else None
            cells.append(Cell(truth, f"{title}: second half of the rounds {wording.value(ratio)} times the regret of the first, in all "
                                     f"{wording.value(times)} times that of {rival}"))
        return cells
    return judge


def falls(policy, rival=None, metric=None, share=0.0):
    """From the first to the last setting (runs are paired across settings too) the metric, or the rival's excess over it, falls by more
    than a share of its first mean."""
    def judge(dataset):
        values = numbers(dataset, policy, metric)
        if rival:
            values = numbers(dataset, rival, metric) - values
        titles, what = design.titles(dataset), f"{rival} minus {policy}" if rival else policy
        all_of_them = ", ".join(f"{title}: {said(difference(dataset, row))}" for title, row in zip(titles, values))
        fall, room = values[0] - values[-1], share * abs(mean(values[0]))
        return [positive(difference(dataset, fall - room), f"{what}, {titles[0]} minus {titles[-1]}: {said(difference(dataset, fall))} ({all_of_them})")]
    return judge


def settles(policy, key, value, share):
    """From the setting where a swept number has this value on, the regret stays within a share of its value there."""
    def judge(dataset):
        values, number = numbers(dataset, policy), swept(dataset, key).astype(float)
        first = settings(dataset, key, lambda found: float(found) == value)[0]
        room = share * abs(mean(values[first]))
        cells = []
        for s in settings(dataset, key, lambda found: float(found) > value):
            more = values[s] - values[first]
            cells.append(inside(dataset, -room, more, room, f"{policy}, {wording.plain(number[s])} minus {wording.plain(value)}: "
                                                            f"{said(difference(dataset, more))}, of {wording.value(mean(values[first]))}"))
        return cells
    return judge


def falls_along(policy, metric):
    """Between the last two points the metric falls in each setting."""
    def judge(dataset):
        points = dataset.sizes[store.axis(dataset)]
        before, last = (numbers(dataset, policy, metric, at) for at in (points - 2, points - 1))
        return [positive(found, f"{title}: from {wording.value(mean(high))} to {wording.value(mean(low))}")
                for title, high, low in zip(design.titles(dataset), before, last) for found in [difference(dataset, high - low)]]
    return judge


def grows_at_most(policies, power):
    """From half of the rounds to all of them, regret grows at most as this power of the number of rounds."""
    def judge(dataset):
        cells = []
        for policy in policies:
            whole = numbers(dataset, policy)
            for s, (title, middle, end) in enumerate(zip(design.titles(dataset), averages.half_rounds(dataset), averages.last_rounds(dataset))):
                half, rounds = numbers(dataset, policy, at=middle)[s], dataset["round"].values[[end, middle]]
                found = difference(dataset, (rounds[0] / rounds[1]) ** power * half - whole[s])
                slope = np.log(mean(whole[s]) / mean(half)) / np.log(rounds[0] / rounds[1])
                cells.append(positive(found, f"{title}: {policy} grows as rounds to the power {wording.value(slope)}"))
        return cells
    return judge


def rises_along(policy, metric, over_floor=False):
    """Within each setting the metric rises from the first to the last point; with `over_floor` as a multiple of the mean that exact draws reach."""
    def judge(dataset):
        cells = []
        first, last = (numbers(dataset, policy, metric, at) for at in (0, -1))
        if over_floor:
            if averages.floor(dataset, metric) is None:
                raise Error(f"the metric {metric} has no floor")
            of_exact, ends = averages.floor(dataset, metric)[0], averages.last_rounds(dataset)
            first, last = first / of_exact[:, :1], last / of_exact[np.arange(len(ends)), ends][:, None]
        for s, title in enumerate(design.titles(dataset)):
            found = difference(dataset, last[s] - first[s])
            cells.append(positive(found, f"{title}: last minus first point {said(found)}, first {wording.value(mean(first[s]))}"))
        return cells
    return judge


def exponent(policy, key, metric, low, high, start=0):
    """The slope of log metric against log key in a run (runs are paired across settings), over the settings from `start` on, lies
    in [low, high]."""
    def judge(dataset):
        x = np.log(swept(dataset, key).astype(float))
        keep = x >= np.log(max(start, 1e-300))
        if keep.sum() < 2:
            raise Error(f"the study has fewer than two values of {key} from {wording.plain(start)} on")
        deviation = x[keep] - x[keep].mean()
        slopes = deviation @ np.log(numbers(dataset, policy, metric)[keep]) / (deviation ** 2).sum()
        return [inside(dataset, low, slopes, high, f"{policy}: slope {said(difference(dataset, slopes))} of log {metric} against log "
                                                   f"{key}")]
    return judge


def rate(policy, metric, low, high):
    """Between the last two points the exponent of the metric in each run lies in [low, high], in each setting."""
    def judge(dataset):
        cells = []
        n = dataset[store.axis(dataset)].values.astype(float)
        values = [numbers(dataset, policy, metric, at) for at in range(len(n))]
        for s, title in enumerate(design.titles(dataset)):
            slopes = np.log(values[-1][s] / values[-2][s]) / np.log(n[-1] / n[-2])
            listed = ", ".join(f"{wording.value(mean(row[s]))} at {wording.plain(point)}" for row, point in zip(values, n))
            cells.append(inside(dataset, low, slopes, high, f"{title}: exponent {said(difference(dataset, slopes))}; {metric} {listed}"))
        return cells
    return judge


def near(policy, number, share, metric=None, at=-1):
    """The mean of `policy` is within a share of a number, in each setting."""
    def judge(dataset):
        values = numbers(dataset, policy, metric, at)
        return [inside(dataset, (1 - share) * number, row, (1 + share) * number,
                       f"{title}: {policy} {said(difference(dataset, row))}, in the paper {wording.plain(number)}")
                for title, row in zip(design.titles(dataset), values)]
    return judge


def straight(policy, key, metric, share):
    """The metric against a swept number is a straight line, with an intercept: the bend between the first and the last setting, from the
    quadratic term of a parabola through the settings of each run, is within a share of the mean at the last."""
    def judge(dataset):
        x, values = swept(dataset, key).astype(float), numbers(dataset, policy, metric)
        if len(x) < 3:
            raise Error(f"the study has fewer than three values of {key}")
        bend = np.linalg.pinv(np.vander(x, 3))[0] @ values * (x.max() - x.min()) ** 2 / 4   # its largest deviation from the chord
        room, line = share * abs(mean(values[np.argmax(x)])), np.polyfit(x, [mean(row) for row in values], 1)
        return [inside(dataset, -room, bend, room, f"{policy}: {metric} {wording.value(line[1])} + {wording.value(line[0])} times {key}, bent by "
                                                   f"{said(difference(dataset, bend))} of {wording.value(mean(values[np.argmax(x)]))}")]
    return judge


# ---- judgements of judgements

def both(*judges):
    return lambda dataset: [cell for one in judges for cell in one(dataset)]


def where(key, value, one):
    """A judgement of the settings in which a swept key has this value, as text."""
    return lambda dataset: one(dataset.isel(setting=settings(dataset, key, lambda found: found == value)))


def not_so(one):
    """The opposite of a judgement, cell by cell."""
    return lambda dataset: [dataclasses.replace(cell, truth=cell.truth if cell.truth is None else not cell.truth) for cell in one(dataset)]


def at_each(one):
    """A judgement made at each point of the axis; `one` makes it for a point, given by its index."""
    def judge(dataset):
        name, values = store.axis(dataset).replace("_", " "), dataset[store.axis(dataset)].values
        return [dataclasses.replace(cell, sentence=f"{name} {wording.plain(value)}, {cell.sentence}")
                for at, value in enumerate(values) for cell in one(at)(dataset)]
    return judge


def chosen_points(dataset, groups):
    """Which policy represents each method in each run, [setting, method, run]: among its policies, `groups` [method] lists of indices, the one
    with the least mean regret over the other half of the runs."""
    runs, final = dataset.sizes["run"], averages.at_end(dataset, dataset["regret"].values)   # [setting, policy, run]
    points = np.zeros((len(final), len(groups), runs), int)
    halves = np.array_split(np.arange(runs), 2)
    for mine, others in (halves, halves[::-1]):
        for m, members in enumerate(groups):
            scores = np.nan_to_num(final[:, members][..., others].mean(axis=-1), nan=np.inf)   # a point with a failed run is not chosen
            points[:, m, mine] = np.array(members)[scores.argmin(axis=1)][:, None]
    return points


def tuned(one, option="eta"):
    """A judgement of methods at the best value of an option for each: policies are labelled METHOD OPTION=VALUE, and in each half of the
    runs a method has the value that is best for it in the other half."""
    def judge(dataset):
        methods = {}
        for p, label in enumerate(design.labels(dataset)):
            methods.setdefault(label.partition(f" {option}=")[0], []).append(p)
        points = chosen_points(dataset, list(methods.values()))
        best = dataset.isel(policy=[members[0] for members in methods.values()]).assign_coords(policy=list(methods))
        for name in ("regret", "status", "seconds"):
            values = dataset[name].values
            index = points if values.ndim == 3 else points[..., None]
            best[name] = best[name].dims, np.take_along_axis(values, index, axis=1)
        return one(best)
    return judge


def untested(reason):
    """Takes the place of a judgement if no study of ours can test the claim."""
    def judge(_):
        raise Untestable(reason)
    return judge
