/* The normaliser of a prior with Gaussian observations (denoiser.h),
 *
 *   log Z(b, M) = log E exp(b' z - z' M z / 2),  z from the prior,
 *
 * and with it the marginal likelihood of a history, by integration along a path from no evidence to all of it
 * (Gelman and Meng 1998, path sampling): d log Z(u b, u M) / du = b' D - tr(M (C + D D')) / 2 at (u b, u M).
 *
 * The integrand is the difference from that of the Gaussian N(D(0, 0), C(0, 0)), whose Z is known: it
 * vanishes at u = 0, and everywhere for a Gaussian prior. The nodes are evenly spaced in log u; trapezoidal
 * sums of 16, 32 and 64 intervals are extrapolated (Romberg), and the last change is the error estimate. It
 * does not include errors of a learned denoiser. */
#pragma once

#include "model/denoiser/denoiser.h"

typedef struct {
  const Denoiser *denoiser; /* not owned */
  double *prior_precision, *prior_vector; /* [d, d], [d]: C(0, 0)^-1 and C(0, 0)^-1 D(0, 0) */
  double prior_log_norm; /* log |C(0, 0)|^-1/2 - D(0, 0)' C(0, 0)^-1 D(0, 0) / 2 */
  /* n = DENOISER_LANES nodes, lane last: scratch. */
  LaneEvidence path; /* at the nodes */
  double *mean, *covariance; /* of the denoiser */
  double *factor, *centre, *inverse; /* [d, d, n], [d, n], [d, d, n]: of the Gaussian */
  double *precision; /* [d, d]: M */
  int *lane_fallbacks;
  void *scratch;
} Normaliser;

Status denoiser_normaliser_create(Arena *memory, const Denoiser *denoiser, Normaliser *out);
/* Returns log Z(b, U diag(q) U') of a single lane; *error estimates how far it may be off. The number of
 * nodes at which M lies outside the range that the denoiser was trained on is added to *lane_fallbacks. */
double denoiser_normaliser_find(Normaliser *self, const LaneEvidence *one, double *error,
                                int *lane_fallbacks);
