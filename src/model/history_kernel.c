/* Sums over the rows of a history, for a strip of lanes. Compiled once for each instruction level
 * (core/simd.h).
 *
 * Rows are taken BLOCK at a time, so that their features are read from memory once and then used from the
 * first-level cache. A strip has the features of neighbouring runs, or shares those of one: `shared` is a
 * constant in each of the two versions that the compiler makes of a function. */
#include "model/history_kernel.h"

#include "core/simd.h"

#include <math.h>
#include <string.h>

enum { VECTOR = SIMD_BYTES / 8 };
enum { STRIP = HISTORY_STRIP, VECTORS = STRIP / VECTOR, BLOCK = HISTORY_PAGE, CELLS = BLOCK * STRIP };
enum { TILE = 8, GROUP = 5 }; /* coordinates that are taken at once in a prediction; in the sums */
enum { ROWS = VECTORS < 8 ? 8 / VECTORS : 1 }; /* of a prediction, side by side */

typedef double Vector __attribute__((vector_size(8 * VECTOR)));
typedef double Unaligned __attribute__((vector_size(8 * VECTOR), aligned(8), may_alias));
#define INLINE static inline __attribute__((always_inline))
/* Vector v of the strip; the number that all its lanes share. */
#define LOAD(from, v) ((Vector)(*(const Unaligned *)((from) + (v)*VECTOR)))
#define LOAD_OR_SHARE(from, shared, v) ((shared) ? *(from) - (Vector){0} : LOAD(from, v))

/* Rows to take: in lanes whose run has fewer rows the rest count 0 times. */
INLINE int rows_of(const HistoryStrip *strip, const bool shared) {
  return shared ? strip->rows->length[strip->run] : strip->rows->filled[strip->run / STRIP];
}

/* How many of the rows from `row` on are on its page. */
INLINE int rows_of_page(int row, int total_rows) {
  const int page = BLOCK - row % BLOCK, left = total_rows - row;
  return left < page ? left : page;
}

/* The first lane's number in row `row` of rewards or counts. */
INLINE const double *number_of(const HistoryStrip *strip, int row, const double *numbers) {
  return numbers + history_row(strip->rows, strip->run / STRIP, row) * STRIP + strip->run % STRIP;
}

/* Its feature of coordinate i; the next coordinate is STRIP further. */
INLINE const double *feature_of(const HistoryStrip *strip, int row, int r, int i) {
  const size_t d = (size_t)strip->history->d;
  const size_t at = history_row(strip->rows, strip->run / STRIP, row) + (size_t)r;
  return strip->rows->features + (at * d + (size_t)i) * STRIP + strip->run % STRIP;
}

/* Vector v of the strip's lanes in a row of an array; lanes past the last are 0, and are not written. */
INLINE void get(const HistoryStrip *strip, int v, const double *from, Vector *lanes) {
  int count = strip->count - v * VECTOR;
  *lanes = (Vector){0};
  if (count >= VECTOR)
    *lanes = LOAD(from, v);
  else if (count > 0)
    memcpy(lanes, from + v * VECTOR, (size_t)count * sizeof *from);
}

INLINE void put(const HistoryStrip *strip, int v, const Vector *lanes, double *to) {
  int count = strip->count - v * VECTOR;
  if (count >= VECTOR)
    memcpy(to + v * VECTOR, lanes, sizeof *lanes);
  else if (count > 0)
    memcpy(to + v * VECTOR, lanes, (size_t)count * sizeof *to);
}

/* u[BLOCK, STRIP] of `height` rows from `row` + r on, of `count` coordinates from `from` on. */
INLINE void predict_rows(const HistoryStrip *strip, const bool shared, int row, int r, const int height,
                         int from, int count, Vector theta[][VECTORS], double *u) {
  const size_t next = (size_t)strip->history->d * STRIP;
  const double *phi = feature_of(strip, row, r, from);
  Vector sum[ROWS][VECTORS];
  for (int q = 0; q < height; q++)
    for (int v = 0; v < VECTORS; v++) sum[q][v] = from > 0 ? LOAD(u + (r + q) * STRIP, v) : (Vector){0};
  for (int k = 0; k < count; k++)
    for (int q = 0; q < height; q++)
      for (int v = 0; v < VECTORS; v++)
        sum[q][v] += LOAD_OR_SHARE(phi + (size_t)q * next + k * STRIP, shared, v) * theta[k][v];
  for (int q = 0; q < height; q++) memcpy(u + (r + q) * STRIP, sum[q], sizeof sum[q]);
}

