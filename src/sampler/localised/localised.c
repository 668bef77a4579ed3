/* Stochastic localisation from the evidence (model/denoiser/denoiser_localisation.h): the posterior itself,
 * in a dozen steps.
 *
 * With Gaussian rewards the posterior is p(. | b, Lambda), and adding precision to it leads to a draw. With
 * any other rewards (b, Lambda) is the evidence that expectation propagation puts in their place. With
 * `particles` a draw is one of several candidates under it, chosen by the weight of the likelihood relative
 * to that evidence, exp(l(z) - b' z + z' Lambda z / 2); this is right for many candidates, and nearly so for
 * few. Without observations a draw is one from the prior, bit for bit the same as a learned denoiser makes
 * itself.
 *
 * The marginal likelihood of a history is Z(b, Lambda) (model/denoiser/denoiser_normaliser.h) times the mean
 * of those weights. */
#include "core/chunk.h"
#include "core/linalg/linalg.h"
#include "core/reservoir.h"
#include "io/config/config_rows.h"
#include "model/denoiser/denoiser_localisation.h"
#include "model/denoiser/denoiser_normaliser.h"
#include "model/history/ep.h"
#include "model/history/history_passes.h"
#include "model/history/irls.h"
#include "sampler/sampler.h"

#include <math.h>
#include <string.h>

/* ---- rewards that are not Gaussian: Gaussian evidence in their place, by expectation propagation
 * (model/history/ep.h).
 *
 * The prior is known through its denoiser: the mean D and covariance C of the posterior for evidence (b,
 * Lambda). In place of the prior, a Gaussian with precision C^-1 - Lambda and vector C^-1 D - b has a
 * posterior with the same moments. Expectation propagation under this Gaussian leads to the next evidence,
 * until both agree; with a Gaussian prior they do at once. Weights can correct the error that the evidence
 * has by then. */

/* How many times the Gaussian is computed; the first is right if the prior is Gaussian. */
enum { GAUSSIANS = 5 };
/* Lower bounds for the Gaussian, in the coordinates of the denoiser. */
static const double LEAST_PRECISION = 1e-3, LEAST_VARIANCE = 1e-9;

/* n <= DENOISER_LANES lanes, lane last. */
typedef struct {
  Localisation walk;
  LaneEvidence evidence;
  double *precision; /* [d, d, n]: Lambda, whose decomposition the evidence has */
  double *scratch, *rotated; /* [d, d, n], [d, n]: U' b */
  double *z; /* [d, n] */
  int *lane_fallbacks; /* [n]: of the denoiser */
  Normaliser normaliser;
  /* For a likelihood that is not conjugate: */
  int particles;
  Irls irls;
  Ep ep;
  double *prior_precision, *prior_vector; /* [d, d, n], [d, n]: of the Gaussian in the prior's place */
  double *log_evidence; /* [n] */
  Reservoir reservoir;
  double *moved, *candidate; /* [d, n]: b as the draw of a candidate moves it */
  double *log_weight, *uniform; /* [n] */
} Localised;

/* Finds the Gaussian in the prior's place: with it the posterior under the evidence has mean D and covariance
 * C. Where C is wider than any Gaussian allows, as it is between modes, takes a wide one that keeps D. */
static void linearised_find_gaussian(Localised *self, int lanes) {
  Localisation *walk = &self->walk;
  const int d = walk->denoiser->d, entries = d * lanes;
  const LaneEvidence *at = &self->evidence;
  denoiser_localisation_moments(walk, 0, at, self->lane_fallbacks);
  for (int i = 0; i < entries; i++) at->eigenvalue[i] = 1 / fmax(walk->variance[i], LEAST_VARIANCE);
  linalg_factor_spectral(d, lanes, walk->axes, at->eigenvalue, self->prior_precision);
  for (int i = 0; i < d * entries; i++) self->prior_precision[i] -= self->precision[i];
  linalg_factor_eigen(d, lanes, self->prior_precision, at->basis, at->eigenvalue);
  for (int i = 0; i < entries; i++) at->eigenvalue[i] = fmax(at->eigenvalue[i], LEAST_PRECISION);
  linalg_factor_spectral(d, lanes, at->basis, at->eigenvalue, self->prior_precision);
  for (int i = 0; i < d * entries; i++) self->scratch[i] = self->prior_precision[i] + self->precision[i];
  linalg_lanes_multiply(d, lanes, self->scratch, walk->mean, self->prior_vector);
  for (int i = 0; i < entries; i++) self->prior_vector[i] -= at->vector[i];
}

