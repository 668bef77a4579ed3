/* A cloud under a likelihood that is not log-concave, or known by a function of theta: its values and
 * gradients, but nothing of its curvature. It takes the place of rows (cloud_rows.c) in the r directions V in
 * which the log likelihood varies most: those that span its gradients at draws of the Gaussian with the
 * prior's moments (active subspace; Constantine 2014), at most MOST_DIRECTIONS. At h = V x_0 the point is D +
 * V' (h - m), and the log likelihood is taken there.
 *
 * The mode of N(h; m, K) L(h) is found by steps of Newton from m. Their curvature is that of the line through
 * the gradients d_k to either side in each direction v_k, where d_k is the standard deviation of N(m, K), and
 * after the first step that of the Gaussian which this has led to:
 *
 *   Lambda v_k = (gradient at h - d_k v_k  -  gradient at h + d_k v_k) / (2 d_k),
 *
 * which is exact for a Gaussian likelihood, and for any other smooth over what x_0 is uncertain about. Where
 * K^-1 + Lambda is not positive definite, Lambda is its diagonal, as far as that is positive. A step is
 * divided by 4 until it gains, and left out if it does not. Whatever comes out, weights make up for it. */
#include "sampler/diffusion/cloud_internal.h"

#include "core/linalg/linalg.h"

#include <cblas.h>
#include <string.h>

enum { MOST_DIRECTIONS = 32, GRADIENTS = 64, STEPS = 4 };
/* How close to the mode steps go, in standard deviations, and the least share of one. */
static const double TOLERANCE = 0.1, LEAST_SHARE = 0x1p-10;
/* In place of the logarithm of 0, which no weight could be corrected from. */
static const double IMPOSSIBLE = -1e7;
/* Directions in which the mean square of the gradient is a smaller share of the largest are left out:
 * rounding would turn them. */
static const double LEAST_VARIATION = 1e-10;

/* ---- directions */

/* Computes gradient[GRADIENTS, d] of the log likelihood in a view of one lane, at draws of the Gaussian. */
static Status functions_sample_gradients(const HistoryView *view, const double *mean, const double *variance,
                                         Rng *rng, double *gradient) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)view->history->d;
  const HistoryView points =
      history_view_in(history_points(view->history, view->first, GRADIENTS), view->shift, view->scale);
  double *z, *lanes, *value;
  ALLOCATE_ARRAYS(&scratch, d * GRADIENTS, &z, &lanes);
  ALLOCATE(&scratch, value, GRADIENTS);
  rng_normal(rng, (int)d * GRADIENTS, z);
  for (size_t i = 0; i < d; i++)
    for (size_t k = 0; k < GRADIENTS; k++)
      z[i * GRADIENTS + k] = mean[i] + sqrt(variance[i]) * z[i * GRADIENTS + k];
  history_log_likelihood(&points, z, value, lanes);
  for (size_t i = 0; i < d; i++)
    for (size_t k = 0; k < GRADIENTS; k++) gradient[k * d + i] = lanes[i * GRADIENTS + k];
  return STATUS_OK;
}

Status cloud_functions_find(Arena *memory, const HistoryView *view, const double *mean,
                            const double *variance, Rng *rng, Subspace *out) {
  SCRATCH_ARENA(scratch);
  enum { N = GRADIENTS };
  const int d = view->history->d;
  double *gradient, *square, *axes, *eigenvalue;
  ASSERT(view->lanes == 1 && view->draws == 1);
  *out = (Subspace){.d = d};
  ALLOCATE(&scratch, gradient, (size_t)N * (size_t)d);
  ALLOCATE_ARRAYS(&scratch, N * N, &square, &axes);
  ALLOCATE(&scratch, eigenvalue, N);
  ALLOCATE(memory, out->direction, (size_t)MOST_DIRECTIONS * (size_t)d);
  ALLOCATE_ARRAYS(memory, MOST_DIRECTIONS, &out->value, &out->reward);
  TRY(functions_sample_gradients(view, mean, variance, rng, gradient));
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, N, N, d, 1, gradient, d, gradient, d, 0, square, N);
  TRY(linalg_eigen(N, square, axes, eigenvalue));
  const int most = d < MOST_DIRECTIONS ? d : MOST_DIRECTIONS;
  for (int k = N - 1; k >= N - most; k--) { /* eigenvalues come in rising order */
    if (!(eigenvalue[k] > LEAST_VARIATION * eigenvalue[N - 1])) break;
    double *direction = out->direction + (size_t)out->rank * (size_t)d;
    cblas_dgemv(CblasRowMajor, CblasTrans, N, d, 1 / sqrt(eigenvalue[k]), gradient, d, axes + k, N, 0,
                direction, 1);
    out->value[out->rank++] = 1;
  }
  if (out->rank > 0) return STATUS_OK;
  out->direction[0] = out->value[0] = 1; /* it varies nowhere, as far as these points can tell */
  out->rank = 1;
  return STATUS_OK;
}

