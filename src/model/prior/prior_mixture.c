/* The closed-form priors: a Gaussian and a mixture of Gaussians, with the exact reverse chain.
 *
 * In the chain's coordinates z the mixture is sum_c w_c N(m_c, S_c). Noising keeps the form: s_t has means
 * sqrt(abar_t) m_c and covariances abar_t S_c + (1 - abar_t) I, which share the eigenvectors of S_c at every
 * stage. The expected noise is eps = (s_t - sqrt(abar_t) E[s_0 | s_t]) / sqrt(1 - abar_t) = -sqrt(1 - abar_t)
 * score_t(s_t) (Tweedie's formula), and its Jacobian -sqrt(1 - abar_t) times the Hessian, which is
 * symmetric. */
#include "core/linalg.h"
#include "model/mixture/mixture_fit.h"
#include "model/mixture/mixture_store.h"
#include "model/prior/families.h"
#include "model/prior/prior_closed.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct { /* the mixture of one stage */
  int stage; /* of `mixture`; -1: none yet */
  Mixture mixture; /* mean, precision and log_norm are set */
  double *gradient; /* [d, CHUNK_LANES] */
} DiffusedMixture;

typedef struct {
  Mixture mixture;
  Chain chain;
  double *mean; /* [C, d], of z */
  double *basis, *eigenvalue; /* [C, d, d] and [C, d], of the covariances of z */
  DiffusedMixture *diffused;
  Denoiser denoiser;
  MixtureChoice choice; /* how the number of components was chosen */
} Closed;

/* Computes P_c = Q diag(1 / (abar l + 1 - abar)) Q' and log_norm_c of stage t. */
static void prior_mixture_diffuse_to_stage(const Closed *self, int t) {
  Mixture *now = &self->diffused->mixture;
  size_t d = (size_t)self->mixture.d;
  double signal = self->chain.schedule.alpha_bar[t];
  for (size_t c = 0; c < (size_t)self->mixture.components; c++) {
    const double *q = self->basis + c * d * d, *l = self->eigenvalue + c * d;
    double *p = now->precision + c * d * d, log_determinant = 0;
    memset(p, 0, d * d * sizeof *p);
    for (size_t k = 0; k < d; k++) {
      double variance = signal * l[k] + (1 - signal);
      log_determinant += log(variance);
      for (size_t i = 0; i < d; i++) {
        double scaled = q[i * d + k] / variance;
        if (scaled == 0) continue; /* as with independent coordinates */
        for (size_t j = 0; j < d; j++) p[i * d + j] += scaled * q[j * d + k];
      }
    }
    for (size_t i = 0; i < d; i++) now->mean[c * d + i] = sqrt(signal) * self->mean[c * d + i];
    now->log_norm[c] = log(self->mixture.weight[c]) - 0.5 * (log_determinant + (double)d * log(2 * M_PI));
  }
  self->diffused->stage = t;
}

static const Mixture *diffused_mixture(const Chain *chain, int t) {
  const Closed *self = chain->state;
  if (self->diffused->stage != t) prior_mixture_diffuse_to_stage(self, t);
  return &self->diffused->mixture;
}

/* Turns scores, or their derivatives, into noise: x <- -sqrt(1 - abar_t) x. */
static void score_to_noise(const Chain *chain, int t, int lanes, double *x) {
  double factor = -sqrt(1 - chain->schedule.alpha_bar[t]);
  for (size_t i = 0; i < (size_t)chain->d * (size_t)lanes; i++) x[i] *= factor;
}

static void prior_closed_noise(const Chain *chain, int t, int lanes, const double *s, double *eps) {
  mixture_score(diffused_mixture(chain, t), lanes, s, eps);
  score_to_noise(chain, t, lanes, eps);
}

static void prior_closed_noise_vjp(const Chain *chain, int t, int lanes, const double *s, const double *v,
                                   double *out) {
  mixture_hessian_product(diffused_mixture(chain, t), lanes, s, v, out);
  score_to_noise(chain, t, lanes, out);
}

static void prior_closed_noise_jacobian(const Chain *chain, int t, int lanes, const double *s, double *eps,
                                        double *jacobian) {
  mixture_score_hessian(diffused_mixture(chain, t), lanes, s, eps, jacobian);
  score_to_noise(chain, t, lanes, eps);
  score_to_noise(chain, t, chain->d * lanes, jacobian);
}

