"""A flow trained with NumPy as a prior: a small network learns the velocity of flow matching for points near a circle, and `twisted` draws from the
posterior given a noisy look along one axis. Any network in PyTorch or JAX takes the place of `Network` in the same way (docs/oracles.md)."""
import numpy as np

import thompson


class Network:
    """v(x, t) of x[m, d]: two hidden layers of tanh. Its derivatives are written out; weights are moved by Adam."""

    def __init__(self, d, width, rng):
        sizes = [d + 4, width, width, d]
        self.weights = [rng.standard_normal((rows, columns)) / np.sqrt(rows) for rows, columns in zip(sizes, sizes[1:])]
        self.offsets = [np.zeros(columns) for columns in sizes[1:]]
        self.moments = [(np.zeros_like(p), np.zeros_like(p)) for p in self.weights + self.offsets]
        self.steps = 0

    def inputs(self, x, t):
        t = np.broadcast_to(np.asarray(t, dtype=float).reshape(-1, 1), (len(x), 1))
        return np.hstack([x, t, t ** 2, np.cos(np.pi * t), np.sin(np.pi * t)])

    def layers(self, x, t):
        """The input of every layer, and the output."""
        values = [self.inputs(x, t)]
        for layer, (weight, offset) in enumerate(zip(self.weights, self.offsets)):
            value = values[-1] @ weight + offset
            values.append(np.tanh(value) if layer < len(self.weights) - 1 else value)
        return values

    def __call__(self, x, t):
        return self.layers(x, t)[-1]

    def jvp(self, x, t, v):
        """The Jacobian of the velocity at each row of x times that row of v."""
        along = v @ self.weights[0][:v.shape[1]]
        for value, weight in zip(self.layers(x, t)[1:-1], self.weights[1:]):
            along = ((1 - value ** 2) * along) @ weight
        return along

    def step(self, x, t, target, rate):
        """One step of Adam on the mean squared error; returns that."""
        values = self.layers(x, t)
        miss = values[-1] - target
        slope, weights, offsets = 2 * miss / len(x), [], []
        for value, weight in zip(values[-2::-1], self.weights[::-1]):
            weights.insert(0, value.T @ slope)
            offsets.insert(0, slope.sum(axis=0))
            slope = (slope @ weight.T) * (1 - value ** 2)  # of a tanh: the first layer, whose input is none, comes last
        self.steps += 1
        for parameter, gradient, (first, second) in zip(self.weights + self.offsets, weights + offsets, self.moments):
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient ** 2 - second)
            size = np.sqrt(second / (1 - 0.999 ** self.steps)) + 1e-8
            parameter -= rate * first / (1 - 0.9 ** self.steps) / size
        return (miss ** 2).sum(axis=1).mean()


def circle(m, rng):
    """Parameters of past tasks: points near a circle of radius 1.5."""
    angle, radius = rng.uniform(0, 2 * np.pi, m), 1.5 + 0.1 * rng.standard_normal(m)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def train(theta, steps, rng):
    """Flow matching: the velocity z - theta at x_t = (1 - t) theta + t z, for random pairs and times."""
    network = Network(theta.shape[1], 64, rng)
    for step in range(steps):
        clean = theta[rng.integers(len(theta), size=256)]
        z, t = rng.standard_normal(clean.shape), rng.uniform(size=(len(clean), 1))
        network.step((1 - t) * clean + t * z, t, z - clean, 0.003 * (1 - step / steps))
    return network


def draw(agent, rng):
    """Prints what the draws given one observation have in common with exact ones, and returns the draws."""
    agent.observe([[1.0, 0.0]], [0.9])                                  # the first coordinate is about 0.9: on a circle two places are left
    theta = agent.draw(2000)
    exact = circle(10 ** 6, rng)
    weight = np.exp(-0.5 * ((exact[:, 0] - 0.9) / 0.2) ** 2)
    for name, draws, weights in (("draws", theta, np.ones(len(theta))), ("exact", exact, weight)):
        radius, above = np.hypot(*draws.T), draws[:, 1] > 0
        share, mean = np.average(above, weights=weights), np.average(radius, weights=weights)
        spread = np.sqrt(np.average((radius - mean) ** 2, weights=weights))
        height = np.average(np.abs(draws[:, 1]), weights=weights)
        print(f"{name}: share above the axis {share:.3f}, distance from it {height:.3f}, radius {mean:.3f} +- {spread:.3f}")
    return theta


def main(steps=8000):
    """Trains, and draws."""
    rng = np.random.default_rng(1)
    network = train(circle(20000, rng), steps, rng)
    return draw(thompson.Posterior(thompson.Prior.from_velocity(network, 2), noise=0.2, seed=1), rng)


if __name__ == "__main__":
    main()
