#!/usr/bin/env python3
"""Which swept key matters: variance-based sensitivity indices of a study whose settings are a design, for each policy.

The value of a setting is the mean over runs of a curve (regret, emd, ...) at its last point (or --at), with --over-floor divided by that of
exact draws, and with --of-logarithm its logarithm. Its variance is that over the design: each key is uniform over its range (or over
its logarithms) or its list. First order: the share of the variance that would go if only this key were known. Total: the share that would
stay if all keys but this one were known; more than the first order means that the key acts together with others.

design.kind saltelli: first order by Saltelli et al. (2010), table 2 (b), total by Jansen (1999). Both are free of bias from the randomness of
runs: from each product of two means over the same runs, their covariance is subtracted. sobol and latin: first order only, by least
squares: a sum of functions of one key each, cosines of its place in its range (1 to 8 harmonics, N / (6 D) of them; one column for each word of a
list), and from the variance of each function that which chance alone would give it is subtracted. What more harmonics would add is missed: a
linear function loses 1.4% of its index with one or two, 0.2% with three or four. Intervals are +-1.96 standard deviations of a bootstrap over
the points of the design (over the groups of D + 2 settings of saltelli); scrambled points are more even than independent ones, so
they are wide rather than narrow.

Reads DIR/results.nc; writes DIR/sensitivity_METRIC.png and .pdf, and prints the indices.
"""
import needs
import dataclasses

import numpy as np
import pandas as pd

from thompson import Error, averages, design, metrics, significance, store
import caption
import drawing
import panel
import script
import style

RESAMPLES, SEED, NORMAL = 500, 1, 1.96
ORDERS = ("first order", "total")


@dataclasses.dataclass
class Indices:
    """The indices of one policy, [order, key], and half the width of their intervals."""
    value: np.ndarray
    half: np.ndarray


# ---- estimators: values of settings [point, ...] and indices [order, key]


def product(x, y):
    """Estimates E[x] E[y] without bias, [point], from values [point, run] in the same runs."""
    count = np.isfinite(x + y).sum(axis=1)
    means = np.nanmean(x, axis=1), np.nanmean(y, axis=1)
    covariance = np.nansum((x - means[0][:, None]) * (y - means[1][:, None]), axis=1) / np.maximum(count - 1, 1)
    return means[0] * means[1] - covariance / count


def saltelli_terms(values):
    """For each group of settings, values [group, D + 2, run]: the mean of A and B and of their squares, and for each key the terms of the first
    order and of the total index."""
    a, b, mixed = values[:, 0], values[:, -1], values[:, 1:-1]
    first = [product(b, mixed[:, j] - a) for j in range(mixed.shape[1])]
    total = [product(a - mixed[:, j], a - mixed[:, j]) / 2 for j in range(mixed.shape[1])]
    mean = (np.nanmean(a, axis=1) + np.nanmean(b, axis=1)) / 2
    return mean, (product(a, a) + product(b, b)) / 2, np.array([first, total])


def saltelli(values):
    """The indices from values [group, D + 2, run], as a function of how often each group is counted, [group]."""
    values = values - np.nanmean(values)     # the estimates of the first order are then less noisy
    mean, square, terms = saltelli_terms(values)
    changes = np.nanmean(values[:, 1:-1], axis=2) - np.nanmean(values[:, :1], axis=2)

    def indices(weight):
        weight = weight / weight.sum()
        centre = weight @ mean
        variance = weight @ square - centre**2
        first = terms[0] @ weight - centre * (weight @ changes)
        return np.array([first, terms[1] @ weight]) / variance

    return indices


def waves(key, harmonics):
    """Columns in which the effect of a key is written, [point, column]: cosines of its place among the points or, if it is in words, one for each word."""
    found, place, number = np.unique(key, return_inverse=True, return_counts=True)
    if not np.issubdtype(found.dtype, np.number):
        return (place[:, None] == np.arange(len(found))).astype(float)
    middle = (np.cumsum(number) - number / 2) / len(key)
    return np.cos(np.pi * np.arange(1, harmonics + 1) * middle[place][:, None])


