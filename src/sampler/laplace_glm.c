#include "sampler/laplace_glm.h"

#include "core/linalg.h"
#include "core/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How near to the mode IRLS goes, in standard deviations of the stage. The draw moves by one of them. */
static const double MODE_TOLERANCE = 1e-4;

Status laplace_glm_create(int d, int lanes, LaplaceGlm *out) {
  const size_t vector = (size_t)d * (size_t)lanes, matrix = (size_t)d * vector;
  *out = (LaplaceGlm){.d = d};
  TRY(irls_create(d, lanes, MODE_TOLERANCE, &out->irls));
  NEW(out->precision, matrix);
  NEW(out->vector, vector);
  NEW(out->prior_precision, matrix);
  NEW(out->prior_vector, vector);
  NEW(out->mode, vector);
  NEW(out->basis, matrix);
  NEW(out->eigenvalue, vector);
  NEW(out->rotated, matrix);
  NEW(out->column, 2 * vector);
  return STATUS_OK;
}

void laplace_glm_destroy(LaplaceGlm *glm) {
  irls_destroy(&glm->irls);
  free(glm->precision);
  free(glm->vector);
  free(glm->prior_precision);
  free(glm->prior_vector);
  free(glm->mode);
  free(glm->basis);
  free(glm->eigenvalue);
  free(glm->rotated);
  free(glm->column);
}

void laplace_glm_begin(LaplaceGlm *glm, int lanes) {
  const size_t vector = (size_t)glm->d * (size_t)lanes;
  memset(glm->precision, 0, (size_t)glm->d * vector * sizeof *glm->precision);
  memset(glm->vector, 0, vector * sizeof *glm->vector);
  glm->started = false;
}

/* IRLS(mu / sqrt(alpha_bar), v / alpha_bar I, h) of Theorem 4. */
static void find_mode(LaplaceGlm *glm, const HistoryView *view, double v, double alpha_bar, const double *mu,
                      int64_t *fallbacks) {
  const int d = glm->d, lanes = view->lanes;
  const double precision = alpha_bar / v, of_mean = sqrt(alpha_bar) / v;
  memset(glm->prior_precision, 0, (size_t)(d * d * lanes) * sizeof *glm->prior_precision);
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) {
      glm->prior_precision[(i * d + i) * lanes + n] = precision;
      glm->prior_vector[i * lanes + n] = of_mean * mu[i * lanes + n];
    }
  irls_solve(&glm->irls, view, glm->prior_precision, glm->prior_vector, glm->precision, glm->vector, glm->mode,
             fallbacks);
}

/* rotated = Q' A Q, symmetric. */
static void rotate(LaplaceGlm *glm, int lanes, const double *a) {
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

void laplace_glm_product(LaplaceGlm *glm, const HistoryView *view, double v, double alpha_bar, const double *mu,
                         double *z, double *s, int64_t *fallbacks) {
  const int d = glm->d, lanes = view->lanes;
  const double gain = v / alpha_bar, root = sqrt(alpha_bar), deviation = sqrt(v);
  find_mode(glm, view, v, alpha_bar, mu, fallbacks);
  if (!glm->started) linalg_eigen_lanes(d, lanes, glm->precision, glm->basis, glm->eigenvalue);
  glm->started = true;
  rotate(glm, lanes, glm->precision);
  for (int k = 0; k < d * d * lanes; k++)
    glm->rotated[k] = gain * glm->rotated[k] + (k / lanes % (d + 1) == 0 ? 1 : 0); /* I + v Q' Lambda Q / alpha_bar */
  linalg_cholesky_lanes(d, lanes, glm->rotated, NULL);
  linalg_backward_lanes(d, lanes, glm->rotated, z);
  linalg_multiply_lanes(d, lanes, glm->basis, z, s);
  for (int k = 0; k < d * lanes; k++) s[k] = root * glm->mode[k] + deviation * s[k];
}