static void prior_closed_density(const Chain *chain, int t, int lanes, const double *s, double *log_density,
                                 double *score) {
  const Closed *self = chain->state;
  mixture_density(diffused_mixture(chain, t), lanes, s, self->diffused->gradient, log_density, score);
}

/* Computes mean and eigendecomposition of every component in the chain's coordinates. */
static Status prior_mixture_decompose(Closed *self) {
  SCRATCH_ARENA(scratch);
  size_t d = (size_t)self->mixture.d, count = (size_t)self->mixture.components;
  Mixture mixture; /* of z */
  TRY(mixture_copy(&scratch, &self->mixture, &mixture));
  TRY(mixture_standardise(&mixture, self->chain.shift, self->chain.scale));
  memcpy(self->mean, mixture.mean, count * d * sizeof *self->mean);
  Status status = STATUS_OK;
  for (size_t c = 0; c < count && status == STATUS_OK; c++) {
    status = linalg_eigen((int)d, mixture.covariance + c * d * d, self->basis + c * d * d,
                          self->eigenvalue + c * d);
    double *l = self->eigenvalue + c * d;
    for (size_t k = 0; k < d; k++) l[k] = fmax(l[k], DBL_EPSILON * l[d - 1]); /* l is in rising order */
  }
  return status;
}

/* Creates the prior of `mixture`, which is in the prior's memory and is prepared here, and builds the
 * chain. */
Status prior_closed_create(Prior *prior, const Mixture *mixture, const MixtureChoice *choice,
                           const PriorFit *settings) {
  Arena *memory = prior->memory;
  Closed *self;
  ALLOCATE(memory, self, 1);
  self->mixture = *mixture;
  self->choice = *choice;
  prior->state = self;
  prior->d = mixture->d;
  TRY(mixture_prepare(&self->mixture));
  size_t d = (size_t)mixture->d, count = (size_t)mixture->components;
  TRY(denoiser_chain_create(memory, &self->chain, mixture->d, &settings->schedule, settings->last_stage));
  ALLOCATE_ARRAYS(memory, count * d, self->mean, self->eigenvalue);
  ALLOCATE(memory, self->basis, count * d * d);
  ALLOCATE(memory, self->diffused, 1);
  self->diffused->stage = -1;
  ALLOCATE(memory, self->diffused->gradient, d * CHUNK_LANES);
  TRY(mixture_create(memory, mixture->d, mixture->components, &self->diffused->mixture));
  if (settings->standardise) mixture_spread(&self->mixture, self->chain.shift, self->chain.scale);
  TRY(prior_mixture_decompose(self));
  TRY(denoiser_mixture_create(memory, &self->mixture, true, &self->denoiser));
  self->chain.state = self;
  self->chain.noise = prior_closed_noise;
  self->chain.noise_vjp = prior_closed_noise_vjp;
  self->chain.noise_jacobian = prior_closed_noise_jacobian;
  self->chain.density = prior_closed_density;
  prior->mixture = &self->mixture;
  prior->chain = &self->chain;
  prior->denoiser = &self->denoiser;
  return STATUS_OK;
}

Status prior_from_mixture(Arena *memory, const Mixture *mixture, const PriorFit *chain_settings, Prior *out) {
  *out = (Prior){.memory = memory, .ops = mixture->components == 1 ? &prior_gaussian : &prior_mixture};
  Mixture copy;
  TRY(mixture_copy(memory, mixture, &copy));
  return prior_closed_create(out, &copy, &(MixtureChoice){.count = 0}, chain_settings);
}

Status prior_replace_mixture(Arena *memory, const Prior *prior, const Mixture *mixture,
                             const PriorFit *chain_settings, Prior *out) {
  const Closed *self = prior->state;
  Mixture copy;
  *out = *prior;
  out->memory = memory;
  TRY(mixture_copy(memory, mixture, &copy));
  TRY(mixture_check("the fitted prior", &copy));
  return prior_closed_create(out, &copy, &self->choice, chain_settings);
}

static void prior_closed_sample(const Prior *prior, RngLanes *rng, double *theta) {
  mixture_sample(prior->mixture, rng, theta);
}

