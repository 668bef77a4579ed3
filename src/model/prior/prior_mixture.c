/* The closed-form priors: a Gaussian and a mixture of Gaussians, with the exact reverse chain.
 *
 * In the chain's coordinates z the mixture is sum_c w_c N(m_c, S_c). Noising keeps the form: s_t has means
 * sqrt(abar_t) m_c and covariances abar_t S_c + (1 - abar_t) I, which share the eigenvectors of S_c at every
 * stage. The expected noise is eps = (s_t - sqrt(abar_t) E[s_0 | s_t]) / sqrt(1 - abar_t) = -sqrt(1 - abar_t)
 * score_t(s_t) (Tweedie's formula), and its Jacobian -sqrt(1 - abar_t) times the Hessian, which is
 * symmetric. */
#include "core/linalg/linalg.h"
#include "model/mixture/mixture_density.h"
#include "model/mixture/mixture_fit.h"
#include "model/mixture/mixture_store.h"
#include "model/prior/families.h"
#include "model/prior/logs_fit.h"
#include "model/prior/prior.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct { /* the mixture of one stage */
  int stage; /* of `mixture`; -1: none yet */
  Mixture mixture; /* mean, precision and log_norm are set */
  double *gradient; /* [d, VECTOR_LANES] */
} DiffusedMixture;

typedef struct {
  Mixture mixture;
  Chain chain;
  double *mean; /* [C, d], of z */
  double *basis, *eigenvalue; /* [C, d, d] and [C, d], of the covariances of z */
  DiffusedMixture *diffused;
  Denoiser denoiser;
  Isotropic isotropic; /* of z, if prior->isotropic refers to it */
  MixtureChoice choice; /* how the number of components was chosen */
} Closed;

/* Computes P_c = Q diag(1 / (abar l + 1 - abar)) Q' and log_norm_c of stage t. */
static void prior_mixture_diffuse_to_stage(const Closed *self, int t) {
  Mixture *now = &self->diffused->mixture;
  size_t d = (size_t)self->mixture.d;
  double signal = self->chain.schedule.alpha_bar[t];
  for (size_t c = 0; c < (size_t)self->mixture.components; c++) {
    const double *q = self->basis + c * d * d, *l = self->eigenvalue + c * d;
    double *p = now->inverse.precision + c * d * d, log_determinant = 0;
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

/* Returns whether every covariance is a multiple of I. */
static bool prior_mixture_is_isotropic(const Mixture *mixture) {
  const size_t d = (size_t)mixture->d, count = (size_t)mixture->components;
  if (mixture->components > ISOTROPIC_COMPONENTS) return false;
  for (size_t c = 0; c < count; c++) {
    const double *own = mixture->covariance + c * d * d;
    for (size_t k = 0; k < d * d; k++)
      if (own[k] != (k % (d + 1) == 0 ? own[0] : 0)) return false;
  }
  return true;
}

/* Standardises by one scale for all directions, and keeps the mixture of z without matrices, for draws that
 * need none (sampler/observed.h). */
static Status prior_mixture_make_isotropic(Prior *prior, Closed *self) {
  const Mixture *mixture = &self->mixture;
  Isotropic *out = &self->isotropic;
  const size_t d = (size_t)mixture->d, count = (size_t)mixture->components;
  double total = 0;
  for (size_t i = 0; i < d; i++) total += self->chain.scale[i] * self->chain.scale[i] / mixture->d;
  for (size_t i = 0; i < d; i++) self->chain.scale[i] = sqrt(total);
  TRY(denoiser_isotropic_create(prior->memory, mixture->d, mixture->components, out));
  memcpy(out->weight, mixture->weight, count * sizeof *out->weight);
  memcpy(out->mean, mixture->mean, count * d * sizeof *out->mean);
  for (size_t c = 0; c < count; c++) out->variance[c] = mixture->covariance[c * d * d];
  denoiser_isotropic_standardise(self->chain.shift, sqrt(total), out);
  prior->isotropic = out;
  return STATUS_OK;
}

/* Finds the means of z, and the eigenvectors and eigenvalues of its covariances. */
static Status prior_mixture_find_spectra(Closed *self) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)self->mixture.d, count = (size_t)self->mixture.components;
  Mixture standardised;
  TRY(mixture_copy(&scratch, &self->mixture, &standardised));
  TRY(mixture_standardise(&standardised, self->chain.shift, self->chain.scale));
  memcpy(self->mean, standardised.mean, count * d * sizeof *self->mean);
  for (size_t c = 0; c < count; c++) {
    double *l = self->eigenvalue + c * d;
    TRY(linalg_eigen((int)d, standardised.covariance + c * d * d, self->basis + c * d * d, l));
    for (size_t k = 0; k < d; k++) l[k] = fmax(l[k], DBL_EPSILON * l[d - 1]); /* l is in rising order */
  }
  return STATUS_OK;
}

