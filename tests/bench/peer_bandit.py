"""What peers.py measures us against: Thompson sampling in the plane as people write it in Python, from the algorithms of the DiffTS paper.

Loops, one run after the other, as in published code: DiffTS (Algorithms 2 and 3) with a scikit-learn regressor for each stage that predicts one row at a
time, and Gaussian TS. Batches, B runs at once: DiffTS in NumPy, as in a first version (plain) and written for speed (tuned), and in PyTorch; TS and MixTS in
NumPy. Tuned: everything in a round that does not depend on the state is computed for all stages at once, biases are a row of ones, and the loop over stages
has no temporary arrays; plain and tuned both have float32 networks and an eigenbasis of the evidence that is computed once per round. All draw from the same
posteriors as we do: the networks are those of our prior file, and the last stage has the repaired variance.
"""

import netCDF4
import numpy as np

D, NOISE = 2, 1.0


class Diffusion:
    """A prior file of `thompson train`: schedule, coordinates, networks. Index t - 1 is stage t."""

    def __init__(self, path):
        with netCDF4.Dataset(path) as file:
            self.alpha, self.alpha_bar, self.shift, self.scale = (np.array(file[name][:]) for name in ("alpha", "alpha_bar", "shift", "scale"))
            layers = sum(name.startswith("weight_") for name in file.variables)
            self.weights = [np.array(file[f"weight_{l + 1}"][:]) for l in range(layers)]      # [T, out, in] each
            self.biases = [np.array(file[f"bias_{l + 1}"][:]) for l in range(layers)]         # [T, out]
        self.stages = len(self.alpha)
        before = np.append(1, self.alpha_bar[:-1])
        self.variance = (1 - self.alpha) * (1 - before) / (1 - self.alpha_bar)      # beta_tilde
        self.variance[0] = self.variance[1]
        self.of_state = 1 / np.sqrt(self.alpha)
        self.of_noise = -(1 - self.alpha) / np.sqrt(1 - self.alpha_bar) * self.of_state
        # The product at stage t uses the evidence diffused up to t - 1; that of the start, with mean 0 and variance 1, up to T.
        self.product_variance = np.append(self.variance, 1)
        self.product_alpha_bar = np.append(before, self.alpha_bar[-1])

    def evidence(self, precision, vector):
        """Convert precision and vector of theta, [.., d, d] and [.., d], to the coordinates of the chain."""
        shifted = vector - precision @ self.shift if precision.ndim == 2 else vector - np.einsum("bij,j->bi", precision, self.shift)
        return self.scale[:, None] * precision * self.scale, self.scale * shifted


def regressors(diffusion):
    """One MLPRegressor for each stage, with our weights."""
    from sklearn.neural_network import MLPRegressor
    made = []
    for t in range(diffusion.stages):
        network = MLPRegressor([len(bias[t]) for bias in diffusion.biases[:-1]])
        network.partial_fit(np.zeros((2, D)), np.zeros((2, D)))
        network.coefs_ = [np.ascontiguousarray(weight[t].T, float) for weight in diffusion.weights]
        network.intercepts_ = [bias[t].astype(float) for bias in diffusion.biases]
        made.append(network)
    return made


class LoopDiffTS:
    """Algorithm 2, one draw at a time."""

    def __init__(self, diffusion, rng):
        self.diffusion, self.rng, self.networks = diffusion, rng, regressors(diffusion)

    def product(self, mean, t, precision, vector):
        v, alpha_bar = self.diffusion.product_variance[t], self.diffusion.product_alpha_bar[t]
        covariance = np.linalg.inv(np.eye(D) / v + precision / alpha_bar)
        return self.rng.multivariate_normal(covariance @ (mean / v + vector / np.sqrt(alpha_bar)), covariance)

    def draw(self, precision, vector):
        diffusion = self.diffusion
        precision, vector = diffusion.evidence(precision, vector)
        state = self.product(np.zeros(D), diffusion.stages, precision, vector)
        for t in reversed(range(diffusion.stages)):
            noise = self.networks[t].predict(state.reshape(1, -1))[0]
            state = self.product(diffusion.of_state[t] * state + diffusion.of_noise[t] * noise, t, precision, vector)
        return diffusion.shift + diffusion.scale * state


