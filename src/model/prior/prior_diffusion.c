/* The learned diffusion prior (DiffTS paper, Section 3 and Appendix B): T noise predictors, each fitted by
 * its own regression. */
#include "core/simd.h"
#include "model/mixture/mixture_fit.h"
#include "model/mixture/mixture_store.h"
#include "model/network/network_kernel.h"
#include "model/network/network_store.h"
#include "model/prior/prior.h"
#include "model/prior/training.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
  LANES = NETWORK_LANES,
  MOST_DIMENSIONS = 2048 /* a Jacobian [d, d, 64] of floats then takes 1 GB */
};

typedef struct {
  Chain chain;
  NetworkShape shape;
  float *parameters; /* [T, P], P = network_parameters */
  double *loss; /* [T + 1] */
  TrainingOrigin origin;
  /* Scratch for 64 lanes. */
  float *input, *vector, *output, *workspace; /* [d, 64] each */
  float *jacobian; /* [d, d, 64] */
  double *theta, *scratch; /* [d, 64], [2, d, 64] */
} Diffusion;

static const float *prior_diffusion_stage_weights(const Diffusion *diffusion, int t) {
  return diffusion->parameters + (size_t)(t - 1) * network_parameters(&diffusion->shape);
}

/* Lanes first .. first + count - 1 of `lanes`, at most 64, which are padded to `width` for the networks. */
typedef struct {
  int lanes, first, count, width;
} Part;

static Part prior_diffusion_lanes_at(int lanes, int first) {
  const int count = lanes - first < LANES ? lanes - first : LANES;
  return (Part){lanes, first, count, (count + NETWORK_GRAIN - 1) / NETWORK_GRAIN * NETWORK_GRAIN};
}

/* Copies the part's lanes of from[d, lanes] to to[d, width], with zeros after the last; first standardises
 * them if a chain is given. */
SIMD_CLONES
static void prior_diffusion_gather(int d, Part part, const Chain *chain, const double *from, float *to) {
  for (int i = 0; i < d; i++, to += part.width) {
    const double *row = from + (size_t)i * (size_t)part.lanes + part.first,
                 shift = chain ? chain->shift[i] : 0, scale = chain ? chain->scale[i] : 1;
    for (int n = 0; n < part.count; n++) to[n] = (float)((row[n] - shift) / scale);
    for (int n = part.count; n < part.width; n++) to[n] = 0;
  }
}

/* Scatters from[d, width] back to the part's lanes of to[d, lanes]. */
SIMD_CLONES
static void prior_diffusion_scatter(int d, Part part, const float *from, double *to) {
  for (int i = 0; i < d; i++, from += part.width) {
    double *row = to + (size_t)i * (size_t)part.lanes + part.first;
    for (int n = 0; n < part.count; n++) row[n] = from[n];
  }
}

/* Computes the noise eps[d, N] of stage t at x[d, N], which is theta if `standardise` is set and s_t if not,
 * and, unless it is NULL, its Jacobian with respect to s_t. */
static void prior_diffusion_predict(const Diffusion *self, int t, bool standardise, int lanes,
                                    const double *x, double *eps, double *jacobian) {
  const int d = self->chain.d;
  const float *weights = prior_diffusion_stage_weights(self, t);
  for (int first = 0; first < lanes; first += LANES) {
    const Part part = prior_diffusion_lanes_at(lanes, first);
    prior_diffusion_gather(d, part, standardise ? &self->chain : NULL, x, self->input);
    if (jacobian)
      network_jacobian(&self->shape, weights, part.width, self->input, self->output, self->jacobian,
                       self->workspace);
    else
      network_forward(&self->shape, weights, part.width, self->input, self->output, self->workspace);
    prior_diffusion_scatter(d, part, self->output, eps);
    if (jacobian) prior_diffusion_scatter(d * d, part, self->jacobian, jacobian);
  }
}

static void prior_diffusion_noise(const Chain *chain, int t, int lanes, const double *s, double *eps) {
  prior_diffusion_predict(chain->state, t, false, lanes, s, eps, NULL);
}

static void prior_diffusion_noise_vjp(const Chain *chain, int t, int lanes, const double *s, const double *v,
                                      double *out) {
  const Diffusion *self = chain->state;
  for (int first = 0; first < lanes; first += LANES) {
    const Part part = prior_diffusion_lanes_at(lanes, first);
    prior_diffusion_gather(chain->d, part, NULL, s, self->input);
    prior_diffusion_gather(chain->d, part, NULL, v, self->vector);
    network_vjp(&self->shape, prior_diffusion_stage_weights(self, t), part.width, self->input, self->vector,
                self->output, self->workspace);
    prior_diffusion_scatter(chain->d, part, self->output, out);
  }
}

