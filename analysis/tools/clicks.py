#!/usr/bin/env python3
"""How close the draws of samplers come to posteriors given clicks: sliced Wasserstein distance over its floor.

The truth is importance sampling by a separate NumPy program: multivariate t distributions about the Gaussians of expectation propagation; their effective
sample size is printed. A distance is the mean over random directions of W1 between 500 draws and 500 true ones, over that between two such sets of true
ones; both are means over all pairs of eight sets of draws and 32 of the truth. Values of CASES:

wide: priors N(0, tau^2 I), features of length 1, clicks of a theta* from the prior; for tau = 3 also mixtures of three Gaussians, with means from
N(0, 9 I) and covariances I; -o draws it.
glm: the prior and features of the public benchmark's bernoulli_glm, d = 10, 100 clicks, ten histories of our own.
learned: priors learned from 10 000 samples of mixtures of three Gaussians, d = 5 and 8, with clicks and with Gaussian rewards of noise 1.
calibration: p-values that the ranks of |theta*| and of its log likelihood among draws are uniform, 512 tasks in five dimensions.

Prints a Markdown table.
"""
import needs
import time

import numpy as np
from scipy import stats

import alarm_power
import drawing
import labels
import nearness
import script
import style
import thompson

DIRECTIONS, DRAWS, SETS, TRUE, TRUTH = 100, 500, 8, 16, 200_000
TASKS, RANKS, BINS = 512, 63, 8         # calibration: tasks, draws in each, bins of ranks
TAUS = (0.3, 1.0, 3.0, 10.0)
SAMPLERS = {
    "`mixts`": ("mixts", {}),
    "`mixts`, 16 candidates": ("mixts", {"candidates": 16}),
    "`mixts`, 1 candidate": ("mixts", {"candidates": 1}),
    "`mixts`, Laplace": ("mixts", {"approximation": "laplace"}),
    "`localised`": ("localised", {}),
    "`localised`, 4 particles": ("localised", {"particles": 4}),
    "`smc_tempered`": ("smc_tempered", {}),
    "`vits1`": ("vits1", {}),
    "`vits2`": ("vits2", {}),
    "`vits2_hf`": ("vits2_hf", {}),
    "`vts`": ("vts", {}),
    "`rvga`": ("rvga", {}),
}


def make_case(rng, d, n, tau, components=1):
    """Weight, mean and covariance of the prior, features and clicks."""
    weight = np.full(components, 1 / components)
    mean = np.zeros((components, d)) if components == 1 else tau * rng.standard_normal((components, d))
    covariance = np.repeat(np.eye(d)[None] * (tau**2 if components == 1 else 1), components, axis=0)
    x = nearness.unit_rows(rng, n, d)
    return weight, mean, covariance, x, clicks(rng, x, sample(rng, weight, mean, covariance))


def glm_case(rng):
    """The same for the task bernoulli_glm: an offset, and a filter of nine values of one stimulus with a smooth prior."""
    difference = np.eye(9) - np.eye(9, k=-1)
    smooth = difference @ difference + np.diag(np.sqrt(np.arange(9) / 9))
    covariance = np.zeros((1, 10, 10))
    covariance[0, 0, 0], covariance[0, 1:, 1:] = 2, np.linalg.inv(smooth.T @ smooth)
    stimulus = np.concatenate([np.zeros(8), rng.standard_normal(100)])
    x = np.column_stack([np.ones(100), *(stimulus[8 - lag:108 - lag] for lag in range(9))])
    weight, mean = np.ones(1), np.zeros((1, 10))
    return weight, mean, covariance, x, clicks(rng, x, sample(rng, weight, mean, covariance))


def sample(rng, weight, mean, covariance):
    c = rng.choice(len(weight), p=weight)
    return mean[c] + np.linalg.cholesky(covariance[c]) @ rng.standard_normal(mean.shape[1])


def clicks(rng, x, theta):
    return (rng.random(len(x)) < 1 / (1 + np.exp(-x @ theta))).astype(float)


