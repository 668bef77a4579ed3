#include "metric/metrics.h"

#include "core/chunk.h"
#include "io/io_dataset.h"
#include "model/mixture/mixture_density.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

/* Returns |x - y| of count elements, which lie `stride` and `other_stride` apart. */
static double metric_strided_distance(size_t count, const double *x, size_t stride, const double *y,
                                      size_t other_stride) {
  double squares = 0;
  for (size_t i = 0; i < count; i++) {
    const double step = x[i * stride] - y[i * other_stride];
    squares += step * step;
  }
  return sqrt(squares);
}

double metric_mean_error(int d, const double *mean_x, const double *mean_y) {
  return metric_strided_distance((size_t)d, mean_x, 1, mean_y, 1);
}

/* Computes fraction[C] of the points x[d, n] that belong to each component: a point belongs to the first
 * component that reaches its largest density, and to none if that is not a number. work[3 n] is scratch. */
static void metric_mode_fractions(const Mixture *modes, int n, const double *x, double *work,
                                  double *fraction) {
  double *best = work, *which = best + n, *density = which + n;
  for (int i = 0; i < n; i++) best[i] = -INFINITY, which[i] = 0;
  mixture_invert(modes);
  for (int c = 0; c < modes->components; c++) {
    const size_t d = (size_t)modes->d, first = (size_t)c;
    const MixtureInverse inverse = {.precision = modes->inverse.precision + first * d * d,
                                    .found = modes->inverse.found};
    const Mixture alone = {.d = modes->d, /* whose log density is log(w_c N(theta; mu_c, Sigma_c)) */
                           .components = 1,
                           .mean = modes->mean + first * d,
                           .inverse = inverse,
                           .log_norm = modes->log_norm + first};
    mixture_log_density(&alone, n, x, density);
    fraction[c] = 0;
    for (int i = 0; i < n; i++) {
      if (isnan(density[i])) which[i] = -1;
      if (!(density[i] > best[i])) continue;
      best[i] = density[i];
      which[i] = c;
    }
  }
  for (int i = 0; i < n; i++)
    if (which[i] >= 0) fraction[(int)which[i]]++;
  for (int c = 0; c < modes->components; c++) fraction[c] /= n;
}

/* Computes the same for a mixture without matrices; of equal densities the first counts. */
static Status metric_isotropic_fractions(const Isotropic *modes, int n, const double *x, double *fraction) {
  SCRATCH_ARENA(scratch);
  const int d = modes->d;
  double *some;
  int component[CHUNK_LANES];
  ALLOCATE(&scratch, some, (size_t)d * CHUNK_LANES);
  memset(fraction, 0, (size_t)modes->components * sizeof *fraction);
  for (int first = 0; first < n; first += CHUNK_LANES) {
    const int count = n - first < CHUNK_LANES ? n - first : CHUNK_LANES;
    lanes_copy(d, count, x + first, n, some, count);
    denoiser_isotropic_nearest(modes, count, some, component);
    for (int k = 0; k < count; k++) fraction[component[k]]++;
  }
  for (int c = 0; c < modes->components; c++) fraction[c] /= n;
  return STATUS_OK;
}

/* Computes the fractions of a cloud in the modes of the comparison. */
static Status metric_cloud_fractions(const Comparison *self, const Cloud *x, double *work, double *fraction) {
  if (!self->modes) return metric_isotropic_fractions(self->isotropic, x->n, x->theta, fraction);
  metric_mode_fractions(self->modes, x->n, x->theta, work, fraction);
  return STATUS_OK;
}

static int metric_modes(const Comparison *self) {
  return self->modes ? self->modes->components : self->isotropic->components;
}

double metric_total_variation(int count, const double *p, const double *q) {
  double sum = 0;
  for (int c = 0; c < count; c++) sum += fabs(p[c] - q[c]);
  return sum / 2;
}

double metric_largest(int count, const double *p) {
  double largest = 0;
  for (int c = 0; c < count; c++) largest = fmax(largest, p[c]);
  return largest;
}

double metric_distance(int d, int n, const double *x, const double *truth) {
  double sum = 0;
  for (int k = 0; k < n; k++) sum += metric_strided_distance((size_t)d, x + k, (size_t)n, truth, 1);
  return sum / n;
}

double metric_energy_score(int d, int n, const double *x, const double *truth) {
  double sum = 0;
  for (int k = 1; k < n; k++)
    for (int l = 0; l < k; l++) sum += metric_strided_distance((size_t)d, x + k, (size_t)n, x + l, (size_t)n);
  return metric_distance(d, n, x, truth) - sum / n / (n - 1);
}

/* Compares points by some order that puts equal points next to each other. */
static int metric_compare_points(const void *a, const void *b, void *bytes) {
  return memcmp(a, b, *(const size_t *)bytes);
}

