/* Steps of random-walk Metropolis on n particles at once (Metropolis et al. 1953): they need no gradient. The
 * target is prior(x) likelihood(x)^exponent; lane last. */
#pragma once

/* Computes z[d, n] <- x + factor L z in place, with L = root[d, d]: proposals, if z is normal. */
void metropolis_propose(int d, int n, double factor, const double *root, const double *x, double *z);
/* Replaces particles x[d + 2, n], in whose last two rows are the logarithms of prior and likelihood, by the
 * proposals that are accepted: those whose uniform number is below the ratio of the targets. uniform[n]
 * becomes 1 there, else 0. */
void metropolis_accept(int d, int n, double exponent, const double *proposal, double *uniform, double *x);
