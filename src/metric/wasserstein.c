/* Points are projected and sorted, and their quantiles coupled, which is optimal in one dimension. */
#include "metric/wasserstein.h"

#include "core/simd.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { SLICES = WASSERSTEIN_SLICES };
static const int MOST_STEPS = 200;
static const double LEAST_STEP = 1e-8; /* an angle in radians; the error of W1 is quadratic in it */

typedef struct {
  double value; /* direction' point */
  int point;
} Projection;

struct Wasserstein {
  int most_dimension, most_points;
  double *slices, *sorted_x, *sorted_y; /* [d, SLICES]; [points, SLICES] */
  double *projected; /* [points] */
  Projection *x, *y, *merged; /* [points] */
  double *direction, *candidate, *gradient, *candidate_gradient; /* [d] */
};

Status wasserstein_create(Arena *memory, int most_dimension, int most_points, Wasserstein **out) {
  ASSERT(most_dimension >= 1 && most_points >= 1);
  Wasserstein *w;
  ALLOCATE(memory, w, 1);
  w->most_dimension = most_dimension;
  w->most_points = most_points;
  ALLOCATE(memory, w->slices, (size_t)most_dimension * SLICES);
  ALLOCATE_ARRAYS(memory, (size_t)most_points * SLICES, &w->sorted_x, &w->sorted_y);
  ALLOCATE(memory, w->projected, most_points);
  ALLOCATE_ARRAYS(memory, most_points, &w->x, &w->y, &w->merged);
  ALLOCATE_ARRAYS(memory, most_dimension, &w->direction, &w->candidate, &w->gradient, &w->candidate_gradient);
  *out = w;
  return STATUS_OK;
}

/* The optimal coupling of two sorted lists of n and m points in one dimension: a walk through both at once. A
 * point of the first carries m units of mass and one of the second n, so that all masses are whole; n m units
 * are 1.
 *
 *   for (Coupling at = wasserstein_coupling_begin(n, m); at.mass > 0; wasserstein_coupling_next(&at)) .. */
/* `mass` units go from point i to point j; 0 marks the end. */
typedef struct {
  int n, m, i, j, mass;
  int left_of_first, left_of_second;
} Coupling;

static Coupling wasserstein_coupling_begin(int n, int m) {
  return (Coupling){.n = n, .m = m, .mass = n < m ? n : m, .left_of_first = m, .left_of_second = n};
}

static void wasserstein_coupling_next(Coupling *at) {
  at->left_of_first -= at->mass;
  at->left_of_second -= at->mass;
  if (at->left_of_first == 0) {
    at->i++;
    at->left_of_first = at->i < at->n ? at->m : 0;
  }
  if (at->left_of_second == 0) {
    at->j++;
    at->left_of_second = at->n;
  }
  at->mass = at->left_of_first < at->left_of_second ? at->left_of_first : at->left_of_second;
}

/* ---- slices: projections on several directions at once, one direction per lane */

/* Computes out[n, SLICES] = x' direction of x[d, n] and direction[d, SLICES]. */
SIMD_CLONES
static void project_slices(int d, int n, const double *restrict x, const double *restrict direction,
                           double *restrict out) {
  for (size_t i = 0; i < (size_t)n * SLICES; i++) out[i] = 0;
  for (int k = 0; k < d; k++) {
    const double *restrict row = x + (size_t)k * (size_t)n;
    for (int i = 0; i < n; i++)
      for (int lane = 0; lane < SLICES; lane++)
        out[(size_t)i * SLICES + lane] += direction[k * SLICES + lane] * row[i];
  }
}

/* Puts the smaller of each pair first[i], second[i] into `first`, the larger into `second`; both have
 * `count`. */
static inline void sort_pairs(size_t count, double *restrict first, double *restrict second) {
  for (size_t i = 0; i < count; i++) {
    const double a = first[i], b = second[i];
    first[i] = a < b ? a : b;
    second[i] = a < b ? b : a;
  }
}

