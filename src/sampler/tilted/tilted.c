/* Tilted transport (Bruna and Han 2024, Provable posterior sampling with denoising oracles via tilted
 * transport): the posterior of a diffusion prior under a quadratic likelihood is reached by the unconditional
 * reverse process of the prior, if that starts from nu_t ~ p_t(x) exp(b_t' x - x' Q_t x / 2), the law of
 * stage t under a tilt that has flowed there (tilt_reverse.h). The evidence is used only for the start.
 *
 * Each lane starts at the last stage t_0 with (1 - alpha_bar) lambda_max < alpha_bar (the paper's T~, on the
 * grid of the stages, where a learned chain knows its score). There are two steps:
 *
 * 1. The baseline draws from nu_t0: preconditioned MALA (langevin.h) if the chain knows the density of its
 *    stages, ULA if it knows only the score; `smc`, a cloud of particles for each run (smc_tempered.c), from
 *    which its draws are picked; `exact`, which adds noise to exact posterior draws: X_t given X_0 = x_0 is
 *    N(sqrt(alpha_bar) x_0, 1 - alpha_bar) times the tilt of stage t.
 * 2. The reverse process runs from t_0 to 0 (tilt_reverse.h).
 *
 * If the evidence is so strong that t_0 = 0, only the baseline is left, on the posterior itself. Chains
 * without a density of the clean sample then start at stage 1 with the evidence as it is, applied to
 * sqrt(alpha_bar_1) z instead of z: the prior is blurred by the noise of that stage, and there is no reverse
 * process.
 *
 * The baseline uses the streams of the draws; everything else uses their substreams TILT_NOISE and
 * REVERSE. */
#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "sampler/markov/langevin.h"
#include "sampler/methods.h"
#include "sampler/one_history.h"
#include "sampler/tilted/tilt_reverse.h"

#include <math.h>
#include <string.h>

typedef enum { BASELINE_MALA, BASELINE_ULA, BASELINE_SMC, BASELINE_EXACT } Baseline;

/* The baseline `smc`: tempered sequential Monte Carlo on nu_t, for one run after the other. */
typedef struct {
  const Prior *given; /* of the clean sample */
  int stage; /* t */
  Prior prior; /* the law of s_t */
  double *normal, *score; /* [d, P] */
  History tilt; /* of one run, with the evidence Q_t and b_t */
  Sampler sampler;
  double *draws; /* [d, M] */
  double *precision, *vector; /* [d, d], [d]: Q_t and b_t; [d] if that is diagonal */
} TiltCloud;

/* n <= lanes lanes, lane last, in the chain's coordinates. */
typedef struct {
  const Chain *chain;
  int lanes; /* most of a chunk */
  bool in_run; /* chunks are of one history each */
  Baseline baseline;
  int steps;
  double step_size, margin;
  double *mean, *covariance; /* [d], [d, d]: of the clean sample; if nothing has matrices, its variances */
  EvidenceBasis basis; /* of the tilt */
  double *matrix, *q, *b; /* [d, d, n], [d, n], [d, n]: the tilt, q and b in its eigenbasis */
  int *stage; /* [n]: t_0 */
  bool *beyond; /* [n]: starts at stage 1 without a reverse process */
  /* Lanes grouped by stage: those at group_stage[g] are lane[m], group[g] <= m < group[g + 1]. */
  int groups, *group_stage, *group, *lane; /* [n], [n + 1], [n] */
  double *s, *z; /* [d, n] */
  double *stage_mean, *stage_variance; /* [d, n]: of s_t0, in the eigenbasis */
  /* Position, log density and score of the lanes of one stage, packed (lanes.h). */
  double *some_x, *some_log, *some_score; /* [d, n], [n], [d, n] */
  Langevin langevin;
  TiltReverse reverse;
  Sampler exact; /* for BASELINE_EXACT */
  TiltCloud cloud; /* for BASELINE_SMC */
} Tilted;

/* ---- the tilt */

