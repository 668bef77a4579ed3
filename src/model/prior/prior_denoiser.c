/* The learned denoiser (denoiser_network.h) as a prior: it tells stochastic localisation what it needs to
 * know about a distribution of theta that is known only by its samples. It is always standardised. Samples of
 * it are draws without evidence. The mixture that its network corrects is fitted to the same samples. */
#include "model/denoiser/denoiser_localisation.h"
#include "model/mixture/mixture_fit.h"
#include "model/mixture/mixture_store.h"
#include "model/network/learning.h"
#include "model/network/network.h"
#include "model/network/network_store.h"
#include "model/prior/denoiser_training.h"
#include "model/prior/families.h"
#include "model/prior/prior.h"

#include <math.h>
#include <string.h>

enum {
  MOST_DIMENSIONS = 1000, /* limit for files */
  MOST_COMPONENTS = 256, /* of the mixture alone */
  MOST_CORRECTED = 32 /* of one with a network, whose training costs more with each */
};

typedef struct {
  Denoiser denoiser;
  Mixture mixture; /* of z */
  Denoiser start; /* the mixture's denoiser */
  DenoiserNetwork network;
  float *parameters; /* [network_parameters] */
  DenoiserCheck check;
  TrainingOrigin origin;
  Unconditional unconditional;
} Learned;

static Status prior_denoiser_scratch(const Denoiser *denoiser, Arena *memory, void **out) {
  const Learned *self = denoiser->state;
  return denoiser_network_scratch(memory, &self->network, out);
}

static void prior_denoiser_moments(const Denoiser *denoiser, const LaneEvidence *at, double *mean,
                                   double *covariance, int *lane_fallbacks, void *scratch) {
  const Learned *self = denoiser->state;
  denoiser_network_moments(&self->network, true, at, mean, covariance, lane_fallbacks, scratch);
}

static void moments_from_mixture(const Denoiser *denoiser, const LaneEvidence *at, double *mean,
                                 double *covariance, int *lane_fallbacks, void *scratch) {
  const Learned *self = denoiser->state;
  denoiser_network_moments(&self->network, false, at, mean, covariance, lane_fallbacks, scratch);
}

/* Creates a prior with everything allocated; parameters, shift and scale are still to be set. Takes over the
 * mixture, even on failure. */
static Status prior_denoiser_create(Prior *prior, const Mixture *mixture, int hidden_count, const int *hidden,
                                    Learned **out) {
  Arena *memory = prior->memory;
  const int d = mixture->d;
  Learned *self;
  ALLOCATE(memory, self, 1);
  self->mixture = *mixture;
  prior->state = self;
  prior->d = d;
  TRY(denoiser_mixture_create(memory, &self->mixture, false, &self->start));
  self->network = (DenoiserNetwork){.d = d,
                                    .shape = network_shape(denoiser_input_count(d), hidden_count, hidden, d),
                                    .start = &self->start,
                                    .most_precision = DENOISER_MOST_PRECISION};
  ALLOCATE(memory, self->parameters, network_parameters(&self->network.shape));
  self->network.parameters = self->parameters;
  TRY(denoiser_standard(memory, d, &self->denoiser));
  self->denoiser.state = self;
  self->denoiser.scratch = prior_denoiser_scratch;
  self->denoiser.moments = prior_denoiser_moments;
  self->denoiser.moments_from_mixture = moments_from_mixture;
  TRY(denoiser_localisation_sample_create(memory, &self->denoiser, &self->unconditional));
  prior->denoiser = &self->denoiser;
  *out = self;
  return STATUS_OK;
}

/* Sets prior->companion to the mixture that the network corrects, in the coordinates of theta. */
static Status prior_denoiser_set_companion(Prior *prior) {
  const Learned *self = prior->state;
  Mixture *out;
  ALLOCATE(prior->memory, out, 1);
  TRY(mixture_copy(prior->memory, &self->mixture, out));
  prior->companion = out;
  return mixture_transform(out, self->denoiser.shift, self->denoiser.scale);
}

static void prior_denoiser_sample(const Prior *prior, RngLanes *rng, double *theta) {
  Learned *self = prior->state;
  denoiser_localisation_sample(&self->unconditional, rng, theta);
}

/* ---- fitting: a single part, because a network is trained in one piece */

enum { CHECK_VALUES = sizeof(DenoiserCheck) / sizeof(double) };

/* Layout of a part. */
typedef struct {
  double *mixture; /* [mixture_packed_size(d, MOST_COMPONENTS)] */
  double *check, *share, *parameters;
} Part;

static Part prior_denoiser_view_part(int d, const double *values) {
  Part part = {.mixture = (double *)(uintptr_t)values};
  part.check = part.mixture + mixture_packed_size(d, MOST_COMPONENTS);
  part.share = part.check + CHECK_VALUES;
  part.parameters = part.share + DENOISER_BINS;
  return part;
}

