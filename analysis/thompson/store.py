"""Opens and checks a results folder; reports what is wrong with it in one sentence.

    from thompson import averages, store
    ds = store.results("results/figure2")                        # an xarray Dataset, read when used
    ds.regret_mean.sel(policy="diffts")                          # (setting, round)
    mean, error = averages.moments(ds, "regret")                 # [setting, policy, round] each
"""
import pathlib
import struct

from . import _library as library
from ._library import Error

# The axis of a study's curves determines its kind, if it is one that scripts are made for.
AXES = {"round": "bandit", "sample_size": "posterior", "step": "convergence", "bandit_task": "stream"}
# Variables of every study, with their dimensions; and what the reducer writes for each curve, by suffix.
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


def opened(path, what):
    """A NetCDF file as an xarray Dataset; variables are read when used."""
    if not path.is_file():
        raise Error(f"{path} does not exist; {what}")
    import xarray as xr
    try:
        return xr.open_dataset(path)
    except (OSError, ValueError, RuntimeError) as error:
        raise Error(f"{path} cannot be read as NetCDF ({str(error).splitlines()[0]})") from error


def checked(path, dataset, needed, what):
    """The dataset, with all variables of `needed` in memory."""
    for name, dimensions in needed.items():
        if name not in dataset.variables:
            raise Error(f"{path} has no variable {name}; {what}")
        variable = dataset.variables[name]
        if variable.dims != dimensions:
            raise Error(f"{path}: {name} has dimensions ({', '.join(variable.dims)}), expected ({', '.join(dimensions)})")
        if variable.size == 0:
            raise Error(f"{path}: {name} is empty")
    try:
        dataset[list(needed)].load()
    except (OSError, ValueError, RuntimeError) as error:
        raise Error(f"{path} cannot be read as NetCDF ({str(error).splitlines()[0]})") from error
    for name in ("setting", "policy", "source"):
        if name in needed:
            dataset[name] = dataset[name].astype(str)
    return dataset


def folder_of(path):
    """The results folder, if the file in it is named."""
    path = pathlib.Path(path)
    return path.parent if path.suffix == ".nc" else path


def tasks(folder, since=0.0):
    """How many tasks of a study have finished since this time, by the headers in its journals (src/parallel/tasks/journal.h)."""
    header, found = struct.Struct("<8s32sqqqqd64s16s"), set()
    for path in (folder / "tasks").glob("*.journal"):
        with path.open("rb") as file:
            while len(record := file.read(header.size)) == header.size and record.startswith(b"thompso2"):
                _, task, _, status, length, _, finished, *_ = header.unpack(record)
                if status != STATUS_NOT_RUN and finished > since:
                    found.add(task)
                file.seek(length, 1)
    return len(found)


def absent(folder):
    """What to do about a folder without results."""
    if not (folder / "tasks").is_dir():
        return "this needs the results of a study, which `thompson run` or `thompson reduce` writes"
    if not tasks(folder):
        return f"no task of the study is finished; `thompson status {folder}` shows its progress"
    return f"{tasks(folder)} tasks of the study are finished; `thompson reduce {folder}` writes it from them, even while the study is running"


def axes(dataset):
    """The dimensions along which curves can run: those above or, in a study of another kind, the last one of its curves."""
    curve = {variable.dims[3] for variable in dataset.variables.values() if variable.dims[:3] == RUNS["status"] and len(variable.dims) == 4}
    return [name for name in AXES if name in dataset.dims] or sorted(curve)


def results(folder, kind="bandit"):
    """DIR/results.nc of a study of this kind (any kind if None), or the file that is named in place of DIR. Warns if the results are
    older than tasks that they lack."""
    folder, path = folder_of(folder), pathlib.Path(folder)
    path = path if path.suffix == ".nc" else path / "results.nc"
    dataset = opened(path, absent(folder))
    what = f"this needs the results of a {f'{kind} ' if kind else ''}study"
    along = axes(dataset)
    if "estimator" in dataset.dims:
        raise Error(f"{path} is of a replay study: figure_replay.py draws it, and `thompson reduce {folder}` prints its table; {what}")
    if len(along) != 1:
        raise Error(f"{path} has {'several' if along else 'none'} of the dimensions {', '.join(AXES)}; {what}")
    if kind not in (None, AXES.get(along[0])):
        raise Error(f"{path} is of a {AXES.get(along[0], 'different')} study; {what}")
    measured = ["regret"] if along == ["round"] else curves(dataset)[:1]
    if not measured:
        raise Error(f"{path} has no measured curve; {what}")
    means = {measured[0] + ending: ("setting", "policy", along[0]) for ending in MOMENTS}
    dataset = checked(path, dataset, {**means, **RUNS, along[0]: (along[0],)}, what)
    newer = tasks(folder, path.stat().st_mtime)
    if newer and (dataset["status"].values == STATUS_NOT_RUN).any():
        library.warn(f"{path} lacks runs, and {newer} tasks are newer than this file; `thompson reduce {folder}` writes it again with them")
    return dataset


def prior_samples(folder):
    """DIR/prior_samples.nc: samples of the true and of the learned prior for each setting."""
    path, what = folder_of(folder) / "prior_samples.nc", "`thompson run` and `thompson reduce` write it next to results.nc"
    return checked(path, opened(path, what), PRIOR_SAMPLES, what)


def axis(dataset):
    """The dimension along which the curves of a study run, such as round, sample_size, step or bandit_task."""
    return axes(dataset)[0]


def curves(dataset):
    """Names of what was measured, [setting, policy, run, axis], without the floors; the first is the study's own curve."""
    whole = ("setting", "policy", "run", axis(dataset))
    return [name for name in dataset.data_vars if dataset.variables[name].dims == whole and not name.endswith(FLOOR)]


def columns(dataset):
    """Names of what has one number for each run (src/study/columns.h)."""
    return [name for name in dataset.data_vars if dataset.variables[name].dims == RUNS["status"] and name != "status"]


def chosen(dataset, curve, others=()):
    """`curve`, or the first measured one if None; refuses what the file does not have. `others`: other names that are allowed."""
    known = [*curves(dataset), *others]
    if curve is not None and curve not in known:
        raise Error(f"the study has no metric {curve}; it has {', '.join(known)}")
    return curve or known[0]
