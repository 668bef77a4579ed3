#include "sampler/check/spread.h"

#include "core/linalg/linalg.h"
#include "sampler/check/strays.h"
#include "sampler/mixture/mixture_posterior.h"

#include <math.h>
#include <string.h>

/* Relative error allowed in a standard deviation, larger if the posterior is not Gaussian and may be known
 * only approximately. Standard deviations that the mean may be off by. */
static const double CLOSE = 0.1, SKEWED = 0.25, FAR = 0.25;
/* Standard errors allowed on top, and the number of draws per dimension below which they are too large to
 * tell. */
enum { ERRORS = 4, FEWEST = 20 };
/* Reference draws, that others are judged by where the posterior is not known in closed form: as many as make
 * the standard errors small next to what is allowed anyway, and fewer where slice steps move them, which
 * costs twenty times as much. The steps are doubled until that no longer moves the mean. */
enum { REFERENCE = 6000, MOVED_REFERENCE = 2000, FEWEST_STEPS = 20, MOST_STEPS = 160 };
typedef struct {
  double *mean; /* [d] */
  double *map; /* [d, d] */
  double *e, *moment, *vectors, *value; /* [d, M], [d, d], [d, d], [d] */
} SpreadWork;

bool spread_is_known(const Sampler *sampler) {
  const SamplerSetup *setup = &sampler->setup;
  if (!setup->prior->mixture || sampler->guard) return false;
  return !likelihood_has_network(setup->likelihood) && likelihood_is_concave(setup->likelihood) &&
         sampler_targets_posterior(sampler);
}

/* Computes mean[d] and covariance[d, d] of draws[d, M] of a posterior. */
static void find_moments_of_draws(MixturePosterior *posterior, const Sampler *sampler, const History *history,
                                  int draws, double *theta, double *mean, double *covariance) {
  const RngLanes rng = rng_lanes(rng_key(sampler->setup.seed, RNG_JUDGE), sampler->setup.first_run, 1, draws,
                                 (uint32_t)history->rounds);
  int64_t ignored = 0;
  mixture_posterior_sample(posterior, history, rng, draws, theta, NULL, &ignored);
  linalg_moments(sampler->d, draws, theta, mean, covariance);
}

/* Computes mean[d] and covariance[d, d] of the posterior from *draws draws, and *settled: half the number of
 * slice steps would have led to the same mean, as far as so many draws can tell. */
static Status find_moments_by_draws(const Sampler *sampler, const History *history, double *mean,
                                    double *covariance, double *draws, bool *settled) {
  SCRATCH_ARENA(scratch);
  const int d = sampler->d;
  MixturePosterior *posterior;
  double *theta, *before;
  TRY(mixture_posterior_create(&scratch, sampler->setup.prior->mixture, history->likelihood, 1,
                               mixture_posterior_options(NULL), &posterior));
  ALLOCATE(&scratch, theta, (size_t)d * REFERENCE);
  ALLOCATE(&scratch, before, d);
  mixture_posterior_set_steps(posterior, FEWEST_STEPS);
  find_moments_of_draws(posterior, sampler, history, MOVED_REFERENCE, theta, mean, covariance);
  *settled = !mixture_posterior_moved(posterior);
  *draws = *settled ? REFERENCE : MOVED_REFERENCE;
  if (*settled) find_moments_of_draws(posterior, sampler, history, REFERENCE, theta, mean, covariance);
  for (int steps = 2 * FEWEST_STEPS; steps <= MOST_STEPS && !*settled; steps *= 2) {
    memcpy(before, mean, (size_t)d * sizeof *mean);
    mixture_posterior_set_steps(posterior, steps);
    find_moments_of_draws(posterior, sampler, history, MOVED_REFERENCE, theta, mean, covariance);
    *settled = true;
    for (int i = 0; i < d; i++) {
      const double error = sqrt(2 * covariance[i * d + i] / MOVED_REFERENCE);
      *settled = *settled && fabs(mean[i] - before[i]) <= ERRORS * error;
    }
  }
  return STATUS_OK;
}