/* ---- values */

Status cloud_functions_create(Arena *memory, const CloudTarget *target, int lanes, CloudFunctions *out) {
  const size_t d = (size_t)target->chain->d, r = (size_t)target->seen->rank, n = (size_t)lanes;
  const int fit = likelihood_most_points(target->chain->d) / (2 * lanes);
  *out = (CloudFunctions){.together = fit > 1 ? fit : 1};
  if (out->together > (int)r) out->together = (int)r;
  const size_t points = 2 * (size_t)out->together * n;
  ALLOCATE_ARRAYS(memory, d * points, &out->point, &out->gradient);
  ALLOCATE(memory, out->centre, d * n);
  ALLOCATE(memory, out->value, points);
  ALLOCATE_ARRAYS(memory, r * n, &out->start, &out->step, &out->trial, &out->deviation);
  ALLOCATE(memory, out->best, n);
  ALLOCATE(memory, out->open, n);
  return STATUS_OK;
}

/* Computes D + V' (h - m). */
static void functions_find_points(const Cloud *cloud, int n, const double *h, double *point) {
  const int d = cloud->d;
  const double *mean = cloud->rows.mean;
  memcpy(point, cloud->denoised, (size_t)d * (size_t)n * sizeof *point);
  for (int k = 0; k < cloud->rank; k++)
    for (int i = 0; i < d; i++) {
      const double v = cloud->target->seen->direction[k * d + i];
      for (int p = 0; p < n; p++) point[i * n + p] += v * (h[k * n + p] - mean[k * n + p]);
    }
}

void cloud_functions_evaluate(Cloud *cloud, int n, const double *h, double *value, double *slope) {
  const CloudRows *rows = &cloud->rows;
  CloudFunctions *self = &cloud->rows.functions;
  const int d = cloud->d, r = cloud->rank;
  functions_find_points(cloud, n, h, self->point);
  history_log_likelihood(&rows->view, self->point, value, slope ? self->gradient : NULL);
  for (int p = 0; p < n; p++) value[p] = fmax(value[p], IMPOSSIBLE);
  if (!slope) return;
  for (int k = 0; k < r; k++)
    cloud_project(d, n, cloud->target->seen->direction + k * d, self->gradient, slope + k * n);
}

/* ---- curvature */

/* Computes rows of Lambda[r, r, n], of `count` directions from `first` on. */
static void functions_curve_along(Cloud *cloud, int n, int first, int count) {
  CloudRows *rows = &cloud->rows;
  CloudFunctions *self = &rows->functions;
  const int d = cloud->d, r = cloud->rank, lanes = 2 * count * n;
  const double *direction = cloud->target->seen->direction;
  const HistoryView *one = &cloud->target->rows;
  const HistoryView view =
      history_view_in(history_points(one->history, one->first, lanes), one->shift, one->scale);
  for (int i = 0; i < d; i++)
    for (int c = 0; c < 2 * count; c++) {
      const int k = first + c / 2;
      const double v = c % 2 == 0 ? direction[k * d + i] : -direction[k * d + i];
      for (int p = 0; p < n; p++)
        self->point[i * lanes + c * n + p] = self->centre[i * n + p] + v * self->deviation[k * n + p];
    }
  history_log_likelihood(&view, self->point, self->value, self->gradient);
  for (int c = 0; c < count; c++)
    for (int j = 0; j < r; j++) {
      double *out = rows->precision + ((first + c) * r + j) * n;
      for (int p = 0; p < n; p++) out[p] = 0;
      for (int i = 0; i < d; i++) {
        const double v = direction[j * d + i], *after = self->gradient + i * lanes + 2 * c * n,
                     *before = after + n;
        for (int p = 0; p < n; p++) out[p] += v * (before[p] - after[p]);
      }
      for (int p = 0; p < n; p++) out[p] /= 2 * self->deviation[(first + c) * n + p];
    }
}

/* Computes the Cholesky factor of K^-1 + Lambda, which is symmetrised. */
static void functions_factorise(CloudRows *rows, int n, double *factor) {
  const int r = rows->rank;
  for (int k = 0; k < r; k++)
    for (int j = 0; j <= k; j++)
      for (int p = 0; p < n; p++) {
        const int low = (k * r + j) * n + p, high = (j * r + k) * n + p;
        factor[low] = factor[high] = rows->prior[low] + 0.5 * (rows->precision[low] + rows->precision[high]);
      }
  memset(rows->jitters, 0, (size_t)n * sizeof *rows->jitters);
  linalg_factor_cholesky(r, n, factor, rows->jitters);
}

