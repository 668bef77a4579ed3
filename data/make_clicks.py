#!/usr/bin/env python3
"""Write a made-up world of ads and users who click seldom or often, for `problem.family: embedding`, and its exact prior.

    data/make_clicks.py --rate 0.02 -o clicks_02.nc [--prior prior_02.nc]       200 ads with six features, 20 000 users of three segments
    data/make_clicks.py --rate 0.02 --apart -o apart_02.nc [--prior ...]        ten ads that have nothing in common

The log odds of a click are phi' theta. With features theta is the user's: an intercept, and five tastes whose segment means lie on a circle, so that no ad
is the best of all beforehand. Apart, phi is a unit vector, and theta has a coordinate for each ad. --rate is the click rate of a typical ad."""
import argparse

import netCDF4
import numpy as np

import make_priors

ADS, USERS, SEGMENTS, TASTES = 200, 20_000, 3, 5
SEGMENT, WITHIN, FEATURE = 0.8, 0.3, 0.7      # radius of the circle; standard deviations of theta in a segment, and of a feature
ADS_APART, SD_APART = 10, 0.5


def segments(log_odds, rng):
    """Weights, means and standard deviations [component, dim] of theta, and features [ad, dim]."""
    angle = 2 * np.pi * np.arange(SEGMENTS) / SEGMENTS
    mean = np.zeros((SEGMENTS, 1 + TASTES))
    mean[:, 0], mean[:, 1], mean[:, 2] = log_odds, SEGMENT * np.cos(angle), SEGMENT * np.sin(angle)
    features = np.column_stack([np.ones(ADS), FEATURE * rng.standard_normal((ADS, TASTES))])
    return np.full(SEGMENTS, 1 / SEGMENTS), mean, np.full_like(mean, WITHIN), features


def apart(log_odds):
    shape = 1, ADS_APART
    return np.ones(1), np.full(shape, log_odds), np.full(shape, SD_APART), np.eye(ADS_APART)


def write(path, theta, features):
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.noise = 1.0
        for name, size in (("item", len(theta)), ("arm", len(features)), ("dim", theta.shape[1])):
            file.createDimension(name, size)
        file.createVariable("theta", "f8", ("item", "dim"))[:] = theta
        file.createVariable("features", "f8", ("arm", "dim"))[:] = features


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, required=True, help="between 0 and 1")
    parser.add_argument("--apart", action="store_true", help="ads without common features")
    parser.add_argument("--prior", metavar="FILE", help="write the exact prior too")
    parser.add_argument("-o", "--output", required=True)
    arguments = parser.parse_args()
    if not 0 < arguments.rate < 1:
        parser.error(f"--rate {arguments.rate}: between 0 and 1")
    rng = np.random.default_rng(59)
    log_odds = np.log(arguments.rate / (1 - arguments.rate))
    weight, mean, sd, features = apart(log_odds) if arguments.apart else segments(log_odds, rng)
    segment = rng.choice(len(weight), USERS, p=weight)
    write(arguments.output, mean[segment] + sd[segment] * rng.standard_normal((USERS, mean.shape[1])), features)
    if arguments.prior:
        make_priors.write(arguments.prior, weight, mean, sd)


if __name__ == "__main__":
    main()
