"""The only reader of a results folder: checks what it opens, and says in one sentence what is wrong.

    from load import results, prior_samples
    ds = results("results/figure2")                  # an xarray Dataset
    ds.regret_mean.sel(policy="diffts")              # (setting, round)
    ds = results("results/figure7", "posterior")     # kind=None: a study of any kind
    ds.emd_mean.sel(policy="diffts")                 # (setting, sample_size)
"""
import functools
import pathlib
import sys

import numpy as np
import xarray as xr
import yaml

# The axis of a study's curves determines its kind.
AXES = {"round": "bandit", "sample_size": "posterior", "step": "convergence"}
# Variable: dimensions, of every study; and what the reducer writes for each curve, by ending.
RUNS = {
    "seconds": ("setting", "policy", "run"),
    "seconds_train": ("setting", "policy"),
    "status": ("setting", "policy", "run"),
    "fallbacks": ("setting", "policy", "run"),
    "setting": ("setting",),
    "policy": ("policy",),
}
MOMENTS = ("_mean", "_se", "_n", "_diff_mean", "_diff_se")
FLOOR = "_floor"
PRIOR_SAMPLES = {"theta": ("setting", "source", "sample", "dim"), "setting": ("setting",), "source": ("source",)}
STATUS_NOT_RUN, STATUS_OK, STATUS_FAILED = 0, 1, 2
BAD_INPUT, BAD_FILE = 3, 4  # exit status, as of the program
MARK = "thompson-analysis"  # in every page and figure that is made here
LEARNED = 5  # learned priors from which a standard error over them can be trusted; of fewer it says next to nothing


class BadInput(Exception):
    """A file that is missing, broken or not what was expected; its text is one sentence for the user."""


def opened(path, what):
    """A NetCDF file as an xarray Dataset; variables are read when used."""
    if not path.is_file():
        raise BadInput(f"{path} does not exist; {what}")
    try:
        return xr.open_dataset(path)
    except (OSError, ValueError, RuntimeError) as error:
        raise BadInput(f"{path} cannot be read as NetCDF ({str(error).splitlines()[0]})") from error


def checked(path, dataset, needed, what):
    """The dataset with all variables of `needed` in memory."""
    for name, dimensions in needed.items():
        if name not in dataset.variables:
            raise BadInput(f"{path} has no variable {name}; {what}")
        if dataset[name].dims != dimensions:
            raise BadInput(f"{path}: {name} has dimensions ({', '.join(dataset[name].dims)}), "
                           f"expected ({', '.join(dimensions)})")
        if dataset[name].size == 0:
            raise BadInput(f"{path}: {name} is empty")
        try:
            dataset[name].load()
        except (OSError, ValueError, RuntimeError) as error:
            raise BadInput(f"{path} cannot be read as NetCDF ({str(error).splitlines()[0]})") from error
    for name in ("setting", "policy", "source"):
        if name in needed:
            dataset[name] = dataset[name].astype(str)
    return dataset


def folder_of(path):
    """The results folder, where the file in it is named."""
    path = pathlib.Path(path)
    return path.parent if path.suffix == ".nc" else path


def results(folder, kind="bandit"):
    """DIR/results.nc of a study of this kind, or the file that is named in place of DIR; of any kind when it is None."""
    path = pathlib.Path(folder)
    path = path if path.suffix == ".nc" else path / "results.nc"
    what = (f"this needs the results of a {f'{kind} ' if kind else ''}study, which `thompson run` or `thompson reduce` "
            "writes")
    dataset = opened(path, what)
    along = [name for name in AXES if name in dataset.dims]
    if len(along) != 1:
        raise BadInput(f"{path} has {'several' if along else 'none'} of the dimensions {', '.join(AXES)}; {what}")
    if kind not in (None, AXES[along[0]]):
        raise BadInput(f"{path} is of a {AXES[along[0]]} study; {what}")
    measured = ["regret"] if along == ["round"] else curves(dataset)[:1]
    if not measured:
        raise BadInput(f"{path} has no measured curve; {what}")
    means = {measured[0] + ending: ("setting", "policy", along[0]) for ending in MOMENTS}
    return checked(path, dataset, {**means, **RUNS, along[0]: (along[0],)}, what)


def prior_samples(folder):
    """DIR/prior_samples.nc: samples of the true and of the learned prior of each setting."""
    path, what = pathlib.Path(folder) / "prior_samples.nc", "`thompson run` and `thompson reduce` write it beside results.nc"
    return checked(path, opened(path, what), PRIOR_SAMPLES, what)


def axis(dataset):
    """The dimension along which the curves of a study run: round, sample_size or step."""
    return next(name for name in AXES if name in dataset.dims)


def curves(dataset):
    """Names of what was measured, [setting, policy, run, axis], without their floors; the first is the study's own."""
    whole = ("setting", "policy", "run", axis(dataset))
    return [name for name in dataset.data_vars if dataset[name].dims == whole and not name.endswith(FLOOR)]


