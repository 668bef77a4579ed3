#!/usr/bin/env python3
"""Figure 5 of the VITS paper: linear bandit with a twin arm, drawn as Figure 1 (figure_vits_1.py).

Give the results folder of jobs/vits_figure5.yaml, or of several bandit studies. Reads results.nc of each DIR; writes
figure_vits_5.png and .pdf into the first DIR.
"""
import figure_vits_1
import load


def main():
    figure_vits_1.main(__doc__, "figure_vits_5")


if __name__ == "__main__":
    load.script(main)
