/* Internal to twisted particles as one cloud: the particles on their way (cloud.c) and at the end
 * (cloud_end.c). The letters are those of cloud.c. */
#pragma once

#include "core/chunk.h"
#include "core/particles.h"
#include "model/history/irls.h"
#include "sampler/diffusion/cloud.h"

#include <math.h>

/* What it takes to repair C in one lane, between at most q directions (cloud_repair.c). */
typedef struct {
  double *square, *axes, *spectrum; /* [q, q], [q, q], [q]: B C B', its eigenvectors and eigenvalues */
} CloudRepair;

/* What a likelihood that is known by a function needs (cloud_functions.c), for n <= lanes particles. */
typedef struct {
  int together; /* G: directions along which points are asked about at once */
  double *point, *gradient, *value; /* [d, 2 G n], [d, 2 G n], [2 G n] */
  double *centre; /* [d, n]: where the curvature is found */
  double *deviation; /* [r, n]: d_k */
  double *start, *step, *trial; /* [r, n]: of a step of Newton */
  double *best; /* [n]: the logarithm of N(h; m, K) L(h) at `start` */
  bool *open; /* [n]: particles that still have to take the step */
} CloudFunctions;

/* What evidence that is not Gaussian needs (cloud_rows.c), for n <= lanes particles. */
typedef struct {
  int rank; /* r */
  HistoryView view;
  double *root, *prior, *precision; /* [r, r, n]: factor of K; K^-1; Lambda */
  double *mean, *information; /* [r, n]: m, K^-1 m */
  double *mode, *vector, *off, *candidate; /* [r, n]: h*; of evidence, and scratch; K^-1 (h - m); h */
  double *value, *log_twist; /* [n] */
  double *top, *total, *uniform, *share, *old_share; /* [n]: of the candidates so far */
  int *jitters; /* [n] */
  Irls irls;
  CloudFunctions functions;
} CloudRows;

typedef struct {
  const CloudTarget *target;
  int d, rank, particles; /* r, N */
  int directions; /* most in which products are made at a time */
  int lanes; /* most of a chunk: particles, or draws at the end */
  double *a; /* [r + 1, d]: A; u */
  int exact; /* m: directions between which steps have the exact covariance */
  double *x, *mean, *pull; /* [d, N]: x, D, g */
  double *root; /* [m, m, N]: Cholesky factor of S between the m directions */
  double *log_twist, *log_weight, *weight; /* [N] */
  double *slope; /* [N]: j */
  double *spare; /* [max(d, m m), N] */
  int *ancestor; /* [max(N, M)] */
  ParticleEvidence evidence;
  /* n <= lanes particles, lane last. */
  double *state, *denoised, *product; /* [d, n]: of the chain; D; scratch */
  double *along, *products; /* [directions, d, n]: C times each direction; scratch */
  double *square, *rest, *solved; /* [r, r, n], [r, n], [r, n]: T; e; T^-1 e */
  double *shift; /* [r, n]: V C A' T^-1 e, sigma^2 g along the observed directions V */
  double *noise; /* [d, n] */
  double *step; /* [m, m, n]: of `root` */
  double *of_pull, *of_noise; /* [m, n] */
  double *left, *right; /* [n]: scratch */
  int *jitters; /* [n]: pivots that were no variance */
  CloudRepair repair;
  CloudRows rows; /* if the target has rows */
  int64_t *fallbacks;
} Cloud;

/* Returns sigma_t^2 of x = x_0 + sigma_t e, where the state of the chain is sqrt(alpha_bar_t) x. */
static inline double cloud_noise(const Chain *chain, int t) {
  const double alpha_bar = chain->schedule.alpha_bar[t];
  return (1 - alpha_bar) / alpha_bar;
}

/* Sets the chain's state of the particles chosen[n] (NULL: n of them from `first` on). */
void cloud_set_state(Cloud *self, int t, int n, const int *chosen, int first);
/* Computes D and, by one product with the Jacobian of the predicted noise each, along = C times each of
 * directions[count, d]: C = sigma^2 (I - sqrt(1 - alpha_bar) d eps / d s). */
