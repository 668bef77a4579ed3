"""What the DiffTS paper claims, and the study that can tell; with the judgement that only it needs."""
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

import load
from figure_diffts_2 import complete_rows
from judge import (Claim, at_each, both, costs, diverges, exponent, falls, level, lower, not_so, rate, rises_along, settles, untested,
                   where)

TITLE = "Online Posterior Sampling with a Diffusion Prior (Kveton et al.)"
BASELINES = ("ts", "tuned_ts", "mixts")
AS_IT_IS, RESCALED = "false", "true"     # prior.keep_signal
SPLITS, PART = 20, 250


def distance(one, other):
    """Earth mover's distance between as many samples [n, d] of each."""
    cost = cdist(one, other)
    return cost[linear_sum_assignment(cost)].mean()


def resembles(most):
    """The distance of samples of the learned prior to those of the true one is below `most` times that among the true ones, each counted
    once; mean over SPLITS into parts of at most PART. Beside it the same of a Gaussian with the true mean and covariance."""
    def judge(dataset):
        priors = load.prior_samples(load.folder_of(dataset.encoding["source"]))
        rng, cells = np.random.default_rng(0), []
        for title, name in zip(load.titles(dataset), dataset["setting"].values):
            if name not in priors["setting"].values:
                raise load.BadInput(f"there are no samples of the prior of setting {name}")
            true, learned = (complete_rows(priors["theta"].sel(setting=name, source=source).values) for source in ("true", "diffusion"))
            true = np.unique(true, axis=0)
            n = min(len(true) // 2, len(learned), PART)
            gaussian = rng.multivariate_normal(true.mean(axis=0), np.atleast_2d(np.cov(true.T)), len(true))
            splits = [[rng.permutation(found) for found in (true, learned, gaussian)] for _ in range(SPLITS)]
            floor, ours, simple = (np.mean([distance(found[which][:n], found[0][n:2 * n]) for found in splits]) for which in range(3))
            ratio, simple = ours / floor, simple / floor
            cells.append((bool(ratio < most), f"{title}: {load.value(ratio)} times as far, a Gaussian {load.value(simple)} times"))
        return cells
    return judge


CLOSE = f"(judged: earth mover's distance between {PART} samples of each below 1.5 times that among the true ones)"
CLAIMS = [
    Claim("Section 6.2, Figure 2", f"Samples from the diffusion prior closely resemble those from the true prior {CLOSE}.", "figure2",
          resembles(1.5)),
    Claim("Section 6.2, Figure 2", "DiffTS has a lower regret than Thompson sampling with an uninformative, a Gaussian and a "
          "mixture prior on cross, rays and triangles.", "figure2", lower("diffts", BASELINES)),
    Claim("Not in the paper", "The same against a mixture prior with ten components instead of two.", "figure2",
          lower("diffts", ["mixts10"])),
    Claim("Section 6.2, Figure 2", "DPS diverges as the number of rounds increases.", "figure2", diverges("dps", "ts")),
    Claim("Section 6.1", "LinUCB and epsilon-greedy do worse than TS.", "figure2",
          both(lower("ts", ["linucb"]), lower("ts", ["egreedy"]))),
    Claim("Section 6.2", "DiffTS with T stages costs about T = 100 times as much as TS (judged: within a factor of 3).",
          "figure2", costs("diffts", "ts", 100 / 3, 300)),
    Claim("Appendix C.1, Figure 4", "The same trends on swirl, H and corners: DiffTS has the lowest regret.", "figure4",
          lower("diffts", BASELINES)),
    Claim("Appendix C.1, Figure 4", f"The same trends: samples resemble those from the true prior {CLOSE}.", "figure4", resembles(1.5)),
    Claim("Appendix C.1, Figure 4", "DPS diverges on swirl and H.", "figure4",
          both(*(where("problem.theta", theta, diverges("dps", "ts")) for theta in ("swirl", "H")))),
    Claim("Appendix C.1, Figure 4", "DPS does not diverge on the last problem, corners (NeurIPS version).", "figure4",
          not_so(where("problem.theta", "corners", diverges("dps", "ts")))),
    Claim("Section 6.3, Figure 3a", f"MovieLens: samples resemble those from the true prior {CLOSE}.", "figure3_linear", resembles(1.5)),
    Claim("Section 6.3, Figure 3b", "MovieLens, linear rewards: DiffTS is significantly lower than all baselines.",
          "figure3_linear", lower("diffts", [*BASELINES, "dps"])),
    Claim("Section 6.3, Figure 3c", "MovieLens, logistic rewards: DiffTS is significantly lower than all baselines.",
          "figure3_logistic", lower("diffts", ["ts", "tuned_ts", "dps"])),
    Claim("Section 6.3", "In higher dimensions a mixture prior of two components barely outperforms a Gaussian one (judged: within a "
          "tenth).", "figure3_linear", level("mixts", ["tuned_ts"], 0.1)),
    Claim("Appendix C.2, Figure 5a", f"MNIST: both priors have the same clusters {CLOSE}.", "figure5_linear", resembles(1.5)),
    Claim("Appendix C.2, Figure 5", "MNIST, linear rewards: DiffTS is lower than all baselines.", "figure5_linear",
          lower("diffts", [*BASELINES, "dps"])),
    Claim("Appendix C.2, Figure 5", "MNIST, logistic rewards: DiffTS is lower than all baselines.", "figure5_logistic",
          lower("diffts", ["ts", "tuned_ts", "dps"])),
    Claim("Appendix C.3, Figure 6a", "The regret of DiffTS falls as the training set grows from 100 to 10 000 samples.",
          "ablation_training", falls("diffts")),
    Claim("Appendix C.3, Figure 6a", "It stabilises around 3 000 samples (judged: within a tenth from there on).", "ablation_training",
          settles("diffts", "prior.train_samples", 3000, 0.1)),
    Claim("Appendix C.3, Figure 6b", "The regret is high with one stage and falls quickly with more; with the diffusion factor as it "
          "is.", "ablation_stages", where("prior.keep_signal", AS_IT_IS, falls("diffts literal"))),
    Claim("Appendix C.3, Figure 6b", "The same with a factor that keeps the signal of the last stage whatever their number.",
          "ablation_stages", where("prior.keep_signal", RESCALED, falls("diffts literal"))),
    Claim("Appendix C.3, Figure 6b", "It stabilises around 100 stages (judged: within a tenth from there on).", "ablation_stages",
          both(*(where("prior.keep_signal", factor, settles("diffts literal", "prior.stages", 100, 0.1))
                 for factor in (AS_IT_IS, RESCALED)))),
    Claim("Section 6.2, Figure 6c", "The time of posterior sampling is linear in the number of stages (judged: exponent 0.8 to 1.2 "
          "from 10 stages on).", "ablation_stages",
          where("prior.keep_signal", AS_IT_IS, exponent("diffts", "prior.stages", "seconds", 0.8, 1.2, start=10))),
    Claim("Appendix C.4, Figure 7", "Posterior draws of DiffTS are comparable to those of MixTS, the exact posterior here (judged: "
          "earth mover's distance within a quarter at each sample size).", "figure7",
          at_each(lambda at: level("diffts", ["mixts"], 0.25, "emd", at))),
    Claim("Appendix C.4, Figure 7", "SMC is the second best: its draws are nearer to the exact posterior than those of TS, TunedTS "
          "and DPS at each sample size.", "figure7", at_each(lambda at: lower("smc", ["ts", "tuned_ts", "dps"], "emd", at))),
    Claim("Appendix C.4, Figure 7", "The draws of SMC get worse as observations are added.", "figure7", rises_along("smc", "emd")),
    Claim("Appendix C.4", "SMC with its 3 000 particles costs about as much as DiffTS (judged: within a factor of 3).", "figure7",
          costs("smc", "diffts", 1 / 3, 3)),
    Claim("Appendix C.4, Figure 7", "The draws of DPS get worse as observations are added.", "figure7", rises_along("dps", "emd")),
    Claim("Theorems 2 and 4", "Under approximation (6), a stage of the posterior is the product of two Gaussians, or IRLS.", "consistency",
          untested("this is algebra, and no study can refute it; that the program does as the theorems say is for "
                   "tests/test_laplace_dps.c and tests/test_glm_samplers.c")),
    Claim("Theorem 3", "Draws of LaplaceDPS concentrate on theta* as 1 / sqrt(n): as printed, with a last stage that ignores the "
          "evidence (judged: exponent between the two largest n, -0.6 to -0.4).", "consistency",
          rate("diffts literal exact chain", "distance", -0.6, -0.4)),
    Claim("Theorem 3", "The same with the last stage repaired.", "consistency", rate("diffts exact chain", "distance", -0.6, -0.4)),
]