class LoopTS:
    """The posterior under N(0, I)."""

    def __init__(self, rng):
        self.rng = rng

    def draw(self, precision, vector):
        covariance = np.linalg.inv(np.eye(D) + precision)
        return self.rng.multivariate_normal(covariance @ vector, covariance)


def cross(rng, runs):
    """theta*[runs, 2]: two zero-mean Gaussians with unit variances and correlations 0.99 and -0.9."""
    correlation = np.where(rng.random(runs) < 0.5, 0.99, -0.9)
    first, second = rng.standard_normal((2, runs))
    return np.column_stack([first, correlation * first + np.sqrt(1 - correlation**2) * second])


def disc(rng, runs, arms):
    """Arms [runs, arms, 2], uniform in the unit disc."""
    arm = rng.standard_normal((runs, arms, D))
    return arm * (np.sqrt(rng.random((runs, arms))) / np.linalg.norm(arm, axis=2))[:, :, None]


def loop_run(policy, rng, arms, rounds):
    """Algorithm 3 for one run: its regret."""
    theta, arm = cross(rng, 1)[0], disc(rng, 1, arms)[0]
    precision, vector, regret = np.zeros((D, D)), np.zeros(D), 0.0
    best = (arm @ theta).max()
    for _ in range(rounds):
        phi = arm[np.argmax(arm @ policy.draw(precision, vector))]
        reward = phi @ theta + NOISE * rng.standard_normal()
        precision += np.outer(phi, phi) / NOISE**2
        vector += phi * reward / NOISE**2
        regret += best - phi @ theta
    return regret


class Evidence:
    """Evidence of B runs: precision[B, d, d] and vector[B, d]."""

    def __init__(self, runs):
        self.precision, self.vector = np.zeros((runs, D, D)), np.zeros((runs, D))

    def add(self, phi, reward):
        self.precision += phi[:, :, None] * phi[:, None, :] / NOISE**2
        self.vector += phi * (reward / NOISE**2)[:, None]


class PlainDiffTS:
    """Algorithm 2 for B runs in NumPy, written as it reads."""

    def __init__(self, diffusion, rng, runs):
        self.diffusion, self.rng, self.runs = diffusion, rng, runs

    def product(self, mean, t):
        """mean[d, B] -> a draw [d, B], in the eigenbasis of the evidence."""
        v, alpha_bar = self.diffusion.product_variance[t], self.diffusion.product_alpha_bar[t]
        u = np.einsum("bij,ib->jb", self.basis, mean)
        shrink = 1 / (1 + v / alpha_bar * self.eigenvalue)
        u = shrink * (u + v / np.sqrt(alpha_bar) * self.turned) + np.sqrt(v * shrink) * self.rng.standard_normal(u.shape)
        return np.einsum("bij,jb->ib", self.basis, u)

    def draw(self, evidence):
        diffusion = self.diffusion
        precision, vector = diffusion.evidence(evidence.precision, evidence.vector)
        eigenvalue, self.basis = np.linalg.eigh(precision)
        self.eigenvalue, self.turned = eigenvalue.T, np.einsum("bij,bi->jb", self.basis, vector)
        state = self.product(np.zeros((D, self.runs)), diffusion.stages)
        for t in reversed(range(diffusion.stages)):
            x = state.astype(np.float32)
            for l, (weight, bias) in enumerate(zip(diffusion.weights, diffusion.biases)):
                x = weight[t] @ x + bias[t][:, None]
                if l < len(diffusion.weights) - 1:
                    x = np.maximum(x, 0)
            state = self.product(diffusion.of_state[t] * state + diffusion.of_noise[t] * x, t)
        return diffusion.shift + diffusion.scale * state.T