/* Finds the evidence for the lanes of the view, in the denoiser's coordinates and the same for every draw of
 * a run: basis, eigenvalue, precision and vector. Fallbacks of the denoiser are ignored. Expectation
 * propagation first starts from the mode under the Gaussian of the prior without evidence, and is then
 * repeated under the Gaussian in the prior's place at the evidence found so far. Fallbacks are added to
 * fallbacks[B]. */
static void linearised_find(Localised *self, const HistoryView *view, int64_t *fallbacks) {
  const int d = self->walk.denoiser->d, first = view->first / view->draws / TILE_LANES * TILE_LANES;
  const int runs = (view->first + view->lanes - 1) / view->draws - first + 1;
  const HistoryView once =
      history_view_in(history_view(view->history, 1, first, runs), view->shift, view->scale);
  ASSERT(runs <= DENOISER_LANES);
  LaneEvidence *at = &self->evidence;
  denoiser_evidence_clear(d, runs, at);
  memset(self->precision, 0, (size_t)(d * d * runs) * sizeof *self->precision);
  linearised_find_gaussian(self, runs);
  const PriorLanes prior = {.precision = self->prior_precision, .vector = self->prior_vector};
  const EvidenceLanes evidence = {.precision = self->precision, .vector = at->vector};
  irls_solve(&self->irls, &once, prior, evidence, self->scratch, fallbacks);
  for (int pass = 1; pass <= GAUSSIANS; pass++) {
    if (pass > 1) linearised_find_gaussian(self, runs);
    ep_solve(&self->ep, &once, prior, evidence, self->log_evidence, fallbacks);
    linalg_factor_eigen(d, runs, self->precision, at->basis, at->eigenvalue);
    for (int i = 0; i < d * runs; i++) at->eigenvalue[i] = fmax(at->eigenvalue[i], 0); /* rounding */
  }
  history_repeat_runs(view, first, runs, d * d, self->precision, self->scratch);
  history_repeat_runs(view, first, runs, d * d, at->basis, self->scratch);
  history_repeat_runs(view, first, runs, d, at->eigenvalue, self->scratch);
  history_repeat_runs(view, first, runs, d, at->vector, self->scratch);
}

/* ---- the sampler */

/* Returns a view of these lanes in the coordinates of the denoiser. */
static HistoryView localised_view(const Denoiser *denoiser, const History *history, int draws, int first,
                                  int lanes) {
  return history_view_in(history_view(history, draws, first, lanes), denoiser->shift, denoiser->scale);
}

/* Finds the evidence for the lanes of the view: of Gaussian rewards, or in the place of others. Returns
 * whether it is the log likelihood itself. */
static bool localised_find_evidence(Localised *self, const HistoryView *view, int64_t *fallbacks) {
  LaneEvidence *at = &self->evidence;
  const bool diagonal = self->walk.denoiser->add_draw,
             whole = diagonal || evidence_decompose_lanes(view, self->scratch, self->z, at->basis,
                                                          at->eigenvalue, self->rotated);
  if (diagonal) {
    history_diagonal(view, at->eigenvalue, at->vector);
  } else if (whole) {
    linalg_lanes_multiply(view->history->d, view->lanes, at->basis, self->rotated, at->vector);
  } else {
    linearised_find(self, view, fallbacks);
  }
  at->lanes = view->lanes;
  memset(self->lane_fallbacks, 0, (size_t)view->lanes * sizeof *self->lane_fallbacks);
  return whole;
}

/* Draws a candidate for each lane under the evidence in place of the rewards, and computes its log_weight:
 * the log likelihood, up to a constant of the run, minus the evidence b' x - x' Lambda x / 2. */
static void draw_candidate(Localised *self, const HistoryView *view, RngLanes *rng) {
  const LaneEvidence *at = &self->evidence;
  const LaneEvidence drawn = {at->lanes, at->basis, at->eigenvalue, self->moved};
  const int d = view->history->d, lanes = view->lanes;
  memcpy(self->moved, at->vector, (size_t)(d * lanes) * sizeof *self->moved);
  denoiser_localisation_draw(&self->walk, &drawn, rng, self->candidate, self->lane_fallbacks);
  history_log_likelihood(view, self->candidate, self->log_weight, NULL);
  linalg_lanes_add_quadratic(d, lanes, -1, (LanesQuadratic){.matrix = self->precision, .vector = at->vector},
                             self->candidate, self->scratch, self->log_weight);
}

