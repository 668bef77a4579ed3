#!/usr/bin/env python3
"""Figure 2 of the VITS paper: quadratic bandits with a pool of arms, drawn as Figure 1 (figure_vits_1.py).

Give the results folder of jobs/vits_figure2.yaml, or of several bandit studies. Reads results.nc of each DIR; writes
figure_vits_2.png and .pdf into the first DIR.
"""
import figure_vits_1
import load


def main():
    figure_vits_1.main(__doc__, "figure_vits_2")


if __name__ == "__main__":
    load.script(main)