/* Finds Lambda and that factor. */
static void functions_curve(Cloud *cloud, int n) {
  CloudRows *rows = &cloud->rows;
  CloudFunctions *self = &rows->functions;
  const int r = cloud->rank;
  bool repaired = false;
  functions_find_points(cloud, n, rows->mode, self->centre);
  for (int first = 0; first < r; first += self->together)
    functions_curve_along(cloud, n, first, r - first < self->together ? r - first : self->together);
  functions_factorise(rows, n, rows->irls.factor);
  for (int p = 0; p < n; p++) {
    if (rows->jitters[p] == 0) continue;
    repaired = true;
    for (int k = 0; k < r; k++)
      for (int j = 0; j < r; j++) {
        double *entry = &rows->precision[(k * r + j) * n + p];
        *entry = k == j ? fmax(*entry, 0) : 0;
      }
  }
  if (repaired) functions_factorise(rows, n, rows->irls.factor);
}

/* ---- the mode */

/* Computes the step, and best[n], the logarithm of N(h; m, K) L(h) up to a constant, at the mode so far,
 * where the step begins. Returns whether any particle is further from the mode than TOLERANCE; open[n] are
 * those. */
static bool functions_find_step(Cloud *cloud, int n) {
  CloudRows *rows = &cloud->rows;
  CloudFunctions *self = &rows->functions;
  const int r = cloud->rank, entries = r * n;
  double *decrement = cloud->right;
  bool any = false;
  memset(decrement, 0, (size_t)n * sizeof *decrement);
  cloud_functions_evaluate(cloud, n, rows->mode, self->best, self->step);
  memcpy(self->start, rows->mode, (size_t)entries * sizeof *self->start);
  for (int k = 0; k < entries; k++) rows->vector[k] = rows->mode[k] - rows->mean[k];
  linalg_lanes_multiply(r, n, rows->prior, rows->vector, rows->off);
  for (int k = 0; k < r; k++)
    for (int p = 0; p < n; p++) {
      self->best[p] -= 0.5 * rows->off[k * n + p] * rows->vector[k * n + p];
      self->step[k * n + p] -= rows->off[k * n + p];
    }
  memcpy(rows->vector, self->step, (size_t)entries * sizeof *self->step);
  linalg_factor_solve(r, n, rows->irls.factor, self->step);
  for (int k = 0; k < r; k++)
    for (int p = 0; p < n; p++) decrement[p] += rows->vector[k * n + p] * self->step[k * n + p];
  for (int p = 0; p < n; p++) {
    self->open[p] = decrement[p] > TOLERANCE * TOLERANCE;
    any = any || self->open[p];
  }
  return any;
}

/* Takes this share of the step where it gains, which closes the particle. Returns whether any is still open.
 */
static bool functions_try_step(Cloud *cloud, int n, double share) {
  CloudRows *rows = &cloud->rows;
  CloudFunctions *self = &rows->functions;
  const int r = cloud->rank;
  bool any = false;
  for (int k = 0; k < r * n; k++) self->trial[k] = self->start[k] + share * self->step[k];
  cloud_rows_weigh(cloud, n, self->trial);
  for (int p = 0; p < n; p++) {
    if (!self->open[p]) continue;
    self->open[p] = !(rows->value[p] > self->best[p]);
    any = any || self->open[p];
    if (self->open[p]) continue;
    for (int k = 0; k < r; k++) rows->mode[k * n + p] = self->trial[k * n + p];
  }
  return any;
}

/* Finds curvature and step where the last one has led, from points within what was left of the uncertainty.
 */
static void functions_curve_again(Cloud *cloud, int n) {
  CloudRows *rows = &cloud->rows;
  const int r = cloud->rank;
  linalg_factor_inverse(r, n, rows->irls.factor, rows->precision);
  for (int k = 0; k < r; k++)
    for (int p = 0; p < n; p++)
      rows->functions.deviation[k * n + p] = sqrt(rows->precision[k * (r + 1) * n + p]);
  functions_curve(cloud, n);
  functions_find_step(cloud, n);
}

void cloud_functions_solve(Cloud *cloud, int n) {
  CloudRows *rows = &cloud->rows;
  const int r = cloud->rank;
  memcpy(rows->mode, rows->mean, (size_t)(r * n) * sizeof *rows->mode);
  for (int k = 0; k < r; k++)
    for (int p = 0; p < n; p++)
      rows->functions.deviation[k * n + p] = sqrt(cloud->square[k * (r + 1) * n + p]);
  functions_curve(cloud, n);
  for (int step = 0; step < STEPS; step++) {
    double share = 1;
    if (!functions_find_step(cloud, n)) return;
    if (step > 0) functions_curve_again(cloud, n);
    while (share >= LEAST_SHARE && functions_try_step(cloud, n, share)) share /= 4;
  }
}
