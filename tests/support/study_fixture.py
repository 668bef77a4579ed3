"""Results of artificial studies, in the form that the program writes, for the tests of analysis/; and what these tests share.

Each test computes its expected numbers from the per-run values that the makers return.
"""
import contextlib
import html.parser
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.modules["dask"] = None  # xarray looks for it at every access; not to find it takes long
import netCDF4
import numpy as np

import script
import style
import summary

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ANALYSIS = ROOT / "analysis"
FILES = sorted(path for folder in ("figures", "claims", "tools") for path in (ANALYSIS / folder).glob("*.py") if not path.is_symlink())
SCRIPTS = {path.stem: path for path in FILES if "__main__" in path.read_text()}
PRIORS = ["cross", "rays", "triangles"]
# Final regret and its spread over runs, close to those of a real study; dps diverges.
POLICIES = {"ts": (19, 8), "tuned_ts": (18.5, 8), "mixts": (16, 8), "mixts10": (14, 8), "diffts": (13, 8), "dps": (200, 90),
            "linucb": (24, 5), "egreedy": (40, 30)}
BANDIT = """name: figure2
study: bandit
seed: 2024
runs: {runs}
problem:
  family: synthetic
  theta: cross
  arms: 100
  noise: 1
prior:
  stages: 100
policies:
{policies}
"""
SIZES = [1, 10, 50, 200]
# A posterior study; label: registered name, distance relative to that of exact draws at one observation.
SAMPLERS = {"ts": ("ts", 3.0), "diffts": ("diffts", 1.6), "diffts exact chain": ("diffts", 1.4), "dps": ("dps", 60.0),
            "exact": ("exact", 1.0)}
THETAS = [{"problem.theta": "gm_cross"}, {"problem.theta": "gm_rays"}]
DRAWS = 149
OPTIONS = """study: x
block: 8
problem:
  family: {family}
likelihood: {likelihood}
target_kl: 0.1
max_steps: {limit}
policies:
{policies}"""
# A grid of options; label: registered name, options.
GRID = {f"{name} h={h}{extra}": (name, {"steps": steps, "step_size": h})
        for name, steps, extra in (("vits2", 10, ""), ("lmc", 10, ""), ("lmc", 50, " long")) for h in (0.01, 0.1)}
ZETA = [{"problem.zeta": 0.1}, {"problem.zeta": 1}]
LIMIT = 5000
WORDS = {"regret": "cumulative expected regret", "sample_size": "number of observations"}


# ---- files

def texts(file, name, dimension, values):
    """A char variable in the form that src/io/store.h writes: NUL-padded, _Encoding = utf-8."""
    encoded = [value.encode() for value in values]
    width = max(map(len, encoded))
    length = f"{name}_length"
    file.createDimension(length, width)
    variable = file.createVariable(name, "S1", (dimension, length))
    variable._Encoding = "utf-8"
    variable.set_auto_chartostring(False)
    variable[:] = np.frombuffer(b"".join(value.ljust(width, b"\0") for value in encoded), "S1").reshape(-1, width)


def over_runs(values):
    """Mean, standard error and number of the values of completed runs; the run is the second-to-last dimension."""
    n = np.isfinite(values).sum(axis=-2)
    mean = np.nansum(values, axis=-2) / np.where(n > 0, n, np.nan)
    square = np.nansum((values - mean[..., None, :]) ** 2, axis=-2)
    return mean, np.sqrt(square / np.where(n > 1, n - 1, np.nan) / np.where(n > 0, n, np.nan)), n


