#!/usr/bin/env python3
"""An installed copy, in its own prefix that was moved after the installation: its contents, no trace of where it was built, C
programs that find it through pkg-config and CMake, and the Python package, whose draws are those of `thompson sample`."""

import concurrent.futures
import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import program
import xarray as xr

BUILD, SOURCE = pathlib.Path(os.environ["THOMPSON_BUILD"]), pathlib.Path(os.environ["THOMPSON_SOURCE"])
NAMES = """thompson_age thompson_agents_add thompson_agents_age thompson_agents_arguments thompson_agents_choose thompson_agents_choose_among
           thompson_agents_choose_propensity thompson_agents_count thompson_agents_draw thompson_agents_fallbacks thompson_agents_forget
           thompson_agents_free thompson_agents_learn_prior thompson_agents_learn_prior_until thompson_agents_new thompson_agents_noise
           thompson_agents_note thompson_agents_observe thompson_agents_open thompson_agents_p_value thompson_agents_probabilities
           thompson_agents_probabilities_among thompson_agents_save thompson_agents_score thompson_agents_set_note thompson_choose
           thompson_choose_propensity thompson_draw thompson_error thompson_fallbacks thompson_forget
           thompson_likelihood_free thompson_likelihood_from_functions thompson_log_evidence
           thompson_observation_count thompson_observations thompson_observe thompson_p_value thompson_posterior_arguments thompson_posterior_copy thompson_posterior_free
           thompson_posterior_from_likelihood thompson_posterior_new thompson_posterior_noise thompson_posterior_open thompson_posterior_save thompson_prior_close
           thompson_prior_dimension thompson_prior_doubt thompson_prior_family thompson_prior_from_denoiser thompson_prior_from_mixture
           thompson_prior_from_oracle thompson_prior_from_score_network thompson_prior_from_theta thompson_prior_from_theta_until thompson_prior_open
           thompson_prior_rewards thompson_prior_sample thompson_prior_save thompson_probabilities thompson_score thompson_version""".split()
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="thompson install-"))       # with a space
PREFIX = FOLDER / "moved"
PROGRAM = PREFIX / "bin" / "thompson"
USER_CMAKE = """
cmake_minimum_required(VERSION 3.22)
project(user C)
find_package(thompson 0.1 REQUIRED)
foreach(kind thompson static)
  add_executable(example_${kind} example.c)
  target_link_libraries(example_${kind} PRIVATE thompson::${kind} m)
endforeach()
"""


def output(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **options).stdout


def setUpModule():
    output("cmake", "--install", BUILD, "--prefix", FOLDER / "first")
    (FOLDER / "first").rename(PREFIX)
    sys.path.insert(0, str(PREFIX / "lib/python3/dist-packages"))
    for name in ("THOMPSON_PROGRAM", "THOMPSON_LIBRARY"):
        os.environ.pop(name, None)


def tearDownModule():
    shutil.rmtree(FOLDER)


