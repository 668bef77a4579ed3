#!/usr/bin/env python3
"""Write priors of click rates as prior files, for `problem.theta: mixture`. theta is the log odds of each arm.

    data/make_priors.py rates --rate 0.02 --sd 0.5 --arms 10 -o rates_02.nc    # N(log odds of the rate, sd^2), independent: rates of about 2%
    data/make_priors.py uniform --arms 2 -o uniform_2.nc                       # rates uniform between 0 and 1

Log odds of a uniform rate have the logistic distribution, here a mixture of three Gaussians of mean 0 for each arm; no probability differs by more
than 5e-5."""
import argparse
import itertools

import netCDF4
import numpy as np

# Least squares between the two distribution functions on 0 .. 14.
LOGISTIC_WEIGHTS = 0.25574934, 0.58315168, 0.16109898
LOGISTIC_SDS = 1.10442507, 1.73495016, 2.75007517


def rates(arguments):
    """Weights, means and standard deviations [component, arm] of N(mean, sd^2)."""
    shape = 1, arguments.arms
    return np.ones(1), np.full(shape, arguments.mean), np.full(shape, arguments.sd)


def uniform(arguments):
    """The same of independent rates that are uniform: every combination of the components of the arms."""
    chosen = list(itertools.product(range(len(LOGISTIC_SDS)), repeat=arguments.arms))
    return np.prod(np.array(LOGISTIC_WEIGHTS)[chosen], axis=1), np.zeros((len(chosen), arguments.arms)), np.array(LOGISTIC_SDS)[chosen]


def write(path, weight, mean, sd):
    components, arms = mean.shape
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.prior = "mixture"
        for name, size in (("component", components), ("dim", arms), ("dim2", arms)):
            file.createDimension(name, size)
        file.createVariable("weight", "f8", ("component",))[:] = weight / weight.sum()
        file.createVariable("mean", "f8", ("component", "dim"))[:] = mean
        file.createVariable("covariance", "f8", ("component", "dim", "dim2"))[:] = [np.diag(row ** 2) for row in sd]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("rates", "uniform"))
    parser.add_argument("--arms", type=int, required=True)
    centre = parser.add_mutually_exclusive_group()
    centre.add_argument("--mean", type=float, default=0, help="of the log odds (rates)")
    centre.add_argument("--rate", type=float, help="of an arm whose log odds are the mean, instead of --mean")
    parser.add_argument("--sd", type=float, default=1, help="of the log odds (rates)")
    parser.add_argument("-o", "--output", required=True)
    arguments = parser.parse_args()
    most = 4 if arguments.kind == "uniform" else 1000
    if not 1 <= arguments.arms <= most:
        parser.error(f"--arms {arguments.arms}: 1 to {most} arms")
    if arguments.rate is not None:
        if not 0 < arguments.rate < 1:
            parser.error(f"--rate {arguments.rate:g}: between 0 and 1")
        arguments.mean = np.log(arguments.rate / (1 - arguments.rate))
    write(arguments.output, *{"rates": rates, "uniform": uniform}[arguments.kind](arguments))


if __name__ == "__main__":
    main()
