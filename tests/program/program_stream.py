"""The stream study: its bandits are those of a bandit study, a learned prior lowers regret, a switch of world, any ranks, kill and resume; what it
refuses."""

import json
import signal

import netCDF4
import numpy as np

import journals
import program

STUDY = """
name: stream
study: stream
runs: 4
block: 2
problem: {theta: gm_cross, arms: 20, rounds: 20}
stream: {tasks: 12}
policies: %s
"""
SMALL = "[ts, mixts, {name: mixts, rule: bayes_ucb, label: ucb}, linucb]"


class Stream(program.ProgramTest):
    def results(self, name, policies, *changes, study=STUDY, **options):
        sets = [word for change in changes for word in (("--set", change) if "=" in change else (change,))]
        self.succeed("run", self.write("stream.yaml", study % policies), "-o", self.path(name), "--progress", "none", *sets, **options)
        with netCDF4.Dataset(self.path(f"{name}/results.nc")) as data:
            return tuple(np.ma.filled(data[key][0].astype(float), np.nan) for key in ("task_regret", "task_regret_known"))

    def test_bandits_are_those_of_a_bandit_study(self):
        """Bandit j of stream s is run 12 s + j; the known prior is prior: exact; a prior that is not learned, or not yet, is N(0, I)."""
        policies = "[ts, {name: mixts, prior: exact, label: known}, mixts, linucb]"
        regret, known = self.results("none", policies, "stream.learn=none")
        bandits = self.write("bandit.yaml", STUDY.replace("study: stream", "study: bandit").replace("runs: 4", "runs: 48") % policies.replace("mixts, lin", "{name: mixts, prior: standard, label: mixts}, lin"))
        self.succeed("run", bandits, "-o", self.path("bandits"), "--progress", "none")
        with netCDF4.Dataset(self.path("bandits/results.nc")) as data:
            wanted = data["regret"][0, :, :, -1].reshape(4, 4, 12)
        np.testing.assert_array_equal(regret, wanted)
        np.testing.assert_array_equal(known[1:3], [wanted[1]] * 2)
        self.assertTrue(np.isnan(known[[0, 3]]).all())  # ts takes only a single Gaussian, linucb no prior
        late, _ = self.results("late", policies, "stream.every=12")
        np.testing.assert_array_equal(late, regret)
        wide, _ = self.results("wide", policies, "stream.learn=none", "stream.start=wide")
        self.assertFalse(np.array_equal(wide[2], regret[2]))
        np.testing.assert_array_equal(wide[[0, 1, 3]], regret[[0, 1, 3]])

    def test_learning_pays(self):
        """24 streams of 60 bandits of 50 rounds with four modes: more than 3 paired standard errors below N(0, I) from bandit 31 on, for both rules (5 and more
        were measured), and closer to the known prior than to N(0, I); a Gaussian learns less about four modes than a mixture, but it learns."""
        policies = "[ts, mixts, {name: ts, rule: bayes_ucb, label: ts_ucb}, {name: mixts, rule: bayes_ucb, label: ucb}]"
        changes = ("runs=24", "block=12", "problem.theta=gm_four", "problem.rounds=50", "stream.tasks=60", "stream.start=wide")
        regret, known = self.results("mixture", policies, *changes, ranks=2)
        late = regret[:, :, 30:].mean(axis=2)
        for mine, plain in ((1, 0), (3, 2)):
            gain = late[plain] - late[mine]
            self.assertGreater(gain.mean(), 3 * gain.std(ddof=1) / np.sqrt(24))
            self.assertLess(late[mine].mean() - known[mine, :, 30:].mean(), gain.mean())
        gaussian, _ = self.results("gaussian", "[mixts]", *changes, "stream.learn=gaussian", ranks=2)
        self.assertLess(late[1].mean(), gaussian[0, :, 30:].mean())
        self.assertLess(gaussian[0, :, 30:].mean(), late[0].mean())

    def test_pooled(self):
        """If all bandits have the same theta, pooled ridge regression is right: bandits 9 to 12 have less than a tenth of the regret of the first, which is that
        of N(0, I). If they do not, it is confidently wrong: above N(0, I) from bandit 5 on."""
        samples = self.write("theta.csv", "1,-1\n" * 40)
        regret, _ = self.results("one", "[ts, mixts]", "problem.theta=file", f"problem.file={samples}", "stream.learn=pooled", "runs=8")
        np.testing.assert_array_equal(regret[0, :, 0], regret[1, :, 0])
        self.assertLess(regret[1, :, 8:].mean(), 0.1 * regret[1, :, 0].mean())
        other, _ = self.results("other", "[ts, mixts]", "problem.theta=gm_four", "stream.learn=pooled", "runs=8")
        self.assertGreater(other[1, :, 4:].mean(), other[0, :, 4:].mean())

    def test_switch(self):
        """Nothing changes before it; after it the known prior is that of the other world."""
        before, known = self.results("still", "[ts, mixts]")
        after, other = self.results("switched", "[ts, mixts]", "stream.switch_at=7")
        np.testing.assert_array_equal(before[:, :, :7], after[:, :, :7])
        np.testing.assert_array_equal(known[1, :, :7], other[1, :, :7])
        self.assertTrue((before[:, :, 7:] != after[:, :, 7:]).any())
        right, _ = self.results("right", "[{name: mixts, prior: exact}]", "problem.theta=gm_rays")
        np.testing.assert_array_equal(other[1, :, 7:], right[0, :, 7:])

    def test_one_gaussian(self):
        """A sampler that takes only a single Gaussian is given the moments of what is learned; before that it equals the one with N(0, I)."""
        regret, _ = self.results("gaussian", "[ts, {name: ts, prior: mixture, label: learned}]")
        np.testing.assert_array_equal(regret[0, :, :4], regret[1, :, :4])
        self.assertTrue(np.isfinite(regret[1]).all() and (regret[0, :, 4:] != regret[1, :, 4:]).any())
        self.results("tuned", "[tuned_ts, {name: mixts, guard: 0.2}, diffts]", "stream.tasks=6")

    def test_likelihoods(self):
        for likelihood in ("logistic", "poisson"):
            regret, _ = self.results(likelihood, "[ts, mixts]", f"likelihood={likelihood}", "runs=2", "stream.tasks=8", "problem.theta=gaussian", "problem.dimension=3")
            self.assertTrue(np.isfinite(regret).all())

    def test_ranks_blocks_and_updates(self):
        self.results("one", SMALL)
        for ranks in (2, 3, 4):
            self.results(f"ranks{ranks}", SMALL, ranks=ranks)
            self.assert_same_results(self.path("one/results.nc"), self.path(f"ranks{ranks}/results.nc"))
        one, _ = self.results("block1", SMALL, "block=1")
        four, _ = self.results("block4", SMALL, "block=4")
        np.testing.assert_array_equal(one, four)
        self.assertFalse(np.array_equal(one[1], self.results("every", SMALL, "stream.every=5")[0][1]))

    def test_killed(self):
        self.results("whole", SMALL, "block=1")
        job = self.start("run", self.path("stream.yaml"), "-o", self.path("killed"), "--progress", "none", "--set", "block=1", records=1)
        self.wait_until(job, lambda: journals.done(self.path("killed")))
        job.kill()
        self.assertEqual(job.wait(), -signal.SIGKILL)
        self.results("killed", SMALL, "block=1", "--resume", ranks=2)
        self.assert_same_results(self.path("whole/results.nc"), self.path("killed/results.nc"))

    def test_plan(self):
        """There is no prior to train."""
        plan = json.loads(self.succeed("plan", self.write("stream.yaml", STUDY % SMALL), "--json").stdout)
        self.assertEqual((plan["priors"], plan["training_core_hours"]), (0, 0))

    def test_refused(self):
        study = self.write("stream.yaml", STUDY % "[ts, mixts]")
        for changes, part in ((["problem.drift.kind=switch", "problem.drift.every=5"], "problem.drift: kind switch is for study bandit"), (["stream.learn=prior"], "mixture | gaussian | pooled | none"), (["stream.learn=pooled", "likelihood=logistic"], "needs likelihood: gaussian"),
                              (["stream.start=narrow"], "standard | wide"), (["stream.tasks=0"], "stream.tasks"), (["stream.switch_at=3", "stream.switch_to=gm_cros"], "stream.switch_to"),
                              (["stream.switch_at=3", "problem.theta=gaussian", "problem.dimension=3"], "stream.switch_to: "),
                              (["stream.switch_at=3", "problem.family=pool"], "needs problem.family: synthetic"), (["problem.unknown=per_arm"], "one theta* for all arms"),
                              (["policies=[{name: ts, posterior: per_arm}]"], "posterior: per_arm"), (["runs=1000000000", "block=4096"], "bandits in total"), (["runs=1000000000", "block=1"], "tasks: too many"),
                              (["prior.guard=0.2"], "initial Gaussian"), (["prior.guard=auto"], "initial Gaussian")):
            sets = [word for change in changes for word in ("--set", change)]
            self.fail_with(3, part, "run", study, "-o", self.path("refused"), *sets)


if __name__ == "__main__":
    program.main()
