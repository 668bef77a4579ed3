/* MALA on the posterior itself, without transport: the comparison for tilted transport, whose baseline takes
 * the same steps on an easier law (langevin.h). Each draw has its own chain, which starts from the Gaussian
 * that the posterior would be under a Gaussian prior with the same mean and covariance. So draws are
 * independent, and if the modes are far apart, the share of draws that end in a mode is set by where they
 * started.
 *
 * With a Gaussian prior and Gaussian rewards the chain runs in x, theta = A x with A A' the covariance of the
 * prior, which in x is N(A^-1 m, I): the Gaussian that the chain starts from is the posterior itself, however
 * badly the prior is conditioned. N(A^-1 m, I) is just as simple in the eigenbasis of the evidence, so the
 * steps are taken there, and no step multiplies by a matrix.
 *
 * If nothing has matrices (SamplerSetup.diagonal) the steps are taken in the coordinates of the chain, whose
 * density of the clean sample is that of the prior.
 *
 * With clicks or counts the tilt of langevin.h is the evidence at the mode under the Gaussian with the
 * prior's moments, and the rest of the likelihood is part of the density. So the target is still the
 * posterior itself, and long chains are a reference for other samplers.
 *
 * Of a likelihood that is known by a function there is no such evidence: all of it is part of the density,
 * and chains start from the prior's moments, which are also the preconditioner. */
#include "core/chunk.h"
#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "model/history/history_passes.h"
#include "model/history/irls.h"
#include "model/mixture/mixture_density.h"
#include "sampler/markov/langevin.h"
#include "sampler/sampler.h"

#include <math.h>
#include <string.h>

/* Tolerance of the mode, in standard deviations: it affects only the preconditioner. */
static const double MODE_TOLERANCE = 1e-3;

/* n <= CHUNK_LANES lanes, lane last. */
typedef struct {
  int steps;
  double step_size;
  const Mixture *prior;
  const Chain *chain; /* in whose coordinates the prior and the evidence are diagonal; NULL: they are not */
  bool white; /* one Gaussian and Gaussian rewards: steps are taken in the eigenbasis */
  double *mean, *covariance; /* [d], [d, d]: of the prior, in x; the variances alone with a chain */
  double *root; /* [d, d]: A; NULL: the identity */
  EvidenceBasis basis;
  double *matrix, *q, *vector, *b; /* [d, d, n], [d, n], [d, n], [d, n]: the evidence */
  double *prior_mean, *prior_variance; /* [d, n]: in the eigenbasis */
  double *theta, *gradient; /* [d, n] */
  /* For rewards that are not Gaussian, whose evidence is matrix and vector; else NULL. */
  double *precision, *information; /* [d, d], [d]: of the Gaussian with these moments */
  double *prior_precision, *prior_vector; /* [d, d, n], [d, n]: the same in every lane */
  double *log_likelihood, *image; /* [n], [d, n] */
  HistoryView view;
  Irls irls;
  Langevin langevin;
} Mala;

static void mala_density(const void *context, int lanes, double *x, double *log_density, double *score) {
  const Mala *self = context;
  mixture_density(self->prior, lanes, x, self->gradient, log_density, score);
}

static void mala_chain_density(const void *context, int lanes, double *x, double *log_density,
                               double *score) {
  const Mala *self = context;
  self->chain->density(self->chain, 0, lanes, x, log_density, score);
}

/* Computes the density of the prior times the likelihood, without the evidence, which is in the tilt. */
SIMD_CLONES
static void mala_rows_density(const void *context, int lanes, double *x, double *log_density, double *score) {
  const Mala *self = context;
  const double *vector = self->vector, *image = self->image, *gradient = self->gradient;
  const int d = self->langevin.d;
  mixture_density(self->prior, lanes, x, self->gradient, log_density, score);
  history_log_likelihood(&self->view, x, self->log_likelihood, self->gradient);
  linalg_lanes_multiply(d, lanes, self->matrix, x, self->image);
  for (int n = 0; n < lanes; n++) log_density[n] += self->log_likelihood[n];
  for (int i = 0; i < d * lanes; i += lanes)
    for (int n = 0; n < lanes; n++) {
      log_density[n] -= x[i + n] * (vector[i + n] - 0.5 * image[i + n]);
      score[i + n] += gradient[i + n] - vector[i + n] + image[i + n];
    }
}

/* Finds the evidence at the mode, in its eigenbasis; nothing of a likelihood whose curvature is not known. */
static void mala_linearise(Mala *self, int64_t *fallbacks) {
  const int d = self->langevin.d, lanes = self->view.lanes;
  memset(self->matrix, 0, (size_t)(d * d * lanes) * sizeof *self->matrix);
  memset(self->vector, 0, (size_t)(d * lanes) * sizeof *self->vector);
  lanes_repeat(d * d, lanes, self->precision, self->prior_precision);
  lanes_repeat(d, lanes, self->information, self->prior_vector);
  const PriorLanes prior = {.precision = self->prior_precision, .vector = self->prior_vector};
  const EvidenceLanes evidence = {.precision = self->matrix, .vector = self->vector};
  if (likelihood_is_concave(self->view.history->likelihood))
    irls_solve(&self->irls, &self->view, prior, evidence, self->theta, fallbacks);
  self->basis.shared = false;
  memcpy(self->prior_precision, self->matrix, (size_t)(d * d * lanes) * sizeof *self->matrix);
  linalg_factor_eigen(d, lanes, self->prior_precision, self->basis.u, self->q);
  for (int i = 0; i < d * lanes; i++) self->q[i] = fmax(self->q[i], 0); /* rounding */
  evidence_basis_apply(&self->basis, d, lanes, true, self->vector, self->b);
}

