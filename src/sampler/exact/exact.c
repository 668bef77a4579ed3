/* Exact posterior sampling, where it is possible.
 *
 * With a conjugate likelihood a mixture prior has its posterior in closed form (mixture_posterior.c), and the
 * posterior of a prior on the corners of {-1, 1}^d, an Ising model, is found by enumeration. With any other
 * prior that has a density in the plane draws are made by rejection: a point x of the envelope (envelope.h)
 * is accepted with probability exp(log p(x) + l(x) - bound(x)). These draws are exact up to three things, all
 * of which are small by construction: the box of the prior cuts its tails, a bound between the points where
 * the prior density was looked up is a guess, and arithmetic rounds.
 *
 * TS, TunedTS and MixTS of the DiffTS paper (Section 6.1) are one method (mixture_posterior.h) with three
 * priors; with clicks and counts it is approximate.
 *
 * The envelope is built once for each run of a call, and all of its draws use it. A draw takes four uniforms
 * of its stream per proposal, PROPOSALS at a time. */
#include "sampler/exact/exact.h"

#include "core/chunk.h"
#include "sampler/exact/envelope.h"
#include "sampler/methods.h"
#include "sampler/mixture/mixture_posterior.h"
#include "sampler/unknown_noise.h"

#include <math.h>
#include <stdio.h>

/* ---- the posterior under a mixture */

/* If nothing has matrices (SamplerSetup.diagonal), in the coordinates z of the chain. */
typedef struct {
  double *q, *b; /* [d]: the evidence of the run */
  double *z, *uniform; /* [d, n], [n], n = CHUNK_LANES */
} DiagonalMixture;

static Status exact_diagonal_create(Sampler *self) {
  const size_t d = (size_t)self->d;
  DiagonalMixture *state;
  ALLOCATE(self->memory, state, 1);
  self->state = state;
  ALLOCATE_ARRAYS(self->memory, d, &state->q, &state->b);
  ALLOCATE(self->memory, state->z, d * CHUNK_LANES);
  ALLOCATE(self->memory, state->uniform, CHUNK_LANES);
  return STATUS_OK;
}

/* Notes the log marginal likelihood of a run, which is known. */
static void exact_note_evidence(const Sampler *self, int run, double value) {
  self->notes[run].log_evidence = value;
  self->notes[run].log_evidence_error = 0;
}

/* Picks a component by its weight in the posterior, then draws from its Gaussian. */
static void exact_diagonal_sample(const Sampler *self, const History *history, RngLanes rng, double *theta) {
  const DiagonalMixture *state = self->state;
  const Chain *chain = self->setup.prior->chain;
  const Isotropic *prior = self->setup.prior->isotropic;
  const HistoryView view = history_view_in(history_view(history, 1, 0, 1), chain->shift, chain->scale);
  double share[ISOTROPIC_COMPONENTS], residual, log_sum;
  history_diagonal(&view, state->q, state->b);
  denoiser_isotropic_shares(prior, state->q, 1, state->b, share, &log_sum);
  history_residual(&view, &residual);
  exact_note_evidence(self, 0, log_sum - 0.5 * residual);
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const int lanes = chunk.lanes;
    rng_lanes_uniform(&chunk.rng, 1, state->uniform);
    rng_lanes_normal(&chunk.rng, prior->d, state->z);
    for (int n = 0; n < lanes; n++) {
      const int c = lanes_pick(prior->components, 1, share, state->uniform[n]);
      const double *mean = prior->mean + (ptrdiff_t)c * prior->d, v = prior->variance[c];
      for (int i = 0; i < prior->d; i++) {
        const double widened = 1 + state->q[i] * v;
        double *z = &state->z[i * lanes + n];
        *z = (mean[i] + v * state->b[i]) / widened + sqrt(v / widened) * *z;
      }
    }
    denoiser_chain_to_theta(chain, lanes, state->z);
    chunk_store(&chunk, prior->d, state->z, theta);
  }
}

static Status exact_mixture_create(Sampler *self, const SamplerSetup *setup) {
  MixturePosterior *state;
  if (setup->diagonal) return exact_diagonal_create(self);
  MixtureOptions options = mixture_posterior_options(setup->options);
  options.alone = setup->alone;
  TRY(mixture_posterior_create(self->memory, setup->prior->mixture, setup->likelihood, setup->runs, options,
                               &state));
  self->state = state;
  return STATUS_OK;
}

