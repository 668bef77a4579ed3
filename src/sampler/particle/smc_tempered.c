/* Adaptive tempered sequential Monte Carlo (Del Moral, Doucet and Jasra 2006; Jasra et al. 2011): a cloud of
 * particles is carried from the prior to the posterior through the densities prior(theta)
 * likelihood(theta)^e, e from 0 to 1. Each exponent is the one at which the effective sample size falls to
 * half the number of particles; there the cloud is weighted, resampled (systematic), and moved by `steps`
 * steps of random-walk Metropolis with the covariance of the cloud times 2.38^2 / d (Roberts, Gelman and
 * Gilks 1997). A draw is one of the particles of the last cloud.
 *
 * Many draws of one history under a mixture are made in the directions that are observed (observed.h): in
 * fewer dimensions fewer particles are as good, and moves go further.
 *
 * Every call starts from the prior again, so nothing is carried from round to round, and the error does not
 * grow with the number of rounds. Each run has its own cloud. The reported effective sample size is that of
 * the last weighting. A path of more than EXPONENTS exponents is cut short, and if no particle has a positive
 * likelihood the cloud stays that of the prior: both count as fallbacks. */
#include "core/arena.h"
#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "core/particles.h"
#include "io/config/config_rows.h"
#include "model/history/history_density.h"
#include "sampler/markov/metropolis.h"
#include "sampler/sampler.h"

enum { EXPONENTS = 200, BISECTIONS = 60 };
/* How close the effective sample size is brought to half the number of particles, as a share of them. */
static const double HALF_TOLERANCE = 0.01;

/* The cloud of one run at a time: P particles. */
typedef struct {
  const Sampler *sampler;
  const History *history;
  int b; /* the run */
  RngLanes rng; /* of its particles */
  Rng rng_resample;
  int particles, steps; /* P */
  RngKey key;
  double *x, *proposal; /* [d + 2, P]: in the last two rows the logarithms of prior and likelihood */
  double *weight, *uniform; /* [P] */
  int *chosen; /* [P] */
  ParticleEvidence evidence;
  HistoryDensity density;
  double *mean, *root; /* [d], [d, d]: of the cloud; the Cholesky factor of its covariance */
} Tempered;

/* Computes the last two rows of x[d + 2, P]; the log likelihood is up to a constant. */
static void smc_tempered_evaluate(Tempered *self, double *x) {
  const Prior *prior = self->sampler->setup.prior;
  const int particles = self->particles;
  double *log_prior = x + (size_t)self->sampler->d * (size_t)particles,
         *log_likelihood = log_prior + particles;
  prior->ops->log_density(prior, particles, x, log_prior);
  history_density(&self->density, x, log_likelihood, NULL);
}

/* Returns the next exponent: 1, or the one at which the effective sample size of the step is half the number
 * of particles. */
static double next_exponent(Tempered *self, const double *likelihood, double exponent) {
  const int particles = self->particles;
  const double half = 0.5 * particles, tolerance = HALF_TOLERANCE * particles,
               largest = particles_largest(particles, likelihood);
  double low = exponent, high = 1, next = 1,
         ess = particles_ess_at(particles, likelihood, largest, 1 - exponent, self->weight);
  if (ess >= half) return 1;
  for (int pass = 0; pass < BISECTIONS && fabs(ess - half) > tolerance; pass++) {
    next = 0.5 * (low + high);
    ess = particles_ess_at(particles, likelihood, largest, next - exponent, self->weight);
    *(ess > half ? &low : &high) = next;
  }
  return next;
}

/* Moves the particles by random-walk Metropolis with the cloud's covariance. */
static void smc_tempered_move(Tempered *self, double exponent, int64_t *fallbacks) {
  const int d = self->sampler->d, particles = self->particles;
  int jitters = 0;
  linalg_moments(d, particles, self->x, self->mean, self->root);
  linalg_factor_cholesky(d, 1, self->root, &jitters);
  fallbacks[self->b] += jitters;
  for (int step = 0; step < self->steps; step++) {
    rng_lanes_normal(&self->rng, d, self->proposal);
    rng_lanes_uniform(&self->rng, 1, self->uniform);
    metropolis_propose(d, particles, 2.38 / sqrt(d), self->root, self->x, self->proposal);
    smc_tempered_evaluate(self, self->proposal);
    metropolis_accept(d, particles, exponent, self->proposal, self->uniform, self->x);
  }
}

