#!/usr/bin/env python3
"""Every script of analysis/ works from any folder, on studies that are not finished or have not begun, and answers a wrong or
incomplete file with one sentence.

Scripts are found, not listed. Ends with one line "N passed, N failed".
"""
import contextlib
import importlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings

import netCDF4

import journals
from study_fixture import (
    FILES, GRID, PRIORS, SCRIPTS, ZETA, bandit, call, convergence, describe, main, write_posterior, write_priors,
    write_results)

import claims_diffts

NOT_OF_STUDIES = {"alarm_power", "bernoulli_optimum", "beyond", "clicks", "gittins", "glm_cost", "figure_tilted_deblur", "score_samplers"}  # these read measurements, draws or priors, or nothing
FOR_ANY_STUDY = {"table", "report", "claims", "compare", "ablation", "calibration", "selection", "figure_diffts_2", "figure_diffts_7", "figure_vits",
                 "figure_vits_4"}


def arguments(name, folder):
    """The script's arguments, for the study in this folder: given twice for compare; for claims, given as every study of a paper."""
    if name != "claims":
        return [folder] * (2 if name == "compare" else 1)
    studies = folder.parent / "studies"
    studies.mkdir(exist_ok=True)
    for study in {claim.study for claim in claims_diffts.CLAIMS if claim.study}:
        if not (studies / study).is_symlink():
            (studies / study).symlink_to(folder)
    return [studies, "--paper", "diffts"]


def unfinished(folder, kind):
    """A study of this kind with some runs missing; "none": with all of them missing."""
    lost = [(0, 1, 0), (0, 1, 1), (0, 0, 2)]
    if kind == "bandit":
        write_results(folder, PRIORS[:1], runs=8, rounds=20, not_run=lost, failed=[(0, 2, 5)])
    elif kind == "grid":
        bandit(folder, not_run=lost, runs=12)
    elif kind == "posterior":
        write_posterior(folder, not_run=lost, runs=12)
    elif kind == "convergence":
        convergence(folder)
        with netCDF4.Dataset(folder / "results.nc", "a") as file:
            file["status"][0, 0, 0] = 0
    else:
        write_results(folder, PRIORS[:1], runs=4, rounds=10, not_run=[(0, p, r) for p in range(8) for r in range(4)])
    write_priors(folder, PRIORS[:1], n=50)


def small(folder, **more):
    """A bandit study of two policies."""
    bandit(folder, ZETA[:1], {label: GRID[label] for label in list(GRID)[:2]}, **more)


def draw_only(figure, path, **_):
    """Replaces Figure.savefig: draws the whole figure once, without compressing it."""
    if path.suffix == ".png":
        figure.canvas.draw()