static void exact_mixture_sample(Sampler *self, const History *history, RngLanes rng, int draws,
                                 double *theta, int64_t *fallbacks) {
  if (self->setup.diagonal) {
    exact_diagonal_sample(self, history, rng, theta);
    return;
  }
  mixture_posterior_sample(self->state, history, rng, draws, theta, NULL, fallbacks);
  if (draws == 1 || !mixture_posterior_is_exact(history->likelihood)) return;
  for (int run = 0; run < history->runs; run++) {
    const HistoryView view = history_view(history, 1, run, 1);
    double residual;
    history_residual(&view, &residual);
    exact_note_evidence(self, run, mixture_posterior_marginal(self->state, run) - 0.5 * residual);
  }
}

static void exact_mixture_moments(Sampler *self, const History *history, double *mean, double *covariance,
                                  int64_t *fallbacks) {
  mixture_posterior_moments(self->state, history, 0, self->setup.prior->mixture->components, mean, covariance,
                            fallbacks);
}

static const ConfigKey KEYS[] = {MIXTURE_POSTERIOR_KEYS, {.name = NULL}};

#define POSTERIOR_OPS                                                                                        \
  .exact = true, .keeps_digits = true, .keys = KEYS, .check = mixture_posterior_check,                       \
  .create = exact_mixture_create, .vectors = sampler_always_vectors, .projects = true,                       \
  .sample = exact_mixture_sample, .moments = exact_mixture_moments

/* ---- any posterior that can be drawn from */

enum { PROPOSALS = TILE_LANES, ROUNDS = 256, UNIFORMS = 4 };

/* Up to here the corners of a hypercube are enumerated. */
enum { HYPERCUBE_MOST_DIMENSIONS = 20 };

typedef struct {
  double *precision, *vector; /* [d, d], [d]: the evidence of a run */
  double *field; /* [d]: vector - precision x at the current corner */
  double *cumulative; /* [2^d]: cumulative weights; bit i of a corner's number is 1 if x_i = 1 */
  double *uniform; /* [B M] */
} Hypercube;

/* How a posterior can be drawn from. */
typedef enum { EXACT_NOT, EXACT_MIXTURE, EXACT_HYPERCUBE, EXACT_ENVELOPE } ExactWay;

static ExactWay exact_way(const Prior *prior, const Likelihood *likelihood) {
  if (likelihood_is_conjugate(likelihood)) {
    if (prior->mixture || prior->isotropic) return EXACT_MIXTURE;
    if (prior->hypercube && prior->d <= HYPERCUBE_MOST_DIMENSIONS) return EXACT_HYPERCUBE;
  }
  return prior->ops->log_density && prior->d == 2 ? EXACT_ENVELOPE : EXACT_NOT;
}

const char *exact_way_in_words(const Prior *prior, const Likelihood *likelihood) {
  static const char *const words[] = {[EXACT_NOT] = NULL,
                                      [EXACT_MIXTURE] = "closed form",
                                      [EXACT_HYPERCUBE] = "enumeration",
                                      [EXACT_ENVELOPE] = "rejection"};
  return words[exact_way(prior, likelihood)];
}

static bool exact_fits(const Prior *prior, const Likelihood *likelihood, size_t size, char *sentence) {
  if (exact_way(prior, likelihood) != EXACT_NOT) return true;
  snprintf(sentence, size,
           "sampler exact needs a mixture prior, or prior ising in at most %d dimensions, with likelihood "
           "gaussian; or a prior with a density in two dimensions; not prior %s (%d dimensions) with "
           "likelihood %s",
           HYPERCUBE_MOST_DIMENSIONS, prior->ops->name, prior->d, likelihood->ops->name);
  return false;
}

static Status exact_create(Sampler *self, const SamplerSetup *setup) {
  Arena *memory = self->memory;
  const ExactWay way = exact_way(setup->prior, setup->likelihood);
  if (way == EXACT_MIXTURE) return exact_mixture_create(self, setup);
  if (way == EXACT_HYPERCUBE) {
    const size_t d = (size_t)setup->prior->d;
    Hypercube *hypercube;
    ALLOCATE(memory, hypercube, 1);
    self->state = hypercube;
    ALLOCATE(memory, hypercube->precision, d * d);
    ALLOCATE_ARRAYS(memory, d, &hypercube->vector, &hypercube->field);
    ALLOCATE(memory, hypercube->cumulative, (size_t)1 << d);
    ALLOCATE(memory, hypercube->uniform, (size_t)setup->runs * (size_t)setup->draws);
    return STATUS_OK;
  }
  Envelope *envelope;
  ALLOCATE(memory, envelope, 1);
  self->state = envelope;
  return envelope_create(memory, setup->prior, setup->likelihood, envelope);
}