Status metric_distinct(int d, int n, const double *x, double *out) {
  SCRATCH_ARENA(scratch);
  double *points; /* [n, d] */
  size_t bytes = (size_t)d * sizeof *x, distinct = 0;
  ALLOCATE(&scratch, points, (size_t)n * (size_t)d);
  io_dataset_transpose(d, n, x, points);
  qsort_r(points, (size_t)n, bytes, metric_compare_points, &bytes);
  for (size_t k = 0; k < (size_t)n; k++)
    distinct += k == 0 || memcmp(points + k * (size_t)d, points + (k - 1) * (size_t)d, bytes) != 0;
  *out = (double)distinct / n;
  return STATUS_OK;
}

int metric_rank(int d, int n, const double *x, const double *truth, const double *direction) {
  int rank = 0;
  for (int i = 0; i < n; i++) {
    double above = 0;
    for (size_t k = 0; k < (size_t)d; k++) above += direction[k] * (x[k * (size_t)n + (size_t)i] - truth[k]);
    rank += above < 0;
  }
  return rank;
}

int metric_below(int n, const double *values, double truth) {
  int rank = 0;
  for (int i = 0; i < n; i++) rank += values[i] < truth;
  return rank;
}

void metric_norms(int d, int n, const double *x, double *norm) {
  for (int k = 0; k < n; k++) {
    double square = 0;
    for (size_t i = 0; i < (size_t)d; i++)
      square += x[i * (size_t)n + (size_t)k] * x[i * (size_t)n + (size_t)k];
    norm[k] = sqrt(square);
  }
}

void metric_log_likelihoods(const Comparison *self, const Cloud *x, double *values, double *truth) {
  const HistoryView view = history_points(self->history, self->run, x->n);
  history_density_at(self->density, &view, NULL);
  history_density(self->density, x->theta, values, NULL);
  history_density_set_points(self->density, 1);
  history_density(self->density, self->truth, truth, NULL);
}

/* ---- the metrics of the list: each takes what it needs from a comparison */

static Clouds comparison_clouds(const Comparison *self) {
  return (Clouds){.d = self->d, .n = self->x->n, .m = self->y->n, .x = self->x->theta, .y = self->y->theta};
}

Status measure_emd(const Comparison *self, double *out) {
  const Clouds clouds = comparison_clouds(self);
  return emd_distance(self->emd, &clouds, out);
}

Status measure_sliced_wasserstein(const Comparison *self, double *out) {
  const Clouds clouds = comparison_clouds(self);
  *out = wasserstein_sliced(self->wasserstein, &clouds, self->projections, self->directions);
  return STATUS_OK;
}

Status measure_max_sliced_wasserstein(const Comparison *self, double *out) {
  const Clouds clouds = comparison_clouds(self);
  *out = wasserstein_max_sliced(self->wasserstein, &clouds, self->projections, self->directions);
  return STATUS_OK;
}

/* Computes the mean and the standard deviation of coordinate i of a cloud. */
static void metric_coordinate_moments(const Cloud *x, int i, double *mean, double *sd) {
  const double *row = x->theta + (size_t)i * (size_t)x->n;
  double sum = 0, squares = 0;
  for (int k = 0; k < x->n; k++) sum += row[k];
  *mean = sum / x->n;
  for (int k = 0; k < x->n; k++) squares += (row[k] - *mean) * (row[k] - *mean);
  *sd = sqrt(squares / x->n);
}

/* Returns the larger number; NAN if one of them is none. */
static double metric_larger(double a, double b) { return isnan(a) || isgreater(a, b) ? a : b; }

/* Computes the largest errors of a coordinate: of the mean, in standard deviations of y, and of the standard
 * deviation, relative to that of y. NAN if a coordinate of y does not vary. */
static void metric_marginal_errors(const Comparison *self, double *of_mean, double *of_sd) {
  *of_mean = *of_sd = 0;
  for (int i = 0; i < self->d; i++) {
    double mean_x, sd_x, mean_y, sd_y;
    metric_coordinate_moments(self->x, i, &mean_x, &sd_x);
    metric_coordinate_moments(self->y, i, &mean_y, &sd_y);
    const double unit = sd_y > 0 ? sd_y : NAN;
    *of_mean = metric_larger(*of_mean, fabs(mean_x - mean_y) / unit);
    *of_sd = metric_larger(*of_sd, fabs(sd_x / unit - 1));
  }
}

Status measure_marginal_mean_error(const Comparison *self, double *out) {
  double of_sd;
  metric_marginal_errors(self, out, &of_sd);
  return STATUS_OK;
}

Status measure_marginal_sd_error(const Comparison *self, double *out) {
  double of_mean;
  metric_marginal_errors(self, &of_mean, out);
  return STATUS_OK;
}

/* Returns the variance of coordinate i of a cloud. */
static double metric_variance(const Cloud *x, size_t i) {
  const double *row = x->theta + i * (size_t)x->n;
  double sum = 0;
  for (int k = 0; k < x->n; k++) sum += (row[k] - x->mean[i]) * (row[k] - x->mean[i]);
  return sum / x->n;
}

/* Returns the trace of the covariance of a cloud. */
static double metric_trace(int d, const Cloud *x) {
  double sum = 0;
  for (size_t i = 0; i < (size_t)d; i++)
    sum += x->covariance ? x->covariance[i * (size_t)d + i] : metric_variance(x, i);
  return sum;
}

