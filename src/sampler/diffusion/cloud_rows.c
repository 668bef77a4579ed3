/* The evidence of a cloud where rewards are not Gaussian, such as clicks and counts. They depend on h = V'
 * x_0 in the r observed directions alone, and h given x is taken for N(m, K), m = V' D and K = V' C V'.
 *
 * The twist is Laplace's approximation: with the mode h* of N(h; m, K) p(y | h), which IRLS finds for all
 * particles at once, and Lambda, the curvature of -log p there,
 *
 *   log psi = log p(y | h*) - (h* - m)' K^-1 (h* - m) / 2 - log |I + K Lambda| / 2,
 *   T^-1 e  = K^-1 (h* - m)        in the step of cloud.c.
 *
 * Where the cloud ends nothing weights by a later twist. So the integral of N(h; m, K) p(y | h) is estimated
 * there from CANDIDATES draws of Laplace's Gaussian, weighted by the likelihood itself, and h is one of them,
 * picked by weight. */
#include "sampler/diffusion/cloud_internal.h"

#include "core/linalg/linalg.h"
#include "model/history/history_passes.h"

#include <string.h>

enum { CANDIDATES = 8 };
/* How close to the mode IRLS gets, in standard deviations: log psi is within half the square of that. */
static const double MODE_TOLERANCE = 0.01;
/* Added to the diagonal of K, which has to have an inverse, as a share of the noise. */
static const double RIDGE = 1e-9;

Status cloud_rows_create(Arena *memory, const CloudTarget *target, int lanes, CloudRows *out) {
  const int r = target->seen->rank;
  const size_t vector = (size_t)r * (size_t)lanes, matrix = (size_t)r * vector;
  *out = (CloudRows){.rank = r};
  ALLOCATE_ARRAYS(memory, matrix, &out->root, &out->prior, &out->precision);
  ALLOCATE_ARRAYS(memory, vector, &out->mean, &out->information, &out->vector, &out->mode, &out->off,
                  &out->candidate);
  ALLOCATE_ARRAYS(memory, lanes, &out->value, &out->log_twist, &out->top, &out->total, &out->uniform,
                  &out->share, &out->old_share);
  ALLOCATE(memory, out->jitters, lanes);
  if (cloud_has_functions(target)) TRY(cloud_functions_create(memory, target, lanes, &out->functions));
  return irls_create(memory, r, lanes, MODE_TOLERANCE, &out->irls);
}

void cloud_rows_invert(Cloud *cloud, int n, double noise) {
  CloudRows *self = &cloud->rows;
  const int r = self->rank;
  double *k = cloud->square;
  for (int i = 0; i < r; i++)
    for (int j = 0; j <= i; j++)
      for (int p = 0; p < n; p++) {
        double *low = &k[(i * r + j) * n + p], *high = &k[(j * r + i) * n + p];
        *low = *high = 0.5 * (*low + *high) + (i == j ? RIDGE * noise : 0);
      }
  memcpy(self->root, k, (size_t)r * (size_t)r * (size_t)n * sizeof *k);
  linalg_factor_cholesky(r, n, self->root, cloud->jitters);
  linalg_factor_inverse(r, n, self->root, self->prior);
}

void cloud_rows_weigh(Cloud *cloud, int n, const double *h) {
  CloudRows *self = &cloud->rows;
  const int r = self->rank;
  if (cloud_has_functions(cloud->target))
    cloud_functions_evaluate(cloud, n, h, self->value, NULL);
  else
    history_log_likelihood(&self->view, h, self->value, NULL);
  for (int k = 0; k < r * n; k++) self->vector[k] = h[k] - self->mean[k];
  linalg_lanes_multiply(r, n, self->prior, self->vector, self->off);
  for (int k = 0; k < r; k++)
    for (int p = 0; p < n; p++) self->value[p] -= 0.5 * self->off[k * n + p] * self->vector[k * n + p];
}