static void prior_closed_log_density(const Prior *prior, int lanes, const double *theta, double *out) {
  mixture_log_density(prior->mixture, lanes, theta, out);
}

static void prior_closed_score(const Prior *prior, int lanes, const double *theta, double *score,
                               double *hessian) {
  if (hessian)
    mixture_score_hessian(prior->mixture, lanes, theta, score, hessian);
  else
    mixture_score(prior->mixture, lanes, theta, score);
}

static void prior_mixture_report(const Prior *prior, FILE *out) {
  const Closed *self = prior->state;
  if (self->choice.count > 0)
    mixture_choice_report(&self->choice, out);
  else
    fprintf(out, "%d components\n", self->mixture.components);
}

static const char *prior_mixture_doubt(const Prior *prior) {
  const MixtureChoice *choice = &((const Closed *)prior->state)->choice;
  if (choice->count < 2 || choice->components[choice->chosen] < choice->most ||
      choice->most < mixture_candidate(prior->d, 0))
    return NULL;
  return "`components: auto` chose the largest number of components that it tries, so a mixture may not suit "
         "this prior; compare a diffusion prior with the sampler twisted, or set a larger number";
}

static Status prior_closed_save(const Prior *prior, StoreFile *file) {
  const Closed *self = prior->state;
  int dim;
  TRY(mixture_choice_save(&self->choice, file));
  return mixture_save(prior->mixture, file, &dim);
}

static Status prior_closed_load(Prior *prior, StoreFile *file, const PriorFit *chain_settings) {
  Mixture mixture;
  MixtureChoice choice;
  TRY(mixture_choice_load(file, &choice));
  TRY(mixture_load(prior->memory, file, &mixture));
  if (prior->ops == &prior_gaussian && mixture.components != 1)
    return status_set(STATUS_INPUT, "%s: a prior '%s' has 1 component, but the file has %d; is it a '%s'?",
                      store_path(file), prior_gaussian.name, mixture.components, prior_mixture.name);
  Status status = prior_closed_create(prior, &mixture, &choice, chain_settings);
  return status == STATUS_OK ? status : status_prefix(status, "%s: ", store_path(file));
}

/* Makes a mixture of one component, whatever the keys of a mixture say. */
static void prior_gaussian_settle(PriorFit *fit, int d) {
  (void)d;
  fit->components = 1;
}

#define CLOSED_OPS                                                                                           \
  .able = PRIOR_MIXTURE | PRIOR_CHAIN | PRIOR_DENOISER, .sample = prior_closed_sample,                       \
  .save = prior_closed_save, .load = prior_closed_load, .log_density = prior_closed_log_density,             \
  .score = prior_closed_score

const PriorOps prior_gaussian = {.name = "gaussian",
                                 .summary = "one Gaussian with the samples' mean and covariance",
                                 .reference = "DiffTS, Section 6.1 (TunedTS)",
                                 .settle = prior_gaussian_settle,
                                 .parts = prior_mixture_parts,
                                 .part_size = prior_mixture_part_size,
                                 .fit_part = prior_mixture_fit_part,
                                 .assemble = prior_mixture_assemble,
                                 .fit_logs_part = prior_mixture_fit_logs_part,
                                 .assemble_logs = prior_mixture_assemble_logs,
                                 .logs_cost = prior_mixture_logs_cost,
                                 .describe_fit = prior_gaussian_describe_fit,
                                 .components = prior_mixture_components,
                                 CLOSED_OPS};

const PriorOps prior_mixture = {
    .name = "mixture",
    .summary =
        "Gaussians fitted by expectation maximisation, of a given number or the one that predicts best",
    .reference = "DiffTS, Section 6.1 (MixTS); Hong et al. 2022",
    .parts = prior_mixture_parts,
    .part_size = prior_mixture_part_size,
    .fit_part = prior_mixture_fit_part,
    .assemble = prior_mixture_assemble,
    .fit_logs_part = prior_mixture_fit_logs_part,
    .assemble_logs = prior_mixture_assemble_logs,
    .cost = prior_mixture_cost,
    .logs_cost = prior_mixture_logs_cost,
    .describe_fit = prior_mixture_describe_fit,
    .report = prior_mixture_report,
    .doubt = prior_mixture_doubt,
    .components = prior_mixture_components,
    CLOSED_OPS};
