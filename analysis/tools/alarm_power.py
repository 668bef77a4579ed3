#!/usr/bin/env python3
"""How often a history from another world is detected at level 0.01: by the alarm, by the guard, and by the best possible test.

For every pair of the mixtures FILE (jobs/questions/guard_priors.sh makes them) one is the world, from which theta* is drawn, and the other is the
prior. The statistics are ranked among histories that are simulated from the prior at the same features:
alarm: marginal likelihood under the prior over the largest likelihood (metric prior_p_value);
guard: over the marginal likelihood under a Gaussian of twice the prior's standard deviations;
best: over that under the world itself, which is unknown in practice; by the Neyman-Pearson lemma no test of this level detects more.
The logarithms of several tasks are summed. Arms are random in the unit ball, as in the past tasks of a study, or chosen out of 100 by Thompson
sampling with the prior; rewards have noise 1.
"""
import needs
import argparse
import itertools

import netCDF4
import numpy as np

import script

SIMULATED, ARMS, LEVEL = 199, 100, 0.01
STATISTICS = ("alarm", "guard", "best")


def mixture(path):
    """Weights [c], means [c, d] and covariances [c, d, d] of a prior file."""
    with netCDF4.Dataset(path) as file:
        return tuple(file[name][...].filled(np.nan) for name in ("weight", "mean", "covariance"))


def wide(prior):
    """The Gaussian of a guard for this prior."""
    weight, mean, covariance = prior
    center = weight @ mean
    variance = weight @ (np.diagonal(covariance, axis1=1, axis2=2) + (mean - center)**2)
    return np.ones(1), center[None], np.diag(4 * variance)[None]


def posterior(prior, precision, vector):
    """For evidence precision[n, d, d], vector[n, d]: log weight[n, c] including the marginal likelihood, mean[n, c, d], covariance[n, c, d, d]."""
    weight, mean, covariance = prior
    inverse = np.linalg.inv(covariance)
    pull = np.einsum("cij,cj->ci", inverse, mean)
    spread = np.linalg.inv(precision[:, None] + inverse)
    whole = vector[:, None] + pull
    center = np.einsum("ncij,ncj->nci", spread, whole)
    log_weight = np.log(weight) + 0.5 * (np.linalg.slogdet(spread)[1] - np.linalg.slogdet(covariance)[1]
                                         + (center * whole).sum(2) - (mean * pull).sum(1))
    return log_weight, center, spread


def log_marginal(prior, precision, vector):
    return np.logaddexp.reduce(posterior(prior, precision, vector)[0], axis=1)


def draw(rng, log_weight, mean, covariance):
    """One draw from each mixture [n, c]."""
    n = np.arange(len(log_weight))
    chosen = np.argmax(log_weight + rng.gumbel(size=log_weight.shape), axis=1)
    root = np.linalg.cholesky(covariance[n, chosen])
    return mean[n, chosen] + np.einsum("nij,nj->ni", root, rng.standard_normal((len(n), mean.shape[2])))


def sample(rng, prior, n):
    return draw(rng, *(np.broadcast_to(part, (n, *part.shape)) for part in (np.log(prior[0]), prior[1], prior[2])))


def ball(rng, *shape, d):
    x = rng.standard_normal((*shape, d))
    return x / np.linalg.norm(x, axis=-1, keepdims=True) * rng.random((*shape, 1))**(1 / d)


def play(rng, theta, rounds, prior):
    """Evidence from histories of theta[n, d]: arms at random, or chosen by Thompson sampling with `prior`."""
    n, d = theta.shape
    arms = ball(rng, n, ARMS, d=d)
    precision, vector = np.zeros((n, d, d)), np.zeros((n, d))
    for _ in range(rounds):
        if prior is None:
            x = ball(rng, n, d=d)
        else:
            drawn = draw(rng, *posterior(prior, precision, vector))
            x = arms[np.arange(n), np.einsum("nkd,nd->nk", arms, drawn).argmax(1)]
        y = (x * theta).sum(1) + rng.standard_normal(n)
        precision += x[:, :, None] * x[:, None]
        vector += x * y[:, None]
    return precision, vector


def statistics(prior, world, precision, vector):
    """[3, n], small if the prior is wrong."""
    likelihood = 0.5 * np.einsum("ni,nij,nj->n", vector, np.linalg.pinv(precision, rcond=1e-12, hermitian=True), vector)
    here = log_marginal(prior, precision, vector)
    return here - np.stack([likelihood, log_marginal(wide(prior), precision, vector), log_marginal(world, precision, vector)])


def found_out(rng, prior, world, theta, rounds, tasks, chosen):
    """The share of p-values that are at most LEVEL, [3], for theta[n tasks, d]: n groups of `tasks` tasks each."""
    precision, vector = play(rng, theta, rounds, prior if chosen else None)
    value, root = np.linalg.eigh(precision)
    square = np.einsum("nij,nj->nij", root, np.sqrt(value.clip(0)))
    ranks = np.zeros((len(STATISTICS), len(theta) // tasks))
    own = statistics(prior, world, precision, vector).reshape(len(STATISTICS), -1, tasks).sum(2)
    for _ in range(SIMULATED):
        other = sample(rng, prior, len(theta))
        evidence = np.einsum("nij,nj->ni", precision, other) + np.einsum("nij,nj->ni", square, rng.standard_normal(other.shape))
        ranks += statistics(prior, world, precision, evidence).reshape(own.shape[0], -1, tasks).sum(2) <= own
    return ((1 + ranks) / (1 + SIMULATED) <= LEVEL).mean(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", metavar="FILE", nargs="+", help="two or more prior files of the family mixture, of equal dimension")
    parser.add_argument("--rounds", type=int, default=50, help="rounds of each history (default: 50)")
    parser.add_argument("--tasks", type=int, default=1, help="histories whose logarithms are summed (default: 1)")
    parser.add_argument("--histories", type=int, default=128, help="groups of --tasks histories for each pair of priors (default: 128)")
    parser.add_argument("--bandit", action="store_true", help="choose arms by Thompson sampling with the prior")
    arguments = parser.parse_args()
    priors = [mixture(path) for path in arguments.files]
    rng = np.random.default_rng(1)
    share = {True: [], False: []}        # by whether the prior is right
    for prior, world in itertools.product(range(len(priors)), repeat=2):
        theta = sample(rng, priors[world], arguments.histories * arguments.tasks)
        rival = priors[world if world != prior else (prior + 1) % len(priors)]
        share[world == prior].append(found_out(rng, priors[prior], rival, theta, arguments.rounds, arguments.tasks, arguments.bandit))
    for name, wrong, right in zip(STATISTICS, np.transpose(share[False]), np.transpose(share[True])):
        print(f"{name}: wrong prior median {np.median(wrong):.2f}, mean {wrong.mean():.2f}, least {wrong.min():.2f}, most {wrong.max():.2f}; "
              f"right prior {right.mean():.3f}")


if __name__ == "__main__":
    script.run(main)