/* Computes mean and map <- m and L^-1 of the posterior, and *draws: how many they come from; INFINITY if
 * none. *found is false if they are not usable. */
static Status find_moments(SpreadWork *work, const Sampler *sampler, const History *history, double *draws,
                           bool *found) {
  SCRATCH_ARENA(scratch);
  const Mixture *prior = sampler->setup.prior->mixture;
  const MixtureOptions approximation = {.candidates = 1, .strict = true};
  MixturePosterior *posterior;
  int64_t fallbacks = 0;
  TRY(mixture_posterior_create(&scratch, prior, history->likelihood, 1, approximation, &posterior));
  mixture_posterior_moments(posterior, history, 0, prior->components, work->mean, work->map, &fallbacks);
  *draws = INFINITY;
  *found = fallbacks == 0;
  if (fallbacks > 0 && mixture_posterior_has_steps(history))
    TRY(find_moments_by_draws(sampler, history, work->mean, work->map, draws, found));
  *found = *found && linalg_cholesky(sampler->d, work->map) == STATUS_OK;
  if (*found) linalg_invert_triangle(sampler->d, work->map);
  return STATUS_OK;
}

static Status spread_compare_draws(SpreadWork *work, int d, int draws, const double *theta, Spread *out) {
  for (int i = 0; i < d; i++)
    for (int n = 0; n < draws; n++) {
      double sum = 0;
      for (int j = 0; j < d; j++)
        sum += work->map[i * d + j] * (theta[(size_t)j * (size_t)draws + (size_t)n] - work->mean[j]);
      work->e[(size_t)i * (size_t)draws + (size_t)n] = sum;
    }
  linalg_moments(d, draws, work->e, work->mean, work->moment);
  for (int i = 0; i < d; i++) out->offset = hypot(out->offset, work->mean[i]);
  TRY(linalg_eigen(d, work->moment, work->vectors, work->value));
  out->narrowest = sqrt(fmax(work->value[0], 0));
  out->widest = sqrt(fmax(work->value[d - 1], 0));
  return STATUS_OK;
}

/* Finds how precise the evidence is, and what became of the draws; returns whether the prior has kept its
 * digits. */
static bool spread_has_digits(const Sampler *sampler, const History *history, Spread *out) {
  const Mixture *prior = prior_stand_in(sampler->setup.prior);
  PriorDigits digits;
  if (!prior || !history_digits(history, prior, &digits, &out->outweighs)) return true;
  out->from = digits_drawn_from(sampler, digits);
  return false;
}

/* Computes map <- L' for a Gaussian prior and Gaussian rewards, where L L' is the precision of the posterior;
 * *found: it is positive definite. */
static Status find_map(SpreadWork *work, const Mixture *prior, const History *history, bool *found) {
  SCRATCH_ARENA(scratch);
  const int d = prior->d;
  const size_t matrix = (size_t)d * (size_t)d;
  const HistoryView view = history_view(history, 1, 0, 1);
  EvidenceLanes evidence;
  double *factor, *whitened, log_weight, common;
  int jitters = 0;
  ALLOCATE_ARRAYS(&scratch, matrix, &evidence.precision, &factor);
  ALLOCATE_ARRAYS(&scratch, d, &evidence.vector, &whitened);
  const Conditioned posterior = {.factor = factor,
                                 .whitened = whitened,
                                 .log_weight = &log_weight,
                                 .common = &common,
                                 .jitters = &jitters};
  history_evidence(&view, evidence.precision, evidence.vector);
  history_condition(&view, evidence, prior, 0, 0, &posterior);
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++) work->map[i * d + j] = j < i ? 0 : factor[j * d + i];
  *found = jitters == 0;
  return STATUS_OK;
}

/* Sets the bounds on the largest and the smallest of d standard deviations, each with the standard error 1 /
 * sqrt(2 M), and on the mean, whose squared length has the mean d / M. */