def write_study(folder, axis, points, curves, settings, policies, replicates=1, not_run=(), failed=(), seconds=0.5, train=6.0, fallbacks=0,
                config=None, **attributes):
    """folder/results.nc of any kind; `curves` {name: values [setting, policy, run, point]}, `settings` a list of {swept key: value}."""
    count, width, runs, _ = next(iter(curves.values())).shape
    status = np.ones((count, width, runs), dtype="i1")
    for places, code in ((not_run, 0), (failed, 2)):
        for place in places:
            status[place] = code
    replicate = np.arange(runs) * replicates // runs
    (folder / "results.nc").unlink(missing_ok=True)  # it may still be open
    with netCDF4.Dataset(folder / "results.nc", "w") as file:
        for name, length in (("setting", count), ("policy", width), ("run", runs), (axis, len(points))):
            file.createDimension(name, length)
        texts(file, "setting", "setting", [", ".join(f"{key}={value}" for key, value in one.items()) or "default"
                                           for one in settings])
        texts(file, "policy", "policy", list(policies))
        swept = " ".join(key.replace(".", "_") for key in settings[0])

        def put(name, kind, dimensions, values, words=""):
            variable = file.createVariable(name, kind, dimensions, fill_value=np.nan if kind == "f8" else False)
            variable.long_name = words or WORDS.get(name, name)
            if dimensions[:2] == ("setting", "policy"):
                variable.coordinates = f"setting policy {'replicate ' if 'run' in dimensions else ''}{swept}".rstrip()
            variable[:] = values

        for key in settings[0]:
            values, name = [one[key] for one in settings], key.replace(".", "_")
            if isinstance(values[0], str):
                texts(file, name, "setting", values)
                file[name].long_name = f"swept key {key}"
            else:
                put(name, "f8", ("setting",), values, f"swept key {key}")
        put("run", "i8", ("run",), np.arange(runs))
        put("replicate", "i4", ("run",), replicate)
        put(axis, "f8", (axis,), points)
        small = ("setting", "policy", axis)
        for name, values in curves.items():
            values = np.where(status[..., None] == 1, values, np.nan)
            put(name, "f8", ("setting", "policy", "run", axis), values)
            mean, error, n = over_runs(values)
            shares = np.stack([over_runs(values[:, :, replicate == r])[0] for r in range(replicates)], axis=-2)
            for ending, numbers in (("mean", mean), ("se", error), ("se_replicate", over_runs(shares)[1])):
                put(f"{name}_{ending}", "f8", small, numbers)
            put(f"{name}_n", "i4", small, n)
            if not name.endswith("_floor"):
                paired = values - values[:, :1]
                mean, error, _ = over_runs(paired)
                put(f"{name}_diff_mean", "f8", small, mean)
                put(f"{name}_diff_se", "f8", small, error)
                shares = np.stack([over_runs(paired[:, :, replicate == r])[0] for r in range(replicates)], axis=-2)
                put(f"{name}_diff_se_replicate", "f8", small, over_runs(shares)[1])
        full = ("setting", "policy", "run")
        put("seconds", "f8", full, np.where(status == 1, seconds, np.nan))
        put("seconds_train", "f8", full[:2], np.full((count, width), train))
        put("fallbacks", "i8", full, np.where(status == 1, fallbacks, 0))
        put("status", "i1", full, status)
        listed = "".join(f"  - {{name: {name}, label: {json.dumps(label)}}}\n" for label, (name, _) in policies.items())
        file.setncatts({"Conventions": "CF-1.10", "seed": np.int64(2024),
                        "config": config or f"study: x\ndraws: {DRAWS}\nproblem:\n  noise: 1\npolicies:\n{listed}", **attributes})


# ---- studies

def write_results(folder, settings, policies=POLICIES, runs=64, rounds=200, failed=(), not_run=(), seed=1, rounds_of=None, replicates=2):
    """A bandit study on these priors; `failed` and `not_run` list (setting, policy, run), `rounds_of` the rounds by setting. Returns regret
    [setting, policy, run, round]."""
    rng = np.random.default_rng(seed)
    k, regret = np.arange(1, rounds + 1), np.empty((len(settings), len(policies), runs, rounds))
    world = rng.standard_normal((len(settings), 1, runs))  # the same for all policies: paired
    for p, (name, (final, spread)) in enumerate(policies.items()):
        end = np.abs(final + spread * (0.8 * world[:, 0] + 0.6 * rng.standard_normal((len(settings), runs))))
        regret[:, p] = end[..., None] * (k / rounds) ** (1.8 if name == "dps" else 0.35)
    for place in (*failed, *not_run):
        regret[place] = np.nan
    for s, last in enumerate(rounds_of or []):
        regret[s, ..., last:] = np.nan
    each = np.arange(len(policies))[:, None]
    listed = [f"  - {{name: {json.dumps('mixts' if name == 'mixts10' else name)}, label: {json.dumps(name)}, prior: default}}" for name in policies]
    write_study(folder, "round", k, {"regret": regret}, [{"problem.theta": setting} for setting in settings],
                {name: (name, {}) for name in policies}, replicates, not_run, failed, 0.001 * (1 + each), 3.5, each % 2,
                BANDIT.format(runs=runs, policies="\n".join(listed)), title="figure2")
    return regret