/* Does the same for covariances that are multiples of I, with one scale for all directions. */
static void prior_mixture_set_spectra(Closed *self) {
  const size_t d = (size_t)self->mixture.d, count = (size_t)self->mixture.components;
  const double scale = self->chain.scale[0];
  for (size_t c = 0; c < count; c++)
    for (size_t i = 0; i < d; i++) {
      self->mean[c * d + i] = (self->mixture.mean[c * d + i] - self->chain.shift[i]) / scale;
      self->eigenvalue[c * d + i] = self->mixture.covariance[c * d * d] / (scale * scale);
      self->basis[(c * d + i) * d + i] = 1;
    }
}

/* Creates the prior of `mixture`, which is in the prior's memory and is prepared here. */
static Status prior_closed_begin(Prior *prior, const Mixture *mixture, const MixtureChoice *choice,
                                 Closed **out) {
  Closed *self;
  ALLOCATE(prior->memory, self, 1);
  *out = self;
  self->mixture = *mixture;
  self->choice = *choice;
  prior->state = self;
  prior->d = mixture->d;
  prior->isotropic = NULL;
  TRY(mixture_prepare(&self->mixture));
  prior->mixture = &self->mixture;
  return STATUS_OK;
}

static Status prior_closed_create_denoiser(Prior *prior, Closed *self) {
  TRY(denoiser_mixture_create(prior->memory, &self->mixture, true, &self->denoiser));
  prior->denoiser = &self->denoiser;
  return STATUS_OK;
}

/* Creates the prior of `mixture` in the same way, and builds the chain. */
static Status prior_closed_create(Prior *prior, const Mixture *mixture, const MixtureChoice *choice,
                                  const PriorFit *settings) {
  Arena *memory = prior->memory;
  Closed *self;
  TRY(prior_closed_begin(prior, mixture, choice, &self));
  /* In fewer dimensions matrices cost nothing. */
  const bool isotropic = mixture->d > LINALG_BATCH_DIMENSION && prior_mixture_is_isotropic(&self->mixture);
  if (settings->closed_only && !isotropic) return STATUS_OK;
  size_t d = (size_t)mixture->d, count = (size_t)mixture->components;
  TRY(denoiser_chain_create(memory, &self->chain, mixture->d, &settings->schedule, settings->last_stage));
  ALLOCATE_ARRAYS(memory, count * d, &self->mean, &self->eigenvalue);
  ALLOCATE(memory, self->basis, count * d * d);
  ALLOCATE(memory, self->diffused, 1);
  self->diffused->stage = -1;
  ALLOCATE(memory, self->diffused->gradient, d * VECTOR_LANES);
  TRY(mixture_create(memory, mixture->d, mixture->components, &self->diffused->mixture));
  atomic_store(self->diffused->mixture.inverse.found, true); /* what is filled for each stage */
  if (settings->standardise) mixture_spread(&self->mixture, self->chain.shift, self->chain.scale);
  if (isotropic) TRY(prior_mixture_make_isotropic(prior, self));
  if (isotropic)
    prior_mixture_set_spectra(self);
  else
    TRY(prior_mixture_find_spectra(self));
  self->chain.state = self;
  self->chain.noise = prior_closed_noise;
  self->chain.noise_vjp = prior_closed_noise_vjp;
  self->chain.noise_jacobian = prior_closed_noise_jacobian;
  self->chain.density = prior_closed_density;
  prior->chain = &self->chain;
  return prior_closed_create_denoiser(prior, self);
}

static const MixtureChoice NO_CHOICE = {.count = 0};

/* Sets out to what a prior of the mixture is without any state, and copies its parameters. */
static Status prior_closed_copy(Arena *memory, const Mixture *mixture, Prior *out, Mixture *copy) {
  *out = (Prior){.memory = memory, .ops = mixture->components == 1 ? &prior_gaussian : &prior_mixture};
  TRY(mixture_create(memory, mixture->d, mixture->components, copy));
  mixture_copy_parameters(mixture, copy);
  return STATUS_OK;
}

