"""Progress of long calls in Python: what they show on standard error, and when. The clock is the test's own."""

import concurrent.futures
import contextlib
import io
import math
import os
import tempfile
import threading
import unittest
import warnings
from unittest import mock

os.environ.setdefault("THOMPSON_LIBRARY", os.path.join(os.environ["THOMPSON_BUILD"], "src", "library", "libthompson.so"))

import numpy as np

import program
import thompson
from thompson import priors, progress, studies

THETA = np.random.default_rng(1).standard_normal((40, 2))
SCRIPT = """#!/bin/sh
echo 'running tasks: 1/2, 50%' >&2
echo 'note: a key has no effect' >&2
echo printed
"""


class Shown(io.StringIO):
    """A standard error that opens a gate when something is written to it."""

    def __init__(self):
        super().__init__()
        self.gate = threading.Event()

    def write(self, text):
        self.gate.set()
        return super().write(text)


class Progress(unittest.TestCase):
    def test_when(self):
        """True: always, False: never, None: three seconds after the call began."""
        for shown, begins in ((True, 0), (False, math.inf), (None, 3)):
            now = 100.0
            with mock.patch.object(progress, "clock", lambda: now):
                speaker = progress.Progress(shown)
                for elapsed in (0, 2.9, 3, 1000):
                    now = 100 + elapsed
                    with contextlib.redirect_stderr(Shown()) as said:
                        speaker.line("half")
                    self.assertEqual(said.getvalue(), "half\n" if elapsed >= begins else "", (shown, elapsed))

    def test_intervals(self):
        """A call of ten minutes speaks within five seconds, and then whenever the time has grown by a tenth, or by five seconds."""
        for shown in (True, None):
            now = 0.0

            def pause(outcomes, seconds):
                nonlocal now
                now += seconds
                return mock.Mock(not_done=now < 600)

            outcome = concurrent.futures.Future()
            outcome.set_result("done")
            with mock.patch.object(progress, "clock", lambda: now), mock.patch.object(concurrent.futures, "wait", pause), contextlib.redirect_stderr(Shown()) as said:
                self.assertEqual(progress.Progress(shown).wait(outcome, "learning"), "done")
            times = [int(line.removeprefix("learning: ").removesuffix(" s so far")) for line in said.getvalue().splitlines()]
            self.assertLessEqual(times[0], 5)
            self.assertGreater(times[-1], 500)
            for before, after in zip(times, times[1:]):
                self.assertLessEqual(after - before, max(5, before / 10) + 1)  # shown as whole seconds

    def test_library(self):
        """A call of the library that goes on until something was shown: it is shown while the call runs. What it raises is raised."""
        for shown, patience in ((True, 3.0), (None, 0.0)):
            with mock.patch.object(progress, "PATIENCE", patience), contextlib.redirect_stderr(Shown()) as said:
                self.assertTrue(priors.interruptible(lambda stop, said=said: said.gate.wait(program.PATIENCE), shown))
            self.assertRegex(said.getvalue(), r"^learning a prior: \d+ s so far\n")
        with self.assertRaisesRegex(TimeoutError, "of its own"):
            priors.interruptible(mock.Mock(side_effect=TimeoutError("of its own")), True)

    def test_program(self):
        """Lines of the program are shown as they come, its notes as warnings only."""
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "thompson")
            with open(script, "w", encoding="utf-8") as file:
                file.write(SCRIPT)
            os.chmod(script, 0o755)
            for shown, patience, lines in ((True, math.inf, 1), (False, 0, 0), (None, 0, 1), (None, math.inf, 0)):
                with (mock.patch.dict(os.environ, THOMPSON_PROGRAM=script), mock.patch.object(progress, "PATIENCE", patience), contextlib.redirect_stderr(Shown()) as said,
                      warnings.catch_warnings(record=True) as noted):
                    warnings.simplefilter("always")
                    self.assertEqual(studies.call("run", progress=shown), "printed\n")
                self.assertEqual(said.getvalue(), "running tasks: 1/2, 50%\n" * lines)
                self.assertEqual([str(note.message) for note in noted], ["a key has no effect"])

    def test_passed_on(self):
        """Every long call takes `progress`; by default it is None."""
        agents = thompson.Agents(thompson.train(theta=THETA), 6, noise=1)
        agents.observe(list(range(6)) * 4, np.tile(THETA[:6], (4, 1)), np.arange(24.0))
        for options in ({}, {"progress": False}, {"progress": True}):
            with mock.patch.object(priors, "Progress", wraps=progress.Progress) as asked:
                thompson.train(theta=THETA, **options)
                agents.learn_prior(**options)
            self.assertEqual([call.args for call in asked.call_args_list], [(options.get("progress"),)] * 2)
            with mock.patch.object(studies, "call", side_effect=thompson.Error("enough", 3)) as asked:
                for begin in (lambda **also: thompson.train(logs="logs.csv", **also), lambda **also: thompson.train(theta=THETA, ranks=2, **also)):
                    self.assertRaises(thompson.Error, begin, **options)
            self.assertEqual([call.kwargs["progress"] for call in asked.call_args_list], [options.get("progress")] * 2)


if __name__ == "__main__":
    program.main()