/* Computes the log density of N(prior_mean, I), up to a constant, and its score. */
SIMD_CLONES
static void mala_white_density(const void *context, int lanes, double *x, double *log_density,
                               double *score) {
  const Mala *self = context;
  for (int n = 0; n < lanes; n++) log_density[n] = 0;
  for (int i = 0; i < self->langevin.d * lanes; i += lanes)
    for (int n = 0; n < lanes; n++) {
      const double pull = self->prior_mean[i + n] - x[i + n];
      score[i + n] = pull;
      log_density[n] -= 0.5 * pull * pull;
    }
}

static void mala_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                        int64_t *fallbacks) {
  Mala *self = sampler->state;
  LangevinPrior prior = {.at = self->chain   ? mala_chain_density
                               : self->white ? mala_white_density
                                             : mala_density,
                         .context = self,
                         .has_density = true};
  const int d = sampler->d;
  const LangevinTilt tilt = {.basis = self->white ? NULL : &self->basis,
                             .q = self->q,
                             .b = self->b,
                             .mean = self->prior_mean,
                             .variance = self->prior_variance};
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const int lanes = chunk.lanes;
    self->view = history_view(history, draws, chunk.first, lanes);
    if (self->chain) self->view = history_view_in(self->view, self->chain->shift, self->chain->scale);
    if (!evidence_decompose(&self->view, self->root, self->matrix, self->vector, &self->basis, self->q,
                            self->b)) {
      mala_linearise(self, fallbacks);
      prior.at = mala_rows_density;
    }
    langevin_project(d, lanes, &self->basis, self->mean, self->covariance, self->prior_mean,
                     self->prior_variance);
    langevin_target(&self->langevin, &prior, lanes, &tilt);
    langevin_run(&self->langevin, chunk.rng, self->steps, self->step_size);
    langevin_positions(&self->langevin, self->theta);
    if (self->white) { /* leaves the eigenbasis: A U theta */
      evidence_basis_apply(&self->basis, d, lanes, false, self->theta, self->vector);
      if (self->root) linalg_lanes_multiply_shared(d, lanes, false, self->root, self->vector, self->theta);
    }
    if (self->chain) denoiser_chain_to_theta(self->chain, lanes, self->theta);
    chunk_store(&chunk, d, self->white && !self->root ? self->vector : self->theta, theta);
  }
}

static Status mala_create(Sampler *sampler, const SamplerSetup *setup) {
  Arena *memory = sampler->memory;
  const size_t d = (size_t)sampler->d, vector = d * CHUNK_LANES;
  const Mixture *prior = setup->prior->mixture;
  const bool diagonal = setup->diagonal;
  const int rows = likelihood_rows(setup->likelihood, CHUNK_LANES);
  Mala *self;
  ALLOCATE(memory, self, 1);
  sampler->state = self;
  self->prior = prior;
  self->chain = diagonal ? setup->prior->chain : NULL;
  self->white = !diagonal && prior->components == 1 && rows == 0;
  self->steps = (int)config_int(setup->options, "steps");
  self->step_size = config_real(setup->options, "step_size");
  ALLOCATE(memory, self->mean, d);
  ALLOCATE(memory, self->covariance, diagonal ? d : d * d);
  if (!diagonal) ALLOCATE_ARRAYS(memory, d * vector, &self->matrix, &self->basis.u);
  ALLOCATE_ARRAYS(memory, vector, &self->q, &self->vector, &self->b, &self->prior_mean, &self->prior_variance,
                  &self->theta, &self->gradient);
  if (diagonal)
    denoiser_isotropic_moments(setup->prior->isotropic, self->mean, self->covariance);
  else
    mixture_moments(prior, self->mean, self->covariance);
  if (rows > 0) {
    ALLOCATE(memory, self->prior_precision, d * vector);
    ALLOCATE_ARRAYS(memory, vector, &self->prior_vector, &self->image);
    ALLOCATE(memory, self->log_likelihood, rows);
    ALLOCATE(memory, self->precision, d * d);
    ALLOCATE(memory, self->information, d);
    const bool inverted = linalg_invert(sampler->d, self->covariance, self->precision);
    ASSERT(inverted);
    linalg_lanes_multiply_shared(sampler->d, 1, false, self->precision, self->mean, self->information);
    TRY(irls_create(memory, sampler->d, rows, MODE_TOLERANCE, &self->irls));
  }
  if (self->white && !mixture_is_white(prior)) { /* A, and the mean and covariance of the prior in x */
    double *inverse = self->covariance;
    ALLOCATE(memory, self->root, d * d);
    memcpy(self->root, prior->cholesky, d * d * sizeof *self->root);
    memcpy(inverse, prior->cholesky, d * d * sizeof *inverse);
    linalg_invert_triangle(prior->d, inverse);
    linalg_lanes_multiply_shared(prior->d, 1, false, inverse, prior->mean, self->mean);
    for (size_t i = 0; i < d * d; i++) self->covariance[i] = i % (d + 1) == 0;
  }
  return langevin_create(memory, sampler->d, CHUNK_LANES, &self->langevin);
}

static const ConfigKey KEYS[] = {{LANGEVIN_STEPS_KEY}, {LANGEVIN_STEP_SIZE_KEY}, {.name = NULL}};

const SamplerOps sampler_mala = {
    .name = "mala",
    .summary = "preconditioned Metropolis-adjusted Langevin steps on the posterior itself",
    .reference = "Roberts and Tweedie (1996), Bernoulli 2",
    .default_prior = "mixture",
    .needs = NEEDS_MIXTURE,
    .functions = FUNCTIONS_GRADIENT,
    .keys = KEYS,
    .create = mala_create,
    .vectors = sampler_always_vectors,
    .sample = mala_sample,
};
