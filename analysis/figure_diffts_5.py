#!/usr/bin/env python3
"""Figure 5 of "Online Posterior Sampling with a Diffusion Prior" (DiffTS): MNIST, drawn as Figure 3 (figure_diffts_3.py).

Give the folders of the linear and of the logistic study, or one of them. Reads results.nc and prior_samples.nc of each DIR;
writes figure_diffts_5.png and .pdf into the first DIR.
"""
import figure_diffts_3
import load


def main():
    figure_diffts_3.main(__doc__, "figure_diffts_5")


if __name__ == "__main__":
    load.script(main)