def log_likelihood(theta, x, y):
    return -np.logaddexp(0, np.where(y > 0, -1, 1) * (theta @ x.T)).sum(axis=-1)


def propagate(mean, covariance, x, y):
    """Expectation propagation in NumPy: mean and covariance of the approximation for one Gaussian prior."""
    node, weight = np.polynomial.hermite_e.hermegauss(61)
    weight = weight / weight.sum()
    precision, lam, nu = np.linalg.inv(covariance), np.full(len(y), 0.05), y - 0.5
    for _ in range(200):
        s = np.linalg.inv(precision + x.T @ (lam[:, None] * x))
        m = s @ (precision @ mean + x.T @ nu)
        v, mu = np.einsum("li,ij,lj->l", x, s, x), x @ m
        w = 1 / (1 / v - lam)
        centre = w * (mu / v - nu)
        u = centre[:, None] + np.sqrt(w)[:, None] * node
        p = weight / (1 + np.exp(-np.where(y > 0, 1, -1)[:, None] * u))
        z = p.sum(axis=1)
        first = (p * u).sum(axis=1) / z
        second = np.maximum((p * u**2).sum(axis=1) / z - first**2, 1e-12)
        change = np.maximum(1 / second - 1 / w, 1e-8) - lam
        nu = nu + 0.5 * (first / second - centre / w - nu)
        lam = lam + 0.5 * change
        if np.abs(change).max() < 1e-4:
            break
    return m, s


