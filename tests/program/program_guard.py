#!/usr/bin/env python3
"""The guard of a prior, as users meet it: in studies, as an option of a policy, and in thompson sample."""
import netCDF4
import numpy as np

import program

STUDY = """
name: guard
study: bandit
seed: 3
runs: 32
block: 16
problem: {theta: cross, arms: 20, rounds: 30}
policies: %s
prior: {train_samples: 500, stages: 6, training_steps: 60, hidden: [8, 8]%s}
"""
POLICIES = "[ts, tuned_ts, mixts, diffts]"


class Guard(program.ProgramTest):
    def regret(self, name, policies, keys="", ranks=0):
        study = self.write(f"{name}.yaml", STUDY % (policies, keys))
        self.succeed("run", study, "-o", self.path(name), "--progress", "none", ranks=ranks)
        with netCDF4.Dataset(self.path(f"{name}/results.nc")) as data:
            return data["regret"][...].filled(np.nan)[0]

    def test_study(self):
        """Weight 0 means no guard, byte for byte; another weight changes the policies whose prior was learned, on any number of ranks; and an
        option of a policy takes precedence over the study's key."""
        plain = self.regret("plain", POLICIES)
        guarded = self.regret("guarded", POLICIES, ", guard: 0.3")
        self.assertEqual(plain.tobytes(), self.regret("zero", POLICIES, ", guard: 0, guard_width: 5").tobytes())
        self.assertEqual(guarded.tobytes(), self.regret("ranks", POLICIES, ", guard: 0.3", ranks=2).tobytes())
        self.assertEqual(plain[0].tobytes(), guarded[0].tobytes())  # N(0, I) was not learned
        for policy in (1, 2, 3):
            self.assertNotEqual(plain[policy].tobytes(), guarded[policy].tobytes())
        auto = self.regret("auto", POLICIES, ", guard: auto, guard_shrink: 0.7")  # what the pages recommend
        self.assertEqual(auto.tobytes(), self.regret("recommended", POLICIES, ", guard: 0.3, guard_shrink: 0.4").tobytes())
        self.assertNotEqual(auto.tobytes(), guarded.tobytes())
        option = self.regret("option", "[{name: mixts, guard: auto}, {name: diffts, guard: auto}]")
        self.assertEqual(option.tobytes(), auto[2:].tobytes())
        options = "[{name: ts, guard: 0}, {name: tuned_ts, guard: 0.3}, {name: mixts, guard: 0}, diffts]"
        chosen = self.regret("options", options, ", guard: 0.3")
        for policy, like in ((0, plain), (1, guarded), (2, plain), (3, guarded)):
            self.assertEqual(chosen[policy].tobytes(), like[policy].tobytes())

    def test_learned_weight(self):
        """With no tasks the weight stays as given, byte for byte; with some it is learned, the same on any number of ranks, only for policies with
        a learned prior. There must be tasks left from which the prior was not learned."""
        given, learned = self.regret("given", POLICIES, ", guard: 0.3"), self.regret("learned", POLICIES, ", guard: 0.3, guard_tasks: 4")
        self.assertEqual(given.tobytes(), self.regret("none", POLICIES, ", guard: 0.3, guard_tasks: 0, past_observations: 7").tobytes())
        self.assertEqual(learned.tobytes(), self.regret("ranks", POLICIES, ", guard: 0.3, guard_tasks: 4", ranks=2).tobytes())
        self.assertEqual(given[0].tobytes(), learned[0].tobytes())
        for policy in (1, 2, 3):
            self.assertNotEqual(given[policy].tobytes(), learned[policy].tobytes())
        own = self.regret("own", "[{name: mixts, guard: 0.3}]", ", guard_tasks: 4")
        self.assertEqual(own[0].tobytes(), learned[2].tobytes())
        self.write("theta.csv", "".join(f"{i % 7},{i % 5}\n" for i in range(40)))
        finite = STUDY.replace("theta: cross", f"theta: file, file: {self.path('theta.csv')}") % ("[mixts]", ", guard: 0.3, guard_tasks: 4, components: 1")
        study = self.write("finite.yaml", finite)
        self.fail_with(3, "train_samples: all leaves no theta", "run", study, "-o", self.path("out"), "--set", "prior.train_samples=all")
        self.succeed("run", study, "-o", self.path("enough"), "--progress", "none", "--set", "prior.train_samples=30")
        few = program.thompson("run", study, "-o", self.path("few"), "--set", "prior.train_samples=32")
        self.assertEqual(few.returncode, 5)
        self.assertIn("use a smaller prior.train_samples", few.stderr)

    def test_contamination(self):
        """Contamination of the samples to which priors are fitted: a share of 0 changes nothing, another every learned prior, on any number of ranks."""
        plain = self.regret("plain", POLICIES)
        self.assertEqual(plain.tobytes(), self.regret("none", POLICIES, ", contamination: 0").tobytes())
        some = self.regret("some", POLICIES, ", contamination: 0.3")
        self.assertEqual(some.tobytes(), self.regret("ranks", POLICIES, ", contamination: 0.3", ranks=2).tobytes())
        self.assertEqual(plain[0].tobytes(), some[0].tobytes())
        for policy in (1, 2, 3):
            self.assertNotEqual(plain[policy].tobytes(), some[policy].tobytes())

    def test_p_values(self):
        """In a study they are given at 1, 2, 5, .. observations and the last one, for policies with a prior, and change nothing else; also
        together with the other curve that can be requested."""
        plain = self.regret("plain", "[ts, mixts, linucb]")
        for metrics in ("[prior_p_value]", "[optimal_arm_entropy, prior_p_value]"):
            study = self.write("asked.yaml", STUDY % ("[ts, mixts, linucb]", "") + f"metrics: {metrics}\ndraws: 50\n")
            self.succeed("run", study, "-o", self.path("asked"), "--progress", "none", "--overwrite")
            with netCDF4.Dataset(self.path("asked/results.nc")) as data:
                regret, values = (data[name][...].filled(np.nan)[0] for name in ("regret", "prior_p_value"))
            self.assertEqual(regret.tobytes(), plain.tobytes())
            known = np.flatnonzero(np.isfinite(values[:2]).all(axis=(0, 1)))
            self.assertEqual(list(known + 1), [1, 2, 5, 10, 20, 30])
            self.assertTrue(np.isnan(values[2]).all())
            self.assertTrue(((values[:2, :, known] >= 1 / 51) & (values[:2, :, known] <= 1)).all())

    def test_p_values_of_swept_rounds(self):
        """Each setting of a sweep has a p-value in its own last round."""
        study = self.write("swept.yaml", STUDY % ("[ts]", "") + "metrics: [prior_p_value]\ndraws: 50\nsweep: {problem.rounds: [12, 30]}\n")
        self.succeed("run", study, "-o", self.path("swept"), "--progress", "none")
        with netCDF4.Dataset(self.path("swept/results.nc")) as data:
            values = data["prior_p_value"][...].filled(np.nan)[:, 0]
        for setting, known in ((0, [1, 2, 5, 10, 12]), (1, [1, 2, 5, 10, 20, 30])):
            self.assertEqual(list(np.flatnonzero(np.isfinite(values[setting]).all(axis=0)) + 1), known)

    def test_refused(self):
        study = self.write("ising.yaml", STUDY % ("[{name: localised, prior: ising, guard: 0.1}]", ""))
        self.fail_with(3, "no companion mixture of Gaussians", "plan", study)
        for number, (policy, keys) in enumerate((("{name: ts, noise: unknown, guard: 0.3}", ""), ("{name: lints, prior: gaussian, noise: unknown}", ", guard: auto"))):
            study = self.write(f"noise{number}.yaml", STUDY % (f"[{policy}]", keys))
            self.fail_with(3, "noise: unknown: the weight of a guard needs a known noise", "plan", study)

    def sample(self, *options):
        out = self.succeed("sample", "--prior", self.path("prior.nc"), "--data", self.path("history.csv"), "--sampler", "mixts", "-n", "4000", "-o",
                           self.path("draws.nc"), *options).stdout
        with netCDF4.Dataset(self.path("draws.nc")) as data:
            return out, data["theta"][...].filled(np.nan), getattr(data, "guard_weight", None)

    def test_sample(self):
        """The prior N(1, 1) is incompatible with the observations, which are far from it: the weight agrees with the closed form, and the mean of the
        draws with the exact one, mostly that of the wide Gaussian, within 5 standard errors."""
        with netCDF4.Dataset(self.path("prior.nc"), "w") as file:
            file.prior = "gaussian"
            for name in ("component", "dim", "dim2"):
                file.createDimension(name, 1)
            file.createVariable("weight", "f8", ("component",))[:] = 1
            file.createVariable("mean", "f8", ("component", "dim"))[:] = 1
            file.createVariable("covariance", "f8", ("component", "dim", "dim2"))[:] = 1
        self.write("history.csv", "x1,y\n1,6\n1,5\n")
        out, theta, weight = self.sample()
        self.assertIsNone(weight)
        self.assertIn("p-value of the history under the prior 0.00", out)
        self.assertIn("the prior may be wrong", out)
        self.assertNotIn("weight of the guard", out)
        self.assertNotIn("p-value", self.succeed("sample", "--prior", self.path("prior.nc"), "--data", self.path("history.csv"), "--sampler", "ts",
                                                 "--option", "noise=unknown", "-o", self.path("draws.nc")).stdout)  # it takes the noise for known

        def density(variance):
            covariance = np.eye(2) + variance
            away = np.array([5.0, 4.0])
            return np.exp(-0.5 * away @ np.linalg.solve(covariance, away)) / np.sqrt(np.linalg.det(covariance))

        exact = 0.1 * density(4) / (0.1 * density(4) + 0.9 * density(1))
        out, theta, weight = self.sample("--option", "guard=0.1")
        self.assertAlmostEqual(weight, exact, places=10)
        self.assertIn(f"posterior weight of the guard {exact:.3g}", out)
        mean = (1 - exact) * (1 + 11) / 3 + exact * (0.25 + 11) / 2.25
        self.assertAlmostEqual(theta.mean(), mean, delta=5 * theta.std() / np.sqrt(4000))

        # auto: weight 0.3, and draws from the wide Gaussian are m + 0.4 z where they would be m + z.
        _, full, before = self.sample("--option", "guard=0.3")
        _, shrunk, after = self.sample("--option", "guard=auto")
        self.assertEqual(before, after)
        wide = full != shrunk
        self.assertAlmostEqual(wide.mean(), before, delta=5 * np.sqrt(before * (1 - before) / 4000))
        np.testing.assert_allclose((shrunk - 0.4 * full)[wide], 0.6 * (0.25 + 11) / 2.25, rtol=1e-12)

        # All of 40 clicks come, each with probability 0.56 at the prior's mean, 0.73 at 4.
        self.write("clicks.csv", "x1,y\n" + "0.25,1\n" * 40)
        out = self.succeed("sample", "--prior", self.path("prior.nc"), "--data", self.path("clicks.csv"), "--sampler", "mixts", "--likelihood",
                           "logistic", "-o", self.path("draws.nc")).stdout
        self.assertIn("the prior may be wrong", out)
        # A task like the history: g is Beta(0.1, 0.9), whose mean after it is (0.1 + exact) / 2.
        self.write("recent.csv", "task,x1,y\na,1,6\na,1,5\n")
        learned = (0.1 + exact) / 2
        exact = learned * density(4) / (learned * density(4) + (1 - learned) * density(1))
        out, _, weight = self.sample("--option", "guard=0.1", "--recent", self.path("recent.csv"))
        self.assertIn(f"1 task changes the weight of the guard from 0.1 to {learned:.3g}", out)
        self.assertAlmostEqual(weight, exact, places=10)
        self.write("plane.csv", "task,x1,x2,y\na,1,2,3\n")
        for options, sentence in (((), "--option guard=0.2"), (("--option", "guard=0"), "--option guard=0.2"),
                                  (("--option", "guard=0.1", "--recent", self.path("plane.csv")), "features in 2 dimensions")):
            self.fail_with(3, sentence, "sample", "--prior", self.path("prior.nc"), "--data", self.path("history.csv"), "--sampler", "mixts",
                           "-o", self.path("draws.nc"), "--recent", self.path("recent.csv"), *options)


if __name__ == "__main__":
    program.main()
