"""`thompson prepare movielens`: the same vectors from every form of the ratings and on any number of ranks; least squares by NumPy;
a study on them; the real ratings if THOMPSON_DATA has them."""

import os
import unittest

import netCDF4
import numpy as np
import program

SAMPLES = os.path.join(program.SOURCE, "data", "samples")
FORMS = ["ratings_1m.dat", "ratings_1m_no_timestamp.dat.gz", "ratings_100k.data", "ratings.csv"]
REAL = os.path.join(os.environ.get("THOMPSON_DATA", ""), "movielens-1m")


def real_ratings():
    """The file of real ratings, or None."""
    for name in ("ratings.dat", "ratings.dat.gz", "ratings_no_timestamp.dat.gz"):
        if "THOMPSON_DATA" in os.environ and os.path.isfile(os.path.join(REAL, name)):
            return os.path.join(REAL, name)
    return None


class Movielens(program.ProgramTest):
    def prepare(self, inputs, name="out.nc", ranks=0, **options):
        chosen = [text for key, value in options.items() for text in ("--option", f"{key}={value}")]
        process = self.succeed("prepare", "movielens", *inputs, "-o", self.path(name), *chosen, ranks=ranks)
        return process, self.path(name)

    def sample(self, form=0):
        return [os.path.join(SAMPLES, FORMS[form])]

    def test_every_form(self):
        _, reference = self.prepare(self.sample())
        for form in range(1, len(FORMS)):
            _, path = self.prepare(self.sample(form), name=f"{form}.nc")
            self.assert_same_results(reference, path)

    def test_any_number_of_ranks(self):
        reference = None
        for ranks in (0, 1, 2, 3):
            process, path = self.prepare(self.sample(), name=f"{ranks}.nc", ranks=ranks)
            reference = reference or path
            self.assert_same_results(reference, path)
            self.assertEqual(process.stdout.count("433 ratings of "), 1)
            self.assertEqual(process.stderr.count("sweep 50: root mean squared residual"), 1)

    def test_parts_of_the_ratings_in_any_order(self):
        _, reference = self.prepare(self.sample())
        with open(self.sample()[0], encoding="utf-8") as file:
            lines = file.readlines()
        first, second = self.write("a.dat", "".join(lines[200:])), self.write("b.dat", "".join(lines[199::-1]))
        _, path = self.prepare([first, second], name="parts.nc")
        self.assert_same_results(reference, path)

    def test_least_squares(self):
        """The movie vectors are the last to be updated: NumPy's ridge regression on the user vectors reproduces them."""
        process, path = self.prepare(self.sample(), dimension=3, ridge=0.5, sweeps=20)
        rows = np.loadtxt(os.path.join(SAMPLES, FORMS[3]), delimiter=",", skiprows=1)[:, :3]
        with netCDF4.Dataset(path) as file:
            theta, features = file["theta"][...].data, file["features"][...].data
            item = np.searchsorted(file["item_id"][...].data, rows[:, 1])
            user = np.searchsorted(file["arm_id"][...].data, rows[:, 0])
            np.testing.assert_array_equal(file["item_id"][...].data[item], rows[:, 1])
            np.testing.assert_array_equal(file["arm_id"][...].data[user], rows[:, 0])
            mean, noise, rmse = file.rating_mean, file.noise, file["rmse"][...].data
            self.assertAlmostEqual(file.rmse_of_mean, rows[:, 2].std(), places=12)
            self.assertEqual((file.ratings, file.ridge), (len(rows), 0.5))
        self.assertEqual((theta.shape[1], features.shape[1], len(rmse)), (3, 3, 20))
        self.assertAlmostEqual(mean, rows[:, 2].mean(), places=12)
        y = rows[:, 2] - mean
        for i, vector in enumerate(theta):
            x = features[user[item == i]]
            expected = np.linalg.solve(x.T @ x + 0.5 * np.eye(3), x.T @ y[item == i])
            np.testing.assert_allclose(vector, expected, atol=1e-11)
        residual = np.sqrt(((y - (features[user] * theta[item]).sum(axis=1)) ** 2).mean())
        self.assertAlmostEqual(rmse[-1], residual, places=12)
        self.assertEqual(noise, rmse[-1])
        self.assertIn(f"mean rating alone {rows[:, 2].std():.4f}, factorisation of rank 3 {residual:.4f}", process.stdout)

    def test_users(self):
        """Held-out users are tasks: their theta* is NumPy's ridge regression on the movies' vectors, which are fitted without their
        ratings; the ratings of the others are the logs."""
        inputs = self.sample(3)
        process, path = self.prepare(inputs, tasks="users", dimension=3, ridge=0.5, sweeps=20, test_fraction=0.25)
        _, other = self.prepare(inputs, name="ranks.nc", ranks=3, tasks="users", dimension=3, ridge=0.5, sweeps=20, test_fraction=0.25)
        self.assert_same_results(path, other)
        rows = np.loadtxt(inputs[0], delimiter=",", skiprows=1)[:, :3]
        with netCDF4.Dataset(path) as file:
            users, movies, held = file["item_id"][...].data, file["arm_id"][...].data, file["held_out"][...].data == 1
            theta, features, mean = file["theta"][...].data, file["features"][...].data, file.rating_mean
            task, x, y = (file[name][...].data for name in ("task", "x", "y"))
        self.assertEqual((sorted(users), held.sum()), (sorted(set(rows[:, 0])), round(0.25 * len(users))))
        own = np.isin(rows[:, 0], users[held])
        self.assertAlmostEqual(mean, rows[~own, 2].mean(), places=12)
        np.testing.assert_array_equal(movies, np.unique(rows[~own, 1]))
        logs = rows[~own][np.lexsort((rows[~own, 1], rows[~own, 0]))]
        np.testing.assert_array_equal(task, logs[:, 0])
        np.testing.assert_array_equal(x, features[np.searchsorted(movies, logs[:, 1])])
        np.testing.assert_allclose(y, logs[:, 2] - mean, atol=1e-12)
        for user, vector in zip(users[held], theta[held]):
            rated = rows[(rows[:, 0] == user) & np.isin(rows[:, 1], movies)]
            phi = features[np.searchsorted(movies, rated[:, 1])]
            expected = np.linalg.solve(phi.T @ phi + 0.5 * np.eye(3), phi.T @ (rated[:, 2] - mean))
            np.testing.assert_allclose(vector, expected, atol=1e-11)
        self.assertIn(f"{held.sum()} more users are held out", process.stdout)
        # Without the ratings of held-out users, the movies are the same to the last bit.
        with open(inputs[0], encoding="utf-8") as file:
            lines = file.readlines()
        others = self.write("others.csv", lines[0] + "".join(line for line, gone in zip(lines[1:], own) if not gone))
        _, alone = self.prepare([others], name="alone.nc", dimension=3, ridge=0.5, sweeps=20)
        with netCDF4.Dataset(alone) as file:
            np.testing.assert_array_equal(features, file["theta"][...].data)
            np.testing.assert_array_equal(theta[~held], file["features"][...].data)

    def test_seed(self):
        _, path = self.prepare(self.sample(), sweeps=1)
        self.succeed("prepare", "movielens", *self.sample(), "-o", self.path("other.nc"), "--seed", "2", "--option", "sweeps=1")
        with netCDF4.Dataset(path) as one, netCDF4.Dataset(self.path("other.nc")) as two:
            self.assertEqual((one.seed, two.seed), (1, 2))
            self.assertFalse(np.allclose(one["theta"][...], two["theta"][...]))

    def test_wrong_command_line(self):
        for arguments in (["prepare"], ["prepare", "imagenet", "x", "-o", "y.nc"], ["prepare", "movielens", "-o", "y.nc"],
                          ["prepare", "movielens", "x"]):
            self.assertEqual(program.thompson(*arguments).returncode, 2, arguments)
        help_text = self.succeed("prepare", "--help").stdout
        for part in ("movielens", "mnist", "ridge: a number in", "-o, --output=FILE"):
            self.assertIn(part, help_text)

    def test_wrong_input(self):
        out = ["-o", self.path("out.nc")]
        good = self.sample()[0]
        bad = self.write("bad.dat", "1::2::3\n1::3::many\n")
        for ranks in (0, 2):
            self.fail_with(3, f"{bad}:2: the rating is 'many'", "prepare", "movielens", bad, *out, ranks=ranks)
            self.fail_with(3, f"{good}:1: user ", "prepare", "movielens", good, good, *out, ranks=ranks)
            self.fail_with(4, "absent.dat", "prepare", "movielens", self.path("absent.dat"), *out, ranks=ranks)
            self.fail_with(3, "'rigde'", "prepare", "movielens", good, *out, "--option", "rigde=1", ranks=ranks)
            self.fail_with(3, "ridge", "prepare", "movielens", good, *out, "--option", "ridge=0", ranks=ranks)
        self.fail_with(3, "1 field, expected 4: user::movie::rating", "prepare", "movielens", self.sample(2)[0], *out, "--option", "format=1m")
        with open(self.sample(1)[0], "rb") as file, open(self.path("cut.gz"), "wb") as cut:
            cut.write(file.read()[:600])
        self.fail_with(3, "is cut off", "prepare", "movielens", self.path("cut.gz"), *out)
        self.fail_with(4, "none/out.nc", "prepare", "movielens", good, "-o", self.path("none/out.nc"))
        self.assertFalse(os.path.exists(self.path("out.nc")))

    def test_study(self):
        """A bandit on the vectors: the same for any number of ranks, and informed policies beat chance."""
        _, path = self.prepare(self.sample())
        study = self.write("study.yaml", f"""
name: made
runs: 24
block: 8
problem: {{family: embedding, file: {path}, arms: 5, rounds: 60, resample_arms: true}}
policies: [diffts, ts, tuned_ts, random, oracle]
prior: {{train_samples: all, replicates: 2, stages: 6, training_steps: 40, hidden: [8, 8]}}
""")
        self.succeed("run", study, "-o", self.path("one"))
        self.succeed("run", study, "-o", self.path("two"), ranks=2)
        self.assert_same_results(self.path("one/results.nc"), self.path("two/results.nc"))
        with netCDF4.Dataset(self.path("one/results.nc")) as file:
            diffts, ts, _, chance, oracle = file["regret_mean"][0, :, -1]
            self.assertEqual(oracle, 0)
            self.assertLess(diffts, 0.8 * chance)
            self.assertLess(ts, 0.8 * chance)
            self.assertIn("noise: auto", file.config)
        self.fail_with(3, "not a NetCDF file", "run", study, "-o", self.path("three"), "--set",
                       f"problem.file={self.sample()[0]}")

    @unittest.skipUnless(real_ratings(), "THOMPSON_DATA does not point at a folder with movielens-1m/")
    def test_real_ratings(self):
        process, path = self.prepare([real_ratings()], ranks=2)
        self.assertIn("1000209 ratings of 3706 movies by 6040 users, mean 3.581564", process.stdout)
        with netCDF4.Dataset(path) as file:
            self.assertEqual(file["theta"].shape, (3706, 5))
            self.assertEqual(file["features"].shape, (6040, 5))
            # Mean and standard deviation from how often each star was given: 56174, 107557, 261197, 348971, 226310.
            self.assertAlmostEqual(file.rating_mean, 3.5815644530, places=9)
            self.assertAlmostEqual(file.rmse_of_mean, 1.1171012869, places=9)
            rmse = file["rmse"][...].data
            self.assertLess(rmse[-1], 0.82)
            self.assertLess(rmse[-2] - rmse[-1], 1e-5)  # converged
            self.assertEqual(file.noise, rmse[-1])


if __name__ == "__main__":
    program.main()
