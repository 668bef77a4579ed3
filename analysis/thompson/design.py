"""What a study was asked to do, read from its results: settings, policies and their options, and any key of its configuration."""
import functools
import pathlib

import numpy as np
import yaml

from . import wording
from ._library import Error

MANY = 12   # values of a swept key that are listed


def swept(dataset):
    """{dotted key: its value in each setting, [setting]} for the keys that the study sweeps."""
    mark = "swept key "
    return {dataset[name].attrs["long_name"].removeprefix(mark): dataset[name].values for name in dataset.variables
            if dataset[name].dims == ("setting",) and dataset[name].attrs.get("long_name", "").startswith(mark)}


def adaptive(dataset):
    """Whether runs were added until a standard error was reached (runs: {target_se: ...})."""
    return config(dataset, "runs.target_se") is not None


@functools.lru_cache
def parsed(text):
    """YAML with every scalar kept as text."""
    return yaml.load(text, getattr(yaml, "CBaseLoader", yaml.BaseLoader))  # the one in C is ten times as fast


def study(dataset):
    """The resolved study that the program wrote into the results (attribute config), nested; empty if the file has none."""
    try:
        found = parsed(dataset.attrs.get("config", ""))
    except yaml.YAMLError as error:
        raise Error(f"{dataset.encoding.get('source', 'the results')}: attribute config is not YAML "
                    f"({' '.join(str(error).split())})") from error
    return found if isinstance(found, dict) else {}


def keys(dataset):
    """{dotted key: its value as text} for the resolved study, without its policies."""
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


def number(text):
    """A number, if the text is one; else the text."""
    try:
        return float(text)
    except ValueError:
        return text


def noise(dataset):
    """What problem.noise: auto stands for in each setting, [setting]; the word where the results do not say."""
    sigma = dataset["reward_noise"].values if "reward_noise" in dataset.variables else np.array(np.nan)
    if config(dataset, "problem.family") == "pool":
        sigma = np.ones_like(sigma)    # the key multiplies what a pool has
    return np.broadcast_to(sigma if np.isfinite(sigma).all() else "auto", dataset.sizes["setting"])


def of_settings(dataset):
    """{dotted key: its value in each setting, [setting]} for all keys of the study."""
    found = {key: np.full(dataset.sizes["setting"], number(value)) for key, value in keys(dataset).items()}
    return {**found, **({"problem.noise": noise(dataset)} if keys(dataset).get("problem.noise") == "auto" else {}), **swept(dataset)}


def constants(dataset):
    """{name of the coordinate: ("setting", its values)} for the keys that are the same in all settings; null is no value."""
    found = {key.replace(".", "_"): values for key, values in of_settings(dataset).items() if key.partition(".")[0] not in ("sweep", "design")}
    return {name: ("setting", values) for name, values in found.items() if name not in dataset.variables and values[0] != "null"}


def of_one_type(datasets):
    """The datasets with coordinates over settings that are text in all of them if they are text in one."""
    found = [{name: values for name, values in dataset.coords.items() if values.dims == ("setting",)} for dataset in datasets]
    words = {name for coordinates in found for name, values in coordinates.items() if not np.issubdtype(values.dtype, np.number)}
    return [dataset.assign_coords({name: ("setting", np.array([wording.plain(value) for value in values.values.tolist()]), values.attrs)
                                   for name, values in coordinates.items() if name in words and np.issubdtype(values.dtype, np.number)})
            for dataset, coordinates in zip(datasets, found)]


def together(datasets):
    """The results of several studies, {label: dataset}, as those of one: the settings of all, swept over `folder`, the label, and over the keys in which they
    differ; the policies of all. Paired differences stay those to the first policy of each study (`references`)."""
    import xarray as xr
    all_of = list(datasets.values())
    before = next(iter(datasets))
    for label, dataset in datasets.items():
        if set(dataset.dims) != set(all_of[0].dims):
            raise Error(f"{label} and {before} cannot be shown together: they are of different kinds of studies")
    order = list(dict.fromkeys(label for dataset in all_of for label in labels(dataset)))
    found = list(map(of_settings, all_of))
    differ = [key for key in dict.fromkeys(key for values in found for key in values) if key.partition(".")[0] not in ("sweep", "name", "title", "figure")
              and all(key in values for values in found) and len({value for values in found for value in values[key].tolist()}) > 1]
    parts = []
    for (label, dataset), values in zip(datasets.items(), found):
        whole = dataset.reindex(policy=order, fill_value={"status": 0, "fallbacks": 0})
        coordinates = {key.replace(".", "_"): ("setting", values[key], {"long_name": f"swept key {key}"}) for key in differ}
        coordinates["folder"] = ("setting", np.full(dataset.sizes["setting"], label), {"long_name": "swept key folder"})
        coordinates["reference"] = ("setting", np.full(dataset.sizes["setting"], labels(dataset)[0]))
        coordinates["setting"] = [f"{label}: {setting}" for setting in dataset["setting"].astype(str).values]
        own = [*(key.replace(".", "_") for key in swept(dataset)), *({"reward_noise"} & set(dataset.variables))]
        parts.append(whole.drop_vars(own).assign_coords(coordinates))
    joined = xr.concat(of_one_type(parts), "setting", data_vars="minimal", coords="minimal", compat="override", combine_attrs="override", fill_value={"status": 0, "fallbacks": 0})
    if "seconds_wall" in joined:
        joined["seconds_wall"] = joined["seconds_wall"].copy(data=sum(float(dataset["seconds_wall"]) for dataset in all_of))
    return joined


