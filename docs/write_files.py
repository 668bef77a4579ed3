#!/usr/bin/env python3
"""Write docs/files.md from files that the program has just written; with --check, report whether the page is up to date.

    THOMPSON_PROGRAM=build/release/thompson docs/write_files.py

Every variable and every attribute of every file is on the page; an attribute without a sentence below, or a sentence without an attribute, is
an error. What the page says about input files is tested: the program reads the examples.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import netCDF4
import numpy as np

import pages

PAGE = pages.ROOT / "docs" / "files.md"
SAMPLES = pages.ROOT / "data" / "samples"
PROVENANCE = {
    "Conventions": "`CF-1.10`",
    "title": "of the study, or what the file is",
    "references": "what the methods of the study, or the sampler, are from; else the papers",
    "source": "version and commit of the program",
    "history": "when and by which command it was written",
    "hostname": "on which machine", "mpi_ranks": "on how many ranks", "mpi_library": "with which MPI",
    "compiler": "of the program", "compiler_flags": "of the program", "blas": "linear algebra that was used",
}
ATTRIBUTES = {
    "results": {"config": "the resolved study, text", "config_sha256": "its hash", "seed": "the study's seed"},
    "prior_samples": {"config_sha256": "hash of the resolved study"},
    "prior": {"prior": "family, as in `thompson list priors`", "seconds_fit": "CPU seconds of the fit",
              "candidate_chosen": "with `components: auto`, which candidate was taken, from 0",
              "candidate_most": "with `components: auto`, the most components that might have been tried",
              "noise": "of the rewards of the logs that it was learned from, where these are Gaussian",
              "rewards": "the likelihood of the rewards of these logs",
              "last_stage": "`repaired` or `literal` (`prior.last_stage`)", "training_samples": "how many the networks were trained on",
              "training_samples_sha256": "hash of these", "most_precision": "largest precision of an observation that was trained for"},
    "events": {"setting": "of the study", "policy": "that picked the arms", "likelihood": "of the rewards", "noise": "standard deviation of Gaussian rewards",
               "config_sha256": "hash of the resolved study"},
    "draws": {"sampler": "name", "likelihood": "name", "prior_sha256": "hash of the prior file", "data_sha256": "hash of the history's file",
              "noise": "standard deviation of Gaussian rewards", "seed": "of the draws", "fallbacks": "numerical fallbacks",
              "log_marginal_likelihood": "of the history under the prior, where the sampler has it", "log_marginal_likelihood_error": "how far it may be off",
              "prior_p_value": "of the history under the prior, with Gaussian rewards; small where the prior may be wrong",
              "guard_weight": "with the option `guard`, the posterior probability of the guard"},
    "saved": {"saved_format": "version of this format: 2 with `share`, else 1", "saved": "`posterior` or `agents`", "sampler": "name", "likelihood": "name",
              "options": "as they were given: `rule=thompson,noise=0.5`", "seed": "names the random numbers", "fallbacks": "numerical fallbacks so far"},
    "embedding": {"noise": "standard deviation of rewards, for `problem.noise: auto`", "seed": "of `prepare`", "ridge": "of the regressions",
                  "ratings_sha256": "hash of the ratings in any order", "ratings": "how many", "rating_mean": "what was subtracted",
                  "rmse_of_mean": "error of the mean alone", "digits_sha256": "hash of the digits", "training_digits": "how many",
                  "test_digits": "how many", "test_accuracy": "of the network whose last layer gives the features", "epochs": "of its training",
                  "units_alive": "of that layer", "scale": "by which features were multiplied"},
}
HISTORY = "x1,x2,y\n0.4,-1.1,0.9\n-0.7,0.1,-0.2\n"
LOGS = "task,x1,x2,y\nmonday,0.4,-1.1,0.9\ntuesday,-0.7,0.1,-0.2\nmonday,0.3,0.9,1.1\ntuesday,1.0,0.2,0.4\n"
STUDY = """
name: files
{kind}
runs: 8
block: 4
problem: {{arms: 5, rounds: 6{problem}}}
prior: {{train_samples: 200, training_steps: 5, hidden: [4], replicates: 2, stages: 3}}
"""
BANDIT = STUDY.format(kind="metrics: [regret_floor, optimal_arm_entropy, prior_p_value]", problem="") + "policies: [ts, mixts, diffts, {name: localised, steps: 2}]\n" \
    "sweep: {problem.theta: [cross, rays], prior.stages: [2, 3]}\n"
POSTERIOR = STUDY.format(kind="study: posterior\ndraws: 10\nmetrics: [emd, sliced_wasserstein, max_sliced_wasserstein, sd_ratio, mode_weight, moments, distance, rank, rank_norm, rank_log_likelihood, log_concavity]",
                         problem=", sample_sizes: [1, 5], theta: gm_cross, dimension: 2") + "policies: [ts, {name: exact, prior: exact}]\n"
EVENTS = "{name: files, event_log: true, runs: 2, block: 2, policies: [lints], problem: {arms: 3, rounds: 40, theta: cross}}\n"
REPLAY = "{name: files, study: replay, runs: 2, policies: [lints], problem: {family: logged, file: events/events/default-lints.nc}}\n"
STREAM = "{name: files, study: stream, runs: 2, block: 2, policies: [mixts], problem: {arms: 3, rounds: 5}, stream: {tasks: 3}}\n"
CONVERGENCE = "name: files\nstudy: convergence\nruns: 4\nblock: 4\nmax_steps: 8\nproblem: {dimension: 2}" \
    "\npolicies: [vits1]\n"


def run(*arguments, folder):
    done = subprocess.run([os.environ.get("THOMPSON_PROGRAM", "thompson"), *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"thompson {' '.join(map(str, arguments))}: {done.stderr}")


def cell(text):
    return str(text).replace("|", "\\|")


def general(name):
    """Use one row for weight_1, weight_2, ..."""
    return re.sub(r"^(weight|bias|units)_\d+$", r"\1_L", name)


def words(variable):
    """What a variable is and, of one whose values are flags, what these mean."""
    text = getattr(variable, "long_name", "")
    if "flag_values" not in variable.ncattrs():
        return text
    meanings = ", ".join(f"{value} {meaning}" for value, meaning in zip(variable.flag_values, variable.flag_meanings.split()))
    return f"{text} ({meanings})"


class Described:
    """Variables and attributes of the files of one kind."""

    def __init__(self, kind, *paths):
        self.kind, self.variables, self.attributes = kind, {}, set()
        for path in paths:
            with netCDF4.Dataset(path) as file:
                self.attributes |= set(file.ncattrs())
                for name, variable in file.variables.items():
                    dimensions = variable.dimensions[:-1] if variable.dtype == "S1" else variable.dimensions
                    kind_of = {"S1": "text", "int8": "byte", "int32": "int", "float32": "float", "float64": "double"}.get(str(variable.dtype), str(variable.dtype))
                    if variable.dtype == np.dtype("S1"):
                        kind_of = "text"
                    row = (", ".join(map(general, dimensions)), kind_of, words(variable), getattr(variable, "units", "1"))
                    known = self.variables.get(general(name), row)
                    if general(name) not in ("weight_L", "bias_L"):  # earlier versions wrote other words
                        assert (known[:2], known[3]) == (row[:2], row[3]), (name, row, known)
                    self.variables[general(name)] = row

    def table(self, names=None):
        rows = ["| variable | type | |", "|---|---|---|"]
        for name, (dimensions, kind, text, units) in self.variables.items():
            if names is None or name in names:
                rows.append(f"| `{name}({dimensions})` | {kind} | {cell(text)}{f', in {units}' if units not in ('1', '') else ''} |")
        return "\n".join(rows)

    def attribute_table(self, used):
        """The attributes of this kind; those of provenance are described once."""
        known = ATTRIBUTES[self.kind]
        unknown = self.attributes - set(known) - set(PROVENANCE)
        assert not unknown, f"{self.kind}: no sentence for {unknown}"
        used[self.kind] |= self.attributes & set(known)
        used["provenance"] |= self.attributes & set(PROVENANCE)
        return "\n".join(["| attribute | |", "|---|---|"] + [f"| `{name}` | {text} |" for name, text in known.items() if name in self.attributes])


def make(folder):
    """Write a file of every kind."""
    rng = np.random.default_rng(1)
    theta = np.concatenate([rng.standard_normal((200, 2)), rng.standard_normal((200, 2)) + 3])
    np.savetxt(folder / "theta.csv", theta, delimiter=",")
    (folder / "history.csv").write_text(HISTORY, encoding="utf-8")
    (folder / "logs.csv").write_text(LOGS, encoding="utf-8")
    with netCDF4.Dataset(folder / "theta.nc", "w") as file:
        put(file, "theta", ("sample", "dim"), theta)
    rows = np.loadtxt(HISTORY.splitlines(), delimiter=",", skiprows=1)
    with netCDF4.Dataset(folder / "history.nc", "w") as file:
        put(file, "x", ("observation", "dim"), rows[:, :2])
        put(file, "y", ("observation",), rows[:, 2])
    with netCDF4.Dataset(folder / "mine.nc", "w") as file:
        put(file, "weight", ("component",), np.ones(1))
        put(file, "mean", ("component", "dim"), np.zeros((1, 2)))
        put(file, "covariance", ("component", "dim", "dim2"), np.eye(2)[None])
        file.prior = "gaussian"
    small = ["--option", "training_steps=5", "--option", "hidden=[4]"]
    run("train", "--theta", "theta.csv", "--family", "gaussian", "-o", "gaussian.nc", folder=folder)
    run("train", "--theta", "theta.nc", "--family", "mixture", "--option", "components=auto", "-o", "mixture.nc", folder=folder)
    run("train", "--theta", "theta.csv", "--family", "diffusion", "--option", "stages=3", *small, "-o", "diffusion.nc", folder=folder)
    run("train", "--theta", "theta.csv", "--family", "denoiser", *small, "-o", "denoiser.nc", folder=folder)
    run("train", "--logs", "logs.csv", "--noise", 0.5, "--family", "gaussian", "-o", "learned.nc", folder=folder)
    for prior, history in (("gaussian.nc", "history.csv"), ("mine.nc", "history.nc")):
        run("sample", "--prior", prior, "--data", history, "--sampler", "localised", "--option", "guard=0.1", "-n", 3, "-o", "draws.nc", folder=folder)
    run("prepare", "movielens", SAMPLES / "ratings.csv", "-o", "movies.nc", folder=folder)
    run("prepare", "movielens", SAMPLES / "ratings.csv", "--option", "tasks=users", "-o", "users.nc", folder=folder)
    run("prepare", "mnist", *sorted((SAMPLES / "mnist").iterdir()), "--option", "samples=5", "-o", "digits.nc", folder=folder)
    for name, text in (("bandit", BANDIT), ("posterior", POSTERIOR), ("convergence", CONVERGENCE), ("stream", STREAM), ("events", EVENTS), ("replay", REPLAY)):
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        run("run", f"{name}.yaml", "-o", name, folder=folder)
    return folder


def put(file, name, dimensions, values):
    for dimension, length in zip(dimensions, values.shape):
        if dimension not in file.dimensions:
            file.createDimension(dimension, length)
    file.createVariable(name, "f8", dimensions)[...] = values


def results_part(folder, used):
    """Variables that all studies have, those of a curve with `regret` as the example, and the other curves."""
    studies = {name: Described("results", folder / name / "results.nc") for name in ("bandit", "posterior", "convergence", "stream")}
    bandit = studies["bandit"].variables
    companions = [name[len("regret"):] for name in bandit if name.startswith("regret_")]
    common = [name for name in bandit if all(name in described.variables for described in studies.values())]
    swept = ["problem_theta", "prior_stages"]
    parts = ["Every study has these; a swept key has a variable of its name, with underscores for dots:\n", studies["bandit"].table([*common, *swept]) + "\n",
             "A bandit study has these, and every curve comes like them: `NAME`, and from it over runs `NAME_mean`, `NAME_se` and so on. Curves that are the same for all "
             "policies have no paired differences.\n", studies["bandit"].table([name for name in bandit if name.startswith("regret")] + ["round"]) + "\n",
             "The other curves and variables, by study; those of `metrics` are there where they are asked for:\n"]
    for name, described in studies.items():
        bases = {other for other in described.variables if any(other + suffix in described.variables for suffix in companions)}
        own = [other for other in described.variables if other not in common + swept and not other.startswith("regret")
               and not any(other == base + suffix for base in bases for suffix in companions) and other != "round"]
        table = described.table(own).splitlines()
        table[0] = f"| `{name}` | type | |"
        parts.append("\n".join(table) + "\n")
    values = Described("results", folder / "replay" / "results.nc")
    parts += ["Results of a `replay` study have no curves, but values:\n",
              values.table([name for name in values.variables if name.startswith(("value", "mean_weight", "doubt", "logged_value")) or name in ("estimator", "effective_sample_size")]) + "\n"]
    parts.append(studies["bandit"].attribute_table(used) + "\n")
    return parts


def page(folder):
    used = collections.defaultdict(set)
    def section(kind, *names):
        described = Described(kind, *(folder / name for name in names))
        return described.table() + "\n\n" + described.attribute_table(used) + "\n"

    families = {name: Described("prior", folder / f"{name}.nc") for name in ("mixture", "diffusion", "denoiser")}
    assert set(Described("prior", folder / "gaussian.nc").variables) < set(families["mixture"].variables)
    everything = Described("prior", *(folder / f"{name}.nc" for name in ("gaussian", "mixture", "learned")))
    everything.attributes |= families["diffusion"].attributes
    everything.attributes |= families["denoiser"].attributes
    parts = ["<!-- Written by docs/write_files.py: change that, not this page. -->\n# Files\n",
             "Written by `docs/write_files.py` from files that the program wrote; `L` counts the layers of a network, from 1. All NetCDF files of the program "
             "open with `xarray.open_dataset`, `ncdump` and R's `ncdf4`; reals that are missing are NaN; texts are char variables, UTF-8 and NUL-padded,"
             " or strings where one has other than ASCII characters. Each "
             "file ends, after the data, with a checksum that this program adds and other readers ignore.\n",
             "## What you bring\n",
             "CSV is text in UTF-8 and may be compressed with gzip; header names may be quoted. In NetCDF, values that `_FillValue`, `missing_value`, `valid_min`, "
             "`valid_max` or `valid_range` mark as missing are refused, and so are packed variables (`scale_factor`, `add_offset`, `_Unsigned`).\n",
             "**Samples of theta** (`train --theta`, `problem.theta: file`): NetCDF with `theta(sample, dim)`, or CSV without a header, a sample a line. The header "
             "`0,1,...` or the index of a data frame is refused (pandas: `to_csv(FILE, header=False, index=False)`).\n",
             "**History** (`sample --data`): NetCDF with `x(observation, dim)` and `y(observation)`, or CSV with a header. A history may be empty.\n",
             "\n".join("    " + line for line in HISTORY.splitlines()) + "\n",
             "**Logs** of past tasks: the same with a column `task`, any text, without the blanks around it, in any order; in NetCDF `task(observation)`, an integer.\n",
             "\n".join("    " + line for line in LOGS.splitlines()) + "\n",
             "**Prior** of your own: a Gaussian or a mixture is a NetCDF file with the attribute `prior` (`gaussian` or `mixture`) and the variables `weight`, `mean` and "
             "`covariance` of [prior files](#prior-files).\n",
             "**Embeddings** (`problem.family: embedding`): `theta(item, dim)`, `features(arm, dim)` and the attribute `noise`; see [below](#embeddings) and "
             "`data/README.md`.\n",
             "**Table** (`problem.family: table`): NetCDF with `context(event, dim)` and `reward(event, arm)`, or CSV with the header `x1,...,xd,class`, whose "
             "classes are whole numbers from 0, an arm for each with reward 1 for the right one; `data/make_table.py` writes three.\n",
             "**Log of events** (`problem.family: logged`): the [file](#logs-of-events) that a study writes, with `context(event, dim)` instead of `features` where "
             "the features are the same for all arms, and without the variables that are optional; or CSV with the header `x1,...,xd,arm,reward,propensity`. Both may have probabilities of another policy "
             "(`policies: [target]`): `target(event, arm)`, or `target(event)` and a column `target` after the propensity, that of the arm that was played. "
             "And both may say which arms each event had, 1, and which it lacked, 0: `available(event, arm)`, or last columns `available0,available1,...`, one for each arm. "
             "The arm that was played must be among them, and `target` be 0 elsewhere; features of an arm that is not there may be anything, NaN too.\n",
             "**Study**: YAML, every key in [keys.md](keys.md).\n",
             "## The folder of a study\n", folder_part(folder),
             "## `results.nc`\n", *results_part(folder, used),
             "## Finished tasks\n", "`tasks/HEX.journal` (16 random digits) has what one rank of one job finished, one record after the other; it is for this "
             "program. A record is a header of 160 bytes (the word `thompso2`, the name of the task, its place in the study that ran it, 1 if it succeeded and 2 if "
             "it failed, the length of what follows, the columns that are the same in all runs, the time, the SHA-256 of what follows, and a checksum of the header) and then `seconds(run)`, `fallbacks(run)`, every "
             "curve `(run, point)` of one block of runs at its kept points, after a failure its message, and the other columns; a column that is the same in "
             "all runs is stored once. Numbers are 64 bits wide, in the byte order of the machine. "
             "[On a cluster](internals/cluster.md#journals) says when they are written and what damage costs.\n",
             "## `prior_samples.nc`\n", "Samples of what is true and of what was learned, for pictures.\n", section("prior_samples", "bandit/prior_samples.nc"),
             "## Logs of events\n", "`events/SETTING-POLICY.nc`, of a bandit study with `event_log: true`; `run` and `round` are optional where you bring one.\n",
             section("events", "events/events/default-lints.nc"),
             "## Prior files\n", "Written by `thompson train` and by the Python package, and kept in `priors/` of a study. Gaussian and mixture:\n", families["mixture"].table() + "\n",
             "Diffusion: a network for each stage t = 1 .. T, which is its time. Layer 1 takes the noisy state s_t = sqrt(alpha_bar_t) z + sqrt(1 - alpha_bar_t) e, theta = shift + scale z; each layer is W x + b with W[output, input], and all but the last are followed by ReLU; what comes out is the noise e.\n", families["diffusion"].table() + "\n", "Denoiser: a mixture, a network that corrects it, and its self-check. With S = (I + M)^-1, m = S b and D_0 the mean under the mixture, the inputs are m, the upper triangle of log(S) / 2 by rows, and v = S^-1/2 (D_0 - m); layers are as above, and what comes out is S^-1/2 (z - D_0), of which the share `network_share` is added to the mixture: interpolated in log det(I + M) between the middles of the bins; files without it add all.\n",
             families["denoiser"].table() + "\n", everything.attribute_table(used) + "\n",
             "## Draws\n", "Written by `thompson sample`.\n", section("draws", "draws.nc"),
             "## Saved posteriors and agents\n",
             "Written by `save` of the Python package and `thompson_posterior_save`, `thompson_agents_save` of the library: a [prior file](#prior-files) with what "
             "was learned under that prior, so that `thompson.Prior.open` and `--prior` take it too. A file is written under another name in the same folder "
             "(`.NAME.PROCESS.NUMBER.tmp`), synced and renamed, so that a crash at any point leaves either the old file or the new one under its name. One without its checksum, or "
             "of a later format, is refused. Files written by one version can be read by all later ones; `tests/golden` has a file of each format.\n",
             "With Gaussian rewards agents have `evidence`, d (d + 3) / 2 + 1 numbers each; posteriors, and agents with clicks or counts, have their observations. With the option `memory` what is forgotten is in `evidence` too: so many numbers for each component of the prior, the last of them the logarithm of a factor, and then the observations that are kept. The Python package keeps the names of agents in `note`, as a list in JSON.\n",
             saved_part(used),
             "## Embeddings\n", "Written by `thompson prepare movielens`:\n", section("embedding", "movies.nc"),
             "With `--option tasks=users`, where users are the tasks, some are held out and the ratings of the others are logs:\n",
             section("embedding", "users.nc"), "Written by `thompson prepare mnist`:\n", section("embedding", "digits.nc"),
             "## Provenance\n", "In results, priors of `train`, draws and embeddings; two files that are otherwise equal may differ in it.\n",
             "\n".join(["| attribute | |", "|---|---|"] + [f"| `{name}` | {text} |" for name, text in PROVENANCE.items()])]
    for kind, known in {**ATTRIBUTES, "provenance": PROVENANCE}.items():
        assert used[kind] == set(known), f"{kind}: in no file: {set(known) - used[kind]}"
    return "\n".join(parts) + "\n"


def saved_part(used):
    """What is saved in addition to the prior, from the samples of the tests, the newest last."""
    described = Described("saved", *(pages.ROOT / "tests" / "golden" / f"saved_{name}.nc" for name in ("1_agents", "1_agents_clicks", "1_posterior", "1_names", "2_aged")))
    described.attributes -= {"prior", "seconds_fit"}
    own = [name for name in described.variables if name not in ("weight", "mean", "covariance")]
    return described.table(own) + "\n\n" + described.attribute_table(used) + "\n"


def folder_part(folder):
    meanings = {"study.yaml": "the resolved study: every key with its value", "results.nc": "the results, written again by `thompson reduce`",
                "prior_samples.nc": "samples of the priors", "lock": "which job is working here; for shard I, `lock.I`",
                "priors/FAMILY-HASH.nc": "a fitted prior, named by what it depends on",
                "tasks/HEX.journal": "the tasks that one rank of one job finished"}
    scheme = {r"/[0-9a-f]{16}\.journal": "/HEX.journal", r"/[a-z]+-[0-9a-f]{20}\.nc": "/FAMILY-HASH.nc"}
    found = {path.relative_to(folder / "bandit").as_posix() for path in (folder / "bandit").rglob("*") if path.is_file()}
    for pattern, name in scheme.items():
        found = {re.sub(pattern, name, path) for path in found}
    assert found == set(meanings), found ^ set(meanings)
    return "\n".join(["| file | |", "|---|---|"] + [f"| `{name}` | {text} |" for name, text in meanings.items()]) + "\n"


def main():
    with tempfile.TemporaryDirectory(prefix="thompson-files-") as folder:
        return pages.settle(PAGE, page(make(pathlib.Path(folder))))


if __name__ == "__main__":
    sys.exit(main())
