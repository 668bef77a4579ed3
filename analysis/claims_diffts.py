"""What the DiffTS paper claims, and the study that can tell."""
from judge import Claim, both, costs, diverges, exponent, falls, level, lower, rate, rises_along, where

TITLE = "Online Posterior Sampling with a Diffusion Prior (Kveton et al.)"
BASELINES = ("ts", "tuned_ts", "mixts")
AS_IT_IS, RESCALED = "0", "1"     # prior.keep_signal
CLAIMS = [
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
    Claim("Section 6.3, Figure 3b", "MovieLens, linear rewards: DiffTS is significantly lower than all baselines.",
          "figure3_linear", lower("diffts", [*BASELINES, "dps"])),
    Claim("Section 6.3, Figure 3c", "MovieLens, logistic rewards: DiffTS is significantly lower than all baselines.",
          "figure3_logistic", lower("diffts", ["ts", "tuned_ts", "dps"])),
    Claim("Section 6.3", "In higher dimensions a mixture prior of two components barely outperforms a Gaussian one (judged: within a "
          "tenth).", "figure3_linear", level("mixts", ["tuned_ts"], 0.1)),
    Claim("Appendix C.2, Figure 5", "MNIST, linear rewards: DiffTS is lower than all baselines.", "figure5_linear",
          lower("diffts", [*BASELINES, "dps"])),
    Claim("Appendix C.2, Figure 5", "MNIST, logistic rewards: DiffTS is lower than all baselines.", "figure5_logistic",
          lower("diffts", ["ts", "tuned_ts", "dps"])),
    Claim("Appendix C.3, Figure 6a", "The regret of DiffTS falls as the training set grows from 100 to 10 000 samples.",
          "ablation_training", falls("diffts")),
    Claim("Appendix C.3, Figure 6b", "The regret is high with one stage and falls quickly with more; with the diffusion factor as it "
          "is.", "ablation_stages", where("prior.keep_signal", AS_IT_IS, falls("diffts literal"))),
    Claim("Appendix C.3, Figure 6b", "The same with a factor that keeps the signal of the last stage whatever their number.",
          "ablation_stages", where("prior.keep_signal", RESCALED, falls("diffts literal"))),
    Claim("Section 6.2, Figure 6c", "The time of posterior sampling is linear in the number of stages (judged: exponent 0.8 to 1.2 "
          "from 10 stages on).", "ablation_stages",
          where("prior.keep_signal", AS_IT_IS, exponent("diffts", "prior.stages", "seconds", 0.8, 1.2, start=10))),
    Claim("Appendix C.4, Figure 7", "Posterior draws of DiffTS are comparable to those of MixTS, the exact posterior here (judged: "
          "earth mover's distance within a quarter at the largest sample size).", "figure7", level("diffts", ["mixts"], 0.25, "emd")),
    Claim("Appendix C.4, Figure 7", "SMC is the second best: its draws are nearer to the exact posterior than those of TS, TunedTS "
          "and DPS at the smallest sample size.", "figure7", lower("smc", ["ts", "tuned_ts", "dps"], "emd", at=0)),
    Claim("Appendix C.4, Figure 7", "The draws of DPS get worse as observations are added.", "figure7", rises_along("dps", "emd")),
    Claim("Theorem 3", "Draws of LaplaceDPS concentrate on theta* as 1 / sqrt(n): as printed, with a last stage that ignores the "
          "evidence (judged: exponent between the two largest n, -0.6 to -0.4).", "consistency",
          rate("diffts literal exact chain", "distance", -0.6, -0.4)),
    Claim("Theorem 3", "The same with the last stage repaired.", "consistency", rate("diffts exact chain", "distance", -0.6, -0.4)),
]
