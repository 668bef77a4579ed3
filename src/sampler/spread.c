#include "sampler/spread.h"

#include "core/arena.h"
#include "core/linalg.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a standard deviation may be off by, as a share; with rewards that are not Gaussian a factor, since
 * their posterior is no Gaussian. */
static const double CLOSE = 0.1, SKEWED = 2;
/* Standard errors that are granted beside, and draws for each dimension below which they say too much. */
enum { ERRORS = 4, FEWEST = 20 };
/* A pivot this far below its diagonal entry has lost all but two digits to rounding. */
static const double LOST = 256 * DBL_EPSILON;

typedef struct {
  double *mean; /* [d] */
  double *precision, *half, *map; /* [d, d] */
  double *e, *moment, *vectors, *value; /* [d, M], [d, d], [d, d], [d] */
} SpreadWork;

static Status create(Arena *memory, int d, int draws, SpreadWork *out) {
  const size_t matrix = (size_t)d * (size_t)d;
  *out = (SpreadWork){0};
  ALLOCATE(memory, out->mean, d);
  ALLOCATE(memory, out->precision, matrix);
  ALLOCATE(memory, out->half, matrix);
  ALLOCATE(memory, out->map, matrix);
  ALLOCATE(memory, out->e, (size_t)d * (size_t)draws);
  ALLOCATE(memory, out->moment, matrix);
  ALLOCATE(memory, out->vectors, matrix);
  ALLOCATE(memory, out->value, d);
  return STATUS_OK;
}

static bool is_known(const Sampler *sampler, int draws) {
  const SamplerSetup *setup = &sampler->setup;
  const Config *options = setup->options;
  if (!setup->prior->mixture || setup->prior->mixture->components != 1 || sampler->guard) return false;
  if (likelihood_has_network(setup->likelihood) || draws < FEWEST * sampler->d) return false;
  if (options && config_has(options, "eta") && !config_is(options, "eta", "auto")) return false;
  return !(options && config_has(options, "lambda") && config_real(options, "lambda") != 1);
}

/* Of the largest and the smallest of d standard deviations, each with the standard error 1 / sqrt(2 M). */
static void set_bounds(const Sampler *sampler, int draws, Spread *out) {
  const SamplerOps *ops = sampler->ops;
  const double slack = (double)ERRORS / sqrt(2.0 * draws) + sqrt((double)sampler->d / draws);
  const double factor = likelihood_is_conjugate(sampler->setup.likelihood) ? 1 + CLOSE : SKEWED;
  out->least = (ops->narrow > 0 ? ops->narrow : 1) / factor * (1 - slack);
  out->most = (ops->wide > 0 ? ops->wide : 1) * factor * (1 + slack);
}

/* precision[d, d] <- Lambda, mean[d] that of the draws. */
static void spread_take_evidence(SpreadWork *work, const History *history, int draws, const double *theta) {
  const HistoryView view = {history, 1, 0, 1, NULL, NULL};
  double *unused = work->value;
  linalg_mean(history->d, draws, theta, work->mean);
  memset(work->precision, 0, (size_t)(history->d * history->d) * sizeof *work->precision);
  if (history->rounds == 0) return;
  if (likelihood_is_conjugate(history->likelihood))
    history_evidence(&(HistoryView){history, 1, 0, 1, NULL, NULL}, work->precision, unused);
  else
    history_derivatives(&view, work->mean, NULL, unused, work->precision);
}

/* map <- L' A^-1, whose images of the draws have the identity for their covariance; false where P is none. */
static bool find_map(SpreadWork *work, int d, const double *root, double *hidden) {
  double *p = work->precision;
  linalg_product(d, false, p, false, root, work->half);
  linalg_product(d, true, root, false, work->half, p);
  for (int i = 0; i < d; i++) p[i * d + i] += 1;
  for (int i = 0; i < d; i++) work->value[i] = p[i * d + i];
  if (linalg_cholesky(d, p) != STATUS_OK) {
    *hidden = INFINITY;
    return false;
  }
  for (int i = 0; i < d; i++) *hidden = fmax(*hidden, work->value[i] / (p[i * d + i] * p[i * d + i]));
  memcpy(work->half, root, (size_t)(d * d) * sizeof *root);
  linalg_invert_triangle(d, work->half);
  linalg_product(d, true, p, false, work->half, work->map);
  return true;
}

static Status spread_compare(SpreadWork *work, int d, int draws, const double *theta, Spread *out) {
  for (int i = 0; i < d; i++)
    for (int n = 0; n < draws; n++) {
      double sum = 0;
      for (int j = 0; j < d; j++)
        sum += work->map[i * d + j] * (theta[(size_t)j * (size_t)draws + (size_t)n] - work->mean[j]);
      work->e[(size_t)i * (size_t)draws + (size_t)n] = sum;
    }
  linalg_moments(d, draws, work->e, work->mean, work->moment);
  TRY(linalg_eigen(d, work->moment, work->vectors, work->value));
  out->narrowest = sqrt(fmax(work->value[0], 0));
  out->widest = sqrt(fmax(work->value[d - 1], 0));
  return STATUS_OK;
}

Status spread_measure(const Sampler *sampler, const History *history, int draws, const double *theta,
                      Spread *out) {
  SCRATCH_ARENA(scratch);
  const int d = sampler->d;
  History tempered = *history;
  SpreadWork work;
  tempered.temper *= sampler->temper;
  *out = (Spread){.known = is_known(sampler, draws), .narrowest = 1, .widest = 1};
  ASSERT(history->runs == 1);
  if (!out->known) return STATUS_OK;
  set_bounds(sampler, draws, out);
  TRY(create(&scratch, d, draws, &work));
  spread_take_evidence(&work, &tempered, draws, theta);
  if (!find_map(&work, d, sampler->setup.prior->mixture->cholesky, &out->hidden)) return STATUS_OK;
  return spread_compare(&work, d, draws, theta, out);
}

bool spread_complaint(const Spread *spread, size_t size, char *sentence) {
  if (!spread->known) return false;
  const bool wide = !(spread->widest <= spread->most), narrow = !(spread->narrowest >= spread->least);
  if (wide || narrow)
    snprintf(
        sentence, size,
        "the draws cannot have reached the target: in one direction their standard deviation is %.3g times "
        "that of the posterior",
        wide ? spread->widest : spread->narrowest);
  else if (!(spread->hidden * LOST < 1))
    snprintf(
        sentence, size,
        "the draws cannot have reached the target: the evidence is %.1g times what it leaves to the prior in "
        "some direction, which is beyond the digits of a double",
        spread->hidden);
  else
    return false;
  return true;
}
