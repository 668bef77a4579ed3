"""The short version of tests/program/campaign.py: random faults, each kind twice; and the campaign notices what it looks for."""

import os
import tempfile
import unittest

import campaign
import journals
import program

FAULTS = 2 * len(campaign.CODES)


def named(*tasks):
    return {journals.record(task, 1.0).name for task in tasks}


class Campaign(unittest.TestCase):
    def test_faults_of_every_kind(self):
        strikes = campaign.Campaign(program.PROGRAM, seed=2, rounds=300, life=0.4)
        self.assertTrue(strikes.run(FAULTS))
        for kind in campaign.CODES:
            self.assertGreater(strikes.faults[kind], 0 if kind != "disk" else -1, kind)  # without permission to mount there is no small disk

    def test_files_of_others_that_are_touched_are_noticed(self):
        """Files removed or rewritten, a link replaced by its target, the target of a link written."""
        def remove(path):
            os.remove(path)

        def write(path):
            with open(path, "wb") as file:
                file.write(b"other")

        def replace(path):
            os.remove(path)
            with open(path, "w", encoding="utf-8") as file:
                file.write("a file of others\n")

        for touch, linked in ((remove, False), (write, False), (replace, True), (write, True)):
            with self.subTest(touch=touch.__name__, linked=linked), tempfile.TemporaryDirectory() as out:
                for part in ("tasks", "priors"):
                    os.mkdir(os.path.join(out, part))
                strikes = campaign.Campaign(program.PROGRAM, seed=2, rounds=300, report=lambda text: None)
                self.addCleanup(lambda strikes=strikes: campaign.shutil.rmtree(strikes.folder))
                strikes.plant(out)
                strikes.check_foreign()
                self.assertEqual(strikes.wrong, [])
                touch(next(path for path in strikes.foreign if os.path.islink(path) == linked and not path.endswith("folder")))
                strikes.check_foreign()
                self.assertEqual({kind for kind, _ in strikes.wrong}, {"foreign"})

    def test_lost_results_are_noticed(self):
        """A task that is gone, one that was reported and is missing, and tasks that only the program does not see."""
        with tempfile.TemporaryDirectory() as out:
            os.mkdir(os.path.join(out, "tasks"))
            strikes = campaign.Campaign(program.PROGRAM, seed=2, rounds=300, report=lambda text: None)
            self.addCleanup(lambda: campaign.shutil.rmtree(strikes.folder))
            strikes.log, strikes.status = lambda: "damaged records are dropped", lambda out: 3
            strikes.names_in = lambda out: named(1, 2, 4)
            journals.write(os.path.join(out, "tasks", "0123456789abcdef.journal"), [journals.record(task, 1.0) for task in (1, 2, 4)])
            strikes.check_kept("rank", out, named(1, 2), named(1, 2, 4), 1)
            self.assertEqual(strikes.wrong, [])
            for before, seen, reported, counted in ((named(1, 3), set(), 0, 3), (named(1), named(1, 3), 0, 3), (named(1, 2), named(1, 2), 2, 3), (named(1), named(1), 0, 2)):
                with self.subTest(before=before, seen=seen, reported=reported, counted=counted):
                    strikes.wrong.clear()
                    strikes.status = lambda out, counted=counted: counted
                    strikes.check_kept("rank", out, before, seen, reported)
                    self.assertEqual({kind for kind, _ in strikes.wrong}, {"lost"})


if __name__ == "__main__":
    program.main()