/* Returns the candidate number of components at this index, for n samples in d dimensions; 0 past the end. */
static int prior_denoiser_candidate(int d, int n, int index) {
  int first = 0;
  while (mixture_candidate(d, first) > MOST_COMPONENTS ||
         !mixture_candidate_fits(d, n, mixture_candidate(d, first)))
    first++;
  return mixture_candidate(d, first + index);
}

/* Fits mixtures to the samples that are not held out, and chooses the number of components by held-out
 * likelihood: for `out` among all candidates, for `corrected` among those of at most MOST_CORRECTED. */
static Status fit_mixture(Arena *memory, const PriorFit *fit, const TrainingSamples *samples,
                          Mixture *corrected, Mixture *out) {
  SCRATCH_ARENA(scratch);
  const int d = samples->d, n = samples->training > 0 ? samples->training : 1;
  const RngKey key = rng_key(fit->seed, RNG_DENOISER_MIXTURE);
  Mixture fits[MIXTURE_MOST_CANDIDATES];
  int components[MIXTURE_MOST_CANDIDATES], count = 0, few = 0;
  const double *density[MIXTURE_MOST_CANDIDATES];
  MixtureChoice choice;
  double *z;
  ALLOCATE(&scratch, z, (size_t)d * (size_t)n);
  for (int i = 0; i < d; i++)
    for (int j = 0; j < n; j++) z[i * n + j] = (double)samples->z[j * d + i];
  while (prior_denoiser_candidate(d, n, count) > 0) count++;
  for (int k = 0; k < count; k++) { /* in rising order */
    double *held_out, shared;
    components[k] = prior_denoiser_candidate(d, n, count - 1 - k);
    few += components[k] <= MOST_CORRECTED;
    ALLOCATE(&scratch, held_out, mixture_held_out(n));
    TRY(mixture_try(&scratch, d, n, z, components[k], fit->starts, key, fit->replicate, &fits[k], held_out,
                    &shared));
    density[k] = held_out;
  }
  mixture_choice_make(mixture_held_out(n), few, components, density, &choice);
  TRY(mixture_copy(memory, &fits[choice.chosen], corrected));
  mixture_choice_make(mixture_held_out(n), count, components, density, &choice);
  return mixture_copy(memory, &fits[choice.chosen], out);
}

static void prior_denoiser_settle(PriorFit *fit, int d) {
  if (fit->hidden_count == 0) {
    fit->hidden_count = 2;
    fit->hidden[0] = fit->hidden[1] = d <= 2 ? 64 : d <= 5 ? 128 : 256;
  }
  if (fit->steps == 0) fit->steps = 20000;
  if (fit->batch == 0) fit->batch = d <= 2 ? 1024 : 256;
  if (fit->learning_rate == 0) fit->learning_rate = d <= 2 ? 0.003 : 0.006;
}

static void prior_denoiser_describe_fit(const PriorFit *fit, FILE *out) {
  fprintf(out, "shared variances or a mixture alone, starts %d steps %d batch %d rate %a hidden", fit->starts,
          fit->steps, fit->batch, fit->learning_rate);
  for (int i = 0; i < fit->hidden_count; i++) fprintf(out, " %d", fit->hidden[i]);
}

static size_t prior_denoiser_network_size(const PriorFit *fit, int d) {
  const NetworkShape shape = network_shape(denoiser_input_count(d), fit->hidden_count, fit->hidden, d);
  return network_parameters(&shape);
}

static size_t prior_denoiser_part_size(const PriorFit *fit, int d) {
  return mixture_packed_size(d, MOST_COMPONENTS) + CHECK_VALUES + DENOISER_BINS +
         prior_denoiser_network_size(fit, d);
}

/* Replaces mixture and network by the larger mixture alone if its error is less, on the same held-out
 * cases. */
static Status prior_denoiser_fall_back(const PriorFit *fit, const TrainingSamples *samples,
                                       const Mixture *mixture, Learned *self) {
  SCRATCH_ARENA(scratch);
  Denoiser alone;
  DenoiserCheck check;
  Mixture copy;
  double before = 0, after = 0;
  if (mixture->components == self->mixture.components) return STATUS_OK;
  TRY(mixture_copy(&scratch, mixture, &copy));
  TRY(denoiser_mixture_create(&scratch, &copy, false, &alone));
  TRY(denoiser_check(fit, samples, &alone, &check));
  for (int k = 0; k < DENOISER_BINS; k++) {
    before += self->check.error[k];
    after += check.error[k];
  }
  if (after >= before) return STATUS_OK;
  self->check = check;
  self->mixture = *mixture;
  memset(self->network.share, 0, sizeof self->network.share);
  return STATUS_OK;
}

