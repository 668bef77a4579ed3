#include "sampler/mixture/mixture_approximation.h"

#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "model/history/history_passes.h"
#include "model/history/likelihood.h"

#include <string.h>

/* Tolerances of modes: those from which expectation propagation starts need not be as accurate as
 * Laplace's. */
static const double START_TOLERANCE = 1e-2, MODE_TOLERANCE = 1e-8;

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

/* Computes Laplace's evidence[d + d d, lanes] at the mode from the evidence to start from, and self->offset.
 */
static void find_at_mode(MixtureApproximation *self, const HistoryView *rows, double *evidence,
                         int64_t *fallbacks) {
  const int d = self->prior->d, lanes = rows->lanes;
  double *precision = evidence + d * lanes;
  const PriorLanes prior = {.precision = self->prior_precision, .vector = self->prior_vector};
  irls_solve(&self->irls, rows, prior, (EvidenceLanes){.precision = precision, .vector = evidence},
             self->mode, fallbacks);
  history_log_likelihood(rows, self->mode, self->offset, NULL);
  linalg_lanes_add_quadratic(d, lanes, -1, (LanesQuadratic){.matrix = precision, .vector = evidence},
                             self->mode, self->image, self->offset);
}

/* Replaces what expectation propagation found by Laplace's evidence in lanes in which it failed, and counts
 * them as fallbacks. */
static void replace_failed(MixtureApproximation *self, const HistoryView *rows, bool has_mode,
                           double *evidence, int *doubt, int64_t *fallbacks) {
  const int d = self->prior->d, lanes = rows->lanes, entries = d + d * d;
  bool any = false;
  ep_find_failed(&self->ep, lanes, &self->irls, has_mode ? self->mode : NULL, self->at_mode);
  for (int n = 0; n < lanes; n++) any = any || self->at_mode[n];
  if (!any) return;
  memset(self->again, 0, (size_t)(entries * lanes) * sizeof *self->again);
  find_at_mode(self, rows, self->again, self->ignored);
  for (int n = 0; n < lanes; n++) {
    if (!self->at_mode[n]) continue;
    for (int k = n; k < entries * lanes; k += lanes) evidence[k] = self->again[k];
    doubt[n] = EP_NARROW;
    fallbacks[rows->first + n] += self->ep.moving[n] == 0; /* else counted already */
  }
}

/* Finds the mode, at which Laplace's approximation and the likelihood are equal. */
static void find_by_laplace(MixtureApproximation *self, const HistoryView *rows, bool warm, double *evidence,
                            int *doubt, int64_t *fallbacks) {
  (void)warm; /* the evidence itself says where to start */
  (void)doubt;
  for (int n = 0; n < rows->lanes; n++) self->at_mode[n] = true;
  find_at_mode(self, rows, evidence, fallbacks);
}

/* Starts expectation propagation at the mode or, if each run can have at most one new click since the
 * previous round, where that round ended. */
static void find_by_propagation(MixtureApproximation *self, const HistoryView *rows, bool warm,
                                double *evidence, int *doubt, int64_t *fallbacks) {
  const bool bounded = rows->history->likelihood->ops == &likelihood_logistic; /* so no site overshoots */
  const PriorLanes prior = {.precision = self->prior_precision, .vector = self->prior_vector};
  const EvidenceLanes sites = {.precision = evidence + self->prior->d * rows->lanes, .vector = evidence};
  if (!warm || !bounded) irls_solve(&self->irls, rows, prior, sites, self->mode, fallbacks);
  ep_solve(&self->ep, rows, prior, sites, self->log_evidence, fallbacks);
  ep_widen(&self->ep, rows, prior, sites, doubt);
  replace_failed(self, rows, !bounded, evidence, doubt, fallbacks);
}

Status mixture_approximation_create(Arena *memory, const Mixture *prior, int runs, int most, bool laplace,
                                    MixtureApproximation *out) {
  const size_t d = (size_t)prior->d, cells = (size_t)prior->components * (size_t)runs, n = (size_t)most;
  *out = (MixtureApproximation){
      .prior = prior, .runs = runs, .find = laplace ? find_by_laplace : find_by_propagation};
  TRY(irls_create(memory, prior->d, most, laplace ? MODE_TOLERANCE : START_TOLERANCE, &out->irls));
  if (!laplace) TRY(ep_create(memory, prior->d, most, EP_TOLERANCE, &out->ep));
  ALLOCATE(memory, out->prior_precision, d * d * n);
  ALLOCATE_ARRAYS(memory, d * n, &out->prior_vector, &out->mode, &out->image);
  ALLOCATE_ARRAYS(memory, n, &out->log_scale, &out->offset, &out->log_evidence);
  ALLOCATE(memory, out->at_mode, n);
  ALLOCATE(memory, out->ignored, runs);
  ALLOCATE(memory, out->again, (d + d * d) * n);
  ALLOCATE(memory, out->last, (d + d * d) * cells);
  return STATUS_OK;
}

void mixture_approximation_find(MixtureApproximation *self, int c, const HistoryView *view, bool warm,
                                double *evidence, int *doubt, int64_t *fallbacks) {
  const int d = self->prior->d, lanes = view->lanes, entries = d + d * d;
  const History rows = mixture_approximation_rows(view->history);
  const HistoryView there = history_view(&rows, 1, view->first, lanes);
  const bool starts = warm && rows.rounds > 0;
  lanes_repeat(d * d, lanes, mixture_precision(self->prior, c), self->prior_precision);
  lanes_repeat(d, lanes, mixture_information(self->prior, c), self->prior_vector);
  memset(self->log_scale, 0, (size_t)lanes * sizeof *self->log_scale);
  if (history_is_filtered(view->history))
    history_forgotten(view, c, self->prior_precision, self->prior_vector, self->log_scale);
  memset(doubt, 0, (size_t)lanes * sizeof *doubt);
  if (starts)
    lanes_copy(entries, lanes, mixture_approximation_last(self, c, view), self->runs, evidence, lanes);
  else
    memset(evidence, 0, (size_t)(entries * lanes) * sizeof *evidence);
  if (rows.rounds > 0) {
    self->find(self, &there, warm, evidence, doubt, fallbacks);
    return;
  }
  for (int n = 0; n < lanes; n++) {
    self->at_mode[n] = true;
    self->offset[n] = 0;
  }
}

void mixture_approximation_weigh(const MixtureApproximation *self, int lanes, double constant,
                                 double *log_weight, double *offset) {
  for (int n = 0; n < lanes; n++) {
    const double gaussian = log_weight[n],
                 own = self->at_mode[n] ? self->offset[n] + gaussian : self->log_evidence[n] + constant;
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