def truth(rng, weight, mean, covariance, x, y):
    """Draws of the posterior, and their effective sample size."""
    d, nu = mean.shape[1], 8
    theta, log_q, log_p = [], [], []
    parts = [propagate(m, c, x, y) for m, c in zip(mean, covariance)]
    for m, s in parts:
        z = rng.standard_normal((TRUTH // len(parts), d)) / np.sqrt(rng.chisquare(nu, (TRUTH // len(parts), 1)) / nu)
        theta.append(m + 1.1 * z @ np.linalg.cholesky(s).T)
    theta = np.concatenate(theta)
    for m, s in parts:
        square = np.einsum("ni,ij,nj->n", theta - m, np.linalg.inv(1.21 * s), theta - m)
        log_q.append(-0.5 * (nu + d) * np.log1p(square / nu) - 0.5 * np.linalg.slogdet(s)[1])
    for w, m, c in zip(weight, mean, covariance):
        square = np.einsum("ni,ij,nj->n", theta - m, np.linalg.inv(c), theta - m)
        log_p.append(np.log(w) - 0.5 * square - 0.5 * np.linalg.slogdet(c)[1])
    ratio = np.logaddexp.reduce(log_p) + log_likelihood(theta, x, y) - np.logaddexp.reduce(log_q)
    p = np.exp(ratio - ratio.max())
    p /= p.sum()
    return theta, p, 1 / (p**2).sum()


def ratio(rng, draws, theta, p):
    """Distance over floor for draws[SETS, DRAWS, d], against twice TRUE sets of the truth, over all pairs of sets."""
    columns = nearness.directions(rng, theta.shape[1], DIRECTIONS)
    true = nearness.along(theta[rng.choice(len(p), (2 * TRUE, DRAWS), p=p)], columns)
    return nearness.distance(nearness.along(draws, columns), true) / nearness.distance(true[:TRUE], true[TRUE:])


def observed(prior, name, x, y, likelihood="logistic", seed=1):
    """The posterior of a sampler of SAMPLERS."""
    sampler, options = SAMPLERS[name]
    posterior = thompson.Posterior(prior, sampler, likelihood, seed=seed, **options)
    posterior.observe(x, y)
    return posterior


def measure(rng, case, samplers, seconds):
    weight, mean, covariance, x, y = case
    theta, p, size = truth(rng, *case)
    prior, out = thompson.Prior.from_mixture(weight, mean, covariance), {}
    for name in samplers:
        if SAMPLERS[name][0] in ("vits1", "vits2", "vits2_hf", "vts", "rvga") and len(weight) > 1:
            out[name] = np.nan
            continue
        before = time.process_time()
        draws, spent = nearness.drawn(observed(prior, name, x, y), SETS, DRAWS, before)
        seconds[name] = seconds.get(name, 0) + spent
        out[name] = ratio(rng, draws, theta, p)
    return out, size


def cell(values):
    """The mean and the worst value."""
    return "-" if np.isnan(values).any() else f"{np.mean(values):.2f} ({np.max(values):.2f})"


def table(rows, head):
    print("| | " + " | ".join(head) + " |\n|" + "---|" * (len(head) + 1))
    for name, values in rows:
        print(f"| {name} | " + " | ".join(values) + " |")
    print()


def draw(found, samplers):
    """Distance against tau, a line for each sampler."""
    style.use()
    figure, axis = style.plt.subplots(figsize=style.LOOK.size or (7.2, 4.2))
    words = {name: name.replace("`", "") for name in samplers}
    looks, ends = style.lines({words[name]: SAMPLERS[name][0] for name in samplers}), []
    for name in samplers:
        values = np.array([found[name, tau, 1] for tau in TAUS])
        mean, error = values.mean(axis=1), values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
        axis.errorbar(TAUS, mean, error, capsize=2, **looks[words[name]])
        ends.append(labels.Label(words[name], (TAUS[-1], mean[-1]), {"fontsize": 8, "color": looks[words[name]]["color"]}))
    axis.axhline(1, color=style.FAINT, linewidth=0.8, zorder=0)
    axis.text(TAUS[-1] * 3.4, 0.97, "exact draws", ha="right", va="top", fontsize=8, color=style.FAINT)
    axis.set(xscale="log", yscale="log", xlim=(TAUS[0] / 1.2, TAUS[-1] * 3.5), xlabel="standard deviation of the prior, tau",
             ylabel="distance to the posterior over its floor")
    for ticks, values in ((axis.xaxis, TAUS), (axis.yaxis, (1, 2, 3, 5, 10))):
        ticks.set_ticks(values, [f"{value:g}" for value in values])
        ticks.set_ticks([], minor=True)
    figure.canvas.draw()
    labels.place(axis, ends, [np.column_stack([TAUS, [np.mean(found[name, tau, 1]) for tau in TAUS]]) for name in samplers])
    return figure


def wide(rng, arguments):
    found, sizes, seconds = {}, [], {}
    cases = [(tau, d, n, 1) for tau in TAUS for d in (2, 5, 10, 20) for n in (20, 100, 500)] + [(3.0, 5, n, 3) for n in (20, 100, 500)]
    for tau, d, n, components in cases:
        for _ in range(arguments.histories):
            out, size = measure(rng, make_case(rng, d, n, tau, components), arguments.samplers, seconds)
            sizes.append(size)
            for name, value in out.items():
                found.setdefault((name, tau, components), []).append(value)
    columns = [(tau, 1) for tau in TAUS] + [(3.0, 3)]
    table([(name, [cell(found[name, *column]) for column in columns] + [f"{seconds[name]:.2f}"]) for name in arguments.samplers],
          [f"tau = {tau:g}" + (", three components" if c > 1 else "") for tau, c in columns] + ["CPU s"])
    print(f"effective size of the truth: {min(sizes):.0f} and more")
    if arguments.output:
        drawing.save(draw(found, arguments.samplers), arguments.output)


def glm(rng, arguments):
    seconds = {}
    found, sizes = zip(*(measure(rng, glm_case(rng), arguments.samplers, seconds) for _ in range(10)))
    table([(name, [cell([one[name] for one in found]), f"{seconds[name]:.2f}"]) for name in arguments.samplers], ["ten histories", "CPU s"])
    print(f"effective size of the truth: {min(sizes):.0f} and more")


def gaussian_truth(rng, weight, mean, covariance, x, y):
    """Draws of the posterior for Gaussian rewards with noise 1, in closed form, with equal weights."""
    log_weight, center, spread = (part[0] for part in alarm_power.posterior((weight, mean, covariance), (x.T @ x)[None], (x.T @ y)[None]))
    share = np.exp(log_weight - np.logaddexp.reduce(log_weight))
    chosen, z = rng.choice(len(weight), TRUTH, p=share), rng.standard_normal((TRUTH, mean.shape[1]))
    theta = sum((chosen == c)[:, None] * (m + z @ np.linalg.cholesky(s).T) for c, (m, s) in enumerate(zip(center, spread)))
    return theta, np.full(TRUTH, 1 / TRUTH)


def learned(rng, arguments):
    """Rows: sampler, rewards; columns: dimension and number of observations."""
    columns = [(d, n) for d in (5, 8) for n in (20, 100)]
    rivals = {"mixture": ["`mixts`"], "denoiser": ["`localised`", "`localised`, 4 particles"]}
    found = {}
    for d, n in columns:
        for _ in range(arguments.histories):
            weight, mean, covariance, x, y = make_case(rng, d, n, 3.0, 3)
            theta = np.array([sample(rng, weight, mean, covariance) for _ in range(10_000)])
            reward = x @ sample(rng, weight, mean, covariance) + rng.standard_normal(n)
            targets = {"logistic": (y, *truth(rng, weight, mean, covariance, x, y)[:2]),
                       "gaussian": (reward, *gaussian_truth(rng, weight, mean, covariance, x, reward))}
            for family, samplers in rivals.items():
                prior = thompson.train(theta, family, **({"components": "auto"} if family == "mixture" else {}))
                for likelihood, (y, right, p) in targets.items():
                    for name in samplers:
                        draws = observed(prior, name, x, y, likelihood).draw(SETS * DRAWS).reshape(SETS, DRAWS, -1)
                        found.setdefault((family, name, likelihood, d, n), []).append(ratio(rng, draws, right, p))
    table([(f"{name}, {family}, {likelihood}", [cell(found[family, name, likelihood, d, n]) for d, n in columns])
           for family, samplers in rivals.items() for name in samplers for likelihood in targets],
          [f"d = {d}, n = {n}" for d, n in columns])


def calibration(rng, arguments):
    settings = {"N(0, 9 I), 10 clicks": (10, 1), "N(0, 9 I), 50 clicks": (50, 1), "three components, 50 clicks": (50, 3)}
    found = {}
    for setting, (n, components) in settings.items():
        weight, mean, covariance, _, _ = make_case(rng, 5, n, 3.0, components)
        prior = thompson.Prior.from_mixture(weight, mean, covariance)
        for task in range(TASKS):
            x = make_case(rng, 5, n, 3.0)[3]
            theta = sample(rng, weight, mean, covariance)
            y = clicks(rng, x, theta)
            for name in arguments.samplers:
                draws = observed(prior, name, x, y, seed=task).draw(RANKS)
                found.setdefault((name, setting), []).append(
                    [(np.linalg.norm(draws, axis=1) < np.linalg.norm(theta)).sum(), (log_likelihood(draws, x, y) < log_likelihood(theta, x, y)).sum()])

    def p_values(ranks):
        bins = np.array(ranks).T * BINS // (RANKS + 1)
        return " and ".join(f"{stats.chisquare(np.bincount(row, minlength=BINS)).pvalue:.2g}" for row in bins)
    table([(name, [p_values(found[name, setting]) for setting in settings]) for name in arguments.samplers], list(settings))


CASES = {"wide": wide, "glm": glm, "learned": learned, "calibration": calibration}


def main():
    parser = drawing.options(__doc__, values=False)
    parser.add_argument("cases", metavar="CASES", nargs="?", default="wide", choices=CASES, help="wide (default), glm, learned or calibration")
    parser.add_argument("--histories", type=int, default=4, help="wide, learned: histories for each prior, dimension and number of clicks (default: 4)")
    parser.add_argument("--samplers", metavar="NAME", nargs="+", default=list(SAMPLERS), choices=list(SAMPLERS),
                        help="among " + ", ".join(SAMPLERS))
    arguments = drawing.parse(parser)
    CASES[arguments.cases](np.random.default_rng(20260), arguments)


if __name__ == "__main__":
    script.run(main)
