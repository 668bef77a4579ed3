"""Judges what a paper says about costs by the CPU seconds of this program.

One rule applies to all ratios of costs: how a cost grows is a property of the method and is judged (judge.exponent); a constant factor over
the cost of another method is a property of two programs and is reported, with the verdict that it can't be tested here.
"""
import numpy as np

from thompson import design, wording
import convergence
from judge import Cell, Untestable, index, mean, numbers, swept


def ratios(dataset, policy, rival):
    """CPU seconds of a run as a multiple of the rival's, and both, by setting."""
    ours, theirs = (np.array([mean(values) for values in numbers(dataset, name, "seconds")]) for name in (policy, rival))
    return zip(design.titles(dataset), ours / theirs, ours, theirs)


def reported(pairs, paper=""):
    """How many times the CPU seconds of its rival each policy of `pairs` takes here; `paper`: the numbers that the paper gives."""
    def judge(dataset):
        found = [f"{policy} costs {', '.join(wording.value(ratio) for _, ratio, *_ in ratios(dataset, policy, rival))} times as much as {rival}"
                 for policy, rival in pairs]
        raise Untestable(f"a constant ratio of two costs depends on the implementations, so it is reported but not judged: here {'; '.join(found)}"
                         + (f"; in the paper, {paper}" if paper else ""))
    return judge


def step_grows_at_most(policy, power, start):
    """From `start` dimensions on, CPU seconds per step grow at most as this power of the dimension, by a straight line through the logarithms."""
    def judge(dataset):
        dimension = swept(dataset, "problem.dimension").astype(float)
        use = dimension >= start
        found, error = convergence.slope(dimension[use], convergence.step_cost(dataset)[use, index(dataset, policy)])
        return [Cell(bool(found <= power) if np.isfinite(found) else None, f"{policy}: exponent {wording.value(found, error)} of the CPU time of a step")]
    return judge


def arrivals(policies):
    """CPU milliseconds to the target divergence, including all steps of runs that do not arrive, reported."""
    def judge(dataset):
        one, waiting = convergence.step_cost(dataset), convergence.burn_in(dataset)
        steps, _, missing = convergence.steps(dataset)

        def said(name, s):
            p = index(dataset, name)
            found, late = 1e3 * (steps[s, p] + waiting[p]) * one[s, p], int(missing[s, p])
            return f"{name} {found:.3g} ms" if not late else f"{name} over {found:.3g} ms ({late} never arrived)"

        listed = "; ".join(f"{title}: {', '.join(said(name, s) for name in policies)}" for s, title in enumerate(design.titles(dataset)))
        raise Untestable(f"times of programs are reported, not judged: {listed}")
    return judge
