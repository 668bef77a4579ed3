"""Files that users bring: missing values and packing in NetCDF; data frames, compression, encodings and quotes in CSV; digits of too few classes."""

import gzip
import struct

import netCDF4
import numpy as np

import program
from tiny import STUDY, THETA, TinyTest

X = np.array([[1.5, 0.25], [0.5, -1], [0.75, 2], [-0.5, 1]])
Y = np.array([1.0, -2.0, 0.5, 3.0])


class Inputs(TinyTest):
    def variable(self, kind, values, attributes):
        """A history whose y has these values and attributes; the file's name."""
        path = self.path("history.nc")
        with netCDF4.Dataset(path, "w") as file:
            file.createDimension("observation", len(Y))
            file.createDimension("dim", 2)
            file.createVariable("x", "f8", ("observation", "dim"))[:] = X
            fill = attributes.get("_FillValue")
            y = file.createVariable("y", kind, ("observation",), fill_value=fill)
            y.set_auto_maskandscale(False)
            y.setncatts({name: value for name, value in attributes.items() if name != "_FillValue"})
            y[:] = np.asarray(values, kind)
        return path

    def test_missing_values(self):
        """A value that xarray or netCDF4-python would mask is never taken for a number, whatever its type."""
        for kind, attributes in (("f8", {"missing_value": -99.0}), ("f8", {"_FillValue": -99.0}), ("f8", {"valid_min": -9.0}),
                                 ("f8", {"valid_range": [-9.0, 9.0]}), ("f8", {"missing_value": [-1e9, -99.0]}), ("f4", {"missing_value": -99.0}),
                                 ("i2", {"missing_value": np.int16(-99)}), ("i4", {"_FillValue": -99}), ("i4", {"valid_min": -9}), ("i8", {"valid_range": [-9, 9]})):
            with self.subTest(kind=kind, attributes=attributes):
                self.fail_with(3, "y[2] is nan or marked as missing", *self.sample(self.variable(kind, [1, 2, -99, 3], attributes)))
        for kind, attributes in (("f8", {"valid_max": 9.0}), ("f4", {"valid_max": np.float32(0.1)})):
            self.fail_with(3, "y[2] is nan or marked as missing", *self.sample(self.variable(kind, [.1, .05, 99, -3], attributes)))
        self.fail_with(3, "y[1] is nan or marked as missing", *self.sample(self.variable("i4", [1, -2147483647, 2, 3], {})))  # never written
        for attributes in ({"_Unsigned": "true"}, {"scale_factor": 0.5}, {"add_offset": 1.0}):
            self.fail_with(3, f"is packed (attribute {[*attributes][0]})", *self.sample(self.variable("i1", [1, 2, -99, 3], attributes)))
        for attributes in ({"missing_value": "-99"}, {"valid_range": [1.0, 2.0, 3.0]}, {"valid_min": [1.0, 2.0]}):
            self.fail_with(3, f"the attribute {[*attributes][0]} of 'y' is not", *self.sample(self.variable("f8", Y, attributes)))
        for kind, attributes in (("f8", {"missing_value": -99.0}), ("f4", {"valid_range": [-2.0, 3.0]}), ("f8", {"valid_min": -2.0, "valid_max": 3.0})):
            self.succeed(*self.sample(self.variable(kind, Y, attributes)))  # nothing is missing; both limits are valid

    def test_other_readers(self):
        """The same in samples of theta, logs (integers too) and tables."""
        for name, dimensions, values in (("theta", ("sample", "dim"), X), ("context", ("event", "dim"), X)):
            with netCDF4.Dataset(self.path(f"{name}.nc"), "w") as file:
                for dimension, length in zip((*dimensions, "arm"), (4, 2, 2)):
                    file.createDimension(dimension, length)
                variable = file.createVariable(name, "f8", dimensions)
                variable.missing_value = 0.25
                variable[:] = values
                if name == "context":
                    file.createVariable("reward", "f8", ("event", "arm"))[:] = np.eye(2)[[0, 1, 0, 1]]
        self.fail_with(3, "theta[0, 1] is nan or marked as missing", *self.train(self.path("theta.nc")))
        self.fail_with(3, "context[0, 1] is nan or marked as missing", "plan", self.write("table.yaml", STUDY % "[linucb]"), "--set", "problem.family=table",
                       "--set", f"problem.file={self.path('context.nc')}")
        with netCDF4.Dataset(self.path("logs.nc"), "w") as file:
            file.createDimension("observation", 4)
            file.createDimension("dim", 2)
            task = file.createVariable("task", "i4", ("observation",), fill_value=-1)
            task.set_auto_mask(False)
            task[:] = [1, 1, -1, 2]
            file.createVariable("x", "f8", ("observation", "dim"))[:] = X
            file.createVariable("y", "f8", ("observation",))[:] = Y
        self.fail_with(3, "the variable 'task' has the value -1, which its attributes mark as missing", "train", "--logs", self.path("logs.nc"),
                       "--family", "gaussian", "-o", self.path("trained.nc"))

    def test_data_frames(self):
        """The header and the index of a data frame are numbers, but no sample and no dimension."""
        import pandas as pd
        frame, counted = pd.DataFrame(THETA), pd.DataFrame(THETA, index=range(1, 41), columns=[1, 2])
        corners = pd.DataFrame(np.sign(THETA).astype(int))
        texts = {"header": (frame.to_csv(index=False), "line 1 reads 0,1,...: this is the header"),
                 "header of one column": (frame[[0]].to_csv(index=False), "line 1 reads 0: this is the header"),
                 "header from 1": (counted.to_csv(index=False), "line 1 reads 1,2,...: this is the header"),
                 "header of integers": (corners.to_csv(index=False), "line 1 reads 0,1,...: this is the header"),
                 "index": (frame.to_csv(header=False), "column 1 has the whole numbers 0, 1, 2, ..., each once: this is the index"),
                 "index from 1": (counted.to_csv(header=False), "column 1 has the whole numbers 1, 2, 3"),
                 "index of integers": (corners.to_csv(header=False), "column 1 has the whole numbers 0, 1, 2"),
                 "shuffled index": (frame.sample(frac=1, random_state=1).to_csv(header=False), "this is the index of a data frame"),
                 "both": (frame.to_csv(), "line 1, column 1: the value is missing; a file of samples has neither a header nor an index"),
                 "named": (frame.rename(columns={0: "a", 1: "b"}).to_csv(index=False), "'a' is not a number"),
                 "R": (frame.to_csv(index=False, quoting=1), "line 1, column 1: quotes are not allowed")}
        for name, (text, sentence) in texts.items():
            with self.subTest(name):
                self.fail_with(3, sentence, *self.train(self.write("frame.csv", text)))
        for name, text in {"plain": frame.to_csv(header=False, index=False), "integers": corners.to_csv(header=False, index=False),
                           "decimal points": "0.0,1.0\n" + frame.to_csv(header=False, index=False), "one column": "0\n2\n1\n5\n",
                           "small integers": "1,2\n3,4\n5,6\n"}.items():
            with self.subTest(name):
                self.succeed(*self.train(self.write("frame.csv", text)))
        history = self.write("history.csv", pd.DataFrame(np.c_[X, Y], columns=["x1", "x2", "y"]).to_csv(index=False, quoting=2))
        self.succeed(*self.sample(history))  # a quoted header

    def test_compressed(self):
        """CSV of every kind may be compressed, and gives the same; damage is found."""
        text = "x1,x2,y\n" + "".join(f"{a},{b},{c}\n" for (a, b), c in zip(X, Y))
        logs = "task,x1,x2,y\n" + "".join(f"{i // 3},{a},{b},{a - b}\n" for i, (a, b) in enumerate(THETA))
        plain, packed = self.write("history.csv", text), self.write_bytes("history.csv.gz", gzip.compress(text.encode()))
        draws = []
        for path in (plain, packed):
            self.succeed(*self.sample(path))
            with netCDF4.Dataset(self.path("draws.nc")) as file:
                draws.append(np.array(file["theta"][:]))
        np.testing.assert_array_equal(*draws)
        with open(self.theta, "rb") as file:
            theta = file.read()
        fits = [self.succeed(*self.train(path)).stdout.split(", ")[0] for path in (self.theta, self.write_bytes("theta.csv.gz", gzip.compress(theta)))]
        self.assertEqual(*fits)
        self.succeed("train", "--logs", self.write_bytes("logs.gz", gzip.compress(logs.encode())), "--family", "gaussian", "-o", self.path("trained.nc"))
        self.fail_with(3, "is cut off: its gzip data end too early", *self.sample(self.write_bytes("cut.csv.gz", gzip.compress(text.encode())[:-12])))
        damaged = bytearray(gzip.compress(text.encode()))
        damaged[20] ^= 255
        self.fail_with(3, "is damaged", *self.sample(self.write_bytes("damaged.csv.gz", damaged)))

    def test_encodings(self):
        """A file that is not text in UTF-8 is named for what it is."""
        text = "x1,x2,y\n1,2,3\n"
        for data, name in ((text.encode("utf-16"), "UTF-16 (little endian)"), (text.encode("utf-16-be"), "UTF-16 (big endian)"),
                           (text.encode("utf-32"), "UTF-32 (little endian)"), (b"PK\3\4rest", "a zip archive"), (b"BZh91AY", "bzip2 data"),
                           (b"\xfd7zXZ\0", "xz data"), (b"\x93NUMPY\1\0", "a NumPy file"), (b"PAR1....", "a Parquet file"),
                           (gzip.compress(gzip.compress(text.encode())), "gzip data")):
            with self.subTest(name):
                path = self.write_bytes("odd.csv", data)
                self.fail_with(3, f"odd.csv: this is {name}", *self.sample(path))
                self.fail_with(3, f"odd.csv: this is {name}", *self.train(path))
                self.fail_with(3, f"odd.csv: this is {name}", "train", "--logs", path, "-o", self.path("trained.nc"))
        self.fail_with(3, "this is UTF-16", "prepare", "movielens", self.write_bytes("ratings.csv", "userId,movieId,rating\n".encode("utf-16")), "-o", self.path("m.nc"))
        self.succeed(*self.sample(self.write_bytes("mark.csv", b"\xef\xbb\xbf" + text.encode())))
        self.prior = self.write_bytes("packed.nc", gzip.compress(b"x"))
        self.fail_with(3, "packed.nc is not a NetCDF file, but gzip data", *self.sample(self.path("mark.csv")))

    def test_quoted_ratings(self):
        """Ratings of a CSV file may be quoted, as R and spreadsheets write them."""
        rows = [(user, movie, (user * movie) % 5 + 1) for user in range(1, 9) for movie in range(1, 7)]
        forms = ("userId,movieId,rating\n" + "".join(f"{u},{m},{r}\n" for u, m, r in rows),
                 '"userId","movieId","rating"\n' + "".join(f"{u},{m},{r}\n" for u, m, r in rows),
                 '"title","userId","movieId","rating"\n' + "".join(f'"a ""b"", {m}","{u}","{m}","{r}"\n' for u, m, r in rows))
        hashes = set()
        for form, text in enumerate(forms):
            self.succeed("prepare", "movielens", self.write("ratings.csv", text), "-o", self.path(f"{form}.nc"), "--option", "dimension=2")
            with netCDF4.Dataset(self.path(f"{form}.nc")) as file:
                hashes.add(file.ratings_sha256)
        self.assertEqual(len(hashes), 1)
        self.fail_with(3, "field 1 lacks its closing quote", "prepare", "movielens", self.write("ratings.csv", '"userId,movieId,rating\n'), "-o", self.path("m.nc"))

    def test_few_classes(self):
        """Digits of too few classes are refused before the classifier is trained."""
        paths = []
        for name, count in (("train", 120), ("t10k", 30)):
            images, labels = np.zeros((count, 4, 4), np.uint8), (np.arange(count) % 9).astype(np.uint8)
            paths.append(self.write_bytes(f"{name}-images", struct.pack(">iiii", 2051, count, 4, 4) + images.tobytes()))
            paths.append(self.write_bytes(f"{name}-labels", struct.pack(">ii", 2049, count) + labels.tobytes()))
        process = program.thompson("prepare", "mnist", *paths, "-o", self.path("mnist.nc"))
        self.assertEqual(process.returncode, 3)
        self.assertIn("label 9 has 0 rows", process.stderr)
        self.assertNotIn("epoch", process.stderr)

if __name__ == "__main__":
    program.main()
