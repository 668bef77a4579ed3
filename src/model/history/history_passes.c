/* history_plain.c has the same passes in plain loops. A call is cut into columns of tiles. Rows are processed
 * a tile at a time, so that their features are read from memory once and then used from the first-level
 * cache. A column either has the features of neighbouring runs or shares those of one run; `shared` is a
 * compile-time constant in each of the two versions of a function. */
#define REAL_WIDTH SIMD_DOUBLES
#include "model/history/history_passes.h"

#include "core/real.h"
#include "model/history/history_internal.h"

enum { VECTORS = TILE_LANES / SIMD_DOUBLES, CELLS = TILE_ROWS * TILE_LANES };
/* Coordinates that are processed at once: in a prediction; in the sums, fewer with sanitizers
 * (core/simd.h). */
#ifdef SIMD_ONE_VERSION
enum { COORDINATES = 8, GROUP = 2 };
#else
enum { COORDINATES = 8, GROUP = 5 };
#endif
enum { ROWS = VECTORS < 8 ? 8 / VECTORS : 1 }; /* rows of a prediction that are processed side by side */

/* The tiles of at most TILE_LANES lanes of a view. The arrays of a call begin at the first of these lanes,
 * and their rows are `stride` apart. */
typedef struct {
  const History *history;
  const HistoryRows *rows; /* its content */
  int first, run; /* the first lane of the view; its run */
  bool shared; /* all lanes belong to `run`; else lane n belongs to run + n, and `run` begins a column */
  int count; /* lanes */
  size_t stride;
  const double *shift, *scale; /* theta = shift + scale z; may be NULL */
} HistoryColumn;

/* Returns the lanes from `first` of the view on that are processed together: draws of a single run or, with
 * one draw per run, a column of the history; none after the last. In a view that begins within a column, the
 * lanes before the next one are single draws of their runs. */
static HistoryColumn column_at(const HistoryView *view, int first) {
  const int draws = view->draws, lane = view->first + first, left = view->lanes - first;
  const bool whole = draws == 1 && lane % TILE_LANES == 0;
  int count = whole ? TILE_LANES : draws - lane % draws;
  history_check_view(view);
  count = count < TILE_LANES ? count : TILE_LANES;
  return (HistoryColumn){.history = view->history,
                         .rows = history_rows(view->history),
                         .first = first,
                         .run = lane / draws,
                         .shared = !whole,
                         .count = count < left ? count : left,
                         .stride = (size_t)view->lanes,
                         .shift = view->shift,
                         .scale = view->scale};
}

typedef double Unaligned __attribute__((vector_size(8 * SIMD_DOUBLES), aligned(8), may_alias));
/* Loads vector v of the column, or the number that all its lanes share. */
#define LOAD(from, v) ((Real)(*(const Unaligned *)((from) + (v)*SIMD_DOUBLES)))
#define LOAD_OR_SHARE(from, shared, v) ((shared) ? *(from) - (Real){0} : LOAD(from, v))

/* Returns how many rows to process; lanes whose run has fewer have counts of 0 for the rest. */
INLINE int history_rows_of(const HistoryColumn *column, const bool shared) {
  return shared ? column->rows->length[column->run] : column->rows->filled[column->run / TILE_LANES];
}

/* Returns how many rows, from `row` on, are in the tile of `row`. */
INLINE int rows_of_tile(int row, int total_rows) {
  const int tile = TILE_ROWS - row % TILE_ROWS, left = total_rows - row;
  return left < tile ? left : tile;
}

/* Returns where coordinate i of the features of row `row` + r is; coordinates are TILE_LANES apart. */
INLINE const double *feature_of(const HistoryColumn *column, int row, int r, int i) {
  const size_t d = (size_t)column->history->d;
  const size_t at = history_row(column->rows, column->run / TILE_LANES, row) + (size_t)r;
  return column->rows->features + (at * d + (size_t)i) * TILE_LANES + column->run % TILE_LANES;
}

/* Returns the lanes of vector v of the column, in the arrays of a call. */
INLINE RealLanes lanes_of(const HistoryColumn *column, int v) {
  const int first = v * SIMD_DOUBLES, left = column->count > first ? column->count - first : 0;
  return (RealLanes){(size_t)first, (size_t)(left < SIMD_DOUBLES ? left : SIMD_DOUBLES), column->stride};
}

