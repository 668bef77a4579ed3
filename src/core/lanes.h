/* Arrays x[rows, lanes] with the lane last: copies, sums, and exponentials of logarithms. */
#pragma once

#include "core/special.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Copies columns lane[count] of from[rows, lanes] to to[rows, count]. */
void lanes_gather(int rows, int lanes, int count, const int *lane, const double *from, double *to);
/* Copies from[rows, count] to columns lane[count] of to[rows, lanes]. */
void lanes_scatter(int rows, int lanes, int count, const int *lane, const double *from, double *to);
/* Copies from[rows] to every lane of to[rows, lanes]. */
void lanes_repeat(int rows, int lanes, const double *from, double *to);
/* Copies the first `count` lanes of each row to an array with another number of lanes. Inline, because
 * calling memcpy for a single lane costs more than drawing a small vector. */
INLINE void lanes_copy(int rows, int count, const double *from, int from_lanes, double *to, int to_lanes) {
  for (int i = 0; i < rows; i++)
    memcpy(to + (ptrdiff_t)i * to_lanes, from + (ptrdiff_t)i * from_lanes, (size_t)count * sizeof *to);
}
/* Computes to[n] += factor from[n]; the arrays must not overlap. */
void lanes_add(size_t n, double factor, const double *from, double *to);
/* Computes out[n] = a[n] + b[n]; the arrays must not overlap. */
void lanes_sum(size_t n, const double *a, const double *b, double *out);
/* Returns the index that a uniform number falls on, given weights of sum 1 at weight[0], weight[stride], ...
 */
int lanes_pick(int count, int stride, const double *weight, double uniform);
/* Replaces logarithms x[rows, lanes] by exp(x - top), where top[lanes] is the largest of each lane;
 * total[lanes] gets the sums. */
void lanes_exponentiate(int rows, int lanes, double *x, double *top, double *total);
/* Adds one more weight per lane, given by its logarithm, to running sums relative to exp(top): total[lanes]
 * becomes old_share total + share. `first` starts the sums. */
INLINE void lanes_join(bool first, int lanes, const double *restrict log_weight, double *restrict top,
                       double *restrict total, double *restrict old_share, double *restrict share) {
  if (first) {
    for (int n = 0; n < lanes; n++) {
      top[n] = log_weight[n];
      total[n] = 1;
      share[n] = 1;
      old_share[n] = 0;
    }
    return;
  }
  for (int n = 0; n < lanes; n++) {
    const double rise = log_weight[n] - top[n], ratio = special_exp(rise > 0 ? -rise : rise);
    old_share[n] = rise > 0 ? ratio : 1;
    share[n] = rise > 0 ? 1 : ratio;
    top[n] = rise > 0 ? log_weight[n] : top[n];
    total[n] = old_share[n] * total[n] + share[n];
  }
}
