"""Posterior sampling for contextual bandits with rich priors.

    import thompson
    prior = thompson.train(theta=samples)                             # samples[n, d] of past tasks' parameters
    agent = thompson.Posterior(prior, noise=0.5)
    arm = agent.choose(arms)                                          # arms[k, d]: one posterior draw, its best arm
    agent.observe(arms[arm], reward)
    theta = agent.draw(1000)                                          # [1000, d]
    agents = thompson.Agents(prior, 10000)                            # one for each user: agents.choose(ids, arms), agents.observe(ids, x, y)
    ds = thompson.run("study.yaml", ranks=8)                          # a whole study, as an xarray Dataset

Draws come from the library (libthompson), studies from the program (`thompson`); an installed copy of this package finds both next to itself. The
environment variables THOMPSON_LIBRARY and THOMPSON_PROGRAM name others. The functions behind the figures and tables of a study:

    from thompson import averages, design, metrics, selection, significance, store
    ds = store.results("results/figure2")                             # checked; read when used
"""
from . import _library
from ._library import Error
from .agents import Agents
from .likelihoods import Likelihood
from .posteriors import Posterior
from .priors import Prior, train
from .scores import problems, score
from .studies import results, run

__all__ = ["Agents", "Error", "Likelihood", "Posterior", "Prior", "problems", "results", "run", "score", "train", "version"]


def version() -> str:
    """The version of the library: "0.1.0"."""
    return _library.version().decode()


def __getattr__(name):
    if name != "__version__":
        raise AttributeError(f"module 'thompson' has no attribute {name!r}")
    return version()
