#include "model/logs/logs_points.h"

#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "core/linalg/linalg_factor.h"
#include "core/linalg/linalg_lanes.h"
#include "model/history/history_passes.h"

#include <math.h>
#include <string.h>

/* Fractions of the evidence in the Gaussians that points are drawn from. */
static const double FRACTION[POINTS_STEPS] = {1, 0.5, 0.125, 0};
/* Effective number of points that moments are taken from; with fewer, those of the approximation are kept. */
static const double ENOUGH = 8;
/* Least variance of points, relative to the least of the approximation, that is believed. */
static const double NARROWEST = 0.25;
/* Precision of the evidence, relative to the prior's, that counts as none. */
static const double UNTOUCHED = 1e-9;

/* Fills node with the middles of equally probable parts of a normal distribution, by Newton's method from the
 * side on which it cannot overshoot. */
static void points_fill_nodes(double *node) {
  enum { STEPS = 60 };
  double square = 0;
  for (int k = 0; k < POINTS_NODES; k++) {
    const double wanted = (k + 0.5) / POINTS_NODES;
    double x = 0;
    for (int step = 0; step < STEPS; step++)
      x += (wanted - 0.5 * erfc(-x / M_SQRT2)) * sqrt(2 * M_PI) * exp(0.5 * x * x);
    node[k] = x;
    square += x * x / POINTS_NODES;
  }
  for (int k = 0; k < POINTS_NODES; k++) node[k] /= sqrt(square);
}

Status logs_points_create(Arena *memory, int d, int lanes, LogsPoints *out) {
  const size_t vector = (size_t)d * (size_t)lanes, matrix = (size_t)d * vector;
  *out = (LogsPoints){.d = d, .lanes = lanes};
  points_fill_nodes(out->node);
  ALLOCATE_ARRAYS(memory, matrix, &out->matrix, &out->basis, &out->map, &out->axes);
  ALLOCATE_ARRAYS(memory, vector, &out->centre, &out->turned, &out->precision, &out->vector, &out->variance);
  ALLOCATE_ARRAYS(memory, d * d, &out->inverse, &out->rows);
  ALLOCATE_ARRAYS(memory, vector * POINTS, &out->v, &out->z);
  ALLOCATE_ARRAYS(memory, (size_t)lanes * POINTS, &out->share, &out->own_share, &out->log_likelihood);
  ALLOCATE(memory, out->enough, lanes);
  ALLOCATE(memory, out->trust, lanes);
  return STATUS_OK;
}

/* ---- coordinates */

/* Computes matrix = L' Lambda L and vector = L' (b - Lambda m) of one lane; map is scratch. */
static void points_whiten_lane(LogsPoints *self, int n, const double *root, EvidenceLanes evidence) {
  const int d = self->d, N = self->lanes;
  const double *precision = evidence.precision, *vector = evidence.vector;
  for (int k = 0; k < d; k++) {
    double rest = vector[k * N + n];
    for (int j = 0; j < d; j++) {
      double sum = 0;
      for (int l = j; l < d; l++) sum += precision[(k * d + l) * N + n] * root[(l * d + j) * N + n];
      self->map[(k * d + j) * N + n] = sum;
      rest -= precision[(k * d + j) * N + n] * self->centre[j * N + n];
    }
    self->turned[k * N + n] = rest;
  }
  for (int i = 0; i < d; i++) {
    double pull = 0;
    for (int k = i; k < d; k++) pull += root[(k * d + i) * N + n] * self->turned[k * N + n];
    self->vector[i * N + n] = pull;
    for (int j = 0; j <= i; j++) {
      double sum = 0;
      for (int k = i; k < d; k++) sum += root[(k * d + i) * N + n] * self->map[(k * d + j) * N + n];
      self->matrix[(i * d + j) * N + n] = self->matrix[(j * d + i) * N + n] = sum;
    }
  }
}

/* Computes map = L Q of one lane. */
static void points_map_lane(LogsPoints *self, int n, const double *root) {
  const int d = self->d, N = self->lanes;
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++) {
      double sum = 0;
      for (int k = 0; k <= i; k++) sum += root[(i * d + k) * N + n] * self->basis[(k * d + j) * N + n];
      self->map[(i * d + j) * N + n] = sum;
    }
}

