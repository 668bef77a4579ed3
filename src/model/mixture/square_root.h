/* The evidence in square-root form (Bierman 1977, Factorization Methods for Discrete Sequential Estimation):
 * an upper triangular root[d + 1, d + 1] with root' root = sum of (phi, y)(phi, y)' / sigma^2. Its rows are
 * observations: of (Lambda, b) = (R'R, R'z) the first d have (R, z), the last one (0, root of what no theta
 * explains). Where the evidence is 10^16 times as precise in one direction as prior and evidence are in
 * another, P + Lambda has no digit of the latter; the root, whose entries are square roots, has half of
 * them. */
#pragma once

#include "model/mixture/mixture.h"

/* Rotates row[width] into an upper triangular root[width, width] with entries `stride` apart; row becomes
 * zeros. */
void square_root_add(int width, size_t stride, double *root, double *row);
/* Computes an upper triangular root of the symmetric a[width, width], which may be singular, entries `stride`
 * apart. */
void square_root_of(int width, const double *a, size_t stride, double *root);
/* Computes the posterior of component c of a mixture in x, theta = m + A x with A A' its covariance: out[d +
 * 1, d + 1] is the root of (T, t), with the prior N(0, I) of x in it, so that T x - t is N(0, I). The square
 * of the last entry is by how much it falls short of explaining y. Scratch: row[d + 1]. */
void square_root_condition(const Mixture *prior, int c, const double *root, double *row, double *out);
/* Computes x[d] <- m + A T^-1 (t + x) for x standard normal: a draw; from 0 the mean. */
void square_root_draw(const Mixture *prior, int c, const double *conditioned, double *x);
/* Computes covariance[d, d] of theta. Scratch: work[d, d]. */
void square_root_covariance(const Mixture *prior, int c, const double *conditioned, double *work,
                            double *covariance);
/* Returns the largest ratio of the diagonal of T'T to the square of a pivot: how much the evidence outweighs
 * what it leaves to the prior. */
double square_root_hidden(int d, const double *conditioned);
