/* Passes over the rows of a history, at given points: what a likelihood that is not conjugate has in place of
 * evidence.
 *
 * Lanes are taken STRIP at a time and rows BLOCK at a time, so that the features of a block are read from
 * memory once and then used from the first-level cache. A strip takes its features from neighbouring runs
 * (one draw for each run) or shares those of one run (several draws): `spread` is 1 or 0, a constant in each
 * of the two versions that the compiler makes of a pass. */
#include "core/simd.h"
#include "core/status.h"
#include "model/history.h"

#include <math.h>
#include <string.h>

enum { STRIP = HISTORY_STRIP, BLOCK = 16, CELLS = BLOCK * STRIP }; /* lanes, rows */
enum { VECTOR = 8, VECTORS = STRIP / VECTOR, TILE = 8, GROUP = 5 };
typedef double Vector __attribute__((vector_size(8 * VECTOR)));
typedef double Unaligned __attribute__((vector_size(8 * VECTOR), aligned(8), may_alias));

#define INLINE static inline __attribute__((always_inline))

/* Lanes of one strip: `count` of them, from lane `first` of the view on; they belong to run `run` and, with
 * one draw for each run, to those after it. */
typedef struct {
  const HistoryView *view;
  int first, count, run;
} Strip;

/* A strip never spans two runs that have several draws each; with one draw for each run it is a strip of the
 * history. */
static Strip strip_at(const HistoryView *view, int first) {
  const int draws = view->draws, lane = view->first + first, left = view->lanes - first;
  int count = draws == 1 ? STRIP : draws - lane % draws;
  count = count < STRIP ? count : STRIP;
  return (Strip){view, first, count < left ? count : left, lane / draws};
}

static void check_view(const HistoryView *view) {
  const History *history = view->history;
  ASSERT(history->rewards && view->draws >= 1 && view->first >= 0);
  ASSERT(view->first + view->lanes <= history->runs * view->draws);
  ASSERT(view->draws > 1 || view->first % STRIP == 0);
}

/* The strip's number in a row: lane n has it at n * spread. */
INLINE const double *reward_of(const Strip *strip, int row) {
  const History *h = strip->view->history;
  return h->rewards + ((size_t)(strip->run / STRIP) * (size_t)h->capacity + (size_t)row) * STRIP + strip->run % STRIP;
}

/* That of coordinate i of phi; the next coordinate is STRIP further. */
INLINE const double *features_of(const Strip *strip, int row, int i) {
  const History *h = strip->view->history;
  const size_t at = (size_t)(strip->run / STRIP) * (size_t)h->capacity + (size_t)row;
  return h->features + (at * (size_t)h->d + (size_t)i) * STRIP + strip->run % STRIP;
}

/* The numbers of one coordinate or row for the vector v of a strip. */
#define LOAD(from, v) ((Vector)(*(const Unaligned *)((from) + (v) * VECTOR)))
#define LOAD_SPREAD(from, spread, v) ((spread) ? LOAD(from, v) : *(from) - (Vector){0})

/* The used lanes of a row of an array with the lane last; 0 in the others. */
INLINE void get_lanes(const Strip *strip, const double *from, Vector lanes[VECTORS]) {
  if (strip->count == STRIP) {
    memcpy(lanes, from, STRIP * sizeof *from);
    return;
  }
  memset(lanes, 0, STRIP * sizeof *from);
  memcpy(lanes, from, (size_t)strip->count * sizeof *from);
}

INLINE void put_lanes(const Strip *strip, const Vector lanes[VECTORS], double *to) {
  if (strip->count == STRIP)
    memcpy(to, lanes, STRIP * sizeof *to);
  else
    memcpy(to, lanes, (size_t)strip->count * sizeof *to);
}

/* The same for vector v of the strip alone. */
INLINE void get_vector(const Strip *strip, int v, const double *from, Vector *lanes) {
  int count = strip->count - v * VECTOR;
  if (count >= VECTOR) {
    *lanes = LOAD(from, v);
    return;
  }
  *lanes = (Vector){0};
  if (count > 0) memcpy(lanes, from + v * VECTOR, (size_t)count * sizeof *from);
}

INLINE void put_vector(const Strip *strip, int v, const Vector *lanes, double *to) {
  int count = strip->count - v * VECTOR;
  if (count >= VECTOR)
    memcpy(to + v * VECTOR, lanes, sizeof *lanes);
  else if (count > 0)
    memcpy(to + v * VECTOR, lanes, (size_t)count * sizeof *to);
}