Status prior_from_mixture(Arena *memory, const Mixture *mixture, const PriorFit *chain_settings, Prior *out) {
  Mixture copy;
  TRY(prior_closed_copy(memory, mixture, out, &copy));
  TRY(prior_closed_create(out, &copy, &NO_CHOICE, chain_settings));
  return prior_find_fixed(out);
}

Status prior_from_mixture_without_chain(Arena *memory, const Mixture *mixture, Prior *out) {
  Mixture copy;
  Closed *self;
  TRY(prior_closed_copy(memory, mixture, out, &copy));
  TRY(prior_closed_begin(out, &copy, &NO_CHOICE, &self));
  TRY(prior_closed_create_denoiser(out, self));
  return prior_find_fixed(out);
}

Status prior_replace_mixture(Arena *memory, const Prior *prior, const Mixture *mixture,
                             const PriorFit *chain_settings, Prior *out) {
  const Closed *self = prior->state;
  Mixture copy;
  *out = *prior;
  out->memory = memory;
  TRY(mixture_copy(memory, mixture, &copy));
  TRY(mixture_store_check("the fitted prior", &copy));
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
  const MixtureChoice *choice = &self->choice;
  if (choice->count == 0) {
    fprintf(out, "%d components\n", self->mixture.components);
    return;
  }
  fprintf(out,
          "%d components, the fewest within one standard error of the best\n"
          "  components  mean log density of held-out samples (standard error of the difference from the "
          "best); samples of shared variances\n",
          choice->components[choice->chosen]);
  for (int k = 0; k < choice->count; k++)
    fprintf(out, "  %10d  %10.4f (%.4f)  %5.0f%s\n", choice->components[k], choice->held_out[k],
            choice->error[k], choice->shared[k], k == choice->chosen ? "  chosen" : "");
}

static const char *prior_mixture_doubt(const Prior *prior) {
  const MixtureChoice *choice = &((const Closed *)prior->state)->choice;
  if (choice->count < 2 || choice->components[choice->chosen] < choice->most ||
      choice->most < mixture_candidate(prior->d, 0))
    return NULL;
  return "`components: auto` chose the largest number of components that it tries, so a mixture may not suit "
         "this prior; compare a diffusion prior with the sampler twisted, or set a larger number";
}

/* Saves the choice, if there was one. */
static Status prior_mixture_save_choice(const MixtureChoice *choice, StoreFile *file) {
  int axis;
  if (choice->count == 0) return STATUS_OK;
  TRY(store_dimension(file, "candidate", (size_t)choice->count, &axis));
  TRY(store_int_attribute(file, "candidate_chosen", choice->chosen));
  TRY(store_int_attribute(file, "candidate_most", choice->most));
  TRY(store_write(file, "candidate_components", STORE_INT, 1, &axis, "number of components tried", "1",
                  choice->components));
  TRY(store_write(file, "held_out_log_likelihood", STORE_DOUBLE, 1, &axis,
                  "mean log density of held-out samples", "1", choice->held_out));
  TRY(store_write(file, "held_out_error", STORE_DOUBLE, 1, &axis,
                  "standard error of its difference from the highest", "1", choice->error));
  return store_write(file, "candidate_shared_samples", STORE_DOUBLE, 1, &axis,
                     "weight, in samples, of the variances common to all components in each covariance", "1",
                     choice->shared);
}