static void spread_set_bounds(const Sampler *sampler, double draws, bool gaussian, Spread *out) {
  const SamplerOps *ops = sampler->ops;
  const double d = sampler->d, slack = ERRORS / sqrt(2 * draws) + sqrt(d / draws),
               factor = 1 + (gaussian ? CLOSE : SKEWED);
  out->least = (ops->narrow > 0 ? ops->narrow : 1) / factor * (1 - slack);
  out->most = (ops->wide > 0 ? ops->wide : 1) * factor * (1 + slack);
  out->farthest = gaussian ? INFINITY : FAR + (sqrt(d) + ERRORS) / sqrt(draws);
}

Status spread_measure(const Sampler *sampler, const History *history, int draws, const double *theta,
                      Spread *out) {
  SCRATCH_ARENA(scratch);
  const int d = sampler->d;
  const size_t matrix = (size_t)d * (size_t)d;
  const History tempered = sampler_tempered(sampler, history);
  SpreadWork work;
  ASSERT(history->runs == 1);
  *out = (Spread){.narrowest = 1, .widest = 1, .outweighs = 1};
  const bool kept = spread_has_digits(sampler, &tempered, out);
  if (spread_is_known(sampler)) TRY(strays_count(sampler->setup.prior->mixture, draws, theta, &out->strays));
  out->known = draws >= FEWEST * d && spread_is_known(sampler);
  if (!out->known) return STATUS_OK;
  const bool gaussian = sampler_is_gaussian(sampler);
  double reference = INFINITY;
  ALLOCATE_ARRAYS(&scratch, d, &work.mean, &work.value);
  ALLOCATE_ARRAYS(&scratch, matrix, &work.map, &work.moment, &work.vectors);
  ALLOCATE(&scratch, work.e, (size_t)d * (size_t)draws);
  if (!gaussian) {
    out->known = kept; /* otherwise the narrowest direction has no digits */
    if (out->known) TRY(find_moments(&work, sampler, &tempered, &reference, &out->known));
  } else {
    linalg_mean(d, draws, theta, work.mean);
    TRY(find_map(&work, sampler->setup.prior->mixture, &tempered, &out->known));
  }
  spread_set_bounds(sampler, 1 / (1.0 / draws + 1 / reference), gaussian, out);
  return out->known ? spread_compare_draws(&work, d, draws, theta, out) : STATUS_OK;
}

bool spread_complaint(const Spread *spread, size_t size, char *sentence) {
  const bool wide = spread->known && !(spread->widest <= spread->most);
  const bool narrow = spread->known && !(spread->narrowest >= spread->least);
  if (wide || narrow)
    snprintf(
        sentence, size,
        "the draws cannot have reached the target: in one direction their standard deviation is %.3g times "
        "that of the posterior",
        wide ? spread->widest : spread->narrowest);
  else if (spread->known && !(spread->offset <= spread->farthest))
    snprintf(
        sentence, size,
        "the draws cannot have reached the target: their mean is %.3g standard deviations of the posterior "
        "away from its mean",
        spread->offset);
  else if (spread->strays > 0)
    snprintf(sentence, size,
             "the draws cannot have reached the target: %d lie between the values to which the prior fixes a "
             "coordinate",
             spread->strays);
  else if (spread->from == DRAWN_WITHOUT_DIGITS)
    snprintf(sentence, size,
             "the draws cannot have reached the target: the evidence is %.1g times what it leaves to the "
             "prior in some direction, which is beyond the precision of a double",
             spread->outweighs);
  else if (spread->from == DRAWN_FROM_MIXTURE)
    snprintf(
        sentence, size,
        "the evidence is %.1g times what it leaves to the prior in some direction, which is beyond the "
        "precision of this sampler: the draws are exact ones under the prior's mixture or companion mixture",
        spread->outweighs);
  else
    return false;
  return true;
}