def chosen(dataset, curve, others=()):
    """`curve`, or the first measured one for None; refuses what the file does not have. `others`: further names allowed."""
    known = [*curves(dataset), *others]
    if curve is not None and curve not in known:
        raise BadInput(f"the study has no metric {curve}; it has {', '.join(known)}")
    return curve or known[0]


def replicates(dataset):
    """How many times the priors were learned."""
    return len(np.unique(dataset["replicate"].values)) if "replicate" in dataset.variables else 1


def over_replicates(dataset):
    """Whether tests are over learned priors, which includes the randomness of learning; else they are over runs."""
    return replicates(dataset) >= LEARNED


def moments(dataset, curve):
    """Mean of a curve over completed runs and its standard error, [setting, policy, point] each. The error is that over runs or over
    the means of learned priors, whichever is larger: runs that share a prior are not independent of it, and the spread of
    few priors may be small by chance."""
    error = dataset[f"{curve}_se"].values
    if f"{curve}_se_replicate" in dataset:
        error = np.fmax(error, dataset[f"{curve}_se_replicate"].values)
    return dataset[f"{curve}_mean"].values, error


def floor(dataset, curve):
    """What exact draws reach: mean and standard error over runs (nothing is learned), [setting, point] each, or None where a
    curve has no floor. It is the same for all policies but for the runs that are in, so it is of the policy with most of
    them."""
    if f"{curve}{FLOOR}_mean" not in dataset:
        return None
    most = counts(dataset)[0].argmax(axis=1)
    return tuple(dataset[f"{curve}{FLOOR}{ending}"].values[np.arange(len(most)), most] for ending in ("_mean", "_se"))


def at(values, where):
    """values [setting, ..., point] at one point of each setting, `where` [setting]: [setting, ...]."""
    return values[np.arange(len(where)), ..., where]


def at_end(dataset, values):
    """The same at the last point of each setting."""
    return at(values, last_rounds(dataset))


def of_completed(dataset, name):
    """A variable [setting, policy, run], NaN where a run is not completed."""
    return np.where(dataset["status"].values == STATUS_OK, dataset[name].values, np.nan)


def mean_and_error(values):
    """Mean over the last dimension, its standard error, and of how many, leaving out what is not finite; NaN where too little is left."""
    n = np.isfinite(values).sum(axis=-1)
    mean = np.nansum(values, axis=-1) / np.where(n > 0, n, np.nan)
    square = np.nansum((values - mean[..., None]) ** 2, axis=-1)
    return mean, np.sqrt(square / np.where(n > 1, n - 1, np.nan) / np.where(n > 0, n, np.nan)), n


def swept(dataset):
    """{dotted key: its value in each setting, [setting]} of the keys that the study sweeps."""
    mark = "swept key "
    return {dataset[name].attrs["long_name"].removeprefix(mark): dataset[name].values for name in dataset.variables
            if dataset[name].dims == ("setting",) and dataset[name].attrs.get("long_name", "").startswith(mark)}


def counts(dataset):
    """Completed and failed runs of each setting and policy, and the length of the dimension: (done, failed, most)."""
    status = dataset["status"].values
    return (status == STATUS_OK).sum(axis=-1), (status == STATUS_FAILED).sum(axis=-1), status.shape[-1]


def adaptive(dataset):
    """Whether runs were added until a standard error was reached (runs: {target_se: ...})."""
    return config(dataset, "runs.target_se") is not None


def asked(dataset):
    """How many runs each setting should have, [setting]: all, or in an adaptive study up to the last run that any of its policies has."""
    there = (dataset["status"].values != STATUS_NOT_RUN).any(axis=1)
    if not adaptive(dataset):
        return np.full(len(there), there.shape[-1])
    return np.where(there.any(axis=1), there.shape[-1] - there[:, ::-1].argmax(axis=1), there.shape[-1])


def run_words(dataset):
    """How many runs are in, by policy and setting: "128 runs", "64 to 512 runs" of an adaptive study, "0 to 90 of 128 runs are in"."""
    done, most = counts(dataset)[0], asked(dataset)

    def span(values):
        return f"{values.min()} to {values.max()}" if values.min() < values.max() else f"{values.max()}"

    return f"{span(most)} runs" if (done == most[:, None]).all() else f"{span(done)} of {span(most)} runs are in"


@functools.lru_cache
def parsed(text):
    """YAML with every scalar as the text that it is."""
    return yaml.load(text, yaml.BaseLoader)


def study(dataset):
    """The resolved study that the program wrote into the results (attribute config), nested; empty where the file has none."""
    try:
        found = parsed(dataset.attrs.get("config", ""))
    except yaml.YAMLError as error:
        raise BadInput(f"{dataset.encoding.get('source', 'the results')}: attribute config is not YAML "
                       f"({' '.join(str(error).split())})") from error
    return found if isinstance(found, dict) else {}