/* Computes t_0 of every lane, and the tilt there. */
static void tilted_find_tilt(Tilted *self, const HistoryView *view) {
  const Chain *chain = self->chain;
  const Schedule *schedule = &chain->schedule;
  const int d = chain->d, lanes = view->lanes;
  evidence_decompose(view, NULL, self->matrix, self->z, &self->basis, self->q, self->b);
  for (int n = 0; n < lanes; n++) {
    double largest = 0;
    for (int k = n; k < d * lanes; k += lanes) largest = fmax(largest, self->q[k]);
    const int t = tilt_flow_stage(schedule, largest, self->margin);
    self->beyond[n] = t < (chain->density ? chain->density_from : 1);
    self->stage[n] = self->beyond[n] ? 1 : t;
    if (!self->beyond[n]) {
      tilt_flow(d, lanes, tilt_flow_reach(schedule, t), self->q + n, self->b + n);
      continue;
    }
    for (int k = n; k < d * lanes; k += lanes) {
      self->q[k] /= schedule->alpha_bar[1];
      self->b[k] /= sqrt(schedule->alpha_bar[1]);
    }
  }
}

/* Groups the lanes that start at the same stage, from the last stage down. */
static void tilted_group_lanes(Tilted *self, int lanes) {
  int filled = 0;
  self->groups = 0;
  for (int t = self->chain->schedule.stages; t >= 0; t--) {
    self->group[self->groups] = filled;
    for (int n = 0; n < lanes; n++)
      if (self->stage[n] == t) self->lane[filled++] = n;
    if (filled > self->group[self->groups]) self->group_stage[self->groups++] = t;
  }
  self->group[self->groups] = filled;
}

/* ---- step 1: the baseline */

/* Computes log density and score of s_t. A learned predictor is evaluated only near its data, so x is
 * clamped. */
static void tilted_stage_density(const Chain *chain, int t, int lanes, double *x, double *log_density,
                                 double *score) {
  const int count = chain->d * lanes;
  if (chain->density) {
    chain->density(chain, t, lanes, x, log_density, score);
    return;
  }
  const double factor = -1 / sqrt(1 - chain->schedule.alpha_bar[t]);
  memset(log_density, 0, (size_t)lanes * sizeof *log_density);
  for (int k = 0; k < count; k++) x[k] = fmin(fmax(x[k], -CHAIN_GUARD), CHAIN_GUARD);
  chain->noise(chain, t, lanes, x, score);
  for (int k = 0; k < count; k++) score[k] *= factor;
}

/* Computes log density and score of every lane at its own stage. */
static void tilted_density(const void *context, int lanes, double *x, double *log_density, double *score) {
  const Tilted *self = context;
  const int d = self->chain->d;
  if (self->groups == 1) {
    tilted_stage_density(self->chain, self->group_stage[0], lanes, x, log_density, score);
    return;
  }
  for (int g = 0; g < self->groups; g++) {
    const int *lane = self->lane + self->group[g], count = self->group[g + 1] - self->group[g];
    lanes_gather(d, lanes, count, lane, x, self->some_x);
    tilted_stage_density(self->chain, self->group_stage[g], count, self->some_x, self->some_log,
                         self->some_score);
    lanes_scatter(d, lanes, count, lane, self->some_score, score);
    lanes_scatter(1, lanes, count, lane, self->some_log, log_density);
  }
}

/* Takes Langevin steps in all lanes, each at its own stage. */
static void tilted_langevin(Tilted *self, const Chunk *chunk) {
  const LangevinPrior prior = {tilted_density, self, self->chain->density && self->baseline == BASELINE_MALA};
  const int d = self->chain->d, lanes = chunk->lanes;
  double *mean = self->stage_mean, *variance = self->stage_variance;
  tilted_group_lanes(self, lanes);
  langevin_project(d, lanes, &self->basis, self->mean, self->covariance, mean, variance);
  for (int k = 0; k < d * lanes; k++) {
    const double signal = self->chain->schedule.alpha_bar[self->stage[k % lanes]];
    mean[k] *= sqrt(signal);
    variance[k] = signal * variance[k] + (1 - signal);
  }
  const LangevinTilt tilt = {
      .basis = &self->basis, .q = self->q, .b = self->b, .mean = mean, .variance = variance};
  langevin_target(&self->langevin, &prior, lanes, &tilt);
  langevin_run(&self->langevin, chunk->rng, self->steps, self->step_size);
  langevin_positions(&self->langevin, self->s);
}

/* Draws s_t0 given exact posterior draws: in the eigenbasis of the tilt from N((sqrt(abar) y / (1 - abar) +
 * b) / p, 1 / p) with p = 1 / (1 - abar) + q. */
