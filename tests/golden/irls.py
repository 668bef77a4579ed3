#!/usr/bin/python3
"""Golden numbers for test_irls.c, from scikit-learn and SciPy; writes ../support/irls_golden.h.

Modes of a Gaussian prior times a logistic or Poisson likelihood. scikit-learn penalises |w|^2 / 2 with C = 1; with
theta = L w and features phi L that is the prior N(0, L L'). Poisson modes, under a prior with a mean, are computed with SciPy:
Newton's method in a trust region.
"""

import pathlib

import numpy as np
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

rng = np.random.default_rng(17)
D, ROWS = 4, 40


def prior():
    """A precision P and a factor L with L L' = P^-1."""
    a = rng.standard_normal((D, 2 * D))
    precision = a @ a.T / D
    return precision, np.linalg.cholesky(np.linalg.inv(precision))


def logistic(phi, y, factor):
    fit = LogisticRegression(C=1, fit_intercept=False, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    return factor @ fit.fit(phi @ factor, y).coef_[0]


def poisson(phi, y, precision, mean):
    def loss(theta):
        u = phi @ theta
        return np.exp(u).sum() - y @ u + (theta - mean) @ precision @ (theta - mean) / 2

    def gradient(theta):
        return phi.T @ (np.exp(phi @ theta) - y) + precision @ (theta - mean)

    def hessian(theta):
        return phi.T @ (np.exp(phi @ theta)[:, None] * phi) + precision

    return minimize(loss, mean, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-10}).x


def array(values):
    return "{" + ", ".join(str(value) for value in values.tolist()) + "}"


def case(name, family, y, phi, precision, mean, mode):
    rows = ",\n              ".join(map(array, phi))
    return (f'    {{.name = "{name}",\n     .family = "{family}",\n     .phi = {{{rows}}},\n     .y = {array(y)},\n'
            f"     .precision = {{{', '.join(map(array, precision))}}},\n"
            f"     .mean = {array(mean)},\n     .mode = {array(mode)}}},\n")


cases = []
zero, theta = np.zeros(D), np.array([1.5, -1, 0.5, 2])

phi = rng.standard_normal((ROWS, D)).round(3)
y = (rng.uniform(size=ROWS) < 1 / (1 + np.exp(-phi @ theta))).astype(int)
precision, factor = prior()
cases.append(case("logistic", "logistic", y, phi, precision, zero, logistic(phi, y, factor)))

# A gap between the classes, and a prior so wide that the mode lies far out.
phi[:, 0] = (phi[:, 0] + np.where(phi @ theta > 0, 1, -1)).round(3)
y = (phi @ theta > 0).astype(int)
wide = 100
cases.append(case("separable", "logistic", y, phi, precision / wide**2, zero, logistic(phi, y, wide * factor)))

phi = (0.5 * rng.standard_normal((ROWS, D))).round(3)
y = rng.poisson(np.exp(phi @ theta))
precision, _ = prior()
mean = rng.standard_normal(D).round(3)
cases.append(case("poisson", "poisson", y, phi, precision, mean, poisson(phi, y, precision, mean)))

# Only the prior keeps the rates away from zero.
none, wide = np.zeros(ROWS, int), 10
cases.append(case("no counts", "poisson", none, phi, precision / wide**2, mean,
                  poisson(phi, none, precision / wide**2, mean)))

text = f"""/* Modes of Gaussian prior times likelihood, from scikit-learn and SciPy; written by golden/irls.py. */
#pragma once

enum {{ GOLDEN_D = {D}, GOLDEN_ROWS = {ROWS} }};

typedef struct {{
  const char *name, *family;
  double phi[GOLDEN_ROWS][GOLDEN_D], y[GOLDEN_ROWS];
  double precision[GOLDEN_D][GOLDEN_D], mean[GOLDEN_D], mode[GOLDEN_D];
}} GoldenMode;

/* clang-format off */
static const GoldenMode golden_modes[] = {{
{"".join(cases)}}};
/* clang-format on */
"""
pathlib.Path(__file__).resolve().parent.parent.joinpath("support", "irls_golden.h").write_text(text)