def keys(dataset):
    """{dotted key: its value as text} of the resolved study, without its policies."""
    def flat(tree, prefix):
        for key, value in tree.items():
            if isinstance(value, dict):
                yield from flat(value, f"{prefix}{key}.")
            elif value != "":
                yield f"{prefix}{key}", listed(value)
    return dict(flat({key: value for key, value in study(dataset).items() if key != "policies"}, ""))


def listed(value):
    """A scalar or a list of the resolved study as text."""
    return f"[{', '.join(map(listed, value))}]" if isinstance(value, list) else value


def config(dataset, key):
    """The value of a scalar key ("problem.noise") in the study, as text: all its values when it was swept; None when the
    file does not say."""
    variable = key.replace(".", "_")
    if variable in dataset.variables:
        return ", ".join(dict.fromkeys(plain(value) for value in dataset[variable].values))
    return keys(dataset).get(key)


def labels(dataset):
    """The labels of the policies, in their order."""
    return [str(label) for label in dataset["policy"].values]


def recorded(dataset):
    """{label: {option: its text}} of the policies that the study explains, with `name` among the options."""
    return {one.get("label", one["name"]): {key: listed(value) for key, value in one.items()}
            for one in study(dataset).get("policies") or []}


def options(dataset):
    """The same of all policies, in their order; refuses a study that does not explain one of them."""
    found = recorded(dataset)
    missing = [label for label in labels(dataset) if label not in found]
    if missing:
        raise BadInput(f"the results do not say what the options of policy {missing[0]} were (attribute config)")
    return {label: found[label] for label in labels(dataset)}


def policy_names(dataset):
    """{label: registered name} of the policies, in their order; a label that the study does not explain names itself."""
    found = recorded(dataset)
    return {label: found[label]["name"] if label in found else label for label in labels(dataset)}


def rivals(dataset):
    """Which policies compete, [policy]: all but the oracle, which knows theta*."""
    return np.array([name != "oracle" for name in policy_names(dataset).values()])


def last_rounds(dataset):
    """Index of the last point of each setting, [setting]; settings may have different numbers of rounds, NaN beyond."""
    there = np.isfinite(dataset[f"{curves(dataset)[0]}_mean"].values).any(axis=1)
    return np.where(there.any(axis=1), there.shape[1] - 1 - there[:, ::-1].argmax(axis=1), there.shape[1] - 1)


def titles(dataset):
    """A short title for each setting: its values of the swept keys that differ between settings."""
    keys = swept(dataset)
    if not keys:
        family = config(dataset, "problem.family")
        if family == "embedding":
            return [pathlib.PurePath(config(dataset, "problem.file")).stem]
        return [config(dataset, "problem.theta") or "default" if family in (None, "synthetic", "inverse") else family]
    differ = {key: values for key, values in keys.items() if len(set(values.tolist())) > 1} or keys
    if list(differ) == ["problem.theta"]:
        return [plain(value) for value in differ["problem.theta"]]
    return [", ".join(f"{key.split('.')[-1]} = {plain(value)}" for key, value in zip(differ, row)) for row in zip(*differ.values())]


def plain(value):
    """Numbers as one would write them: 1, 0.5; text as it is."""
    if isinstance(value, (bytes, np.bytes_)):
        return value.decode()
    return f"{value:g}" if isinstance(value, (int, float, np.number)) else str(value)


def value(mean, se=np.nan, signed=False):
    """A number with its standard error, as many digits as that carries."""
    if not np.isfinite(mean):
        return "–"
    if not np.isfinite(se) and 0 < abs(mean) < 0.1:
        return f"{mean:.2g}"
    digits = 2 if not np.isfinite(se) or se <= 0 else int(np.clip(1 - np.floor(np.log10(se)), 0, 4))
    shown = f"{mean:{'+' if signed else ''}.{digits}f}".replace("-", "−")
    return shown if not np.isfinite(se) else f"{shown} ± {se:.{digits}f}"


def writable(path, marked=True):
    """The path, when it may be written: nothing stands there, or an empty file, or one that was made here (`marked`: bears MARK). A link
    is neither followed nor replaced."""
    path = pathlib.Path(path)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise FileExistsError(f"{path}: what stands there is a link or no regular file")
    if marked and path.exists() and path.stat().st_size > 0 and MARK.encode() not in path.read_bytes():
        raise FileExistsError(f"{path}: a file that was not made here stands there; remove it or choose another name")
    return path


def script(main):
    """Run a script's main(); bad input or a file that cannot be written becomes one sentence on stderr and an exit status."""
    try:
        main()
    except (BadInput, OSError) as error:
        print(f"{pathlib.Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        sys.exit(BAD_INPUT if isinstance(error, BadInput) else BAD_FILE)
