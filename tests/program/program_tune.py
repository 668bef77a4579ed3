"""`thompson tune`: the same on any number of ranks, the regret of `thompson run` on the same distribution, and a policy line that a study accepts."""

import json

import netCDF4

import program

STUDY = """
name: tune
study: bandit
seed: 3
runs: 1024
problem: {theta: gaussian, dimension: 2, arms: 20, rounds: 40}
policies: [%s]
prior: {components: 2}
"""


class Tune(program.ProgramTest):
    def tuned(self, policies, *arguments, ranks=0):
        study = self.write("tune.yaml", STUDY % policies)
        return json.loads(self.succeed("tune", study, "--json", *arguments, ranks=ranks).stdout)

    def test_ranks(self):
        found = [self.tuned("ts", "--tolerance", "0.1", ranks=ranks) for ranks in (0, 2, 3)]
        for one in found:
            for row in one["policies"]:
                self.assertGreater(row.pop("seconds_per_round"), 0)
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])
        self.assertTrue(found[0]["known"])
        self.assertEqual(len(found[0]["policies"]), 11)
        means = [row["mean"] for row in found[0]["policies"]]
        self.assertEqual(means, sorted(means))

    def test_regret_is_that_of_run(self):
        """N(0, I) is both the prior of `ts` and the distribution of theta*: means over independent tasks agree within 4 standard errors.
        The better of two policies is found, and its line works in a study."""
        policies = "{name: ts, label: slow, temper: 0.3}, {name: ts, label: fast, rule: bayes_ucb, bayes_ucb_alpha: 0.2}"
        output = self.path("best.txt")
        found = self.tuned(policies, "-o", output)
        with open(output, encoding="utf-8") as file:
            line = file.read().strip()
        self.assertEqual(line, "{name: ts, rule: bayes_ucb, bayes_ucb_alpha: 0.2}")
        self.assertEqual(found["best"], line)
        self.succeed("run", self.path("tune.yaml"), "-o", self.path("out"), "--progress", "none", "--set", f"policies=[{policies}, {line[:-1]}, label: best}}]")
        with netCDF4.Dataset(self.path("out/results.nc")) as data:
            mean, se, regret = data["regret_mean"][0, :, -1], data["regret_se"][0, :, -1], data["regret"][0]
        self.assertEqual(regret[1].tobytes(), regret[2].tobytes())
        for p, label in enumerate(("slow", "fast")):
            row = next(row for row in found["policies"] if row["policy"] == label)
            self.assertAlmostEqual(row["mean"], mean[p], delta=4 * (row["se"] ** 2 + se[p] ** 2) ** 0.5)
            self.assertGreaterEqual(row["largest"], row["percentile_95"])
            self.assertGreater(row["percentile_95"], row["mean"])

    def test_guard(self):
        """Regret is higher if theta* is drawn from a Gaussian with three times the standard deviation."""
        found = self.tuned("{name: mixts, prior: mixture, guard: 0.2}", "--tolerance", "0.3", "--set", "prior.guard_width=3", "--set", "prior.guard=0.2")
        for row in found["policies"]:
            self.assertGreater(row["mean_wide"], row["mean"])
        self.assertNotIn("mean_wide", self.tuned("ts", "--tolerance", "0.5")["policies"][0])

    def test_candidates_fit(self):
        """What is forgotten cannot be tempered: a policy that forgets is tuned without those candidates."""
        found = self.tuned("{name: ts, memory: filtered}", "--tolerance", "0.5", "--set", "likelihood=logistic", "--set", "problem.rounds=5")
        labels = [row["policy"] for row in found["policies"]]
        self.assertEqual(len(labels), 8)
        self.assertFalse([label for label in labels if "temper" in label])

    def test_refused(self):
        for changes, part in (("problem.noise=[1,2]", "2 settings"), ("problem.family=twin", "problem.family: twin"), ("policies=[linucb]", "none has a prior"),
                              ("study=posterior", "study bandit")):
            self.fail_with(3, part, "tune", self.write("tune.yaml", STUDY % "ts"), "--set", changes)
        self.fail_with_usage("--tolerance", "tune", self.study, "--tolerance", "2")


class Ranks(program.ProgramTest):
    def test_rules(self):
        """Rules based on moments in closed form, on those of draws, and with a guard: the same bytes on one rank and on three."""
        policies = ", ".join(f"{{name: {name}, label: {name} {rule}, rule: {rule}{more}}}" for name, more in (
            ("mixts", ", prior: mixture, guard: 0.3"), ("vits2", ", rule_draws: 8"), ("ts", "")) for rule in ("bayes_ucb", "greedy"))
        study = self.write("ranks.yaml", STUDY % policies)
        for ranks in (0, 3):
            self.succeed("run", study, "-o", self.path(f"ranks{ranks}"), "--progress", "none", "--set", "runs=24", "--set", "block=4", ranks=ranks)
        self.assert_same_results(self.path("ranks0/results.nc"), self.path("ranks3/results.nc"))


class PerArm(program.ProgramTest):
    def test_unit_vectors(self):
        """With one unit vector for each arm and N(0, I), an arm's own posterior has the same mean and variance as the shared one: rules that need no
        draw choose the same arms, also with a given horizon."""
        policies = [f"{{name: {name}, rule: {rule}, posterior: {posterior}, label: {name} {rule.split(',')[0]} {posterior}}}" for name in ("ts", "rvga")
                    for rule in ("greedy", "bayes_ucb", "bayes_ucb, horizon: 100") for posterior in ("shared", "per_arm")]
        policies = [policy.replace("label: ", f"label: {k} ") for k, policy in enumerate(policies)]
        study = self.write("arms.yaml", STUDY.replace("arms: 20", "features: basis").replace("dimension: 2", "dimension: 5") % ", ".join(policies))
        self.succeed("run", study, "-o", self.path("out"), "--progress", "none", "--set", "runs=128")
        with netCDF4.Dataset(self.path("out/results.nc")) as data:
            regret = data["regret"][0]
        for shared, own in zip(regret[::2], regret[1::2]):
            self.assertEqual(shared.tobytes(), own.tobytes())
        self.assertNotEqual(regret[2].tobytes(), regret[4].tobytes())
        self.assertNotEqual(regret[0].tobytes(), regret[2].tobytes())


if __name__ == "__main__":
    program.main()