/* The strip's lanes of coordinate i in a vector[d, lanes]. */
INLINE double *lanes_of(const Strip *strip, size_t i, double *vector) {
  return vector + i * (size_t)strip->view->lanes + strip->first;
}

/* u[BLOCK, STRIP] = phi' theta of `rows` rows from `row` on, theta = shift + scale z, TILE coordinates at a
 * time. */
INLINE void predict(const Strip *strip, const int spread, int row, int rows, const double *shift,
                    const double *z, double *u) {
  const HistoryView *view = strip->view;
  const int d = view->history->d;
  for (int from = 0; from < d; from += TILE) {
    int count = d - from < TILE ? d - from : TILE;
    Vector theta[TILE][VECTORS];
    for (int k = 0; k < count; k++) {
      get_lanes(strip, z + (size_t)(from + k) * (size_t)view->lanes + strip->first, theta[k]);
      double shift_i = shift ? shift[from + k] : 0, scale_i = view->scale ? view->scale[from + k] : 1;
      for (int v = 0; v < VECTORS; v++) theta[k][v] = shift_i + scale_i * theta[k][v];
    }
    for (int r = 0; r < rows; r++) {
      const double *phi = features_of(strip, row + r, from);
      Vector sum[VECTORS];
      for (int v = 0; v < VECTORS; v++) sum[v] = from > 0 ? LOAD(u + r * STRIP, v) : (Vector){0};
      for (int k = 0; k < count; k++, phi += STRIP)
        for (int v = 0; v < VECTORS; v++) sum[v] += LOAD_SPREAD(phi, spread, v) * theta[k][v];
      memcpy(u + r * STRIP, sum, sizeof sum);
    }
  }
}

/* y[BLOCK, STRIP]. */
INLINE void fetch_rewards(const Strip *strip, const int spread, int row, int rows, double *y) {
  for (int r = 0; r < rows; r++) {
    const double *from = reward_of(strip, row + r);
    for (int v = 0; v < VECTORS; v++) *(Unaligned *)(y + r * STRIP + v * VECTOR) = LOAD_SPREAD(from, spread, v);
  }
}

/* gradient_i += sum over rows of slope phi_i. */
INLINE void add_gradient(const Strip *strip, const int spread, int row, int rows, const double *slope,
                         double *gradient) {
  const History *h = strip->view->history;
  for (int i = 0; i < h->d; i++) {
    Vector sum[VECTORS];
    double *gradient_i = lanes_of(strip, (size_t)i, gradient);
    get_lanes(strip, gradient_i, sum);
    for (int r = 0; r < rows; r++) {
      const double *phi = features_of(strip, row + r, i);
      for (int v = 0; v < VECTORS; v++) sum[v] += LOAD(slope + r * STRIP, v) * LOAD_SPREAD(phi, spread, v);
    }
    put_lanes(strip, sum, gradient_i);
  }
}

/* What a pass for derivatives adds up: slope and curvature are [BLOCK, STRIP], gradient and precision those of
 * the whole view. */
typedef struct {
  const double *slope, *curvature;
  double *gradient, *precision;
} Sums;

/* Loops of a constant number of turns, so that the compiler unrolls them and keeps each sum in a register; a
 * constant `count` in the version that it makes removes the turns beyond. */
#define EACH(k, count)                                                                                       \
  _Pragma("GCC unroll 5") for (int k = 0; k < GROUP; k++) if (k < (count))

/* Rows i .. i + height - 1 of the precision, minus the sum over rows of curvature phi_i phi_j, in vector v of the
 * strip: on the diagonal up to column i, and with it the gradient, the sum of slope phi_i; below it the
 * columns from .. from + GROUP - 1. All sums stay in registers. */
