/* Rows bid for columns: a free row takes the column where c_ij - v_j is least and lowers that v_j until the
 * second best is as good, and by epsilon more; the row that it drove out is free and bids next. With a large
 * epsilon prices go quickly to about where they belong, with a small one to the place; so epsilon falls from
 * phase to phase, and every phase starts with all rows free, at the prices of the one before.
 *
 * Costs are taken relative to the least of their column and then of their row, so that clouds far from each
 * other lose nothing, and rounded to COST_BITS bits: whole numbers have least values that do not depend on
 * the order of comparisons, and half of the memory, which is where the time goes. */
#include "metric/auction.h"

#include "core/memory.h"
#include "core/simd.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum {
  WIDTH = 16,
  UNROLLED = 2,
  COST_BITS = 24, /* a phase lowers v by at most twice the largest cost */
  MOST_PHASES = 16,
  PADDING = 1 << 30,
  SHRINK = 5, /* of epsilon */
  MOST_BIDS = 200, /* for each row, after which v is what it is; 10 to 70 are usual */
  NONE = -1
};
static const double FIRST = 0.1; /* epsilon, of the mean cost */
static const double LAST = 0.03; /* epsilon, of the mean cost by n */

struct Auction {
  int32_t *cost; /* [n, stride] */
  int32_t *v; /* [stride] */
  double *least; /* [stride] of each column */
  double *least_of_row; /* [n] */
  int *row_of; /* [n] */
  int *free_rows; /* [n], a stack */
};

static size_t padded(int n) { return ((size_t)n + AUCTION_LANES - 1) / AUCTION_LANES * AUCTION_LANES; }

Status auction_create(int most, Auction **out) {
  *out = NULL;
  Auction *a;
  NEW(a, 1);
  *out = a;
  NEW(a->cost, (size_t)most * padded(most));
  NEW(a->v, padded(most));
  NEW(a->least, padded(most));
  NEW(a->least_of_row, most);
  NEW(a->row_of, most);
  NEW(a->free_rows, most);
  return STATUS_OK;
}

void auction_destroy(Auction *a) {
  if (!a) return;
  void *blocks[] = {a->cost, a->v, a->least, a->least_of_row, a->row_of, a->free_rows};
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
  free(a);
}

/* ---- costs */

SIMD_CLONES
static void lower(int n, const double *restrict c, double *restrict least) {
  for (int j = 0; j < n; j++) least[j] = c[j] < least[j] ? c[j] : least[j];
}

/* Least and largest of c_j - least_j. */
SIMD_CLONES
static void row_range(int n, const double *restrict c, const double *restrict least, double *low,
                      double *high) {
  double lows[WIDTH], highs[WIDTH];
  for (int l = 0; l < WIDTH; l++) lows[l] = INFINITY, highs[l] = 0;
  int j = 0;
  for (; j + WIDTH <= n; j += WIDTH) {
    for (int l = 0; l < WIDTH; l++) {
      const double rest = c[j + l] - least[j + l];
      lows[l] = rest < lows[l] ? rest : lows[l];
      highs[l] = rest > highs[l] ? rest : highs[l];
    }
  }
  *low = INFINITY, *high = 0;
  for (; j < n; j++) *low = fmin(*low, c[j] - least[j]), *high = fmax(*high, c[j] - least[j]);
  for (int l = 0; l < WIDTH; l++) *low = fmin(*low, lows[l]), *high = fmax(*high, highs[l]);
}

/* to_j = scale (c_j - least_j - low); returns their sum. */
SIMD_CLONES
static int64_t round_row(int n, const double *restrict c, const double *restrict least, double low,
                         double scale, int32_t *restrict to) {
  int64_t sum = 0;
  for (int j = 0; j < n; j++) {
    to[j] = (int32_t)((c[j] - least[j] - low) * scale);
    sum += to[j];
  }
  return sum;
}

/* Fill a->cost; *scale: units of a cost. Returns the mean, 0 where there is nothing to bid for. */
static double round_costs(Auction *a, int n, int stride, const double *cost, double *scale) {
  const size_t width = (size_t)stride;
  double largest = 0, total = 0;
  for (int j = 0; j < n; j++) a->least[j] = INFINITY;
  for (size_t i = 0; i < (size_t)n; i++) lower(n, cost + i * width, a->least);
  for (size_t i = 0; i < (size_t)n; i++) {
    double high;
    row_range(n, cost + i * width, a->least, &a->least_of_row[i], &high);
    largest = fmax(largest, high - a->least_of_row[i]);
  }
  if (!(largest > 0)) return 0;
  *scale = ldexp(1, COST_BITS) / largest;
  if (!isfinite(*scale)) return 0;
  for (size_t i = 0; i < (size_t)n; i++) {
    int32_t *to = a->cost + i * width;
    total += (double)round_row(n, cost + i * width, a->least, a->least_of_row[i], *scale, to);
    for (int j = n; j < stride; j++) to[j] = PADDING;
  }
  return total / n / n;
}

