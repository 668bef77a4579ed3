#include "model/history/history_density.h"

#include "core/linalg/linalg.h"
#include "core/real.h"
#include "model/history/history_passes.h"

#include <float.h>

/* Added to the diagonal of the evidence when its centre is computed, as a share of its trace. */
static const double RIDGE = 1e-10;

Status history_density_create(Arena *memory, int d, int runs, const Likelihood *likelihood,
                              HistoryDensity *out) {
  const size_t vectors = (size_t)d * (size_t)runs;
  *out = (HistoryDensity){.runs = runs};
  if (likelihood_has_network(likelihood))
    return network_rows_create(memory, &likelihood->network, &out->network);
  ALLOCATE_ARRAYS(memory, (size_t)d * vectors, &out->precision, &out->root);
  ALLOCATE_ARRAYS(memory, vectors, &out->vector, &out->centre);
  ALLOCATE(memory, out->peak, runs);
  ALLOCATE(memory, out->jitters, runs);
  return STATUS_OK;
}

/* ---- where it is */

/* Moves to a view, with the evidence about the origin of its coordinates, if that is the whole log
 * likelihood. */
static void history_density_move(HistoryDensity *self, const HistoryView *view) {
  self->view = *view;
  self->first_run = view->first / view->draws;
  self->runs = (view->first + view->lanes - 1) / view->draws - self->first_run + 1;
  self->whole = false;
  self->most = 0; /* a deviance is never negative */
  if (likelihood_has_network(view->history->likelihood)) return;
  const HistoryView in_theta = history_view(view->history, 1, self->first_run, self->runs),
                    once = history_view_in(in_theta, view->shift, view->scale);
  ASSERT(!history_is_filtered(view->history));
  self->diagonal = history_is_diagonal(view->history);
  if (self->diagonal) history_diagonal(&once, self->precision, self->vector);
  self->whole = self->diagonal || history_evidence(&once, self->precision, self->vector);
  if (self->whole) self->most = INFINITY; /* close to 0, but not exactly */
}

/* Adds c' b / 2 to the peaks. */
static void history_density_add_peaks(HistoryDensity *self) {
  const int d = self->view.history->d, m = self->runs;
  for (int i = 0; i < d; i++)
    for (int r = 0; r < m; r++) self->peak[r] += 0.5 * self->centre[i * m + r] * self->vector[i * m + r];
}

/* Takes b about the centres. */
static void history_density_centre(HistoryDensity *self) {
  const int d = self->view.history->d, m = self->runs;
  memset(self->peak, 0, (size_t)m * sizeof *self->peak);
  history_density_add_peaks(self);
  for (int i = 0; i < d; i++) {
    if (self->diagonal) self->vector[i] -= self->precision[i] * self->centre[i];
    const int others = self->diagonal ? 0 : d;
    for (int j = 0; j < others; j++)
      for (int r = 0; r < m; r++)
        self->vector[i * m + r] -= self->precision[(i * d + j) * m + r] * self->centre[j * m + r];
  }
  history_density_add_peaks(self); /* b' c - c' Lambda c / 2 is half of c' b before and after */
}

/* Finds the centres, Lambda^-1 b with a ridge so that they exist, and takes b about them: what is left of it
 * is small. */
static void history_density_find_centres(HistoryDensity *self, int64_t *fallbacks) {
  const int d = self->view.history->d, m = self->runs;
  if (self->diagonal) {
    for (int i = 0; i < d; i++) {
      const double q = self->precision[i];
      self->centre[i] = q > 0 ? self->vector[i] / q : 0;
    }
    history_density_centre(self);
    return;
  }
  memcpy(self->root, self->precision, (size_t)(d * d * m) * sizeof *self->root);
  memcpy(self->centre, self->vector, (size_t)(d * m) * sizeof *self->centre);
  memset(self->jitters, 0, (size_t)m * sizeof *self->jitters);
  for (int r = 0; r < m; r++) {
    double trace = 0;
    for (int i = 0; i < d; i++) trace += self->precision[i * (d + 1) * m + r];
    for (int i = 0; i < d; i++)
      self->root[i * (d + 1) * m + r] += RIDGE * trace + DBL_MIN; /* even of zeros */
  }
  linalg_factor_cholesky(d, m, self->root, self->jitters);
  linalg_factor_solve(d, m, self->root, self->centre);
  history_density_centre(self);
  if (!fallbacks) return;
  for (int r = 0; r < m; r++) fallbacks[self->first_run + r] += self->jitters[r];
}

void history_density_at(HistoryDensity *self, const HistoryView *view, int64_t *fallbacks) {
  history_density_move(self, view);
  if (self->whole) history_density_find_centres(self, fallbacks);
}

void history_density_set_points(HistoryDensity *self, int points) {
  ASSERT(self->runs == 1);
  self->view.draws = points;
  self->view.first = self->first_run * points;
  self->view.lanes = points;
}

