#include "model/history/network_rows.h"

#include "core/linalg/linalg.h"
#include "core/simd.h"
#include "model/history/history_internal.h"
#include "model/network/network_kernel.h"

#include <math.h>
#include <string.h>

enum { LANES = NETWORK_LANES };

/* ---- the form of the history: each run has its own rows, padded with zeros */

typedef struct {
  struct HistoryContent common;
  int capacity, width; /* most rows of a run; that rounded up to a multiple of NETWORK_LANES */
  float *inputs; /* [B, d, width]: phi */
  double *responses; /* [B, width]: y */
} HistoryInputs;

static HistoryInputs *history_inputs(const History *history) {
  ASSERT(history->ops == &history_form_inputs);
  return (HistoryInputs *)history->content;
}

static Status history_inputs_reserve(History *history, int rounds) {
  HistoryInputs *self = history_inputs(history);
  const size_t runs = (size_t)history->runs;
  const int width = (rounds + LANES - 1) / LANES * LANES;
  ALLOCATE(history->memory, self->inputs, runs * (size_t)history->d * (size_t)width);
  ALLOCATE(history->memory, self->responses, runs * (size_t)width);
  self->capacity = rounds;
  self->width = width;
  return STATUS_OK;
}

static void history_inputs_clear(History *history) {
  const HistoryInputs *self = history_inputs(history);
  const size_t responses = (size_t)history->runs * (size_t)self->width;
  memset(self->inputs, 0, responses * (size_t)history->d * sizeof *self->inputs);
  memset(self->responses, 0, responses * sizeof *self->responses);
}

static void history_inputs_append(History *history, const int *arm, const double *phi, const double *y) {
  const HistoryInputs *self = history_inputs(history);
  const size_t d = (size_t)history->d, runs = (size_t)history->runs, width = (size_t)self->width;
  ASSERT(history->rounds < self->capacity);
  for (size_t n = 0; n < runs; n++) {
    const size_t l = (size_t)history_observations(history, (int)n);
    if (arm && arm[n] < 0) continue;
    for (size_t i = 0; i < d; i++) self->inputs[(n * d + i) * width + l] = (float)phi[i * runs + n];
    self->responses[n * width + l] = y[n];
  }
}

const HistoryOps history_form_inputs = {.size = sizeof(HistoryInputs),
                                        .reserve = history_inputs_reserve,
                                        .append = history_inputs_append,
                                        .clear = history_inputs_clear};

/* ---- passes */

Status network_rows_create(Arena *memory, const NetworkShape *shape, NetworkRows *out) {
  const size_t p = network_parameters(shape);
  *out = (NetworkRows){.shape = *shape, .parameters = (int)p};
  ALLOCATE_ARRAYS(memory, p, &out->theta, &out->gradient);
  ALLOCATE(memory, out->workspace, network_workspace(shape));
  ALLOCATE(memory, out->jacobian, p * LANES);
  ALLOCATE(memory, out->square, p * p);
  return STATUS_OK;
}

/* The rows of a lane's run. */
typedef struct {
  const Likelihood *likelihood;
  int count;
  size_t width;
  const float *x; /* [d, width] */
  const double *y; /* [width] */
  double temper;
  double deviance; /* sum over the rows whose slopes were computed */
} Part;

/* Returns the rows of a lane, after loading its theta[p, lanes] in single precision. */
static Part network_rows_begin(NetworkRows *rows, const HistoryView *view, const double *theta, int lane) {
  const History *history = view->history;
  const HistoryInputs *kept = history_inputs(history);
  const size_t run = (size_t)((view->first + lane) / view->draws), width = (size_t)kept->width;
  for (int i = 0; i < rows->parameters; i++) rows->theta[i] = (float)theta[i * view->lanes + lane];
  return (Part){.likelihood = history->likelihood,
                .count = history_observations(history, (int)run),
                .width = width,
                .x = kept->inputs + run * (size_t)history->d * width,
                .y = kept->responses + run * width,
                .temper = history->temper};
}

/* Computes slopes and curvatures of LANES rows from `first` on, given the outputs y; 0 beyond the last
 * row. */
static void network_rows_derive(const Part *part, int first, const float *y, double *slope,
                                double *curvature) {
  double u[LANES] = {0};
  const int left = part->count - first, count = left < LANES ? left : LANES;
  for (int n = 0; n < count; n++) u[n] = y[n];
  part->likelihood->ops->derivatives(part->likelihood, count, part->y + first, u, slope, curvature);
  for (int n = count; n < LANES; n++) slope[n] = curvature[n] = 0;
}

static void network_rows_slope_of(void *context, int first, const float *y, float *slope) {
  double exact[LANES], curvature[LANES];
  network_rows_derive(context, first, y, exact, curvature);
  for (int n = 0; n < LANES; n++) slope[n] = (float)exact[n];
}

