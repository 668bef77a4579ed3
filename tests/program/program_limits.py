"""Files that declare more than they hold, and values that no arithmetic can handle: refused in one sentence, with status 3, before memory is allocated."""

import os
import pathlib
import resource
import subprocess
import time
import unittest

import netCDF4
import numpy as np

import program

MEMORY = 1 << 30  # bytes of address space; the program alone uses a quarter of it
MANY = 50000


def limited(*arguments):
    """Run the program with little address space. Sanitizers reserve terabytes of it, so with them only the sentence is checked."""
    environment = dict(os.environ, OPENBLAS_NUM_THREADS="1")
    def limit():
        if not program.SANITIZED:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    return subprocess.run([program.PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=program.PATIENCE, env=environment, preexec_fn=limit, check=False)


class Threads(program.ProgramTest):
    @unittest.skipIf(program.SANITIZED, "sanitizers have threads of their own")
    @unittest.skipIf(len(os.sched_getaffinity(0)) == 1, "on one processor OpenBLAS has one thread, whatever it is told")
    def test_blas_has_one(self):
        """Without settings in the environment the main thread does all the work, on any number of processors. (The existence of other threads means nothing:
        they are created before main, spin for up to a tenth of a second, and sleep.)"""
        environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
        ticks = {}
        with subprocess.Popen([program.PROGRAM, "bench", "--samplers", "ts", "--seconds", "2", "--set", "problem.dimension=200", "--set", "runs=4", "--set", "block=4"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment) as process:
            while process.poll() is None:
                for path in pathlib.Path(f"/proc/{process.pid}/task").glob("*/stat"):
                    try:
                        ticks[path.parent.name] = sum(map(int, path.read_text(encoding="utf-8").rsplit(")", 1)[1].split()[11:13]))
                    except OSError:  # it has ended
                        pass
                time.sleep(0.02)
        self.assertEqual(process.returncode, 0)
        main = ticks.pop(str(process.pid))
        self.assertGreater(main, 0)
        self.assertLess(sum(ticks.values()), 0.05 * main, ticks)


class Limits(program.ProgramTest):
    @unittest.skipIf(program.SANITIZED, "sanitizers reserve terabytes of address space")
    def test_of_the_shell(self):
        """Limits that are too low to start with: one sentence and exit status 4, where libraries would spin, crash or be silent. Limits that just suffice work.
        With less than 300 MB OpenBLAS 0.3.29 spins, and with 64 KiB of stack it crashes, before the program itself begins."""
        for option, too_low, enough in (("v", 400000, 512 * 1024), ("s", 512, 1024), ("n", 8, 32)):
            for limit, code in ((too_low, 4), (enough, 0)):
                process = subprocess.run(["bash", "-c", f'ulimit -{option} {limit}; exec "$0" "$@"', program.PROGRAM, "run", self.study, "-o", self.path(option)],
                                         capture_output=True, text=True, timeout=program.PATIENCE, check=False)
                self.assertEqual(process.returncode, code, f"ulimit -{option} {limit}: {process.stderr}")
                if code:
                    self.assertEqual(process.stderr.count("\n"), 1, process.stderr)
                    self.assertIn(f"(ulimit -{option})", process.stderr)


class Declared(program.ProgramTest):
    """Variables that are declared and never written take no space in a netCDF-4 file."""

    def setUp(self):
        super().setUp()
        self.history = self.write("history.csv", "x1,x2,y\n1,0,1\n")
        self.prior = self.path("good.nc")
        with netCDF4.Dataset(self.prior, "w") as file:
            file.prior = "gaussian"
            for name, size in (("component", 1), ("dim", 2), ("dim2", 2)):
                file.createDimension(name, size)
            file.createVariable("weight", "f8", ("component",))[:] = 1
            file.createVariable("mean", "f8", ("component", "dim"))[:] = 0
            file.createVariable("covariance", "f8", ("component", "dim", "dim2"))[:] = np.eye(2)

    def declare(self, dimensions, variables, written=None, **attributes):
        path = self.path("large.nc")
        with netCDF4.Dataset(path, "w") as file:
            file.setncatts(attributes)
            for name, size in dimensions.items():
                file.createDimension(name, size)
            for name, axes in variables.items():
                file.createVariable(name, "f8", axes, zlib=True)
            for name, value in (written or {}).items():
                file[name][:] = value
        self.assertLess(os.path.getsize(path), 1 << 20)
        return path

    def refuse(self, part, *arguments):
        process = limited(*arguments)
        self.assertEqual(process.returncode, 3, process.stderr)
        self.assertIn(part, process.stderr)
        self.assertIn("large.nc: ", process.stderr)
        self.assertEqual(process.stderr.count("\n"), 1, process.stderr)

    def sample(self, prior):
        return "sample", "--prior", prior, "--data", self.history, "--sampler", "ts", "-o", self.path("draws.nc")

    def test_the_limit_is_enough_for_the_program(self):
        process = limited(*self.sample(self.prior))
        self.assertEqual(process.returncode, 0, process.stderr)

    def test_closed_form_prior(self):
        closed = {"weight": ("component",), "mean": ("component", "dim"), "covariance": ("component", "dim", "dim2")}
        for kind in ("gaussian", "mixture"):
            path = self.declare({"component": 1, "dim": MANY, "dim2": MANY}, closed, {"weight": 1, "mean": 0}, prior=kind)
            self.refuse(f"the variable 'covariance' has shape (1, {MANY}, {MANY}), {8 * MANY**2} bytes, but the file has {os.path.getsize(path)}",
                        *self.sample(path))

    def test_diffusion_prior(self):
        variables = {name: ("stage",) for name in ("alpha", "loss")} | {name: ("dim",) for name in ("shift", "scale")}
        variables |= {"weight_1": ("stage", "units_1", "dim"), "weight_2": ("stage", "dim", "units_1"), "bias_1": ("stage", "units_1"), "bias_2": ("stage", "dim")}
        path = self.declare({"stage": 1, "dim": MANY, "units_1": 1}, variables, dict.fromkeys(variables, 0.5), prior="diffusion")
        self.refuse(f"a diffusion prior in {MANY} dimensions; allowed: 1 to 2048", *self.sample(path))
        path = self.declare({"stage": 1, "dim": 2000, "units_1": 60000}, variables, prior="diffusion")
        self.refuse("the variable 'weight_1' has shape (1, 60000, 2000)", *self.sample(path))

    def test_samples_and_history(self):
        path = self.declare({"sample": MANY, "dim": MANY}, {"theta": ("sample", "dim")})
        self.refuse("the variable 'theta' has shape", "train", "--theta", path, "-o", self.path("prior.nc"))
        path = self.declare({"observation": MANY, "dim": MANY}, {"x": ("observation", "dim"), "y": ("observation",)})
        self.refuse("the variable 'x' has shape", "sample", "--prior", self.prior, "--data", path, "--sampler", "ts", "-o", self.path("draws.nc"))

    def test_embedding(self):
        path = self.declare({"item": MANY, "arm": 3, "dim": MANY}, {"theta": ("item", "dim"), "features": ("arm", "dim")})
        self.refuse("the variable 'theta' has shape", "run", self.study, "-o", self.path("out"), "--set", "problem.family=embedding", "--set",
                    f"problem.file={path}", "--set", "policies=[ts]", "--set", "problem.theta=cross")

    def test_chunk_larger_than_the_variable(self):
        path = self.path("large.nc")
        with netCDF4.Dataset(path, "w") as file:
            file.createDimension("sample", None)
            file.createDimension("dim", 2)
            theta = file.createVariable("theta", "f8", ("sample", "dim"), chunksizes=(1 << 27, 2), zlib=True, fill_value=False)
            self.assertEqual(theta.chunking(), [1 << 27, 2])
        with netCDF4.Dataset(path, "a") as file:
            self.assertEqual(file["theta"].shape, (0, 2))
        self.refuse("2147483648 bytes", "train", "--theta", path, "-o", self.path("prior.nc"))


class Values(program.ProgramTest):
    def train(self, text, *arguments):
        theta = self.write("theta.csv", text)
        return ("train", "--theta", theta, "-o", self.path("prior.nc"), "--option", "stages=3", "--option", "training_steps=20", *arguments)

    def test_theta_that_cannot_be_fitted(self):
        self.fail_with(3, "theta.csv, line 2, column 1: '1e200' is too large; values are at most 1e+45 in size", *self.train("1,2\n1e200,3\n"))
        self.fail_with(3, "theta.csv: coordinate 1 of theta is between 1e-60 (sample 1) and 3e-60 (sample 2)", *self.train("1e-60,2\n3e-60,3\n"))
        self.fail_with(3, "theta.csv: coordinate 2 of sample 1 of theta is 2e+07; without standardisation", *self.train("1,2e7\n1,3\n", "--option", "standardise=false"))
        self.assertFalse(os.path.exists(self.path("prior.nc")))

    def test_trained_prior_can_be_used(self):
        """From the smallest scale to the largest one."""
        history = self.write("history.csv", "x1,x2,y\n1,0,1\n")
        for scale in ("e-38", "e-20", "e0", "e20", "e44"):
            self.succeed(*self.train("".join(f"{a}{scale},{b}{scale}\n" for a, b in ((1, 2), (3, 4), (-2, 1), (1, 1), (2.5, -1)))))
            self.succeed("sample", "--prior", self.path("prior.nc"), "--data", history, "--sampler", "diffts", "-n", "5", "-o", self.path("draws.nc"))

    def test_history_that_cannot_be_used(self):
        """Histories that used to end in LAPACK with NaN, or in an assertion."""
        path = self.path("prior.nc")
        with netCDF4.Dataset(path, "w") as file:
            file.prior = "gaussian"
            for name, size in (("component", 1), ("dim", 2), ("dim2", 2)):
                file.createDimension(name, size)
            file.createVariable("weight", "f8", ("component",))[:] = 1
            file.createVariable("mean", "f8", ("component", "dim"))[:] = 0
            file.createVariable("covariance", "f8", ("component", "dim", "dim2"))[:] = np.eye(2)
        data = self.write("history.csv", "x1,x2,y\n1,0,1\n0,1e200,0.5\n")
        for sampler in ("ts", "diffts", "tilted", "joint", "vts"):
            self.fail_with(3, "history.csv, line 3, column 2: '1e200' is too large", "sample", "--prior", path, "--data", data, "--sampler", sampler, "-o",
                           self.path("draws.nc"))
        for name, x, y in (("x", 1e200, 1), ("y", 1, 1e200)):
            with netCDF4.Dataset(self.path("history.nc"), "w") as file:
                file.createDimension("observation", 1)
                file.createDimension("dim", 2)
                file.createVariable("x", "f8", ("observation", "dim"))[:] = x
                file.createVariable("y", "f8", ("observation",))[:] = y
            self.fail_with(3, f"history.nc: {name}[0", "sample", "--prior", path, "--data", self.path("history.nc"), "--sampler", "ts", "-o", self.path("draws.nc"))


if __name__ == "__main__":
    program.main()
