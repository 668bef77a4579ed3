/* The Hessian-free estimate of vits_step.h: gradients at the points of a set together. */
#include "core/matrix_lanes.h"
#include "core/orthogonal_kernel.h"
#include "core/simd.h"
#include "sampler/gradient/vits_step.h"

#include <string.h>

/* Multiplies x[rows, lanes] by weight[lanes]. */
SIMD_CLONES
static void weigh_rows(int rows, int lanes, const double *restrict weight, double *restrict x) {
  for (int i = 0; i < rows; i++)
    for (int n = 0; n < lanes; n++) x[i * lanes + n] *= weight[n];
}

/* Computes x[count, n] += y[n]. */
SIMD_CLONES
static void add_to_each(int count, int n, const double *restrict y, double *restrict x) {
  for (int m = 0; m < count; m++)
    for (int k = 0; k < n; k++) x[m * n + k] += y[k];
}

/* Computes r_m of one sample for its gradient, and its part of g. */
SIMD_CLONES
static void take_controls(int n, const double *restrict linear, const double *restrict at_mean,
                          double *restrict gradient, double *restrict sum) {
  for (int k = 0; k < n; k++) {
    const double rest = gradient[k] - linear[k];
    sum[k] += rest;
    gradient[k] = rest - at_mean[k];
  }
}

/* Computes sum <- sum / samples + base. */
SIMD_CLONES
static void average(int n, double samples, const double *restrict base, double *restrict sum) {
  for (int k = 0; k < n; k++) sum[k] = sum[k] / samples + base[k];
}

/* Draws eps[count, d, lanes] of a set, standard normal and orthogonal: a length does not depend on any
 * direction, so that their product is still standard normal. */
static void draw_set(VitsStep *work, int count, int lanes, RngLanes *rng) {
  const int d = work->d, vector = d * lanes;
  double *eps = work->directions;
  for (int m = 0; m < count; m++) rng_lanes_normal(rng, d, eps + m * vector);
  orthogonal_kernel(count, d, lanes, eps, work->lengths);
  for (int m = 0; m < count; m++) weigh_rows(d, lanes, work->lengths + m * lanes, eps + m * vector);
}

/* Computes sum[d, d, n] += eps r' of a set, g += what stands in it. */
static void add_set(VitsStep *work, Potential *potential, VitsGaussian q, int count, double *sum) {
  const int d = work->d, lanes = potential->view.lanes, vector = d * lanes;
  double *eps = work->directions, *point = work->hessian, *gradient = work->copy;
  matrix_lanes_multiply_rows(count, d, lanes, eps, false, q.root, point);
  add_to_each(count, vector, q.mean, point);
  potential_gradients(potential, count, point, gradient);
  double *linear = point;
  matrix_lanes_multiply_rows(count, d, lanes, eps, true, q.inverse, linear);
  for (int m = 0; m < count; m++)
    take_controls(vector, linear + m * vector, work->at_mean, gradient + m * vector, work->gradient);
  matrix_lanes_add_outer(count, d, lanes, eps, gradient, sum);
}

void vits_step_estimate(VitsStep *work, Potential *potential, VitsGaussian q, RngLanes *rng) {
  const int d = work->d, lanes = potential->view.lanes, matrix = d * d * lanes;
  double *sum = work->product;
  memset(sum, 0, (size_t)matrix * sizeof *sum);
  memset(work->gradient, 0, (size_t)(d * lanes) * sizeof *work->gradient);
  potential_derivatives(potential, q.mean, work->at_mean, NULL);
  for (int first = 0; first < work->samples; first += d) {
    const int count = work->samples - first < d ? work->samples - first : d;
    draw_set(work, count, lanes, rng);
    add_set(work, potential, q, count, sum);
  }
  for (int i = 0; i < d * lanes; i++) work->gradient[i] /= work->samples;
  average(matrix, work->samples, q.inverse, sum);
  matrix_lanes_product_transposed(d, lanes, q.inverse, sum, work->hessian);
  matrix_lanes_symmetrise(d, lanes, work->hessian);
}
