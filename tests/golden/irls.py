"""Modes of penalised generalised linear models from scikit-learn and SciPy, for tests/test_irls.c: prints tests/irls_golden.h.

The data are simple formulas, so that C and Python have the same bits without a file.
"""

import numpy as np
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

N, D = 60, 3


def features(separable):
    t = np.arange(N)[:, None]
    i = np.arange(D)[None, :]
    return ((7 * t * (i + 1) + 3 * i * i) % 19 - 9) / 8.0 * (10 if separable else 1)


def rewards(kind, x):
    t = np.arange(N)
    if kind == "separable":
        return (x[:, 0] > 0.01).astype(float)
    if kind == "logistic":
        return ((5 * t) % 7 < 3).astype(float)
    return (t % 4).astype(float)


def mode(kind):
    x = features(kind == "separable")
    y = rewards(kind, x)
    if kind == "poisson":
        value = lambda w: np.exp(x @ w).sum() - y @ (x @ w) + w @ w / 2
        slope = lambda w: x.T @ (np.exp(x @ w) - y) + w
        return minimize(value, np.zeros(D), jac=slope, method="BFGS", options={"gtol": 1e-11, "maxiter": 10000}).x
    model = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-13, max_iter=100000, solver="newton-cholesky")
    return model.fit(x, y).coef_[0]


print("/* Written by tests/golden/irls.py: modes under the prior N(0, I), from scikit-learn and SciPy. */")
print("#ifndef TESTS_IRLS_GOLDEN_H\n#define TESTS_IRLS_GOLDEN_H\n")
for kind in ("logistic", "separable", "poisson"):
    print(f"static const double irls_golden_{kind}[{D}] = {{{', '.join(f'{w:.15g}' for w in mode(kind))}}};")
print("\n#endif")