/* Coordinates from .. from + count - 1 of theta in the lanes of a column. */
typedef struct {
  int from, count;
  Real theta[COORDINATES][VECTORS];
} Coordinates;

/* Adds to u[TILE_ROWS, TILE_LANES] what some coordinates contribute, in `height` rows from `row` + r on; with
 * the first coordinates the sums start at 0. */
INLINE void predict_rows(const HistoryColumn *column, const bool shared, int row, int r, const int height,
                         const Coordinates *some, double *u) {
  const int from = some->from;
  const size_t next = (size_t)column->history->d * TILE_LANES;
  const double *phi = feature_of(column, row, r, from);
  Real sum[ROWS][VECTORS];
  for (int q = 0; q < height; q++)
    for (int v = 0; v < VECTORS; v++) sum[q][v] = from > 0 ? LOAD(u + (r + q) * TILE_LANES, v) : (Real){0};
  for (int k = 0; k < some->count; k++)
    for (int q = 0; q < height; q++)
      for (int v = 0; v < VECTORS; v++)
        sum[q][v] += LOAD_OR_SHARE(phi + (size_t)q * next + k * TILE_LANES, shared, v) * some->theta[k][v];
  for (int q = 0; q < height; q++) memcpy(u + (r + q) * TILE_LANES, sum[q], sizeof sum[q]);
}

/* Computes u[TILE_ROWS, TILE_LANES] = phi' theta for `rows` rows from `row` on, with theta = shift + scale
 * z. */
INLINE void predict(const HistoryColumn *column, const bool shared, int row, int rows, const double *shift,
                    const double *z, double *u) {
  const int d = column->history->d;
  for (int from = 0; from < d; from += COORDINATES) {
    int r = 0;
    Coordinates some = {.from = from, .count = d - from < COORDINATES ? d - from : COORDINATES};
    for (int k = 0; k < some.count; k++) {
      double shift_i = shift ? shift[from + k] : 0, scale_i = column->scale ? column->scale[from + k] : 1;
      for (int v = 0; v < VECTORS; v++) {
        real_load(lanes_of(column, v), 1, z + (size_t)(from + k) * column->stride, &some.theta[k][v]);
        some.theta[k][v] = shift_i + scale_i * some.theta[k][v];
      }
    }
    for (; r + ROWS <= rows; r += ROWS) predict_rows(column, shared, row, r, ROWS, &some, u);
    for (; r < rows; r++) predict_rows(column, shared, row, r, 1, &some, u);
  }
}

/* Returns the rewards or counts of `rows` rows, [.., TILE_LANES]: in place, or, if the lanes share them,
 * copied to each lane of `spread`. */
INLINE const double *fetch(const HistoryColumn *column, const bool shared, int row, int rows,
                           const double *numbers, double *spread) {
  const size_t first = history_row(column->rows, column->run / TILE_LANES, row) * TILE_LANES;
  const double *from = numbers + first + column->run % TILE_LANES;
  if (!shared) return from;
  for (int r = 0; r < rows; r++)
    for (int n = 0; n < TILE_LANES; n++) spread[r * TILE_LANES + n] = from[r * TILE_LANES];
  return spread;
}

/* Multiplies x[rows, TILE_LANES] by the counts of the rows. */
INLINE void history_repeat(int rows, const double *counts, double *x) {
  for (int k = 0; k < rows * TILE_LANES; k++) x[k] *= counts[k];
}

/* Adds to gradient_i the sum over rows of slope phi_i. */
INLINE void history_add_gradient(const HistoryColumn *column, const bool shared, int row, int rows,
                                 const double *slope, double *gradient) {
  for (int i = 0; i < column->history->d; i++)
    for (int v = 0; v < VECTORS; v++) {
      const RealLanes at = lanes_of(column, v);
      Real sum;
      real_load(at, 1, gradient + (size_t)i * column->stride, &sum);
      for (int r = 0; r < rows; r++)
        sum += LOAD(slope + r * TILE_LANES, v) * LOAD_OR_SHARE(feature_of(column, row, r, i), shared, v);
      real_store(at, 1, &sum, gradient + (size_t)i * column->stride);
    }
}

