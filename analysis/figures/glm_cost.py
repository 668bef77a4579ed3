#!/usr/bin/env python3
"""CPU time of one round of DiffTS against the number of observations, with logistic and with Gaussian rewards.

Reads the CSV that tests/bench/bench_glm prints (a file, or - for standard input); writes glm_cost.png. Upper panel: time of one
draw for each run of a block; the guide has the slope of a cost that is proportional to the observations. Lower panel: IRLS
passes over the observations per stage.
"""
import needs
import csv
import pathlib
import sys

import numpy as np
from matplotlib.ticker import ScalarFormatter

from thompson import Error
import drawing
import script
import style
from style import plt

COLUMNS = {"likelihood", "observations", "seconds", "passes"}
STYLES = {"gaussian": {"color": "#0072B2", "marker": "o", "label": "Gaussian rewards: evidence of fixed size"},
         "logistic": {"color": "#D55E00", "marker": "D", "label": "logistic rewards: passes over all observations"},
         "logistic_arms": {"color": "#009E73", "marker": "s", "label": "logistic rewards of 50 fixed arms: over their sums"}}


def read(path):
    """{likelihood: (observations, seconds, passes)}, sorted by observations."""
    try:
        text = sys.stdin.read() if path == "-" else pathlib.Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Error(f"{path} cannot be read ({error})") from error
    rows = list(csv.DictReader(text.splitlines()))
    if not rows or set(rows[0]) != COLUMNS:
        raise Error(f"{path} does not have the columns {', '.join(sorted(COLUMNS))}; bench_glm prints them")
    found = {}
    for row in rows:
        try:
            numbers = [float(row[name]) for name in ("observations", "seconds", "passes")]
        except (TypeError, ValueError) as error:
            raise Error(f"{path}: incomplete row ({error})") from error
        found.setdefault(row["likelihood"], []).append(numbers)
    if set(found) != set(STYLES):
        raise Error(f"{path} has the likelihoods {', '.join(found)}, expected {', '.join(STYLES)}")
    return {name: np.array(sorted(values)).T for name, values in found.items()}


def draw(data):
    """The whole figure."""
    style.use()
    figure, (upper, lower) = plt.subplots(2, 1, sharex=True, figsize=style.LOOK.size or (5.2, 5.4), height_ratios=(3, 1.1))
    for name, styles in STYLES.items():
        observations, seconds, _ = data[name]
        upper.loglog(observations, 1e3 * seconds, **styles)
    observations, seconds, passes = data["logistic"]
    upper.loglog(observations, 1e3 * seconds[-1] * observations / observations[-1], color=style.FAINT, linewidth=1,
                 linestyle=(0, (4, 2)), label="slope 1", zorder=0)
    upper.set_ylim(0.5 * 1e3 * data["gaussian"][1].min(), 2e3 * seconds.max())
    style.values(upper)
    upper.set_ylabel("CPU ms per block of 64 draws")
    upper.legend(loc="upper left")
    lower.semilogx(observations, passes, color=STYLES["logistic"]["color"], marker=STYLES["logistic"]["marker"])
    lower.set_ylim(0.9, max(2, 1.1 * passes.max()))
    lower.set_ylabel("IRLS passes\nper stage")
    lower.set_xlabel("observations of each run")
    lower.set_xticks(observations)
    lower.xaxis.set_major_formatter(ScalarFormatter())
    lower.minorticks_off()
    figure.align_ylabels()
    figure.tight_layout()
    style.caption(figure, 0.0, ["DiffTS, d = 5, 100 stages; median of 9 rounds."])
    return figure


def main():
    parser = drawing.options(__doc__)
    parser.add_argument("table", metavar="FILE", help="what bench_glm printed; - for standard input")
    arguments = drawing.parse(parser)
    paths = arguments.output or [pathlib.Path("glm_cost.png")]
    drawing.save(draw(read(arguments.table)), paths)


if __name__ == "__main__":
    script.run(main)