/* Finds the coordinates of all lanes, and the evidence in them: precision[d, N] >= 0, and vector[d, N]. */
static void points_find_coordinates(LogsPoints *self, const double *root, EvidenceLanes evidence) {
  const int d = self->d, N = self->lanes;
  for (int n = 0; n < N; n++) points_whiten_lane(self, n, root, evidence);
  linalg_factor_eigen(d, N, self->matrix, self->basis, self->precision);
  linalg_lanes_multiply_transposed(d, N, self->basis, self->vector, self->turned);
  for (int n = 0; n < N; n++) points_map_lane(self, n, root);
  for (int i = 0; i < d * N; i++) {
    const bool touched = self->precision[i] > UNTOUCHED;
    self->vector[i] = touched ? self->turned[i] : 0;
    if (!touched) self->precision[i] = 0;
  }
}

static double *points_row(const LogsPoints *self, double *points, int i, int n) {
  return points + ((size_t)n * (size_t)self->d + (size_t)i) * POINTS;
}

/* ---- points and weights */

/* Draws the points of one lane, in v: a Latin hypercube for each fraction. */
static void points_draw_lane(LogsPoints *self, int n, Rng stream) {
  const int N = self->lanes, within = POINTS_NODES / POINTS_EACH;
  for (int i = 0; i < self->d; i++) {
    const double precision = self->precision[i * N + n], vector = self->vector[i * N + n];
    double *v = points_row(self, self->v, i, n);
    for (int step = 0; step < POINTS_STEPS; step++) {
      const double whole = 1 + FRACTION[step] * precision, centre = FRACTION[step] * vector / whole;
      int order[POINTS_EACH];
      double place[POINTS_EACH];
      rng_permutation(&stream, POINTS_EACH, order);
      rng_uniform(&stream, POINTS_EACH, place);
      for (int k = 0; k < POINTS_EACH; k++)
        v[step * POINTS_EACH + k] =
            centre + self->node[order[k] * within + (int)(place[k] * within)] / sqrt(whole);
    }
  }
}

/* Sets share[POINTS] of one lane to the logarithm of the prior minus that of the mean density of the
 * Gaussians, and own_share to that of the approximation minus the same. */
SIMD_CLONES
static void points_weigh_lane(LogsPoints *self, int n) {
  const int N = self->lanes;
  double part[POINTS_STEPS][POINTS], prior[POINTS], highest[POINTS], total[POINTS];
  double *share = self->share + (size_t)n * POINTS, *own = self->own_share + (size_t)n * POINTS;
  memset(part, 0, sizeof part);
  memset(prior, 0, sizeof prior);
  for (int i = 0; i < self->d; i++) {
    const double precision = self->precision[i * N + n], vector = self->vector[i * N + n];
    const double *v = points_row(self, self->v, i, n);
    for (int j = 0; j < POINTS; j++) prior[j] -= 0.5 * v[j] * v[j];
    for (int step = 0; step < POINTS_STEPS; step++) {
      const double whole = 1 + FRACTION[step] * precision, centre = FRACTION[step] * vector / whole,
                   log_norm = 0.5 * log(whole);
      for (int j = 0; j < POINTS; j++)
        part[step][j] += log_norm - 0.5 * whole * (v[j] - centre) * (v[j] - centre);
    }
  }
  for (int j = 0; j < POINTS; j++) {
    double top = part[0][j], sum = 0;
    for (int step = 1; step < POINTS_STEPS; step++) top = part[step][j] > top ? part[step][j] : top;
    for (int step = 0; step < POINTS_STEPS; step++) sum += special_exp(part[step][j] - top);
    highest[j] = top;
    total[j] = sum / POINTS_STEPS;
  }
  for (int j = 0; j < POINTS; j++) {
    const double mean = highest[j] + log(total[j]);
    share[j] = prior[j] - mean;
    own[j] = part[0][j] - mean;
  }
}

/* Computes the points of a lane in z. */
static void points_place_lane(LogsPoints *self, int n) {
  const int d = self->d, N = self->lanes;
  for (int i = 0; i < d; i++) {
    double *z = points_row(self, self->z, i, n);
    for (int j = 0; j < POINTS; j++) z[j] = self->centre[i * N + n];
    for (int k = 0; k < d; k++) {
      const double factor = self->map[(i * d + k) * N + n], *v = points_row(self, self->v, k, n);
      for (int j = 0; j < POINTS; j++) z[j] += factor * v[j];
    }
  }
}