/* Sorts by merge exchange (Batcher 1968; Knuth, The Art of Computer Programming 3, Algorithm 5.2.2M). The
 * pairs of a pass are i and i + gap with (i & p) = r: every second run of p rows takes part. */
SIMD_CLONES
void wasserstein_sort_slices(int n, double *values) {
  int half = 1;
  while (2 * half < n) half *= 2;
  for (int p = half; p > 0; p /= 2)
    for (int q = half, r = 0, gap = p;; gap = q - p, q /= 2, r = p) {
      for (int i = r; i + gap < n; i += 2 * p) {
        const int rows = n - gap - i < p ? n - gap - i : p;
        sort_pairs((size_t)rows * SLICES, values + (size_t)i * SLICES, values + (size_t)(i + gap) * SLICES);
      }
      if (q == p) break;
    }
}

/* ---- one direction */

/* Computes out[n] = direction' x. */
SIMD_CLONES
static void project_cloud(int d, int n, const double *restrict x, const double *restrict direction,
                          double *restrict out) {
  for (int i = 0; i < n; i++) out[i] = 0;
  for (int k = 0; k < d; k++) {
    const double *restrict row = x + (size_t)k * (size_t)n;
    for (int i = 0; i < n; i++) out[i] += direction[k] * row[i];
  }
}

/* Sorts by merging: stable, so equal values stay in the order of their points. */
static void projections_sort(int n, Projection *list, Projection *merged) {
  for (int run = 1; run < n; run *= 2) {
    for (int first = 0; first < n; first += 2 * run) {
      int middle = first + run < n ? first + run : n, end = first + 2 * run < n ? first + 2 * run : n;
      for (int i = first, j = middle, k = first; k < end; k++) {
        bool left = j >= end || (i < middle && list[i].value <= list[j].value);
        merged[k] = left ? list[i++] : list[j++];
      }
    }
    memcpy(list, merged, (size_t)n * sizeof *list);
  }
}

static void project_and_sort(Wasserstein *w, int d, int n, const double *x, const double *direction,
                             Projection *out) {
  project_cloud(d, n, x, direction, w->projected);
  for (int i = 0; i < n; i++) out[i] = (Projection){w->projected[i], i};
  projections_sort(n, out, w->merged);
}

/* Computes W1 along `direction`, and its gradient[d] with respect to the direction. */
static double wasserstein_along_direction(Wasserstein *w, const Clouds *clouds, const double *direction,
                                          double *gradient) {
  const int d = clouds->d, n = clouds->n, m = clouds->m;
  double sum = 0, units = (double)n * m;
  project_and_sort(w, d, n, clouds->x, direction, w->x);
  project_and_sort(w, d, m, clouds->y, direction, w->y);
  for (int k = 0; k < d; k++) gradient[k] = 0;
  for (Coupling at = wasserstein_coupling_begin(n, m); at.mass > 0; wasserstein_coupling_next(&at)) {
    const Projection x = w->x[at.i], y = w->y[at.j];
    const double difference = x.value - y.value, share = at.mass / units;
    sum += share * fabs(difference);
    for (int k = 0; k < d; k++)
      gradient[k] += (difference > 0 ? share : -share) * (clouds->x[(size_t)k * (size_t)n + (size_t)x.point] -
                                                          clouds->y[(size_t)k * (size_t)m + (size_t)y.point]);
  }
  return sum;
}

static double wasserstein_direction_norm(int d, const double *vector) {
  double squares = 0;
  for (int k = 0; k < d; k++) squares += vector[k] * vector[k];
  return sqrt(squares);
}

/* Returns the mean of W1 along `directions` directions of the stream, SLICES at a time. Writes the largest W1
 * to *largest, and its direction to best[d]. */
