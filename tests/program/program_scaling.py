"""jobs/scaling.sbatch, without Slurm: a study on one and two ranks gives a strong and a weak line, drawn by analysis/figures/scaling.py."""

import os
import subprocess

import program


class Scaling(program.ProgramTest):
    def test_both_lines(self):
        environment = dict(os.environ, THOMPSON=program.PROGRAM, THOMPSON_PYTHON="/usr/bin/python3", RANKS="1 2", RUNS="16", MPLBACKEND="Agg")
        process = subprocess.run(["bash", os.path.join(program.SOURCE, "jobs", "scaling.sbatch"), self.study, "--set", "policies=[ts, diffts]"],
                                 cwd=self.folder, env=environment, capture_output=True, text=True, timeout=program.PATIENCE, check=False)
        self.assertEqual(process.returncode, 0, process.stderr)
        lines = [line.split()[:3] for line in process.stdout.splitlines() if line.split()[:1] in (["strong"], ["weak"])]
        total = 16 * 2 * 2      # settings, policies
        self.assertEqual(lines, [["strong", "1", str(total)], ["strong", "2", str(total)], ["weak", "1", str(total)], ["weak", "2", str(2 * total)]],
                         process.stdout)
        self.assertEqual(sorted(os.listdir(self.path("results/scaling/small"))), ["scaling.png", "strong-1", "strong-2", "weak-2"])


if __name__ == "__main__":
    program.main()