/* Makes the draws. If they are weighted, the effective sample size is the mean over the draws of a run. */
static void localised_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                             int64_t *fallbacks) {
  Localised *self = sampler->state;
  const Denoiser *denoiser = sampler->setup.prior->denoiser;
  bool whole = true;
  for (int run = 0; run < history->runs; run++) sampler->notes[run].ess = 0;
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const HistoryView view = localised_view(denoiser, history, draws, chunk.first, chunk.lanes);
    whole = localised_find_evidence(self, &view, fallbacks);
    if (whole) {
      denoiser_localisation_draw(&self->walk, &self->evidence, &chunk.rng, self->z, self->lane_fallbacks);
    } else {
      reservoir_clear(&self->reservoir, chunk.lanes);
      for (int p = 0; p < self->particles; p++) {
        draw_candidate(self, &view, &chunk.rng);
        rng_lanes_uniform(&chunk.rng, 1, self->uniform);
        reservoir_offer(&self->reservoir, sampler->d, chunk.lanes, self->log_weight, self->uniform,
                        self->candidate, self->z);
      }
      for (int n = 0; n < chunk.lanes; n++)
        sampler->notes[(chunk.first + n) / draws].ess += reservoir_ess(&self->reservoir, n) / draws;
    }
    denoiser_chain_guard(&chunk, sampler->d, self->z, fallbacks);
    denoiser_localisation_to_theta(&self->walk, chunk.lanes, self->z);
    chunk_store(&chunk, sampler->d, self->z, theta);
    for (int n = 0; n < chunk.lanes; n++) fallbacks[(chunk.first + n) / draws] += self->lane_fallbacks[n];
  }
  if (whole || self->particles == 1) /* nothing was weighted */
    for (int run = 0; run < history->runs; run++) sampler->notes[run].ess = NAN;
}

/* ---- the marginal likelihood, run by run */

/* Returns the log marginal likelihood of a run. With rewards that are not Gaussian it contains the logarithm
 * of the mean weight of rng.draws draws, whose standard error becomes part of *error. */
static double marginal_of_run(Localised *self, const History *history, int run, RngLanes rng, double *error,
                              int64_t *fallbacks) {
  const Denoiser *denoiser = self->walk.denoiser;
  const int draws = (int)rng.draws;
  const HistoryView view = localised_view(denoiser, history, 1, run, 1);
  double residual, weight, weight_error = 0;
  int lane_fallbacks = 0;
  const bool whole = localised_find_evidence(self, &view, fallbacks);
  const double normaliser =
      denoiser_normaliser_find(&self->normaliser, &self->evidence, error, &lane_fallbacks);
  history_residual(&view, &residual);
  weight = -0.5 * residual;
  if (!whole) {
    rng.first_lane += (uint32_t)(run * draws);
    rng.lanes = rng.draws;
    reservoir_clear(&self->reservoir, 1);
    for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
      const HistoryView drawn =
          localised_view(denoiser, history, draws, run * draws + chunk.first, chunk.lanes);
      localised_find_evidence(self, &drawn, fallbacks);
      draw_candidate(self, &drawn, &chunk.rng);
      for (int n = 0; n < chunk.lanes; n++) reservoir_add(&self->reservoir, 0, self->log_weight[n]);
    }
    weight = reservoir_log_mean(&self->reservoir, 0, draws, &weight_error);
  }
  *error = hypot(*error, weight_error);
  fallbacks[run] += lane_fallbacks;
  return normaliser + weight;
}

static void localised_marginal(Sampler *sampler, const History *history, RngLanes rng, double *value,
                               double *error, int64_t *fallbacks) {
  for (int run = 0; run < history->runs; run++) {
    value[run] = error[run] = 0;
    if (history->rounds > 0)
      value[run] = marginal_of_run(sampler->state, history, run, rng, &error[run], fallbacks);
  }
}

