#!/usr/bin/env python3
"""Every study of jobs/, made small: it runs, and it is drawn by the script that `run` names at its end."""

import importlib
import json
import os
import pathlib
import re
import shlex
import unittest.mock
import warnings

import program
import study_fixture
import yaml

JOBS = pathlib.Path(program.SOURCE, "jobs")
MOST = {"design.points": 4, "runs": 4, "block": 2, "draws": 24, "reference_draws": 24, "problem.rounds": 6, "problem.arms": 6, "problem.dimension": 12,
        "prior.train_samples": 60, "prior.stages": 3, "prior.replicates": 1, "prior.training_steps": 4, "prior.past_tasks": 30, "steps": 4,
        "prior.guard_tasks": 4, "particles": 8, "problem.sample_sizes": 4, "max_steps": 2000, "stream.tasks": 20,
        "components": 3}
# Replaces the defaults of the training keys that a study does not set, to keep training cheap.
TRAINING = {"prior.train_samples": 60, "prior.stages": 3, "prior.training_steps": 4, "prior.mixture_starts": 1, "prior.replicates": 1}
SWEPT = {"problem.dimension", "problem.arms"}  # at most 32, then 64, so that zipped lists stay as long as the others


def flat(keys, prefix=""):
    """{dotted key: value}."""
    out = {}
    for key, value in keys.items():
        if isinstance(value, dict) and key not in ("sweep", "runs"):
            out.update(flat(value, f"{prefix}{key}."))
        else:
            out[prefix + key] = value
    return out


def least(key, value):
    """A value at most as large as the test can pay for."""
    if isinstance(value, list):
        return [least(key, each) for each in value] if key == "policies" else list(dict.fromkeys(least(key, each) for each in value))
    if key == "runs" and isinstance(value, dict):
        return MOST["runs"]
    if key == "policies" and isinstance(value, dict):
        return {own: least(own, each) for own, each in value.items()}
    return min(value, MOST[key]) if key in MOST and isinstance(value, (int, float)) else value


def small(path):
    """The study with few runs, rounds, draws and samples; with the first two values of each swept key."""
    keys = {key: least(key, value) for key, value in flat(yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)).items()}
    sweep = keys.get("sweep", {})
    for key, values in sweep.items():
        if isinstance(values, list):
            values = [min(value, 32 << place) for place, value in enumerate(values)] if key in SWEPT else values
            sweep[key] = (values if sweep.get("zip") else list(dict.fromkeys(values)))[:2]
    training = TRAINING if any(key.startswith("prior.") for key in keys) else {}
    return {**training, **keys, "runs": MOST["runs"], "block": MOST["block"]}


def kind(study):
    """What determines which script draws a study and whether it can: the key `figure`, or the kind of study and what it measures."""
    return study.get("figure") or (study.get("study", "bandit"), tuple(study.get("metrics", ())))


def draw_only(figure, path, **_):
    """Replaces Figure.savefig: draws the whole figure once, without compressing it."""
    if path.suffix == ".png":
        figure.canvas.draw()


class Jobs(program.ProgramTest):
    def run_small(self, path, study):
        """What `run` printed; None if the job's data or priors are not here."""
        made = program.thompson("run", self.write(path.name, json.dumps(study)), "-o", self.path(path.stem), "--progress", "none", cwd=self.folder)
        if made.returncode == 4 and re.search(r"cannot read (data|results)/", made.stderr):
            return None
        self.assertEqual(made.returncode, 0, made.stderr)
        return made.stdout

    def test_figures(self):
        """One study for each way to draw one."""
        drawn = set()
        for path in sorted(JOBS.rglob("*.yaml")):
            study = small(path)
            if kind(study) in drawn:
                continue
            with self.subTest(path.stem):
                printed = self.run_small(path, study)
                if printed is None:
                    continue
                drawn.add(kind(study))
                script, *words = shlex.split(re.search(r"(?m)^figure:  (.*)$", printed)[1])
                folder, name = os.path.split(script)
                self.assertIn(folder, ("analysis/figures", "analysis/tools"))
                module = importlib.import_module(name.removesuffix(".py"))
                with warnings.catch_warnings(), unittest.mock.patch("matplotlib.figure.Figure.savefig", draw_only):
                    warnings.simplefilter("ignore")
                    status, _, err = study_fixture.call(module, *words)
                self.assertEqual(status or 0, 0, f"{script} {words}: {err}")
        self.assertGreater(len(drawn), 12)


if __name__ == "__main__":
    program.main()