static void tilted_add_noise(Tilted *self, const Chunk *chunk, const double *theta) {
  const Chain *chain = self->chain;
  const int d = chain->d, lanes = chunk->lanes;
  RngLanes rng = chunk->rng;
  double *drawn = self->some_x, *y = self->some_score;
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++)
      drawn[i * lanes + n] =
          (theta[(size_t)i * (size_t)chunk->total + (size_t)(chunk->first + n)] - chain->shift[i]) /
          chain->scale[i];
  evidence_basis_apply(&self->basis, d, lanes, true, drawn, y);
  rng.key = rng_subkey(rng.key, RNG_TILT_NOISE);
  rng.position = 0;
  rng_lanes_normal(&rng, d, self->z);
  for (int k = 0; k < d * lanes; k++) {
    const double alpha_bar = chain->schedule.alpha_bar[self->stage[k % lanes]], noise = 1 - alpha_bar;
    const double variance = noise / (1 + noise * self->q[k]);
    y[k] = variance * self->b[k] + sqrt(alpha_bar) * y[k] / (1 + noise * self->q[k]) +
           sqrt(variance) * self->z[k];
  }
  evidence_basis_apply(&self->basis, d, lanes, false, y, self->s);
  for (int k = 0; k < d * lanes; k++)
    if (self->stage[k % lanes] == 0) self->s[k] = drawn[k];
}

static void stage_sample(const Prior *prior, RngLanes *rng, double *s) {
  const TiltCloud *self = prior->state;
  const Chain *chain = self->given->chain;
  const size_t lanes = rng->lanes;
  const double alpha_bar = chain->schedule.alpha_bar[self->stage];
  self->given->ops->sample(self->given, rng, s);
  rng_lanes_normal(rng, prior->d, self->normal);
  for (size_t i = 0; i < (size_t)prior->d; i++)
    for (size_t n = i * lanes; n < (i + 1) * lanes; n++)
      s[n] = sqrt(alpha_bar) * (s[n] - chain->shift[i]) / chain->scale[i] +
             sqrt(1 - alpha_bar) * self->normal[n];
}

static void stage_log_density(const Prior *prior, int lanes, const double *s, double *out) {
  const TiltCloud *self = prior->state;
  self->given->chain->density(self->given->chain, self->stage, lanes, s, out, self->score);
}

static const PriorOps stage_ops = {.name = "stage", .sample = stage_sample, .log_density = stage_log_density};

static Status tilted_create_cloud(Arena *memory, const SamplerSetup *setup, TiltCloud *self) {
  const size_t d = (size_t)setup->prior->d;
  const int particles = (int)config_int(setup->options, "particles");
  char count[32];
  const char *sets[] = {count};
  SamplerSetup inner = *setup;
  Config *options;
  if (!setup->prior->chain->density)
    return status_set(STATUS_INPUT,
                      "sampler tilted: baseline smc needs the density of every stage, which the chain of "
                      "prior %s does not know (use baseline: ula)",
                      setup->prior->ops->name);
  self->given = setup->prior;
  self->prior = (Prior){.ops = &stage_ops, .d = setup->prior->d, .state = self};
  ALLOCATE_ARRAYS(memory, d * (size_t)particles, &self->normal, &self->score);
  ALLOCATE(memory, self->draws, d * (size_t)setup->draws);
  ALLOCATE(memory, self->precision, setup->diagonal ? d : d * d);
  ALLOCATE(memory, self->vector, d);
  const DiagonalEvidence none = {.d = setup->prior->d, .q = self->precision, .b = self->vector};
  TRY(setup->diagonal ? history_create_diagonal(memory, &none, setup->likelihood, &self->tilt)
                      : history_create(memory, setup->prior->d, 1, setup->likelihood, &self->tilt));
  snprintf(count, sizeof count, "particles=%d", particles);
  TRY(config_options(memory, "tilted", sampler_keys(&sampler_smc_tempered), 1, sets, &options));
  inner.prior = &self->prior;
  inner.runs = 1;
  inner.options = options;
  return sampler_create(memory, &sampler_smc_tempered, &inner, &self->sampler);
}

/* Draws the starts of all draws, theta[d, N], from one cloud per run, and reports its effective sample size.
 */
