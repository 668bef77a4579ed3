/* Jonker and Volgenant's algorithm. Dual variables u, v keep every reduced cost c_ij - u_i - v_j >= 0, and
 * matched pairs have reduced cost 0; u need not be stored, as u_i is the least c_ij - v_j of its row.
 *
 *   1  dual variables v from an auction (metric/auction.h)
 *   2  augmenting row reduction: a free row takes its best column and lowers its v to the point where the
 *      second best is as good; the row it drove out is free and may be next
 *   3  for each row still free, a shortest path (Dijkstra, dense) to a free column, along which the matching
 *      is switched
 *
 * Without the auction, v of one cloud shifted by half a standard deviation against the other would be wrong
 * all over, and paths long: by the least of each column, as published, 2000 points take four times as long.
 *
 * All time goes into passes over rows of c, so each is one loop over LANES columns at a time. */
#include "metric/assignment.h"

#include "core/simd.h"
#include "metric/auction.h"
#include "metric/reduced.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { WIDTH = 8, UNROLLED = 2, LANES = WIDTH * UNROLLED, NONE = -1 };

struct Assignment {
  int n, stride;
  const double *cost; /* [n, stride] */
  int *column_of, *row_of; /* [n], NONE: free */
  double *v; /* [stride] */
  int *free_rows; /* [n] */
  /* Dijkstra: tentative distance of each column, INFINITY once it is closed; the row before it; v, but
   * -INFINITY once closed; the closed columns in order, and their distances. */
  double *distance, *open_v; /* [stride] */
  double *before; /* [stride], whole numbers */
  int *closed; /* [n] */
  double *closed_distance; /* [n] */
  Auction *auction;
};

Status assignment_create(Arena *memory, int most, Assignment **out) {
  ASSERT(most >= 1);
  Assignment *a;
  const int stride = reduced_stride(most);
  ALLOCATE(memory, a, 1);
  ALLOCATE_ARRAYS(memory, most, a->row_of, a->free_rows, a->closed, a->closed_distance);
  ALLOCATE_ARRAYS(memory, stride, a->v, a->distance, a->open_v, a->before);
  *out = a;
  return auction_create(memory, most, &a->auction);
}

static const double *row_of_costs(const Assignment *a, int i) {
  return a->cost + (size_t)i * (size_t)a->stride;
}

/* The compiler does not keep running minima and their places in registers by itself. */
typedef double Values __attribute__((vector_size(WIDTH * sizeof(double)), may_alias));
typedef int64_t Words __attribute__((vector_size(WIDTH * sizeof(int64_t)), may_alias));
#define SELECT(condition, yes, no)                                                                           \
  ((__typeof__(yes))(((Words)(yes) & (condition)) | ((Words)(no) & ~(condition))))
#define AT(array, j) (*(Values *)((array) + (j)))
#define CONST_AT(array, j) (*(const Values *)((array) + (j)))

/* LANES running minima and the blocks of columns they were met in. */
typedef struct {
  Values best[UNROLLED];
  Words where[UNROLLED];
} Minima;

static inline void minima_start(Minima *minima) {
  for (int k = 0; k < UNROLLED; k++) {
    minima->best[k] = (Values){0} + INFINITY;
    minima->where[k] = (Words){0};
  }
}

static inline ReducedLeast minima_least(const Minima *minima) {
  ReducedLeast least = {INFINITY, INFINITY, NONE};
  for (int k = 0; k < UNROLLED; k++) {
    for (int l = 0; l < WIDTH; l++) {
      double value = minima->best[k][l];
      int column = (int)minima->where[k][l] + k * WIDTH + l;
      bool better = value < least.value || (value == least.value && column < least.column);
      least.value = better ? value : least.value;
      least.column = better ? column : least.column;
    }
  }
  return least;
}