/* Learns and checks a denoiser in a temporary prior, and packs it into the only part. */
static Status prior_denoiser_fit_part(const PriorFit *fit, const FitSource *source, int index, double *out) {
  const Samples *samples = source->samples;
  SCRATCH_ARENA(scratch);
  const Part part = prior_denoiser_view_part(samples->d, out);
  const size_t vector = (size_t)samples->d * sizeof(double),
               count = prior_denoiser_network_size(fit, samples->d);
  Prior prior = {.memory = &scratch, .ops = &prior_denoiser};
  TrainingSamples training;
  Mixture corrected, mixture;
  Learned *self;
  (void)index;
  TRY(training_samples_create(&scratch, fit, true, samples, &training));
  TRY(fit_mixture(&scratch, fit, &training, &corrected, &mixture));
  TRY(prior_denoiser_create(&prior, &corrected, fit->hidden_count, fit->hidden, &self));
  memcpy(self->denoiser.shift, training.shift, vector);
  memcpy(self->denoiser.scale, training.scale, vector);
  TRY(denoiser_train(fit, &training, &self->network, self->parameters));
  TRY(denoiser_choose_shares(fit, &training, &self->network));
  TRY(denoiser_check(fit, &training, &self->denoiser, &self->check));
  TRY(prior_denoiser_fall_back(fit, &training, &mixture, self));
  mixture_pack(&self->mixture, part.mixture);
  memcpy(part.check, &self->check, sizeof self->check);
  memcpy(part.share, self->network.share, sizeof self->network.share);
  for (size_t i = 0; i < count; i++) part.parameters[i] = (double)self->parameters[i];
  return STATUS_OK;
}

static Status prior_denoiser_assemble(Prior *prior, const PriorFit *fit, const FitSource *source,
                                      const double *parts) {
  const Samples *samples = source->samples;
  const Part part = prior_denoiser_view_part(samples->d, parts);
  Mixture mixture;
  Learned *self;
  TRY(mixture_unpack(prior->memory, samples->d, part.mixture, &mixture));
  TRY(prior_denoiser_create(prior, &mixture, fit->hidden_count, fit->hidden, &self));
  const size_t count = network_parameters(&self->network.shape);
  for (size_t i = 0; i < count; i++) self->parameters[i] = (float)part.parameters[i];
  memcpy(&self->check, part.check, sizeof self->check);
  memcpy(self->network.share, part.share, sizeof self->network.share);
  training_standardise(true, samples, self->denoiser.shift, self->denoiser.scale);
  TRY(training_origin_find(samples, &self->origin));
  return prior_denoiser_set_companion(prior);
}

static void prior_denoiser_report(const Prior *prior, FILE *out) {
  const Learned *self = prior->state;
  const DenoiserCheck *check = &self->check;
  const char *form = denoiser_network_is_used(&self->network)
                         ? "a network on a mixture of %d\n"
                         : "a mixture of %d alone, as no network lowers its error on held-out samples\n";
  fprintf(out, form, self->mixture.components);
  fprintf(out, "on held-out samples, by log det(I + M):\n"
               "  up to  cases  network kept  error left  variance claimed / error  slope of the mean (each "
               "ideally 1)\n");
  for (int k = 0; k < DENOISER_BINS; k++)
    if (check->count[k] > 0)
      fprintf(out, "  %5.1f  %5.0f  %11.0f%%  %10.3f  %24.3f  %17.3f\n", denoiser_check_end(prior->d, k),
              check->count[k], 100 * self->network.share[k], check->error[k] / check->count[k],
              check->claimed[k] / check->error[k], check->agreement[k] / check->signal[k]);
}

static const char *prior_denoiser_doubt(const Prior *prior) {
  const double most_left = 1.1, least_claimed = 0.8; /* these separated good priors from bad ones */
  const DenoiserCheck *check = &((const Learned *)prior->state)->check;
  for (int k = 0; k < DENOISER_BINS; k++)
    if (check->error[k] > most_left * check->count[k] || check->claimed[k] < least_claimed * check->error[k])
      return "the denoiser fails its own check on held-out samples (error left above 1.1, or variance "
             "claimed below 0.8 of the error), so do not trust its draws; a mixture is the safer prior";
  return NULL;
}

/* ---- prior files */

/* The arrays of the check, and the variable of each in a file. */
static const struct {
  const char *name, *long_name;
  size_t offset;
} CHECKS[] = {
    {"check_count", "held-out cases in the bin", offsetof(DenoiserCheck, count)},
    {"check_error", "sum of the squared error of S^-1/2 z for each coordinate",
     offsetof(DenoiserCheck, error)},
    {"check_claimed", "sum of the variance claimed for this error", offsetof(DenoiserCheck, claimed)},
    {"check_signal", "sum of squares of the quantity that is denoised", offsetof(DenoiserCheck, signal)},
    {"check_agreement", "sum of products of this quantity and the error of the linear estimate",
     offsetof(DenoiserCheck, agreement)}};