class Contents(unittest.TestCase):
    def test_files(self):
        for name in ("bin/thompson", "lib/libthompson.so", "lib/libthompson.so.0", "lib/libthompson.a", "include/thompson.h", "lib/pkgconfig/thompson.pc",
                     "lib/cmake/thompson/thompsonConfig.cmake", "lib/python3/dist-packages/thompson/__init__.py", "share/man/man1/thompson.1",
                     "share/bash-completion/completions/thompson", "share/thompson/jobs/quickstart.yaml", "share/thompson/jobs/single.sbatch",
                     "share/thompson/analysis/tools/report.js"):
            self.assertTrue((PREFIX / name).exists(), name)

    def test_no_trace_of_the_build(self):
        for file in filter(pathlib.Path.is_file, PREFIX.rglob("*")):
            content = file.read_bytes()
            for place in (BUILD, SOURCE, FOLDER / "first"):
                self.assertNotIn(bytes(place), content, file)

    def test_symbols(self):
        """Only the interface is visible, in the shared and in the static library, and all of it is in the header."""
        shared = output("nm", "-D", "--defined-only", PREFIX / "lib/libthompson.so")
        static = output("nm", "-g", "--defined-only", PREFIX / "lib/libthompson.a")
        for listing in (shared, static):
            self.assertEqual(sorted(re.findall(r" [A-Za-z] (\w\S*)$", listing, re.MULTILINE)), NAMES)
        header = (PREFIX / "include/thompson.h").read_text(encoding="utf-8")
        self.assertEqual(sorted(set(re.findall(r"THOMPSON_API [^(;]*?(thompson_\w+)\(", header))), NAMES)

    def test_no_mpi(self):
        self.assertNotIn("libmpi", output("ldd", PREFIX / "lib/libthompson.so"))

    def test_manual(self):
        """Each verb has a page with the options of its --help."""
        verbs = re.findall(r"^  ([a-z]+) ", output(PROGRAM, "--help"), re.MULTILINE)
        self.assertIn("run", verbs)
        for verb in verbs:
            page = (PREFIX / f"share/man/man1/thompson-{verb}.1").read_text(encoding="utf-8").replace("\\", "")
            for option in re.findall(r"^ +(?:-\w, )?(--[a-z][a-z-]+)", output(PROGRAM, verb, "--help"), re.MULTILINE):
                if option not in ("--help", "--usage"):
                    self.assertIn(option, page, verb)

    def test_completion(self):
        script = PREFIX / "share/bash-completion/completions/thompson"

        def complete(*words):
            line = " ".join(f"'{word}'" for word in words)
            return output("bash", "-c", f"compopt() {{ :; }}; source '{script}'; COMP_WORDS=('{PROGRAM}' {line}); COMP_CWORD={len(words)}; "
                                        "_thompson; printf '%s\\n' \"${COMPREPLY[@]}\"").split()

        self.assertEqual(complete("ru"), ["run"])
        self.assertEqual(complete("sample", "--sampler", "local"), ["localised"])
        self.assertIn("--resume", complete("run", "--re"))


HIDING = ["unshare", "--map-root-user", "--mount", "bash", "-euc"]