INLINE void add_tile(const Strip *strip, const int spread, int v, int row, int rows, int i, const int height,
                     int from, const bool diagonal, const Sums *sums) {
  const size_t d = (size_t)strip->view->history->d;
  Vector pull[GROUP], sum[GROUP][GROUP];
  EACH(k, height) {
    if (diagonal) get_vector(strip, v, lanes_of(strip, (size_t)(i + k), sums->gradient), &pull[k]);
    EACH(j, diagonal ? k + 1 : GROUP)
    get_vector(strip, v, lanes_of(strip, (size_t)(i + k) * d + (size_t)(from + j), sums->precision), &sum[k][j]);
  }
  for (int r = 0; r < rows; r++) {
    const double *phi_i = features_of(strip, row + r, i), *phi_j = features_of(strip, row + r, from);
    Vector x[GROUP], slope = LOAD(sums->slope + r * STRIP, v), curvature = LOAD(sums->curvature + r * STRIP, v);
    EACH(j, diagonal ? height : GROUP) x[j] = LOAD_SPREAD(phi_j + j * STRIP, spread, v);
    EACH(k, height) {
      Vector x_k = diagonal ? x[k] : LOAD_SPREAD(phi_i + k * STRIP, spread, v), weighted = curvature * x_k;
      if (diagonal) pull[k] += slope * x_k;
      EACH(j, diagonal ? k + 1 : GROUP) sum[k][j] -= weighted * x[j];
    }
  }
  EACH(k, height) {
    if (diagonal) put_vector(strip, v, &pull[k], lanes_of(strip, (size_t)(i + k), sums->gradient));
    EACH(j, diagonal ? k + 1 : GROUP)
    put_vector(strip, v, &sum[k][j], lanes_of(strip, (size_t)(i + k) * d + (size_t)(from + j), sums->precision));
  }
}

/* Gradient and lower triangle of the precision, GROUP coordinates at a time. */
INLINE void add_derivatives(const Strip *strip, const int spread, int row, int rows, const Sums *sums) {
  const int d = strip->view->history->d;
  for (int v = 0; v < VECTORS; v++)
    for (int i = 0; i < d; i += GROUP)
      for (int from = 0; from <= i; from += GROUP) {
        int height = d - i < GROUP ? d - i : GROUP;
#define HEIGHT(h)                                                                                            \
  case h:                                                                                                    \
    if (from == i)                                                                                           \
      add_tile(strip, spread, v, row, rows, i, h, from, true, sums);                                         \
    else                                                                                                     \
      add_tile(strip, spread, v, row, rows, i, h, from, false, sums);                                        \
    break;
        switch (height) { HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4) HEIGHT(5) }
#undef HEIGHT
      }
}

/* Gradient and lower triangle of the precision, with respect to theta. */
INLINE void sum_derivatives(const Strip *strip, const int spread, const double *z, double *gradient,
                            double *precision) {
  const History *h = strip->view->history;
  const size_t d = (size_t)h->d, bytes = (size_t)strip->count * sizeof *z;
  double y[CELLS], u[CELLS], slope[CELLS], curvature[CELLS];
  const Sums sums = {slope, curvature, gradient, precision};
  for (size_t i = 0; i < d; i++) {
    memset(lanes_of(strip, i, gradient), 0, bytes);
    for (size_t j = 0; j <= i; j++) memset(lanes_of(strip, i * d + j, precision), 0, bytes);
  }
  for (int row = 0; row < h->rounds; row += BLOCK) {
    int rows = h->rounds - row < BLOCK ? h->rounds - row : BLOCK;
    predict(strip, spread, row, rows, strip->view->shift, z, u);
    fetch_rewards(strip, spread, row, rows, y);
    h->likelihood->ops->derivatives(h->likelihood, rows * STRIP, y, u, slope, curvature);
    add_derivatives(strip, spread, row, rows, &sums);
  }
}

/* From theta to z, and the upper triangle. */
static void scale_derivatives(const Strip *strip, double *gradient, double *precision) {
  const double *scale = strip->view->scale;
  const size_t d = (size_t)strip->view->history->d;
  for (size_t i = 0; i < d; i++) {
    double s_i = scale ? scale[i] : 1, *gradient_i = lanes_of(strip, i, gradient);
    for (int n = 0; n < strip->count; n++) gradient_i[n] *= s_i;
    for (size_t j = 0; j <= i; j++) {
      double s_ij = s_i * (scale ? scale[j] : 1);
      double *low = lanes_of(strip, i * d + j, precision), *high = lanes_of(strip, j * d + i, precision);
      for (int n = 0; n < strip->count; n++) high[n] = low[n] *= s_ij;
    }
  }
}

SIMD_CLONES
static void derivatives_of_strip(const Strip *strip, const double *z, double *gradient, double *precision) {
  if (strip->view->draws == 1)
    sum_derivatives(strip, 1, z, gradient, precision);
  else
    sum_derivatives(strip, 0, z, gradient, precision);
}

static bool all_settled(const Strip *strip, const bool *settled) {
  for (int n = 0; settled && n < strip->count; n++)
    if (!settled[strip->first + n]) return false;
  return settled != NULL;
}

