"""The short version of tests/campaign.py: random faults, each kind twice; and that the campaign notices what it looks for."""

import os
import tempfile
import unittest

import campaign
import program

FAULTS = 2 * len(campaign.CODES)


class Campaign(unittest.TestCase):
    def test_faults_of_every_kind(self):
        strikes = campaign.Campaign(program.PROGRAM, seed=2, rounds=300)
        self.assertTrue(strikes.run(FAULTS))
        for kind in campaign.CODES:
            self.assertGreater(strikes.faults[kind], 0 if kind != "disk" else -1, kind)  # where nothing may be mounted there is no small disk

    def test_files_of_others_that_are_touched_are_noticed(self):
        """Removed, written again, a link replaced by what it points to, the target of a link written."""
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


if __name__ == "__main__":
    program.main()