def two_priors(setting, n, d, rng):
    """n samples of a prior in the shape of `setting` and of a slightly wrong one: [2, n, d]."""
    u = rng.uniform(-3, 3, (2, 40 * n, 2))
    radius, largest = np.hypot(u[..., 0], u[..., 1]), np.abs(u).max(axis=-1)
    inside = {"rays": (radius < 3) & (largest > 0.95 * radius),
              "triangles": ((u[..., 0] > 0) & (np.abs(u[..., 1]) < u[..., 0]))
              | ((u[..., 0] < 0) & (np.abs(u[..., 1]) < -u[..., 0] / 3))}
    both = []
    for source in range(2):
        if setting in inside:
            flat = u[source][inside[setting][source]][:n]
        else:
            sign = np.where(rng.random(n) < 0.5, 1, -1)
            flat = rng.standard_normal((n, 2)) @ np.linalg.cholesky([[1, 0.9], [0.9, 1]]).T * np.stack([np.ones(n), sign], 1)
        theta = np.concatenate([flat, np.zeros((n, d - 2))], axis=1) if d > 2 else flat[:, :d]
        both.append(theta + (0.1 if source else 0.02) * rng.standard_normal(theta.shape))
    return np.stack(both)


def write_priors(folder, settings, n=1000, dimensions=2, seed=2, learned=True):
    """folder/prior_samples.nc; `dimensions` is one number or one for each setting, absent entries are NaN."""
    rng = np.random.default_rng(seed)
    sizes = [dimensions] * len(settings) if isinstance(dimensions, int) else dimensions
    theta = np.full((len(settings), 2, n, max(sizes)), np.nan)
    for s, (setting, d) in enumerate(zip(settings, sizes)):
        both = two_priors(setting, n, d, rng)
        theta[s, :, :, :d] = both
    if not learned:
        theta[:, 1] = np.nan
    # A script may still have it open: HDF5 refuses to overwrite it, but not to write a new file.
    (folder / "prior_samples.nc").unlink(missing_ok=True)
    with netCDF4.Dataset(folder / "prior_samples.nc", "w") as file:
        for name, length in zip(("setting", "source", "sample", "dim"), theta.shape):
            file.createDimension(name, length)
        texts(file, "setting", "setting", [f"problem.theta={setting}" if setting else "default" for setting in settings])
        texts(file, "source", "source", ["true", "diffusion"])
        file.createVariable("theta", "f8", ("setting", "source", "sample", "dim"), fill_value=np.nan)[:] = theta
    return theta


def write_posterior(folder, settings=THETAS, policies=SAMPLERS, sizes=SIZES, runs=24, replicates=6, not_run=(), ranks=None,
                    seed=5):
    """A posterior study; returns {curve: values [setting, policy, run, size]}, NaN where not run."""
    rng = np.random.default_rng(seed)
    shape = (len(settings), len(policies), runs, len(sizes))
    scale = np.array([level for _, level in policies.values()])[:, None, None]

    def like(level, n=shape):
        return level * np.exp(0.2 * rng.standard_normal(n))

    floor, slope = like(0.3, (shape[0], 1, runs, len(sizes))), np.asarray(sizes, float) ** -0.4
    curves = {"emd": like(0.3) * scale * slope, "emd_floor": np.broadcast_to(floor * slope, shape),
              "sd_ratio": like(1.0) * scale ** 0.2, "sd_ratio_floor": np.broadcast_to(like(1.0, floor.shape), shape),
              "mode_weight_error": like(0.1), "mode_weight_error_floor": np.broadcast_to(like(0.05, floor.shape), shape),
              "rank": rng.integers(0, DRAWS + 1, shape).astype(float) if ranks is None else ranks}
    write_study(folder, "sample_size", sizes, curves, settings, policies, replicates, not_run)
    for place in not_run:
        for name, values in curves.items():
            curves[name] = values = np.array(values)
            values[place] = np.nan
    return curves