/* u[BLOCK, STRIP] = phi' theta of `rows` rows from `row` on, theta = shift + scale z. */
INLINE void predict(const HistoryStrip *strip, const bool shared, int row, int rows, const double *shift,
                    const double *z, double *u) {
  const int d = strip->history->d;
  for (int from = 0; from < d; from += TILE) {
    int count = d - from < TILE ? d - from : TILE, r = 0;
    Vector theta[TILE][VECTORS];
    for (int k = 0; k < count; k++) {
      double shift_i = shift ? shift[from + k] : 0, scale_i = strip->scale ? strip->scale[from + k] : 1;
      for (int v = 0; v < VECTORS; v++) {
        get(strip, v, z + (size_t)(from + k) * strip->stride, &theta[k][v]);
        theta[k][v] = shift_i + scale_i * theta[k][v];
      }
    }
    for (; r + ROWS <= rows; r += ROWS) predict_rows(strip, shared, row, r, ROWS, from, count, theta, u);
    for (; r < rows; r++) predict_rows(strip, shared, row, r, 1, from, count, theta, u);
  }
}

/* Rewards or counts of `rows` rows, [.., STRIP]: where they are, or spread over the lanes that share them. */
INLINE const double *fetch(const HistoryStrip *strip, const bool shared, int row, int rows,
                           const double *numbers, double *spread) {
  const double *from = number_of(strip, row, numbers);
  if (!shared) return from;
  for (int r = 0; r < rows; r++)
    for (int n = 0; n < STRIP; n++) spread[r * STRIP + n] = from[r * STRIP];
  return spread;
}

/* x[rows, STRIP] *= the counts of the rows. */
INLINE void repeat(int rows, const double *counts, double *x) {
  for (int k = 0; k < rows * STRIP; k++) x[k] *= counts[k];
}

/* gradient_i += sum over rows of slope phi_i. */
INLINE void add_gradient(const HistoryStrip *strip, const bool shared, int row, int rows, const double *slope,
                         double *gradient) {
  for (int i = 0; i < strip->history->d; i++)
    for (int v = 0; v < VECTORS; v++) {
      Vector sum;
      get(strip, v, gradient + (size_t)i * strip->stride, &sum);
      for (int r = 0; r < rows; r++)
        sum += LOAD(slope + r * STRIP, v) * LOAD_OR_SHARE(feature_of(strip, row, r, i), shared, v);
      put(strip, v, &sum, gradient + (size_t)i * strip->stride);
    }
}

/* What a pass for derivatives reads, [BLOCK, STRIP], and adds to, [d, ..] and [d, d, ..]. */
typedef struct {
  const double *slope, *curvature;
  double *gradient, *precision;
} Sums;

/* precision_ij -= sum over rows of curvature phi_i phi_j in vector v, for i .. i + height - 1 and j = from ..
 * from + GROUP - 1 or, on the diagonal (i = from), up to i; there also gradient_i += sum of slope phi_i. All
 * sums stay in registers. */
INLINE void add_tile(const HistoryStrip *strip, const bool shared, int v, int row, int rows, int i,
                     const int height, int from, const bool diagonal, const Sums *sums) {
  const size_t d = (size_t)strip->history->d, stride = strip->stride;
  const int width = diagonal ? height : GROUP;
  double *corner = sums->precision + ((size_t)i * d + (size_t)from) * stride;
  double *gradient = sums->gradient + (size_t)i * stride;
  Vector pull[GROUP], sum[GROUP][GROUP];
  for (int k = 0; k < height; k++) {
    if (diagonal) get(strip, v, gradient + (size_t)k * stride, &pull[k]);
    for (int j = 0; j < width; j++)
      if (!diagonal || j <= k) get(strip, v, corner + ((size_t)k * d + (size_t)j) * stride, &sum[k][j]);
  }
  for (int r = 0; r < rows; r++) {
    const double *phi_i = feature_of(strip, row, r, i), *phi_j = feature_of(strip, row, r, from);
    Vector slope = LOAD(sums->slope + r * STRIP, v), weight = LOAD(sums->curvature + r * STRIP, v), x[GROUP];
    for (int j = 0; j < width; j++) x[j] = LOAD_OR_SHARE(phi_j + j * STRIP, shared, v);
    for (int k = 0; k < height; k++) {
      Vector x_k = LOAD_OR_SHARE(phi_i + k * STRIP, shared, v), weighted = weight * x_k;
      if (diagonal) pull[k] += slope * x_k;
      for (int j = 0; j < width; j++)
        if (!diagonal || j <= k) sum[k][j] -= weighted * x[j];
    }
  }
  for (int k = 0; k < height; k++) {
    if (diagonal) put(strip, v, &pull[k], gradient + (size_t)k * stride);
    for (int j = 0; j < width; j++)
      if (!diagonal || j <= k) put(strip, v, &sum[k][j], corner + ((size_t)k * d + (size_t)j) * stride);
  }
}