static double wasserstein_mean_of_slices(Wasserstein *w, const Clouds *clouds, int directions, Rng rng,
                                         double *largest, double *best) {
  const int d = clouds->d, n = clouds->n, m = clouds->m;
  const double units = (double)n * m;
  double sum = 0, values[SLICES];
  ASSERT(d <= w->most_dimension && n <= w->most_points && m <= w->most_points && directions >= 1);
  *largest = -1;
  for (int s = 0; s < directions; s += SLICES) {
    const int lanes = directions - s < SLICES ? directions - s : SLICES;
    memset(w->slices, 0, (size_t)d * SLICES * sizeof *w->slices);
    for (int lane = 0; lane < lanes; lane++) {
      rng_normal(&rng, d, w->direction);
      const double length = wasserstein_direction_norm(d, w->direction);
      for (int k = 0; k < d; k++) w->slices[k * SLICES + lane] = w->direction[k] / length;
    }
    project_slices(d, n, clouds->x, w->slices, w->sorted_x);
    project_slices(d, m, clouds->y, w->slices, w->sorted_y);
    wasserstein_sort_slices(n, w->sorted_x);
    wasserstein_sort_slices(m, w->sorted_y);
    memset(values, 0, sizeof values);
    for (Coupling at = wasserstein_coupling_begin(n, m); at.mass > 0; wasserstein_coupling_next(&at)) {
      const double share = at.mass / units, *of_x = w->sorted_x + (size_t)at.i * SLICES,
                   *of_y = w->sorted_y + (size_t)at.j * SLICES;
      for (int lane = 0; lane < SLICES; lane++) values[lane] += share * fabs(of_x[lane] - of_y[lane]);
    }
    for (int lane = 0; lane < lanes; lane++) {
      sum += values[lane];
      if (values[lane] <= *largest) continue;
      *largest = values[lane];
      for (int k = 0; k < d; k++) best[k] = w->slices[k * SLICES + lane];
    }
  }
  return sum / directions;
}

double wasserstein_sliced(Wasserstein *w, const Clouds *clouds, int directions, Rng rng) {
  double largest;
  return wasserstein_mean_of_slices(w, clouds, directions, rng, &largest, w->candidate);
}

/* Climbs from w->direction, where W1 is `value`; returns the W1 that is reached. A step turns the direction
 * by about `step` radians towards the part of the gradient that is tangent to the sphere; there is none at a
 * stationary point. */
static double wasserstein_climb_direction(Wasserstein *w, const Clouds *clouds, double value) {
  const int d = clouds->d;
  const size_t bytes = (size_t)d * sizeof(double);
  double step = 0.5, *candidate = w->candidate;
  wasserstein_along_direction(w, clouds, w->direction, w->gradient);
  for (int k = 0; k < MOST_STEPS && step > LEAST_STEP; k++) {
    double radial = 0;
    for (int i = 0; i < d; i++) radial += w->gradient[i] * w->direction[i];
    for (int i = 0; i < d; i++) candidate[i] = w->gradient[i] - radial * w->direction[i];
    const double tangent = wasserstein_direction_norm(d, candidate);
    if (tangent <= 1e-14 * wasserstein_direction_norm(d, w->gradient)) break;
    for (int i = 0; i < d; i++) candidate[i] = w->direction[i] + step / tangent * candidate[i];
    const double length = wasserstein_direction_norm(d, candidate);
    for (int i = 0; i < d; i++) candidate[i] /= length;
    const double reached = wasserstein_along_direction(w, clouds, candidate, w->candidate_gradient);
    if (reached <= value) {
      step /= 2;
      continue;
    }
    value = reached;
    memcpy(w->direction, candidate, bytes);
    memcpy(w->gradient, w->candidate_gradient, bytes);
  }
  return value;
}

double wasserstein_max_sliced(Wasserstein *w, const Clouds *clouds, int directions, Rng rng) {
  double largest;
  wasserstein_mean_of_slices(w, clouds, directions, rng, &largest, w->candidate);
  memcpy(w->direction, w->candidate, (size_t)clouds->d * sizeof *w->direction);
  return wasserstein_climb_direction(w, clouds, largest);
}
