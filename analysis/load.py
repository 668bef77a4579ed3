"""The only reader of a results folder: checks what it opens, and says in one sentence what is wrong.

    from load import results, prior_samples
    ds = results("results/figure2")          # an xarray Dataset
    ds.regret_mean.sel(policy="diffts")      # (setting, round)
"""
import pathlib
import re
import sys

import numpy as np
import xarray as xr

# Variable: dimensions, of a bandit study.
BANDIT = {
    "regret_mean": ("setting", "policy", "round"),
    "regret_se": ("setting", "policy", "round"),
    "regret_n": ("setting", "policy", "round"),
    "regret_diff_mean": ("setting", "policy", "round"),
    "regret_diff_se": ("setting", "policy", "round"),
    "seconds": ("setting", "policy", "run"),
    "seconds_train": ("setting", "policy"),
    "status": ("setting", "policy", "run"),
    "fallbacks": ("setting", "policy", "run"),
    "setting": ("setting",),
    "policy": ("policy",),
    "round": ("round",),
}
PRIOR_SAMPLES = {"theta": ("setting", "source", "sample", "dim"), "setting": ("setting",), "source": ("source",)}
STATUS_OK, STATUS_FAILED = 1, 2
BAD_INPUT, BAD_FILE = 3, 4  # exit status, as of the program


class BadInput(Exception):
    """A file that is missing, broken or not what was expected; its text is one sentence for the user."""


def read(path, needed, what):
    """A NetCDF file with all variables of `needed`, as an xarray Dataset; these are in memory, others are read when used."""
    if not path.is_file():
        raise BadInput(f"{path} does not exist; {what}")
    try:
        dataset = xr.open_dataset(path)
        for name in needed:
            if name in dataset.variables:
                dataset[name].load()
    except (OSError, ValueError, RuntimeError) as error:
        raise BadInput(f"{path} cannot be read as NetCDF ({str(error).splitlines()[0]})") from error
    for name, dimensions in needed.items():
        if name not in dataset.variables:
            raise BadInput(f"{path} has no variable {name}; {what}")
        if dataset[name].dims != dimensions:
            raise BadInput(f"{path}: {name} has dimensions ({', '.join(dataset[name].dims)}), "
                           f"expected ({', '.join(dimensions)})")
        if dataset[name].size == 0:
            raise BadInput(f"{path}: {name} is empty")
    for name in ("setting", "policy", "source"):
        if name in needed:
            dataset[name] = dataset[name].astype(str)
    return dataset


def results(folder):
    """DIR/results.nc of a bandit study."""
    return read(pathlib.Path(folder) / "results.nc", BANDIT,
                "this needs the results of a bandit study, which `thompson run` or `thompson reduce` writes")


def prior_samples(folder):
    """DIR/prior_samples.nc: samples of the true and of the learned prior of each setting."""
    return read(pathlib.Path(folder) / "prior_samples.nc", PRIOR_SAMPLES,
                "`thompson run` and `thompson reduce` write it beside results.nc")


def counts(dataset):
    """Completed and failed runs of each setting and policy, and how many were asked for: (done, failed, wanted)."""
    status = dataset["status"].values
    return (status == STATUS_OK).sum(axis=-1), (status == STATUS_FAILED).sum(axis=-1), status.shape[-1]


def config(dataset, key):
    """The value of a scalar key ("problem.noise") in the study, as text: all its values when it was swept; None when the
    file does not say."""
    swept = key.replace(".", "_")
    if swept in dataset.variables:
        return ", ".join(dict.fromkeys(plain(value) for value in dataset[swept].values))
    return scalars(dataset.attrs.get("config", "")).get(key)


def scalars(text):
    """{dotted key: value} of the scalar lines of a resolved study, which is YAML in block style."""
    found, stack = {}, []
    for line in text.splitlines():
        content = line.split(" #")[0].rstrip()
        key, colon, value = content.strip().partition(":")
        if not colon or key.startswith(("-", "#", "{", "[")):
            continue
        indent = len(line) - len(line.lstrip())
        while stack and stack[-1][0] >= indent:
            stack.pop()
        stack.append((indent, key.strip()))
        if value.strip():
            found[".".join(name for _, name in stack)] = value.strip().strip("\"'")
    return found


def policy_names(dataset):
    """{label: registered name} of the policies, in their order; a label that the study does not explain names itself."""
    listed = re.findall(r"""^ +- \{name: (\w+), label: ("(?:\\.|[^"\\])*"|[^,}]*)""", dataset.attrs.get("config", ""),
                        re.MULTILINE)
    names = {re.sub(r"\\(.)", r"\1", label.strip('"')): name for name, label in listed}
    return {label: names.get(label, label) for label in map(str, dataset["policy"].values)}


def last_rounds(dataset):
    """Index of the last round of each setting, [setting]; settings may have different numbers of rounds, NaN beyond."""
    there = np.isfinite(dataset["regret_mean"].values).any(axis=1)
    return np.where(there.any(axis=1), there.shape[1] - 1 - there[:, ::-1].argmax(axis=1), there.shape[1] - 1)


def titles(dataset):
    """A short title for each setting: the value alone when one key was swept, else the label."""
    labels = [str(label) for label in dataset["setting"].values]
    keys = {part.split("=")[0].strip() for label in labels for part in label.split(", ") if "=" in part}
    if labels == ["default"] and config(dataset, "problem.family") == "embedding":
        return [pathlib.PurePath(config(dataset, "problem.file")).stem]
    if labels == ["default"]:
        return [config(dataset, "problem.theta") or "default"]
    if len(keys) == 1 and all(label.count("=") == 1 for label in labels):
        key = keys.pop()
        values = [label.split("=")[1] for label in labels]
        return values if key == "problem.theta" else [f"{key.split('.')[-1]} = {value}" for value in values]
    return labels


def plain(value):
    """Numbers as one would write them: 1, 0.5; text as it is."""
    if isinstance(value, (bytes, np.bytes_)):
        return value.decode()
    return f"{value:g}" if isinstance(value, (int, float, np.number)) else str(value)


def script(main):
    """Run a script's main(); bad input or a file that cannot be written becomes one sentence on stderr and an exit status."""
    try:
        main()
    except (BadInput, OSError) as error:
        print(f"{pathlib.Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        sys.exit(BAD_INPUT if isinstance(error, BadInput) else BAD_FILE)