/* Measures sqrt(trace cov(x) / trace cov(y)): below 1, draws are under-dispersed. NAN if y does not vary. */
Status measure_sd_ratio(const Comparison *self, double *out) {
  const double of_x = metric_trace(self->d, self->x), of_y = metric_trace(self->d, self->y);
  *out = of_y > 0 ? sqrt(of_x / of_y) : NAN;
  return STATUS_OK;
}

/* Measures the total variation, 1/2 sum_c |p_c - q_c|, between the fractions of x and y in each mode. */
Status measure_mode_weight_error(const Comparison *self, double *out) {
  const int modes = metric_modes(self);
  double *of_x = self->work, *of_y = of_x + modes, *rest = of_y + modes;
  TRY(metric_cloud_fractions(self, self->x, rest, of_x));
  TRY(metric_cloud_fractions(self, self->y, rest, of_y));
  *out = metric_total_variation(modes, of_x, of_y);
  return STATUS_OK;
}

Status measure_largest_mode(const Comparison *self, double *out) {
  const int modes = metric_modes(self);
  TRY(metric_cloud_fractions(self, self->y, self->work + modes, self->work));
  *out = metric_largest(modes, self->work);
  return STATUS_OK;
}

Status measure_mean_error(const Comparison *self, double *out) {
  *out = metric_mean_error(self->d, self->x->mean, self->y->mean);
  return STATUS_OK;
}

/* Creates the points minus their mean, [d, n]. */
static Status metric_centre(Arena *memory, int d, const Cloud *x, double **out) {
  const size_t n = (size_t)x->n;
  ALLOCATE(memory, *out, (size_t)d * n);
  for (size_t i = 0; i < (size_t)d; i++)
    for (size_t k = 0; k < n; k++) (*out)[i * n + k] = x->theta[i * n + k] - x->mean[i];
  return STATUS_OK;
}

/* Computes the inner product of the covariances of centred x[d, n] and y[d, m], |x' y|^2 / (n m). */
static Status metric_covariance_product(int d, int n, const double *x, int m, const double *y, double *out) {
  SCRATCH_ARENA(scratch);
  const size_t elements = (size_t)n * (size_t)m;
  double *product;
  ALLOCATE(&scratch, product, elements);
  cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, m, d, 1, x, n, y, m, 0, product, m);
  const double length = cblas_dnrm2((int)elements, product, 1);
  *out = length / n * (length / m);
  return STATUS_OK;
}

/* Measures the error of the covariance from products of the points. */
static Status metric_covariance_error_of_points(const Comparison *self, double *out) {
  SCRATCH_ARENA(scratch);
  const int d = self->d, n = self->x->n, m = self->y->n;
  double *x, *y, of_x, of_y, of_both;
  TRY(metric_centre(&scratch, d, self->x, &x));
  TRY(metric_centre(&scratch, d, self->y, &y));
  TRY(metric_covariance_product(d, n, x, n, x, &of_x));
  TRY(metric_covariance_product(d, m, y, m, y, &of_y));
  TRY(metric_covariance_product(d, n, x, m, y, &of_both));
  *out = of_y > 0 ? sqrt(fmax(of_x - 2 * of_both + of_y, 0) / of_y) : NAN;
  return STATUS_OK;
}

/* Measures |cov(x) - cov(y)| / |cov(y)|, Frobenius norms. NAN if y does not vary. */
Status measure_covariance_error(const Comparison *self, double *out) {
  if (!self->x->covariance || !self->y->covariance) return metric_covariance_error_of_points(self, out);
  const size_t elements = (size_t)self->d * (size_t)self->d;
  const double *x = self->x->covariance, *y = self->y->covariance;
  double squares = 0;
  for (size_t k = 0; k < elements; k++) squares += y[k] * y[k];
  *out = squares > 0 ? metric_strided_distance(elements, x, 1, y, 1) / sqrt(squares) : NAN;
  return STATUS_OK;
}

Status measure_distance(const Comparison *self, double *out) {
  *out = metric_distance(self->d, self->x->n, self->x->theta, self->truth);
  return STATUS_OK;
}

/* Measures the rank along a random direction: in any direction ranks are uniform if the draws are exact. */
Status measure_rank(const Comparison *self, double *out) {
  Rng rng = self->directions;
  rng_normal(&rng, self->d, self->work);
  *out = metric_rank(self->d, self->x->n, self->x->theta, self->truth, self->work);
  return STATUS_OK;
}

Status measure_rank_norm(const Comparison *self, double *out) {
  double truth;
  metric_norms(self->d, 1, self->truth, &truth);
  metric_norms(self->d, self->x->n, self->x->theta, self->work);
  *out = metric_below(self->x->n, self->work, truth);
  return STATUS_OK;
}

Status measure_rank_log_likelihood(const Comparison *self, double *out) {
  double truth, *of_draws = self->work;
  metric_log_likelihoods(self, self->x, of_draws, &truth);
  *out = metric_below(self->x->n, of_draws, truth);
  return STATUS_OK;
}