double history_density_constant(const HistoryDensity *self) {
  ASSERT(self->runs == 1);
  HistoryView once = self->view;
  double residual;
  if (!self->whole) return 0;
  once.draws = once.lanes = 1;
  once.first = self->first_run;
  history_residual(&once, &residual);
  return self->peak[0] - 0.5 * residual;
}

/* ---- what is new */

Status history_marks_create(Arena *memory, int d, int runs, HistoryMarks *out) {
  *out = (HistoryMarks){.entries = d * d + d};
  ALLOCATE(memory, out->rows, runs);
  ALLOCATE(memory, out->evidence, (size_t)runs * (size_t)out->entries);
  return STATUS_OK;
}

void history_marks_clear(HistoryMarks *marks, int runs) {
  memset(marks->rows, 0, (size_t)runs * sizeof *marks->rows);
  memset(marks->evidence, 0, (size_t)runs * (size_t)marks->entries * sizeof *marks->evidence);
}

/* Replaces now[n] by what it has more than before[n], which becomes what now[n] was. */
static void history_density_subtract(int n, double *now, double *before) {
  for (int k = 0; k < n; k++) {
    const double total = now[k];
    now[k] = total - before[k];
    before[k] = total;
  }
}

void history_density_since(HistoryDensity *self, const History *history, int run, int points,
                           HistoryMarks *marks) {
  const int d = history->d;
  const HistoryView view = history_points(history, run, points);
  double *precision = marks->evidence + (size_t)run * (size_t)marks->entries, *vector = precision + d * d;
  history_density_move(self, &view);
  if (self->whole) {
    history_density_subtract(self->diagonal ? d : d * d, self->precision, precision);
    history_density_subtract(d, self->vector, vector);
    memset(self->centre, 0, (size_t)d * sizeof *self->centre);
  } else {
    self->recent = history_since(history, marks->rows[run]);
    self->view.history = &self->recent;
  }
  marks->rows[run] = history_observations(history, run);
}

/* ---- values and gradients of evidence */

/* Neighbouring lanes, all with the evidence of run `run` of m, or lane n with that of run n. Whether it is
 * shared, and m, are compile-time constants in each version of a function below. */
typedef struct {
  bool shared;
  size_t runs; /* m */
  int run;
  size_t first, end, total; /* of N lanes: those from `first` to before `end`; N */
  int d;
  const double *precision, *vector, *centre; /* of the density */
} DensityLanes;

/* Returns the lanes of the view from `first` on that are processed together. */
static DensityLanes density_lanes_at(const HistoryDensity *self, size_t first) {
  const HistoryView *view = &self->view;
  const size_t total = (size_t)view->lanes;
  DensityLanes lanes = {.runs = (size_t)self->runs,
                        .first = first,
                        .end = total,
                        .total = total,
                        .d = view->history->d,
                        .precision = self->precision,
                        .vector = self->vector,
                        .centre = self->centre};
  if (view->draws == 1) return lanes;
  const int run = (view->first + (int)first) / view->draws;
  const size_t end = (size_t)((run + 1) * view->draws - view->first); /* of the run's lanes */
  lanes.shared = true;
  lanes.run = run - self->first_run;
  lanes.end = end < total ? end : total;
  return lanes;
}

/* Returns the vector of the lanes that begins at `first`. */
INLINE RealLanes density_vector(DensityLanes lanes, size_t first) {
  const size_t left = lanes.end - first;
  return (RealLanes){first, left < REAL_WIDTH ? left : REAL_WIDTH, lanes.total};
}

/* Returns entry `index` of the evidence of a vector of lanes: [.., m]. */
INLINE Real density_entry(DensityLanes lanes, RealLanes at, const double *evidence, int index) {
  const double *row = evidence + (size_t)index * lanes.runs;
  Real x;
  if (lanes.shared) return real_of(row[lanes.run]);
  real_load((RealLanes){at.first, at.count, lanes.runs}, 1, row, &x);
  return x;
}

/* Returns y_i = z_i - c_i. */
INLINE Real density_offset(DensityLanes lanes, RealLanes at, const double *z, int i) {
  Real y;
  real_load(at, 1, z + (size_t)i * at.lanes, &y);
  return y - density_entry(lanes, at, lanes.centre, i);
}

/* Adds y_i (b_i - Lambda_ii y_i / 2 - sum over k < i of Lambda_ik y_k) to sum, for rows i, i + 1, .. Each
 * pair is taken once, which is half the work, and the rows share what they load. */
