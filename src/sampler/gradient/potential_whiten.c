/* The potential as a function of z, theta = A z with A A' the covariance of a Gaussian prior
 * (potential.h). */
#include "sampler/gradient/potential.h"

#include "core/linalg.h"
#include "core/matrix_lanes.h"

#include <math.h>
#include <string.h>

/* Computes matrix[d, d, n] <- A' matrix A, and vector[d, n] <- A' vector. */
static void potential_pull_back(Potential *potential, int lanes, double *matrix, double *vector) {
  matrix_lanes_congruence(potential->d, lanes, true, potential->root, matrix, potential->half);
  potential_to_gradient(potential, lanes, vector);
}

/* Sets the start to the tempered prior, N(A^-1 m, I / prior_weight). */
static void potential_whiten_set_start(Potential *potential) {
  const int d = potential->d;
  const double shrink = 1 / sqrt(potential->prior_weight);
  linalg_multiply_shared(d, 1, false, potential->inverse_root, potential->start_mean, potential->white_mean);
  memcpy(potential->start_mean, potential->white_mean, (size_t)d * sizeof(double));
  for (int i = 0; i < d; i++) potential->start_deviation[i] = shrink;
  for (int i = 0; i < d * d; i++) {
    const bool diagonal = i % (d + 1) == 0;
    potential->white_precision[i] = diagonal;
    potential->start_root[i] = diagonal ? shrink : 0;
    potential->start_inverse[i] = diagonal ? 1 / shrink : 0;
  }
}

Status potential_whiten(Arena *memory, Potential *potential) {
  const size_t d = (size_t)potential->d, vector = d * (size_t)potential->capacity;
  const size_t chunk = d * CHUNK_LANES; /* of draws, which may have more lanes than updates take at once */
  const Mixture *prior = potential->prior->mixture;
  if (!potential->closed_prior || potential->network || mixture_is_white(prior)) return STATUS_OK;
  ALLOCATE_ARRAYS(memory, d * d, potential->root, potential->inverse_root, potential->white_precision);
  ALLOCATE(memory, potential->white_mean, d);
  ALLOCATE(memory, potential->point, vector > chunk ? vector : chunk);
  ALLOCATE(memory, potential->half, d * vector);
  memcpy(potential->root, prior->cholesky, d * d * sizeof(double));
  memcpy(potential->inverse_root, prior->cholesky, d * d * sizeof(double));
  linalg_invert_triangle(potential->d, potential->inverse_root);
  potential_whiten_set_start(potential);
  potential->prior_precision = potential->white_precision;
  potential->prior_information = potential->white_mean;
  return STATUS_OK;
}

const double *potential_theta(Potential *potential, int lanes, const double *z) {
  if (!potential->root) return z;
  linalg_multiply_shared(potential->d, lanes, false, potential->root, z, potential->point);
  return potential->point;
}

void potential_from_theta(const Potential *potential, int lanes, double *theta) {
  if (!potential->root) return;
  linalg_multiply_shared(potential->d, lanes, false, potential->inverse_root, theta, potential->point);
  memcpy(theta, potential->point, (size_t)(potential->d * lanes) * sizeof *theta);
}

void potential_to_gradient(const Potential *potential, int lanes, double *gradient) {
  if (!potential->root) return;
  linalg_multiply_shared(potential->d, lanes, true, potential->root, gradient, potential->point);
  memcpy(gradient, potential->point, (size_t)(potential->d * lanes) * sizeof *gradient);
}

void potential_evidence(Potential *potential, double *precision, double *vector) {
  const HistoryView *view = &potential->view;
  history_evidence(view, precision, vector);
  if (potential->root && potential->conjugate) potential_pull_back(potential, view->lanes, precision, vector);
}

void potential_rows(Potential *potential, const double *z, double *gradient, double *precision) {
  const int lanes = potential->view.lanes;
  history_derivatives(&potential->view, potential_theta(potential, lanes, z), NULL, gradient, precision);
  if (potential->root) potential_pull_back(potential, lanes, precision, gradient);
}

void potential_covariance(Potential *potential, int lanes, double *covariance) {
  if (!potential->root) return;
  matrix_lanes_congruence(potential->d, lanes, false, potential->root, covariance, potential->half);
}
