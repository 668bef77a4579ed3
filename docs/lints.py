"""A user's own sampler for policy `python`: linear Thompson sampling (Agrawal and Goyal 2013) with the prior N(0, I)."""
import numpy as np


def sample(x, y, rng, about):
    weight = 1 / about.noise ** 2
    precision = np.eye(x.shape[2]) + weight * np.einsum("rti,rtj->rij", x, x)
    mean = np.linalg.solve(precision, weight * np.einsum("rti,rt->ri", x, y)[..., None])
    normal = rng.standard_normal(mean.shape)
    return (mean + np.linalg.solve(np.linalg.cholesky(precision).swapaxes(1, 2), normal))[..., 0]
