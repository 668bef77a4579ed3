"""What the VITS paper claims, and the study that can tell."""
from judge import Claim, both, costs, exponent, falls, level, lower, sooner, untested, where

TITLE = "VITS: Variational Inference Thompson Sampling for contextual bandits (Clavier, Huix and Durmus)"
LANGEVIN = ("lmc", "lmc 50")


def ill(one):
    return where("problem.zeta", "0.1", one)


def well(one):
    return where("problem.zeta", "1", one)


CLAIMS = [
    Claim("Section 4.1, Figure 1", "zeta = 1: all methods have similar regret (judged: VITS and LMC with 50 steps within a tenth of "
          "LinTS).", "vits_figure1", well(both(*(level(name, ["lints"], 0.1) for name in ("vits2", "vits2_hf", "lmc 50"))))),
    Claim("Section 4.1, Figure 1", "zeta = 1: LMC with 10 steps slightly underperforms.", "vits_figure1",
          well(lower("lints", ["lmc"]))),
    Claim("Section 4.1, Figure 1", "zeta = 0.1: LMC underperforms even with 50 steps.", "vits_figure1", ill(lower("vits2", LANGEVIN))),
    Claim("Section 4.1, Figure 1", "VITS-II performs similarly to LinTS (judged: within a tenth).", "vits_figure1",
          level("vits2", ["lints"], 0.1)),
    Claim("Section 4.1, Figure 1", "The Hessian-free version has a slightly higher regret than VITS-II.", "vits_figure1",
          lower("vits2", ["vits2_hf"])),
    Claim("Section 4.1", "The Hessian-free version costs less than VITS-II.", "vits_figure1", costs("vits2_hf", "vits2", 0, 1)),
    Claim("Section 4.1, Figure 2", "Quadratic rewards: LinTS is not adapted to them; VITS-II and LMC on a network have a lower "
          "regret (judged at round 400: LMC on the paper's network, VITS-II on a smaller one).", "vits_figure2",
          both(lower("lmc 50, network", ["lints"]), lower("vits2, network of 8", ["lints"]))),
    Claim("Section 4.1, Figure 2", "Quadratic rewards: VITS-II has a lower regret than LMC (judged at round 400, both on a network of "
          "8 hidden units).", "vits_figure2", lower("vits2, network of 8", ["lmc 50, network of 8"])),
    Claim("Section 4.1, Figure 2", "What LMC has more regret than VITS-II is smaller in the well-conditioned setting.", "vits_figure2",
          falls("vits2, network of 8", rival="lmc 50, network of 8")),
    Claim("Section 4.1, Figure 2", "VITS-II is slightly better than its Hessian-free version.", "vits_figure2",
          untested("the study does not run the Hessian-free version on a network")),
    Claim("Section 5, Figure 3", "MovieLens: LinTS is ill-suited; VITS and LMC, which know that rewards are logistic, do better.",
          "vits_figure3", both(lower("vits2", ["lints"]), lower("lmc", ["lints"]))),
    Claim("Section 5, Figure 3", "MovieLens: VITS has a lower regret than LMC.", "vits_figure3", lower("vits2", ["lmc"])),
    Claim("Appendix F, Figure 4", "VITS-I and VITS-II need the same number of steps to a Gaussian target (judged: within a "
          "twentieth, h = 0.05).", "vits_figure4", level("vits2 h=0.05", ["vits1 h=0.05"], 0.05, "steps_to_target")),
    Claim("Appendix F, Figure 4", "They need fewer steps than Langevin Monte Carlo at each condition number (h = 0.05).",
          "vits_figure4", both(*(lower(f"{name} h=0.05", ["lmc h=0.05"], "steps_to_target") for name in ("vits1", "vits2")))),
    Claim("Appendix F, Figure 4", "Steps grow linearly with the condition number (judged: exponent 0.8 to 1.2 from 5 on).",
          "vits_figure4", both(*(exponent(f"{name} h=0.05", "problem.condition_number", "steps_to_target", 0.8, 1.2, start=5)
                                 for name in ("lmc", "vits1", "vits2")))),
    Claim("Appendix G, Figure 5", "Linear twin bandit: VITS-I has a lower regret than the other approximate samplers.",
          "vits_figure5", lower("vits1", LANGEVIN)),
    Claim("Appendix G, Figure 5", "VITS-I and VITS-II are comparable to LinTS (judged: within a tenth).", "vits_figure5",
          both(level("vits1", ["lints"], 0.1), level("vits2", ["lints"], 0.1))),
    Claim("Appendix G, Figure 6", "Logistic twin bandit: VITS has a lower regret than all other approximate samplers and LinTS.",
          "vits_figure6", both(*(lower(name, [*LANGEVIN, "lints"]) for name in ("vits1", "vits2")))),
    Claim("Not in the paper", "The same against the recursive Gaussian approximation (rvga) and the Laplace approximation (ts).",
          "vits_figure6", both(*(lower(name, ["rvga", "ts"]) for name in ("vits1", "vits2")))),
    Claim("Appendix G, Figure 6", "VITS-II has the regret of VITS-I (judged: within a twentieth).", "vits_figure6",
          level("vits2", ["vits1"], 0.05)),
    Claim("Section 3, Appendix G", "VITS-II costs significantly less than VITS-I (judged: under nine tenths).", "vits_figure1",
          costs("vits2", "vits1", 0, 0.9)),
    Claim("Appendix I", "VITS-II reaches a given divergence in less time than Langevin Monte Carlo (judged: KL = 0.1).", "vits_cost",
          sooner("vits2", ["lmc"])),
    Claim("Appendix I", "VITS-I is the slowest.", "vits_cost", both(*(sooner(name, ["vits1"]) for name in ("vits2", "vits2_hf", "lmc")))),
]