enum { DENSITY_ROWS = 4 };
INLINE void density_add_rows(DensityLanes lanes, RealLanes at, int i, const int rows, const double *z,
                             Real *sum) {
  const int d = lanes.d;
  const double *precision = lanes.precision;
  Real product[DENSITY_ROWS], own[DENSITY_ROWS];
  for (int r = 0; r < rows; r++) product[r] = (Real){0};
  for (int k = 0; k < i; k++) {
    const Real other = density_offset(lanes, at, z, k);
    for (int r = 0; r < rows; r++) product[r] += density_entry(lanes, at, precision, (i + r) * d + k) * other;
  }
  for (int r = 0; r < rows; r++) {
    own[r] = density_offset(lanes, at, z, i + r);
    for (int s = 0; s < r; s++)
      product[r] += density_entry(lanes, at, precision, (i + r) * d + i + s) * own[s];
    product[r] += 0.5 * density_entry(lanes, at, precision, (i + r) * (d + 1)) * own[r];
    *sum += own[r] * (density_entry(lanes, at, lanes.vector, i + r) - product[r]);
  }
}

/* Computes the values, b' y - y' Lambda y / 2. */
INLINE void density_values(DensityLanes lanes, const double *z, double *value) {
  const int d = lanes.d;
  for (size_t first = lanes.first; first < lanes.end; first += REAL_WIDTH) {
    const RealLanes at = density_vector(lanes, first);
    Real sum = {0};
    int i = 0;
    for (; i + DENSITY_ROWS <= d; i += DENSITY_ROWS) density_add_rows(lanes, at, i, DENSITY_ROWS, z, &sum);
    for (; i < d; i++) density_add_rows(lanes, at, i, 1, z, &sum);
    real_store(at, 1, &sum, value);
  }
}

/* Computes the gradients, b - Lambda y. */
INLINE void density_gradients(DensityLanes lanes, const double *z, double *gradient) {
  const int d = lanes.d;
  for (size_t first = lanes.first; first < lanes.end; first += REAL_WIDTH) {
    const RealLanes at = density_vector(lanes, first);
    for (int i = 0; i < d; i++) {
      Real sum = density_entry(lanes, at, lanes.vector, i);
      for (int k = 0; k < d; k++)
        sum -= density_entry(lanes, at, lanes.precision, i * d + k) * density_offset(lanes, at, z, k);
      real_store(at, 1, &sum, gradient + (size_t)i * at.lanes);
    }
  }
}

/* Computes both; the gradient may be NULL. */
INLINE void density_evaluate(DensityLanes lanes, const double *z, double *value, double *gradient) {
  density_values(lanes, z, value);
  if (gradient) density_gradients(lanes, z, gradient);
}

SIMD_CLONES
static void density_evaluate_single(DensityLanes lanes, const double *z, double *value, double *gradient) {
  lanes.shared = true;
  lanes.runs = 1;
  lanes.run = 0;
  density_evaluate(lanes, z, value, gradient);
}

SIMD_CLONES
static void density_evaluate_shared(DensityLanes lanes, const double *z, double *value, double *gradient) {
  lanes.shared = true;
  density_evaluate(lanes, z, value, gradient);
}

SIMD_CLONES
static void density_evaluate_each(DensityLanes lanes, const double *z, double *value, double *gradient) {
  lanes.shared = false;
  density_evaluate(lanes, z, value, gradient);
}

/* Computes both where the precision is diagonal. */
SIMD_CLONES
static void density_evaluate_diagonal(const HistoryDensity *self, const double *restrict z,
                                      double *restrict value, double *restrict gradient) {
  const size_t d = (size_t)self->view.history->d, lanes = (size_t)self->view.lanes;
  memset(value, 0, lanes * sizeof *value);
  for (size_t i = 0; i < d; i++) {
    const double q = self->precision[i], b = self->vector[i], centre = self->centre[i];
    const double *restrict row = z + i * lanes;
    for (size_t n = 0; n < lanes; n++) {
      const double y = row[n] - centre;
      value[n] += y * (b - 0.5 * q * y);
      if (gradient) gradient[i * lanes + n] = b - q * y;
    }
  }
}

/* Computes values and gradients of the evidence of each lane. */
static void history_density_of_evidence(const HistoryDensity *self, const double *z, double *value,
                                        double *gradient) {
  DensityLanes lanes = density_lanes_at(self, 0);
  for (; lanes.first < (size_t)self->view.lanes; lanes = density_lanes_at(self, lanes.end)) {
    if (lanes.runs == 1)
      density_evaluate_single(lanes, z, value, gradient);
    else if (lanes.shared)
      density_evaluate_shared(lanes, z, value, gradient);
    else
      density_evaluate_each(lanes, z, value, gradient);
  }
}

void history_density(HistoryDensity *self, const double *z, double *value, double *gradient) {
  if (self->whole && self->diagonal)
    density_evaluate_diagonal(self, z, value, gradient);
  else if (self->whole)
    history_density_of_evidence(self, z, value, gradient);
  else if (likelihood_has_network(self->view.history->likelihood))
    network_rows_gradient(&self->network, &self->view, z, value, gradient);
  else
    history_log_likelihood(&self->view, z, value, gradient);
}
