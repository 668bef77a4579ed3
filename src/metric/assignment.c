/* Jonker and Volgenant's algorithm. Dual variables u, v keep every reduced cost c_ij - u_i - v_j >= 0, and
 * matched pairs have reduced cost 0; u need not be stored, as u_i is the least c_ij - v_j of its row.
 *
 *   1  dual variables v from an auction with epsilon scaling (Bertsekas, Annals of Operations Research 14,
 *      1988)
 *   2  augmenting row reduction: a free row takes its best column and lowers its v to the point where the
 *      second best is as good; the row that it drives out is free and may be next
 *   3  for each row still free, a shortest path (Dijkstra, dense) to a free column, along which the
 *      matching is switched
 *
 * Without the auction, v would be wrong everywhere if one cloud is shifted by half a standard deviation
 * against the other, and paths would be long: from the least of each column, as published, 2000 points take
 * four times as long.
 *
 * All time is spent in passes over rows, written as plain loops over the lanes of a vector: at every SIMD
 * level they become one instruction per register, and running minima stay in registers. */
#include "metric/assignment.h"

#include "core/simd.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { NONE = -1 };

struct Assignment {
  int n, stride;
  const double *cost; /* [n, stride] */
  int *column_of, *row_of; /* [n], NONE: free */
  double *v; /* [stride] */
  int *free_rows; /* [n] */
  /* For the auction: rounded costs, and the change of v since they were rounded, in units. */
  int16_t *rounded, *price; /* [n, stride], [stride] */
  /* For Dijkstra: the tentative distance of each column, INFINITY once it is closed; v, but -INFINITY once
   * closed; the row before each column; the closed columns in order, and their distances. */
  double *distance, *open_v; /* [stride] */
  double *before; /* [stride], whole numbers */
  int *closed; /* [n] */
  double *closed_distance; /* [n] */
};

int assignment_stride(int n) { return (n + ASSIGNMENT_LANES - 1) / ASSIGNMENT_LANES * ASSIGNMENT_LANES; }

Status assignment_create(Arena *memory, int most, Assignment **out) {
  ASSERT(most >= 1);
  Assignment *a;
  const size_t stride = (size_t)assignment_stride(most);
  ALLOCATE(memory, a, 1);
  ALLOCATE(memory, a->rounded, (size_t)most * stride);
  ALLOCATE_ARRAYS(memory, most, &a->row_of, &a->free_rows, &a->closed);
  ALLOCATE(memory, a->closed_distance, most);
  ALLOCATE_ARRAYS(memory, stride, &a->v, &a->distance, &a->open_v, &a->before);
  ALLOCATE(memory, a->price, stride);
  *out = a;
  return STATUS_OK;
}

static const double *assignment_cost_row(const Assignment *a, int i) {
  return a->cost + (size_t)i * (size_t)a->stride;
}

/* ---- passes over a row */

#define LANES for (int l = 0; l < ASSIGNMENT_LANES; l++)
#define LESSER(x, y) ((x) < (y) ? (x) : (y))
#define LARGER(x, y) ((x) < (y) ? (y) : (x))
typedef double Lanes __attribute__((vector_size(ASSIGNMENT_LANES * sizeof(double)), may_alias, aligned(64)));
#define AT(array, j) (*(Lanes *)((array) + (j)))
#define CONST_AT(array, j) (*(const Lanes *)((array) + (j)))

/* Returns the least over all lanes, combining halves until one lane is left. */
INLINE double least_lane(const Lanes *lanes) {
  Lanes x = *lanes;
#pragma GCC unroll 5
  for (int half = ASSIGNMENT_LANES / 2; half > 0; half /= 2)
    for (int l = 0; l < half; l++) x[l] = LESSER(x[l + half], x[l]);
  return x[0];
}

SIMD_CLONES
double assignment_cost_least(int stride, const double *c, const double *v) {
  Lanes least = (Lanes){0} + INFINITY;
  for (int j = 0; j < stride; j += ASSIGNMENT_LANES) {
    const Lanes x = CONST_AT(c, j) - CONST_AT(v, j);
    LANES least[l] = LESSER(x[l], least[l]);
  }
  return least_lane(&least);
}

/* Returns the two least over all lanes. Each lane has its least and second least value, and the block of
 * columns of the least. */