static void tilted_draw_clouds(Sampler *sampler, const History *history, RngLanes rng, int draws,
                               double *theta, int64_t *fallbacks) {
  Tilted *self = sampler->state;
  TiltCloud *cloud = &self->cloud;
  const int d = sampler->d;
  for (int run = 0; run < history->runs; run++) {
    const HistoryView in_theta = history_view(history, 1, run, 1),
                      view = history_view_in(in_theta, self->chain->shift, self->chain->scale);
    RngLanes streams = rng;
    streams.first_lane += (uint32_t)(run * draws);
    streams.lanes = (uint32_t)draws;
    tilted_find_tilt(self, &view);
    cloud->stage = self->stage[0];
    if (self->basis.identity) {
      history_set_diagonal(
          &cloud->tilt,
          &(DiagonalEvidence){.d = d, .observations = history->rounds, .q = self->q, .b = self->b});
    } else {
      linalg_factor_spectral(d, 1, self->basis.u, self->q, cloud->precision);
      linalg_lanes_multiply(d, 1, self->basis.u, self->b, cloud->vector);
      history_set_evidence(&cloud->tilt, history->rounds, 1, cloud->precision, cloud->vector);
    }
    sampler_sample(&cloud->sampler, &cloud->tilt, streams, draws, cloud->draws, fallbacks + run);
    lanes_copy(d, draws, cloud->draws, draws, theta + (size_t)run * (size_t)draws, (int)rng.lanes);
    sampler->notes[run].ess = cloud->sampler.notes[0].ess;
  }
}

/* ---- the sampler */

static void tilted_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                          int64_t *fallbacks) {
  Tilted *self = sampler->state;
  const Chain *chain = self->chain;
  const int d = chain->d;
  const double back = 1 / sqrt(chain->schedule.alpha_bar[1]);
  if (self->baseline == BASELINE_EXACT) sampler_sample(&self->exact, history, rng, draws, theta, fallbacks);
  if (self->baseline == BASELINE_SMC) tilted_draw_clouds(sampler, history, rng, draws, theta, fallbacks);
  for (Chunk chunk = chunk_begin_wide(rng, self->lanes, self->in_run); chunk.lanes > 0;
       chunk_next(&chunk, rng)) {
    const int lanes = chunk.lanes;
    const HistoryView in_theta = history_view(history, draws, chunk.first, lanes),
                      view = history_view_in(in_theta, chain->shift, chain->scale);
    tilted_find_tilt(self, &view);
    switch (self->baseline) {
    case BASELINE_EXACT: tilted_add_noise(self, &chunk, theta); break;
    case BASELINE_SMC: lanes_copy(d, lanes, theta + chunk.first, chunk.total, self->s, lanes); break;
    default: tilted_langevin(self, &chunk);
    }
    for (int n = 0; n < lanes; n++) {
      if (!self->beyond[n] || chain->denoise) continue;
      self->stage[n] = 0;
      for (int k = n; k < d * lanes; k += lanes) self->s[k] *= back;
    }
    tilt_reverse_run(&self->reverse, &chunk, self->stage, self->s, fallbacks);
    denoiser_chain_to_theta(chain, lanes, self->s);
    chunk_store(&chunk, d, self->s, theta);
  }
}

static Baseline tilted_baseline(const Config *options) {
  if (config_is(options, "baseline", "ula")) return BASELINE_ULA;
  if (config_is(options, "baseline", "smc")) return BASELINE_SMC;
  return config_is(options, "baseline", "exact") ? BASELINE_EXACT : BASELINE_MALA;
}

static bool tilted_reverse_is_exponential(const Config *options, double d) {
  return config_is(options, "reverse", "auto") ? d > LINALG_BATCH_DIMENSION
                                               : config_is(options, "reverse", "exponential");
}

/* Finds mean and covariance of the clean sample. The reverse chain has the latter as Q diag(r^2) Q'. */
static void tilted_find_moments(Tilted *self) {
  const DenoisedMoments *from = &self->reverse.moments;
  const int d = self->chain->d;
  memcpy(self->mean, from->mean, (size_t)d * sizeof *self->mean);
  for (int k = 0; k < d; k++) self->stage_variance[k] = from->deviation[k] * from->deviation[k];
  linalg_factor_spectral(d, 1, from->basis, self->stage_variance, self->covariance);
}

/* Returns the most lanes of a chunk; if these are of one history each, they share the matrices of the tilt.
 */