static void prior_diffusion_noise_jacobian(const Chain *chain, int t, int lanes, const double *s, double *eps,
                                           double *jacobian) {
  prior_diffusion_predict(chain->state, t, false, lanes, s, eps, jacobian);
}

static void prior_diffusion_sample(const Prior *prior, RngLanes *rng, double *theta) {
  const Diffusion *self = prior->state;
  denoiser_chain_sample_parts(&self->chain, LANES, rng, self->theta, self->scratch, theta);
}

/* Computes the score of s_1, which is -eps_1(z) / sqrt(1 - alpha_bar_1) with respect to z. s_1 is nearly
 * theta in standardised coordinates: its noise has variance 1 - alpha_bar_1. */
static void prior_diffusion_score(const Prior *prior, int lanes, const double *theta, double *score,
                                  double *hessian) {
  const Diffusion *self = prior->state;
  const Chain *chain = &self->chain;
  const int d = prior->d;
  const double factor = -1 / sqrt(1 - chain->schedule.alpha_bar[1]);
  prior_diffusion_predict(self, 1, true, lanes, theta, score, hessian);
  for (int i = 0; i < d; i++) {
    const double slope = factor / chain->scale[i];
    for (int n = 0; n < lanes; n++) score[i * lanes + n] *= slope;
    if (!hessian) continue;
    for (int j = 0; j < d; j++)
      for (int n = 0; n < lanes; n++)
        hessian[((size_t)i * (size_t)d + (size_t)j) * (size_t)lanes + (size_t)n] *= slope / chain->scale[j];
  }
}

static Status prior_diffusion_check_dimension(size_t d) {
  if (d >= 1 && d <= MOST_DIMENSIONS) return STATUS_OK;
  return status_set(STATUS_INPUT, "a diffusion prior in %zu dimensions; allowed: 1 to %d", d,
                    MOST_DIMENSIONS);
}

/* Creates a prior with everything allocated; the networks' parameters, losses, shift and scale are still
 * to be set. */
static Status prior_diffusion_create(Prior *prior, const PriorFit *fit, int d, Diffusion **out) {
  Arena *memory = prior->memory;
  Diffusion *self;
  ALLOCATE(memory, self, 1);
  prior->state = self;
  prior->d = d;
  TRY(denoiser_chain_create(memory, &self->chain, d, &fit->schedule, fit->last_stage));
  self->shape = network_shape(d, fit->hidden_count, fit->hidden, d);
  size_t stages = (size_t)fit->schedule.stages, block = (size_t)d * LANES;
  ALLOCATE(memory, self->parameters, stages * network_parameters(&self->shape));
  ALLOCATE(memory, self->loss, stages + 1);
  ALLOCATE_ARRAYS(memory, block, &self->input, &self->output, &self->vector);
  ALLOCATE(memory, self->theta, block);
  ALLOCATE(memory, self->jacobian, (size_t)d * block);
  ALLOCATE(memory, self->workspace, network_workspace(&self->shape));
  ALLOCATE(memory, self->scratch, 2 * block);
  self->chain.loss = self->loss;
  self->chain.state = self;
  self->chain.noise = prior_diffusion_noise;
  self->chain.noise_vjp = prior_diffusion_noise_vjp;
  self->chain.noise_jacobian = prior_diffusion_noise_jacobian;
  prior->chain = &self->chain;
  *out = self;
  return STATUS_OK;
}

static size_t prior_diffusion_network_size(const PriorFit *fit, int d) {
  return training_stage_values(fit, d) - 1; /* without the loss */
}

/* ---- its companion mixture, which only a guard uses (sampler/guard.h) */

enum { COMPANION_EACH = 20 /* samples per component */, COMPANION_STARTS = 4 /* of EM */ };

static int prior_diffusion_companion_components(int n) {
  const int wanted = n / COMPANION_EACH, most = wanted < COMPANION_COMPONENTS ? wanted : COMPANION_COMPONENTS;
  return most < 1 ? 1 : most;
}

static Status prior_diffusion_fit_companion(const PriorFit *fit, const Samples *samples, double *part) {
  SCRATCH_ARENA(scratch);
  Mixture mixture;
  if (samples->d > COMPANION_MOST) return STATUS_OK;
  TRY(mixture_fit_roughly(&scratch, samples->d, samples->n, samples->theta,
                          prior_diffusion_companion_components(samples->n), COMPANION_STARTS,
                          rng_key(fit->seed, RNG_BESIDE), fit->replicate, &mixture));
  mixture_pack(&mixture, part);
  return STATUS_OK;
}

static Status prior_diffusion_assemble_companion(Prior *prior, const double *part) {
  Mixture *mixture;
  if (prior->d > COMPANION_MOST) return STATUS_OK;
  ALLOCATE(prior->memory, mixture, 1);
  TRY(mixture_unpack(prior->memory, prior->d, part, mixture));
  TRY(mixture_store_check("the companion mixture of the fitted prior", mixture));
  prior->companion = mixture;
  return mixture_prepare(mixture);
}