/* Adds half of log |K^-1| - log |K^-1 + Lambda| to sum[n]. */
static void cloud_rows_add_volume(const CloudRows *self, int n, double *sum) {
  const int r = self->rank;
  for (int k = 0; k < r; k++)
    for (int p = 0; p < n; p++) {
      const int pivot = k * (r + 1) * n + p;
      sum[p] -= log(self->root[pivot] * self->irls.factor[pivot]);
    }
}

/* Finds the mode, and the factor of K^-1 + Lambda. */
static void cloud_rows_solve(Cloud *cloud, int n) {
  CloudRows *self = &cloud->rows;
  const int r = self->rank;
  linalg_lanes_multiply(r, n, self->prior, self->mean, self->information);
  memset(self->precision, 0, (size_t)(r * r * n) * sizeof *self->precision);
  memset(self->vector, 0, (size_t)(r * n) * sizeof *self->vector);
  const PriorLanes prior = {.precision = self->prior, .vector = self->information};
  const EvidenceLanes evidence = {.precision = self->precision, .vector = self->vector};
  irls_solve(&self->irls, &self->view, prior, evidence, self->mode, cloud->fallbacks);
}

void cloud_rows_twist(Cloud *cloud, int n, double *log_twist) {
  CloudRows *self = &cloud->rows;
  const CloudTarget *target = cloud->target;
  const int r = self->rank;
  const HistoryView *one = &target->rows;
  self->view = history_view_in(history_points(one->history, one->first, n), one->shift, one->scale);
  for (int k = 0; k < r; k++)
    cloud_project(cloud->d, n, cloud->a + k * cloud->d, cloud->denoised, self->mean + k * n);
  if (cloud_has_functions(target))
    cloud_functions_solve(cloud, n);
  else
    cloud_rows_solve(cloud, n);
  cloud_rows_weigh(cloud, n, self->mode);
  memcpy(cloud->solved, self->off, (size_t)(r * n) * sizeof *self->off);
  for (int k = 0; k < r * n; k++) cloud->shift[k] = self->mode[k] - self->mean[k];
  memcpy(log_twist, self->value, (size_t)n * sizeof *log_twist);
  cloud_rows_add_volume(self, n, log_twist);
  memcpy(self->log_twist, log_twist, (size_t)n * sizeof *log_twist);
}

/* Draws a candidate from Laplace's Gaussian; value becomes the logarithm of its weight, whose mean over
 * candidates is the integral over psi. */
static void cloud_rows_propose(Cloud *cloud, int n, RngLanes *rng) {
  CloudRows *self = &cloud->rows;
  const int r = self->rank;
  double *h = self->candidate, *square = cloud->right;
  memset(square, 0, (size_t)n * sizeof *square);
  rng_lanes_normal(rng, r, h);
  for (int k = 0; k < r; k++)
    for (int p = 0; p < n; p++) square[p] += h[k * n + p] * h[k * n + p];
  linalg_factor_backward(r, n, self->irls.factor, h);
  for (int k = 0; k < r * n; k++) h[k] += self->mode[k];
  cloud_rows_weigh(cloud, n, h);
  cloud_rows_add_volume(self, n, self->value);
  for (int p = 0; p < n; p++) self->value[p] += 0.5 * square[p] - self->log_twist[p];
}

void cloud_rows_draw(Cloud *cloud, Chunk *chunk, double *h, double *log_ratio) {
  CloudRows *self = &cloud->rows;
  const int r = self->rank, n = chunk->lanes;
  for (int c = 0; c < CANDIDATES; c++) {
    cloud_rows_propose(cloud, n, &chunk->rng);
    rng_lanes_uniform(&chunk->rng, 1, self->uniform);
    lanes_join(c == 0, n, self->value, self->top, self->total, self->old_share, self->share);
    for (int p = 0; p < n; p++) {
      if (!(self->uniform[p] * self->total[p] < self->share[p])) continue;
      for (int k = 0; k < r; k++) h[k * n + p] = self->candidate[k * n + p];
    }
  }
  for (int p = 0; p < n; p++) log_ratio[p] = self->top[p] + log(self->total[p] / CANDIDATES);
}