def additive(values, keys):
    """First-order indices from values [point, run] and keys, [point] each, as a function of how often each point is counted, [point]."""
    means, squares = np.nanmean(values, axis=1), product(values, values)
    harmonics = min(8, max(1, len(means) // (6 * len(keys))))
    blocks = [np.ones((len(means), 1)), *(waves(np.asarray(key), harmonics) for key in keys)]
    columns, ends = np.hstack(blocks), np.cumsum([block.shape[1] for block in blocks])

    def indices(weight):
        weight = weight / weight.sum()
        weighted = weight[:, None] * columns
        inverse = np.linalg.pinv(columns.T @ weighted, hermitian=True)
        coefficients = inverse @ (weighted.T @ means)
        rest = weight @ (means - columns @ coefficients)**2 / (len(means) - np.linalg.matrix_rank(inverse, hermitian=True))
        found = []
        for first, last in zip(ends, ends[1:]):
            block = columns[:, first:last] - weight @ columns[:, first:last]
            spread = block.T @ (weight[:, None] * block)
            own = coefficients[first:last]
            found.append(own @ spread @ own - rest * np.sum(spread * inverse[first:last, first:last]))
        return np.array([found]) / (weight @ squares - (weight @ means)**2)

    return indices


def bootstrapped(indices, count):
    """Indices of `count` points or groups with their intervals; `indices` is a function of how often each is counted."""
    rng = np.random.default_rng(SEED)
    drawn = [indices(np.bincount(rng.integers(0, count, count), minlength=count).astype(float)) for _ in range(RESAMPLES)]
    return Indices(indices(np.ones(count)), NORMAL * np.std(drawn, axis=0, ddof=1))


# ---- a study


def mean(values):
    """Means over the last axis, of which NaN are no part; NaN where there is nothing else."""
    count = np.isfinite(values).sum(axis=-1)
    return np.where(count > 0, np.nansum(values, axis=-1) / np.maximum(count, 1), np.nan)


def of_units(values, replicate):
    """values [..., run] as independent parts: means over the runs that share a learned prior, if there are several priors."""
    groups = np.unique(replicate)
    if len(groups) < averages.LEARNED:
        return values
    return np.stack([mean(values[..., replicate == group]) for group in groups], axis=-1)


def logarithms(values):
    """Parts of the logarithm of the mean of values [..., part]: the pseudo-values of the jackknife, which are as good as independent."""
    count = np.isfinite(values).sum(axis=-1, keepdims=True)
    total = np.nansum(values, axis=-1, keepdims=True)
    others = (total - values) / np.maximum(count - 1, 1)
    if (total[count > 0] <= 0).any() or (others[np.isfinite(others)] < 0).any():
        raise Error("--of-logarithm: the metric is not above 0 in every setting")
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = np.log(total / count)
        return np.where(count > 1, count * whole - (count - 1) * np.log(others), whole + 0 * values)


def of_runs(dataset, metric, at):
    """A curve at its last point, or `at`, or a metric of whole runs, [setting, policy, run]."""
    values = averages.of_completed(dataset, metric)
    return values if values.ndim == 3 else averages.at(values, metrics.points(dataset, at))


def measured(dataset, metric, at=None, logarithm=False, over_floor=False):
    """The value of each setting as independent parts whose mean it is, [setting, policy, part]."""
    values = of_units(of_runs(dataset, metric, at), significance.of_runs(dataset))
    if over_floor:
        if averages.floor(dataset, metric) is None:
            raise Error(f"metric {metric} has no floor")
        floor = averages.at(averages.floor(dataset, metric)[0], metrics.points(dataset, at))
        values = values / floor[:, None, None]
    return logarithms(values) if logarithm else values


def missing(values, group):
    """Which groups of `group` settings lack one, [group]."""
    return ~np.isfinite(values).any(axis=2).reshape(-1, group, values.shape[1]).all(axis=(1, 2))


def kind_of(dataset):
    kind = design.config(dataset, "design.kind")
    if kind is None:
        raise Error("the settings of the study are no design (key design: {kind: saltelli | sobol | latin, points: N})")
    return kind


def analyse(dataset, values):
    """{policy: Indices} from values [setting, policy, part]; groups or points that lack a run altogether are left out, with a warning."""
    keys, kind = design.swept(dataset), kind_of(dataset)
    group = len(keys) + 2 if kind == "saltelli" else 1
    without = missing(values, group)
    if without.any():
        script.warnings.warn(f"{without.sum()} of {len(without)} {'groups' if group > 1 else 'points'} lack runs and are left out")
    kept = np.repeat(~without, group)
    if (~without).sum() < 4:
        raise Error("fewer than four points of the design are finished")
    found = {}
    for p, label in enumerate(design.labels(dataset)):
        own = values[kept, p]
        if kind == "saltelli":
            indices = saltelli(own.reshape(-1, group, own.shape[1]))
        else:
            indices = additive(own, [key[kept] for key in keys.values()])
        found[label] = bootstrapped(indices, (~without).sum())
    unknown = [label for label, one in found.items() if (one.half > 0.5).any()]
    if unknown:
        script.warnings.warn(f"too few points: intervals of {', '.join(unknown)} are wider than 1, and an index lies between 0 and 1")
    return found


# ---- what is shown


def table(keys, found):
    """One row for each policy and key."""
    rows = []
    for label, one in found.items():
        for j, key in enumerate(keys):
            row = {"policy": label, "key": key}
            for order, value, half in zip(ORDERS, one.value[:, j], one.half[:, j]):
                row |= {order: value, f"{order} ±": half}
            rows.append(row)
    return pd.DataFrame(rows)


def draw(keys, found, names, sentences):
    """One panel for each order: keys from top to bottom, a point with its interval for each policy."""
    style.use()
    styles, orders = style.lines(names), len(next(iter(found.values())).value)
    width, height = style.LOOK.size or (3 * orders + 2.2, 0.8 + len(keys) * (0.25 + 0.08 * len(found)))
    figure, axes = style.plt.subplots(1, orders, figsize=(width, height), sharey=True, squeeze=False)
    left = 0.3 + 0.068 * max(map(len, keys))
    figure.subplots_adjust(left=left / width, right=1 - 0.1 / width, bottom=0.5 / height, top=1 - 0.1 / height, wspace=0.08)
    for order, axis in enumerate(axes[0]):
        for p, (label, one) in enumerate(found.items()):
            y = np.arange(len(keys)) + 0.7 * ((p + 0.5) / len(found) - 0.5)
            axis.errorbar(one.value[order], y, xerr=one.half[order], capsize=1.5, elinewidth=0.9, label=label, **styles[label] | {"linestyle": "none"})
        for place in range(1, len(keys)):
            axis.axhline(place - 0.5, color="#DDDDDD", linewidth=0.6, zorder=0)
        axis.axvline(0, color=style.FAINT, linewidth=0.8, zorder=0)
        axis.set(yticks=range(len(keys)), yticklabels=keys, ylim=(len(keys) - 0.5, -0.5), xlabel=f"{ORDERS[order]} index")
        if style.LOOK.ylim:
            axis.set_xlim(*style.LOOK.ylim)
    panel.below(figure, panel.lines(styles), sentences)
    return figure


def words(dataset, metric, at, logarithm, over_floor):
    """What the indices are of, in words."""
    text = metrics.label(dataset, metric, at)
    text = f"{text}, over that of exact draws" if over_floor else text
    return f"logarithm of {text}" if logarithm else text


def main():
    parser = drawing.study_options(__doc__, "a study with a design")
    parser.add_argument("--metric", metavar="NAME", help="metric to explain (default: the first one measured)")
    parser.add_argument("--at", metavar="VALUE", type=float, help="round or sample size (default: the last)")
    parser.add_argument("--of-logarithm", action="store_true", help="explain the logarithm of the mean")
    parser.add_argument("--over-floor", action="store_true", help="explain a distance over that of exact draws")
    arguments = drawing.parse(parser)
    dataset, = drawing.results(arguments, kind=None)
    metric = store.chosen(dataset, arguments.metric, store.columns(dataset))
    chosen = (metric, arguments.at, arguments.of_logarithm, arguments.over_floor)
    keys, found = list(design.swept(dataset)), analyse(dataset, measured(dataset, *chosen))
    sentences = [f"Shares of the variance of: {words(dataset, *chosen)}; {kind_of(dataset)} design of {dataset.sizes['setting']} settings. "
                 "Bars: 95% intervals by a bootstrap over its points.", *caption.facts([dataset])]
    drawing.save(draw(keys, found, design.policy_names(dataset), sentences), drawing.outputs(arguments, f"sensitivity_{metric}"))
    print(table(keys, found).to_string(index=False, float_format="{:.3f}".format))


if __name__ == "__main__":
    script.run(main)