/* Proposes PROPOSALS points of the envelope; x <- the first that is accepted. Returns whether one was. */
static bool exact_propose(Envelope *envelope, Rng *rng, double *x) {
  double uniform[PROPOSALS * UNIFORMS], point[2 * PROPOSALS], bound[PROPOSALS], prior[PROPOSALS],
      log_likelihood[PROPOSALS];
  rng_uniform(rng, PROPOSALS * UNIFORMS, uniform);
  for (int p = 0; p < PROPOSALS; p++) {
    double place[2];
    envelope_draw(envelope, uniform + p * UNIFORMS, place, &bound[p]);
    point[p] = place[0];
    point[PROPOSALS + p] = place[1];
  }
  envelope->grid.prior->ops->log_density(envelope->grid.prior, PROPOSALS, point, prior);
  envelope_log_likelihood(envelope, PROPOSALS, point, log_likelihood, NULL);
  for (int p = 0; p < PROPOSALS; p++) {
    if (log(uniform[p * UNIFORMS + 3]) > prior[p] + log_likelihood[p] - bound[p]) continue;
    x[0] = point[p];
    x[1] = point[PROPOSALS + p];
    return true;
  }
  return false;
}

/* Draws one x[2]. If no proposal is accepted, it is the best point that the envelope has seen. A draw in the
 * outermost of the finest cells of the box is a fallback too, because the posterior may extend beyond it. */
static void exact_draw_one(Envelope *envelope, Rng rng, double *x, int64_t *fallbacks) {
  const PriorGrid *grid = &envelope->grid;
  bool accepted = false, edge = false;
  for (int round = 0; round < ROUNDS && !accepted; round++) accepted = exact_propose(envelope, &rng, x);
  for (int i = 0; i < 2; i++) {
    if (!accepted) x[i] = envelope->best[i];
    const double place = (x[i] - grid->low[i]) / grid->size[i] * PRIOR_GRID_SIDE;
    edge = edge || place < 1 || place > PRIOR_GRID_SIDE - 1;
  }
  *fallbacks += !accepted || edge;
}

/* Computes the cumulative weights, sums of exp(vector' x - x' precision x / 2). The Gray code visits the
 * corners so that only one x_i changes at a time. */
static void exact_weigh_hypercube(Hypercube *self, int d) {
  const uint32_t count = 1u << d;
  double log_weight = 0, largest = 0, sum = 0;
  for (int i = 0; i < d; i++) { /* at x = (-1, .., -1), whose log weight is set to 0 */
    self->field[i] = self->vector[i];
    for (int j = 0; j < d; j++) self->field[i] += self->precision[i * d + j];
  }
  self->cumulative[0] = 0;
  for (uint32_t k = 1, vertex = 0; k < count; k++) {
    int i = 0;
    while (!(k >> i & 1)) i++;
    vertex ^= 1u << i;
    const double to = vertex >> i & 1 ? 1 : -1, *row = self->precision + i * d;
    log_weight += 2 * to * self->field[i] - 2 * row[i];
    for (int j = 0; j < d; j++) self->field[j] -= 2 * to * row[j];
    self->cumulative[vertex] = log_weight;
    largest = fmax(largest, log_weight);
  }
  for (uint32_t vertex = 0; vertex < count; vertex++)
    sum = self->cumulative[vertex] = sum + exp(fmax(self->cumulative[vertex] - largest, -700));
}

/* Draws corners, each with one uniform of its stream. */
static void exact_draw_hypercube(Hypercube *self, const History *history, RngLanes rng, int draws,
                                 double *theta) {
  const int d = history->d;
  const size_t lanes = rng.lanes;
  rng_lanes_uniform(&rng, 1, self->uniform);
  for (int run = 0; run < history->runs; run++) {
    const HistoryView view = history_view(history, 1, run, 1);
    history_evidence(&view, self->precision, self->vector);
    exact_weigh_hypercube(self, d);
    for (int n = run * draws; n < (run + 1) * draws; n++) {
      const double place = self->uniform[n] * self->cumulative[((size_t)1 << d) - 1];
      uint32_t vertex = 0;
      for (int i = d - 1; i >= 0; i--) { /* finds the first whose cumulative weight is above `place` */
        const uint32_t middle = vertex | 1u << i;
        if (self->cumulative[middle - 1] <= place) vertex = middle;
      }
      for (int i = 0; i < d; i++) theta[(size_t)i * lanes + (size_t)n] = vertex >> i & 1 ? 1 : -1;
    }
  }
}

