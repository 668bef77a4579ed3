#include "model/prior/prior_beside.h"

#include "model/mixture/mixture_fit.h"
#include "model/mixture/mixture_store.h"

enum {
  SAMPLES_EACH = 20, /* per component */
  STARTS = 4 /* starts of EM, for a mixture that serves only the guard */
};

static int prior_beside_component_count(int n) {
  const int wanted = n / SAMPLES_EACH, most = wanted < BESIDE_COMPONENTS ? wanted : BESIDE_COMPONENTS;
  return most < 1 ? 1 : most;
}

Status prior_beside_scale(Prior *prior, const Mixture *mixture, const double *shift, const double *scale) {
  Mixture *out;
  ALLOCATE(prior->memory, out, 1);
  TRY(mixture_copy(prior->memory, mixture, out));
  prior->beside = out;
  return mixture_transform(out, shift, scale);
}

Status prior_beside_fit_part(const PriorFit *fit, const Samples *samples, double *part) {
  SCRATCH_ARENA(scratch);
  Mixture mixture;
  if (samples->d > BESIDE_MOST) return STATUS_OK;
  TRY(mixture_fit_roughly(&scratch, samples->d, samples->n, samples->theta,
                          prior_beside_component_count(samples->n), STARTS, rng_key(fit->seed, RNG_BESIDE),
                          fit->replicate, &mixture));
  mixture_pack(&mixture, part);
  return STATUS_OK;
}

double prior_beside_part_cost(int d, double samples) {
  return d > BESIDE_MOST
             ? 0
             : mixture_fit_roughly_cost(d, samples, prior_beside_component_count((int)samples), STARTS);
}

Status prior_beside_assemble(Prior *prior, const double *part) {
  Mixture *mixture;
  if (prior->d > BESIDE_MOST) return STATUS_OK;
  ALLOCATE(prior->memory, mixture, 1);
  TRY(mixture_unpack(prior->memory, prior->d, part, mixture));
  TRY(mixture_check("the companion mixture of the fitted prior", mixture));
  prior->beside = mixture;
  return mixture_prepare(mixture);
}

Status prior_beside_load(Prior *prior, StoreFile *file) {
  Mixture *mixture;
  if (!store_has_variable(file, "weight")) return STATUS_OK;
  ALLOCATE(prior->memory, mixture, 1);
  TRY(mixture_load(prior->memory, file, mixture));
  if (mixture->d != prior->d)
    return status_set(STATUS_INPUT, "%s: the mixture has %d dimensions, but the networks have %d",
                      store_path(file), mixture->d, prior->d);
  prior->beside = mixture;
  return mixture_prepare(mixture);
}