/* Replaces the logarithms weight[POINTS] by weights of sum 1; returns the logarithm of their mean. */
SIMD_CLONES
static double points_normalise(double *weight) {
  double top = -INFINITY, sum = 0;
  for (int j = 0; j < POINTS; j++) top = weight[j] > top ? weight[j] : top;
  for (int j = 0; j < POINTS; j++) weight[j] = special_exp(weight[j] - top);
  for (int j = 0; j < POINTS; j++) sum += weight[j];
  for (int j = 0; j < POINTS; j++) weight[j] /= sum;
  return top + log(sum / POINTS);
}

/* Turns the logarithms of a lane into weights, and replaces its log mass if enough points have weight. The
 * approximation, whose mass and moments are known, is a control variate, by the squared correlation of its
 * weights with those of the posterior. */
static void points_settle_lane(LogsPoints *self, int n, double *log_mass) {
  double *share = self->share + (size_t)n * POINTS, *own = self->own_share + (size_t)n * POINTS;
  const double *log_likelihood = self->log_likelihood + (size_t)n * POINTS, mean = 1.0 / POINTS;
  double square = 0, both = 0, own_square = 0;
  for (int j = 0; j < POINTS; j++) share[j] += log_likelihood[j];
  const double mass = points_normalise(share), own_mass = points_normalise(own);
  for (int j = 0; j < POINTS; j++) {
    square += (share[j] - mean) * (share[j] - mean);
    both += (share[j] - mean) * (own[j] - mean);
    own_square += (own[j] - mean) * (own[j] - mean);
  }
  self->enough[n] = ENOUGH * (square + mean) <= 1; /* false for NaN */
  self->trust[n] = both > 0 ? both * both / (square * own_square) : 0;
  if (self->enough[n]) *log_mass = mass - self->trust[n] * own_mass;
}

/* ---- what they tell */

/* Computes the mean of v_i; the prior's if there is no evidence on it. */
static double points_mean(const LogsPoints *self, int i, int n) {
  const double trust = self->trust[n];
  const double *share = self->share + (size_t)n * POINTS, *own = self->own_share + (size_t)n * POINTS,
               *v = points_row(self, self->v, i, n), precision = self->precision[i * self->lanes + n];
  double sum = trust * self->vector[i * self->lanes + n] / (1 + precision);
  for (int j = 0; j < POINTS; j++) sum += (share[j] - trust * own[j]) * v[j];
  return precision > 0 ? sum : 0;
}

/* Computes the covariance of v_i and v_k, where mean[d, N] has their means. */
static double points_covariance(const LogsPoints *self, int i, int k, int n) {
  const double trust = self->trust[n];
  const int N = self->lanes;
  const double *share = self->share + (size_t)n * POINTS, *own = self->own_share + (size_t)n * POINTS,
               *v = points_row(self, self->v, i, n), *u = points_row(self, self->v, k, n);
  const double whole = 1 + self->precision[i * N + n], other = 1 + self->precision[k * N + n],
               v_mean = self->turned[i * N + n], u_mean = self->turned[k * N + n],
               gap = self->vector[i * N + n] / whole - v_mean,
               u_gap = self->vector[k * N + n] / other - u_mean;
  double sum = trust * (gap * u_gap + (i == k ? 1 / whole : 0));
  if (whole == 1 || other == 1) return i == k;
  for (int j = 0; j < POINTS; j++) sum += (share[j] - trust * own[j]) * (v[j] - v_mean) * (u[j] - u_mean);
  return sum;
}

/* Computes turned and matrix, mean and covariance of v in lane n. */
static void points_find_moments(LogsPoints *self, int n) {
  const int d = self->d, N = self->lanes;
  for (int i = 0; i < d; i++) self->turned[i * N + n] = points_mean(self, i, n);
  for (int i = 0; i < d; i++)
    for (int k = 0; k <= i; k++)
      self->matrix[(i * d + k) * N + n] = self->matrix[(k * d + i) * N + n] =
          points_covariance(self, i, k, n);
}

/* Computes rows[d, d] = U' (L Q)^-1 of one lane, where U are the axes of the covariance of v. */
static void points_find_rows(LogsPoints *self, int n, const double *root) {
  const int d = self->d, N = self->lanes;
  for (int i = 0; i < d * d; i++) self->inverse[i] = root[i * N + n];
  linalg_invert_triangle(d, self->inverse);
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++) {
      double sum = 0;
      for (int k = j; k < d; k++) {
        double turned = 0; /* (Q U)_ki */
        for (int l = 0; l < d; l++)
          turned += self->basis[(k * d + l) * N + n] * self->axes[(l * d + i) * N + n];
        sum += turned * self->inverse[k * d + j];
      }
      self->rows[i * d + j] = sum;
    }
}