def products(diffusion, precision, vector, z):
    """The products of all stages as maps mean -> gain mean + offset: gain[T + 1, d, d, B], offset[T + 1, d, B]; z[T + 1, d, B] are the normals, overwritten."""
    precision, vector = diffusion.evidence(precision, vector)
    eigenvalue, basis = np.linalg.eigh(precision)
    basis = np.ascontiguousarray(basis.transpose(1, 2, 0), np.float32)             # [d, eigen, B]
    turned = (basis * vector.T[:, None]).sum(0, dtype=np.float32)                   # [eigen, B]
    v, alpha_bar = (np.asarray(x, np.float32)[:, None, None] for x in (diffusion.product_variance, diffusion.product_alpha_bar))
    shrink = eigenvalue.T.astype(np.float32) * (v / alpha_bar)                      # [T + 1, eigen, B]
    shrink += 1
    np.reciprocal(shrink, out=shrink)
    inner = shrink * v
    np.sqrt(inner, out=inner)
    inner *= z
    np.multiply(shrink, v / np.sqrt(alpha_bar), out=z)
    z *= turned
    inner += z
    gain, offset, term = np.empty((len(v), D, D, z.shape[2]), np.float32), z, np.empty((len(v), z.shape[2]), np.float32)
    for i in range(D):
        for j in range(i + 1):
            np.multiply(shrink[:, 0], basis[i, 0] * basis[j, 0], out=gain[:, i, j])
            gain[:, i, j] += np.multiply(shrink[:, 1], basis[i, 1] * basis[j, 1], out=term)
    gain[:, 0, 1] = gain[:, 1, 0]
    for i in range(D):
        np.multiply(inner[:, 0], basis[i, 0], out=offset[:, i])
        offset[:, i] += np.multiply(inner[:, 1], basis[i, 1], out=term)
    return gain, offset


def folded(diffusion):
    """Layers [out, in + 1] of every stage, with biases in the last column and the factor of the noise in the last layer."""
    layers = []
    for l, (weight, bias) in enumerate(zip(diffusion.weights, diffusion.biases)):
        joined = np.concatenate([weight, bias[:, :, None]], axis=2)
        if l == len(diffusion.weights) - 1:
            joined = joined * diffusion.of_noise[:, None, None]
        layers.append(np.ascontiguousarray(joined, np.float32))
    return layers


class TunedDiffTS:
    """The same, written for speed."""

    def __init__(self, diffusion, rng, runs):
        self.diffusion, self.rng, self.runs = diffusion, rng, runs
        self.layers, self.of_state = folded(diffusion), diffusion.of_state.astype(np.float32)
        self.state = np.ones((D + 1, runs), np.float32)                             # the last row stays 1
        self.hidden = [np.ones((layer.shape[1] + 1, runs), np.float32) for layer in self.layers[:-1]]
        self.mean, self.moved = np.empty((D, runs), np.float32), np.empty((D, D, runs), np.float32)

    def mu(self, t):
        """self.mean <- mu_t(state)."""
        inputs = self.state
        for layer, hidden in zip(self.layers, self.hidden):
            np.matmul(layer[t], inputs, out=hidden[:-1])
            np.maximum(hidden, 0, out=hidden)
            inputs = hidden
        np.matmul(self.layers[-1][t], inputs, out=self.mean)
        self.state[:D] *= self.of_state[t]
        self.mean += self.state[:D]

    def draw(self, evidence):
        diffusion = self.diffusion
        z = self.rng.standard_normal((diffusion.stages + 1, D, self.runs), np.float32)
        gain, offset = products(diffusion, evidence.precision, evidence.vector, z)
        self.state[:D] = offset[-1]
        for t in reversed(range(diffusion.stages)):
            self.mu(t)
            np.multiply(gain[t], self.mean, out=self.moved)
            np.add(self.moved[:, 0], self.moved[:, 1], out=self.state[:D])
            self.state[:D] += offset[t]
        return diffusion.shift + diffusion.scale * self.state[:D].T


