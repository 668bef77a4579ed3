"""The README and the tutorial as a reader types them: every block of commands, in order, in one folder that looks like a clone with a built program.
They print what the tutorial says, except for the digits of numbers."""

import os
import re
import subprocess

import program

BLOCK = re.compile(r"^```(sh|text|yaml)\n(.*?)^```", re.DOTALL | re.MULTILINE)
LEFT = ("results/noise/results.nc", "results/noise/report.html", "results/noise/ablation_regret.png", "prior.nc", "from_logs.nc", "draws.nc",
        "results/mine/results.nc", "results/mine/report.html", "mine.pdf", "results/right/results.nc", "results/value/figure_replay.png", "results/right/calibration.png")
# Blocks that are skipped: they install packages, build, or run this test.
NOT_HERE = re.compile(r"(jobs/quickstart\.sh|tests/run\.sh|cmake --preset|ctest --preset) ?")
# Changes to the README's study and to the tutorial's commands, which take two minutes of CPU time each as they are: the same with less work.
SMALLER = {"runs: 512": "runs: 16", "arms: 100, rounds: 200": "arms: 10, rounds: 20", "stages: 25, train_samples: 10000, replicates: 8":
           "stages: 3, train_samples: 100, replicates: 2, training_steps: 60, mixture_starts: 2"}
SMALLER_TUTORIAL = {"rng.uniform(-3, 3, 3000), 0.2 * rng.standard_normal(3000), rng.random(3000)":
                    "rng.uniform(-3, 3, 200), 0.2 * rng.standard_normal(200), rng.random(200)",
                    "[:1000]": "[:60]", "stages: 25, train_samples: all, replicates: 2":
                    "stages: 3, train_samples: all, replicates: 2, training_steps: 60, mixture_starts: 2",
                    "prior: {schedule: log_snr, stages: 25}": "prior: {schedule: log_snr, stages: 3, train_samples: 200, training_steps: 60, mixture_starts: 2}",
                    "runs: 64\ndraws: 200": "runs: 16\ndraws: 40", "np.ones(4000), rng.standard_normal((4000, 2))": "np.ones(800), rng.standard_normal((800, 2))"}


def masked(text):
    """The lines of a text, ignoring the widths of columns, with one mark for each number."""
    return [re.sub(r"[-+]?\d[\d.e-]*", "#", " ".join(line.split())).replace("[ ", "[").replace(" ]", "]") for line in text.splitlines()]


def page(*name):
    with open(os.path.join(program.SOURCE, *name), encoding="utf-8") as file:
        return file.read()


def smaller(text, changes):
    """The text with each of these changes made; each must occur in it."""
    for old, new in changes.items():
        if old not in text:
            raise AssertionError(f"the page has no '{old}' any more, which this test makes smaller")
        text = text.replace(old, new)
    return text


class Tutorial(program.ProgramTest):
    def test_every_block(self):
        """The README's blocks come first, since its reader continues with the tutorial in the same folder."""
        readme, tutorial = page("README.md"), BLOCK.findall(smaller(page("docs", "tutorial.md"), SMALLER_TUTORIAL))
        self.assertGreaterEqual(sum(kind == "sh" for kind, _ in tutorial), 6)
        self.assertEqual(len(re.findall(r"(?m)^    (cmake|mpiexec|jobs/|analysis/|source)", readme)), 0, "a block of commands without ```sh is not run")
        study, name = (re.search(pattern, readme)[1] for pattern in (r"(?s)```yaml\n(.*?)```", r"Save this as `(\S+)`"))
        self.write(name, smaller(study, SMALLER))
        os.makedirs(self.path("build/user"))
        os.symlink(program.PROGRAM, self.path("build/user/thompson"))
        for folder in ("analysis", "docs", "data", "jobs"):
            os.symlink(os.path.join(program.SOURCE, folder), self.path(folder))
        environment = {**os.environ, "PATH": "/usr/bin:" + os.environ["PATH"]}
        printed = ""
        for kind, block in [*BLOCK.findall(readme), *tutorial]:
            if kind == "text":
                for line in masked(block):
                    self.assertIn(line, masked(printed))
            if kind != "sh":
                continue
            commands = "".join(line for line in block.splitlines(keepends=True) if not NOT_HERE.match(line))
            made = subprocess.run(["bash", "-euc", commands], cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
            self.assertEqual(made.returncode, 0, f"{block}\n{made.stdout}\n{made.stderr}")
            printed = made.stdout
        for name in LEFT:
            self.assertTrue(os.path.getsize(self.path(name)), name)


if __name__ == "__main__":
    program.main()