@unittest.skipIf(subprocess.run([*HIDING, "mount -t tmpfs none /mnt"], capture_output=True, check=False).returncode, "needs a mount namespace")
class SourceRemoved(unittest.TestCase):
    """With source and build folder hidden throughout: a study on two ranks, its table, figure and report, a user's own
    sampler, both examples, the manual and the completion."""

    def test_end_to_end(self):
        alone = FOLDER / "alone"
        alone.mkdir()
        make_prior("mixture").save(alone / "prior.nc")
        for name in ("example.c", "example.py", "lints.py", "service.c"):
            shutil.copy(SOURCE / "docs" / name, alone)
        commands = """
            hide() { mount -t tmpfs none "$1"; [ -z "$(ls -A "$1")" ]; }
            [ ! -e "$build" ] || hide "$build"
            hide "$source"
            cd "$alone"
            export PYTHONPATH="$prefix/lib/python3/dist-packages" PKG_CONFIG_PATH="$prefix/lib/pkgconfig" LD_LIBRARY_PATH="$prefix/lib"
            "$mpiexec" -n 2 "$prefix/bin/thompson" run "$prefix/share/thompson/jobs/quickstart.yaml" --set runs=8 --set block=4 \
              --set sweep.problem.theta=[cross] --set prior.train_samples=500 --set prior.training_steps=50 -o out
            for script in tools/table.py figures/figure_diffts_2.py tools/report.py; do
              "$python" -B "$prefix/share/thompson/analysis/$script" out
            done
            echo '{name: own, runs: 4, block: 4, policies: [ts, {name: python, module: lints, callable: sample}]}' > own.yaml
            THOMPSON_PYTHON="$python" "$prefix/bin/thompson" run own.yaml -o own
            eval "cc example.c $(pkg-config --cflags --libs thompson) -lm -o example"
            ./example prior.nc
            eval "cc -Wall -Wextra -Werror service.c $(pkg-config --cflags --libs thompson) -lm -o service"
            ./service prior.nc agents.nc
            ./service prior.nc agents.nc
            "$python" example.py
            ! command -v man >/dev/null || man "$prefix/share/man/man1/thompson-run.1" | cat
            compopt() { :; }
            set +u
            source "$prefix/share/bash-completion/completions/thompson"
            COMP_WORDS=("$prefix/bin/thompson" ru) COMP_CWORD=1
            _thompson
            echo "completion: ${COMPREPLY[*]}"
            """
        places = {"source": SOURCE, "build": BUILD, "prefix": PREFIX, "alone": alone, "python": sys.executable, "mpiexec": program.MPIEXEC}
        done = subprocess.run([*HIDING, commands], env={**os.environ, **{name: str(place) for name, place in places.items()}},
                              capture_output=True, text=True, cwd="/", check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
        for part in ("| cross ", "regret ", "completion: run"):
            self.assertIn(part, done.stdout)
        self.assertTrue((alone / "out/report.html").is_file() and (alone / "own/results.nc").is_file())


class CPrograms(unittest.TestCase):
    """docs/example.c, with the flags of pkg-config and of find_package, shared and static: all give the same regret, and so does the wrapper."""

    def test_example(self):
        prior = FOLDER / "example prior.nc"
        make_prior("mixture").save(prior)
        user = FOLDER / "user"
        user.mkdir()
        shutil.copy(SOURCE / "docs/example.c", user)
        (user / "CMakeLists.txt").write_text(USER_CMAKE, encoding="utf-8")
        output("cmake", "-S", user, "-B", user / "build", f"-DCMAKE_PREFIX_PATH={PREFIX}")
        output("cmake", "--build", user / "build")
        found = dict(os.environ, PKG_CONFIG_PATH=str(PREFIX / "lib/pkgconfig"), LD_LIBRARY_PATH=str(PREFIX / "lib"))
        flags = f"cc -Wall -Wextra -Werror example.c $(pkg-config --cflags --libs thompson | sed 's/\\\\ /\\\\ /g') -lm -o example"
        output("bash", "-c", f'eval "{flags}"', cwd=user, env=found)
        said = {output(program, prior, env=found) for program in (user / "example", user / "build/example_thompson", user / "build/example_static")}
        self.assertEqual(len(said), 1, said)
        self.assertRegex(said.pop(), r"^regret [\d.]+, theta ")


def past_tasks():
    rng = np.random.default_rng(1)
    return rng.choice([-1.0, 1.0], (300, 1)) * [1, 0.5] + 0.1 * rng.standard_normal((300, 2))


QUICK = {"gaussian": {}, "mixture": {}, "diffusion": {"stages": 8, "training_steps": 60, "hidden": [8, 8]}, "denoiser": {"training_steps": 60, "hidden": [8, 8]}}


def make_prior(family):
    import thompson
    return thompson.train(theta=past_tasks(), family=family, **QUICK[family])


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import thompson
        cls.thompson = thompson
        cls.priors = {family: make_prior(family) for family in QUICK}
        for family, prior in cls.priors.items():
            prior.save(FOLDER / f"{family}.nc")
        rng = np.random.default_rng(2)
        cls.x = rng.standard_normal((7, 2))
        mean = cls.x @ [1, 0.5]
        cls.y = {"gaussian": mean, "logistic": (mean > 0) * 1.0, "poisson": np.floor(np.exp(mean))}

    def sampled(self, family, sampler, likelihood):
        """What `thompson sample` draws."""
        np.savetxt(FOLDER / "h.csv", np.c_[self.x, self.y[likelihood]], delimiter=",", header="x1,x2,y", comments="", fmt="%.17g")
        output(PROGRAM, "sample", "--prior", FOLDER / f"{family}.nc", "--data", FOLDER / "h.csv", "--sampler", sampler, "--likelihood", likelihood,
               *(("--noise", 0.5) if likelihood == "gaussian" else ()), "--seed", 3, "-n", 40, "-o", FOLDER / "d.nc")
        with xr.open_dataset(FOLDER / "d.nc") as draws:
            return draws.theta.values

    def test_draws_are_those_of_the_program(self):
        """Every sampler, with every likelihood and the first prior that fits: drawn all at once, one by one, and fewer of them."""
        tried = 0
        for sampler in [entry["name"] for entry in json.loads(output(PROGRAM, "list", "samplers", "--json"))]:
            for likelihood, y in self.y.items():
                for family, prior in self.priors.items():
                    try:
                        agents = [self.thompson.Posterior(prior, sampler, likelihood, noise=0.5 if likelihood == "gaussian" else None, seed=3) for _ in range(2)]
                    except self.thompson.Error:
                        continue
                    tried += 1
                    want = self.sampled(family, sampler, likelihood)
                    agents[0].observe(self.x, y)
                    np.testing.assert_array_equal(agents[0].draw(40), want, f"{sampler} {likelihood} {family}")
                    for row, reward in zip(self.x, y):
                        agents[1].observe(row, reward)
                    np.testing.assert_array_equal(agents[1].draw(5), want[:5], f"{sampler} {likelihood} {family}, one by one")
                    break
        self.assertGreater(tried, 20)

    def test_training_is_that_of_the_program(self):
        np.savetxt(FOLDER / "theta.csv", past_tasks(), delimiter=",", fmt="%.17g")
        for family, options in QUICK.items():
            words = [word for key, value in options.items() for word in ("--option", f"{key}={value}".replace(" ", ""))]
            output(PROGRAM, "train", "--theta", FOLDER / "theta.csv", "--family", family, *words, "-o", FOLDER / "trained.nc")
            with xr.open_dataset(FOLDER / "trained.nc") as theirs, xr.open_dataset(FOLDER / f"{family}.nc") as ours:
                xr.testing.assert_equal(theirs, ours)

    def test_logs(self):
        """Arrays, with any names of tasks, and a file give the same as the program."""
        rng = np.random.default_rng(7)
        task, x = rng.choice(["Ann", "Bob", "Zoe, or \"Z\"", "a"], size=200), rng.standard_normal((200, 3))
        y = x @ [1.0, -1.0, 2.0] + rng.standard_normal(200)
        with open(FOLDER / "logs.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["task", "x1", "x2", "x3", "y"])
            writer.writerows([t, *map(repr, row.tolist()), repr(float(r))] for t, row, r in zip(task, x, y))
        output(PROGRAM, "train", "--logs", FOLDER / "logs.csv", "--family", "gaussian", "--noise", 1, "-o", FOLDER / "logs.nc")
        for logs in (FOLDER / "logs.csv", (task, x, y)):
            self.thompson.train(logs=logs, family="gaussian", noise=1, ranks=2).save(FOLDER / "ours.nc")
            with xr.open_dataset(FOLDER / "logs.nc") as theirs, xr.open_dataset(FOLDER / "ours.nc") as ours:
                xr.testing.assert_equal(theirs, ours)
                self.assertEqual(ours.noise, 1)
        for wrong in ({}, {"theta": x, "logs": (task, x, y)}, {"theta": x, "noise": 1}):
            self.assertRaises(TypeError, self.thompson.train, **wrong)
        self.assertRaises(ValueError, self.thompson.train, logs=(task[:-1], x, y))

    def test_threads(self):
        """Objects in several threads at once: the same draws as in one thread."""
        def loop(seed):
            agent = self.thompson.Posterior(FOLDER / "mixture.nc", ("diffts", "localised", "exact", "smc")[seed % 4], noise=0.5, seed=seed)
            theta = []
            for i in range(100):
                agent.observe(self.x[i % 7], self.y["gaussian"][i % 7])
                theta.append(agent.draw(4))
                try:
                    self.thompson.Posterior(agent.prior, f"nobody{seed}")
                except self.thompson.Error as error:
                    assert f"nobody{seed}" in str(error), error        # each thread has its own error message
            return np.concatenate(theta)

        alone = [loop(seed) for seed in range(8)]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for one, other in zip(alone, pool.map(loop, range(8))):
                np.testing.assert_array_equal(one, other)

    def test_choose(self):
        """It returns the best arm for the draw that would otherwise have been made."""
        arms = np.random.default_rng(3).standard_normal((20, 2))
        agents = [self.thompson.Posterior(self.priors["diffusion"], "diffts", noise=0.5, seed=1) for _ in range(2)]
        for _ in range(20):
            arm = agents[0].choose(arms)
            self.assertEqual(arm, int((arms @ agents[1].draw(1)[0]).argmax()))
            for agent in agents:
                agent.observe(arms[arm], arms[arm] @ [1, 0.5])

    def test_mixture_of_arrays(self):
        """Known moments, through a file and back; samples have their mean within 6 standard errors."""
        weight, mean, covariance = [0.25, 0.75], [[-1.0, 2.0], [1.0, 0.0]], [np.eye(2), [[2.0, 0.5], [0.5, 1.0]]]
        prior = self.thompson.Prior.from_mixture(weight, mean, covariance)
        self.assertEqual((prior.family, prior.dimension), ("mixture", 2))
        prior.save(FOLDER / "arrays.nc")
        samples = self.thompson.Prior.open(FOLDER / "arrays.nc").sample(20000)
        np.testing.assert_array_equal(samples, prior.sample(20000))
        np.testing.assert_allclose(samples.mean(axis=0), np.dot(weight, mean), atol=6 * samples.std() / np.sqrt(20000))

    def test_errors(self):
        Posterior, prior = self.thompson.Posterior, self.priors["diffusion"]
        refused = {
            "did you mean 'diffts'": lambda: Posterior(prior, "difts"),
            "not a likelihood": lambda: Posterior(prior, "diffts", "gausian"),
            "noise=": lambda: Posterior(prior, "diffts", noise=-1),
            "no_such_option": lambda: Posterior(prior, "diffts", no_such_option=1),
            "needs": lambda: Posterior(prior, "mixts"),
            "element 1": lambda: Posterior(prior, "diffts").observe([0, np.nan], 1),
            "with likelihood logistic": lambda: Posterior(prior, "diffts", "logistic").observe([0, 1], 7),
            "nowhere.nc": lambda: self.thompson.Prior.open("nowhere.nc"),
            "family of priors": lambda: self.thompson.train(theta=past_tasks(), family="gaussain"),
            "mixture": lambda: self.thompson.Prior.from_mixture([0.5, 0.6], np.zeros((2, 2)), [np.eye(2)] * 2),
        }
        for part, action in refused.items():
            with self.assertRaisesRegex(self.thompson.Error, part) as caught:
                action()
            self.assertIn(caught.exception.code, (3, 4))
        with self.assertRaises(ValueError):
            Posterior(prior, "diffts").observe([1, 2, 3], 1)

    def test_noise_of_the_prior(self):
        """If no noise is given: what the prior learned from logs, as in `thompson sample`; 1 if it learned none."""
        rng = np.random.default_rng(4)
        task, x = np.repeat(np.arange(60), 8), rng.standard_normal((480, 2))
        y = np.einsum("nd,nd->n", x, rng.standard_normal((60, 2))[task]) + 0.05 * rng.standard_normal(480)
        prior = self.thompson.train(logs=(task, x, y), family="gaussian")
        agents = [self.thompson.Posterior(prior, "ts", noise=noise, seed=3) for noise in (None, 0.05)]
        self.assertAlmostEqual(agents[0].noise, 0.05, delta=0.005)
        self.assertEqual((agents[1].noise, self.thompson.Posterior(self.priors["mixture"], "mixts").noise), (0.05, 1))
        again = self.thompson.Posterior(prior, "ts", noise=agents[0].noise, seed=3)
        for agent in (agents[0], again):
            agent.observe(x[:3], y[:3])
        np.testing.assert_array_equal(agents[0].draw(5), again.draw(5))

    def test_arviz_layout(self):
        """Groups, dimensions and attributes follow ArviZ's schema."""
        agent = self.thompson.Posterior(self.priors["mixture"], "localised", noise=0.5)
        agent.observe(self.x, self.y["gaussian"])
        groups = agent.to_arviz(50)
        self.assertEqual(set(groups), {"posterior", "prior", "sample_stats", "observed_data", "constant_data"})
        for name in ("posterior", "prior", "sample_stats"):
            for variable in groups[name].data_vars.values():
                self.assertEqual(variable.dims[:2], ("chain", "draw"))
                self.assertEqual(variable.shape[:2], (1, 50))
        self.assertEqual(groups["posterior"].theta.dims, ("chain", "draw", "theta_dim_0"))
        np.testing.assert_array_equal(groups["observed_data"].y, self.y["gaussian"])
        np.testing.assert_array_equal(groups["constant_data"].x, self.x)
        self.assertEqual({name: one.dims for name, one in groups["prior"].data_vars.items()},
                         {name: one.dims for name, one in groups["posterior"].data_vars.items()})
        for name, group in groups.items():
            self.assertLessEqual({"created_at", "inference_library", "inference_library_version"}, set(group.attrs))
            self.assertEqual(set(group.dims), set(group.coords))        # index values are explicit
            self.assertFalse(set(group.data_vars) & set(group.dims))    # names of variables are not those of dimensions
            group.to_netcdf(FOLDER / "inference.nc", mode="w" if name == "posterior" else "a", group=name)
        with xr.open_dataset(FOLDER / "inference.nc", group="posterior") as posterior:
            np.testing.assert_array_equal(posterior.theta, groups["posterior"].theta)

    def test_study(self):
        """A study from a dictionary, resumed on another number of ranks, with a key replaced; refusals are exceptions; the installed scripts read it."""
        study = {"name": "dict", "study": "bandit", "runs": 8, "block": 4, "problem": {"theta": "cross", "arms": np.int64(5), "rounds": 10},
                 "policies": ["ts", {"name": "lints", "label": "mine"}]}
        dataset = self.thompson.run(study, output=FOLDER / "results", ranks=2, problem__noise=[0.5, 1.0])
        self.assertEqual(list(dataset.policy.values), ["ts", "mine"])
        self.assertEqual(list(dataset.problem_noise.values), [0.5, 1.0])
        self.assertTrue(dataset.identical(self.thompson.results(FOLDER / "results")))
        with self.assertRaisesRegex(self.thompson.Error, "already|resume"):
            self.thompson.run(study, output=FOLDER / "results", problem__noise=[0.5, 1.0])
        with self.assertRaisesRegex(self.thompson.Error, "policys"):
            self.thompson.run({**study, "policys": []}, output=FOLDER / "other")
        with self.assertRaisesRegex(self.thompson.Error, "thompson reduce"):
            self.thompson.results(FOLDER)
        alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        scripts = PREFIX / "share/thompson/analysis"
        said = output(sys.executable, "-B", scripts / "tools/table.py", FOLDER / "results", "-f", "csv", env=alone, cwd="/")
        regret = dataset.regret.values[..., -1].mean(axis=-1).ravel()
        np.testing.assert_allclose([float(row["regret"]) for row in csv.DictReader(io.StringIO(said))], regret, rtol=1e-12)
        output(sys.executable, "-B", scripts / "tools/report.py", FOLDER / "results", "-o", FOLDER / "report.html", env=alone, cwd="/")

    def test_example(self):
        """docs/example.py, with only the installed copy; on a problem this easy both agents find theta*."""
        environment = dict(os.environ, PYTHONPATH=str(PREFIX / "lib/python3/dist-packages"))
        said = output(sys.executable, SOURCE / "docs/example.py", env=environment, cwd=FOLDER)
        for name in ("DiffTS", "localised"):
            self.assertLess(float(re.search(rf"{name}: regret ([\d.]+)", said).group(1)), 40)   # 200 rounds of random arms lose about 400


if __name__ == "__main__":
    program.main()
