"""`thompson train --logs`: compared with a separate EM in NumPy, the same bytes on 1 to 4 ranks and after kill -9, partial files of all
kinds, and the responses to bad logs."""

import fcntl
import glob
import os
import pty
import re
import select
import signal
import subprocess
import time

import netCDF4
import numpy as np

import program
from program import PROGRAM, ProgramTest

D = 2
TRUE = {"weight": [0.6, 0.4], "mean": [[2.0, 0.0], [-1.0, 1.0]], "sd": [0.5, 1.0]}


def simulate(tasks, rows, seed, noise=0.8):
    """task[n], x[n, D], y[n] of `tasks` tasks with 1 to 2 rows - 1 observations each, in random order."""
    rng = np.random.default_rng(seed)
    component = rng.choice(2, size=tasks, p=TRUE["weight"])
    theta = np.asarray(TRUE["mean"])[component] + np.asarray(TRUE["sd"])[component, None] * rng.standard_normal((tasks, D))
    task = np.repeat(np.arange(tasks), rng.integers(1, 2 * rows, size=tasks))
    rng.shuffle(task)
    x = rng.uniform(-1, 1, (len(task), D))
    return task, x, np.einsum("nd,nd->n", x, theta[task]) + noise * rng.standard_normal(len(task))


def table(task, x, y):
    header = "task," + ",".join(f"x{i + 1}" for i in range(x.shape[1])) + ",y\n"
    return header + "".join(f"user {t}," + ",".join(f"{v:.9g}" for v in row) + f",{r:.9g}\n" for t, row, r in zip(task, x, y))


def evidences(task, x, y):
    count = task.max() + 1
    gram, moment = np.zeros((count, D, D)), np.zeros((count, D))
    np.add.at(gram, task, x[:, :, None] * x[:, None, :])
    np.add.at(moment, task, x * y[:, None])
    return gram, moment, np.bincount(task, y * y, count), np.bincount(task, minlength=count)


def log_likelihood(task, x, y, weight, mean, covariance, noise):
    """Mean log marginal likelihood per task, from the covariance matrices of its rewards."""
    total = 0
    for t in np.unique(task):
        rows, rewards = x[task == t], y[task == t]
        terms = []
        for w, m, s in zip(weight, mean, covariance):
            v = rows @ s @ rows.T + noise**2 * np.eye(len(rows))
            r = rewards - rows @ m
            terms.append(np.log(w) - 0.5 * (r @ np.linalg.solve(v, r) + np.linalg.slogdet(2 * np.pi * v)[1]))
        total += np.logaddexp.reduce(terms)
    return total / len(np.unique(task))


def fit(task, x, y, weight, mean, covariance, noise, iterations, learn):
    """EM from these parameters, in the coordinates of theta."""
    gram, moment, square, count = evidences(task, x, y)
    weight, mean, covariance = (np.array(a, float) for a in (weight, mean, covariance))
    for _ in range(iterations):
        precision = np.linalg.inv(covariance)
        v = np.linalg.inv(precision[None] + gram[:, None] / noise**2)  # [task, component, D, D]
        h = np.einsum("cij,cj->ci", precision, mean)[None] + moment[:, None] / noise**2
        mu = np.einsum("tcij,tcj->tci", v, h)
        log_r = (np.log(weight) - 0.5 * np.linalg.slogdet(covariance)[1] - 0.5 * np.einsum("ci,cij,cj->c", mean, precision, mean)
                 + 0.5 * np.linalg.slogdet(v)[1] + 0.5 * np.einsum("tci,tci->tc", mu, h))
        r = np.exp(log_r - np.logaddexp.reduce(log_r, axis=1, keepdims=True))
        second = v + mu[..., :, None] * mu[..., None, :]
        if learn:
            all_mean, all_second = np.einsum("tc,tci->ti", r, mu), np.einsum("tc,tcij->tij", r, second)
            noise = np.sqrt((square - 2 * np.einsum("ti,ti->t", all_mean, moment) + np.einsum("tij,tij->t", gram, all_second)).sum() / count.sum())
        total = r.sum(axis=0)
        weight, mean = total / total.sum(), np.einsum("tc,tci->ci", r, mu) / total[:, None]
        covariance = np.einsum("tc,tcij->cij", r, second) / total[:, None, None] - mean[:, :, None] * mean[:, None, :]
    return weight, mean, covariance, noise