/* The gradient and the lower triangle of the precision, GROUP rows and columns at a time. */
INLINE void add_derivatives(const HistoryStrip *strip, const bool shared, int row, int rows,
                            const Sums *sums) {
  const int d = strip->history->d;
  for (int v = 0; v < VECTORS; v++)
    for (int i = 0; i < d; i += GROUP)
      for (int from = 0; from <= i; from += GROUP) {
        int height = d - i < GROUP ? d - i : GROUP;
#define HEIGHT(h)                                                                                            \
  case h:                                                                                                    \
    if (from == i)                                                                                           \
      add_tile(strip, shared, v, row, rows, i, h, from, true, sums);                                         \
    else                                                                                                     \
      add_tile(strip, shared, v, row, rows, i, h, from, false, sums);                                        \
    break;
        switch (height) { HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4) HEIGHT(5) }
#undef HEIGHT
      }
}

static void clear(const HistoryStrip *strip, size_t rows, double *array) {
  for (size_t i = 0; i < rows; i++)
    memset(array + i * strip->stride, 0, (size_t)strip->count * sizeof *array);
}

INLINE void derivatives(const HistoryStrip *strip, const bool shared, const double *z, double *gradient,
                        double *precision) {
  const History *h = strip->history;
  const int total_rows = rows_of(strip, shared);
  double spread_y[CELLS], spread_counts[CELLS], u[CELLS], slope[CELLS], curvature[CELLS];
  const Sums sums = {slope, curvature, gradient, precision};
  clear(strip, (size_t)h->d, gradient);
  clear(strip, (size_t)h->d * (size_t)h->d, precision);
  for (int row = strip->history->skipped, rows; row < total_rows; row += rows) {
    rows = rows_of_page(row, total_rows);
    predict(strip, shared, row, rows, strip->shift, z, u);
    const double *y = fetch(strip, shared, row, rows, strip->rows->rewards, spread_y);
    const double *counts = fetch(strip, shared, row, rows, strip->rows->counts, spread_counts);
    h->likelihood->ops->derivatives(h->likelihood, rows * STRIP, y, u, slope, curvature);
    repeat(rows, counts, slope);
    repeat(rows, counts, curvature);
    add_derivatives(strip, shared, row, rows, &sums);
  }
}

void SIMD_NAME(history_kernel_derivatives)(const HistoryStrip *strip, const double *z, double *gradient,
                                           double *precision) {
  if (strip->shared)
    derivatives(strip, true, z, gradient, precision);
  else
    derivatives(strip, false, z, gradient, precision);
}

INLINE void deviance_and_gradient(const HistoryStrip *strip, const bool shared, const double *z,
                                  double *deviance, double *gradient) {
  const History *h = strip->history;
  const int total_rows = rows_of(strip, shared);
  double spread_y[CELLS], spread_counts[CELLS], u[CELLS], slope[CELLS], curvature[CELLS], terms[CELLS];
  double total[STRIP] = {0};
  if (gradient) clear(strip, (size_t)h->d, gradient);
  for (int row = strip->history->skipped, rows; row < total_rows; row += rows) {
    rows = rows_of_page(row, total_rows);
    predict(strip, shared, row, rows, strip->shift, z, u);
    const double *y = fetch(strip, shared, row, rows, strip->rows->rewards, spread_y);
    const double *counts = fetch(strip, shared, row, rows, strip->rows->counts, spread_counts);
    h->likelihood->ops->deviance(h->likelihood, rows * STRIP, y, u, terms);
    repeat(rows, counts, terms);
    for (int r = 0; r < rows; r++)
      for (int n = 0; n < STRIP; n++) total[n] += terms[r * STRIP + n];
    if (!gradient) continue;
    h->likelihood->ops->derivatives(h->likelihood, rows * STRIP, y, u, slope, curvature);
    repeat(rows, counts, slope);
    add_gradient(strip, shared, row, rows, slope, gradient);
  }
  memcpy(deviance, total, (size_t)strip->count * sizeof *deviance);
}

void SIMD_NAME(history_kernel_deviance)(const HistoryStrip *strip, const double *z, double *deviance,
                                        double *gradient) {
  if (strip->shared)
    deviance_and_gradient(strip, true, z, deviance, gradient);
  else
    deviance_and_gradient(strip, false, z, deviance, gradient);
}

INLINE void largest_move(const HistoryStrip *strip, const bool shared, const double *step, double *reach) {
  const int total_rows = rows_of(strip, shared);
  double u[CELLS], top[STRIP] = {0};
  for (int row = strip->history->skipped, rows; row < total_rows; row += rows) {
    rows = rows_of_page(row, total_rows);
    predict(strip, shared, row, rows, NULL, step, u);
    for (int r = 0; r < rows; r++)
      for (int n = 0; n < STRIP; n++) {
        double move = fabs(u[r * STRIP + n]);
        top[n] = move > top[n] ? move : top[n];
      }
  }
  memcpy(reach, top, (size_t)strip->count * sizeof *reach);
}

void SIMD_NAME(history_kernel_reach)(const HistoryStrip *strip, const double *step, double *reach) {
  if (strip->shared)
    largest_move(strip, true, step, reach);
  else
    largest_move(strip, false, step, reach);
}
