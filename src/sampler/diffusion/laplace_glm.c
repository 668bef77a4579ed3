#include "sampler/diffusion/laplace_glm.h"

#include "core/arena.h"
#include "core/linalg.h"
#include "core/simd.h"
#include "core/special.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How near to the mode IRLS goes, at least, in standard deviations of the stage. The draw moves by one of
 * them and the next stage starts from there, so that mean and deviation of the last one change by less than
 * 1e-3 of the deviation (tests/test_glm_chain.c); most stages are done after one pass. */
static const double MODE_TOLERANCE = 1e-3;

Status laplace_glm_create(Arena *memory, int d, int lanes, LaplaceGlm *out) {
  const size_t vector = (size_t)d * (size_t)lanes, matrix = (size_t)d * vector;
  *out = (LaplaceGlm){.d = d};
  TRY(irls_create(memory, d, lanes, MODE_TOLERANCE, &out->irls));
  ALLOCATE(memory, out->precision, matrix);
  ALLOCATE(memory, out->vector, vector);
  ALLOCATE(memory, out->prior_precision, matrix);
  ALLOCATE(memory, out->prior_vector, vector);
  ALLOCATE(memory, out->mode, vector);
  ALLOCATE(memory, out->basis, matrix);
  ALLOCATE(memory, out->eigenvalue, vector);
  ALLOCATE(memory, out->rotated, matrix);
  ALLOCATE(memory, out->column, 2 * vector);
  return STATUS_OK;
}

void laplace_glm_begin(LaplaceGlm *glm, int lanes) {
  const size_t vector = (size_t)glm->d * (size_t)lanes;
  memset(glm->precision, 0, (size_t)glm->d * vector * sizeof *glm->precision);
  memset(glm->vector, 0, vector * sizeof *glm->vector);
  glm->started = false;
}

/* IRLS(mu / sqrt(alpha_bar), v / alpha_bar I, h) of Theorem 4. */
static void laplace_glm_find_mode(LaplaceGlm *glm, const HistoryView *view, double v, double alpha_bar,
                                  const double *mu, int64_t *fallbacks) {
  const int d = glm->d, lanes = view->lanes;
  const double precision = alpha_bar / v, of_mean = sqrt(alpha_bar) / v;
  memset(glm->prior_precision, 0, (size_t)(d * d * lanes) * sizeof *glm->prior_precision);
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) {
      glm->prior_precision[(i * d + i) * lanes + n] = precision;
      glm->prior_vector[i * lanes + n] = of_mean * mu[i * lanes + n];
    }
  irls_solve(&glm->irls, view, glm->prior_precision, glm->prior_vector, glm->precision, glm->vector,
             glm->mode, fallbacks);
}

/* rotated = Q' A Q, symmetric. */
static void laplace_glm_rotate(LaplaceGlm *glm, int lanes, const double *a) {
  const int d = glm->d;
  double *column = glm->column, *image = column + d * lanes;
  for (int j = 0; j < d; j++) {
    for (int i = 0; i < d; i++)
      memcpy(column + i * lanes, glm->basis + (i * d + j) * lanes, (size_t)lanes * sizeof *column);
    linalg_multiply_lanes(d, lanes, a, column, image);
    linalg_multiply_transposed_lanes(d, lanes, glm->basis, image, column);
    for (int i = 0; i < d; i++)
      memcpy(glm->rotated + (i * d + j) * lanes, column + i * lanes, (size_t)lanes * sizeof *column);
  }
}

/* a[d, d, lanes] <- I + gain a. */
SIMD_CLONES
static void add_to_identity(int d, int lanes, double gain, double *a) {
  for (int k = 0; k < d * d * lanes; k++) a[k] *= gain;
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) a[(i * d + i) * lanes + n] += 1;
}

/* s[n] <- root mode[n] + deviation s[n]. */
SIMD_CLONES
static void laplace_glm_place(int n, double root, const double *restrict mode, double deviation,
                              double *restrict s) {
  for (int k = 0; k < n; k++) s[k] = special_two_products(root, mode[k], deviation, s[k]);
}

void laplace_glm_product(LaplaceGlm *glm, const HistoryView *view, double v, double alpha_bar,
                         const double *mu, double *z, double *s, int64_t *fallbacks) {
  const int d = glm->d, lanes = view->lanes;
  laplace_glm_find_mode(glm, view, v, alpha_bar, mu, fallbacks);
  if (!glm->started) linalg_eigen_lanes(d, lanes, glm->precision, glm->basis, glm->eigenvalue);
  glm->started = true;
  laplace_glm_rotate(glm, lanes, glm->precision);
  add_to_identity(d, lanes, v / alpha_bar, glm->rotated); /* v times the precision of s, in the basis Q */
  linalg_cholesky_lanes(d, lanes, glm->rotated, NULL);
  linalg_backward_lanes(d, lanes, glm->rotated, z);
  linalg_multiply_lanes(d, lanes, glm->basis, z, s);
  laplace_glm_place(d * lanes, sqrt(alpha_bar), glm->mode, sqrt(v), s);
}
