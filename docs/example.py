"""Thompson sampling in your own environment: what two agents with learned priors lose over 200 rounds."""
import numpy as np

import thompson

rng = np.random.default_rng(1)
past = rng.choice([-1.0, 1.0], (5000, 1)) * [1, 0.5] + 0.1 * rng.standard_normal((5000, 2))    # parameters of past tasks
agents = {
    "DiffTS": thompson.Posterior(thompson.train(theta=past, family="diffusion", stages=50), sampler="diffts", noise=0.5, seed=1),
    "localised": thompson.Posterior(thompson.train(theta=past, family="mixture", components=2), sampler="localised", noise=0.5, seed=1),
}
truth = past[0]
for name, agent in agents.items():
    regret = 0.0
    for _ in range(200):
        arms = rng.standard_normal((20, 2))
        arm = agent.choose(arms)
        agent.observe(arms[arm], arms[arm] @ truth + 0.5 * rng.standard_normal())
        regret += (arms @ truth).max() - arms[arm] @ truth
    print(f"{name}: regret {regret:.2f}, theta {agent.draw(1000).mean(axis=0)}, truth {truth}")
