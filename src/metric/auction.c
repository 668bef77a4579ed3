/* Rows bid for columns: a free row takes the column where c_ij - v_j is least and lowers that v_j until the
 * second best is as good, and by epsilon more; the row that it drove out is free and bids next. With a large
 * epsilon prices go quickly to about where they belong, with a small one to the place; so epsilon falls from
 * phase to phase, and every phase starts with all rows free, at the prices of the one before.
 *
 * Bids are among whole numbers of 16 bits, a quarter of the memory, which is where the time goes. They count
 * units of what a cost is above its column's v so far and the least of its row; MOST_COST of them, at least
 * 32 epsilon, are as good as more. When epsilon is less than FINEST units, costs are rounded again. The unit
 * is a power of two, so that prices add up without an error. */
#include "metric/auction.h"

#include "core/simd.h"
#include "metric/reduced.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
  MOST_COST = (1 << 13) - 1, /* of those that are rounded */
  LEAST_PRICE = MOST_COST - INT16_MAX, /* no reduced cost is above INT16_MAX */
  COARSEST = 7, /* bits of epsilon when costs are rounded */
  FINEST = 5, /* units, the least epsilon */
  SHRINK = 5, /* of epsilon */
  COLUMN_BITS = 16,
  COLUMNS = 1 << COLUMN_BITS, /* at most */
  SAMPLE = 16, /* rows, of the mean cost */
  MOST_BIDS = 200, /* for each row, after which v is what it is; 10 to 70 are usual */
  NONE = -1
};
static const double FIRST = 0.1; /* epsilon, of the mean cost */
static const double LAST = 0.03; /* epsilon, of the mean cost by n */

struct Auction {
  int16_t *cost; /* [n, stride] */
  int16_t *price; /* [stride], what v has fallen by since costs were rounded */
  int *row_of; /* [n] */
  int *free_rows; /* [n], a stack */
};

Status auction_create(Arena *memory, int most, Auction **out) {
  const size_t stride = (size_t)reduced_stride(most);
  Auction *a;
  ALLOCATE(memory, a, 1);
  ALLOCATE(memory, a->cost, (size_t)most * stride);
  ALLOCATE(memory, a->price, stride);
  ALLOCATE_ARRAYS(memory, most, a->row_of, a->free_rows);
  *out = a;
  return STATUS_OK;
}

/* ---- costs */

SIMD_CLONES
static void lower(int n, const double *restrict c, double *restrict least) {
  for (int j = 0; j < n; j++) least[j] = c[j] < least[j] ? c[j] : least[j];
}

/* Returns the mean of what is left of the costs of a few rows. */
static double mean_cost(int n, int stride, const double *cost, const double *v) {
  const int step = (n + SAMPLE - 1) / SAMPLE;
  double sum = 0;
  int rows = 0;
  for (int i = 0; i < n; i += step, rows++) {
    const double *c = cost + (size_t)i * (size_t)stride, low = reduced_cost_least(stride, c, v);
    for (int j = 0; j < n; j++) sum += c[j] - v[j] - low;
  }
  return sum / n / rows;
}

/* Computes to_j = scale (c_j - v_j - low), at most MOST_COST: the last bits of its sum with 2^52. A
 * conversion would be moved before the comparison, and of an infinite number it raises "invalid". */
SIMD_CLONES
static void round_row(int stride, const double *restrict c, const double *restrict v, double low,
                      double scale, int16_t *restrict to) {
  for (int j = 0; j < stride; j++) {
    const double units = (c[j] - v[j] - low) * scale;
    union {
      double real;
      int64_t bits;
    } sum = {(units < MOST_COST ? units : MOST_COST) + 0x1p52};
    to[j] = (int16_t)sum.bits;
  }
}

static void round_costs(Auction *a, int n, int stride, const double *cost, const double *v, double scale) {
  for (int i = 0; i < n; i++) {
    const size_t row = (size_t)i * (size_t)stride;
    round_row(stride, cost + row, v, reduced_cost_least(stride, cost + row, v), scale, a->cost + row);
  }
  for (int j = 0; j < stride; j++) a->price[j] = j < n ? 0 : LEAST_PRICE;
}

/* ---- bids
 *
 * Plain loops over the lanes of a vector become one instruction for each register at every level; comparisons
 * of whole vectors would become one for each lane where registers are narrower. */

#define LANES(count) for (int l = 0; l < (count); l++)
#define LESSER(x, y) ((x) < (y) ? (x) : (y))
#define LARGER(x, y) ((x) < (y) ? (y) : (x))

typedef int16_t Whole __attribute__((vector_size(REDUCED_LANES * sizeof(int16_t)), may_alias));

typedef struct {
  int value, second; /* least and second least */
  int column; /* of the least; the first of equals */
} Least;