/* ---- bids */

typedef int32_t Values __attribute__((vector_size(WIDTH * sizeof(int32_t)), may_alias));
#define SELECT(condition, yes, no) (((yes) & (condition)) | ((no) & ~(condition)))
#define AT(array, j) (*(const Values *)((array) + (j)))

typedef int32_t Half __attribute__((vector_size(WIDTH * sizeof(int32_t) / 2), may_alias));
typedef int32_t Quarter __attribute__((vector_size(WIDTH * sizeof(int32_t) / 4), may_alias));
static const Values lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

#define LESSER(x, y) SELECT((x) < (y), x, y)

/* Of all lanes. Vectors go by reference, as the clones pass them in different ways. */
static inline int32_t least_of(const Values *x) {
  const Half *halves = (const Half *)x;
  const Half half = LESSER(halves[0], halves[1]);
  const Quarter *quarters = (const Quarter *)&half;
  const Quarter four = LESSER(quarters[0], quarters[1]);
  const int32_t a = four[0] < four[1] ? four[0] : four[1], b = four[2] < four[3] ? four[2] : four[3];
  return a < b ? a : b;
}

typedef struct {
  int32_t value, second; /* least and second least */
  int column; /* of the least; the first of equals */
} Least;

/* Of c_j - v_j. */
SIMD_CLONES
static Least two_least(int stride, const int32_t *restrict c, const int32_t *restrict v) {
  Values best[UNROLLED], second[UNROLLED], where[UNROLLED];
  for (int k = 0; k < UNROLLED; k++) {
    best[k] = second[k] = (Values){0} + INT32_MAX;
    where[k] = (Values){0};
  }
  for (int32_t j = 0; j < stride; j += AUCTION_LANES) {
    for (int k = 0; k < UNROLLED; k++) {
      const Values value = AT(c, j + k * WIDTH) - AT(v, j + k * WIDTH), better = value < best[k];
      second[k] = LESSER(second[k], SELECT(better, best[k], value));
      best[k] = SELECT(better, value, best[k]);
      where[k] = SELECT(better, (Values){0} + j, where[k]);
    }
  }
  Values value = LESSER(best[0], best[1]), column = (Values){0} + INT32_MAX, next = column;
  value = (Values){0} + least_of(&value);
  for (int k = 0; k < UNROLLED; k++) {
    where[k] += lane + k * WIDTH;
    column = LESSER(column, SELECT(best[k] == value, where[k], (Values){0} + INT32_MAX));
  }
  column = (Values){0} + least_of(&column);
  for (int k = 0; k < UNROLLED; k++) next = LESSER(next, SELECT(where[k] == column, second[k], best[k]));
  return (Least){value[0], least_of(&next), column[0]};
}

/* One phase; returns the bids that are left. */
static int64_t run_phase(Auction *a, int n, int stride, int32_t epsilon, int64_t bids) {
  int count = n;
  for (int i = 0; i < n; i++) a->row_of[i] = NONE, a->free_rows[i] = n - 1 - i;
  for (; count > 0 && bids > 0; bids--) {
    const int i = a->free_rows[--count];
    const Least least = two_least(stride, a->cost + (size_t)i * (size_t)stride, a->v);
    const int driven_out = a->row_of[least.column];
    a->v[least.column] -= least.second - least.value + epsilon;
    a->row_of[least.column] = i;
    if (driven_out != NONE) a->free_rows[count++] = driven_out;
  }
  return bids;
}

void auction_duals(Auction *a, int n, int stride, const double *cost, double *v) {
  double scale = 0;
  const double mean = n > 1 ? round_costs(a, n, stride, cost, &scale) : 0;
  for (int j = 0; j < stride; j++) a->v[j] = 0;
  int64_t bids = MOST_BIDS * (int64_t)n;
  double epsilon = FIRST * mean;
  for (int phase = 0; phase < MOST_PHASES && epsilon >= 1 && epsilon * n >= LAST * mean && bids > 0;
       phase++) {
    bids = run_phase(a, n, stride, (int32_t)epsilon, bids);
    epsilon /= SHRINK;
  }
  for (int j = 0; j < n; j++) v[j] = mean > 0 ? a->least[j] + a->v[j] / scale : 0;
}