/* Loads the choice; count is 0 if the file has none. */
static Status prior_mixture_load_choice(StoreFile *file, MixtureChoice *out) {
  size_t count = SIZE_MAX;
  int64_t chosen, most, components[MIXTURE_MOST_CANDIDATES];
  *out = (MixtureChoice){.count = 0};
  if (!store_has_variable(file, "held_out_log_likelihood")) return STATUS_OK;
  TRY(store_shape(file, "held_out_log_likelihood", 1, &count));
  if (count > MIXTURE_MOST_CANDIDATES)
    return status_set(STATUS_INPUT, "%s: %zu candidate numbers of components; at most %d are allowed",
                      store_path(file), count, MIXTURE_MOST_CANDIDATES);
  TRY(store_shape(file, "candidate_components", 1, &count));
  TRY(store_shape(file, "held_out_error", 1, &count));
  TRY(store_get_int64s(file, "candidate_components", components));
  for (size_t k = 0; k < count; k++) {
    if (components[k] < 1 || components[k] > INT32_MAX)
      return status_set(STATUS_INPUT,
                        "%s: candidate_components[%zu] is %lld; it must be from 1 to 2147483647",
                        store_path(file), k, (long long)components[k]);
    out->components[k] = (int)components[k];
  }
  TRY(store_get_doubles(file, "held_out_log_likelihood", out->held_out));
  TRY(store_get_doubles(file, "held_out_error", out->error));
  TRY(store_get_int_attribute(file, "candidate_chosen", &chosen));
  if (chosen < 0 || chosen >= (int64_t)count)
    return status_set(STATUS_INPUT, "%s: candidate_chosen is %lld, but there are %zu candidates",
                      store_path(file), (long long)chosen, count);
  out->chosen = (int)chosen;
  out->count = (int)count;
  /* Files from before variances were shared have neither of these: nothing was shared, and the candidates are
   * all that was tried. */
  out->most = out->components[count - 1];
  if (!store_has_variable(file, "candidate_shared_samples")) return STATUS_OK;
  TRY(store_shape(file, "candidate_shared_samples", 1, &count));
  TRY(store_get_doubles(file, "candidate_shared_samples", out->shared));
  TRY(store_get_int_attribute(file, "candidate_most", &most));
  if (most < 1 || most > INT32_MAX)
    return status_set(STATUS_INPUT, "%s: candidate_most is %lld; it must be from 1 to 2147483647",
                      store_path(file), (long long)most);
  out->most = (int)most;
  return STATUS_OK;
}

static Status prior_closed_save(const Prior *prior, StoreFile *file) {
  const Closed *self = prior->state;
  int dim;
  TRY(prior_mixture_save_choice(&self->choice, file));
  return mixture_store_save(prior->mixture, file, &dim);
}

static Status prior_closed_load(Prior *prior, StoreFile *file, const PriorFit *chain_settings) {
  Mixture mixture;
  MixtureChoice choice;
  TRY(prior_mixture_load_choice(file, &choice));
  TRY(mixture_store_load(prior->memory, file, &mixture));
  if (prior->ops == &prior_gaussian && mixture.components != 1)
    return status_set(STATUS_INPUT, "%s: a prior '%s' has 1 component, but the file has %d; is it a '%s'?",
                      store_path(file), prior_gaussian.name, mixture.components, prior_mixture.name);
  Status status = prior_closed_create(prior, &mixture, &choice, chain_settings);
  return status == STATUS_OK ? status : status_prefix(status, "%s: ", store_path(file));
}

/* ---- fits, to samples of theta and to logs of past tasks
 *
 * A part is one fit with all of its starts, since these compete: with the number of components asked for, or
 * one part for each candidate number. It holds a head, the log densities of held-out samples, which only
 * candidates have, and the packed mixture. */

enum { HEAD_MOST, HEAD_SHARED, HEAD_NOISE, HEAD, BEFORE = HEAD + MIXTURE_MOST_HELD_OUT };

static int prior_mixture_parts(const PriorFit *fit) {
  return fit->components > 0 ? 1 : MIXTURE_MOST_CANDIDATES;
}

/* Returns the components of a part, or 0 if there is nothing to fit. */
static int prior_closed_part_components(const PriorFit *fit, const FitSource *source, int part) {
  if (fit->components > 0) return fit->components;
  const int d = fit_source_dimension(source), candidate = mixture_candidate(d, part);
  const bool enough = source->logs ? logs_candidate_fits(d, source->logs->tasks, candidate)
                                   : mixture_candidate_fits(d, source->samples->n, candidate);
  return candidate > 0 && enough ? candidate : 0;
}

static size_t prior_mixture_part_size(const PriorFit *fit, int d) {
  return BEFORE + mixture_packed_size(d, fit->components > 0 ? fit->components : mixture_most(d));
}

static int prior_mixture_components(const PriorFit *fit) {
  enum { TYPICAL = 64 };
  return fit->components > 0 ? fit->components : TYPICAL;
}

static Status prior_mixture_fit_part(const PriorFit *fit, const FitSource *source, int part, double *out) {
  const RngKey key = rng_key(fit->seed, RNG_MIXTURE_START);
  const int components = prior_closed_part_components(fit, source, part), starts = fit->starts;
  SCRATCH_ARENA(scratch);
  Mixture fitted;
  int most = components;
  if (components == 0) return STATUS_OK;
  if (source->logs) {
    TRY(logs_fit(&scratch, source->logs, components, starts, key, fit->replicate, &fitted, &out[HEAD_NOISE],
                 fit->components == 0 ? out + HEAD : NULL));
    if (logs_has_rows(source->logs)) out[HEAD_NOISE] = 0;
  } else {
    const int d = source->samples->d, n = source->samples->n;
    const double *theta = source->samples->theta;
    if (fit->components > 0)
      TRY(mixture_fit(&scratch, d, n, theta, components, starts, key, fit->replicate, &fitted));
    else if (components == mixture_candidate(d, 0))
      TRY(mixture_try_more(&scratch, d, n, theta, starts, key, fit->replicate, &fitted, out + HEAD,
                           &out[HEAD_SHARED], &most));
    else
      TRY(mixture_try(&scratch, d, n, theta, components, starts, key, fit->replicate, &fitted, out + HEAD,
                      &out[HEAD_SHARED]));
  }
  out[HEAD_MOST] = most;
  mixture_pack(&fitted, out + BEFORE);
  return STATUS_OK;
}