/* Lanes half .. 2 half - 1 of least and second join the first half. */
#define HALVE(half)                                                                                          \
  do {                                                                                                       \
    typedef int32_t Part __attribute__((vector_size((half) * sizeof(int32_t))));                             \
    Part x, y, second_x, second_y, larger;                                                                   \
    memcpy(&x, least, sizeof x), memcpy(&y, least + (half), sizeof y);                                       \
    memcpy(&second_x, second, sizeof x), memcpy(&second_y, second + (half), sizeof y);                       \
    LANES(half) larger[l] = LARGER(x[l], y[l]);                                                              \
    LANES(half) x[l] = LESSER(x[l], y[l]);                                                                   \
    LANES(half) second_x[l] = LESSER(second_x[l], second_y[l]);                                              \
    LANES(half) second_x[l] = LESSER(second_x[l], larger[l]);                                                \
    memcpy(least, &x, sizeof x), memcpy(second, &second_x, sizeof x);                                        \
  } while (0)

/* Returns the least over all lanes. A value and its column become one number, so that no comparison has to
 * choose twice. */
INLINE Least least_of(const Whole *best, const Whole *next, const Whole *where) {
  int16_t value[REDUCED_LANES], second_value[REDUCED_LANES], block[REDUCED_LANES];
  int32_t least[REDUCED_LANES], second[REDUCED_LANES];
  memcpy(value, best, sizeof value);
  memcpy(second_value, next, sizeof value);
  memcpy(block, where, sizeof value);
  LANES(REDUCED_LANES) least[l] = value[l] * COLUMNS + block[l] * REDUCED_LANES + l;
  LANES(REDUCED_LANES) second[l] = second_value[l] * COLUMNS;
  HALVE(16);
  HALVE(8);
  HALVE(4);
  HALVE(2);
  const int32_t first = LESSER(least[0], least[1]), larger = LARGER(least[0], least[1]),
                other = LESSER(second[0], second[1]);
  return (Least){first >> COLUMN_BITS, LESSER(larger, other) >> COLUMN_BITS, first & (COLUMNS - 1)};
}

/* Returns the two least of c_j - price_j. */
SIMD_CLONES
static Least two_least(int stride, const int16_t *restrict c, const int16_t *restrict price) {
  Whole best = (Whole){0} + INT16_MAX, next = best, where = {0};
  for (int j = 0; j < stride; j += REDUCED_LANES) {
    const Whole x = *(const Whole *)(c + j) - *(const Whole *)(price + j);
    const int16_t block = (int16_t)(j / REDUCED_LANES);
    LANES(REDUCED_LANES) {
      const int16_t loser = LARGER(x[l], best[l]);
      next[l] = LESSER(loser, next[l]);
    }
    LANES(REDUCED_LANES) where[l] = x[l] < best[l] ? block : where[l];
    LANES(REDUCED_LANES) best[l] = LESSER(x[l], best[l]);
  }
  return least_of(&best, &next, &where);
}

/* Lowers price_j by fall, as a whole vector: what is stored by parts cannot be loaded as one before it has
 * reached the cache. */
SIMD_CLONES
static void lower_price(int16_t *price, int column, int16_t fall) {
  Whole *at = (Whole *)(price + column / REDUCED_LANES * REDUCED_LANES), prices = *at;
  const int16_t lane = (int16_t)(column % REDUCED_LANES);
  LANES(REDUCED_LANES) prices[l] = (int16_t)(prices[l] - (l == lane ? fall : 0));
  *at = prices;
}

/* Runs one phase; returns the bids that are left. It ends early where a price leaves the range. */
static int64_t run_phase(Auction *a, int n, int stride, int epsilon, int64_t bids) {
  int count = n;
  for (int i = 0; i < n; i++) a->row_of[i] = NONE, a->free_rows[i] = n - 1 - i;
  for (; count > 0 && bids > 0; bids--) {
    const int i = a->free_rows[--count];
    const Least least = two_least(stride, a->cost + (size_t)i * (size_t)stride, a->price);
    const int driven_out = a->row_of[least.column], fall = least.second - least.value + epsilon;
    if (a->price[least.column] - fall < LEAST_PRICE) break;
    lower_price(a->price, least.column, (int16_t)fall);
    a->row_of[least.column] = i;
    if (driven_out != NONE) a->free_rows[count++] = driven_out;
  }
  return bids;
}

static void settle_prices(Auction *a, int n, double unit, double *v) {
  for (int j = 0; j < n; j++) v[j] += unit * a->price[j], a->price[j] = 0;
}

void auction_duals(Auction *a, int n, int stride, const double *cost, double *v) {
  for (int j = 0; j < stride; j++) v[j] = j < n ? INFINITY : 0;
  for (size_t i = 0; i < (size_t)n; i++) lower(n, cost + i * (size_t)stride, v);
  const double mean = n > 1 && stride <= COLUMNS ? mean_cost(n, stride, cost, v) : 0;
  if (!(mean > 0 && isfinite(0x1p60 / mean))) return;
  int64_t bids = MOST_BIDS * (int64_t)n;
  double unit = INFINITY;
  for (double epsilon = FIRST * mean; epsilon * n >= LAST * mean && bids > 0; epsilon /= SHRINK) {
    if (epsilon < FINEST * unit) {
      if (isfinite(unit)) settle_prices(a, n, unit, v);
      unit = ldexp(1, ilogb(epsilon) - COARSEST);
      round_costs(a, n, stride, cost, v, 1 / unit);
    }
    bids = run_phase(a, n, stride, (int)(epsilon / unit), bids);
  }
  settle_prices(a, n, unit, v);
}
