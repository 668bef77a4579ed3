#!/usr/bin/env python3
"""Any metric of a study against any key that it sweeps.

One line for each policy, one panel for each combination of the other swept keys; values of a key that are words appear side by
side in the order of the study. Where keys change together (zip, design), so that no two settings share those combinations, one panel
has a point for each setting. Panels without a finished run are left out. Metrics: the curves of the study (regret, emd, sd_ratio, ...) at one point (the last round or
sample size, or --at), and seconds (CPU for one run without training), seconds_train (CPU to learn the prior once), fallbacks
(numerical fallbacks in one run), and any other variable with one number for each run. Error bars are one standard error, over
runs or over learned priors, whichever is larger (for metrics with one number per run, over learned priors). Grey band: the
Monte-Carlo floor, the error of a second set of exact draws.

Reads DIR/results.nc; writes DIR/ablation_METRIC.png and .pdf.
"""
import needs
import numpy as np

from thompson import Error, averages, design, metrics, store, wording
import drawing
import panel
import script

# Swept keys in words.
KEYS = {"prior.train_samples": "training samples", "prior.stages": "diffusion stages",
        "problem.condition_number": "condition number of the evidence", "problem.noise": "reward noise",
        "problem.dimension": "dimension", "problem.arms": "arms"}
TOGETHER = "together with "     # begins the title of a panel whose settings differ in other keys too


def ranked_keys(dataset):
    """{key: values [setting]} of the swept keys, those with numbers first, then those with most values."""
    return dict(sorted(design.swept(dataset).items(), key=lambda item: (not is_number(item[1]), -len(np.unique(item[1])))))


def is_number(values):
    return np.issubdtype(values.dtype, np.number)


def places(values):
    """Positions of the values of a key [setting], and their words if they are not numbers: (x [setting], words or None)."""
    if is_number(values):
        return values, None
    words = list(dict.fromkeys(map(wording.plain, values)))
    return np.array([words.index(wording.plain(value)) for value in values], float), words


def named(keys, name):
    """The key with that name, or the only one that ends with it: `noise` for problem.noise."""
    found = [key for key in keys if name in (key, key.rpartition(".")[2])]
    if len(found) != 1:
        raise Error(f"the study does not sweep {name}; it sweeps {', '.join(keys)}")
    return found[0]


def groups(others, designed=False):
    """The settings of each panel, [(title, settings)], given the other swept keys of each, {key: value}, or None if it is not drawn; one panel for
    the points of a design."""
    found = {}
    for s, other in enumerate(others):
        if other is not None:
            found.setdefault(tuple(other.items()), []).append(s)
    if len(found) > 1 and (designed or all(len(here) == 1 for here in found.values())):
        keys = ", ".join(key.rpartition(".")[2] for key, _ in next(iter(found)))
        return [(TOGETHER + keys, np.concatenate([*found.values()]))]
    return [(", ".join(f"{key.rpartition('.')[2]} = {value}" for key, value in combination), np.array(here)) for combination, here in found.items()]


def panels(dataset, metric=None, against=None, at=None, select=lambda others: True):
    """The panels of one study. `select` keeps combinations of the other swept keys, given as {key: value}."""
    metric = store.chosen(dataset, metric, metrics.whole(dataset))
    keys = ranked_keys(dataset)
    if not keys:
        raise Error("the study sweeps no key, so there is nothing to draw against")
    against = named(keys, against) if against else next(iter(keys))
    x, ticks = places(keys[against])
    means, errors, floor = metrics.measured(dataset, metric, at)
    done, wanted = averages.counts(dataset)[0], averages.asked(dataset)
    missing = wanted[:, None] - done
    others = [{key: wording.plain(values[s]) for key, values in design.swept(dataset).items() if key != against}
              for s in range(len(means))]
    designed = design.config(dataset, "design.kind") is not None
    made = []
    for title, here in groups([other if select(other) else None for other in others], designed):
        here = here[np.argsort(x[here], kind="stable")]
        if np.isfinite(means[here]).any():
            made.append(panel.Panel(title, KEYS.get(against, against),
                                    metrics.label(dataset, metric, at), x[here], means[here].T, errors[here].T,
                                    design.policy_names(dataset), wanted[here].max() - missing[here].max(axis=0), wanted[here].max(),
                                    floor and tuple(values[here] for values in floor), metrics.IDEAL.get(metric),
                                    cut=metric not in metrics.whole(dataset), ticks=ticks, joined=not title.startswith(TOGETHER)))
    if not made:
        raise Error(f"no run has {metric} yet")
    return made


def main():
    parser = drawing.study_options(__doc__, "a study with a sweep")
    parser.add_argument("--metric", metavar="NAME", help="metric to draw (default: the first one measured)")
    parser.add_argument("--against", metavar="KEY", help="swept key to draw against (default: the one with the most values)")
    parser.add_argument("--at", metavar="VALUE", type=float, help="round or sample size (default: the last)")
    arguments = drawing.parse(parser)
    dataset, = drawing.results(arguments, kind=None)
    metric = store.chosen(dataset, arguments.metric, metrics.whole(dataset))
    drawing.save(panel.page(panels(dataset, metric, arguments.against, arguments.at), [dataset]), drawing.outputs(arguments, f"ablation_{metric}"))


if __name__ == "__main__":
    script.run(main)