static void exact_sample(Sampler *self, const History *history, RngLanes rng, int draws, double *theta,
                         int64_t *fallbacks) {
  const ExactWay way = exact_way(self->setup.prior, self->setup.likelihood);
  if (way == EXACT_MIXTURE) {
    exact_mixture_sample(self, history, rng, draws, theta, fallbacks);
    return;
  }
  if (way == EXACT_HYPERCUBE) {
    exact_draw_hypercube(self->state, history, rng, draws, theta);
    return;
  }
  Envelope *envelope = self->state;
  const size_t lanes = rng.lanes;
  for (int run = 0; run < history->runs; run++) {
    const bool ready = envelope_build(envelope, history, run, fallbacks);
    for (int n = run * draws; n < (run + 1) * draws; n++) {
      const Rng stream = rng_of_lane(&rng, (uint32_t)n);
      double x[2] = {envelope->best[0], envelope->best[1]};
      if (ready)
        exact_draw_one(envelope, stream, x, &fallbacks[run]);
      else
        fallbacks[run]++;
      theta[n] = x[0];
      theta[lanes + (size_t)n] = x[1];
    }
  }
}

const SamplerOps sampler_exact = {
    .name = "exact",
    .summary = "the exact posterior: mixtures and Ising models with Gaussian rewards, or any density in two "
               "dimensions",
    .reference = "Hong et al. (2022); von Neumann (1951)",
    .default_prior = "exact",
    .needs = NEEDS_TRACTABLE,
    .fits = exact_fits,
    .exact = true,
    .keeps_digits = true,
    .create = exact_create,
    .vectors = sampler_always_vectors,
    .projects = true,
    .sample = exact_sample,
    .moments = exact_mixture_moments,
    .moments_need = NEEDS_MIXTURE | NEEDS_CONJUGATE,
};

/* ---- under a Gaussian prior the noise may be unknown */

static const ConfigKey TS_KEYS[] = {MIXTURE_POSTERIOR_KEYS, UNKNOWN_NOISE_KEYS, {.name = NULL}};

/* Returns whether draws come from the posterior under the noise of the problem. */
static bool ts_targets_posterior(const Config *options) { return !unknown_noise_asked(options); }

static Status ts_check(const Config *options, const Likelihood *likelihood) {
  TRY(mixture_posterior_check(options, likelihood));
  return unknown_noise_check(options, likelihood);
}

static Status ts_create(Sampler *self, const SamplerSetup *setup) {
  UnknownNoise *state;
  if (!unknown_noise_asked(setup->options)) return exact_mixture_create(self, setup);
  TRY(unknown_noise_create(self, setup, 1, &state));
  self->state = state;
  return STATUS_OK;
}

static void ts_sample(Sampler *self, const History *history, RngLanes rng, int draws, double *theta,
                      int64_t *fallbacks) {
  if (unknown_noise_asked(self->setup.options))
    unknown_noise_sample(self->state, history, rng, draws, theta, fallbacks);
  else
    exact_mixture_sample(self, history, rng, draws, theta, fallbacks);
}

static void ts_moments(Sampler *self, const History *history, double *mean, double *covariance,
                       int64_t *fallbacks) {
  if (unknown_noise_asked(self->setup.options))
    unknown_noise_moments(self->state, history, mean, covariance, fallbacks);
  else
    exact_mixture_moments(self, history, mean, covariance, fallbacks);
}

const SamplerOps sampler_ts = {
    .name = "ts",
    .summary = "Thompson sampling from the posterior of a Gaussian prior, N(0, I) by default",
    .reference = "Chapelle and Li (2011); DiffTS paper, equation 3",
    .default_prior = "standard",
    .needs = NEEDS_GAUSSIAN,
    .exact = true,
    .keeps_digits = true,
    .keys = TS_KEYS,
    .targets_posterior = ts_targets_posterior,
    .check = ts_check,
    .create = ts_create,
    .vectors = sampler_always_vectors,
    .sample = ts_sample,
    .moments = ts_moments,
};

const SamplerOps sampler_tuned_ts = {
    .name = "tuned_ts",
    .summary = "Thompson sampling from the posterior of a Gaussian prior fitted to samples",
    .reference = "DiffTS paper, Section 6.1",
    .default_prior = "gaussian",
    .needs = NEEDS_GAUSSIAN,
    POSTERIOR_OPS,
};

const SamplerOps sampler_mixts = {
    .name = "mixts",
    .summary = "Thompson sampling from the posterior of a Gaussian mixture prior",
    .reference = "Hong et al. (2022); DiffTS paper, Section 6.1",
    .default_prior = "mixture",
    .needs = NEEDS_MIXTURE,
    POSTERIOR_OPS,
};
