/* Stochastic localisation from the evidence (model/localisation.h): the posterior itself, in a dozen steps.
 *
 * With Gaussian rewards the posterior is p(. | b, Lambda), and adding precision to it leads to a draw. With
 * any other the evidence is linearised again before every step (linearised.h). Without observations it is a
 * draw from the prior, to the bit that of a learned denoiser's own. */
#include "core/arena.h"
#include "core/linalg.h"
#include "model/evidence.h"
#include "model/localisation.h"
#include "sampler/chunk.h"
#include "sampler/cost.h"
#include "sampler/localised/linearised.h"
#include "sampler/methods.h"

#include <stdlib.h>
#include <string.h>

/* n <= CHUNK_LANES lanes, lane last. */
typedef struct {
  Localisation walk;
  double *matrix, *basis; /* [d, d, n]: scratch, U */
  double *column, *eigenvalue, *rotated, *vector; /* [d, n]: scratch, q, U' b, b */
  double *z; /* [d, n] */
  int *rescues; /* [n] */
  Linearised linearised; /* of a likelihood that is not conjugate */
} Localised;

/* basis, eigenvalue and vector. */
static void find_evidence(Localised *self, const HistoryView *view) {
  const int d = view->history->d, lanes = view->lanes;
  if (view->history->rounds == 0) {
    localisation_no_evidence(d, lanes, self->basis, self->eigenvalue, self->vector);
    return;
  }
  evidence_decompose(view, NULL, self->matrix, self->column, self->basis, self->eigenvalue, self->rotated);
  linalg_multiply_lanes(d, lanes, self->basis, self->rotated, self->vector);
}

static void draw(Localised *self, const HistoryView *view, RngLanes *rng, int64_t *fallbacks) {
  if (likelihood_is_conjugate(view->history->likelihood) || view->history->rounds == 0) {
    find_evidence(self, view);
    localisation_draw(&self->walk, view->lanes, self->basis, self->eigenvalue, self->vector, rng, self->z,
                      self->rescues);
  } else {
    linearised_draw(&self->linearised, &self->walk, view, rng, self->z, self->rescues, fallbacks);
  }
}

static void localised_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                             int64_t *fallbacks) {
  Localised *self = sampler->state;
  const Denoiser *denoiser = sampler->setup.prior->denoiser;
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const HistoryView view = {history, draws, chunk.first, chunk.lanes, denoiser->shift, denoiser->scale};
    memset(self->rescues, 0, CHUNK_LANES * sizeof *self->rescues);
    draw(self, &view, &chunk.rng, fallbacks);
    chunk_guard(&chunk, sampler->d, self->z, fallbacks);
    localisation_to_theta(&self->walk, chunk.lanes, self->z);
    chunk_store(&chunk, sampler->d, self->z, theta);
    for (int n = 0; n < chunk.lanes; n++) fallbacks[(chunk.first + n) / draws] += self->rescues[n];
  }
}

static Status localised_create(Sampler *sampler, const SamplerSetup *setup) {
  Arena *memory = sampler->memory;
  const size_t vector = (size_t)sampler->d * CHUNK_LANES, matrix = (size_t)sampler->d * vector;
  const double first = config_real(setup->options, "first_precision"),
               last = config_real(setup->options, "last_precision");
  const bool from_mixture = config_is(setup->options, "covariance", "mixture");
  Localised *self;
  if (from_mixture && !setup->prior->denoiser->moments_from_mixture)
    return status_set(STATUS_INPUT,
                      "sampler localised: covariance: mixture needs a learned denoiser; that of prior %s is "
                      "exact (use covariance: jacobian)",
                      setup->prior->ops->name);
  if (first > last)
    return status_set(STATUS_INPUT,
                      "sampler localised: first_precision %g is above last_precision %g; precision is added",
                      first, last);
  ALLOCATE(memory, self, 1);
  sampler->state = self;
  TRY(localisation_create(memory, setup->prior->denoiser, from_mixture,
                          (int)config_int(setup->options, "steps"), first, last, &self->walk));
  ALLOCATE(memory, self->matrix, matrix);
  ALLOCATE(memory, self->basis, matrix);
  ALLOCATE(memory, self->column, vector);
  ALLOCATE(memory, self->eigenvalue, vector);
  ALLOCATE(memory, self->rotated, vector);
  ALLOCATE(memory, self->vector, vector);
  ALLOCATE(memory, self->z, vector);
  ALLOCATE(memory, self->rescues, CHUNK_LANES);
  return likelihood_is_conjugate(setup->likelihood)
             ? STATUS_OK
             : linearised_create(memory, sampler->d, &self->linearised);
}

/* A step evaluates the denoiser and its Jacobian: a mixture, the one that a learned denoiser corrects or the
 * prior itself, and the network. Rewards that are not Gaussian take some more for the point at which they are
 * expanded, with a pass over the rows each. */
static double localised_cost(const SamplerWork *work) {
  enum { PASSES = 2, CORRECTED = 10 };
  const double lanes = cost_drawn_lanes(work), d = work->d,
               steps = (double)config_int(work->options, "steps");
  const bool learned = work->stage_parameters > 0;
  const double mixture = (learned ? CORRECTED : work->components) * (400 + 70 * d * d);
  const double network = 0.15 * (d + 1) * work->stage_parameters;
  const double once = cost_share(lanes) * (mixture + network + 150 + 20 * d * d + 4 * d * d * d);
  const double expansion = work->conjugate ? 0 : PASSES * (once + cost_rows(work, lanes, true));
  return work->drawn * work->draws * (steps + 1) * (once + expansion);
}

static const ConfigKey KEYS[] = {
    {.name = "steps",
     .type = KEY_INT,
     .minimum = 1,
     .maximum = 100000,
     .fallback = "12",
     .help = "additions of precision; each takes one evaluation of the denoiser and its Jacobian"},
    {.name = "first_precision",
     .type = KEY_REAL,
     .minimum = 1e-9,
     .maximum = 1e9,
     .fallback = "0.05",
     .help = "precision after the first step, beside the evidence, in standardised coordinates"},
    {.name = "last_precision",
     .type = KEY_REAL,
     .minimum = 1e-9,
     .maximum = 1e9,
     .fallback = "300",
     .help = "precision after the last step; those between are even in their logarithm"},
    {.name = "covariance",
     .type = KEY_WORD,
     .fallback = "jacobian",
     .words = "jacobian mixture",
     .help = "of theta in a step: jacobian of the denoiser, or that of the mixture which it corrects, for "
             "less"},
    {.name = NULL}};

const SamplerOps sampler_localised = {
    .name = "localised",
    .summary = "stochastic localisation from the evidence, by a denoiser for any precision",
    .reference = "Eldan (2013); El Alaoui and Montanari (2022); started at the evidence",
    .default_prior = "denoiser",
    .needs = NEEDS_DENOISER,
    .keys = KEYS,
    .create = localised_create,
    .sample = localised_sample,
    .cost = localised_cost,
};
