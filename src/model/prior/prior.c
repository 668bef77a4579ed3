/* The registry of prior families, fits in a single process, and prior files. */
#include "model/prior/prior.h"
#include "model/mixture/mixture_frame.h"
#include "model/prior/families.h"

#include <string.h>

static const PriorOps *const families[] = {
#define PRIOR_ENTRY(name) &prior_##name,
    PRIOR_LIST(PRIOR_ENTRY)
#undef PRIOR_ENTRY
};

const PriorOps *prior_family(int index) {
  return index >= 0 && index < (int)(sizeof families / sizeof *families) ? families[index] : NULL;
}

const PriorOps *prior_find(const char *name) {
  for (int i = 0; prior_family(i); i++)
    if (strcmp(prior_name(i), name) == 0) return prior_family(i);
  return NULL;
}

const char *prior_name(int index) {
  const PriorOps *family = prior_family(index);
  return family ? family->name : NULL;
}

void prior_settle(const PriorOps *family, PriorFit *fit, int d) {
  if (family->settle) family->settle(fit, d);
}

Status prior_check(const Prior *prior) {
  const PriorElsewhere *elsewhere = prior->elsewhere;
  if (!elsewhere || elsewhere->status == STATUS_OK) return STATUS_OK;
  return status_set(elsewhere->status, "%s", elsewhere->sentence);
}

const char *prior_doubt(const Prior *prior) {
  const char *doubt = prior->ops->doubt ? prior->ops->doubt(prior) : NULL;
  return doubt ? doubt : prior->note;
}

const char *prior_rewards(const Prior *prior) {
  return !prior->rewards && prior->noise > 0 ? "gaussian" : prior->rewards;
}

bool prior_doubt_under(const Prior *prior, const Likelihood *likelihood, size_t size, char *sentence) {
  const char *rewards = prior_rewards(prior), *doubt = prior_doubt(prior);
  *sentence = '\0';
  if (doubt)
    snprintf(sentence, size, "%s", doubt);
  else if (rewards && strcmp(rewards, likelihood->ops->name) != 0)
    snprintf(sentence, size, "it was learned from rewards with the likelihood %s, and here it is %s", rewards,
             likelihood->ops->name);
  return *sentence;
}

Status prior_find_fixed(Prior *prior) {
  const Mixture *mixture = prior_stand_in(prior);
  const char *names;
  if (!mixture) return STATUS_OK;
  TRY(mixture_frame_describe(prior->memory, mixture, &names));
  if (!names) return STATUS_OK;
  return arena_print(prior->memory, &prior->note,
                     "%s: the prior fixes this up to rounding, and no data change it", names);
}

/* Adds to the note of a prior that was fitted which components would be narrower if a fit could tell. */
static Status prior_find_widened(Prior *prior) {
  const char *sentence;
  if (!prior->mixture) return STATUS_OK;
  TRY(mixture_frame_describe_widened(prior->memory, prior->mixture, &sentence));
  if (!sentence) return STATUS_OK;
  return arena_print(prior->memory, &prior->note, "%s%s%s", prior->note ? prior->note : "",
                     prior->note ? "; " : "", sentence);
}

const char *prior_closed_name(int index) {
  const PriorOps *family;
  for (int i = 0; (family = prior_family(i)); i++)
    if (family->components && index-- == 0) return family->name;
  return NULL;
}

Status fit_source_assemble(Arena *memory, const FitSource *source, const PriorOps *family,
                           const PriorFit *fit, const double *parts, Prior *out) {
  *out = (Prior){.memory = memory,
                 .ops = family,
                 .d = fit_source_dimension(source),
                 .rewards = source->logs ? source->logs->likelihood->ops->name : NULL};
  TRY(family->assemble(out, fit, source, parts));
  TRY(prior_find_fixed(out));
  return prior_find_widened(out);
}

Status fit_source_whole(Arena *memory, const FitSource *source, const PriorOps *family, const PriorFit *fit,
                        Prior *out) {
  SCRATCH_ARENA(scratch);
  const size_t size = family->part_size(fit, fit_source_dimension(source)),
               count = (size_t)prior_parts(family, fit);
  double *parts;
  ALLOCATE(&scratch, parts, count * size);
  for (size_t part = 0; part < count; part++)
    TRY(family->fit_part(fit, source, (int)part, parts + part * size));
  return fit_source_assemble(memory, source, family, fit, parts, out);
}

Status prior_fit(Arena *memory, const PriorOps *family, const PriorFit *fit, const Samples *samples,
                 Prior *out) {
  return fit_source_whole(memory, &(FitSource){.samples = samples}, family, fit, out);
}

const Mixture *prior_stand_in(const Prior *prior) {
  return prior->mixture ? prior->mixture : prior->companion;
}

Status prior_check_guard(const Prior *prior) {
  if (prior_stand_in(prior)) return STATUS_OK;
  return status_set(STATUS_INPUT,
                    "guard: prior %s has no companion mixture of Gaussians, which gives its spread and the "
                    "marginal likelihood of a history%s",
                    prior->ops->name,
                    prior->d > COMPANION_MOST ? "; none is fitted in this many dimensions"
                    : prior->ops->save        ? "; train it again with this version"
                                              : "");
}

