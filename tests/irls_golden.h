/* Written by tests/golden/irls.py: modes under the prior N(0, I), from scikit-learn and SciPy. */
#ifndef TESTS_IRLS_GOLDEN_H
#define TESTS_IRLS_GOLDEN_H

static const double irls_golden_logistic[3] = {-0.166090905743105, -0.0444152510520813, 0.0392409986223507};
static const double irls_golden_separable[3] = {1.7156880368212, 0.130616922287953, 0.0127617881215874};
static const double irls_golden_poisson[3] = {0.0292608354884232, -0.1571361324704, 0.131272614619098};

#endif
