"""What the charts of a report show, as plain numbers that report.js draws: curves of a metric, and the metric against its cost.

Policies are identified by their index in the study. Numbers have four digits; a curve has at most POINTS points.
"""
import numpy as np

from thompson import averages, design, metrics, store
import panel
import style

POINTS = 120
SHOWN = 8           # policies that are switched on at first: the first of the study and the best
FEW = 12            # up to this number, all policies are switched on, with the colours of style.py if these tell them apart
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#332288", "#882255", "#117733", "#56B4E9", "#666666"]
DASHES = ["", "6 3", "2 2", "8 2 2 2"]
DARK = 0.35         # colours of a lower luminance are mixed with white on a dark page


def along(dataset):
    """The axis of the curves in a few words."""
    axis = store.axis(dataset)
    return dataset[axis].attrs.get("long_name", axis).split(";")[0]


def at_end(dataset, metric):
    """A metric in words, and the position of its last point."""
    return metrics.label(dataset, metric) if has_curve(dataset, metric) else metrics.words(dataset, metric)


def rounded(values):
    """Numbers for JSON, NaN as null."""
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in np.ravel(values)]


def on_dark(colour):
    """`colour`, adjusted so that it can be seen on a dark page too."""
    rgb = np.array(style.matplotlib.colors.to_rgb(colour))
    luminance = rgb @ [0.2126, 0.7152, 0.0722]
    mixed = rgb if luminance > DARK else rgb + (1 - rgb) * (DARK + 0.3 - luminance)
    return style.matplotlib.colors.to_hex(mixed)


def ranking(dataset, metric):
    """The policies by their mean rank over the settings at the last point, best first; those without a number last."""
    ends = at_the_end(dataset, metric)[0]
    order = np.where(np.isfinite(ends), ends, np.inf).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
    return [int(p) for p in np.argsort(order.mean(axis=0), kind="stable")]


def at_the_end(dataset, metric):
    """Mean, standard error [setting, policy] and number of runs behind them at the last point of each setting."""
    return tuple(averages.at_end(dataset, values) for values in (*averages.moments(dataset, metric), dataset[f"{metric}_n"].values))


def diverged(dataset, metric):
    """Which policies leave the axis in some setting, in the same way as in the figures."""
    ends = at_the_end(dataset, metric)[0]
    cuts = [panel.ceiling(row) for row in ends]
    return np.any([np.zeros(len(row), bool) if cut is None else row > cut for row, cut in zip(ends, cuts)], axis=0)


def policies(dataset, metric):
    """Label, method, colours and dashes of each policy, and whether it is switched on at first."""
    names, ranked = design.policy_names(dataset), ranking(dataset, metric)
    gone, styles = diverged(dataset, metric), style.lines(names)
    first = [0, *(p for p in ranked if p != 0 and not gone[p])]
    shown = set(first if len(names) <= FEW else first[:SHOWN])
    looks = {(str(look["color"]), str(look["linestyle"])) for look in styles.values()}  # a chart here has no markers
    places = {p: place for place, p in enumerate(dict.fromkeys([*first, *ranked]))}
    found = []
    for p, (label, name) in enumerate(names.items()):
        colour, dash = PALETTE[places[p] % len(PALETTE)], DASHES[places[p] // len(PALETTE) % len(DASHES)]
        if len(looks) == len(names) <= FEW:
            colour, line = style.matplotlib.colors.to_hex(styles[label]["color"]), styles[label]["linestyle"]
            dash = "" if line == "-" else " ".join(f"{1.6 * length:g}" for length in line[1])
        found.append({"label": label, "name": name, "colour": colour, "dark": on_dark(colour), "dash": dash, "on": p in shown})
    return found


def thinned(count):
    """At most POINTS indices of `count` points, including the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(count, POINTS)).round().astype(int))


def has_curve(dataset, metric):
    """Whether a metric changes along the axis; some metrics are one number for the whole run."""
    means = dataset[f"{metric}_mean"].values
    known = np.isfinite(means).any(axis=-1)
    return means.shape[-1] > 1 and not (known.any() and all(np.ptp(row[np.isfinite(row)]) == 0 for row in means[known]))


def of_curve(dataset, metric, s, title):
    """The chart of one metric in setting s."""
    axis = store.axis(dataset)
    means, errors = (values[s] for values in averages.moments(dataset, metric))
    points = np.arange(averages.last_rounds(dataset)[s] + 1)
    known = points[np.isfinite(means[:, points]).any(axis=0)]  # some are measured only at a few points
    use = known[thinned(len(known))] if len(known) else points[thinned(len(points))]
    x = dataset[axis].values[use]
    means, errors = means[:, use], errors[:, use]
    floor = averages.floor(dataset, metric)
    return {"kind": "curves", "title": title, "x": rounded(x), "logx": bool(axis != "round" and panel.wide(x)),
            "wide": metric != "regret" and metric not in metrics.IDEAL,
            "xlabel": along(dataset), "ylabel": metrics.words(dataset, metric),
            "mean": [rounded(row) for row in means], "se": [rounded(row) for row in errors],
            "floor": None if floor is None else rounded(floor[0][s][use]), "ideal": metrics.IDEAL.get(metric)}


def front(costs, values):
    """Indices of the points that no other point beats in both cost and value, cheapest first."""
    best, found = np.inf, []
    for p in np.lexsort((values, costs)):
        if np.isfinite(costs[p]) and values[p] < best:
            best = values[p]
            found.append(int(p))
    return found


def of_cost(dataset, metric, s, title):
    """The chart of a metric at the last point against CPU seconds per run, in setting s; `oracle`, which knows theta*, is not part of
    the front."""
    values, errors, _ = (numbers[s] for numbers in at_the_end(dataset, metric))
    costs = metrics.over_runs(dataset, "seconds")[0][s]
    rivals = design.rivals(dataset)
    return {"kind": "points", "title": title, "xlabel": "CPU seconds per run, without training", "logx": True,
            "ylabel": at_end(dataset, metric),
            "wide": True,
            "cost": rounded(costs), "mean": rounded(values), "se": rounded(errors),
            "front": front(np.where(rivals, costs, np.nan), values)}
