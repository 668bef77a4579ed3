#!/usr/bin/env python3
"""Figure 6 of the VITS paper: logistic bandit with a twin arm, drawn as Figure 1 (figure_vits_1.py).

Give the results folder of jobs/vits_figure6.yaml, or of several bandit studies. Reads results.nc of each DIR; writes
figure_vits_6.png and .pdf into the first DIR.
"""
import figure_vits_1
import load


def main():
    figure_vits_1.main(__doc__, "figure_vits_6")


if __name__ == "__main__":
    load.script(main)