/* What a pass for derivatives reads of `rows` rows from `row` on, [TILE_ROWS, TILE_LANES], and what it adds
 * to, [d, ..] and [d, d, ..]. */
typedef struct {
  int row, rows;
  const double *slope, *curvature;
  double *gradient, *precision;
} Sums;

/* Entries of the precision in vector v: i .. i + height - 1, and j = from .. from + GROUP - 1. */
typedef struct {
  int v, i, from;
} Group;

/* Subtracts from precision_ij the sum over rows of curvature phi_i phi_j, in a group of entries; on the
 * diagonal (i = from) only for j up to i, and there it also adds to gradient_i the sum of slope phi_i. All
 * sums stay in registers. */
INLINE void add_group(const int height, const HistoryColumn *column, const bool shared, Group group,
                      const bool diagonal, const Sums *sums) {
  const int v = group.v, i = group.i, from = group.from, row = sums->row, rows = sums->rows;
  const size_t d = (size_t)column->history->d, stride = column->stride;
  const int width = diagonal ? height : GROUP;
  const RealLanes at = lanes_of(column, v);
  double *corner = sums->precision + ((size_t)i * d + (size_t)from) * stride;
  double *gradient = sums->gradient + (size_t)i * stride;
  Real pull[GROUP], sum[GROUP][GROUP];
  for (int k = 0; k < height; k++) {
    if (diagonal) real_load(at, 1, gradient + (size_t)k * stride, &pull[k]);
    for (int j = 0; j < width; j++)
      if (!diagonal || j <= k) real_load(at, 1, corner + ((size_t)k * d + (size_t)j) * stride, &sum[k][j]);
  }
  for (int r = 0; r < rows; r++) {
    const double *phi_i = feature_of(column, row, r, i), *phi_j = feature_of(column, row, r, from);
    Real slope = LOAD(sums->slope + r * TILE_LANES, v), weight = LOAD(sums->curvature + r * TILE_LANES, v),
         x[GROUP];
    for (int j = 0; j < width; j++) x[j] = LOAD_OR_SHARE(phi_j + j * TILE_LANES, shared, v);
    for (int k = 0; k < height; k++) {
      Real x_k = LOAD_OR_SHARE(phi_i + k * TILE_LANES, shared, v), weighted = weight * x_k;
      if (diagonal) pull[k] += slope * x_k;
      for (int j = 0; j < width; j++)
        if (!diagonal || j <= k) sum[k][j] -= weighted * x[j];
    }
  }
  for (int k = 0; k < height; k++) {
    if (diagonal) real_store(at, 1, &pull[k], gradient + (size_t)k * stride);
    for (int j = 0; j < width; j++)
      if (!diagonal || j <= k) real_store(at, 1, &sum[k][j], corner + ((size_t)k * d + (size_t)j) * stride);
  }
}

/* Adds rows to the gradient and to the lower triangle of the precision, GROUP rows and columns at a time. */
INLINE void add_derivatives(const HistoryColumn *column, const bool shared, const Sums *sums) {
  const int d = column->history->d;
  for (int v = 0; v < VECTORS; v++)
    for (int i = 0; i < d; i += GROUP)
      for (int from = 0; from <= i; from += GROUP) {
        const int height = d - i < GROUP ? d - i : GROUP;
        const Group group = {.v = v, .i = i, .from = from};
        if (from == i)
          SIMD_CALL(height, GROUP, add_group, column, shared, group, true, sums);
        else
          SIMD_CALL(height, GROUP, add_group, column, shared, group, false, sums);
      }
}

static void history_passes_clear(const HistoryColumn *column, size_t rows, double *array) {
  for (size_t i = 0; i < rows; i++)
    memset(array + i * column->stride, 0, (size_t)column->count * sizeof *array);
}

/* Adds the deviance of single clicks, [rows, TILE_LANES], to total[TILE_LANES]: twice the logarithm of the
 * product over rows of 1 + exp(-|u|), which is at most 2^TILE_ROWS, plus twice the terms that are linear in
 * u. */