class Logs(ProgramTest):
    def read(self, name):
        with netCDF4.Dataset(self.path(name)) as file:
            return (*(file[v][:].data for v in ("weight", "mean", "covariance")), float(file.getncattr("noise")))

    def train(self, *arguments, name="prior.nc", family="mixture", **options):
        return self.succeed("train", "--logs", self.path("logs.csv"), "--family", family, "-o", self.path(name), *arguments, **options)

    def bytes_of(self, name):
        with netCDF4.Dataset(self.path(name)) as file:
            file.set_auto_maskandscale(False)
            return {v: file[v][...].tobytes() for v in file.variables}, {a: file.getncattr(a) for a in file.ncattrs() if a != "seconds_fit"}

    def test_numpy(self):
        """A Gaussian, and noise learned with it, is the fixed point of EM in NumPy to 1e-3 (both add a floor of 1e-6 of the variance); a mixture
        of two is as likely as the best of EM in NumPy from the truth, up to 2e-3 nats per task: its prior counts as one task (em.h)."""
        data = simulate(400, 8, 1)
        self.write("logs.csv", table(*data))
        self.train(family="gaussian")
        got = self.read("prior.nc")
        expected = fit(*data, [1], [np.zeros(D)], [np.eye(D)], 1.0, 2000, True)
        for one, other in zip(got, expected):
            np.testing.assert_allclose(one, other, atol=1e-3, rtol=1e-3)
        self.train("--noise", 0.8, "--option", "components=2")
        got = self.read("prior.nc")
        self.assertEqual(got[3], 0.8)
        covariance = [s**2 * np.eye(D) for s in TRUE["sd"]]
        expected = fit(*data, TRUE["weight"], TRUE["mean"], covariance, 0.8, 500, False)
        self.assertGreater(log_likelihood(*data, *got), log_likelihood(*data, *expected) - 2e-3)

    def test_noise_of_the_prior(self):
        """`sample` uses the noise that the prior learned and says so, unless one is given."""
        self.write("logs.csv", table(*simulate(100, 8, 1, noise=0.05)))
        self.train(family="gaussian")
        learned = self.read("prior.nc")[3]
        self.assertAlmostEqual(learned, 0.05, delta=0.005)
        self.write("history.csv", "x1,x2,y\n1,0.5,0.4\n0.2,-1,0.3\n")

        def draws(*noise):
            command = ("sample", "--prior", self.path("prior.nc"), "--data", self.path("history.csv"), "--sampler", "ts", "-o", self.path("draws.nc"))
            said = self.succeed(*command, *noise).stdout
            with netCDF4.Dataset(self.path("draws.nc")) as file:
                return file["theta"][:].data.tobytes(), file.getncattr("noise"), "learned from logs with the prior" in said

        own, given, one = draws(), draws("--noise", repr(learned)), draws("--noise", 1)
        self.assertEqual(own, (given[0], learned, True))
        self.assertEqual(one[1:], (1, False))
        self.assertNotEqual(own[0], one[0])
        with netCDF4.Dataset(self.path("prior.nc"), "a") as file:
            file.setncattr("noise", -1.0)
        self.fail_with(3, "attribute 'noise' is -1", "sample", "--prior", self.path("prior.nc"), "--data", self.path("history.csv"), "--sampler", "ts")

    def test_ranks(self):
        """More tasks than the sample: EM over all of them is divided by tasks. The same bytes on any ranks, also for networks:
        three do not divide the 64 slices evenly."""
        self.write("logs.csv", table(*simulate(17000, 2, 2)))
        settings = ("--option", "components=2", "--option", "mixture_starts=1")
        for ranks in (1, 3):
            out = self.train(*settings, name=f"{ranks}.nc", ranks=ranks).stdout
            self.assertIn("iterations over all tasks", out)
            self.assertEqual(self.bytes_of(f"{ranks}.nc"), self.bytes_of("1.nc"), ranks)
        for ranks in (1, 3):
            self.train(*settings, "--option", "hidden=[8, 8]", "--option", "stages=3", "--option", "training_steps=50", name=f"d{ranks}.nc", family="diffusion", ranks=ranks)
        self.assertEqual(self.bytes_of("d1.nc"), self.bytes_of("d3.nc"))
        weight, mean, sd = (np.asarray(TRUE[name]) for name in ("weight", "mean", "sd"))
        spread = np.sqrt(weight @ (mean**2 + sd[:, None] ** 2) - (weight @ mean) ** 2)
        with netCDF4.Dataset(self.path("d1.nc")) as file:  # moments of the draws; 1 or 2 observations say little, so within a tenth
            np.testing.assert_allclose(file["shift"][:], weight @ mean, atol=0.15)
            np.testing.assert_allclose(file["scale"][:], spread, rtol=0.1)
        self.assertEqual(glob.glob(self.path("*.partial*")), [])

    def test_likelihoods(self):
        """Rewards of 0 and 1, and counts: the means of theta are found within 5 standard errors."""
        rng = np.random.default_rng(3)
        theta = np.array([0.5, -0.3]) + 0.5 * rng.standard_normal((500, D))
        task = np.repeat(np.arange(500), 30)
        x = rng.uniform(-1, 1, (len(task), D))
        u = np.einsum("nd,nd->n", x, theta[task])
        for likelihood, y in (("logistic", rng.uniform(size=len(u)) < 1 / (1 + np.exp(-u))), ("poisson", rng.poisson(np.exp(u)))):
            self.write("logs.csv", table(task, x, y.astype(float)))
            for ranks in (1, 2):
                self.train("--likelihood", likelihood, "--option", "components=1", name=f"{likelihood}{ranks}.nc", ranks=ranks)
            self.assertEqual(self.bytes_of(f"{likelihood}1.nc"), self.bytes_of(f"{likelihood}2.nc"))
            with netCDF4.Dataset(self.path(f"{likelihood}1.nc")) as file:
                np.testing.assert_allclose(file["mean"][0], [0.5, -0.3], atol=5 * 0.8 / np.sqrt(500))
                self.assertNotIn("noise", file.ncattrs())

    def kill_when_saved(self, command):
        """Start, and kill -9 once there is a partial file. The end of its second progress bar, for the iterations over all tasks, does not fit
        into the pipe, so the job cannot end before. A first one that takes so long that it shows its steps gets room for them."""
        reader, writer = os.pipe()
        size = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        os.write(writer, b"." * (size - len("learning the prior: 1/1 in 1234 s\n")))
        job = subprocess.Popen([PROGRAM, *map(str, command)], stdout=subprocess.DEVNULL, stderr=writer)
        try:
            started = roomy = time.time()
            while not os.path.exists(self.path("killed.nc.partial")):
                self.assertIsNone(job.poll())
                self.assertLess(time.time() - started, program.PATIENCE)
                if time.time() - roomy > 5:
                    os.read(reader, len("learning the prior: 12345 steps, 12 min 34 s\n"))
                    roomy = time.time()
                time.sleep(0.02)
        finally:
            job.kill()
            job.wait()
            os.close(reader)
            os.close(writer)

    def test_progress(self):
        """A terminal sees what is counted while the fit goes on, and how it ended. The job is stopped again and again, so that there is enough time
        between any two of its steps for the next one to be shown, however fast the machine."""
        self.write("logs.csv", table(*simulate(3000, 2, 4)))
        command = ("train", "--logs", self.path("logs.csv"), "--family", "mixture", "--option", "components=8", "--option", "mixture_starts=1", "-o", self.path("shown.nc"))
        terminal, screen = pty.openpty()
        job = subprocess.Popen([PROGRAM, *map(str, command)], stdout=subprocess.DEVNULL, stderr=screen)
        os.close(screen)
        shown = b""
        try:
            while True:
                if shown.count(b"steps") < 3:
                    job.send_signal(signal.SIGSTOP)
                    time.sleep(0.25)  # a terminal is written to after 0.2 s
                    job.send_signal(signal.SIGCONT)
                if select.select([terminal], [], [], 0.02)[0]:
                    shown += os.read(terminal, 4096)
        except OSError:  # the job has ended, and closed the terminal
            job.wait(program.PATIENCE)
        finally:
            job.kill()
            os.close(terminal)
        self.assertEqual(job.wait(), 0)
        steps = [int(n) for n in re.findall(rb"\rlearning the prior: (\d+) steps, \d+ s", shown)]
        self.assertEqual(steps, sorted(set(steps)))
        self.assertGreater(len(steps), 1, shown)
        self.assertRegex(shown, rb"\r\x1b\[Klearning the prior: (\d+)/\1 in \d+ s\r\n")

    def test_kill(self):
        """Kill -9 when there is a partial file, then the same command: the bytes of an undisturbed run. Partial files from other logs are refused,
        damaged ones set aside, and other people's left alone."""
        self.write("logs.csv", table(*simulate(17000, 2, 4)))
        settings = ("--option", "components=2", "--option", "mixture_starts=1")
        command = ("train", "--logs", self.path("logs.csv"), "--family", "mixture", *settings, "-o", self.path("killed.nc"))
        self.train(*settings, name="whole.nc")
        self.kill_when_saved(command)
        partial = self.path("killed.nc.partial")
        with open(partial, "rb") as file:
            good = file.read()
        self.assertIn("continued from the partial file", self.succeed(*command).stdout)
        self.assertEqual(self.bytes_of("killed.nc"), self.bytes_of("whole.nc"))
        self.assertFalse(os.path.exists(partial))

        self.write_bytes("killed.nc.partial", good)  # made with other settings
        self.fail_with(6, "was made from other logs or settings", *command[:-2], "--noise", 1, *command[-2:])
        self.assertTrue(os.path.exists(partial))
        bad = bytearray(good)
        bad[len(bad) // 2] ^= 0xFF
        self.write_bytes("killed.nc.partial", bytes(bad))
        process = self.succeed(*command)
        self.assertIn("set aside", process.stderr)
        self.assertEqual(self.bytes_of("killed.nc"), self.bytes_of("whole.nc"))
        with open(partial + ".bad", "rb") as file:
            self.assertEqual(file.read(), bytes(bad))
        self.write("killed.nc.partial", "my notes")
        self.fail_with(4, "killed.nc.partial", *command)
        with open(partial, encoding="utf-8") as file:
            self.assertEqual(file.read(), "my notes")

    def test_refusals(self):
        self.write("logs.csv", "task,x1,y\na,1,2\nb,inf,2\n")
        command = ("train", "--logs", self.path("logs.csv"), "-o", self.path("prior.nc"))
        self.fail_with(3, "logs.csv, line 3, column 2: 'inf' is not finite", *command)
        self.fail_with(3, "logs.csv, line 3", *command, ranks=2)
        self.write("logs.csv", "task,x1,y\na,1,2\nb,1,0.5\n")
        self.fail_with(3, "needs at least that many tasks, but there are 2", *command, "--family", "mixture", "--option", "components=3")
        self.fail_with(3, "logs.csv, line 2: the reward is 2; with the likelihood 'logistic' it must be 0 or 1", *command, "--likelihood", "logistic")
        self.fail_with(4, "cannot read", "train", "--logs", self.path("none.csv"), "-o", self.path("prior.nc"))
        for arguments, part in (((*command, "--theta", "a.csv"), "give either"), ((*command, "--noise", "-1"), "--noise"),
                                ((*command, "--likelihood", "probit"), "--likelihood: 'probit' is not a likelihood; allowed: gaussian | logistic | poisson"),
                                ((*command, "--likelihood", "logistic", "--noise", "1"), "--noise is for Gaussian rewards"),
                                (("train", self.study, "--noise", "1"), "--likelihood and --noise need --logs, or --theta with --family auto")):
            self.fail_with_usage(part, *arguments)
        self.assertFalse(os.path.exists(self.path("prior.nc")))

    def test_few(self):
        """One task of one observation, and tasks that are all the same, give a prior."""
        for text in ("task,x1,x2,y\na,1,2,3\n", "task,x1,x2,y\n" + "".join(f"{i},1,0,2\n" for i in range(50)), "task,x1,x2,y\na,0,0,0\nb,0,0,0\n"):
            self.write("logs.csv", text)
            for family in ("gaussian", "mixture"):
                self.train("--noise", "1", family=family)
                for values in self.read("prior.nc"):
                    self.assertTrue(np.isfinite(values).all())

    def test_not_identified(self):
        """Logs in which the noise and theta vary only together, and clicks of which no task has two, are refused; little is said to be little."""
        rng = np.random.default_rng(4)
        tasks = np.arange(200)
        intercept, pair = np.ones((200, 1)), np.eye(2)[tasks % 2]
        for task, x in ((tasks, intercept), (tasks, rng.normal(size=(200, 1)) * 0 - 3), (tasks, pair), (tasks // 2, pair),
                        (tasks, np.c_[intercept, rng.normal(size=200)])):
            y = rng.normal(size=200)
            self.write("logs.csv", table(task, x, y))
            self.fail_with(3, "only the sum of two variances can be learned", "train", "--logs", self.path("logs.csv"), "--family", "gaussian", "-o", self.path("p.nc"))
            self.train("--noise", "0.5", family="gaussian")
        for task, x in ((tasks, intercept), (tasks, np.c_[intercept, rng.normal(size=200)]), (tasks // 2, pair)):
            self.write("logs.csv", table(task, x, (y > 0) * 1.0))
            self.fail_with(3, "no task has two clicks", "train", "--logs", self.path("logs.csv"), "--likelihood", "logistic", "-o", self.path("p.nc"))
        self.write("logs.csv", table(np.minimum(tasks, 198), intercept, y))
        pairs = [np.ones((1, 1))] * 198 + [np.ones((2, 2))]  # x x' of each task: how well do they sum up to the identity?
        target, shape = (np.concatenate([m.ravel() for m in matrices]) for matrices in ([np.eye(len(p)) for p in pairs], pairs))
        freedom = np.linalg.lstsq(shape[:, None], target, rcond=None)[1][0]
        self.assertIn(f"the noise is learned from at most {freedom:.2g} degrees of freedom", self.train(family="gaussian").stderr)
        self.write("logs.csv", table(tasks // 2, rng.normal(size=(200, 1)), y))  # two per task: identified
        self.assertNotIn("degrees of freedom", self.train(family="gaussian").stderr)

    def test_clicks_as_if_gaussian(self):
        """Clicks that are fitted as if they were Gaussian rewards, and such a prior under clicks, are not used in silence."""
        task, x, y = simulate(100, 8, 1)
        self.write("logs.csv", table(task, x, (y > 0) * 1.0))
        self.write("history.csv", "x1,x2,y\n1,0.5,1\n0.2,-1,0\n")
        self.write("study.yaml", f"name: s\nstudy: bandit\nruns: 2\nlikelihood: logistic\nproblem: {{theta: gaussian, rounds: 3, arms: 3}}\n"
                                 f"policies: [{{name: mixts, prior: {self.path('prior.nc')}}}]\n")
        for given, expected in ((), True), (("--likelihood", "gaussian"), False), (("--noise", "0.4"), False), (("--likelihood", "logistic"), False):
            self.assertEqual("all rewards in the logs are 0 or 1" in self.train(*given, family="gaussian").stderr, expected, given)
            for command in (("sample", "--prior", self.path("prior.nc"), "--data", self.path("history.csv"), "--likelihood", "logistic", "--sampler", "ts", "-o", self.path("d.nc")),
                            ("run", self.path("study.yaml"), "-o", self.path("out"), "--overwrite")):
                said = self.succeed(*command).stderr
                self.assertEqual("prior.nc: it was learned from rewards with the likelihood gaussian, and here it is logistic" in said, "logistic" not in given, said)
        said = self.succeed("sample", "--prior", self.path("prior.nc"), "--data", self.path("history.csv"), "--sampler", "ts", "-o", self.path("d.nc")).stderr
        self.assertIn("prior.nc: it was learned from rewards with the likelihood logistic, and here it is gaussian", said)
        self.write("logs.csv", table(task, x, y))
        self.assertNotIn("all rewards in the logs", self.train(family="gaussian").stderr)

    def test_clicks_far_from_the_centre(self):
        """The prior of rare clicks, and of ones that are all 0 or 1, is the maximum of the likelihood, which a grid gives to many digits: its log
        likelihood lies less than 0.1 below (expectation propagation alone: 3 to 5 below)."""
        grid = np.linspace(-9, 9, 3001)
        for tasks, rows, mean, sd in ((200, 50, -5, 3), (200, 20, 0, 10)):
            rng = np.random.default_rng(5)
            p = 1 / (1 + np.exp(-rng.normal(mean, sd, tasks)))
            clicks = rng.random((tasks, rows)) < p[:, None]
            self.write("logs.csv", table(np.repeat(np.arange(tasks), rows), np.ones((tasks * rows, 1)), clicks.ravel() * 1.0))
            count, tasks_with = np.unique(clicks.sum(axis=1), return_counts=True)
            count = count[:, None]

            def log_likelihood(mean, sd):
                weight = np.exp(-grid**2 / 2) / np.exp(-grid**2 / 2).sum()
                u = mean + sd * grid
                return tasks_with @ np.log(np.exp(count * u - rows * np.logaddexp(0, u)) @ weight)

            best = max(log_likelihood(m, s) for m in mean + sd * np.linspace(-0.4, 0.4, 17) for s in sd * np.linspace(0.7, 1.4, 15))
            self.train("--likelihood", "logistic", family="gaussian")
            with netCDF4.Dataset(self.path("prior.nc")) as file:
                found = log_likelihood(float(file["mean"][0, 0]), float(file["covariance"][0, 0, 0]) ** 0.5)
            self.assertGreater(found, best - 0.1)


if __name__ == "__main__":
    program.main()
