"""The replay study written a second time, in NumPy: streams of random numbers, the order of events, a greedy policy on Bayesian linear regression for each
arm, and the estimators; and logs of a world whose truth is known."""

import os
import re

import netCDF4
import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MASK = 2**32 - 1
STUDY = "name: replay\nstudy: replay\nruns: 1\nblock: 1\nproblem: {family: logged, file: %s, noise: 1}\npolicies: [{name: ts, rule: greedy}]\n"


def philox(counter, key):
    """Philox4x32-10 (Salmon et al. 2011)."""
    a, b, c, d = counter
    first, second = key
    for _ in range(10):
        low, high = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (high >> 32) ^ b ^ first, high & MASK, (low >> 32) ^ d ^ second, low & MASK
        first, second = (first + 0x9E3779B9) & MASK, (second + 0xBB67AE85) & MASK
    return a, b, c, d


def stream_key(seed, purpose):
    with open(os.path.join(ROOT, "src/core/rng.h"), encoding="utf-8") as file:
        number = re.findall(r"ENTRY\((\w+), \"", file.read()).index(purpose)
    return philox((seed & MASK, seed >> 32, number, 0), (0x54686F6D, 0x70736F6E))[:2]


def uniform(key, run, turn, position=0):
    low, high = philox((position, 0, turn, run), key)[:2]
    return ((high << 32 | low) + 0.5) / 2**64


def best_arm(key, run, turn, index):
    """The arm of the largest index, on ties that of the largest ticket."""
    tied = np.flatnonzero(index == index.max())
    return tied[0] if len(tied) == 1 else max(tied, key=lambda arm: uniform(key, run, turn, int(arm)))


def order(n, seed, run):
    """The order in which a run sees n events: a Feistel permutation with cycle walking to stay within [0, n)."""
    bits, key, out = 2, stream_key(seed, "EVENTS"), []
    while 1 << bits < n:
        bits += 2
    half = bits // 2
    mixed = {(k, right): (lambda word: (word[1] << 32 | word[0]) * MASK >> 64)(philox((0, right, k, run), key)) & ((1 << half) - 1)
             for k in range(4) for right in range(1 << half)}
    for value in range(n):
        while True:
            left, right = value >> half, value & ((1 << half) - 1)
            for k in range(4):
                left, right = right, left ^ mixed[k, right]
            value = left << half | right
            if value < n:
                break
        out.append(value)
    return np.array(out)


def ridge(x, arm, reward, arms, noise=1):
    """The posterior means under N(0, I), theta[arm, d]: ridge regression if noise is 1."""
    theta = []
    for k in range(arms):
        own = x[arm == k]
        theta.append(np.linalg.solve(own.T @ own / noise**2 + np.eye(x.shape[1]), own.T @ reward[arm == k] / noise**2))
    return np.array(theta)


def possible(log):
    """available[event, arm] of a log."""
    return log.get("available", np.ones((len(log["arm"]), log["arm"].max() + 1), bool)) == 1


def values(log, seed=1, run=0, fraction=0.5):
    """ips, snips, dr and their effective sample size, for the greedy policy that has learned on its part of the events; and its theta[arm, d]."""
    x, arm, reward, propensity = (log[name] for name in ("context", "arm", "reward", "propensity"))
    available = possible(log)
    n, arms = available.shape
    place = order(n, seed, run)
    learned, rest = np.split(place, [int(fraction * n)])
    theta = ridge(x[learned], arm[learned], reward[learned], arms)
    x, arm, reward, propensity = x[rest], arm[rest], reward[rest], propensity[rest]
    predicted = x @ theta.T
    choice = np.where(available[rest], predicted, -np.inf).argmax(axis=1)
    w = (choice == arm) / propensity
    dr = predicted[np.arange(len(rest)), choice] + w * (reward - predicted[np.arange(len(rest)), arm])
    return {"ips": (w * reward).mean(), "snips": (w * reward).sum() / w.sum(), "dr": dr.mean(), "size": w.sum()**2 / (w**2).sum(), "weight": w.mean()}, theta