class Scripts(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name) / "study"
        self.folder.mkdir()
        elsewhere = tempfile.TemporaryDirectory()
        self.addCleanup(elsewhere.cleanup)
        self.enterContext(contextlib.chdir(elsewhere.name))

    def run_script(self, name):
        """The script's exit status; it may succeed or end with one sentence, and writes nothing into the current folder."""
        module = importlib.import_module(name)
        with (warnings.catch_warnings(), unittest.mock.patch("matplotlib.figure.Figure.savefig", draw_only),
              unittest.mock.patch("figure_diffts_3.embed", lambda points: (points[:, :2], "MAP"))):  # the real one compiles for ten seconds
            warnings.simplefilter("error")
            status, out, err = call(module, *arguments(name, self.folder))
        with self.subTest(name):
            self.assertIn(status or 0, (0, 3), err)
            self.assertEqual(len(err.splitlines()), 0 if not status else 1, err)
            if status:
                self.assertTrue(err.startswith(f"{name}.py: "), err)
                self.assertEqual(out, "")
            self.assertEqual(os.listdir(), [])
        return status or 0

    def run_all(self):
        return {name: self.run_script(name) for name in SCRIPTS if name not in NOT_OF_STUDIES}

    def test_scripts_can_be_started(self):
        for path in FILES:
            is_script = path.stem in SCRIPTS
            self.assertEqual(os.access(path, os.X_OK), is_script, path.name)
            self.assertEqual(path.read_text().startswith("#!/usr/bin/env python3\n"), is_script, path.name)

    def test_without_packages(self):
        """A Python that has none of the packages (-S: without its package folder) is told so in a sentence."""
        for name, path in SCRIPTS.items():
            process = subprocess.run([sys.executable, "-S", path], capture_output=True, text=True, check=False)
            with self.subTest(name):
                self.assertEqual((process.returncode, len(process.stderr.splitlines())), (1, 1), process.stderr)
                self.assertRegex(process.stderr, rf"^{name}.py: \S+ has no \w+; `source jobs/environment.sh` puts")

    def test_unfinished_studies(self):
        """Scripts that are not made for a particular study accept at least one kind of study, unfinished as it is."""
        well = set()
        for kind in ("bandit", "grid", "posterior", "convergence"):
            unfinished(self.folder, kind)
            well |= {name for name, status in self.run_all().items() if status == 0}
        self.assertEqual(FOR_ANY_STUDY - well, set())

    def test_a_study_that_has_not_begun(self):
        unfinished(self.folder, "none")
        self.run_all()

    def test_a_running_study(self):
        """The scripts say what to do when results are not written yet, and when tasks are newer than the results."""
        def said(name):
            with unittest.mock.patch("matplotlib.figure.Figure.savefig", draw_only):
                return call(importlib.import_module(name), self.folder)

        tasks = self.folder / "tasks"
        tasks.mkdir()
        for name in ("table", "report", "figure_vits"):
            self.assertIn(f"no task of the study is finished; `thompson status {self.folder}`", said(name)[2])
            journals.write(tasks / "0.journal", [journals.record(k, 1.0) for k in range(3)])
            self.assertIn(f"results.nc does not exist; 3 tasks of the study are finished; `thompson reduce {self.folder}` writes it from them", said(name)[2])
            small(self.folder)
            written = (self.folder / "results.nc").stat().st_mtime
            journals.write(tasks / "0.journal", [journals.record(k, written + 1000 * k - 500) for k in range(3)])
            self.assertEqual((said(name)[0], said(name)[2]), (0, ""))
            small(self.folder, not_run=[(0, 0, 19)])
            status, _, err = said(name)
            self.assertEqual((status, len(err.splitlines())), (0, 1), err)
            self.assertRegex(err, rf"^{name}.py: .*results.nc lacks runs, and 2 tasks are newer than this file; `thompson reduce {self.folder}` writes it again with them$")
            for file in (*tasks.iterdir(), *self.folder.glob("*.*")):
                file.unlink()

    def test_wrong_files(self):
        """No file; one that is not NetCDF; one that was cut off; one that lacks what every study has; one of another kind."""
        self.assertEqual(set(self.run_all().values()), {3})
        path = self.folder / "results.nc"
        path.write_text("x1,x2,y\n1,2,3\n")
        self.assertEqual(set(self.run_all().values()), {3})
        small(self.folder)
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        self.assertEqual(set(self.run_all().values()), {3})
        for name in ("status", "regret_mean", "policy", "seconds"):
            path.write_bytes(whole)
            with netCDF4.Dataset(path, "a") as file:
                file.renameVariable(name, "other")
            self.assertEqual(set(self.run_all().values()), {3}, name)
        path.unlink()
        with netCDF4.Dataset(path, "w") as file:
            file.createDimension("sample", 3)
            file.createVariable("theta", "f8", ("sample",))[:] = 1
        self.assertEqual(set(self.run_all().values()), {3})

    def test_files_of_others(self):
        """Pages and figures replace files that were made here, and nothing else; no link is followed."""
        small(self.folder)
        target = self.folder / "target"
        for script, name in (("report", "page.html"), *(("figure_vits", f"figure.{ending}") for ending in ("png", "pdf", "svg")), ("table", "table.md")):
            path = self.folder / name
            words = [self.folder, "-o", path]
            for _ in range(2):
                self.assertEqual(call(importlib.import_module(script), *words)[0] or 0, 0, name)
            path.unlink()
            target.write_text("mine")
            for make in (lambda path=path: path.symlink_to(target), lambda path=path: path.write_text("mine")):
                make()
                status, _, err = call(importlib.import_module(script), *words)
                refused = path.is_symlink() or script != "table"  # a table has no room for a mark
                self.assertEqual(status or 0, 4 if refused else 0, name)
                self.assertEqual(len(err.splitlines()), 1 if refused else 0, err)
                self.assertEqual(target.read_text(), "mine")
                self.assertEqual(path.read_text() == "mine", refused, name)
                path.unlink()

    def test_results_without_their_configuration(self):
        """A file whose attribute config says nothing: scripts that need it say so."""
        bandit(self.folder)
        describe(self.folder, {})
        self.run_all()


if __name__ == "__main__":
    main(Scripts)