def config(dataset, key):
    """The value of a scalar key ("problem.noise") in the study, as text: all its values if it was swept, or from the
    smallest to the largest, with three digits, if these are many numbers; None if the file does not say."""
    variable = key.replace(".", "_")
    if variable in dataset.variables:
        values = dataset[variable].values
        found = list(dict.fromkeys(map(wording.plain, values)))
        if len(found) > MANY and np.issubdtype(values.dtype, np.number):
            found = [" to ".join(wording.plain(float(f"{end:.3g}")) for end in (values.min(), values.max()))]
        return ", ".join(found)
    return keys(dataset).get(key)


def labels(dataset):
    """The labels of the policies, in their order."""
    return [str(label) for label in dataset["policy"].values]


def references(dataset):
    """Which policy the paired differences of each setting are to, [setting]: the first one of its study."""
    known = labels(dataset)
    return [known.index(str(label)) for label in dataset["reference"].values] if "reference" in dataset.variables else [0] * dataset.sizes["setting"]


def reference_words(dataset):
    """The policy that paired differences are to, in words."""
    found = set(references(dataset))
    return labels(dataset)[found.pop()] if len(found) == 1 else "the first policy of its folder"


def recorded(dataset):
    """{label: {option: its text}} for the policies that the study describes, with `name` among the options."""
    return {one.get("label", one["name"]): {key: listed(value) for key, value in one.items()}
            for one in study(dataset).get("policies") or []}


def options(dataset):
    """The same for all policies, in their order; refuses a study that does not describe one of them."""
    found = recorded(dataset)
    missing = [label for label in labels(dataset) if label not in found]
    if missing:
        raise Error(f"the results do not say what the options of policy {missing[0]} were (attribute config)")
    return {label: found[label] for label in labels(dataset)}


def policy_names(dataset):
    """{label: registered name} for the policies, in their order; a label that the study does not describe is its own name."""
    found = recorded(dataset)
    return {label: found[label]["name"] if label in found else label for label in labels(dataset)}


def rivals(dataset):
    """Which policies compete, [policy]: all but the oracle, which knows theta*."""
    return np.array([name != "oracle" for name in policy_names(dataset).values()])


def titles(dataset):
    """A short title for each setting: its values of the swept keys that vary between settings."""
    keys = swept(dataset)
    if not keys:
        family = config(dataset, "problem.family")
        if family == "embedding":
            return [pathlib.PurePath(config(dataset, "problem.file")).stem]
        return [config(dataset, "problem.theta") or "default" if family in (None, "synthetic", "inverse") else family]
    differ = {key: values for key, values in keys.items() if len(set(values.tolist())) > 1} or keys
    if list(differ) == ["problem.theta"]:
        return [wording.plain(value) for value in differ["problem.theta"]]
    return [", ".join(f"{key.split('.')[-1]} = {wording.plain(value)}" for key, value in zip(differ, row)) for row in zip(*differ.values())]


def named(texts, known):
    """The labels in texts, each of which is a label or several separated by commas."""
    found = [label for text in texts for label in ([text] if text in known else text.split(","))]
    missing = [label for label in found if label not in known]
    if missing:
        raise Error(f"no study has a policy {missing[0]}; there are {', '.join(known)}")
    return found


def selected(datasets, policies=(), without=()):
    """The studies with only these policies, in this order (all of them if none are named), minus those in `without`."""
    known = list(dict.fromkeys(label for dataset in datasets for label in labels(dataset)))
    order, dropped = named(policies, known) or known, named(without, known)
    found = [dataset.isel(policy=[labels(dataset).index(label) for label in order if label in labels(dataset) and label not in dropped])
             for dataset in datasets]
    found = [dataset for dataset in found if dataset.sizes["policy"]]
    if not found:
        raise Error("no policy is left")
    return found