def replayed(log, seed=1, run=0):
    """The value of the greedy policy that learns along the way, and the number of events that it uses: those whose arm it chooses as well, with a probability
    that makes up for that of the log."""
    x, arm, reward, propensity = (log[name] for name in ("context", "arm", "reward", "propensity"))
    ties, rejection = stream_key(seed, "TIE"), stream_key(seed, "REJECTION")
    available, d = possible(log), x.shape[1]
    arms = available.shape[1]
    square, vector, met = np.tile(np.eye(d), (arms, 1, 1)), np.zeros((arms, d)), []
    for turn, e in enumerate(order(len(arm), seed, run), 1):
        choice = best_arm(ties, run, turn, np.where(available[e], np.linalg.solve(square, vector[..., None])[..., 0] @ x[e], -np.inf))
        if choice == arm[e] and uniform(rejection, run, turn) < propensity.min() / propensity[e]:
            met.append(reward[e])
            square[arm[e]] += np.outer(x[e], x[e])
            vector[arm[e]] += reward[e] * x[e]
    return np.mean(met), len(met)


class World:
    """Three arms, a context in the plane with a constant, a logging policy that prefers some arms in some contexts."""
    arms, theta, taste = 3, np.array([[0.3, 1.0, 0.0], [0.0, -0.5, 0.9], [0.4, -0.3, -0.8]]), np.array([[0.0, 0.8, 0.3], [0.2, -0.6, 0.0], [0.0, 0.0, -0.5]])

    def contexts(self, rng, n):
        return np.column_stack([np.ones(n), rng.normal(size=(n, 2))])

    def log(self, rng, n, available=None):
        """With available[n, arms] arms come and go; the others share the probability of those that are not there."""
        x = self.contexts(rng, n)
        weight = np.exp(x @ self.taste.T)
        p = 0.1 + 0.7 * weight / weight.sum(axis=1, keepdims=True)
        if available is not None:
            p = np.where(available, p, 0) / np.where(available, p, 0).sum(axis=1, keepdims=True)
        arm = (rng.uniform(size=(n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, self.arms - 1)
        log = {"context": x, "arm": arm, "reward": (x @ self.theta.T)[np.arange(n), arm] + rng.normal(size=n), "propensity": p[np.arange(n), arm]}
        return log if available is None else {**log, "available": available}

    def value(self, theta, x):
        """The mean reward of the best arms according to theta[arm, d]."""
        return (x @ self.theta.T)[np.arange(len(x)), (x @ theta.T).argmax(axis=1)].mean()


def write(path, log):
    with netCDF4.Dataset(path, "w") as data:
        of_arm = [log[name].shape[1] for name in ("features", "available", "target") if np.ndim(log.get(name)) > 1]
        for name, size in (("event", len(log["arm"])), ("dim", log.get("context", log.get("features")).shape[-1]), *(("arm", size) for size in of_arm[:1])):
            data.createDimension(name, size)
        for name, value in log.items():
            others = {"context": ("dim",), "features": ("arm", "dim"), "available": ("arm",), "target": ("arm",)[:np.ndim(value) - 1]}.get(name, ())
            data.createVariable(name, {"arm": "i4", "available": "i1" if np.asarray(value).dtype == bool else "f8"}.get(name, "f8"), ("event", *others))[:] = value


def coverage(run, folder, logs, events=600, seed=5):
    """Shares of logs[logs] whose 95% interval contains the true value of the policy that was learned from the log, by estimator; run(study, *arguments)."""
    rng, world, truth = np.random.default_rng(seed), World(), []
    fresh, names = world.contexts(rng, 100000), []
    for i in range(logs):
        log = world.log(rng, events)
        names.append(os.path.join(folder, f"{i}.nc"))
        write(names[-1], log)
        truth.append(world.value(values(log)[1], fresh))
    with open(os.path.join(folder, "coverage.yaml"), "w", encoding="utf-8") as file:
        file.write(STUDY % "null" + f"sweep: {{problem.file: [{', '.join(names)}]}}\n")
    run(os.path.join(folder, "coverage.yaml"), "-o", os.path.join(folder, "coverage"), "--progress", "none")
    with netCDF4.Dataset(os.path.join(folder, "coverage/results.nc")) as data:
        low, high = data["value_low"][:, 0], data["value_high"][:, 0]
    inside = (low <= np.array(truth)[:, None]) & (np.array(truth)[:, None] <= high)
    return dict(zip(("ips", "snips", "dr"), np.asarray(inside.mean(axis=0))))