/* Does the same, and adds the deviance of the rows. */
static void network_rows_deviance_of(void *context, int first, const float *y, float *slope) {
  Part *part = context;
  double u[LANES] = {0}, deviance[LANES];
  const int left = part->count - first, count = left < LANES ? left : LANES;
  for (int n = 0; n < count; n++) u[n] = y[n];
  part->likelihood->ops->deviance(part->likelihood, count, part->y + first, u, deviance);
  for (int n = 0; n < count; n++) part->deviance += deviance[n];
  network_rows_slope_of(context, first, y, slope);
}

void network_rows_gradient(NetworkRows *rows, const HistoryView *view, const double *theta, double *value,
                           double *gradient) {
  for (int n = 0; n < view->lanes; n++) {
    Part part = network_rows_begin(rows, view, theta, n);
    const int padded = (part.count + LANES - 1) / LANES * LANES;
    const NetworkInputs inputs = {.lanes = padded, .x = part.x, .row = part.width};
    network_gradient(&rows->shape, rows->theta, inputs,
                     value ? network_rows_deviance_of : network_rows_slope_of, &part, rows->gradient,
                     rows->workspace);
    if (value) value[n] = -0.5 * part.temper * part.deviance;
    if (!gradient) continue;
    for (int i = 0; i < rows->parameters; i++)
      gradient[i * view->lanes + n] = part.temper * rows->gradient[i];
  }
}

/* Computes gradient += J' slope, then J <- diag(root) J. */
SIMD_CLONES
static void network_rows_weigh(int p, const float *restrict slope, const float *restrict root,
                               float *restrict jacobian, float *restrict gradient) {
  for (int i = 0; i < p; i++) {
    float sum = 0, *row = jacobian + (size_t)i * LANES;
    for (int n = 0; n < LANES; n++) sum += slope[n] * row[n];
    for (int n = 0; n < LANES; n++) row[n] *= root[n];
    gradient[i] += sum;
  }
}

/* Computes J for LANES rows from `first` on, with rows multiplied by (-l'')^1/2, and adds their gradient to
 * rows->gradient. */
static void network_rows_jacobian(NetworkRows *rows, const Part *part, int first) {
  float y[LANES], slope[LANES], root[LANES];
  double exact[LANES], curvature[LANES];
  network_sensitivity(&rows->shape, rows->theta, part->x + first, part->width, y, rows->jacobian,
                      rows->workspace);
  network_rows_derive(part, first, y, exact, curvature);
  for (int n = 0; n < LANES; n++) {
    slope[n] = (float)exact[n];
    root[n] = (float)sqrt(-curvature[n]);
  }
  network_rows_weigh(rows->parameters, slope, root, rows->jacobian, rows->gradient);
}

void network_rows_derivatives(NetworkRows *rows, const HistoryView *view, const double *theta,
                              double *gradient, double *precision) {
  const int p = rows->parameters, lanes = view->lanes;
  for (int n = 0; n < lanes; n++) {
    const Part part = network_rows_begin(rows, view, theta, n);
    memset(rows->gradient, 0, (size_t)p * sizeof *rows->gradient);
    memset(rows->square, 0, (size_t)p * (size_t)p * sizeof *rows->square);
    for (int first = 0; first < part.count; first += LANES) {
      network_rows_jacobian(rows, &part, first);
      linalg_add_square(p, LANES, rows->jacobian, rows->square);
    }
    for (int i = 0; i < p; i++) {
      gradient[i * lanes + n] = part.temper * rows->gradient[i];
      for (int j = 0; j <= i; j++)
        precision[(i * p + j) * lanes + n] = precision[(j * p + i) * lanes + n] =
            part.temper * rows->square[i * p + j];
    }
  }
}

SIMD_CLONES
static double network_sum_squares(size_t count, const float *restrict x) {
  float sum[LANES] = {0};
  double total = 0;
  for (size_t k = 0; k < count; k += LANES)
    for (int n = 0; n < LANES; n++) sum[n] += x[k + (size_t)n] * x[k + (size_t)n];
  for (int n = 0; n < LANES; n++) total += sum[n];
  return total;
}

void network_rows_trace(NetworkRows *rows, const HistoryView *view, const double *theta, double *trace) {
  for (int n = 0; n < view->lanes; n++) {
    const Part part = network_rows_begin(rows, view, theta, n);
    trace[n] = 0;
    for (int first = 0; first < part.count; first += LANES) {
      network_rows_jacobian(rows, &part, first);
      trace[n] += part.temper * network_sum_squares((size_t)rows->parameters * LANES, rows->jacobian);
    }
  }
}
