"""Training of stage networks beside scikit-learn's MLPRegressor: CPU seconds and error on fresh data, in one run.

Usage: training_vs_sklearn.py PATH_OF_training_stages [--every N] [--json FILE]

Both learn the noise of stages N, 2 N, .. 100 (N = 10 unless told, 1 for the whole prior) from the same 10 000 samples of the cross, in turns.
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

STAGES, ALPHA, D = 100, 0.97, 2
TRAINING, FRESH = 10_000, 100_000
# Width of the two hidden layers, Adam steps, batch, rate, patience. A patience of 20 checks is none: the last check ends the training.
OURS = {"default: 20 wide": (20, 1000, 256, 0.01, 10),
        "100 wide, else default": (100, 1000, 256, 0.01, 10),
        "100 wide, 500 steps": (100, 500, 128, 0.02, 20)}


def cross(rng, n):
    """theta[n, 2]: two zero-mean Gaussians with unit variances and correlations .99 and -.9."""
    correlation = np.where(rng.random(n) < 0.5, 0.99, -0.9)
    first, second = rng.standard_normal((2, n))
    return np.column_stack([first, correlation * first + np.sqrt(1 - correlation**2) * second])


def diffuse(rng, theta, stage):
    """s_t and the noise in it."""
    alpha_bar = ALPHA**stage
    noise = rng.standard_normal(theta.shape)
    return np.sqrt(alpha_bar) * theta + np.sqrt(1 - alpha_bar) * noise, noise


def train_sklearn(state, noise):
    """CPU seconds, the network, its epochs."""
    network = MLPRegressor((100, 100), activation="relu", solver="adam", learning_rate_init=1e-3, batch_size=200, alpha=1e-4, tol=1e-4,
                           n_iter_no_change=10, random_state=1)
    start = time.process_time()
    network.fit(state, noise)
    return time.process_time() - start, network.predict, network.n_iter_


def train_ours(program, samples, settings, stage):
    """CPU seconds, the network, flop/s at the peak of this core at that moment."""
    command = [program, samples, str(D), *map(str, settings), str(stage)]
    row = np.array(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split(), float)
    return row[1], lambda state: forward(row[4:], settings[0], state), row[2]


def forward(parameters, width, state):
    """Our network, from the order that src/model/network.h says."""
    sizes = [D, width, width, D]
    for layer, (inputs, outputs) in enumerate(zip(sizes, sizes[1:])):
        weights, parameters = parameters[: inputs * outputs].reshape(outputs, inputs), parameters[inputs * outputs :]
        bias, parameters = parameters[:outputs], parameters[outputs:]
        state = state @ weights.T + bias
        if layer < 2:
            state = np.maximum(state, 0)
    return state


def flops(width, steps, batch, rate, patience):
    """Of the matrix products in all steps of a stage: forward, and back through inputs (but the first layer's) and weights."""
    return steps * batch * 2 * (3 * (2 * D * width + width**2) - D * width)


def standard_error(x):
    return np.std(x, ddof=1) / np.sqrt(len(x))


def measure_stage(program, samples, theta, fresh, stage):
    """What scikit-learn and each of OURS did, by name."""
    rng = np.random.default_rng([2, stage])
    seconds, predict, epochs = train_sklearn(*diffuse(rng, theta, stage))
    state, noise = diffuse(rng, fresh, stage)
    reference = np.mean((predict(state) - noise) ** 2, axis=1)
    found = {"scikit-learn": {"stage": stage, "cpu_seconds": seconds, "loss": reference.mean(), "epochs": epochs}}
    for name, settings in OURS.items():
        seconds, predict, peak = train_ours(program, samples, settings, stage)
        loss = np.mean((predict(state) - noise) ** 2, axis=1)
        found[name] = {"stage": stage, "cpu_seconds": seconds, "loss": loss.mean(), "of_peak": flops(*settings) / peak / seconds,
                       "difference": 100 * (loss.mean() / reference.mean() - 1),
                       "difference_error": 100 * standard_error(loss - reference) / reference.mean()}
    return found


def summary(rows):
    """Of the stages of one name, as columns beside scikit-learn's."""
    sklearn = sum(row["scikit-learn"]["cpu_seconds"] for row in rows)
    out = {"scikit-learn": {"cpu_seconds": sklearn, "loss": np.mean([row["scikit-learn"]["loss"] for row in rows])}}
    for name, (width, steps, batch, rate, patience) in OURS.items():
        seconds = sum(row[name]["cpu_seconds"] for row in rows)
        difference = [row[name]["difference"] for row in rows]
        out[name] = {"hidden": [width, width], "steps": steps, "batch": batch, "rate": rate, "patience": patience, "cpu_seconds": seconds, "times_faster": sklearn / seconds,
                     "of_peak": np.median([row[name]["of_peak"] for row in rows]), "loss": np.mean([row[name]["loss"] for row in rows]),
                     "difference": np.mean(difference), "difference_error": standard_error(difference), "worst_difference": max(difference)}
    return out


def print_stage(row):
    reference = row["scikit-learn"]
    print(f"{reference['stage']:5d}  {'scikit-learn':24s}{reference['cpu_seconds']:8.3f}   {reference['loss']:.4f}   {reference['epochs']} epochs")
    for name in OURS:
        found = row[name]
        print(f"{'':5s}  {name:24s}{found['cpu_seconds']:8.4f}   {found['loss']:.4f}   {found['difference']:+.2f} +- {found['difference_error']:.2f}"
              f"  {reference['cpu_seconds'] / found['cpu_seconds']:8.1f}", flush=True)


def print_summary(total, count):
    print(f"\n{count} stages; difference: mean over stages of the loss less scikit-learn's, percent; of peak: products over multiply-add peak, median")
    print(f"{'scikit-learn':24s}{total['scikit-learn']['cpu_seconds']:9.2f} CPU s  loss {total['scikit-learn']['loss']:.4f}")
    for name in OURS:
        found = total[name]
        print(f"{name:24s}{found['cpu_seconds']:9.3f} CPU s  loss {found['loss']:.4f}  difference {found['difference']:+.2f} +- {found['difference_error']:.2f}, "
              f"at worst {found['worst_difference']:+.2f}  times faster {found['times_faster']:.1f}  of peak {100 * found['of_peak']:.0f}%")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="tests/training_stages of the build")
    parser.add_argument("--every", type=int, default=10, help="1: all stages; 10: 10, 20, .. 100 (default)")
    parser.add_argument("--json", help="also write what was measured to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    rng = np.random.default_rng(1)
    theta, fresh = cross(rng, TRAINING), cross(rng, FRESH)
    print("stage  network                    CPU s     loss   difference %   times faster")
    rows = []
    with tempfile.NamedTemporaryFile() as samples:
        theta.T.tofile(samples.name)
        for stage in range(options.every, STAGES + 1, options.every):
            rows.append(measure_stage(options.program, samples.name, theta, fresh, stage))
            print_stage(rows[-1])
    total = summary(rows)
    print_summary(total, len(rows))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"summary": total, "stages": rows}, file, indent=1)


main()
