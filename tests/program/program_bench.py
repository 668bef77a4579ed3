"""`thompson bench`: every registered sampler, with plausible speeds and shares, and work that agrees with a calculation by hand."""

import json
import os
import resource
import shlex
import subprocess

import numpy as np

import program

def count_vits2(d, updates=10):
    """Operations of a round of VITS-II on a quadratic potential, and a draw: NumPy's products, each counted by its shape."""
    count = 0

    def product(a, b, symmetric=False):
        nonlocal count
        rows, columns = a.shape[0], b.shape[1]
        entries = rows * (rows + 1) // 2 if symmetric else rows * columns
        count += 2 * entries * a.shape[1]
        return a @ b

    hessian, root, inverse, mean = 3 * np.eye(d), np.eye(d), np.eye(d), np.zeros((d, 1))
    fourth = product(product(hessian, hessian, symmetric=True), hessian @ hessian, symmetric=True)     # bounds the largest eigenvalue
    h = 0.4 / np.trace(fourth) ** 0.25
    inverse = product(inverse, 2 * np.eye(d) - product(root, inverse))     # once in ten updates
    for _ in range(updates):
        eps = np.ones((d, 1))
        gradient = product(hessian, mean + product(root, eps)) - product(inverse.T, eps)
        excess = product(inverse.T, inverse, symmetric=True) - hessian
        mean = mean - h * gradient
        root = root + h * (inverse.T - product(hessian, root))
        inverse = inverse - h * product(inverse, excess)
    product(root, np.ones((d, 1)))
    return count


def count_lints(d):
    """Operations of a Cholesky factor and two triangular solutions, in loops."""
    matrix, count = np.eye(d) + 0.1, 0
    factor = np.zeros((d, d))
    for j in range(d):
        for i in range(j, d):
            rest = matrix[i, j]
            for k in range(j):
                rest -= factor[i, k] * factor[j, k]
                count += 2
            factor[i, j] = rest**0.5 if i == j else rest / factor[j, j]
            count += 1
    for _ in range(2):
        for i in range(d):
            count += 2 * i + 1
    return count


TINY = ["--seconds", "0.002", "--set", "problem.arms=20", "--set", "problem.rounds=10", "--set", "runs=16"]