static int tilted_lanes(const SamplerSetup *setup, bool exponential) {
  const size_t d = (size_t)setup->prior->d,
               matrices = setup->diagonal ? 0 : (exponential ? 0 : 1) + (one_history_fits(setup) ? 0 : 2);
  return denoiser_chain_lanes(setup->prior->chain, matrices * d * d + 20 * d, one_history_lanes(setup));
}

static Status tilted_create(Sampler *sampler, const SamplerSetup *setup) {
  Arena *memory = sampler->memory;
  const Config *options = setup->options;
  const int d = sampler->d;
  Tilted *self;
  ALLOCATE(memory, self, 1);
  sampler->state = self;
  self->chain = setup->prior->chain;
  const bool exponential = tilted_reverse_is_exponential(options, d);
  self->in_run = one_history_fits(setup);
  self->lanes = tilted_lanes(setup, exponential);
  const size_t vector = (size_t)d * (size_t)self->lanes;
  self->baseline = tilted_baseline(options);
  self->steps = (int)config_int(options, "steps");
  self->step_size = config_real(options, "step_size");
  self->margin = config_real(options, "margin");
  ALLOCATE(memory, self->mean, d);
  ALLOCATE(memory, self->covariance, setup->diagonal ? (size_t)d : (size_t)d * (size_t)d);
  if (!setup->diagonal)
    ALLOCATE_ARRAYS(memory, (size_t)d * (self->in_run ? (size_t)d : vector), &self->matrix, &self->basis.u);
  ALLOCATE_ARRAYS(memory, vector, &self->q, &self->b, &self->s, &self->z, &self->stage_mean,
                  &self->stage_variance, &self->some_x, &self->some_score);
  ALLOCATE(memory, self->some_log, self->lanes);
  ALLOCATE_ARRAYS(memory, self->lanes, &self->stage, &self->group_stage, &self->lane);
  ALLOCATE(memory, self->beyond, self->lanes);
  ALLOCATE(memory, self->group, self->lanes + 1);
  TRY(langevin_create(memory, d, self->lanes, &self->langevin));
  TRY(tilt_reverse_create(memory, setup, self->lanes, exponential, &self->reverse));
  if (setup->diagonal)
    denoiser_isotropic_moments(setup->prior->isotropic, self->mean, self->covariance);
  else
    tilted_find_moments(self);
  if (self->baseline == BASELINE_SMC) return tilted_create_cloud(memory, setup, &self->cloud);
  if (self->baseline != BASELINE_EXACT) return STATUS_OK;
  SamplerSetup exact = *setup;
  exact.options = NULL;
  Status status = sampler_create(memory, &sampler_exact, &exact, &self->exact);
  return status == STATUS_OK ? status : status_prefix(status, "baseline exact: ");
}

/* Returns whether no matrices are asked for: moments of the reverse process have some, in more dimensions
 * than `auto` uses them in. */
static bool tilted_has_vectors(const SamplerSetup *setup) {
  return !config_is(setup->options, "reverse", "moments");
}

static const ConfigKey KEYS[] = {
    {WORD("baseline", "mala",
          "how the start is drawn: mala (ula if the prior has no density), ula, smc, or exact (for mixtures "
          "and Ising models, in tests)"),
     .words = "mala ula smc exact"},
    {LANGEVIN_STEPS_KEY},
    {LANGEVIN_STEP_SIZE_KEY},
    {INT("particles", 2, 10000000, "1000", "particles of smc in the cloud of a run")},
    {REAL("margin", 1e-14, 1, "0.001",
          "distance to the end T* of the flow: 1 - (e^2T - 1) lambda_max is at least this")},
    {WORD("reverse", "auto",
          "stages of the reverse process: moments (Gaussians with the right mean and covariance, second "
          "order, d^3 per stage), exponential (exponential integrator: the score frozen over a stage, first "
          "order, d^2); auto: moments up to 16 dimensions"),
     .words = "auto moments exponential"},
    {.name = NULL}};

const SamplerOps sampler_tilted = {
    .name = "tilted",
    .summary = "Tilted transport: the prior's own reverse process, started where the evidence has become an "
               "easier tilt",
    .reference = "Bruna and Han (2024), Tilted transport",
    .default_prior = "diffusion",
    .needs = NEEDS_CHAIN | NEEDS_CONJUGATE,
    .keys = KEYS,
    .create = tilted_create,
    .vectors = tilted_has_vectors,
    .sample = tilted_sample,
};
