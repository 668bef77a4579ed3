"""A denoiser trained with PyTorch as a prior, in a study and in the library (docs/oracles.md): points near a circle, as in flow.py.

    python3 docs/denoiser.py              trains it in some seconds, writes denoiser.pt, and draws from a posterior

A study then names this file: `prior: {family: oracle, module: denoiser, callable: oracle, sigma_min: 0.01, sigma_max: 20}`, run where denoiser.pt is."""
import os

import torch
from torch.autograd import forward_ad

FILE = "denoiser.pt"
count = torch.cuda.device_count()
device = torch.device("cuda", int(os.environ.get("THOMPSON_LOCAL_RANK", "0")) % count) if count else torch.device("cpu")


class Denoiser(torch.nn.Module):
    """D(x, sigma) of x[m, d] with the weights of Karras et al. (2022): the network sees numbers on the scale of 1, whatever the noise."""

    def __init__(self, d, width=64, spread=1.0):
        super().__init__()
        self.register_buffer("spread", torch.tensor(spread))
        self.layers = torch.nn.Sequential(torch.nn.Linear(d + 1, width), torch.nn.SiLU(), torch.nn.Linear(width, width), torch.nn.SiLU(),
                                          torch.nn.Linear(width, width), torch.nn.SiLU(), torch.nn.Linear(width, d))

    def forward(self, x, sigma):
        """x[m, d], sigma[m, 1]."""
        total = sigma ** 2 + self.spread ** 2
        inner = torch.cat([x / total.sqrt(), torch.log(sigma) / 4], dim=1)
        return self.spread ** 2 / total * x + sigma * self.spread / total.sqrt() * self.layers(inner)


def single(array):
    """The numbers of an array, which are read where they lie, in single precision."""
    return torch.from_numpy(array).to(device, torch.float32)


class Oracle:
    """What the program asks for, from a network in single precision."""

    def __init__(self, network=None):
        self.known = network

    @property
    def network(self):
        self.known = self.known or load()
        return self.known

    def __call__(self, x, sigma):
        with torch.no_grad():
            return self.network(single(x), torch.full((len(x), 1), sigma, device=device)).cpu().numpy()

    def jvp(self, x, sigma, v):
        with torch.no_grad(), forward_ad.dual_level():
            dual = forward_ad.make_dual(single(x), single(v))
            return forward_ad.unpack_dual(self.network(dual, torch.full((len(x), 1), sigma, device=device))).tangent.cpu().numpy()


oracle = Oracle()


def save(network, d):
    torch.save((d, network.state_dict()), FILE)


def load():
    d, weights = torch.load(FILE, map_location=device)
    network = Denoiser(d).to(device)
    network.load_state_dict(weights)
    return network


def train(theta, steps, sigma_min=0.01, sigma_max=20.0):
    """Denoising of theta[m, d]: noises evenly spaced in logarithm, errors in units of what the network has to add."""
    theta = torch.as_tensor(theta, dtype=torch.float32, device=device)
    network = Denoiser(theta.shape[1], spread=float(theta.std())).to(device)
    optimiser = torch.optim.Adam(network.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1, 0.01, steps)
    for _ in range(steps):
        clean = theta[torch.randint(len(theta), (512,), device=device)]
        sigma = sigma_min * (sigma_max / sigma_min) ** torch.rand(len(clean), 1, device=device)
        weight = (sigma ** 2 + network.spread ** 2) / (sigma * network.spread) ** 2
        miss = network(clean + sigma * torch.randn_like(clean), sigma) - clean
        optimiser.zero_grad()
        (weight * miss ** 2).mean().backward()
        optimiser.step()
        schedule.step()
    return network


def main(steps=4000):
    """Trains, writes the network, prints what the draws have in common with exact ones, and returns the draws."""
    import flow
    import numpy as np
    import thompson

    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    network = train(flow.circle(20000, rng), steps)
    save(network, 2)
    agent = thompson.Posterior(thompson.Prior.from_oracle(Oracle(network), 2, 0.01, 20), noise=0.2, seed=1)
    return flow.draw(agent, rng)


if __name__ == "__main__":
    main()
