#include "sampler/tilted/tilt_cloud.h"

#include "core/lanes.h"
#include "core/linalg.h"
#include "sampler/cost.h"
#include "sampler/methods.h"

#include <math.h>

struct TiltCloud {
  const Prior *given; /* of the clean sample */
  int stage; /* t */
  Prior prior; /* the law of s_t */
  double *normal, *score; /* [d, P] */
  History tilt; /* of one run, with the evidence Q_t and b_t */
  Sampler sampler;
  double *draws; /* [d, M] */
  double *precision, *vector; /* [d, d], [d]: Q_t and b_t */
};

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

Status tilt_cloud_create(Arena *memory, const SamplerSetup *setup, int particles, TiltCloud **out) {
  const size_t d = (size_t)setup->prior->d;
  char count[32];
  const char *sets[] = {count};
  SamplerSetup inner = *setup;
  TiltCloud *self;
  if (!setup->prior->chain->density)
    return status_set(STATUS_INPUT,
                      "sampler tilted: baseline smc needs the density of every stage, which the chain of "
                      "prior %s does not know (use baseline: ula)",
                      setup->prior->ops->name);
  ALLOCATE(memory, self, 1);
  *out = self;
  self->given = setup->prior;
  self->prior = (Prior){.ops = &stage_ops, .d = setup->prior->d, .state = self};
  ALLOCATE_ARRAYS(memory, d * (size_t)particles, self->normal, self->score);
  ALLOCATE(memory, self->draws, d * (size_t)setup->draws);
  ALLOCATE(memory, self->precision, d * d);
  ALLOCATE(memory, self->vector, d);
  TRY(history_create(memory, setup->prior->d, 1, setup->likelihood, &self->tilt));
  snprintf(count, sizeof count, "particles=%d", particles);
  Config *options;
  TRY(config_options(memory, "tilted", sampler_keys(&sampler_smc_tempered), 1, sets, &options));
  inner.prior = &self->prior, inner.runs = 1, inner.options = options;
  return sampler_create(memory, &sampler_smc_tempered, &inner, &self->sampler);
}

/* Returns the cost with the default number of Metropolis steps of smc_tempered. */
double tilt_cloud_cost(const SamplerWork *work) {
  return work->drawn * cost_tempering(work, (double)config_int(work->options, "particles"), 5);
}

double tilt_cloud_draw(TiltCloud *cloud, int t, const double *basis, const double *q, const double *b,
                       const History *history, int run, RngLanes rng, int stride, double *s,
                       int64_t *fallbacks) {
  const int draws = (int)rng.lanes;
  cloud->stage = t;
  cloud->sampler.setup.first_run = rng_of_lane(&rng, 0).run;
  linalg_spectral_lanes(cloud->prior.d, 1, basis, q, cloud->precision);
  linalg_multiply_lanes(cloud->prior.d, 1, basis, b, cloud->vector);
  /* rounds key the streams */
  history_set_evidence(&cloud->tilt, history->rounds, 1, cloud->precision, cloud->vector);
  sampler_sample(&cloud->sampler, &cloud->tilt, rng, draws, cloud->draws, fallbacks + run);
  lanes_copy(cloud->prior.d, draws, cloud->draws, draws, s, stride);
  return cloud->sampler.ess[0];
}
