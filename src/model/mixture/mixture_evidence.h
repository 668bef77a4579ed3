/* A mixture of Gaussians given Gaussian evidence (Lambda, b): component c becomes N(P_c^-1 h_c, P_c^-1), P_c
 * = S_c^-1 + Lambda, h_c = S_c^-1 m_c + b, with the weight
 *
 *     w_c |S_c|^-1/2 |P_c|^-1/2 exp(-m_c' S_c^-1 m_c / 2 + h_c' P_c^-1 h_c / 2). */
#pragma once

#include "model/mixture/mixture.h"

/* Computes out[C], the part of the log weight of each component that does not depend on the evidence, up to a
 * constant that depends only on the dimension. */
void mixture_evidence_constants(const Mixture *mixture, double *out);
/* Computes factor[d, d, N] = P_c and vector[d, N] = h_c from precision[d, d, N] = Lambda and b[d, N]. */
void mixture_evidence_add(const Mixture *mixture, int c, int lanes, const double *precision, const double *b,
                          double *factor, double *vector);
/* Computes log_weight[N] = constant + |L^-1 h|^2 / 2 - log |L| with factor[d, d, N] = L, the Cholesky
 * factor of P_c, and whitened[d, N] = L^-1 h_c. */
void mixture_evidence_weigh(int d, int lanes, double constant, const double *factor, const double *whitened,
                            double *log_weight);

/* ---- the evidence in square-root form (Bierman 1977, Factorization Methods for Discrete Sequential
 * Estimation): an upper triangular root[d + 1, d + 1] with root' root = sum of (phi, y)(phi, y)' / sigma^2.
 * Its rows are like observations: with (Lambda, b) = (R'R, R'z), the first d rows are (R, z), and the last
 * one is (0, root of what no theta explains). If the evidence is 10^16 times as precise in one direction as
 * prior and evidence are in another, P + Lambda keeps no digit of the latter; the root, whose entries are
 * square roots, keeps half of them. */

/* Rotates row[width] into an upper triangular root[width, width] with entries `stride` apart; row becomes
 * zeros. */
void mixture_evidence_root_add(int width, size_t stride, double *root, double *row);
/* Computes an upper triangular root of the symmetric a[width, width], which may be singular, entries `stride`
 * apart. */
void mixture_evidence_root_of(int width, const double *a, size_t stride, double *root);
/* Computes the posterior of component c of a mixture in x, theta = m + A x with A A' its covariance: out[d +
 * 1, d + 1] is the root (T, t), which includes the prior N(0, I) of x, so that T x - t is N(0, I). The square
 * of the last entry is what this posterior leaves unexplained in y. Scratch: row[d + 1]. */
void mixture_evidence_root_condition(const Mixture *prior, int c, const double *root, double *row,
                                     double *out);
/* Computes x[d] <- m + A T^-1 (t + x): a draw if x is standard normal, the mean if x is 0. */
void mixture_evidence_root_draw(const Mixture *prior, int c, const double *conditioned, double *x);
/* Computes covariance[d, d] of theta. Scratch: work[d, d]. */
void mixture_evidence_root_covariance(const Mixture *prior, int c, const double *conditioned, double *work,
                                      double *covariance);
/* Returns the largest ratio of the diagonal of T'T to the square of a pivot: how much the evidence outweighs
 * what it leaves to the prior. */
double mixture_evidence_root_hidden(int d, const double *conditioned);
