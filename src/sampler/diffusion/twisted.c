/* Twisted sequential Monte Carlo on a diffusion prior (Wu, Trippe et al. 2023, Twisted diffusion sampler;
 * Guarniero, Johansen, Lee 2017). Many draws of one history come from one cloud (cloud.h). Few draws, as in
 * bandits, have P particles each, moved by joint moments (joint_chain.h),
 * weighted and resampled; one of them, picked by weight, is the draw.
 *
 * The twisted chain is p(s_T) = N(sqrt(alpha_bar_T) mean, alpha_bar_T Cov + (1 - alpha_bar_T) I) with the
 * prior's moments, and p(s_{t-1} | s_t) = N(w0 s0_hat + wt s_t, beta_tilde_t I + w0^2 C_t). The twisting
 * function is the evidence one step ahead, psi_t(s_t) = integral of N(s_0; s0_hat(s_t), C_t) L(s_0), with
 * psi_0 = L. With the proposal q of joint moments a particle gains the weight
 *
 *   p(s_{t-1} | s_t) psi_{t-1}(s_{t-1}) / (q(s_{t-1} | s_t) psi_t(s_t)),
 *
 * so with many particles the draws come from that chain's posterior given the history; for a Gaussian prior
 * with its exact chain that is the posterior itself, and all weights are equal. The model's own reverse
 * stages, N(mu_t, Sigma_t), would not do: with them the limit is about 10% too narrow at 100 stages.
 *
 * C_t may have been carried along the path (diffusion_moments.h); p, psi and q all use the same one. Between
 * stages that compute it again the psi in the weights cancel, so only these stages use the weights: they
 * resample systematically if the effective sample size is below P / 2.
 *
 * With one particle nothing is weighted or chosen: that is the sampler `joint`. Unlike LaplaceDPS it is exact
 * for a Gaussian prior with its exact chain, for any number of stages, and needs no repaired last stage.
 * Without observations it is a reverse chain whose steps include the covariance C_t of the clean sample: they
 * have beta_tilde_t I + w0^2 C_t where denoiser_chain_sample has Sigma_t. So its law differs from that of
 * denoiser_chain_sample, and for a Gaussian prior it is the right one.
 *
 * Random numbers: particle k of draw m uses the stream of draw m P + k, d normals for s_T and for each stage.
 * Choices within a draw use the substream RESAMPLING of draw m: one uniform per resampling, needed or not,
 * and one for the pick. */
#include "core/chunk.h"
#include "core/lanes.h"
#include "core/particles.h"
#include "sampler/diffusion/cloud.h"
#include "sampler/diffusion/joint_chain.h"
#include "sampler/sampler.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { PARTICLES_MOST = 100000, WEIGHTED_LANES = 4 * CHUNK_LANES };

/* A chunk is G draws, n <= G P lanes; lane g P + k is particle k of draw g. */
typedef struct {
  int particles, groups; /* P; G */
  int cloud_particles; /* 0: auto */
  bool clouds; /* for which nothing below `variance` is needed */
  double *mean, *variance; /* [d]: of the prior, in the chain's coordinates */
  JointChain chain;
  double *z; /* [d, n] */
  double *log_weight, *log_ratio; /* [n] */
  double *share; /* [P]: weights of one draw */
  double *uniform; /* [G] */
  int *ancestor; /* [n] */
} Twisted;

/* Resamples the particles within each draw. */
static void twisted_resample(Twisted *self, int groups, const Chunk *particles, RngLanes *choices,
                             int64_t *fallbacks) {
  const int count = self->particles;
  bool any = false;
  rng_lanes_uniform(choices, 1, self->uniform);
  for (int g = 0; g < groups; g++) {
    const int first = g * count;
    if (!particles_weigh(count, self->log_weight + first, self->share))
      fallbacks[(particles->first + first) / (int)particles->rng.draws]++;
    bool poor = particles_ess(count, self->share) < 0.5 * count;
    if (poor) particles_resample(count, self->share, self->uniform[g], count, self->ancestor + first);
    for (int k = 0; k < count; k++) {
      self->ancestor[first + k] = first + (poor ? self->ancestor[first + k] : k);
      if (poor) self->log_weight[first + k] = 0;
    }
    any = any || poor;
  }
  if (any) joint_chain_copy_lanes(&self->chain, self->ancestor);
}

