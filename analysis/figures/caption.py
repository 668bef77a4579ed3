"""The caption below a figure: which runs, priors, seed and rewards its study has, and how to read its lines, in whole sentences."""
from thompson import averages, design, significance, store


def rewards(dataset):
    """What a reward consists of besides its mean; None if there are no rewards, all are in a table, or noise is part of the signal-to-noise ratio."""
    if store.axis(dataset) == "step" or design.config(dataset, "problem.family") in ("inverse", "table"):
        return None
    likelihood, noise = design.config(dataset, "likelihood"), design.config(dataset, "problem.noise")
    if likelihood not in (None, "gaussian"):
        return f"{likelihood} rewards"
    if noise == "auto":
        noise = "as in the data file" if design.config(dataset, "problem.family") == "embedding" else "1"
    return f"reward noise {noise}" if noise is not None else "reward noise not recorded"


def of_study(dataset):
    """What readers must know about a study to judge its lines: runs, priors, seed, rewards."""
    failed = averages.counts(dataset)[1]
    parts = [f"{averages.run_words(dataset)} for each policy" + (f" ({failed.sum()} failed)" if failed.any() else "")]
    if averages.replicates(dataset) > 1:
        parts.append(f"priors learned {averages.replicates(dataset)} times")
    parts.append(f"seed {dataset.attrs['seed']}" if "seed" in dataset.attrs else "seed not recorded")
    return "; ".join(filter(None, [*parts, rewards(dataset)])) + "."


def facts(datasets):
    """The same for each study, as a list; identical sentences appear once."""
    return list(dict.fromkeys(map(of_study, datasets)))


def draws(dataset):
    """How many draws were compared, if the file says so."""
    number = design.config(dataset, "draws")
    return f"{number} draws for each history. " if number else ""


def curves(datasets):
    """How to read curves of regret."""
    floor = " Grey area: the floor, below which no policy stays on average." if any("regret_floor_mean" in one for one in datasets) else ""
    return f"Lines: mean over completed runs; bands: one standard error {significance.errors_over(datasets)}.{floor}"


def points(datasets, floor, joined=True):
    """How to read points with error bars; `floor`: whether one is drawn; `joined`: whether lines join them."""
    text = (f"{'Lines' if joined else 'Points'}: mean over completed runs; bars: one standard error {significance.errors_over(datasets)}; policies are shifted slightly "
            "sideways.")
    return text + of_floor("runs") if floor else text


def bins(floor):
    """The same for means over the points of a design."""
    text = ("Lines: mean over the points of the design in a bin of each key; bars: one standard error over these points, which differ in the other keys; policies are "
            "shifted slightly sideways.")
    return text + of_floor("points") if floor else text


def of_floor(over):
    return f" Monte-Carlo floor: the same for a second set of exact draws, which differs from the first by chance alone, with one standard error over {over}."