void history_derivatives(const HistoryView *view, const double *z, const bool *settled, double *gradient,
                         double *precision) {
  check_view(view);
  for (int first = 0; first < view->lanes;) {
    Strip strip = strip_at(view, first);
    if (!all_settled(&strip, settled)) {
      derivatives_of_strip(&strip, z, gradient, precision);
      scale_derivatives(&strip, gradient, precision);
    }
    first += strip.count;
  }
}

INLINE void sum_deviance(const Strip *strip, const int spread, const double *z, double *deviance,
                         double *gradient) {
  const History *h = strip->view->history;
  const size_t bytes = (size_t)strip->count * sizeof *z;
  double y[CELLS], u[CELLS], slope[CELLS], curvature[CELLS], terms[CELLS], total[STRIP] = {0};
  for (int i = 0; gradient && i < h->d; i++) memset(lanes_of(strip, (size_t)i, gradient), 0, bytes);
  for (int row = 0; row < h->rounds; row += BLOCK) {
    int rows = h->rounds - row < BLOCK ? h->rounds - row : BLOCK;
    predict(strip, spread, row, rows, strip->view->shift, z, u);
    fetch_rewards(strip, spread, row, rows, y);
    h->likelihood->ops->deviance(h->likelihood, rows * STRIP, y, u, terms);
    for (int r = 0; r < rows; r++)
      for (int n = 0; n < STRIP; n++) total[n] += terms[r * STRIP + n];
    if (!gradient) continue;
    h->likelihood->ops->derivatives(h->likelihood, rows * STRIP, y, u, slope, curvature);
    add_gradient(strip, spread, row, rows, slope, gradient);
  }
  memcpy(deviance + strip->first, total, bytes);
}

SIMD_CLONES
static void deviance_of_strip(const Strip *strip, const double *z, double *deviance, double *gradient) {
  if (strip->view->draws == 1)
    sum_deviance(strip, 1, z, deviance, gradient);
  else
    sum_deviance(strip, 0, z, deviance, gradient);
}

void history_deviance(const HistoryView *view, const double *z, double *deviance, double *gradient) {
  check_view(view);
  for (int first = 0; first < view->lanes;) {
    Strip strip = strip_at(view, first);
    deviance_of_strip(&strip, z, deviance, gradient);
    for (int i = 0; gradient && view->scale && i < view->history->d; i++)
      for (int n = 0; n < strip.count; n++) lanes_of(&strip, (size_t)i, gradient)[n] *= view->scale[i];
    first += strip.count;
  }
}

/* ---- reach */

/* |phi| |theta step| of every lane, at most; returns whether all are at most `enough`. */
static bool bound_reach(const Strip *strip, const double *step, double enough, double *reach) {
  const HistoryView *view = strip->view;
  bool all = true;
  for (int n = 0; n < strip->count; n++) {
    double square = 0;
    for (int i = 0; i < view->history->d; i++) {
      double move = (view->scale ? view->scale[i] : 1) * step[i * view->lanes + strip->first + n];
      square += move * move;
    }
    int run = (view->first + strip->first + n) / view->draws;
    reach[strip->first + n] = view->history->longest[run] * sqrt(square);
    all = all && reach[strip->first + n] <= enough;
  }
  return all;
}

INLINE void largest_move(const Strip *strip, const int spread, const double *step, double *reach) {
  const History *h = strip->view->history;
  double u[CELLS], top[STRIP] = {0};
  for (int row = 0; row < h->rounds; row += BLOCK) {
    int rows = h->rounds - row < BLOCK ? h->rounds - row : BLOCK;
    predict(strip, spread, row, rows, NULL, step, u);
    for (int r = 0; r < rows; r++)
      for (int n = 0; n < STRIP; n++) {
        double move = fabs(u[r * STRIP + n]);
        top[n] = move > top[n] ? move : top[n];
      }
  }
  memcpy(reach + strip->first, top, (size_t)strip->count * sizeof *reach);
}

SIMD_CLONES
static void reach_of_strip(const Strip *strip, const double *step, double *reach) {
  if (strip->view->draws == 1)
    largest_move(strip, 1, step, reach);
  else
    largest_move(strip, 0, step, reach);
}

void history_reach(const HistoryView *view, const double *step, double enough, double *reach) {
  check_view(view);
  for (int first = 0; first < view->lanes;) {
    Strip strip = strip_at(view, first);
    if (!bound_reach(&strip, step, enough, reach)) reach_of_strip(&strip, step, reach);
    first += strip.count;
  }
}