INLINE AssignmentLeast least_of_lanes(const Lanes *best, const Lanes *next, const Lanes *where) {
  const double value = least_lane(best);
  Lanes column, others;
  LANES column[l] = (*best)[l] == value ? (*where)[l] + l : INFINITY;
  const double first = least_lane(&column);
  LANES others[l] = column[l] == first ? (*next)[l] : (*best)[l];
  return (AssignmentLeast){value, least_lane(&others), (int)first};
}

SIMD_CLONES
AssignmentLeast assignment_two_least(int stride, const double *c, const double *v) {
  Lanes best = (Lanes){0} + INFINITY, next = best, where = {0};
  for (int j = 0; j < stride; j += ASSIGNMENT_LANES) {
    const Lanes x = CONST_AT(c, j) - CONST_AT(v, j);
    const double first = j;
    LANES {
      const double loser = LARGER(x[l], best[l]);
      next[l] = LESSER(loser, next[l]);
    }
    LANES where[l] = x[l] < best[l] ? first : where[l];
    LANES best[l] = LESSER(x[l], best[l]);
  }
  return least_of_lanes(&best, &next, &where);
}

/* Relaxes every open column through `row`, whose costs are c, with h added; returns the closest open one. */
SIMD_CLONES
static AssignmentLeast assignment_relax_columns(int stride, const double *restrict c,
                                                const double *restrict open_v, double h, double row,
                                                double *restrict distance, double *restrict before) {
  Lanes best = (Lanes){0} + INFINITY, where = {0};
  const Lanes none = best;
  for (int j = 0; j < stride; j += ASSIGNMENT_LANES) {
    const Lanes through = CONST_AT(c, j) - CONST_AT(open_v, j) + h;
    const double first = j;
    Lanes now = AT(distance, j), from = AT(before, j);
    LANES from[l] = through[l] < now[l] ? row : from[l];
    LANES now[l] = LESSER(through[l], now[l]);
    AT(before, j) = from;
    AT(distance, j) = now;
    LANES where[l] = now[l] < best[l] ? first : where[l];
    LANES best[l] = LESSER(now[l], best[l]);
  }
  return least_of_lanes(&best, &none, &where);
}

/* ---- the auction
 *
 * Rows bid for columns: a free row takes the column where c_ij - v_j is least and lowers that v_j until the
 * second best is as good, and by epsilon more; the row that it drives out is free and bids next. With a large
 * epsilon prices quickly come close to their final values, with a small one they reach them; so epsilon falls
 * from phase to phase, and every phase starts with all rows free, at the prices of the one before.
 *
 * Bids use integers of 16 bits: memory traffic, which takes most of the time, is a quarter of that of
 * doubles. They count, in units, how much a cost exceeds the current v of its column and the least of its
 * row; larger costs count as MOST_COST units, which is at least 32 epsilon. When epsilon is less than FINEST
 * units, costs are rounded again. The unit is a power of two, so that prices add up without an error. */
enum {
  MOST_COST = (1 << 13) - 1, /* the largest rounded cost */
  LEAST_PRICE = MOST_COST - INT16_MAX, /* so that no reduced cost is above INT16_MAX */
  COARSEST = 7, /* bits of epsilon when costs are rounded */
  FINEST = 5, /* the least epsilon, in units */
  SHRINK = 5, /* factor by which epsilon falls from phase to phase */
  COLUMN_BITS = 16,
  COLUMNS = 1 << COLUMN_BITS, /* at most */
  SAMPLE = 16, /* rows, for the mean cost */
  MOST_BIDS = 200 /* per row, after which v stays as it is; 10 to 70 are usual */
};
static const double FIRST = 0.1; /* first epsilon, over the mean cost */
static const double LAST = 0.03; /* last epsilon, over the mean cost / n */

SIMD_CLONES
static void lower(int n, const double *restrict c, double *restrict least) {
  for (int j = 0; j < n; j++) least[j] = c[j] < least[j] ? c[j] : least[j];
}

/* Computes to_j = scale (c_j - v_j - low), at most MOST_COST, as the last bits of its sum with 2^52. A
 * conversion would be moved before the comparison, and raises "invalid" for an infinite number. */