INLINE void add_clicks(int rows, const double *y, const double *counts, const double *u, double *total) {
  double e[CELLS] = {0}, product[TILE_LANES], linear[TILE_LANES] = {0};
  for (int k = 0; k < rows * TILE_LANES; k++) {
    const double size = fabs(u[k]);
    e[k] = size < 700 ? -size : -700;
  }
  for (int k = 0; k < rows * TILE_LANES; k += REAL_LANES) real_exp_many(e + k);
  for (int n = 0; n < TILE_LANES; n++) product[n] = 1;
  for (int r = 0; r < rows; r++)
    for (int n = 0; n < TILE_LANES; n++) {
      const int k = r * TILE_LANES + n;
      product[n] *= 1 + counts[k] * e[k];
      linear[n] += counts[k] * (u[k] < 0 ? -y[k] * u[k] : (1 - y[k]) * u[k]);
    }
  for (int n = 0; n < TILE_LANES; n += REAL_WIDTH) {
    Real factor;
    memcpy(&factor, product + n, sizeof factor);
    const Real logarithm = real_log(factor);
    memcpy(product + n, &logarithm, sizeof logarithm);
  }
  for (int n = 0; n < TILE_LANES; n++) total[n] += 2 * (product[n] + linear[n]);
}

INLINE void sum_rows(const HistoryColumn *column, const bool shared, const double *z, double *deviance,
                     double *gradient, double *precision) {
  const History *h = column->history;
  const Likelihood *likelihood = h->likelihood;
  const int total_rows = history_rows_of(column, shared);
  double spread_y[CELLS], spread_counts[CELLS], u[CELLS], slope[CELLS], curvature[CELLS], terms[CELLS];
  double total[TILE_LANES] = {0};
  Sums sums = {.slope = slope, .curvature = curvature, .gradient = gradient, .precision = precision};
  const bool clicks = !gradient && likelihood->ops == &likelihood_logistic && h->ops == &history_form_rows &&
                      !column->rows->discounted;
  if (gradient) history_passes_clear(column, (size_t)h->d, gradient);
  if (precision) history_passes_clear(column, (size_t)h->d * (size_t)h->d, precision);
  for (int row = h->skipped, rows; row < total_rows; row += rows) {
    rows = rows_of_tile(row, total_rows);
    predict(column, shared, row, rows, column->shift, z, u);
    const double *y = fetch(column, shared, row, rows, column->rows->rewards, spread_y);
    const double *counts = fetch(column, shared, row, rows, column->rows->counts, spread_counts);
    if (clicks) {
      add_clicks(rows, y, counts, u, total);
    } else if (deviance) {
      likelihood->ops->deviance(likelihood, rows * TILE_LANES, y, u, terms);
      history_repeat(rows, counts, terms);
      for (int r = 0; r < rows; r++)
        for (int n = 0; n < TILE_LANES; n++) total[n] += terms[r * TILE_LANES + n];
    }
    if (!gradient) continue;
    likelihood->ops->derivatives(likelihood, rows * TILE_LANES, y, u, slope, curvature);
    history_repeat(rows, counts, slope);
    if (precision) {
      history_repeat(rows, counts, curvature);
      sums.row = row;
      sums.rows = rows;
      add_derivatives(column, shared, &sums);
    } else {
      history_add_gradient(column, shared, row, rows, slope, gradient);
    }
  }
  if (deviance) memcpy(deviance, total, (size_t)column->count * sizeof *deviance);
}

/* Computes, unless they are NULL, deviance[..] and, with respect to theta, the gradient[d, ..] of the log
 * likelihood and the lower triangle of precision[d, d, ..], which needs the gradient. */
static void sum_column(const HistoryColumn *column, const double *z, double *deviance, double *gradient,
                       double *precision) {
  if (column->shared)
    sum_rows(column, true, z, deviance, gradient, precision);
  else
    sum_rows(column, false, z, deviance, gradient, precision);
}

/* Converts derivatives from theta to z, multiplies them by `temper`, and fills the upper triangle;
 * `precision` may be NULL. */
