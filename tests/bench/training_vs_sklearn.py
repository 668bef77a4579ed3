"""Training of stage networks beside scikit-learn's MLPRegressor: CPU seconds and error on fresh data, in one run.

Usage: training_vs_sklearn.py PATH_OF_training_stages [WIDTH STEPS BATCH RATE]

Both learn the noise of stages 1, 10, 50, 100 from the same 10 000 samples of the cross. scikit-learn has the settings of the published code: two hidden
layers of 100, Adam with rate 1e-3, batch 200, L2 1e-4, tolerance 1e-4, patience 10, one fixed noise draw for each sample.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is loaded

import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

STAGES = (1, 10, 50, 100)
ALPHA = 0.97
TRAINING, FRESH = 10_000, 200_000
OUR_SETTINGS = ["100", "1000", "128", "0.02"]


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


def train_sklearn(rng, theta, stage):
    state, noise = diffuse(rng, theta, stage)
    network = MLPRegressor((100, 100), activation="relu", solver="adam", learning_rate_init=1e-3, batch_size=200,
                           alpha=1e-4, tol=1e-4, n_iter_no_change=10, random_state=1)
    start = time.process_time()
    network.fit(state, noise)
    return network, time.process_time() - start


def forward(parameters, width, state):
    """Our network, from the order that src/model/network.h says."""
    sizes = [2, width, width, 2]
    for layer, (inputs, outputs) in enumerate(zip(sizes, sizes[1:])):
        weights, parameters = parameters[: inputs * outputs].reshape(outputs, inputs), parameters[inputs * outputs :]
        bias, parameters = parameters[:outputs], parameters[outputs:]
        state = state @ weights.T + bias
        if layer < 2:
            state = np.maximum(state, 0)
    return state


def train_ours(program, settings, theta):
    """{stage: (CPU seconds, parameters)}."""
    with tempfile.NamedTemporaryFile() as file:
        theta.T.tofile(file.name)
        command = [program, file.name, "2", *settings, *map(str, STAGES)]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    rows = [np.array(line.split(), float) for line in lines]
    return {int(row[0]): (row[1], row[3:]) for row in rows}


def main():
    program, settings = sys.argv[1], sys.argv[2:] or OUR_SETTINGS
    warnings.simplefilter("ignore", ConvergenceWarning)
    rng = np.random.default_rng(1)
    theta, fresh = cross(rng, TRAINING), cross(rng, FRESH)
    ours = train_ours(program, settings, theta)
    print(f"ours: width, steps, batch, rate = {', '.join(settings)}; scikit-learn: width 100, published settings")
    print("stage   sklearn: CPU s  epochs    loss      ours: CPU s    loss    times faster")
    for stage in STAGES:
        network, seconds = train_sklearn(rng, theta, stage)
        state, noise = diffuse(rng, fresh, stage)
        loss = np.mean((network.predict(state) - noise) ** 2)
        our_seconds, parameters = ours[stage]
        our_loss = np.mean((forward(parameters, int(settings[0]), state) - noise) ** 2)
        print(f"{stage:5d}   {seconds:14.2f}  {network.n_iter_:6d}  {loss:.4f}   {our_seconds:14.4f}  {our_loss:.4f}"
              f"  {seconds / our_seconds:10.1f}")


main()
