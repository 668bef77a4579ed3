/* The costs and the certificate. Lengths are scaled by a power of two, so that neither squares nor their
 * roots leave the range of doubles. */
#include "metric/emd.h"

#include "core/simd.h"
#include "metric/assignment.h"

#include <math.h>

struct Emd {
  int most;
  double *cost; /* [n, stride] */
  double *v; /* [stride], dual variables of the points y */
  int *column_of; /* [n] */
  Assignment *assignment;
};

Status emd_create(Arena *memory, int most_points, Emd **out) {
  ASSERT(most_points >= 1);
  const size_t stride = (size_t)assignment_stride(most_points);
  Emd *emd;
  ALLOCATE(memory, emd, 1);
  emd->most = most_points;
  ALLOCATE(memory, emd->cost, (size_t)most_points * stride);
  ALLOCATE(memory, emd->v, stride);
  ALLOCATE(memory, emd->column_of, most_points);
  *out = emd;
  return assignment_create(memory, most_points, &emd->assignment);
}

/* Returns the largest extent of both clouds along a coordinate; NAN or INFINITY if a point is not finite. */
static double emd_cloud_extent(const Clouds *clouds) {
  const size_t n = (size_t)clouds->n, m = (size_t)clouds->m;
  double largest = 0;
  for (size_t k = 0; k < (size_t)clouds->d; k++) {
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < n + m; i++) {
      const double value = i < n ? clouds->x[k * n + i] : clouds->y[k * m + i - n];
      if (!isfinite(value)) return NAN;
      low = value < low ? value : low;
      high = value > high ? value : high;
    }
    largest = fmax(largest, high / 2 - low / 2);
  }
  return 2 * largest;
}

/* Computes cost[count, stride] = scale |x_i - y_j| for the first points of both clouds, padded with
 * INFINITY. */
SIMD_CLONES
static void emd_fill_costs(const Clouds *clouds, int count, double scale, double *restrict cost) {
  const int d = clouds->d, n = clouds->n, m = clouds->m, stride = assignment_stride(count);
  const double *restrict x = clouds->x;
  const double *restrict y = clouds->y;
  for (int i = 0; i < count; i++) {
    double *restrict row = cost + (size_t)i * (size_t)stride;
    for (int j = 0; j < stride; j++) row[j] = j < count ? 0 : INFINITY;
    for (int k = 0; k < d; k++) {
      const double *restrict b = y + (size_t)k * (size_t)m;
      double a = x[(size_t)k * (size_t)n + (size_t)i];
      for (int j = 0; j < count; j++) {
        double difference = scale * (a - b[j]);
        row[j] += difference * difference;
      }
    }
    for (int j = 0; j < count; j++) row[j] = sqrt(row[j]);
  }
}

/* Returns the dual objective at u_i = min_j c_ij - v_j, the best u for these v: feasible by construction, so
 * a lower bound on the distance for any v. */
static double emd_dual_bound(int n, const double *cost, const double *v) {
  const int stride = assignment_stride(n);
  double u = 0, sum = 0;
  for (int i = 0; i < n; i++) u += assignment_cost_least(stride, cost + (size_t)i * (size_t)stride, v);
  for (int j = 0; j < n; j++) sum += v[j];
  return (u + sum) / n;
}

Status emd_distance(Emd *emd, const Clouds *clouds, double *out) {
  const int d = clouds->d, n = clouds->n, m = clouds->m;
  ASSERT(d >= 1 && n >= 1 && n <= emd->most && m >= 1 && m <= emd->most);
  const int count = n < m ? n : m;
  const double length = emd_cloud_extent(clouds);
  if (!isfinite(length))
    return status_set(STATUS_INPUT,
                      "cannot compute a distance between points that are not finite or too far apart");
  *out = 0;
  if (length == 0) return STATUS_OK;
  const int exponent = ilogb(length);
  emd_fill_costs(clouds, count, ldexp(1, -exponent), emd->cost);
  assignment_solve(emd->assignment, count, emd->cost, emd->column_of, emd->v);
  double sum = 0;
  for (size_t i = 0; i < (size_t)count; i++)
    sum += emd->cost[i * (size_t)assignment_stride(count) + (size_t)emd->column_of[i]];
  const double mean = sum / count;
  /* Sums of n costs and of path lengths are rounded. The duals of far points are as large as the largest
   * cost, and coordinates differ by less than 2 here. */
  ASSERT(fabs(mean - emd_dual_bound(count, emd->cost, emd->v)) <= 1e-12 * 2 * sqrt(d));
  *out = ldexp(mean, exponent);
  return STATUS_OK;
}