static void scale_derivatives(const HistoryColumn *column, double temper, double *gradient,
                              double *precision) {
  const double *scale = column->scale;
  const size_t d = (size_t)column->history->d, stride = column->stride;
  for (size_t i = 0; i < d; i++) {
    double s_i = scale ? scale[i] : 1;
    for (int n = 0; n < column->count; n++) gradient[i * stride + (size_t)n] *= temper * s_i;
    if (!precision) continue;
    for (size_t j = 0; j <= i; j++) {
      double s_ij = temper * s_i * (scale ? scale[j] : 1);
      double *low = precision + (i * d + j) * stride, *high = precision + (j * d + i) * stride;
      for (int n = 0; n < column->count; n++) high[n] = low[n] *= s_ij;
    }
  }
}

void history_derivatives(const HistoryView *view, const double *z, const bool *settled, double *gradient,
                         double *precision) {
  for (HistoryColumn at = column_at(view, 0); at.count > 0; at = column_at(view, at.first + at.count)) {
    const int first = at.first;
    double *own = precision ? precision + first : NULL;
    if (settled && !memchr(settled + first, false, (size_t)at.count)) continue; /* all lanes are settled */
    sum_column(&at, z + first, NULL, gradient + first, own);
    scale_derivatives(&at, view->history->temper, gradient + first, own);
  }
}

void history_passes_log_likelihood(const HistoryView *view, const double *z, double *log_likelihood,
                                   double *gradient) {
  const double temper = view->history->temper, *excess = history_rows(view->history)->excess;
  for (HistoryColumn at = column_at(view, 0); at.count > 0; at = column_at(view, at.first + at.count)) {
    double *own = gradient ? gradient + at.first : NULL;
    sum_column(&at, z + at.first, log_likelihood + at.first, own, NULL);
    if (gradient) scale_derivatives(&at, temper, own, NULL);
  }
  for (int n = 0; n < view->lanes; n++)
    log_likelihood[n] = -0.5 * temper * (log_likelihood[n] + excess[(view->first + n) / view->draws]);
}

INLINE void largest_move(const HistoryColumn *column, const bool shared, const double *step, double *reach) {
  const int total_rows = history_rows_of(column, shared);
  double u[CELLS], top[TILE_LANES] = {0};
  for (int row = column->history->skipped, rows; row < total_rows; row += rows) {
    rows = rows_of_tile(row, total_rows);
    predict(column, shared, row, rows, NULL, step, u);
    for (int r = 0; r < rows; r++)
      for (int n = 0; n < TILE_LANES; n++) {
        double move = fabs(u[r * TILE_LANES + n]);
        top[n] = move > top[n] ? move : top[n];
      }
  }
  memcpy(reach, top, (size_t)column->count * sizeof *reach);
}

void history_reach(const HistoryView *view, const double *step, double enough, double *reach) {
  for (HistoryColumn at = column_at(view, 0); at.count > 0; at = column_at(view, at.first + at.count)) {
    double bound[TILE_LANES], *found = reach + at.first; /* |phi| |theta step| */
    bool all = true;
    for (int n = 0; n < at.count; n++) {
      double square = 0;
      for (int i = 0; i < view->history->d; i++) {
        const double move = (view->scale ? view->scale[i] : 1) * step[i * view->lanes + at.first + n];
        square += move * move;
      }
      bound[n] = at.rows->longest[at.run + (at.shared ? 0 : n)] * sqrt(square);
      all = all && bound[n] <= enough;
    }
    if (!all && at.shared)
      largest_move(&at, true, step + at.first, found);
    else if (!all)
      largest_move(&at, false, step + at.first, found);
    /* A lane whose bound is small enough keeps it, so that the lane does not depend on its neighbours in the
     * column. */
    for (int n = 0; n < at.count; n++)
      if (bound[n] <= enough) found[n] = bound[n];
  }
}

/* Returns entry i, j of the covariance of theta. */
INLINE Real covariance_of(const HistoryColumn *column, RealLanes at, int i, int j, const double *covariance) {
  const double *scale = column->scale;
  Real entry;
  real_load(at, 1, covariance + (size_t)(i * column->history->d + j) * at.lanes, &entry);
  return scale ? entry * (scale[i] * scale[j]) : entry;
}

/* Computes variance[TILE_ROWS, TILE_LANES] = phi' C phi for `height` rows from `row` + r on, with C the
 * covariance of theta. */
