"""Operators of inverse problems: exact draws against the closed form in NumPy, in one study that sweeps over them, on any ranks; refusals."""

import json

import netCDF4
import numpy as np

import program

STUDY = """
name: operators
study: posterior
problem: {family: inverse, theta: gaussian, operator: mask, noise: 0.5, sample_sizes: arms, dimension: 16}
runs: 64
block: 32
draws: 50
metrics: [distance, sd_ratio]
prior: {standardise: false}
policies: [{name: exact, prior: exact}, {name: localised, prior: exact}]
sweep:
"""
NOISE = 0.5


def blur(side, width):
    """The matrix of a circular Gaussian blur, from the transforms of pictures of one pixel."""
    place = np.arange(side)
    line = sum(np.exp(-0.5 * ((place + turn * side) / width) ** 2) for turn in range(-60, 61))
    spectrum = np.fft.fft2(np.outer(line, line) / line.sum() ** 2)
    pictures = np.eye(side * side).reshape(-1, side, side)
    return np.fft.ifft2(np.fft.fft2(pictures) * spectrum).real.reshape(side * side, -1).T


def mean_distance(matrix, rng):
    """The mean of |draw - theta*|, whose difference is N(0, 2 C) with the covariance C of theta* given y."""
    values = np.linalg.svd(matrix, compute_uv=False)
    variance = np.ones(matrix.shape[1])
    variance[:len(values)] = 1 / (1 + (values / NOISE) ** 2)
    lengths = np.sqrt((2 * variance * rng.normal(size=(20000, len(variance))) ** 2).sum(axis=1))
    return lengths.mean()


class Operators(program.ProgramTest):
    def write_matrix(self, name, matrix):
        with netCDF4.Dataset(self.path(name), "w") as file:
            for dimension, size in zip(("observation", "dim"), matrix.shape):
                file.createDimension(dimension, size)
            file.createVariable("a", "f8", ("observation", "dim"))[:] = matrix
        return self.path(name)

    def results(self, folder, text, **options):
        self.succeed("run", self.write("study.yaml", text), "-o", self.path(folder), "--progress", "none", **options)
        with netCDF4.Dataset(self.path(f"{folder}/results.nc")) as file:
            self.assertTrue((file["status"][...] == 1).all())
            return {name: np.ma.filled(file[name][...], np.nan) for name in ("distance", "sd_ratio", "sample_size")}

    def test_closed_form(self):
        rng = np.random.default_rng(5)
        for d in (2, 36):
            own = rng.normal(size=(d // 2 + 1, d))
            matrices = {"mask, 0.25": np.eye(d)[:max(1, d // 4)], "file, 0.5": own}
            if d > 2:
                matrices |= {"blur, 0.5": blur(int(d ** 0.5), 1.3)}
            words = [name.split(", ") for name in matrices]
            sweep = {"problem.operator": [operator for operator, _ in words], "problem.observed": [share for _, share in words],
                     "problem.blur_width": ["1.3" if operator == "blur" else "1" for operator, _ in words],
                     "problem.operator_file": [self.write_matrix("a.nc", own) if operator == "file" else "null" for operator, _ in words]}
            text = STUDY.replace("dimension: 16", f"dimension: {d}") + "  zip: true\n" + "".join(f"  {key}: [{', '.join(values)}]\n" for key, values in sweep.items())
            found = self.results(f"dimension_{d}", text)
            for setting, (name, matrix) in enumerate(matrices.items()):
                expected = mean_distance(matrix, rng)
                for policy in range(2):
                    values = found["distance"][setting, policy]
                    values = values[np.isfinite(values)]  # the axis has a number of observations for each operator
                    self.assertEqual(len(values), 64)
                    error = np.hypot(values.std(ddof=1) / len(values) ** 0.5, 0.005 * expected)  # that of `expected` is below 0.5%
                    self.assertLess(abs(values.mean() - expected), 5 * error, (d, name, policy))

    def test_ranks(self):
        """The same numbers on one and on two ranks, with matrices of one rank and with those that both share."""
        text = (STUDY + "  problem.operator: [spectrum, mask, blur]\n").replace("runs: 64", "runs: 6")
        one, two = self.results("one", text), self.results("two", text, ranks=2)
        for name, values in one.items():
            self.assertEqual(values.tobytes(), two[name].tobytes())
        spread = self.results("spread", text + "linear_algebra: {distributed_from: 16}\n", ranks=2)
        np.testing.assert_allclose(spread["distance"].mean(axis=2), one["distance"].mean(axis=2), rtol=0.2)  # 300 other draws of the same posteriors

    def test_plan(self):
        """Memory of matrices that are spread depends on the rows of A: 4 matrices of 16 x 16, not of the default of 100 arms."""
        study = self.write("study.yaml", STUDY.replace("sweep:\n", "draws: 2\nreference_draws: 2\nlinear_algebra: {distributed_from: 16}\n").replace("draws: 50\n", ""))
        self.assertEqual(json.loads(self.succeed("plan", study, "--json").stdout)["shared_matrix_bytes"], 4 * 16 * 16 * 8)

    def test_refused(self):
        matrix = self.write_matrix("a.nc", np.ones((2, 3)))
        for change, sentence in (("problem.operator=file", "needs problem.operator_file"), ("problem.observed=[16]", "coordinate 16"),
                                 ("problem.observed=0", "value '0' is out of range; allowed: a list of integers, or a number in [1e-12, 1]"),
                                 ("problem.observed=[0.25,0.5]", "'0.25' is a real number; write an integer"), ("sweep.problem.observed=[[0,1],[2]]", "lists cannot be swept"),
                                 ("problem.operator=blurr", "did you mean 'blur'?"), ("problem.arms=3", "mask has 8 rows")):
            self.fail_with(3, sentence, "run", self.write("study.yaml", STUDY.replace("sweep:\n", "")), "-o", self.path("no"), "--set", change)
        self.fail_with(3, "'a' has 3 columns, but theta* has 16 dimensions", "run", self.write("study.yaml", STUDY.replace("sweep:\n", "")), "-o", self.path("no"),
                       "--set", "problem.operator=file", "--set", f"problem.operator_file={matrix}")


if __name__ == "__main__":
    program.main()