static Status localised_check(const Config *options, const Likelihood *likelihood) {
  (void)likelihood;
  const double first = config_real(options, "first_precision"), last = config_real(options, "last_precision");
  if (first <= last) return STATUS_OK;
  return status_set(
      STATUS_INPUT,
      "sampler localised: first_precision %g is above last_precision %g; precision must increase", first,
      last);
}

/* Creates what has matrices. */
static Status localised_create_matrices(Sampler *sampler, const SamplerSetup *setup) {
  Arena *memory = sampler->memory;
  Localised *self = sampler->state;
  const size_t d = (size_t)sampler->d, vector = d * DENOISER_LANES, matrix = d * vector;
  const int lanes = likelihood_rows(setup->likelihood, DENOISER_LANES);
  TRY(denoiser_evidence_create(memory, sampler->d, &self->evidence));
  ALLOCATE_ARRAYS(memory, matrix, &self->scratch, &self->precision);
  ALLOCATE(memory, self->rotated, vector);
  TRY(denoiser_normaliser_create(memory, setup->prior->denoiser, &self->normaliser));
  TRY(irls_create(memory, sampler->d, lanes, 1e-2, &self->irls));
  TRY(ep_create(memory, sampler->d, lanes, EP_TOLERANCE, &self->ep));
  ALLOCATE(memory, self->prior_precision, d * d * (size_t)lanes);
  ALLOCATE_ARRAYS(memory, d * (size_t)lanes, &self->prior_vector, &self->moved, &self->candidate);
  ALLOCATE_ARRAYS(memory, lanes, &self->log_evidence, &self->log_weight, &self->uniform);
  return reservoir_create(memory, CHUNK_LANES, &self->reservoir);
}

static Status localised_create(Sampler *sampler, const SamplerSetup *setup) {
  Arena *memory = sampler->memory;
  const size_t vector = (size_t)sampler->d * DENOISER_LANES;
  const double first = config_real(setup->options, "first_precision"),
               last = config_real(setup->options, "last_precision");
  const bool from_mixture = config_is(setup->options, "covariance", "mixture");
  Localised *self;
  if (from_mixture && !setup->prior->denoiser->moments_from_mixture)
    return status_set(STATUS_INPUT,
                      "sampler localised: covariance: mixture needs a learned denoiser; that of prior %s is "
                      "exact (use covariance: jacobian)",
                      setup->prior->ops->name);
  ALLOCATE(memory, self, 1);
  sampler->state = self;
  TRY(denoiser_localisation_create(memory, setup->prior->denoiser, from_mixture,
                                   (int)config_int(setup->options, "steps"), first, last, &self->walk));
  self->particles = (int)config_int(setup->options, "particles");
  ALLOCATE(memory, self->z, vector);
  ALLOCATE(memory, self->lane_fallbacks, DENOISER_LANES);
  if (!setup->diagonal) return localised_create_matrices(sampler, setup);
  ALLOCATE_ARRAYS(memory, vector, &self->evidence.eigenvalue, &self->evidence.vector);
  return STATUS_OK;
}

static const ConfigKey KEYS[] = {
    {INT("steps", 1, 100000, "12",
         "steps that add precision; each needs one evaluation of the denoiser and its Jacobian")},
    {REAL("first_precision", 1e-9, 1e9, "0.05",
          "precision after the first step, not counting the evidence, in standardised coordinates")},
    {REAL("last_precision", 1e-9, 1e9, "300",
          "precision after the last step; steps between are evenly spaced in its logarithm")},
    {INT("particles", 1, 100000, "1",
         "candidates per draw, of which one is kept by weight if rewards are not Gaussian; 1: no weighting")},
    {WORD("covariance", "jacobian",
          "covariance of theta in a step: by the jacobian of the denoiser, or of the mixture that it "
          "corrects, which is cheaper"),
     .words = "jacobian mixture"},
    {.name = NULL}};

const SamplerOps sampler_localised = {
    .name = "localised",
    .summary = "stochastic localisation started at the evidence, with a denoiser for any precision",
    .reference = "Eldan (2013); El Alaoui and Montanari (2022); started at the evidence",
    .default_prior = "denoiser",
    .needs = NEEDS_DENOISER,
    .keys = KEYS,
    .check = localised_check,
    .create = localised_create,
    .sample = localised_sample,
    .marginal = localised_marginal,
    .vectors = sampler_always_vectors,
};