class TorchDiffTS:
    """The same in PyTorch."""

    def __init__(self, torch, diffusion, rng, runs):
        self.torch, self.diffusion, self.rng, self.runs = torch, diffusion, rng, runs
        self.weights = [torch.tensor(np.ascontiguousarray(layer[:, :, :-1])) for layer in folded(diffusion)]
        self.biases = [torch.tensor(np.ascontiguousarray(layer[:, :, -1:])) for layer in folded(diffusion)]

    def draw(self, evidence):
        torch, diffusion = self.torch, self.diffusion
        z = self.rng.standard_normal((diffusion.stages + 1, D, self.runs), np.float32)
        with torch.inference_mode():
            gain, offset = (torch.from_numpy(x) for x in products(diffusion, evidence.precision, evidence.vector, z))
            state = offset[-1]
            for t in reversed(range(diffusion.stages)):
                x = state
                for weight, bias in zip(self.weights[:-1], self.biases[:-1]):
                    x = torch.addmm(bias[t], weight[t], x).relu_()
                mean = torch.addmm(self.biases[-1][t], self.weights[-1][t], x).add_(state, alpha=float(diffusion.of_state[t]))
                state = torch.addcmul(offset[t], gain[t, :, 0], mean[0]).addcmul_(gain[t, :, 1], mean[1])
        return diffusion.shift + diffusion.scale * state.numpy().T


class BatchMixture:
    """The posterior under a Gaussian mixture for B runs: weights[C], means[C, d], precisions[C, d, d]. TS uses N(0, I), MixTS the cross."""

    def __init__(self, rng, runs, weights, means, covariances):
        self.rng, self.lanes = rng, np.arange(runs)
        self.log_weight, self.mean, self.precision = np.log(weights), np.asarray(means), np.linalg.inv(covariances)
        self.half_log_determinant = np.linalg.slogdet(self.precision)[1] / 2

    def draw(self, evidence):
        precision = self.precision[None] + evidence.precision[:, None]              # [B, C, d, d]
        linear = np.einsum("cij,cj->ci", self.precision, self.mean)[None] + evidence.vector[:, None]
        mean = np.linalg.solve(precision, linear[..., None])[..., 0]
        factor = np.linalg.cholesky(precision)
        chosen = 0
        if len(self.log_weight) > 1:
            log = (self.log_weight + self.half_log_determinant - np.log(np.einsum("bcii->bci", factor)).sum(2) + np.einsum("bci,bci->bc", mean, linear) / 2
                   - np.einsum("ci,cij,cj->c", self.mean, self.precision, self.mean) / 2)
            chosen = np.argmax(log + self.rng.gumbel(size=log.shape), axis=1)
        z = self.rng.standard_normal((len(self.lanes), D, 1))
        return mean[self.lanes, chosen] + np.linalg.solve(factor[self.lanes, chosen].transpose(0, 2, 1), z)[..., 0]


def batch_runs(policy, rng, runs, arms, rounds):
    """Algorithm 3 for B runs: their regret[B]."""
    theta, arm = cross(rng, runs), disc(rng, runs, arms)
    lanes, first, second = np.arange(runs), np.ascontiguousarray(arm[:, :, 0]), np.ascontiguousarray(arm[:, :, 1])
    mean = first * theta[:, :1] + second * theta[:, 1:]
    best, regret, evidence = mean.max(1), np.zeros(runs), Evidence(runs)
    score, other = np.empty_like(first), np.empty_like(first)
    for _ in range(rounds):
        draw = policy.draw(evidence)
        np.multiply(first, draw[:, :1], out=score)
        np.multiply(second, draw[:, 1:], out=other)
        score += other
        chosen = np.argmax(score, axis=1)
        evidence.add(arm[lanes, chosen], mean[lanes, chosen] + NOISE * rng.standard_normal(runs))
        regret += best - mean[lanes, chosen]
    return regret