class Bench(program.ProgramTest):
    @staticmethod
    def seconds():
        """CPU seconds of the child programs that have ended."""
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def bench(self, *arguments):
        return json.loads(self.succeed("bench", "--quick", "--json", *TINY, *arguments).stdout)

    def test_every_sampler(self):
        registered = [entry["name"] for entry in json.loads(self.succeed("list", "samplers", "--json").stdout)]
        found = self.bench()
        self.assertEqual([row["sampler"] for row in found["rows"]], registered)
        for key in ("peak_float_flops", "peak_double_flops", "memory_bytes_per_second"):
            self.assertGreater(found["machine"][key], 1e8)
        for row in found["rows"]:
            sizes = {"dimension": 2, "arms": 20, "rounds": 10, "runs": 16}
            self.assertEqual({key: row[key] for key in sizes}, sizes)
            for key in ("seconds_per_draw", "rounds_per_second", "flops_per_round", "bytes_per_round", "round_fraction_of_bandwidth"):
                self.assertGreater(row[key], 0, (row["sampler"], key))
            self.assertGreater(row["round_fraction_of_peak"], 0)
            self.assertLess(row["round_fraction_of_peak"], 1.2, row["sampler"])     # the peak is measured too, at another time
            self.assertLessEqual(2, row["rounds_reached"])

    def test_limited_cpu_time(self):
        """Under `ulimit -t` Linux counts the CPU time of a process in ticks, longer than what is measured."""
        command = f"ulimit -t 600; exec {program.PROGRAM} bench --quick --json --samplers ts {' '.join(map(shlex.quote, TINY))}"
        found = json.loads(subprocess.run(["sh", "-c", command], capture_output=True, check=True, timeout=program.PATIENCE).stdout)
        self.assertTrue(np.isfinite(found["machine"]["peak_float_flops"]))
        self.assertGreater(found["rows"][0]["seconds_per_draw"], 0)

    def test_work(self):
        """Networks 2-8-6-2 in 12 stages: 2 (16 + 48 + 12) operations each; dps also multiplies by the Jacobian, the same work again, forward
        and back. In rounds, in addition, the scores of 20 arms, 2 d each."""
        rows = self.bench("--samplers", "ts,diffts,dps", "--set", "prior.hidden=[8,6]", "--set", "prior.stages=12")["rows"]
        network = 12 * 2 * (2 * 8 + 8 * 6 + 6 * 2)
        for row, draw in zip(rows, (None, network, 3 * network)):
            self.assertEqual(row["float_flops_per_draw"], draw)
            self.assertAlmostEqual(row["flops_per_round"], (draw or 0) + 80, places=6)
        self.assertEqual([row["stages"] for row in rows], [None, 12, 12])
        self.assertEqual([row["hidden"] for row in rows], [[], [8, 6], [8, 6]])
        weights = 12 * 4 * (2 * 8 + 8 + 8 * 6 + 6 + 6 * 2 + 2) / 16      # shared by 16 runs
        evidence = 2 * 8 * (4 + 2)
        self.assertAlmostEqual(rows[0]["bytes_per_round"], 8 * 2 * 20 + evidence)
        self.assertAlmostEqual(rows[1]["bytes_per_round"], 8 * 2 * 20 + evidence + weights)

    def test_share(self):
        """Draws alone, in three sizes, with shares of the peak; the operations of diffts, lints and vits2 are those that the same algebra in NumPy and
        in loops takes, where every multiply-add is counted, up to what is done entry by entry."""
        names = ("diffts", "lints", "vits1", "vits2", "lmc")
        arguments = ["--share", *TINY, "--samplers", ",".join(names), "--set", "prior.training_steps=2", "--set", "prior.hidden=[4]", "--set", "prior.stages=3"]
        found = json.loads(self.succeed("bench", "--json", *arguments).stdout)["rows"]
        rows = {(row["sampler"], row["dimension"]): row for row in found}
        self.assertEqual(sorted(rows), sorted((name, d) for name in names for d in (2, 10, 20)))
        for row in found:
            self.assertNotIn("rounds_per_second", row)
            self.assertGreater(row["draw_fraction_of_peak"], 0)
            self.assertLessEqual(row["draw_fraction_of_peak"], 1, row["sampler"])
        for d in (2, 10, 20):
            self.assertAlmostEqual(rows["vits2", d]["double_flops_per_draw"] / count_vits2(d), 1, places=12)
            self.assertEqual(rows["diffts", d]["float_flops_per_draw"], 3 * 2 * (d * 4 + 4 * d))
            self.assertEqual(rows["diffts", d]["double_flops_per_draw"], 9 * d**3 + 4 * (2 * 2 * d**2))
            counted = count_lints(d)     # also the d roots and divisions, and half of what is done on a diagonal
            self.assertLess(abs(rows["lints", d]["double_flops_per_draw"] - counted), 2 * d + d**2 / 2)
        text = self.succeed("bench", "--quick", "--share", *TINY, "--samplers", "vits2,smc").stdout.splitlines()
        row, unknown = ([line.split() for line in text if line.startswith(name)][0] for name in ("vits2", "smc"))
        self.assertEqual(float(row[5]), float(f"{count_vits2(2) / 1000:.3g}"))
        self.assertEqual(unknown[-1], "-")

    def test_table_and_sizes(self):
        text = self.succeed("bench", "--quick", *TINY, "--set", "policies=[ts, {name: mixts, label: five, components: 5}, linucb]",
                            "--set", "problem.dimension=[2,3]").stdout
        lines = [line.split() for line in text.splitlines()]
        rows = [line[:2] for line in lines if line and line[0] in ("ts", "five", "linucb")]
        self.assertEqual(rows, [["ts", "2"], ["five", "2"], ["linucb", "2"], ["ts", "3"], ["five", "3"], ["linucb", "3"]])

    def test_ranks_together(self):
        found = json.loads(self.succeed("bench", "--quick", "--json", *TINY, "--samplers", "ts,diffts", ranks=2).stdout)
        self.assertEqual(found["machine"]["ranks"], 2)
        self.assertEqual(len(found["rows"]), 2)

    def test_rows_by_arm(self):
        """With five arms that stay fixed a draw reads five rows, not one for each of two thousand observations, as in the rounds."""
        for row in self.bench("--samplers", "ts", "--set", "likelihood=logistic", "--set", "problem.arms=5", "--set", "problem.rounds=2000")["rows"]:
            self.assertEqual(row["observations"], 2000)
            self.assertLess(row["seconds_per_draw"], 5 / row["rounds_per_second"])     # otherwise twenty times a round

    def test_short_simulations(self):
        """The start of a simulation does not count towards a round, but must not prolong the measurement."""
        start = self.seconds()
        row, = self.bench("--samplers", "ts", "--set", "problem.rounds=2", "--seconds", "0.1")["rows"]
        self.assertEqual(row["rounds_reached"], 2)
        self.assertLess(self.seconds() - start, 100 if program.SANITIZED else 10)

    def test_folder_too_long(self):
        """A truncated path is another folder, which must stay as it was."""
        cut = self.folder
        while len(cut) < 2047:
            cut += "/" + "x" * min(200, max(1, 2047 - len(cut) - 1))
        os.makedirs(cut)
        place = os.path.join(cut, "more")
        os.mkdir(place)
        self.fail_with(4, "cannot make a temporary folder", "bench", "--samplers", "ts", environment={"TMPDIR": place})
        self.assertTrue(os.path.isdir(place))

    def test_refusals(self):
        process = program.thompson("bench", "--samplers", "difts")
        self.assertEqual(process.returncode, 2)
        self.assertIn("did you mean 'diffts'", process.stderr)
        self.fail_with(3, "only study bandit is measured", "bench", "--samplers", "ts", "--set", "study=posterior")
        self.fail_with(3, "problem.rounds", "bench", "--samplers", "ts", "--set", "problem.rounds=1")
        self.fail_with(3, "problem.arm", "bench", "--samplers", "ts", "--set", "problem.arm=5")
        self.fail_with(3, "problem.arm", "bench", "--samplers", "ts", "--set", "problem.arm=5", ranks=2)


if __name__ == "__main__":
    program.main()
