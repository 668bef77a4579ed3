"""Judging what a paper says of costs, by the means of CPU seconds.

The seconds are this program's, which is faster than the papers' and not by the same factor everywhere. So a paper that reports a ratio
of two costs is not wrong because one of them is lower here: both are reported, and the claim does not hold only where the method costs more than
the paper says.
"""
import numpy as np

from thompson import design, wording
import convergence
from judge import Cell, Untestable, index, mean, numbers


def ratios(dataset, policy, rival):
    """CPU seconds of a run as a multiple of the rival's, and both, by setting."""
    ours, theirs = (np.array([mean(values) for values in numbers(dataset, name, "seconds")]) for name in (policy, rival))
    return zip(design.titles(dataset), ours / theirs, ours, theirs)


def costs(policy, rival, low, high):
    """CPU seconds of a run, as a multiple of the rival's, lie in [low, high] in each setting."""
    def judge(dataset):
        return [Cell(bool(low <= ratio <= high) if np.isfinite(ratio) else None, f"{title}: {policy} costs {wording.value(ratio)} times {rival}")
                for title, ratio, *_ in ratios(dataset, policy, rival)]
    return judge


def costs_at_most(policy, rival, most, paper):
    """As a multiple of the rival's, CPU seconds of a run are at most `most`; `paper`: seconds of 100 runs of the two in the paper."""
    def judge(dataset):
        return [Cell(bool(ratio <= most) if np.isfinite(ratio) else None,
                     f"{title}: {policy} costs {wording.value(ratio)} times {rival} here ({100 * ours:.2g} s and {100 * theirs:.2g} s for 100 runs), "
                     f"{paper[0] / paper[1]:.0f} times in the paper ({paper[0]:g} s and {paper[1]:g} s)")
                for title, ratio, ours, theirs in ratios(dataset, policy, rival)]
    return judge


def alike(policy, rival, factor):
    """The two cost the same within a factor. Where the rival, the paper's own method, is so much faster here that they do not, that says
    something of the programs and not of the paper."""
    def judge(dataset):
        found = list(ratios(dataset, policy, rival))
        sentences = [f"{title}: {policy} costs {wording.value(ratio)} times {rival}" for title, ratio, *_ in found]
        if any(ratio > factor for _, ratio, *_ in found):
            raise Untestable(f"a ratio of two programs' costs, and {rival} is far faster here than in the paper: {'; '.join(sentences)}")
        return [Cell(bool(ratio >= 1 / factor) if np.isfinite(ratio) else None, sentence) for sentence, (_, ratio, *_) in zip(sentences, found)]
    return judge


def sooner(policy, rivals):
    """CPU seconds to the target divergence are fewer than each rival's, in each setting. A run that does not arrive counts with all its
    steps, so that a mean with such runs is at least what it says, and nothing is known where the lower one has them."""
    def judge(dataset):
        one, waiting = convergence.step_cost(dataset), convergence.burn_in(dataset)
        steps, _, missing = convergence.steps(dataset)

        def seconds(name, s):
            """CPU seconds, whether all runs arrive, and both in words."""
            column = index(dataset, name)
            found, late = (steps[s, column] + waiting[column]) * one[s, column], int(missing[s, column])
            return found, not late, f"{name} {1e3 * found:.3g} ms" if not late else f"{name} over {1e3 * found:.3g} ms ({late} never arrived)"

        cells = []
        for s, title in enumerate(design.titles(dataset)):
            for rival in rivals:
                (ours, arrives, said), (theirs, they_arrive, of_rival) = seconds(policy, s), seconds(rival, s)
                known = np.isfinite(ours + theirs) and (arrives if ours < theirs else they_arrive)
                cells.append(Cell(bool(ours < theirs) if known else None, f"{title}: {said}, {of_rival}"))
        return cells
    return judge