/* Assembles a prior; fails if the reader of prior files would refuse it. */
static Status prior_mixture_assemble(Prior *prior, const PriorFit *fit, const FitSource *source,
                                     const double *parts) {
  const size_t size = prior_mixture_part_size(fit, prior->d);
  const int n = source->logs ? source->logs->tasks : source->samples->n;
  const double *candidate[MIXTURE_MOST_CANDIDATES], *held_out[MIXTURE_MOST_CANDIDATES], *chosen = parts;
  int components[MIXTURE_MOST_CANDIDATES], count = 0, most = 0;
  MixtureChoice choice = {.count = 0};
  Mixture mixture;
  for (int part = prior_mixture_parts(fit) - 1; part >= 0; part--) { /* candidates fall, these arrays rise */
    if (prior_closed_part_components(fit, source, part) == 0) continue;
    candidate[count] = parts + (size_t)part * size;
    held_out[count] = candidate[count] + HEAD;
    components[count] = (int)candidate[count][BEFORE];
    most = (int)candidate[count++][HEAD_MOST];
  }
  if (fit->components == 0) {
    mixture_choice_make(mixture_held_out(n), count, components, held_out, &choice);
    for (int k = 0; k < count; k++) choice.shared[k] = candidate[k][HEAD_SHARED];
    choice.most = most;
    chosen = candidate[choice.chosen];
  }
  prior->noise = chosen[HEAD_NOISE];
  TRY(mixture_unpack(prior->memory, prior->d, chosen + BEFORE, &mixture));
  TRY(mixture_store_check("the fitted prior", &mixture));
  return prior_closed_create(prior, &mixture, &choice, fit);
}

/* Describes the fit. The chain is exact and is rebuilt from the study's keys when a file is loaded, so a fit
 * does not depend on the schedule. */
static void prior_gaussian_describe_fit(const PriorFit *fit, FILE *out) {
  (void)fit;
  fprintf(out, "maximum likelihood");
}
static void prior_mixture_describe_fit(const PriorFit *fit, FILE *out) {
  if (fit->components > 0)
    fprintf(out, "components %d starts %d", fit->components, fit->starts);
  else
    fprintf(out, "components auto, of shared variances, starts %d", fit->starts);
}

/* Makes a mixture of one component, whatever the keys of a mixture say. */
static void prior_gaussian_settle(PriorFit *fit, int d) {
  (void)d;
  fit->components = 1;
}

/* What the two families share. */
#define CLOSED_OPS                                                                                           \
  .able = PRIOR_MIXTURE | PRIOR_CHAIN | PRIOR_DENOISER | PRIOR_LOGS, .sample = prior_closed_sample,          \
  .save = prior_closed_save, .load = prior_closed_load, .log_density = prior_closed_log_density,             \
  .score = prior_closed_score, .parts = prior_mixture_parts, .part_size = prior_mixture_part_size,           \
  .fit_part = prior_mixture_fit_part, .assemble = prior_mixture_assemble,                                    \
  .components = prior_mixture_components

const PriorOps prior_gaussian = {.name = "gaussian",
                                 .summary = "one Gaussian with the samples' mean and covariance",
                                 .reference = "DiffTS, Section 6.1 (TunedTS)",
                                 .settle = prior_gaussian_settle,
                                 .describe_fit = prior_gaussian_describe_fit,
                                 CLOSED_OPS};

const PriorOps prior_mixture = {
    .name = "mixture",
    .summary =
        "Gaussians fitted by expectation maximisation, of a given number or the one that predicts best",
    .reference = "DiffTS, Section 6.1 (MixTS); Hong et al. 2022",
    .describe_fit = prior_mixture_describe_fit,
    .report = prior_mixture_report,
    .doubt = prior_mixture_doubt,
    CLOSED_OPS};
