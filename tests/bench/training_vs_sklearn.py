"""Training of stage networks compared with scikit-learn's MLPRegressor: CPU seconds and error on fresh data, in one run.

Usage: training_vs_sklearn.py PATH_OF_training_stages [--priors cross,rays,six] [--every N] [--json FILE]

Both learn the noise of stages 1, 5, 20, 50, 100 (N, 2 N, .. 100 with --every) from the same 10 000 samples of a prior, in turns: the cross and the
rays of the DiffTS paper in the plane, and a mixture of six Gaussians in five dimensions.
scikit-learn has the settings of the published code: two hidden layers of 100, Adam with rate 1e-3, batch 200, L2 1e-4, tolerance 1e-4, patience 10, one
fixed noise draw for each sample. The errors are on 100 000 fresh samples, the same for both: differences are paired, in percent of scikit-learn's error.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is loaded

import argparse
import json
import subprocess
import tempfile
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

STAGES, ALPHA = 100, 0.97
TRAINING, FRESH = 10_000, 100_000
# Width of the two hidden layers, Adam steps, batch, rate, patience; 0 is the default.
OURS = {"default": (0, 0, 0, 0, 10), "100 wide, else default": (100, 0, 0, 0, 10), "100 wide, 3000 steps": (100, 3000, 0, 0, 10)}


def cross(rng, n):
    """theta[n, 2]: two zero-mean Gaussians with unit variances and correlations 0.99 and -0.9."""
    correlation = np.where(rng.random(n) < 0.5, 0.99, -0.9)
    first, second = rng.standard_normal((2, n))
    return np.column_stack([first, correlation * first + np.sqrt(1 - correlation**2) * second])


def rays(rng, n):
    """theta[n, 2]: uniform within 3 of the origin where one coordinate is over 0.95 of the distance from it."""
    theta = rng.uniform(-3, 3, (30 * n, 2))
    radius = np.hypot(*theta.T)
    return theta[(radius < 3) & (np.abs(theta).max(axis=1) > 0.95 * radius)][:n]


def six(rng, n):
    """theta[n, 5]: six Gaussians of equal weight with means at distance 2 from the origin and different covariances."""
    d, shape = 5, np.random.default_rng(5)
    mean = shape.standard_normal((6, d))
    mean *= 2 / np.linalg.norm(mean, axis=1)[:, None]
    factor = shape.standard_normal((6, d, d)) / (2 * np.sqrt(d))
    component = rng.integers(0, 6, n)
    return mean[component] + np.einsum("nij,nj->ni", factor[component], rng.standard_normal((n, d))) + 0.1 * rng.standard_normal((n, d))


PRIORS = {"cross": cross, "rays": rays, "six": six}


def diffuse(rng, theta, stage):
    """s_t and the noise in it."""
    alpha_bar = ALPHA**stage
    noise = rng.standard_normal(theta.shape)
    return np.sqrt(alpha_bar) * theta + np.sqrt(1 - alpha_bar) * noise, noise


def train_sklearn(state, noise):
    """CPU seconds, the network, its number of epochs."""
    network = MLPRegressor((100, 100), activation="relu", solver="adam", learning_rate_init=1e-3, batch_size=200, alpha=1e-4, tol=1e-4,
                           n_iter_no_change=10, random_state=1)
    start = time.process_time()
    network.fit(state, noise)
    return time.process_time() - start, network.predict, network.n_iter_


def train_ours(program, samples, d, settings, stage):
    """CPU seconds, the network, its share of the peak of this core at that moment, and the width, steps and batch that the defaults gave."""
    command = [program, samples, str(d), *map(str, settings), str(stage)]
    row = np.array(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split(), float)
    width, steps, batch = map(int, row[4:7])
    return row[1], lambda state: forward(row[7:], width, state), flops(d, width, steps_of(steps, stage), batch) / row[2] / row[1], (width, steps, batch)


def forward(parameters, width, state):
    """Our network, with parameters in the order given in src/model/network/network.h."""
    d = state.shape[1]
    sizes = [d, width, width, d]
    for layer, (inputs, outputs) in enumerate(zip(sizes, sizes[1:])):
        weights, parameters = parameters[: inputs * outputs].reshape(outputs, inputs), parameters[inputs * outputs :]
        bias, parameters = parameters[:outputs], parameters[outputs:]
        state = state @ weights.T + bias
        if layer < 2:
            state = np.maximum(state, 0)
    return state


def steps_of(steps, stage):
    """The mean over the group of ten with which a stage is trained (src/model/prior/training.h)."""
    def ratio(t):
        return ALPHA**t / (1 - ALPHA**t)

    first = (stage - 1) // 10 * 10 + 1
    shares = [min(1, max(1 / 3, np.log(ratio(t - 1) / ratio(t)) / 2)) if t > first else 1 for t in range(first, first + 10)]
    return np.mean([np.ceil(share * steps * max(ALPHA**t, 1 / 3)) for t, share in enumerate(shares, first)])


def flops(d, width, steps, batch):
    """Operations of the matrix products in all steps of a stage: forward, and back through inputs (except the first layer's) and weights."""
    return steps * batch * 2 * (3 * (2 * d * width + width**2) - d * width)


def standard_error(x):
    return np.std(x, ddof=1) / np.sqrt(len(x))


def measure_stage(program, samples, prior, theta, fresh, stage):
    """What scikit-learn and each of OURS did, by name."""
    rng = np.random.default_rng([2, stage])
    seconds, predict, epochs = train_sklearn(*diffuse(rng, theta, stage))
    state, noise = diffuse(rng, fresh, stage)
    reference = np.mean((predict(state) - noise) ** 2, axis=1)
    found = {"scikit-learn": {"prior": prior, "d": theta.shape[1], "stage": stage, "cpu_seconds": seconds, "loss": reference.mean(), "epochs": epochs}}
    for name, settings in OURS.items():
        seconds, predict, of_peak, sizes = train_ours(program, samples, theta.shape[1], settings, stage)
        loss = np.mean((predict(state) - noise) ** 2, axis=1)
        found[name] = {"prior": prior, "stage": stage, "cpu_seconds": seconds, "loss": loss.mean(), "of_peak": of_peak, "sizes": sizes,
                       "difference": 100 * (loss.mean() / reference.mean() - 1),
                       "difference_error": 100 * standard_error(loss - reference) / reference.mean()}
    return found


def summary(rows):
    """Sums over the stages of one prior, by name, with ratios to scikit-learn's."""
    sklearn = sum(row["scikit-learn"]["cpu_seconds"] for row in rows)
    out = {"scikit-learn": {"cpu_seconds": sklearn, "loss": np.mean([row["scikit-learn"]["loss"] for row in rows])}}
    for name in OURS:
        found = [row[name] for row in rows]
        seconds, difference = sum(row["cpu_seconds"] for row in found), [row["difference"] for row in found]
        worst = max(found, key=lambda row: row["difference"])
        width, steps, batch = found[0]["sizes"]
        out[name] = {"hidden": [width, width], "steps": steps, "batch": batch, "cpu_seconds": seconds, "times_faster": sklearn / seconds,
                     "prior_seconds": STAGES * seconds / len(rows),
                     "prior_operations": sum(flops(rows[0]["scikit-learn"]["d"], width, steps_of(steps, t), batch) for t in range(1, STAGES + 1)), "of_peak": np.median([row["of_peak"] for row in found]),
                     "loss": np.mean([row["loss"] for row in found]), "difference": np.mean(difference), "difference_error": standard_error(difference),
                     "worst_difference": worst["difference"], "worst_error": worst["difference_error"], "worst_stage": worst["stage"]}
    return out


def print_stage(row):
    reference = row["scikit-learn"]
    print(f"{reference['prior']:6s}{reference['stage']:5d}  {'scikit-learn':24s}{reference['cpu_seconds']:8.3f}   {reference['loss']:.4f}   {reference['epochs']} epochs")
    for name in OURS:
        found = row[name]
        print(f"{'':11s}  {name:24s}{found['cpu_seconds']:8.4f}   {found['loss']:.4f}   {found['difference']:+.2f} +- {found['difference_error']:.2f}"
              f"  {reference['cpu_seconds'] / found['cpu_seconds']:8.1f}", flush=True)


def print_summary(prior, total, count):
    print(f"\n{prior}, {count} stages; difference: mean over stages of the loss less scikit-learn's, percent; of peak: products over multiply-add peak, median")
    print(f"{'scikit-learn':24s}{total['scikit-learn']['cpu_seconds']:9.2f} CPU s  loss {total['scikit-learn']['loss']:.4f}")
    for name in OURS:
        found = total[name]
        print(f"{name:24s}{found['cpu_seconds']:9.3f} CPU s  loss {found['loss']:.4f}  difference {found['difference']:+.2f} +- {found['difference_error']:.2f}, "
              f"at worst {found['worst_difference']:+.2f} +- {found['worst_error']:.2f} (stage {found['worst_stage']})  "
              f"times faster {found['times_faster']:.1f}  of peak {100 * found['of_peak']:.0f}%")


def measure_prior(program, name, stages):
    rng = np.random.default_rng(1)
    theta, fresh = PRIORS[name](rng, TRAINING), PRIORS[name](rng, FRESH)
    with tempfile.NamedTemporaryFile() as samples:
        theta.T.tofile(samples.name)
        rows = []
        for stage in stages:
            rows.append(measure_stage(program, samples.name, name, theta, fresh, stage))
            print_stage(rows[-1])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="tests/training_stages of the build")
    parser.add_argument("--priors", default=",".join(PRIORS), help="some of cross, rays, six")
    parser.add_argument("--every", type=int, help="1: all stages; 10: 10, 20, .. 100; else 1, 5, 20, 50, 100")
    parser.add_argument("--json", help="also write what was measured to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    stages = range(options.every, STAGES + 1, options.every) if options.every else (1, 5, 20, 50, STAGES)
    print("prior stage  network                    CPU s     loss   difference %   times faster")
    found = {name: measure_prior(options.program, name, stages) for name in options.priors.split(",")}
    totals = {name: summary(rows) for name, rows in found.items()}
    for name, total in totals.items():
        print_summary(name, total, len(found[name]))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"summary": totals, "stages": found}, file, indent=1)


main()