double prior_noise(const Prior *prior, double given) {
  return given > 0 ? given : prior->noise > 0 ? prior->noise : 1;
}

Status prior_standard(Arena *memory, int d, const PriorFit *chain_settings, Prior *out) {
  SCRATCH_ARENA(scratch);
  Mixture mixture;
  TRY(mixture_create(&scratch, d, 1, &mixture));
  mixture.weight[0] = 1;
  for (size_t i = 0; i < (size_t)d; i++) mixture.covariance[i * (size_t)d + i] = 1;
  return prior_from_mixture(memory, &mixture, chain_settings, out);
}

/* ---- N(0, I) on the weights of a network (VITS paper, Section 2), which are many, so no matrix is formed.
 * Nothing is fitted or stored. */

static void prior_weights_sample(const Prior *prior, RngLanes *rng, double *theta) {
  rng_lanes_normal(rng, prior->d, theta);
}

/* Computes the score alone: the potential of a network knows this prior and asks for no Hessian. */
static void weights_score(const Prior *prior, int lanes, const double *theta, double *score,
                          double *hessian) {
  ASSERT(!hessian);
  for (int i = 0; i < prior->d * lanes; i++) score[i] = -theta[i];
}

static const PriorOps weights_ops = {
    .name = "standard", .sample = prior_weights_sample, .score = weights_score};

Status prior_weights(int d, Prior *out) {
  *out = (Prior){.ops = &weights_ops, .d = d};
  return STATUS_OK;
}

/* ---- prior files */

Status prior_put(const Prior *prior, StoreFile *file) {
  if (!prior->ops->save)
    return status_set(STATUS_INPUT, "prior %s cannot be saved to a file: it is not a set of numbers",
                      prior->ops->name);
  TRY(store_text_attribute(file, NULL, "prior", prior->ops->name));
  TRY(store_real_attribute(file, "seconds_fit", prior->seconds_fit));
  if (prior->noise > 0) TRY(store_real_attribute(file, "noise", prior->noise));
  if (prior->rewards) TRY(store_text_attribute(file, NULL, "rewards", prior->rewards));
  if (prior->auto_sampler) TRY(store_text_attribute(file, NULL, "auto_sampler", prior->auto_sampler));
  return prior->ops->save(prior, file);
}

Status prior_save(const Prior *prior, const char *path) {
  StoreFile *file;
  TRY(store_create(path, &file));
  return store_finish(file, prior_put(prior, file));
}

static Status prior_refuse_family(const StoreFile *file, const char *name) {
  char allowed[256] = "";
  size_t used = 0;
  for (int i = 0; prior_name(i) && used < sizeof allowed; i++)
    used += (size_t)snprintf(allowed + used, sizeof allowed - used, "%s%s", i ? " | " : "", prior_name(i));
  return status_set(STATUS_INPUT, "%s: the attribute 'prior' is '%s'; allowed: %s", store_path(file), name,
                    allowed);
}

static Status prior_load_family(StoreFile *file, const PriorFit *chain_settings, Prior *out) {
  const char *name;
  TRY(store_get_text_attribute(out->memory, file, "prior", &name));
  const PriorOps *family = prior_find(name);
  if (!family) return prior_refuse_family(file, name);
  out->ops = family;
  if (store_has_attribute(file, "noise")) {
    TRY(store_get_real_attribute(file, "noise", &out->noise));
    if (!(out->noise >= 1e-40 && out->noise <= 1e40))
      return status_set(STATUS_INPUT, "%s: the attribute 'noise' is %g; a standard deviation must be above 0",
                        store_path(file), out->noise);
  }
  if (store_has_attribute(file, "rewards"))
    TRY(store_get_text_attribute(out->memory, file, "rewards", &out->rewards));
  if (store_has_attribute(file, "seconds_fit"))
    TRY(store_get_real_attribute(file, "seconds_fit", &out->seconds_fit));
  if (store_has_attribute(file, "auto_sampler"))
    TRY(store_get_text_attribute(out->memory, file, "auto_sampler", &out->auto_sampler));
  TRY(family->load(out, file, chain_settings));
  return prior_find_fixed(out);
}

Status prior_get(Arena *memory, StoreFile *file, const PriorFit *chain_settings, Prior *out) {
  *out = (Prior){.memory = memory};
  Status status = prior_load_family(file, chain_settings, out);
  if (status != STATUS_OK) *out = (Prior){0};
  return status;
}

Status prior_load(Arena *memory, const char *path, const PriorFit *chain_settings, Prior *out) {
  SCOPED(StoreFile *, file, store_close);
  *out = (Prior){0};
  TRY(store_open(path, &file));
  return prior_get(memory, file, chain_settings, out);
}

Status prior_load_own(Arena *memory, const char *path, const PriorFit *chain_settings, Prior *out) {
  SCOPED(StoreFile *, file, store_close);
  *out = (Prior){0};
  TRY(store_open_own(path, &file));
  return prior_get(memory, file, chain_settings, out);
}
