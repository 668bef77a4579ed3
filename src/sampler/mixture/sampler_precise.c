#include "sampler/mixture/sampler_precise.h"

#include "model/mixture/mixture_evidence.h"

#include <math.h>
#include <string.h>

/* Ratio of evidence to prior above which the square root is used: sums still have 7 digits of the prior
 * there. */
static const double BEYOND = 1e9;

struct Precise {
  const Mixture *prior; /* not owned */
  double variance; /* the largest trace of a component's covariance */
  HistoryView view;
  bool *takes; /* [parts] */
  double *root, *conditioned, *row; /* [d + 1, d + 1] twice, [d + 1] */
  int part, component; /* of `conditioned`; -1: none */
  double *x, *work, *covariance; /* [d], [d, d] twice */
};

/* Returns the largest trace of the covariance of a component: no direction has a larger variance. */
static double sampler_precise_mixture_variance(const Mixture *prior) {
  double largest = 0;
  for (int c = 0; c < prior->components; c++) {
    double trace = 0;
    for (int i = 0; i < prior->d; i++) trace += prior->covariance[(c * prior->d + i) * prior->d + i];
    largest = fmax(largest, trace);
  }
  return largest;
}

Status sampler_precise_create(Arena *memory, const Mixture *prior, int parts, Precise **out) {
  const size_t d = (size_t)prior->d, n = d + 1;
  Precise *self;
  ALLOCATE(memory, self, 1);
  *out = self;
  self->prior = prior;
  self->variance = sampler_precise_mixture_variance(prior);
  ALLOCATE(memory, self->takes, parts);
  ALLOCATE_ARRAYS(memory, n * n, self->root, self->conditioned);
  ALLOCATE(memory, self->row, n);
  ALLOCATE(memory, self->x, d);
  ALLOCATE_ARRAYS(memory, d * d, self->work, self->covariance);
  return STATUS_OK;
}

static int sampler_precise_mixture_run(const Precise *self, int r) {
  return (self->view.first + r) / self->view.draws;
}

bool sampler_precise_find(Precise *self, const HistoryView *view) {
  bool any = false;
  self->view = *view;
  self->part = -1;
  for (int r = 0; r < view->lanes; r++) {
    self->takes[r] =
        history_precision_trace(view->history, sampler_precise_mixture_run(self, r)) * self->variance >
            BEYOND &&
        history_root(view->history, sampler_precise_mixture_run(self, r), self->root);
    any = any || self->takes[r];
  }
  return any;
}

bool sampler_precise_takes(const Precise *self, int r) { return self->takes[r]; }

static const double *condition_component(Precise *self, int r, int c) {
  if (self->part != r || self->component != c) {
    history_root(self->view.history, sampler_precise_mixture_run(self, r), self->root);
    mixture_evidence_root_condition(self->prior, c, self->root, self->row, self->conditioned);
    self->part = r, self->component = c;
  }
  return self->conditioned;
}

void sampler_precise_weigh(Precise *self, int c, bool rewards, double *log_weight) {
  const int d = self->prior->d, n = d + 1;
  for (int r = 0; r < self->view.lanes; r++) {
    if (!self->takes[r]) continue;
    const double *t = condition_component(self, r, c), rest = t[n * n - 1];
    double sum = log(self->prior->weight[c]) - 0.5 * d * log(2 * M_PI) - 0.5 * rest * rest;
    for (int i = 0; i < d; i++) sum -= log(t[i * n + i]);
    for (int i = 0; i < n && rewards; i++) sum += 0.5 * self->root[i * n + d] * self->root[i * n + d];
    log_weight[r] = sum;
  }
}

void sampler_precise_component_moments(Precise *self, int c, double *mean, double *covariance) {
  const int d = self->prior->d, parts = self->view.lanes;
  for (int r = 0; r < parts; r++) {
    if (!self->takes[r]) continue;
    const double *t = condition_component(self, r, c);
    memset(self->x, 0, (size_t)d * sizeof *self->x);
    mixture_evidence_root_draw(self->prior, c, t, self->x);
    mixture_evidence_root_covariance(self->prior, c, t, self->work, self->covariance);
    for (int i = 0; i < d; i++) mean[i * parts + r] = self->x[i];
    for (int i = 0; i < d * d; i++) covariance[i * parts + r] = self->covariance[i];
  }
}

void sampler_precise_draw(Precise *self, int r, int c, int lanes, int n, const double *z, double *theta) {
  const int d = self->prior->d;
  const double *t = condition_component(self, r, c);
  for (int i = 0; i < d; i++) self->x[i] = z[i * lanes + n];
  mixture_evidence_root_draw(self->prior, c, t, self->x);
  for (int i = 0; i < d; i++) theta[i * lanes + n] = self->x[i];
}

Status sampler_precise_hidden(const Mixture *prior, const History *history, int run, double *out) {
  SCRATCH_ARENA(scratch);
  const HistoryView view = {history, 1, run, 1, NULL, NULL};
  Precise *self;
  *out = 1;
  if (!(history_precision_trace(history, run) * sampler_precise_mixture_variance(prior) > BEYOND))
    return STATUS_OK;
  TRY(sampler_precise_create(&scratch, prior, 1, &self));
  if (!sampler_precise_find(self, &view)) return STATUS_OK;
  for (int c = 0; c < prior->components; c++)
    *out = fmax(*out, mixture_evidence_root_hidden(prior->d, condition_component(self, 0, c)));
  return STATUS_OK;
}