/* Carries x[d, P] to a sample of the posterior of the run; returns the effective sample size. */
static double carry_to_posterior(Tempered *self, int64_t *fallbacks) {
  const Prior *prior = self->sampler->setup.prior;
  const int d = self->sampler->d, particles = self->particles;
  const size_t last = (size_t)(d + 1) * (size_t)particles; /* of the rows of x */
  double exponent = 0, ess = particles, offset;
  particles_evidence_begin(&self->evidence);
  for (int j = 0; j < particles; j++) self->weight[j] = 1.0 / particles;
  prior->ops->sample(prior, &self->rng, self->x);
  if (self->history->rounds == 0) return ess;
  const HistoryView view = history_points(self->history, self->b, particles);
  history_density_at(&self->density, &view, fallbacks);
  smc_tempered_evaluate(self, self->x);
  if (!particles_weigh(particles, self->x + last, self->weight)) {
    fallbacks[self->b]++;
    return ess;
  }
  for (int count = 1; exponent < 1; count++) {
    const double *likelihood = self->x + last;
    double next = next_exponent(self, likelihood, exponent);
    if (count == EXPONENTS && next < 1) {
      next = 1;
      fallbacks[self->b]++;
    }
    for (int j = 0; j < particles; j++) self->uniform[j] = (next - exponent) * likelihood[j];
    particles_weigh(particles, self->uniform, self->weight);
    particles_evidence_weigh(&self->evidence, self->uniform, self->weight);
    ess = particles_ess(particles, self->weight);
    exponent = next;
    rng_uniform(&self->rng_resample, 1, &offset);
    particles_resample(particles, self->weight, offset, particles, self->chosen);
    if (exponent < 1) particles_evidence_resample(&self->evidence, self->chosen);
    lanes_gather(d + 2, particles, particles, self->chosen, self->x, self->proposal);
    double *swap = self->x;
    self->x = self->proposal, self->proposal = swap;
    smc_tempered_move(self, exponent, fallbacks);
  }
  return ess;
}

/* Draws by picking from the cloud: the particles' streams have the run and the round of the draws, and do not
 * depend on how many are wanted. */
static void tempered_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                            int64_t *fallbacks) {
  Tempered *self = sampler->state;
  const size_t lanes = rng.lanes;
  const int particles = self->particles;
  double *uniform = theta + (size_t)(sampler->d - 1) * lanes;
  rng_lanes_uniform(&rng, 1, uniform);
  for (int b = 0; b < history->runs; b++) {
    const Rng call = rng_of_lane(&rng, (uint32_t)b * (uint32_t)draws);
    self->sampler = sampler, self->history = history, self->b = b;
    self->rng = rng_lanes(self->key, call.run, 1, particles, call.round);
    self->rng_resample = particles_cloud_stream(self->key, call.run, call.round);
    DrawNotes *notes = &sampler->notes[b];
    *notes = DRAW_NOTES_NONE;
    notes->ess = carry_to_posterior(self, fallbacks);
    notes->log_evidence = particles_evidence_end(&self->evidence, self->weight, &notes->log_evidence_error) +
                          (history->rounds > 0 ? history_density_constant(&self->density) : 0);
    particles_pick(sampler->d, particles, self->x, draws, uniform + (size_t)b * (size_t)draws, lanes,
                   theta + (size_t)b * (size_t)draws);
  }
}

/* Returns P; auto grows with the dimension, as a cloud of the same quality requires. */
static double smc_tempered_particle_count(const Config *options, double d) {
  if (!config_is(options, "particles", "auto")) return (double)config_int(options, "particles");
  return fmin(fmax(1000, 20 * d * d), 100000);
}

static Status tempered_create(Sampler *sampler, const SamplerSetup *setup) {
  Arena *memory = sampler->memory;
  const size_t d = (size_t)sampler->d,
               particles = (size_t)smc_tempered_particle_count(setup->options, sampler->d);
  TRY(particles_check_size("smc_tempered", (int64_t)particles, setup->runs, "runs"));
  Tempered *self;
  ALLOCATE(memory, self, 1);
  sampler->state = self;
  self->particles = (int)particles;
  self->steps = (int)config_int(setup->options, "steps");
  self->key = rng_key(setup->seed, RNG_OBSERVE);
  ALLOCATE_ARRAYS(memory, (d + 2) * particles, &self->x, &self->proposal);
  ALLOCATE_ARRAYS(memory, particles, &self->weight, &self->uniform);
  ALLOCATE(memory, self->chosen, particles);
  TRY(particles_evidence_create(memory, (int)particles, &self->evidence));
  TRY(history_density_create(memory, sampler->d, 1, setup->likelihood, &self->density));
  ALLOCATE(memory, self->root, d * d);
  ALLOCATE(memory, self->mean, d);
  return STATUS_OK;
}

static const ConfigKey KEYS[] = {
    {INT("particles", 2, 10000000, "auto",
         "particles in the cloud of a run; auto: 20 d^2, at least 1000 and at most 100000, where d counts "
         "the observed directions if only these are drawn. Draws are picked from the particles; further "
         "draws are copies"),
     .words = "auto"},
    {INT("steps", 1, 100000, "5", "Metropolis steps of every particle at each exponent")},
    {.name = NULL}};

const SamplerOps sampler_smc_tempered = {
    .name = "smc_tempered",
    .summary = "sequential Monte Carlo from prior to posterior by adaptive tempering, with Metropolis moves",
    .reference =
        "Del Moral, Doucet and Jasra 2006, J. R. Stat. Soc. B 68; Jasra et al. 2011, Scand. J. Stat. 38",
    .default_prior = "mixture",
    .needs = NEEDS_DENSITY,
    .functions = FUNCTIONS_VALUES,
    .keys = KEYS,
    .vectors = sampler_always_vectors,
    .projects = true,
    .create = tempered_create,
    .sample = tempered_sample,
};