/* Steps from s_t to s_{t-1}, t = T + 1 .. 1. */
static void twisted_stage(Twisted *self, int t, int groups, Chunk *particles, RngLanes *choices,
                          int64_t *fallbacks) {
  JointChain *chain = &self->chain;
  const size_t lanes = (size_t)particles->lanes;
  const bool weighted = self->particles > 1;
  if (joint_chain_condition(chain, t, fallbacks) && weighted) {
    joint_chain_marginal(chain);
    lanes_add(lanes, 1, chain->log_marginal, self->log_weight);
    twisted_resample(self, groups, particles, choices, fallbacks);
    lanes_add(lanes, -1, chain->log_marginal, self->log_weight);
  }
  rng_lanes_normal(&particles->rng, chain->d, self->z);
  joint_chain_draw(chain, t, self->z, weighted ? self->log_ratio : NULL, fallbacks);
  if (weighted) lanes_add(lanes, 1, self->log_ratio, self->log_weight);
  denoiser_chain_guard(particles, chain->d, chain->s, fallbacks);
}

/* Returns G, for P particles. */
static int twisted_groups(const SamplerSetup *setup, int particles) {
  const size_t d = (size_t)setup->prior->d;
  const double all = fmin((double)particles * setup->runs * setup->draws, INT_MAX);
  int lanes = denoiser_chain_lanes(setup->prior->chain, 7 * d * d + 16 * d, (int)all);
  if (particles > 1 && lanes < WEIGHTED_LANES) lanes = WEIGHTED_LANES;
  return particles < lanes ? lanes / particles : 1;
}

/* Makes the draws of a chunk, columns of theta[d, total]: of several particles picks one by weight, and adds
 * the draw's share of the mean effective sample size to the notes of its run. */
static void twisted_sample_groups(Twisted *self, const History *history, const Chunk *chunk, double *theta,
                                  DrawNotes *notes, int64_t *fallbacks) {
  const Chain *chain = self->chain.chain;
  const int count = self->particles, groups = chunk->lanes, draws = (int)chunk->rng.draws * count;
  RngLanes choices = chunk->rng;
  Chunk particles = {.first = chunk->first * count,
                     .lanes = groups * count,
                     .total = chunk->total * count,
                     .rng = chunk->rng};
  choices.key = rng_subkey(choices.key, RNG_RESAMPLING);
  particles.rng.draws *= (uint32_t)count;
  particles.rng.first_lane *= (uint32_t)count;
  particles.rng.lanes *= (uint32_t)count;
  const HistoryView in_theta = history_view(history, draws, particles.first, particles.lanes),
                    view = history_view_in(in_theta, chain->shift, chain->scale);
  memset(self->log_weight, 0, (size_t)particles.lanes * sizeof *self->log_weight);
  joint_chain_begin(&self->chain, &view);
  for (int t = chain->schedule.stages + 1; t >= 1; t--)
    twisted_stage(self, t, groups, &particles, &choices, fallbacks);
  const double *s = self->chain.s;
  if (count == 1) {
    chunk_store(&particles, chain->d, s, theta);
    return;
  }
  joint_chain_log_likelihood(&self->chain, s, self->log_ratio);
  lanes_add((size_t)particles.lanes, 1, self->log_ratio, self->log_weight);
  rng_lanes_uniform(&choices, 1, self->uniform);
  for (int g = 0; g < groups; g++) {
    int chosen;
    particles_weigh(count, self->log_weight + g * count, self->share);
    particles_resample(count, self->share, self->uniform[g], 1, &chosen);
    notes[(uint32_t)(chunk->first + g) / choices.draws].ess +=
        particles_ess(count, self->share) / choices.draws;
    lanes_copy(chain->d, 1, s + g * count + chosen, particles.lanes, theta + chunk->first + g, chunk->total);
  }
}

/* ---- one cloud for all draws of a history */

/* Returns N. */
static int twisted_cloud_particles(int64_t asked, int draws) {
  if (asked > 0) return (int)asked;
  return draws > CLOUD_LEAST ? draws : CLOUD_LEAST;
}

/* What a cloud gets of a run. */
typedef struct {
  Subspace seen;
  History history; /* that `rows` can be a view of */
  HistoryView rows;
} Observed;

/* Finds the observations of a view of one lane in the coordinates of the chain; `rng` has the streams of its
 * draws. *out must stay where it is. */
static Status twisted_observe(Arena *memory, const Sampler *sampler, const HistoryView *view, RngLanes rng,
                              Observed *out) {
  const Twisted *self = sampler->state;
  const Chain *chain = sampler->setup.prior->chain;
  const Likelihood *likelihood = view->history->likelihood;
  double *shift; /* [r] */
  out->rows = (HistoryView){0};
  if (!likelihood_is_concave(likelihood) && view->history->rounds > 0) {
    Rng own = rng_of_lane(&rng, 0);
    own.key = rng_subkey(own.key, RNG_PRIOR_MOMENTS);
    out->rows = *view;
    return cloud_functions_find(memory, view, self->mean, self->variance, &own, &out->seen);
  }
  TRY(history_subspace_find(memory, view, &out->seen));
  if (out->seen.rank == 0 || likelihood_is_conjugate(likelihood)) return STATUS_OK;
  ALLOCATE(memory, shift, out->seen.rank);
  TRY(history_subspace_rows(memory, view, out->seen.rank, out->seen.direction, &out->history));
  for (int k = 0; k < out->seen.rank; k++)
    for (int i = 0; i < chain->d; i++)
      shift[k] += out->seen.direction[k * chain->d + i] * chain->shift[i] / chain->scale[i];
  out->rows = history_view_in(history_view(&out->history, 1, 0, 1), shift, NULL);
  return STATUS_OK;
}