void cloud_denoise(Cloud *self, int t, int n, int count, const double *directions);
/* Computes out[n] = a' x, for a[d] and x[d, n]. */
void cloud_project(int d, int n, const double *a, const double *x, double *out);
/* Computes rest = y - A x. */
void cloud_miss(Cloud *self, int n, const double *x);
/* Replaces square = A C A' by the Cholesky factor of T, and adds to jitters. */
void cloud_factorise(Cloud *self, int n);
/* Computes solved = T^-1 rest from that factor. */
void cloud_solve(Cloud *self, int n);

/* ---- C of a network */

Status cloud_repair_create(Arena *memory, int most, CloudRepair *out);
/* Returns whether jitters[n] are all 0. */
bool cloud_is_sound(const Cloud *self, int n);
/* Replaces square[count, count, n], B C B' for orthogonal rows B of these lengths[count], in lanes where
 * jitters[n] are not 0, by the covariance that is closest between rows of length 1; lanes far from one are
 * fallbacks. */
void cloud_repair(Cloud *self, int n, int count, const double *length, double *square);

/* Returns whether the evidence is not Gaussian, and whether it is used by its values and gradients alone. */
static inline bool cloud_has_rows(const CloudTarget *target) { return target->rows.history; }
static inline bool cloud_has_functions(const CloudTarget *target) {
  return cloud_has_rows(target) && !likelihood_is_concave(target->rows.history->likelihood);
}

/* ---- evidence that is not Gaussian */

/* Creates what it needs, for at most so many particles at a time. */
Status cloud_rows_create(Arena *memory, const CloudTarget *target, int lanes, CloudRows *out);
/* Computes root and prior from square = A C A', and adds to jitters; `noise` is that of the stage. */
void cloud_rows_invert(Cloud *cloud, int n, double noise);
/* Computes log psi, solved = T^-1 e and shift, from D and what cloud_rows_invert has left. */
void cloud_rows_twist(Cloud *cloud, int n, double *log_twist);
/* Draws h[r, n] = A x_0 given y, at the particles of the last cloud_rows_twist, and computes log_ratio[n]:
 * the logarithm of an estimate of the integral that psi stands for, divided by psi. */
void cloud_rows_draw(Cloud *cloud, Chunk *chunk, double *h, double *log_ratio);

/* Computes value[n] = log p(y | h) - (h - m)' K^-1 (h - m) / 2, and off = K^-1 (h - m), of h[r, n]. */
void cloud_rows_weigh(Cloud *cloud, int n, const double *h);

/* ---- evidence that is known by a function */

Status cloud_functions_create(Arena *memory, const CloudTarget *target, int lanes, CloudFunctions *out);
/* Computes value[n] at h[r, n], and V times the gradient, slope[r, n], unless that is NULL. */
void cloud_functions_evaluate(Cloud *cloud, int n, const double *h, double *value, double *slope);
/* Finds the mode, and the factor of K^-1 + Lambda, which it leaves in irls.factor, from m and K = square. */
void cloud_functions_solve(Cloud *cloud, int n);

/* ---- the end */

typedef struct {
  Cloud *cloud;
  int count; /* q */
  double *basis, *length; /* [q, d], [q]: B, first those in the span of A; all of length 1 */
  /* n <= lanes draws, lane last. */
  double *gram, *factor; /* [q, q, n]: B C B', and the Cholesky factor L of its repaired symmetric part */
  double *seen; /* [r, r, n]: K = V C V', then A L, whose other columns are 0 */
  double *z, *coefficient, *along; /* [q, n]; [q, n]: of B; of C B' */
  double *level; /* [n]: root of the variance in all other directions */
} CloudEnd;

/* Returns q. */
int cloud_end_directions(const Cloud *cloud);
/* Creates it, for at most cloud->lanes draws at a time. */
Status cloud_end_create(Arena *memory, Cloud *cloud, Rng *choices, CloudEnd *out);
/* Makes the draws of a chunk, columns of z[d, M], from the chosen particles at stage 1. */
void cloud_end_draw(CloudEnd *self, const int *chosen, Chunk *chunk, double *z);