enum { CHECK_COUNT = sizeof CHECKS / sizeof *CHECKS };

static Status prior_denoiser_save(const Prior *prior, StoreFile *file) {
  const Learned *self = prior->state;
  int member, dim, bin;
  double ends[DENOISER_BINS];
  for (int k = 0; k < DENOISER_BINS; k++) ends[k] = denoiser_check_end(prior->d, k);
  TRY(store_dimension(file, "member", 1, &member));
  TRY(mixture_store_save(&self->mixture, file, &dim));
  TRY(store_dimension(file, "bin", DENOISER_BINS, &bin));
  TRY(training_origin_save(&self->origin, self->denoiser.shift, self->denoiser.scale, file, dim));
  TRY(store_real_attribute(file, "most_precision", self->network.most_precision));
  TRY(store_write(file, "check_end", STORE_DOUBLE, 1, &bin, "upper end of the bin of log det(I + M)", "1",
                  ends));
  for (int i = 0; i < CHECK_COUNT; i++)
    TRY(store_write(file, CHECKS[i].name, STORE_DOUBLE, 1, &bin, CHECKS[i].long_name, "1",
                    (const double *)(const void *)((const char *)&self->check + CHECKS[i].offset)));
  TRY(store_write(file, "network_share", STORE_DOUBLE, 1, &bin,
                  "share of the network's correction kept in the bin", "1", self->network.share));
  return network_store_save(&self->network.shape, 1, self->parameters, file, member);
}

static Status prior_denoiser_load(Prior *prior, StoreFile *file, const PriorFit *chain_settings) {
  size_t bins = DENOISER_BINS;
  Learned *self;
  Mixture mixture;
  int hidden_count, hidden[NETWORK_MOST_HIDDEN];
  (void)chain_settings;
  TRY(mixture_store_load(prior->memory, file, &mixture));
  const size_t d = (size_t)mixture.d;
  if (d > MOST_DIMENSIONS)
    return status_set(STATUS_INPUT, "%s: %zu dimensions are too many for a denoiser", store_path(file), d);
  TRY(network_store_load_hidden(file, 1, (size_t)denoiser_input_count(mixture.d), d, &hidden_count, hidden));
  TRY(prior_denoiser_create(prior, &mixture, hidden_count, hidden, &self));
  TRY(training_origin_load(file, d, &self->origin, self->denoiser.shift, self->denoiser.scale));
  TRY(training_check_scale(store_path(file), mixture.d, self->denoiser.shift, self->denoiser.scale));
  for (int i = 0; i < CHECK_COUNT; i++) {
    TRY(store_shape(file, CHECKS[i].name, 1, &bins));
    TRY(store_get_doubles(file, CHECKS[i].name, (double *)(void *)((char *)&self->check + CHECKS[i].offset)));
  }
  double *share = self->network.share;
  for (size_t k = 0; k < bins; k++) share[k] = 1; /* in files written before shares were chosen */
  if (store_has_variable(file, "network_share")) {
    TRY(store_shape(file, "network_share", 1, &bins));
    TRY(store_get_doubles(file, "network_share", share));
  }
  for (size_t k = 0; k < bins; k++)
    if (!(share[k] >= 0 && share[k] <= 1))
      return status_set(STATUS_INPUT, "%s: network_share[%zu] is %g; it must be from 0 to 1",
                        store_path(file), k, share[k]);
  TRY(store_get_real_attribute(file, "most_precision", &self->network.most_precision));
  if (!(self->network.most_precision > 0) || !isfinite(self->network.most_precision))
    return status_set(STATUS_INPUT, "%s: the attribute 'most_precision' is %g; it must be above 0",
                      store_path(file), self->network.most_precision);
  TRY(prior_denoiser_set_companion(prior));
  return network_store_load(&self->network.shape, 1, file, self->parameters);
}

const PriorOps prior_denoiser = {
    .name = "denoiser",
    .summary = "one network for the mean given Gaussian observations of any precision, learned from samples "
               "as a correction to a mixture",
    .reference = "El Alaoui and Montanari (2022); Eldan (2013)",
    .able = PRIOR_DENOISER,
    .sample = prior_denoiser_sample,
    .save = prior_denoiser_save,
    .load = prior_denoiser_load,
    .part_size = prior_denoiser_part_size,
    .network_size = prior_denoiser_network_size,
    .fit_part = prior_denoiser_fit_part,
    .assemble = prior_denoiser_assemble,
    .describe_fit = prior_denoiser_describe_fit,
    .settle = prior_denoiser_settle,
    .report = prior_denoiser_report,
    .doubt = prior_denoiser_doubt,
};
