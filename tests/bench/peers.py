#!/usr/bin/python3
"""Our speed compared with that of Python programs that do the same, in one run on one core each; checks that both draw from the same posterior.

Usage: peers.py [--program build/release/thompson] [-o peers.json] [--only loops,batches,torch,twisted,posterior,training,denoiser,vits,gradient,share,floors,factors,emd,scale,exponents,bench]
       performance_page.py peers.json

DiffTS paper, Section 6.2: d = 2, 100 arms in the unit disc, 200 rounds, noise 1, prior of the cross, T = 100 stages, two hidden layers of 100 (published) or
of 20 (our default in the plane). Peers (peer_bandit.py) and we use the same networks; CPU seconds are those of whole simulations, ours in blocks of 64 runs.
Peer and ours take turns, so that other load on the machine affects both: ratios are medians over turns, with the lowest and the highest.
Each part of --only is written to the file as soon as it is done and stays there until it is measured again, so a run that was stopped can be continued
by naming the remaining parts. A part that needs a missing package or program is skipped, with a sentence. CPU seconds of the parts: loops 45, batches 40,
torch 15, twisted 15, posterior 40, training 45, denoiser 45, vits 35, gradient 30, floors 5, factors 4, emd 15, scale 40, exponents 180, bench 85, including the priors: about ten minutes in all on an idle core.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is loaded

import argparse
import json
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import netCDF4
import numpy as np
import scipy
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

import peer_bandit as peer

HERE = pathlib.Path(__file__).resolve().parent
ARMS, ROUNDS, TURNS = 100, 200, 5
OUR_RUNS = {"ts": 4096, "mixts": 4096, "diffts": 128}
OUR_POLICY = {"ts": "ts", "mixts": "{name: mixts, prior: exact}", "diffts": "diffts"}
WIDTHS = (100, 20)
CROSS = {"weights": [0.5, 0.5], "means": np.zeros((2, 2)), "covariances": np.array([[[1, c], [c, 1]] for c in (0.99, -0.9)])}
STANDARD = {"weights": [1.0], "means": np.zeros((1, 2)), "covariances": np.eye(2)[None]}
HISTORIES, OBSERVATIONS, DRAWS = 8, 20, 200

STUDY = """name: peers
study: bandit
runs: 256
problem: {theta: gm_cross, arms: 100, rounds: 200, noise: 1}
policies: [diffts]
prior: {stages: 100}
"""


class Skipped(Exception):
    """Why a part cannot be measured here."""


class Ours:
    """The program, a working folder, and priors that are fitted when they are first needed."""

    def __init__(self, program, folder):
        self.program, self.folder, self.turn = pathlib.Path(program).resolve(), pathlib.Path(folder), 0
        (self.folder / "study.yaml").write_text(STUDY)

    def call(self, *arguments):
        process = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, check=False)
        if process.returncode:
            sys.exit(process.stderr)
        return process.stdout

    def prior(self, width):
        path = self.folder / f"diffusion_{width}.nc"
        if not path.exists():
            self.call("train", self.folder / "study.yaml", "--option", f"hidden=[{width},{width}]", "-o", path)
        return path

    def mixture(self, name, weights, means, covariances):
        path = self.folder / f"{name}.nc"
        with netCDF4.Dataset(path, "w") as file:
            file.prior = "mixture"
            for dimension, size in (("component", len(weights)), ("dim", peer.D), ("dim2", peer.D)):
                file.createDimension(dimension, size)
            file.createVariable("weight", "f8", ("component",))[:] = weights
            file.createVariable("mean", "f8", ("component", "dim"))[:] = means
            file.createVariable("covariance", "f8", ("component", "dim", "dim2"))[:] = covariances
        return path

    def seconds(self, policies, runs, width=20):
        """CPU seconds per simulated run, by policy: {"diffts": .., ..}."""
        self.turn += 1
        out = self.folder / "run"
        self.call("run", self.folder / "study.yaml", "-o", out, "--overwrite", "--progress", "none", "--seed", self.turn, "--set", f"runs={runs}", "--set",
                  f"policies=[{policies}]", "--set", f"prior={{family: file, file: {self.prior(width)}}}")
        with netCDF4.Dataset(out / "results.nc") as file:
            labels = [str(label) for label in file["policy"][:]]
            return dict(zip(labels, np.array(file["seconds"][0]).mean(1)))

    def draws(self, sampler, prior, history, seed):
        data, out = self.folder / "history.csv", self.folder / "draws.nc"
        phi, reward = history
        np.savetxt(data, np.column_stack([phi, reward]), delimiter=",", header="x1,x2,y", comments="")
        self.call("sample", "--prior", prior, "--data", data, "--sampler", sampler, "--noise", peer.NOISE, "-n", DRAWS, "--seed", seed, "-o", out)
        with netCDF4.Dataset(out) as file:
            return np.array(file["theta"][:])


def cpu(call):
    start = time.process_time()
    call()
    return time.process_time() - start


def spread(values):
    return {"median": float(np.median(values)), "low": float(min(values)), "high": float(max(values))}


def in_turns(ours, name, what, their_seconds, policy, width=20, turns=TURNS, **more):
    """A row: CPU seconds per run of 200 rounds, theirs (a function) and ours."""
    pairs = [(their_seconds(), ours.seconds(OUR_POLICY[policy], OUR_RUNS[policy], width)[policy]) for _ in range(turns)]
    row = {"peer": name, "peer_method": what, "ours": policy, **({"hidden": [width, width]} if policy == "diffts" else {}), **more,
           "peer_seconds": spread([a for a, _ in pairs]), "our_seconds": spread([b for _, b in pairs]), "ratio": spread([a / b for a, b in pairs])}
    hidden = f" ({width}, {width})" if policy == "diffts" else ""
    print(f"{what:8} {name:28} {1e3 * row['peer_seconds']['median']:10.4g} ms   ours: {policy + hidden:18} {1e3 * row['our_seconds']['median']:9.4g} ms"
          f"   ratio {row['ratio']['median']:8.1f} ({row['ratio']['low']:.1f} to {row['ratio']['high']:.1f})", flush=True)
    return row


def loops(ours):
    """One run at a time in Python; DiffTS predicts row by row."""
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise Skipped(f"scikit-learn is not installed ({error})") from error
    rng, rows = np.random.default_rng(1), []
    for width in WIDTHS:
        policy = peer.LoopDiffTS(peer.Diffusion(ours.prior(width)), rng)
        rows.append(in_turns(ours, "Python loop, scikit-learn", "diffts", lambda p=policy: cpu(lambda: peer.loop_run(p, rng, ARMS, ROUNDS)), "diffts", width,
                             turns=3, batch=1))

    def loop_ts():
        return cpu(lambda: [peer.loop_run(peer.LoopTS(rng), rng, ARMS, ROUNDS) for _ in range(20)]) / 20

    rows.append(in_turns(ours, "Python loop", "ts", loop_ts, "ts", batch=1))
    rows.append(in_turns(ours, "Python loop", "ts", loop_ts, "diffts", 20, batch=1))
    return rows


def batch_seconds(make, rng, batch, rounds):
    """CPU seconds per run of 200 rounds; all rounds cost the same."""
    return cpu(lambda: peer.batch_runs(make(), rng, batch, ARMS, rounds)) / batch * ROUNDS / rounds


def batches(ours):
    rng, rows = np.random.default_rng(2), []
    for width in WIDTHS:
        diffusion = peer.Diffusion(ours.prior(width))
        for name, method in (("plain", peer.PlainDiffTS), ("tuned", peer.TunedDiffTS)):
            for batch in (100, 1024):
                rows.append(in_turns(ours, f"NumPy, {name}, batch of {batch}", "diffts",
                                     lambda: batch_seconds(lambda: method(diffusion, rng, batch), rng, batch, 4000 // batch + 10), "diffts", width, batch=batch))
    for policy, mixture in (("ts", STANDARD), ("mixts", CROSS)):
        for batch in (100, 1024):
            rows.append(in_turns(ours, f"NumPy, batch of {batch}", policy,
                                 lambda: batch_seconds(lambda: peer.BatchMixture(rng, batch, **mixture), rng, batch, ROUNDS), policy, batch=batch))
    return rows


def load_torch():
    try:
        import torch
    except ImportError as error:
        raise Skipped(f"PyTorch is not installed ({error}); Debian's package is python3-torch") from error
    torch.set_num_threads(1)
    return torch


def torch_batches(ours):
    torch, rng, rows = load_torch(), np.random.default_rng(3), []
    for width in WIDTHS:
        diffusion = peer.Diffusion(ours.prior(width))
        for batch in (100, 1024):
            rows.append(in_turns(ours, f"PyTorch, batch of {batch}", "diffts",
                                 lambda: batch_seconds(lambda: peer.TorchDiffTS(torch, diffusion, rng, batch), rng, batch, 4000 // batch + 10), "diffts",
                                 width, batch=batch))
    return rows


def twisted(ours):
    """Four particles compared with LaplaceDPS, both ours, in the same study."""
    rows = []
    for width in WIDTHS:
        pairs = [ours.seconds("diffts, {name: twisted, particles: 4}", 64, width) for _ in range(TURNS)]
        rows.append({"hidden": [width, width], "particles": 4, "diffts_seconds": spread([pair["diffts"] for pair in pairs]),
                     "twisted_seconds": spread([pair["twisted"] for pair in pairs]), "ratio": spread([pair["twisted"] / pair["diffts"] for pair in pairs])})
        print(f"twisted with 4 particles over diffts, hidden ({width}, {width}): {rows[-1]['ratio']['median']:.1f}", flush=True)
    return rows


def exact_draws(rng, history, n, weights, means, covariances):
    """Draws from the posterior of a Gaussian mixture, in closed form."""
    phi, reward = history
    log, parts = [], []
    for weight, mean, covariance in zip(weights, means, covariances):
        before = np.linalg.inv(covariance)
        after = np.linalg.inv(before + phi.T @ phi / peer.NOISE**2)
        middle = after @ (before @ mean + phi.T @ reward / peer.NOISE**2)
        residual = reward - phi @ mean
        of_rewards = phi @ covariance @ phi.T + peer.NOISE**2 * np.eye(len(reward))
        log.append(np.log(weight) - np.linalg.slogdet(of_rewards)[1] / 2 - residual @ np.linalg.solve(of_rewards, residual) / 2)
        parts.append((middle, after))
    weight = np.exp(np.array(log) - max(log))
    counts = rng.multinomial(n, weight / weight.sum())
    return np.vstack([rng.multivariate_normal(*part, size=count) for part, count in zip(parts, counts)])


def emd(x, y):
    cost = cdist(x, y)
    return float(cost[linear_sum_assignment(cost)].mean())


def evidence_of(history, runs):
    phi, reward = history
    evidence = peer.Evidence(runs)
    evidence.precision[:] = phi.T @ phi / peer.NOISE**2
    evidence.vector[:] = phi.T @ reward / peer.NOISE**2
    return evidence


def repeated(policy, history):
    one = evidence_of(history, 1)
    return np.array([policy.draw(one.precision[0], one.vector[0]) for _ in range(DRAWS)])


def posterior_cases(ours, rng):
    """(peer, our sampler, our prior, width, the peer's draws for a history, mixture of the reference)."""
    try:
        torch = load_torch()
    except Skipped:
        torch = None
    for width in WIDTHS:
        diffusion, prior = peer.Diffusion(ours.prior(width)), ours.prior(width)
        methods = [("NumPy, plain", peer.PlainDiffTS(diffusion, rng, DRAWS)), ("NumPy, tuned", peer.TunedDiffTS(diffusion, rng, DRAWS))]
        if torch:
            methods.append(("PyTorch", peer.TorchDiffTS(torch, diffusion, rng, DRAWS)))
        loop = peer.LoopDiffTS(diffusion, rng)
        yield "Python loop, scikit-learn", "diffts", prior, width, lambda history, p=loop: repeated(p, history), CROSS
        for name, method in methods:
            yield name, "diffts", prior, width, lambda history, p=method: p.draw(evidence_of(history, DRAWS)), CROSS
    yield "Python loop", "ts", ours.mixture("standard", **STANDARD), None, lambda history: repeated(peer.LoopTS(rng), history), STANDARD
    for sampler, name, mixture in (("ts", "standard", STANDARD), ("mixts", "cross", CROSS)):
        batch = peer.BatchMixture(rng, DRAWS, **mixture)
        yield "NumPy", sampler, ours.mixture(name, **mixture), None, lambda history, p=batch: p.draw(evidence_of(history, DRAWS)), mixture


def posterior(ours):
    """EMD to exact draws for peer and ours, on the same histories: the distributions are the same if the paired difference is within noise."""
    rng, rows = np.random.default_rng(4), []
    histories = []
    for _ in range(HISTORIES):
        phi = peer.disc(rng, 1, OBSERVATIONS)[0]
        histories.append((phi, phi @ peer.cross(rng, 1)[0] + peer.NOISE * rng.standard_normal(OBSERVATIONS)))
    for name, sampler, prior, width, theirs, mixture in posterior_cases(ours, rng):
        found = []
        for seed, history in enumerate(histories, 1):
            reference, again = (exact_draws(rng, history, DRAWS, **mixture) for _ in range(2))
            found.append((emd(theirs(history), reference), emd(ours.draws(sampler, prior, history, seed), reference), emd(again, reference)))
        found = np.array(found)
        difference = found[:, 1] - found[:, 0]
        error = difference.std(ddof=1) / np.sqrt(HISTORIES)
        rows.append({"peer": name, "sampler": sampler, **({"hidden": [width, width]} if width else {}), "histories": HISTORIES, "observations": OBSERVATIONS,
                     "draws": DRAWS, "emd_peer": found[:, 0].mean(), "emd_ours": found[:, 1].mean(), "emd_floor": found[:, 2].mean(),
                     "difference": difference.mean(), "difference_error": error, "agree": bool(abs(difference.mean()) <= 3 * error)})
        print(f"{sampler:7} {str(width or ''):4} {name:26} EMD to exact draws: peer {rows[-1]['emd_peer']:.4f}, ours {rows[-1]['emd_ours']:.4f}, floor "
              f"{rows[-1]['emd_floor']:.4f}; difference {difference.mean():+.4f} +- {error:.4f}{'' if rows[-1]['agree'] else '  DIFFERENT'}", flush=True)
    return rows


def script(ours, name, program):
    """A separate benchmark script, run with the program of the build that it needs; returns what it writes with --json."""
    path, out = HERE / name, ours.folder / "part.json"
    binary = ours.program if program == "thompson" else ours.program.parent / "tests" / program
    for needed in (path, binary):
        if not needed.exists():
            raise Skipped(f"{needed.name} is not there")
    out.unlink(missing_ok=True)
    if subprocess.run([sys.executable, path, binary, "--json", out], check=False).returncode and not out.exists():
        raise Skipped(f"{name} failed")
    return json.loads(out.read_text())


def bench(ours):
    """Every sampler; and those with networks a second time, in the plane with layers of the published size."""
    published = ("--samplers", "diffts,dps,joint,twisted", "--set", "problem.dimension=2", "--set", "prior.hidden=[100,100]")
    return [row for arguments in ((), published) for row in json.loads(ours.call("bench", "--json", *arguments))["rows"]]


def gradient(ours):
    """Samplers of small dense algebra: operations per draw over its time, next to the peak in the same run."""
    found = json.loads(ours.call("bench", "--share", "--json", "--samplers", "lints,lmc,fgts,vits1,vits2,vits2_hf", "--set", "problem.dimension=[5,10,20,50]", "--seconds", "0.3"))
    return [{"sampler": row["sampler"], "d": row["dimension"], "seconds_per_draw": row["seconds_per_draw"], "operations": row["double_flops_per_draw"],
             "of_peak": row["draw_fraction_of_peak"]} for row in found["rows"]]


def share(ours):
    """Operations per draw over its time, next to the peaks in the same run, of every sampler whose operations are known."""
    found = json.loads(ours.call("bench", "--share", "--json", "--samplers", "diffts,dps,joint,twisted,tilted,lints,vits1,vits2,vits2_hf,lmc,fgts", "--seconds", "0.3"))
    return found["rows"]


def own(ours, name):
    """The output of a benchmark in C."""
    binary = ours.program.parent / "tests" / name
    if not binary.exists():
        raise Skipped(f"{binary.name} is not there")
    return json.loads(subprocess.run([binary], capture_output=True, text=True, check=True).stdout)


PARTS = {"loops": loops, "batches": batches, "torch": torch_batches, "twisted": twisted, "posterior": posterior,
         "training": lambda ours: script(ours, "training_vs_sklearn.py", "training_stages"), "denoiser": lambda ours: own(ours, "bench_denoiser"),
         "vits": lambda ours: script(ours, "peers_vits.py", "thompson"), "gradient": gradient, "share": share,
         "floors": lambda ours: own(ours, "bench_floors"), "factors": lambda ours: own(ours, "bench_factors"),
         "emd": lambda ours: script(ours, "emd_vs_pot.py", "bench_emd"), "scale": lambda ours: script(ours, "scaling_law.py", "thompson"), "exponents": lambda ours: script(ours, "cost_exponents.py", "thompson"),
         "bench": bench}


def blas():
    """The linear algebra library that NumPy has loaded."""
    np.ones((2, 2)) @ np.ones((2, 2))
    maps = pathlib.Path("/proc/self/maps").read_text().split()
    return sorted({pathlib.Path(word).name for word in maps if word.startswith("/") and pathlib.Path(word).name.startswith(("libopenblas", "libblas", "libmkl"))})


def versions():
    found = {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__, "blas of numpy": ", ".join(blas())}
    for name, module in (("scikit-learn", "sklearn"), ("PyTorch", "torch"), ("POT", "ot")):
        try:
            found[name] = __import__(module).__version__
        except ImportError:
            found[name] = None
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/thompson", help="(default: build/release/thompson)")
    parser.add_argument("-o", "--output", default="peers.json", help="what was measured (default: peers.json)")
    parser.add_argument("--only", default=",".join(PARTS), help="parts to measure (default: all)")
    arguments = parser.parse_args()
    wanted = arguments.only.split(",")
    if unknown := [part for part in wanted if part not in PARTS]:
        parser.error(f"--only: {unknown[0]} is none of {', '.join(PARTS)}")
    if not pathlib.Path(arguments.program).exists():
        parser.error(f"{arguments.program} is not there; build it, or name it by --program")
    output = pathlib.Path(arguments.output)
    results = json.loads(output.read_text()) if output.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        ours = Ours(arguments.program, folder)
        machine = json.loads(ours.call("bench", "--quick", "--samplers", "ts", "--json"))["machine"]
        if results.get("machine", machine)["processor"] != machine["processor"]:
            parser.error(f"{output} was measured on another processor ({results['machine']['processor']}); give another -o")
        results["machine"] = {**machine, "load": os.getloadavg()[0], "cores": os.cpu_count(), "date": time.strftime("%Y-%m-%d"), "versions": versions()}
        for part in wanted:
            start = os.times()
            print(f"-- {part}", flush=True)
            try:
                rows = PARTS[part](ours)
                used = sum(os.times()[:4]) - sum(start[:4])
                results[part] = {"program": machine["program"], "seconds": used, "rows": rows}
                print(f"-- {part}: {used:.0f} CPU seconds", flush=True)
            except Skipped as why:
                print(f"{part} is skipped: {why}", flush=True)
                if "rows" not in results.get(part, {}):
                    results[part] = {"skipped": str(why)}
            output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