def describe(folder, policies, family="pool", likelihood="gaussian"):
    """Set attribute config to that of a study with these policies {label: (name, options)}."""
    listed = "".join(f'  - {{name: {name}, label: "{label}", prior: default, '
                     + ", ".join(f"{key}: {value}" for key, value in chosen.items()) + "}\n"
                     for label, (name, chosen) in policies.items())
    with netCDF4.Dataset(folder / "results.nc", "a") as file:
        file.setncattr("config", OPTIONS.format(family=family, likelihood=likelihood, limit=LIMIT, policies=listed))


def bandit(folder, settings=ZETA, policies=GRID, runs=20, rounds=30, not_run=(), seconds=0.5, **more):
    """A bandit study; returns regret [setting, policy, run, round]."""
    rng = np.random.default_rng(3)
    shape = (len(settings), len(policies), runs, 1)
    regret = (40 + rng.normal(0, 8, shape)) * np.sqrt(np.arange(1, rounds + 1))
    write_study(folder, "round", np.arange(1, rounds + 1), {"regret": regret}, settings, policies, not_run=not_run,
                seconds=seconds)
    describe(folder, policies, **more)
    return regret


def convergence(folder, key="problem.condition_number", values=(1, 5, 10, 20), runs=12, seconds=0.5):
    """A convergence study; returns steps to the target [setting, policy, run], NaN where a run did not arrive."""
    rng = np.random.default_rng(4)
    policies = {f"{name} h={h}": (name, {"step_size": h}) for h in (0.1, 0.01) for name in ("lmc", "vits2")}
    scale = np.array([50 if name == "lmc" else 1 for name, _ in policies.values()])[:, None]
    steps = np.rint(np.array(values)[:, None, None] ** 0.8 * scale * rng.uniform(20, 60, (len(values), 4, runs)))
    steps[-1, 0, :5] = np.nan
    stored = np.array([1, 10, 100, 1000, LIMIT])
    kl = np.exp(-stored / 300) * rng.uniform(1, 2, (*steps.shape, 1))
    kl[:, 0, :, 0] = np.nan  # too few states for a covariance
    write_study(folder, "step", stored, {"steps_to_target": np.repeat(steps[..., None], 5, axis=-1), "kl": kl},
                [{key: value} for value in values], policies, seconds=seconds)
    describe(folder, policies)
    return steps, kl


# ---- tests

def run(script, *arguments):
    """Run a script as a user starts it, from another folder."""
    return subprocess.run([sys.executable, "-B", str(SCRIPTS[script.removesuffix(".py")]), *map(str, arguments)], cwd="/", capture_output=True,
                          text=True, timeout=100, check=False)


def call(module, *arguments):
    """The same within this process, which is faster: (exit status, stdout, stderr)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), \
            unittest.mock.patch.object(sys, "argv", [module.__file__, *map(str, arguments)]), \
            unittest.mock.patch.object(style, "LOOK", style.LOOK):
        try:
            script.run(module.main)
            status = 0
        except SystemExit as end:
            status = end.code
    return status, out.getvalue(), err.getvalue()


class Parser(html.parser.HTMLParser):
    """Which elements are open at the end, and every address in the page."""

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.wrong = [], [], []

    def handle_starttag(self, tag, attributes):
        self.addresses += [value for name, value in attributes if name in ("src", "href", "action", "poster", "data")]
        if tag not in ("meta", "link", "br", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


class StudyTest(unittest.TestCase):
    """A test with a folder for the study it makes."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)

    def figure(self, made):
        self.addCleanup(style.plt.close, made)
        return made

    def refused(self, module, part, *arguments):
        """Check that the script ends with status 3 and one sentence that contains `part`."""
        status, out, err = call(module, self.folder, *arguments)
        self.assertEqual((status, out), (3, ""), err)
        self.assertEqual(len(err.strip().splitlines()), 1, err)
        self.assertIn(part, err)

    def assert_close(self, one, other):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def main(case):
    """Run the tests of a class."""
    summary.run(unittest.defaultTestLoader.loadTestsFromTestCase(case))
