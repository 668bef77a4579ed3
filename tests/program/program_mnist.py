"""`thompson prepare mnist`: artificial digits in every form of file and on any number of ranks; errors in bad files; a study on
the embeddings; the real digits if THOMPSON_DATA has them."""

import gzip
import os
import shutil
import struct
import unittest

import netCDF4
import numpy as np
import program

NAMES = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]
SAMPLE = os.path.join(program.SOURCE, "data", "samples", "mnist")
REAL = os.path.join(os.environ.get("THOMPSON_DATA", ""), "mnist")


def files_of(folder):
    """The four files in a folder, compressed or not; None if one is missing."""
    found = [next((path for path in (os.path.join(folder, name), os.path.join(folder, name + ".gz")) if os.path.isfile(path)), None)
             for name in NAMES]
    return None if None in found else found


def unpacked(path):
    with open(path, "rb") as file:
        data = file.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


class Mnist(program.ProgramTest):
    def prepare(self, inputs, name="out.nc", ranks=0, **options):
        chosen = [text for key, value in options.items() for text in ("--option", f"{key}={value}")]
        process = self.succeed("prepare", "mnist", *inputs, "-o", self.path(name), *chosen, ranks=ranks)
        return process, self.path(name)

    def write_bytes(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def read(self, path, *names):
        with netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            return [file[name][...] for name in names]

    def test_every_form(self):
        """Compressed or not, under other names, in another order, on several ranks: all give the same file."""
        _, reference = self.prepare(files_of(SAMPLE), samples=20)
        plain = [self.write_bytes(name, unpacked(path)) for name, path in zip(NAMES, files_of(SAMPLE))]
        packed = [self.write_bytes(name + ".gz", gzip.compress(unpacked(path))) for name, path in zip(NAMES, files_of(SAMPLE))]
        nameless = [shutil.copy(path, self.path(str(i))) for i, path in enumerate(packed)]
        forms = [(plain, 0), (packed[::-1], 1), (nameless[2:] + plain[:2], 2), (nameless[1:] + packed[:1], 3)]
        for form, (inputs, ranks) in enumerate(forms):
            process, path = self.prepare(inputs, name=f"{form}.nc", ranks=ranks, samples=20)
            self.assert_same_results(reference, path)
            self.assertEqual(process.stdout.count("300 training and 100 test digits, 20 linear models"), 1)
            self.assertEqual(process.stderr.count("start 1, epoch 10: mean cross entropy"), 1)

    def test_embeddings_and_models(self):
        process, path = self.prepare(files_of(SAMPLE), epochs=100, samples=500)
        features, theta, label, positive = self.read(path, "features", "theta", "label", "positive_label")
        self.assertEqual((features.shape, theta.shape), ((400, 8), (500, 8)))
        labels = [np.frombuffer(unpacked(path)[8:], np.uint8) for path in files_of(SAMPLE)[1::2]]
        np.testing.assert_array_equal(label, np.concatenate(labels))
        self.assertGreaterEqual(features.min(), 0)
        self.assertTrue(((features > 0).mean(axis=0) >= 0.01).all())
        self.assertAlmostEqual((features ** 2).sum(axis=1).mean(), 1, places=12)
        with netCDF4.Dataset(path) as file:
            self.assertEqual((file.noise, file.training_digits, file.test_digits, file.epochs, file.units_alive), (1, 300, 100, 100, 8))
            self.assertGreater(file.test_accuracy, 0.9)
            self.assertIn(f"test accuracy of the classifier {file.test_accuracy:.4f} (100 epochs); 8 of 8", process.stdout)
        # 20 points of reward 1 and -1: the models must predict the same for the other digits.
        reward, own = features @ theta.T, label[:, None] == positive[None, :]
        self.assertGreater(reward[own].mean(), 0.5)
        self.assertLess(reward[~own].mean(), -0.4)
        # Models of one label are close together: the variance between labels is most of the variance.
        centre = np.array([theta[positive == value].mean(axis=0) for value in range(10)])[positive]
        self.assertGreater(((centre - theta.mean(axis=0)) ** 2).sum(), ((theta - centre) ** 2).sum())

    def test_options(self):
        _, path = self.prepare(files_of(SAMPLE), samples=30)
        _, raw = self.prepare(files_of(SAMPLE), name="raw.nc", samples=30, scale="none")
        _, stiff = self.prepare(files_of(SAMPLE), name="stiff.nc", samples=30, ridge=100)
        self.succeed("prepare", "mnist", *files_of(SAMPLE), "-o", self.path("other.nc"), "--option", "samples=30", "--seed", "2")
        features, theta, positive = self.read(path, "features", "theta", "positive_label")
        (raw_features, raw_theta), (stiff_theta,) = self.read(raw, "features", "theta"), self.read(stiff, "theta")
        with netCDF4.Dataset(path) as file:
            np.testing.assert_allclose(features, file.scale * raw_features, rtol=1e-12)
        np.testing.assert_allclose(raw_features @ raw_theta.T, features @ theta.T, atol=1e-10)
        # A ridge so large that X'X does not matter: theta is X'y / (r m), with m = 1; then |theta| <= 20 max |x| / r.
        self.assertLessEqual(np.linalg.norm(stiff_theta, axis=1).max(), 20 * np.linalg.norm(features, axis=1).max() / 100)
        other_features, other_positive = self.read(self.path("other.nc"), "features", "positive_label")
        self.assertFalse(np.allclose(features, other_features))
        self.assertFalse(np.array_equal(positive, other_positive))

    def test_wrong_input(self):
        good, out = files_of(SAMPLE), ["-o", self.path("out.nc")]
        data = [unpacked(path) for path in good]
        bad_label = self.write_bytes("train-labels", data[1][:50] + b"\x0a" + data[1][51:])
        for ranks in (0, 2):
            self.fail_with(3, f"{bad_label}: label 42, at byte 50, is 10; labels are 0 to 9", "prepare", "mnist", good[0], bad_label,
                           *good[2:], *out, ranks=ranks)
            self.fail_with(3, "3 files were given; four are needed", "prepare", "mnist", *good[:3], *out, ranks=ranks)
            self.fail_with(4, "absent", "prepare", "mnist", *good[:3], self.path("absent"), *out, ranks=ranks)
            self.fail_with(3, "'epoch'", "prepare", "mnist", *good, *out, "--option", "epoch=1", ranks=ranks)
        few = struct.pack(">II", 2049, 300) + bytes(i % 9 for i in range(300))
        nines = struct.pack(">II", 2049, 100) + bytes([9] * 5 + [0] * 95)
        self.fail_with(3, "label 9 has 5 rows; each label needs at least 10", "prepare", "mnist", good[0], self.write_bytes("train-few", few), good[2],
                       self.write_bytes("t10k-nines", nines), *out)
        short = self.write_bytes("train-short", struct.pack(">II", 2049, 299) + few[8:-1])
        self.fail_with(3, "300 images, but", "prepare", "mnist", good[0], short, *good[2:], *out)
        cut = self.write_bytes("t10k-cut", data[2][:5000])
        self.fail_with(3, "is cut off: it ends at byte 5000", "prepare", "mnist", *good[:2], cut, good[3], *out)
        self.fail_with(3, "is not an IDX file", "prepare", "mnist", *good[:3], self.write("t10k-text", "no digits at all"), *out)
        with open(good[0], "rb") as file:
            packed = file.read()
        cut, bad = self.write_bytes("train-cut", packed[:2000]), self.write_bytes("train-bad", packed[:-6] + b"xx" + packed[-4:])
        self.fail_with(3, "is cut off: its gzip data end too early", "prepare", "mnist", cut, *good[1:], *out)
        self.fail_with(3, "is damaged", "prepare", "mnist", bad, *good[1:], *out)
        self.fail_with(4, "none/out.nc", "prepare", "mnist", *good, "-o", self.path("none/out.nc"))
        self.assertFalse(os.path.exists(self.path("out.nc")))

    def test_studies(self):
        """The studies of Figure 5, made small, on the artificial digits: informed policies beat chance."""
        _, path = self.prepare(files_of(SAMPLE), epochs=100, samples=1000)
        small = ["runs=64", "block=32", "problem.rounds=60", "prior.replicates=2", "prior.stages=10", "prior.training_steps=200",
                 "policies=[diffts, ts, tuned_ts, random, oracle]", f"problem.file={path}"]
        for job in ("figure5_linear", "figure5_logistic"):
            study = os.path.join(program.SOURCE, "jobs", f"{job}.yaml")
            self.succeed("run", study, "-o", self.path(job), *(text for key in small for text in ("--set", key)))
            with netCDF4.Dataset(self.path(f"{job}/results.nc")) as file:
                diffts, ts, tuned, chance, oracle = file["regret_mean"][0, :, -1]
                self.assertEqual(oracle, 0)
                self.assertLess(max(diffts, ts, tuned), 0.8 * chance)

    @unittest.skipUnless("THOMPSON_DATA" in os.environ and files_of(REAL), "THOMPSON_DATA does not point at a folder with mnist/")
    def test_real_digits(self):
        process, path = self.prepare(files_of(REAL), epochs=5)
        self.assertIn("60000 training and 10000 test digits, 10000 linear models", process.stdout)
        features, theta, label, positive = self.read(path, "features", "theta", "label", "positive_label")
        self.assertEqual((features.shape, theta.shape), ((70000, 8), (10000, 8)))
        # How often each digit was written, as published with the set.
        self.assertEqual(np.bincount(label[:60000]).tolist(), [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949])
        self.assertEqual(np.bincount(label[60000:]).tolist(), [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009])
        with netCDF4.Dataset(path) as file:
            self.assertGreater(file.test_accuracy, 0.97)
            self.assertEqual(file.units_alive, 8)
        self.assertGreater(np.linalg.matrix_rank(features), 7)
        reward, own = features[::100] @ theta.T, label[::100, None] == positive[None, :]
        self.assertGreater((reward[own] > 0).mean(), 0.95)
        self.assertGreater((reward[~own] < 0).mean(), 0.8)


if __name__ == "__main__":
    program.main()
