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
import dataclasses

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
BINS, FEWEST = 8, 8             # bins of a key of a design, and independent points in each of them if its values are not few


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


def groups(others):
    """The settings of each panel, [(title, settings)], given the other swept keys of each, {key: value}, or None if it is not drawn."""
    found = {}
    for s, other in enumerate(others):
        if other is not None:
            found.setdefault(tuple(other.items()), []).append(s)
    if len(found) > 1 and all(len(here) == 1 for here in found.values()):
        keys = ", ".join(key.rpartition(".")[2] for key, _ in next(iter(found)))
        return [(TOGETHER + keys, np.concatenate([*found.values()]))]
    return [(", ".join(f"{key.rpartition('.')[2]} = {value}" for key, value in combination), np.array(here)) for combination, here in found.items()]


def bins(x, group, words):
    """The settings of each bin of a key with values x [setting], as lists of arrays: its independent parts, which have the value of the key and the
    group [setting] in common, so that they differ in one other key only (two of Saltelli's points)."""
    parts = [np.flatnonzero((x == value) & (group == own)) for value, own in sorted(set(zip(x.tolist(), group.tolist())))]
    values = np.unique(x)
    if words or len(values) <= BINS:
        return [[part for part in parts if x[part[0]] == value] for value in values]
    count = min(BINS, max(1, len(parts) // FEWEST))
    return [[parts[i] for i in own] for own in np.array_split(np.arange(len(parts)), count)]


def over_parts(values, of_key):
    """Mean and standard error over the parts of each bin, [..., bin], of values [setting, ...]."""
    of_bins = []
    for parts in of_key:
        means = [averages.mean_and_error(np.moveaxis(values[part], 0, -1))[0] for part in parts]
        of_bins.append(averages.mean_and_error(np.stack(means, axis=-1))[:2])
    return tuple(np.stack(numbers, axis=-1) for numbers in zip(*of_bins))


def centres(x, of_key):
    """The mean value of the key in each bin, with two digits; of its logarithm, where the axis will be logarithmic."""
    of_parts = [np.array([x[part[0]] for part in parts]) for parts in of_key]
    means = [np.exp(np.log(own).mean()) for own in of_parts] if panel.wide(x) else [own.mean() for own in of_parts]
    return np.array([float(f"{mean:.2g}") for mean in means])


@dataclasses.dataclass
class Measured:
    """A metric in all settings of a study, and how many runs of each policy it is of."""
    dataset: object
    metric: str
    at: float | None
    means: np.ndarray             # [setting, policy]
    errors: np.ndarray            # as means
    floor: tuple | None           # mean and error, [setting] each
    wanted: np.ndarray            # [setting]
    missing: np.ndarray           # [setting, policy]

    def panel(self, here, title, key, x, means, errors, floor, **more):
        """The panel of these settings: means and errors [policy, points] against x."""
        return panel.Panel(title, KEYS.get(key, key), metrics.label(self.dataset, self.metric, self.at), x, means, errors, design.policy_names(self.dataset),
                           self.wanted[here].max() - self.missing[here].max(axis=0), self.wanted[here].max(), floor, metrics.IDEAL.get(self.metric),
                           cut=self.metric not in metrics.whole(self.dataset), **more)


def measure(dataset, metric, at):
    done, wanted = averages.counts(dataset)[0], averages.asked(dataset)
    return Measured(dataset, metric, at, *metrics.measured(dataset, metric, at), wanted, wanted[:, None] - done)


def of_settings(found, against, select):
    """Panels of a product or a zip: a point for each setting."""
    values = design.swept(found.dataset)
    x, ticks = places(values[against])
    others = [{key: wording.plain(of_key[s]) for key, of_key in values.items() if key != against} for s in range(len(x))]
    made = []
    for title, here in groups([other if select(other) else None for other in others]):
        here = here[np.argsort(x[here], kind="stable")]
        if np.isfinite(found.means[here]).any():
            made.append(found.panel(here, title, against, x[here], found.means[here].T, found.errors[here].T,
                                    found.floor and tuple(of_floor[here] for of_floor in found.floor), ticks=ticks, joined=not title.startswith(TOGETHER)))
    return made


def of_design(found, keys):
    """Panels of a design: for each of the keys, the means in bins of it."""
    values = design.swept(found.dataset)
    here = np.arange(len(found.means))
    group = here // (len(values) + 2) if design.config(found.dataset, "design.kind") == "saltelli" else here
    log = panel.wide(found.means)
    made = []
    for key in keys if np.isfinite(found.means).any() else ():
        x, ticks = places(values[key])
        own = bins(x, group, ticks)
        floor = found.floor and over_parts(found.floor[0], own)
        made.append(found.panel(here, "", key, np.unique(x) if ticks else centres(x, own), *over_parts(found.means, own), floor,
                                ticks=ticks, binned=True, log=log))
    return made


def panels(dataset, metric=None, against=None, at=None, select=lambda others: True):
    """The panels of one study. `select` keeps combinations of the other swept keys, given as {key: value}."""
    metric = store.chosen(dataset, metric, metrics.whole(dataset))
    keys = ranked_keys(dataset)
    if not keys:
        raise Error("the study sweeps no key, so there is nothing to draw against")
    against = against and named(keys, against)
    found = measure(dataset, metric, at)
    if design.config(dataset, "design.kind") is None:
        made = of_settings(found, against or next(iter(keys)), select)
    else:
        made = of_design(found, [against] if against else design.swept(dataset))
    if not made:
        raise Error(f"no run has {metric} yet")
    return made


def main():
    parser = drawing.study_options(__doc__, "a study with a sweep")
    parser.add_argument("--metric", metavar="NAME", help="metric to draw (default: the first one measured)")
    parser.add_argument("--against", metavar="KEY", help="swept key to draw against (default: the one with the most values; in a design, every one)")
    parser.add_argument("--at", metavar="VALUE", type=float, help="round or sample size (default: the last)")
    arguments = drawing.parse(parser)
    dataset, = drawing.results(arguments, kind=None)
    metric = store.chosen(dataset, arguments.metric, metrics.whole(dataset))
    drawing.save(panel.page(panels(dataset, metric, arguments.against, arguments.at), [dataset]), drawing.outputs(arguments, f"ablation_{metric}"))


if __name__ == "__main__":
    script.run(main)