/* Does nothing if the file has no mixture. */
static Status prior_diffusion_load_companion(Prior *prior, StoreFile *file) {
  Mixture *mixture;
  if (!store_has_variable(file, "weight")) return STATUS_OK;
  ALLOCATE(prior->memory, mixture, 1);
  TRY(mixture_store_load(prior->memory, file, mixture));
  if (mixture->d != prior->d)
    return status_set(STATUS_INPUT, "%s: the mixture has %d dimensions, but the networks have %d",
                      store_path(file), mixture->d, prior->d);
  prior->companion = mixture;
  return mixture_prepare(mixture);
}

/* ---- fits and prior files */

/* Returns the number of parts: the groups of stages, and last the companion mixture of the prior. */
static int prior_diffusion_parts(const PriorFit *fit) { return training_groups(fit) + 1; }

static size_t prior_diffusion_part_size(const PriorFit *fit, int d) {
  const size_t group = TRAINING_GROUP * training_stage_values(fit, d),
               companion = d <= COMPANION_MOST ? mixture_packed_size(d, COMPANION_COMPONENTS) : 0;
  return group > companion ? group : companion;
}

static Status prior_diffusion_fit_part(const PriorFit *fit, const FitSource *source, int part, double *out) {
  const Samples *samples = source->samples;
  SCRATCH_ARENA(scratch);
  TrainingSetup setup;
  TRY(prior_diffusion_check_dimension((size_t)samples->d));
  if (part == training_groups(fit)) return prior_diffusion_fit_companion(fit, samples, out);
  TRY(training_create(&scratch, fit, samples, &setup));
  return training_group(&setup, part, out);
}

/* Checks that losses, shift and scale, fitted or read, are finite and that scale is above 0. */
static Status prior_diffusion_check_vectors(const Diffusion *self, const char *name) {
  const Chain *chain = &self->chain;
  const size_t stages = (size_t)chain->schedule.stages;
  for (size_t t = 1; t <= stages; t++)
    if (!isfinite(self->loss[t]))
      return status_set(STATUS_INPUT, "%s: the loss of stage %zu is %g; it must be finite", name, t,
                        self->loss[t]);
  return training_check_scale(name, chain->d, chain->shift, chain->scale);
}

/* Assembles a prior; fails if the reader of prior files would refuse it. */
static Status prior_diffusion_assemble(Prior *prior, const PriorFit *fit, const FitSource *source,
                                       const double *parts) {
  const Samples *samples = source->samples;
  Diffusion *self;
  TRY(prior_diffusion_create(prior, fit, samples->d, &self));
  const size_t count = network_parameters(&self->shape), size = prior_diffusion_part_size(fit, samples->d);
  for (int t = 0; t < fit->schedule.stages; t++) {
    const double *fitted =
        parts + (size_t)(t / TRAINING_GROUP) * size + (size_t)(t % TRAINING_GROUP) * (count + 1);
    float *parameters = self->parameters + (size_t)t * count;
    for (size_t i = 0; i < count; i++) parameters[i] = (float)fitted[i];
    self->loss[t + 1] = fitted[count];
  }
  training_standardise(fit->standardise, samples, self->chain.shift, self->chain.scale);
  TRY(training_origin_find(samples, &self->origin));
  TRY(prior_diffusion_check_vectors(self, "the fitted prior"));
  for (size_t k = 0; k < (size_t)fit->schedule.stages * count; k++) /* as network_store.c does for files */
    if (!isfinite(self->parameters[k]))
      return status_set(STATUS_INPUT,
                        "the fitted prior: the network of stage %zu contains a value that is not finite",
                        k / count + 1);
  return prior_diffusion_assemble_companion(prior, parts + (size_t)training_groups(fit) * size);
}

static void prior_diffusion_report(const Prior *prior, FILE *out) {
  const Diffusion *self = prior->state;
  const int stages = self->chain.schedule.stages;
  fprintf(out, "mean squared error of the noise %.3g (stage 1) to %.3g (stage %d)\n", self->loss[1],
          self->loss[stages], stages);
}

static const char *prior_diffusion_doubt(const Prior *prior) {
  const NetworkShape *shape = &((const Diffusion *)prior->state)->shape;
  for (int l = 1; l < shape->layers; l++)
    if (shape->width[l] < prior->d)
      return "its networks have a hidden layer with fewer units than theta has dimensions, which cannot pass "
             "on the noise of every coordinate, so do not trust its draws; learn it with wider layers, or in "
             "fewer coordinates";
  return NULL;
}

