#include "sampler/mixture/mixture_approximation.h"

#include "core/lanes.h"
#include "core/linalg.h"
#include "model/history/history_passes.h"
#include "model/history/likelihood.h"

#include <string.h>

/* Tolerances of modes: those from which expectation propagation starts need not be as accurate as
 * Laplace's. */
static const double START_TOLERANCE = 1e-2, MODE_TOLERANCE = 1e-8;

Status mixture_approximation_create(Arena *memory, const Mixture *prior, int runs, bool laplace,
                                    MixtureApproximation *out) {
  const size_t d = (size_t)prior->d, cells = (size_t)prior->components * (size_t)runs, n = CHUNK_LANES;
  *out = (MixtureApproximation){.prior = prior, .runs = runs, .laplace = laplace};
  TRY(irls_create(memory, prior->d, CHUNK_LANES, laplace ? MODE_TOLERANCE : START_TOLERANCE, &out->irls));
  if (!laplace) TRY(ep_create(memory, prior->d, CHUNK_LANES, EP_TOLERANCE, &out->ep));
  ALLOCATE(memory, out->prior_precision, d * d * n);
  ALLOCATE_ARRAYS(memory, d * n, out->prior_vector, out->mode, out->image);
  ALLOCATE_ARRAYS(memory, n, out->log_scale, out->value);
  ALLOCATE(memory, out->last, (d + d * d) * cells);
  return STATUS_OK;
}

History mixture_approximation_rows(const History *history) {
  return history_is_filtered(history) ? history_retained(history) : *history;
}

bool mixture_approximation_is_warm(const MixtureApproximation *self, const History *history) {
  const int news = mixture_approximation_rows(history).rounds - self->last_rounds;
  return self->last_rounds > 0 && (news == 0 || news == 1);
}

/* Returns the evidence of component c for the runs of `view`, as kept in the last round. */
static double *mixture_approximation_last(const MixtureApproximation *self, int c, const HistoryView *view) {
  const int rows = self->prior->d * (self->prior->d + 1);
  return self->last + (size_t)(c * rows) * (size_t)self->runs + view->first;
}

/* Starts expectation propagation at the mode or, if each run can have at most one new click since the
 * previous round, where that round ended. */
void mixture_approximation_find(MixtureApproximation *self, int c, const HistoryView *view, bool warm,
                                double *evidence, int64_t *fallbacks) {
  const int d = self->prior->d, lanes = view->lanes, entries = d + d * d;
  double *vector = evidence, *precision = evidence + d * lanes;
  const History rows = mixture_approximation_rows(view->history);
  const HistoryView there = {&rows, 1, view->first, lanes, NULL, NULL};
  const bool bounded = rows.likelihood->ops == &likelihood_logistic; /* so no site overshoots */
  lanes_repeat(d * d, lanes, self->prior->precision + c * d * d, self->prior_precision);
  lanes_repeat(d, lanes, self->prior->information + c * d, self->prior_vector);
  memset(self->log_scale, 0, (size_t)lanes * sizeof *self->log_scale);
  if (history_is_filtered(view->history))
    history_forgotten(view, c, self->prior_precision, self->prior_vector, self->log_scale);
  self->empty = rows.rounds == 0;
  if (warm && !self->empty)
    lanes_copy(entries, lanes, mixture_approximation_last(self, c, view), self->runs, evidence, lanes);
  else
    memset(evidence, 0, (size_t)(entries * lanes) * sizeof *evidence);
  if (self->empty) {
    memset(self->value, 0, (size_t)lanes * sizeof *self->value);
    return;
  }
  if (self->laplace || !warm || !bounded)
    irls_solve(&self->irls, &there, self->prior_precision, self->prior_vector, precision, vector, self->mode,
               fallbacks);
  if (!self->laplace) {
    ep_solve(&self->ep, &there, self->prior_precision, self->prior_vector, precision, vector, self->value,
             fallbacks);
    return;
  }
  history_log_likelihood(&there, self->mode, self->value, NULL);
  linalg_add_quadratic_lanes(d, lanes, -1, precision, vector, self->mode, self->image, self->value);
}

void mixture_approximation_weigh(const MixtureApproximation *self, int lanes, double constant,
                                 double *log_weight, double *offset) {
  for (int n = 0; n < lanes; n++) {
    const double gaussian = log_weight[n],
                 own = self->value[n] + (self->laplace || self->empty ? gaussian : constant);
    log_weight[n] = own + self->log_scale[n];
    offset[n] = own - gaussian;
  }
}

void mixture_approximation_keep(MixtureApproximation *self, int c, const HistoryView *view,
                                const double *evidence) {
  const int d = self->prior->d, lanes = view->lanes;
  lanes_copy(d + d * d, lanes, evidence, lanes, mixture_approximation_last(self, c, view), self->runs);
  self->last_rounds = mixture_approximation_rows(view->history).rounds;
}
