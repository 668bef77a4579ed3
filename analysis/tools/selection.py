#!/usr/bin/env python3
"""The best setting of each method's options, chosen on one half of the runs and reported on the other.

For a bandit study whose policies are the points of a grid search (jobs/papers/vits_grid.yaml). Policies with the same registered name are
one method; --by OPTION also distinguishes them by the value of an option (with --by steps, Langevin with 10 and with 50 steps are two).
In each setting the grid point with the least mean regret at the last round on one half of the runs is chosen, and its regret is reported on
the other half, on which nothing was tuned; then the halves change places. Columns:

  chosen             the grid point
  tuned, SE          its regret on the runs it was chosen on: too low, because it was chosen for being low
  reported, SE       its regret on the other runs
  best               the least regret of the method's points on those other runs, which cannot be known when choosing
  median, worst      of the method's points on those other runs
  minus FIRST, SE    reported regret minus that of the first method, run by run
  points, failed     size of the grid; points with a run that failed, which cannot be chosen

With --control OPTION=VALUE the table shows how choosing an option changes the comparison of methods: for each setting and method the
regret of the point with that value, and that of the points chosen on the other half, both over all runs and with their paired
differences to the first method, or to that of --minus.

With --tune N only N runs of the half are used to choose, as in a search with few runs. analysis/tools/table.py lists the whole grid.

Reads DIR/results.nc; writes nothing but the table.
"""
import needs
import argparse

from thompson import selection, store
import markup
import script


def printed_control(table, what, minus):
    """The table of --control as text."""
    minus = f"minus {minus or table.method[0]}"
    head = {"fixed": what, "reported": "chosen on other half", "difference": minus, "fixed_difference": minus, **{name: "SE" for name in selection.CONTROL if name.endswith("_se")}}
    return table.rename(columns=head).to_string(index=False, na_rep="", float_format="{:.2f}".format)


def printed(table):
    """The table as text; the column names say what the methods are compared with."""
    head = {"half": "tuned on", "tuned_se": "SE", "reported_se": "SE", "difference": f"minus {table.method[0]}",
            "difference_se": "SE"}
    return table.rename(columns=head).to_string(index=False, na_rep="", float_format="{:.2f}".format)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", help="results folder of a bandit study")
    parser.add_argument("--by", metavar="OPTION", action="append", default=[],
                        help="distinguish methods by this option too (may be repeated)")
    parser.add_argument("--control", metavar="OPTION=VALUE", help="compare methods at this value and at the chosen one")
    parser.add_argument("--minus", metavar="METHOD", help="with --control: differences to this method (default: the first)")
    parser.add_argument("--tune", metavar="N", type=int, help="choose on only this many runs of the half")
    parser.add_argument("-f", "--format", choices=("text", "csv"), default="text")
    arguments = parser.parse_args()
    dataset = store.results(arguments.folder)
    if arguments.control:
        option, _, value = arguments.control.partition("=")
        table = selection.control(dataset, option, value, arguments.by, arguments.minus)
        text = printed_control(table, arguments.control, arguments.minus)
    else:
        table = selection.frame(dataset, arguments.by, arguments.tune)
        text = printed(table)
    print(markup.comma_separated(table) if arguments.format == "csv" else text + "\n", end="")


if __name__ == "__main__":
    script.run(main)