static void prior_diffusion_describe_fit(const PriorFit *fit, FILE *out) {
  schedule_describe(&fit->schedule, out);
  fprintf(out, " standardise %d last %d steps %d batch %d patience %d rate %a hidden", fit->standardise,
          fit->last_stage, fit->steps, fit->batch, fit->patience, fit->learning_rate);
  for (int i = 0; i < fit->hidden_count; i++) fprintf(out, " %d", fit->hidden[i]);
}

static Status prior_diffusion_save(const Prior *prior, StoreFile *file) {
  const Diffusion *self = prior->state;
  const Chain *chain = &self->chain;
  int stage, dim;
  TRY(store_dimension(file, "stage", (size_t)chain->schedule.stages, &stage));
  TRY(prior->companion ? mixture_store_save(prior->companion, file, &dim)
                       : store_dimension(file, "dim", (size_t)prior->d, &dim));
  TRY(store_text_attribute(file, NULL, "last_stage",
                           chain->last_stage == LAST_STAGE_LITERAL ? "literal" : "repaired"));
  TRY(store_write(file, "alpha", STORE_DOUBLE, 1, &stage,
                  "share of the signal's variance that stage t = 1 .. T keeps", "1",
                  chain->schedule.alpha + 1));
  TRY(store_write(file, "alpha_bar", STORE_DOUBLE, 1, &stage, "product of alpha up to stage t", "1",
                  chain->schedule.alpha_bar + 1));
  TRY(store_write(file, "loss", STORE_DOUBLE, 1, &stage,
                  "mean squared error of the noise for each coordinate on held-out samples", "1",
                  self->loss + 1));
  TRY(training_origin_save(&self->origin, chain->shift, chain->scale, file, dim));
  return network_store_save(&self->shape, chain->schedule.stages, self->parameters, file, stage);
}

/* Loads a prior. All settings come from the file, so that a stored prior is used as it was fitted. */
static Status prior_diffusion_load(Prior *prior, StoreFile *file, const PriorFit *chain_settings) {
  PriorFit fit = {.schedule.alpha = 0.5}; /* replaced below */
  size_t stages = SIZE_MAX, d = SIZE_MAX;
  Diffusion *self;
  const char *text;
  (void)chain_settings;
  TRY(store_shape(file, "alpha", 1, &stages));
  TRY(store_shape(file, "shift", 1, &d));
  if (stages < 1 || stages > INT_MAX)
    return status_set(STATUS_INPUT, "%s: the file has %zu stages; allowed: 1 to 2147483647", store_path(file),
                      stages);
  Status status = prior_diffusion_check_dimension(d);
  if (status != STATUS_OK) return status_prefix(status, "%s: ", store_path(file));
  fit.schedule.stages = (int)stages;
  TRY(network_store_load_hidden(file, stages, d, d, &fit.hidden_count, fit.hidden));
  TRY(prior_diffusion_create(prior, &fit, (int)d, &self));
  Chain *chain = &self->chain;
  TRY(store_shape(file, "loss", 1, &stages));
  TRY(store_get_doubles(file, "alpha", chain->schedule.alpha + 1));
  status = schedule_derive(&chain->schedule);
  if (status != STATUS_OK) return status_prefix(status, "%s: ", store_path(file));
  TRY(store_get_doubles(file, "loss", self->loss + 1));
  TRY(training_origin_load(file, d, &self->origin, chain->shift, chain->scale));
  TRY(store_get_text_attribute(prior->memory, file, "last_stage", &text));
  if (strcmp(text, "literal") != 0 && strcmp(text, "repaired") != 0)
    return status_set(STATUS_INPUT, "%s: the attribute 'last_stage' is '%s'; allowed: literal, repaired",
                      store_path(file), text);
  chain->last_stage = schedule_last_stage(text);
  TRY(network_store_load(&self->shape, stages, file, self->parameters));
  TRY(prior_diffusion_check_vectors(self, store_path(file)));
  return prior_diffusion_load_companion(prior, file);
}

const PriorOps prior_diffusion = {
    .name = "diffusion",
    .summary = "diffusion model: one network for each stage predicts the noise, learned from samples",
    .reference = "DiffTS paper, Section 3 and Appendix B",
    .able = PRIOR_CHAIN,
    .sample = prior_diffusion_sample,
    .save = prior_diffusion_save,
    .load = prior_diffusion_load,
    .parts = prior_diffusion_parts,
    .part_size = prior_diffusion_part_size,
    .network_size = prior_diffusion_network_size,
    .fit_part = prior_diffusion_fit_part,
    .assemble = prior_diffusion_assemble,
    .describe_fit = prior_diffusion_describe_fit,
    .settle = training_settle,
    .report = prior_diffusion_report,
    .doubt = prior_diffusion_doubt,
    .score = prior_diffusion_score,
};