/* Relaxes every open column through `row`, whose costs are c, with h added; returns the closest open one. */
SIMD_CLONES
static ReducedLeast relax(int stride, const double *restrict c, const double *restrict open_v, double h,
                          double row, double *restrict distance, double *restrict before) {
  Minima minima;
  minima_start(&minima);
  for (int64_t j = 0; j < stride; j += LANES) {
    for (int k = 0; k < UNROLLED; k++) {
      int64_t at = j + k * WIDTH;
      Values through = CONST_AT(c, at) - CONST_AT(open_v, at) + h, old = AT(distance, at);
      Words shorter = through < old;
      Values now = SELECT(shorter, through, old);
      AT(before, at) = SELECT(shorter, (Values){0} + row, AT(before, at));
      AT(distance, at) = now;
      Words better = now < minima.best[k];
      minima.best[k] = SELECT(better, now, minima.best[k]);
      minima.where[k] = SELECT(better, (Words){0} + j, minima.where[k]);
    }
  }
  return minima_least(&minima);
}

static void match(Assignment *a, int row, int column) {
  a->column_of[row] = column;
  a->row_of[column] = row;
}

static void start_from_duals(Assignment *a) {
  auction_duals(a->auction, a->n, a->stride, a->cost, a->v);
  for (int j = 0; j < a->n; j++) a->column_of[j] = a->row_of[j] = NONE, a->free_rows[j] = j;
}

/* Passes once over the free rows; a row that was driven out while v fell is taken at once. Returns the
 * number of rows still free. */
static int reduce_rows(Assignment *a, int count) {
  int next = 0, left = 0, steps = 0;
  while (next < count) {
    int i = a->free_rows[next++];
    ReducedLeast least = reduced_two_least(a->stride, row_of_costs(a, i), a->v);
    int j = least.column, driven_out = a->row_of[j];
    double lower = a->v[j] - (least.second - least.value);
    bool falls = lower < a->v[j] && isfinite(lower);
    if (falls) a->v[j] = lower;
    if (driven_out != NONE && !falls) { /* a tie: leave it to the shortest paths */
      a->free_rows[left++] = i;
      continue;
    }
    match(a, i, j);
    if (driven_out == NONE) continue;
    a->column_of[driven_out] = NONE;
    /* Rounding could let two rows drive each other out for ever. */
    if (++steps < a->n)
      a->free_rows[--next] = driven_out;
    else
      a->free_rows[left++] = driven_out;
  }
  return left;
}

/* Switches the matching along the path that ends in `column`. */
static void switch_path(Assignment *a, int row, int column) {
  for (;;) {
    int i = (int)a->before[column], dropped = a->column_of[i];
    match(a, i, column);
    if (i == row) return;
    column = dropped;
  }
}

static void augment(Assignment *a, int row) {
  size_t bytes = (size_t)a->stride * sizeof(double);
  memcpy(a->open_v, a->v, bytes);
  for (int j = 0; j < a->stride; j++) a->distance[j] = INFINITY;
  ReducedLeast nearest = relax(a->stride, row_of_costs(a, row), a->open_v, 0, row, a->distance, a->before);
  int count = 0;
  while (a->row_of[nearest.column] != NONE) {
    int j = nearest.column, i = a->row_of[j];
    a->closed[count] = j;
    a->closed_distance[count++] = nearest.value;
    a->distance[j] = INFINITY;
    a->open_v[j] = -INFINITY;
    const double *c = row_of_costs(a, i);
    nearest = relax(a->stride, c, a->open_v, nearest.value - (c[j] - a->v[j]), i, a->distance, a->before);
  }
  for (int k = 0; k < count; k++) a->v[a->closed[k]] += a->closed_distance[k] - nearest.value;
  switch_path(a, row, nearest.column);
}

void assignment_solve(Assignment *a, int n, const double *cost, int *column_of, double *v) {
  a->n = n;
  a->stride = reduced_stride(n);
  a->cost = cost;
  a->column_of = column_of;
  start_from_duals(a);
  const int count = reduce_rows(a, n);
  for (int k = 0; k < count; k++) augment(a, a->free_rows[k]);
  memcpy(v, a->v, (size_t)n * sizeof *v);
}