/* Makes the draws of a run, theta[d, M] with rows `stride` apart, before the chain's coordinates are undone.
 */
static Status twisted_draw_cloud(Sampler *sampler, const History *history, int run, RngLanes rng,
                                 size_t stride, double *theta, int64_t *fallbacks) {
  SCRATCH_ARENA(scratch);
  const Twisted *self = sampler->state;
  const Chain *chain = sampler->setup.prior->chain;
  const HistoryView view = history_view_in(history_view(history, 1, run, 1), chain->shift, chain->scale);
  Observed observed;
  double *z; /* [d, M] */
  ALLOCATE(&scratch, z, (size_t)chain->d * rng.lanes);
  TRY(twisted_observe(&scratch, sampler, &view, rng, &observed));
  const CloudTarget target = {.chain = chain,
                              .seen = &observed.seen,
                              .rows = observed.rows,
                              .mean = self->mean,
                              .variance = self->variance,
                              .particles = twisted_cloud_particles(self->cloud_particles, (int)rng.lanes)};
  TRY(cloud_draw(&target, rng, z, &sampler->notes[run], &fallbacks[run]));
  lanes_copy(chain->d, (int)rng.lanes, z, (int)rng.lanes, theta, (int)stride);
  return STATUS_OK;
}

/* Makes the draws run by run; those for which there was no memory are NAN. */
static void twisted_sample_clouds(Sampler *sampler, const History *history, RngLanes rng, int draws,
                                  double *theta, int64_t *fallbacks) {
  for (int run = 0; run < history->runs; run++) {
    RngLanes own = rng;
    own.first_lane += (uint32_t)(run * draws);
    own.lanes = (uint32_t)draws;
    double *first = theta + (size_t)run * (size_t)draws;
    if (twisted_draw_cloud(sampler, history, run, own, rng.lanes, first, fallbacks) == STATUS_OK) continue;
    for (int n = 0; n < draws; n++) first[n] = NAN;
  }
}

/* Returns whether the standard deviation of the noise falls by at most WIDEST from one stage to the next. */
static bool twisted_is_fine(const Schedule *schedule) {
  static const double WIDEST = 1.5;
  bool fine = true;
  for (int t = 2; t <= schedule->stages; t++) {
    const double now = schedule->alpha_bar[t], next = schedule->alpha_bar[t - 1];
    fine = fine && (1 - now) / now <= WIDEST * WIDEST * (1 - next) / next;
  }
  return fine && schedule->stages > 1;
}

/* Returns whether all draws of a history come from one cloud. */
static bool twisted_has_cloud(const SamplerSetup *setup) {
  const Config *options = setup->options;
  if (!config_has(options, "cloud") || config_is(options, "cloud", "false"))
    return false; /* joint has none */
  if (config_is(options, "cloud", "true") || !likelihood_is_concave(setup->likelihood)) return true;
  return setup->for_themselves && setup->draws >= CLOUD_FROM &&
         twisted_is_fine(&setup->prior->chain->schedule) && !config_is(options, "covariance", "loss");
}

/* Returns whether all draws come from clouds; a few at a time, as in settings spread over ranks, do not. */
static bool twisted_has_vectors(const SamplerSetup *setup) {
  return setup->draws >= CLOUD_FROM && twisted_has_cloud(setup);
}

/* ---- the samplers */

static void twisted_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                           int64_t *fallbacks) {
  Twisted *self = sampler->state;
  for (int run = 0; run < history->runs; run++) sampler->notes[run] = DRAW_NOTES_NONE;
  if (self->clouds) {
    twisted_sample_clouds(sampler, history, rng, draws, theta, fallbacks);
    denoiser_chain_to_theta(sampler->setup.prior->chain, (int)rng.lanes, theta);
    return;
  }
  for (int run = 0; run < history->runs; run++) sampler->notes[run].ess = self->particles > 1 ? 0 : NAN;
  for (Chunk chunk = chunk_begin_narrow(rng, self->groups); chunk.lanes > 0; chunk_next(&chunk, rng))
    twisted_sample_groups(self, history, &chunk, theta, sampler->notes, fallbacks);
  denoiser_chain_to_theta(sampler->setup.prior->chain, (int)rng.lanes, theta);
}

