"""Files of the program that a power cut or a disk damaged: each is found by `verify` and computed again by `run --resume`, with the same bytes."""

import os
import shutil
import unittest

import journals
import program

SEAL = 72  # bytes of the checksum after the data


def zeros(data, length):
    return data[:-length] + bytes(length)


def ones(data, length):
    return data[:-length] + b"\xff" * length


def cut_and_flipped(data, length):
    """Remove `length` bytes of the checksum, and change one byte in the middle of the data."""
    damaged = bytearray(data[: len(data) - length])
    damaged[len(data) * length // (2 * SEAL + 2)] ^= 0x5A
    return bytes(damaged)


TAILS = [1, 7, 8, 40, 71, 72, 73, 80, 96, 128, 200, 256, 333, 400, 512, 600, 700, 800, 900, 1000, 1024, 1100, 1200, 1300]
CUTS = [1, 2, 8, 20, 36, 50, 64, 65, 66, 67, 68, 69, 70, 71, 72, 72]
DAMAGES = [(zeros, TAILS), (ones, TAILS), (cut_and_flipped, CUTS)]


class Damage(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.finished = cls.run_once(program.QUICK_STUDY)

    def setUp(self):
        super().setUp()
        self.study = self.write("s.yaml", program.QUICK_STUDY)
        self.whole = self.path("whole")
        shutil.copytree(self.finished, self.whole)
        self.out, self.error = self.path("out"), ""

    def files(self, folder):
        return sorted(os.path.join(folder, name) for name in os.listdir(os.path.join(self.whole, folder)))

    def damage(self, name, how, length):
        """Damage one file of a folder; a tail is never longer than half of the file."""
        with open(os.path.join(self.whole, name), "rb") as file:
            data = file.read()
        damaged = how(data, min(length, len(data) // 2))
        self.assertNotEqual(damaged, data)
        with open(os.path.join(self.out, name), "wb") as file:
            file.write(damaged)

    def damage_all(self, names, how, lengths):
        shutil.rmtree(self.out, ignore_errors=True)
        shutil.copytree(self.whole, self.out)
        for name, length in zip(names, lengths):
            self.damage(name, how, length)

    def verify(self):
        """The lines of `verify` about files that cannot be used; its stderr is kept."""
        process = program.thompson("verify", self.out, "--tasks", 1)
        self.assertEqual(process.returncode, 7, process.stdout + process.stderr)
        self.error = process.stderr
        return [line for line in process.stdout.splitlines() if "UNUSABLE: " in line]

    def resume(self):
        process = self.succeed("run", self.study, "-o", self.out, "--resume")
        self.assert_same_results(os.path.join(self.out, "results.nc"), os.path.join(self.whole, "results.nc"))
        return process

    def test_tasks(self):
        """Damage each task in turn, including zeros in a curve, which would read as another regret."""
        shutil.copytree(self.whole, self.out)
        for task in range(8):
            with self.subTest(task=task):
                journals.damage(self.out, task)
                (line,) = self.verify()
                self.assertEqual(line.split(" (")[0], f"task {task}")
                self.assertIn("1 of 8 finished tasks and 0 of", self.error)
                self.assertEqual(self.resume().stderr.count("it runs again"), 1)
                self.assertIn("same", self.succeed("verify", self.out).stdout)

    def test_priors(self):
        names = self.files("priors")
        self.assertGreater(len(names), 0)
        for how, lengths in DAMAGES:
            for length in lengths[::5]:
                with self.subTest(how=how.__name__, length=length):
                    self.damage_all(names, how, [length] * len(names))
                    self.assertEqual([line.split(":")[0] for line in self.verify()], names)
                    self.assertIn("its prior learned again", self.resume().stderr)
                    for name in names:
                        with open(os.path.join(self.out, name), "rb") as again:
                            self.assertGreater(len(again.read()), SEAL)

    def test_prior_of_unfinished_tasks(self):
        """The policy that needs the prior has not run: it must not run with the damaged prior."""
        names = self.files("priors")
        for how, lengths in DAMAGES:
            with self.subTest(how=how.__name__):
                self.damage_all(names, how, lengths[-1:])
                for path in journals.files(self.out):
                    os.remove(path)
                self.resume()

    def test_results(self):
        names = ["prior_samples.nc", "results.nc"]
        for how, lengths in DAMAGES:
            with self.subTest(how=how.__name__):
                self.damage_all(names, how, lengths[-2:])
                self.assertEqual([line.split(":")[0] for line in self.verify()], ["results.nc", "prior_samples.nc"])
                self.resume()
                self.assertIn("same", self.succeed("verify", self.out).stdout)

    def test_reduce_says_what_it_leaves_out(self):
        """`reduce` learns nothing: it leaves out the samples and the time of a damaged prior, and says so."""
        study = self.write("d.yaml", program.QUICK_STUDY.replace("mixts]", "diffts]").replace("mixture_starts: 1", "stages: 4, train_samples: 100, training_steps: 20, hidden: [4]"))
        self.succeed("run", study, "-o", self.whole, "--overwrite")
        self.damage_all(self.files("priors"), zeros, [500])
        process = self.succeed("reduce", self.out)
        self.assertIn("the time of its fit is left out", process.stderr)
        self.assertIn("its samples are left out", process.stderr)
        self.assert_same_results(os.path.join(self.out, "results.nc"), os.path.join(self.whole, "results.nc"))


if __name__ == "__main__":
    program.main()