SIMD_CLONES
static void assignment_round_row(int stride, const double *restrict c, const double *restrict v, double low,
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

typedef int16_t Whole __attribute__((vector_size(ASSIGNMENT_LANES * sizeof(int16_t)), may_alias));

typedef struct {
  int value, second; /* least and second least */
  int column; /* of the least; the first of equals */
} Least;

/* Returns the two least over all lanes. A value and its column are packed into one number, so that no
 * comparison has to choose twice. Halves of the lanes are combined until one lane is left. */
INLINE Least least_of(const Whole *best, const Whole *next, const Whole *where) {
  int32_t least[ASSIGNMENT_LANES], second[ASSIGNMENT_LANES];
  LANES least[l] = (*best)[l] * COLUMNS + (*where)[l] * ASSIGNMENT_LANES + l;
  LANES second[l] = (*next)[l] * COLUMNS;
#pragma GCC unroll 5
  for (int half = ASSIGNMENT_LANES / 2; half > 0; half /= 2)
    for (int l = 0; l < half; l++) {
      const int32_t larger = LARGER(least[l], least[l + half]), other = LESSER(second[l], second[l + half]);
      second[l] = LESSER(larger, other);
      least[l] = LESSER(least[l], least[l + half]);
    }
  return (Least){least[0] >> COLUMN_BITS, second[0] >> COLUMN_BITS, least[0] & (COLUMNS - 1)};
}

/* Returns the two least of c_j - price_j. */
SIMD_CLONES
static Least assignment_two_least_rounded(int stride, const int16_t *restrict c,
                                          const int16_t *restrict price) {
  Whole best = (Whole){0} + INT16_MAX, next = best, where = {0};
  for (int j = 0; j < stride; j += ASSIGNMENT_LANES) {
    const Whole x = *(const Whole *)(c + j) - *(const Whole *)(price + j);
    const int16_t block = (int16_t)(j / ASSIGNMENT_LANES);
    LANES {
      const int16_t loser = LARGER(x[l], best[l]);
      next[l] = LESSER(loser, next[l]);
    }
    LANES where[l] = x[l] < best[l] ? block : where[l];
    LANES best[l] = LESSER(x[l], best[l]);
  }
  return least_of(&best, &next, &where);
}

/* Lowers price_j by `fall`, storing a whole vector: after a partial store, a load of the whole vector would
 * have to wait until the store has reached the cache. */
SIMD_CLONES
static void assignment_lower_price(int16_t *price, int column, int16_t fall) {
  Whole *at = (Whole *)(price + column / ASSIGNMENT_LANES * ASSIGNMENT_LANES), prices = *at;
  const int16_t lane = (int16_t)(column % ASSIGNMENT_LANES);
  LANES prices[l] = (int16_t)(prices[l] - (l == lane ? fall : 0));
  *at = prices;
}

/* Runs one phase and returns the number of bids left. Ends early if a price leaves the range. */
static int64_t assignment_auction_phase(Assignment *a, int epsilon, int64_t bids) {
  int count = a->n;
  for (int i = 0; i < a->n; i++) {
    a->row_of[i] = NONE;
    a->free_rows[i] = a->n - 1 - i;
  }
  while (count > 0 && bids > 0) {
    const int i = a->free_rows[--count];
    const Least least =
        assignment_two_least_rounded(a->stride, a->rounded + (size_t)i * (size_t)a->stride, a->price);
    const int driven_out = a->row_of[least.column], fall = least.second - least.value + epsilon;
    if (a->price[least.column] - fall < LEAST_PRICE) break;
    assignment_lower_price(a->price, least.column, (int16_t)fall);
    a->row_of[least.column] = i;
    if (driven_out != NONE) a->free_rows[count++] = driven_out;
    bids--;
  }
  return bids;
}

static void assignment_settle_prices(Assignment *a, double unit) {
  for (int j = 0; j < a->n; j++) {
    a->v[j] += unit * a->price[j];
    a->price[j] = 0;
  }
}

/* Computes v[stride]: dual variables of a nearly optimal matching, and 0 beyond them. Any v is a valid start;
 * the better it is, the shorter are the paths still to be found. */
static void assignment_auction_duals(Assignment *a) {
  for (int j = 0; j < a->stride; j++) a->v[j] = j < a->n ? INFINITY : 0;
  for (int i = 0; i < a->n; i++) lower(a->n, assignment_cost_row(a, i), a->v);
  if (a->n == 1 || a->stride > COLUMNS) return;
  const int step = (a->n + SAMPLE - 1) / SAMPLE;
  double mean = 0; /* of the reduced costs in a few rows */
  int rows = 0;
  for (int i = 0; i < a->n; i += step, rows++) {
    const double *c = assignment_cost_row(a, i), least = assignment_cost_least(a->stride, c, a->v);
    for (int j = 0; j < a->n; j++) mean += c[j] - a->v[j] - least;
  }
  mean = mean / a->n / rows;
  if (!(mean > 0 && isfinite(0x1p60 / mean))) return;
  int64_t bids = MOST_BIDS * (int64_t)a->n;
  double unit = INFINITY;
  for (double epsilon = FIRST * mean; epsilon * a->n >= LAST * mean && bids > 0; epsilon /= SHRINK) {
    if (epsilon < FINEST * unit) {
      if (isfinite(unit)) assignment_settle_prices(a, unit);
      unit = ldexp(1, ilogb(epsilon) - COARSEST);
      for (int i = 0; i < a->n; i++) {
        const double *c = assignment_cost_row(a, i), least = assignment_cost_least(a->stride, c, a->v);
        assignment_round_row(a->stride, c, a->v, least, 1 / unit, a->rounded + (size_t)i * (size_t)a->stride);
      }
      for (int j = 0; j < a->stride; j++) a->price[j] = j < a->n ? 0 : LEAST_PRICE;
    }
    bids = assignment_auction_phase(a, (int)(epsilon / unit), bids);
  }
  assignment_settle_prices(a, unit);
}

/* ---- the matching */

static void assignment_match_pair(Assignment *a, int row, int column) {
  a->column_of[row] = column;
  a->row_of[column] = row;
}

/* Passes once over the free rows; a row that is driven out while v falls is handled next. Returns the number
 * of rows still free. */
static int assignment_reduce_rows(Assignment *a, int count) {
  int next = 0, left = 0, steps = 0;
  while (next < count) {
    int i = a->free_rows[next++];
    AssignmentLeast least = assignment_two_least(a->stride, assignment_cost_row(a, i), a->v);
    int j = least.column, driven_out = a->row_of[j];
    double lower = a->v[j] - (least.second - least.value);
    bool falls = lower < a->v[j] && isfinite(lower);
    if (falls) a->v[j] = lower;
    if (driven_out != NONE && !falls) { /* a tie: leave it to the shortest paths */
      a->free_rows[left++] = i;
      continue;
    }
    assignment_match_pair(a, i, j);
    if (driven_out == NONE) continue;
    a->column_of[driven_out] = NONE;
    /* Rounding could let two rows drive each other out forever. */
    if (++steps < a->n)
      a->free_rows[--next] = driven_out;
    else
      a->free_rows[left++] = driven_out;
  }
  return left;
}

static void assignment_augment_row(Assignment *a, int row) {
  size_t bytes = (size_t)a->stride * sizeof(double);
  memcpy(a->open_v, a->v, bytes);
  for (int j = 0; j < a->stride; j++) a->distance[j] = INFINITY;
  AssignmentLeast nearest = assignment_relax_columns(a->stride, assignment_cost_row(a, row), a->open_v, 0,
                                                     row, a->distance, a->before);
  int count = 0;
  while (a->row_of[nearest.column] != NONE) {
    int j = nearest.column, i = a->row_of[j];
    a->closed[count] = j;
    a->closed_distance[count++] = nearest.value;
    a->distance[j] = INFINITY;
    a->open_v[j] = -INFINITY;
    const double *c = assignment_cost_row(a, i);
    nearest = assignment_relax_columns(a->stride, c, a->open_v, nearest.value - (c[j] - a->v[j]), i,
                                       a->distance, a->before);
  }
  for (int k = 0; k < count; k++) a->v[a->closed[k]] += a->closed_distance[k] - nearest.value;
  /* The matching changes along the path back to the row. */
  for (int column = nearest.column, i = NONE; i != row;) {
    i = (int)a->before[column];
    const int dropped = a->column_of[i];
    assignment_match_pair(a, i, column);
    column = dropped;
  }
}

void assignment_solve(Assignment *a, int n, const double *cost, int *column_of, double *v) {
  a->n = n;
  a->stride = assignment_stride(n);
  a->cost = cost;
  a->column_of = column_of;
  assignment_auction_duals(a);
  if (column_of) {
    for (int j = 0; j < n; j++) {
      a->column_of[j] = NONE;
      a->row_of[j] = NONE;
      a->free_rows[j] = j;
    }
    const int count = assignment_reduce_rows(a, n);
    for (int k = 0; k < count; k++) assignment_augment_row(a, a->free_rows[k]);
  }
  memcpy(v, a->v, (size_t)n * sizeof *v);
}