/* Returns P, which is 1 for `joint`. */
static int64_t twisted_particles(const Config *options) {
  return config_has(options, "particles") ? config_int(options, "particles") : 1;
}

/* Reads the options of clouds, and finds what they need of the prior. */
static Status twisted_create_clouds(Sampler *sampler, const SamplerSetup *setup) {
  Twisted *self = sampler->state;
  const Config *options = setup->options;
  if (!config_is(options, "cloud_particles", "auto"))
    self->cloud_particles = (int)config_int(options, "cloud_particles");
  ALLOCATE_ARRAYS(sampler->memory, sampler->d, &self->mean, &self->variance);
  return diffusion_moments_spread(setup->prior, self->mean, self->variance);
}

static Status twisted_create(Sampler *sampler, const SamplerSetup *setup) {
  Arena *memory = sampler->memory;
  const int64_t particles = twisted_particles(setup->options);
  Twisted *self;
  ALLOCATE(memory, self, 1);
  sampler->state = self;
  self->clouds = twisted_has_cloud(setup);
  if (self->clouds) return twisted_create_clouds(sampler, setup);
  TRY(particles_check_size(sampler->ops->name, particles, (int64_t)setup->runs * setup->draws, "draws"));
  self->particles = (int)particles;
  self->groups = twisted_groups(setup, self->particles);
  const int lanes = self->groups * self->particles;
  ALLOCATE(memory, self->z, (size_t)sampler->d * (size_t)lanes);
  ALLOCATE_ARRAYS(memory, lanes, &self->log_weight, &self->log_ratio);
  ALLOCATE(memory, self->ancestor, lanes);
  ALLOCATE(memory, self->share, particles);
  ALLOCATE(memory, self->uniform, self->groups);
  return joint_chain_create(memory, setup, config_is(setup->options, "covariance", "loss"), lanes,
                            &self->chain);
}

static Status twisted_check(const Config *options, const Likelihood *likelihood) {
  const bool concave = likelihood_is_concave(likelihood);
  if (!concave && config_is(options, "cloud", "false"))
    return status_set(STATUS_INPUT,
                      "key 'cloud': false needs a likelihood that is log-concave in phi' theta, unlike "
                      "one that is known by a function of theta");
  if ((!concave || config_is(options, "cloud", "true")) && !config_is(options, "covariance", "jacobian"))
    return status_set(STATUS_INPUT, "key 'cloud': %s needs covariance: jacobian",
                      concave ? "true" : "a likelihood that is not log-concave, or known by a function,");
  return STATUS_OK;
}

static const ConfigKey JOINT_KEYS[] = {{JOINT_COVARIANCE_KEY}, {.name = NULL}};

const SamplerOps sampler_joint = {
    .name = "joint",
    .summary = "Joint moments: reverse stages of a diffusion prior, each conditioned on the evidence by the "
               "Gaussian of its clean sample",
    .reference = "Boys et al. (2023), Tweedie moment projected diffusions; sampled with the exact moments of "
                 "the bridge",
    .default_prior = "diffusion",
    .needs = NEEDS_CHAIN,
    .keys = JOINT_KEYS,
    .create = twisted_create,
    .sample = twisted_sample,
};

static const ConfigKey KEYS[] = {
    {JOINT_COVARIANCE_KEY},
    {INT("particles", 1, PARTICLES_MOST, "16", "particles per draw, where there is no cloud")},
    {WORD("cloud", "auto",
          "one cloud of particles for all draws of a history; auto: in posterior studies, `sample` and "
          "draw(m), from 100 draws on, with covariance: jacobian and stages whose noise differs by a factor "
          "of at most 1.5"),
     .words = "auto true false"},
    {INT("cloud_particles", 1, PARTICLES_MOST * 100, "auto",
         "particles of the cloud; auto: the number of draws, but at least 2000"),
     .words = "auto"},
    {.name = NULL}};

const SamplerOps sampler_twisted = {
    .name = "twisted",
    .summary = "Twisted sequential Monte Carlo: particles moved by joint moments, weighted by the evidence "
               "one step ahead; exact in the limit of many particles",
    .reference = "Wu, Trippe, Naesseth, Blei, Cunningham (2023), twisted diffusion sampler",
    .default_prior = "diffusion",
    .needs = NEEDS_CHAIN,
    .functions = FUNCTIONS_GRADIENT,
    .keys = KEYS,
    .check = twisted_check,
    .vectors = twisted_has_vectors,
    .create = twisted_create,
    .sample = twisted_sample,
};