INLINE void spread_rows(const HistoryColumn *column, int row, int r, const int height,
                        const double *covariance, double *variance) {
  const int d = column->history->d;
  const size_t next = (size_t)d * TILE_LANES;
  const double *phi = feature_of(column, row, r, 0);
  for (int v = 0; v < VECTORS; v++) {
    const RealLanes at = lanes_of(column, v);
    Real total[ROWS] = {{0}};
    for (int i = 0; i < d; i++) {
      Real sum[ROWS] = {{0}};
      for (int j = 0; j < i; j++) {
        const Real entry = covariance_of(column, at, i, j, covariance);
        for (int q = 0; q < height; q++) sum[q] += entry * LOAD(phi + (size_t)q * next + j * TILE_LANES, v);
      }
      const Real entry = covariance_of(column, at, i, i, covariance);
      for (int q = 0; q < height; q++) {
        const Real x = LOAD(phi + (size_t)q * next + i * TILE_LANES, v);
        total[q] += x * (2 * sum[q] + entry * x);
      }
    }
    for (int q = 0; q < height; q++)
      memcpy(variance + (r + q) * TILE_LANES + v * SIMD_DOUBLES, &total[q], sizeof total[q]);
  }
}

/* Sums slope phi and, in the lower triangle, curvature phi phi' over the rows of a column; the arrays are
 * those of the whole view. */
static void visit_column(const HistoryColumn *column, const double *mean, const double *covariance,
                         HistoryVisit *visit, void *context, double *precision, double *vector) {
  const History *h = column->history;
  const int total_rows = history_rows_of(column, false);
  double u[CELLS], variance[CELLS], slope[CELLS], curvature[CELLS], negative[CELLS];
  const int lane = column->first;
  Sums sums = {
      .slope = slope, .curvature = negative, .gradient = vector + lane, .precision = precision + lane};
  history_passes_clear(column, (size_t)h->d, sums.gradient);
  history_passes_clear(column, (size_t)h->d * (size_t)h->d, sums.precision);
  for (int row = h->skipped, rows; row < total_rows; row += rows) {
    int r = 0;
    rows = rows_of_tile(row, total_rows);
    predict(column, false, row, rows, column->shift, mean + lane, u);
    for (; r + ROWS <= rows; r += ROWS) spread_rows(column, row, r, ROWS, covariance + lane, variance);
    for (; r < rows; r++) spread_rows(column, row, r, 1, covariance + lane, variance);
    const size_t first = history_row(column->rows, column->run / TILE_LANES, row) * TILE_LANES;
    const HistoryMarginals cells = {.n = rows * TILE_LANES,
                                    .lane = lane,
                                    .lanes = lane + column->count,
                                    .y = column->rows->rewards + first,
                                    .counts = column->rows->counts + first,
                                    .mean = u,
                                    .variance = variance,
                                    .lambda = column->rows->lambda + first,
                                    .nu = column->rows->nu + first,
                                    .slope = slope,
                                    .curvature = curvature};
    visit(context, &cells);
    for (int k = 0; k < rows * TILE_LANES; k++) negative[k] = -curvature[k];
    sums.row = row;
    sums.rows = rows;
    add_derivatives(column, false, &sums);
  }
}

void history_visit_marginals(const HistoryView *view, const double *mean, const double *covariance,
                             HistoryVisit *visit, void *context, double *precision, double *vector) {
  const size_t d = (size_t)view->history->d, stride = (size_t)view->lanes;
  ASSERT(view->draws == 1 && view->first % TILE_LANES == 0);
  for (HistoryColumn at = column_at(view, 0); at.count > 0; at = column_at(view, at.first + at.count)) {
    const size_t first = (size_t)at.first, end = first + (size_t)at.count;
    visit_column(&at, mean, covariance, visit, context, precision, vector);
    scale_derivatives(&at, 1, vector + first, precision + first);
    for (size_t i = 0; i < d; i++)
      for (size_t j = 0; j < d; j++)
        for (size_t n = first; n < end; n++)
          vector[i * stride + n] += precision[(i * d + j) * stride + n] * mean[j * stride + n];
  }
}