/* Replaces the evidence of one lane by that which gives v its mean and, along the axes, its variances. */
static void points_replace_lane(LogsPoints *self, int n, RootLanes prior, EvidenceLanes evidence) {
  const int d = self->d, N = self->lanes;
  points_find_rows(self, n, prior.root);
  for (int i = 0; i < d; i++) evidence.vector[i * N + n] = 0;
  for (int i = 0; i < d * d; i++) evidence.precision[i * N + n] = 0;
  for (int axis = 0; axis < d; axis++) {
    const double *row = self->rows + axis * d, whole = 1 / fmin(self->variance[axis * N + n], 1);
    double pull = 0, centre = 0;
    for (int i = 0; i < d; i++) {
      pull += whole * self->axes[(i * d + axis) * N + n] * self->turned[i * N + n];
      centre += row[i] * self->centre[i * N + n];
    }
    for (int i = 0; i < d; i++) {
      evidence.vector[i * N + n] += row[i] * (pull + (whole - 1) * centre);
      for (int j = 0; j < d; j++) evidence.precision[(i * d + j) * N + n] += (whole - 1) * row[i] * row[j];
    }
  }
}

/* Returns whether no variance of v is less than a share of the approximation's least, which only too few
 * points would say. */
static bool points_are_wide(const LogsPoints *self, int n) {
  double largest = 0, least = INFINITY;
  for (int i = n; i < self->d * self->lanes; i += self->lanes) {
    largest = fmax(largest, self->precision[i]);
    least = fmin(least, self->variance[i]);
  }
  return least * (1 + largest) > NARROWEST;
}

static void points_replace_evidence(LogsPoints *self, RootLanes prior, EvidenceLanes evidence) {
  const int d = self->d, N = self->lanes;
  memset(self->matrix, 0, (size_t)(d * d * N) * sizeof *self->matrix);
  for (int n = 0; n < N; n++)
    if (self->enough[n]) points_find_moments(self, n);
  linalg_factor_eigen(d, N, self->matrix, self->axes, self->variance);
  for (int n = 0; n < N; n++) {
    self->enough[n] = self->enough[n] && points_are_wide(self, n);
    if (self->enough[n]) points_replace_lane(self, n, prior, evidence);
  }
}

/* ---- all lanes */

/* Draws and weighs the points of one lane, and replaces its log mass. */
static void points_try_lane(LogsPoints *self, const HistoryView *view, int n, Rng stream, double *log_mass) {
  const HistoryView in_theta = history_points(view->history, view->first + n, POINTS),
                    points = history_view_in(in_theta, view->shift, view->scale);
  stream.round += (uint32_t)n;
  points_draw_lane(self, n, stream);
  points_weigh_lane(self, n);
  points_place_lane(self, n);
  history_log_likelihood(&points, points_row(self, self->z, 0, n), self->log_likelihood + (size_t)n * POINTS,
                         NULL);
  points_settle_lane(self, n, log_mass);
}

void logs_points_weigh(LogsPoints *self, const HistoryView *view, RootLanes prior, EvidenceLanes evidence,
                       const bool *wanted, Rng stream, double *log_mass) {
  bool any = false;
  ASSERT(view->draws == 1 && view->lanes == self->lanes);
  memset(self->enough, 0, (size_t)self->lanes * sizeof *self->enough);
  for (int n = 0; n < self->lanes; n++) any = any || wanted[n];
  if (!any) return;
  memcpy(self->centre, prior.mean, (size_t)(self->d * self->lanes) * sizeof *prior.mean);
  points_find_coordinates(self, prior.root, evidence);
  for (int n = 0; n < self->lanes; n++)
    if (wanted[n]) points_try_lane(self, view, n, stream, &log_mass[n]);
  points_replace_evidence(self, prior, evidence);
}

void logs_points_pick(const LogsPoints *self, int lane, double uniform, double *z) {
  if (!self->enough[lane]) return;
  const int j = lanes_pick(POINTS, 1, self->share + (size_t)lane * POINTS, uniform);
  for (int i = 0; i < self->d; i++) z[i * self->lanes + lane] = points_row(self, self->z, i, lane)[j];
}
