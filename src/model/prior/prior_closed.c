/* The fits of the closed-form priors, to samples of theta and to logs of past tasks.
 *
 * A part is one fit with all of its starts, since these compete: with the number of components asked for, or
 * one part for each candidate number. It holds a head, the log densities of held-out samples, which only
 * candidates have, and the packed mixture. */
#include "model/prior/prior_closed.h"

#include "model/mixture/mixture_fit.h"
#include "model/prior/logs_fit.h"

enum { HEAD_MOST, HEAD_SHARED, HEAD_NOISE, HEAD, BEFORE = HEAD + MIXTURE_MOST_HELD_OUT };

int prior_mixture_parts(const PriorFit *fit) { return fit->components > 0 ? 1 : MIXTURE_MOST_CANDIDATES; }

/* Returns the components of a part for n items, where `tried` says whether these are enough for a number of
 * components; or 0 if there is nothing to fit. */
static int prior_closed_part_components(const PriorFit *fit, int d, int n,
                                        bool (*tried)(int d, int n, int components), int part) {
  if (fit->components > 0) return fit->components;
  const int candidate = mixture_candidate(d, part);
  return candidate > 0 && tried(d, n, candidate) ? candidate : 0;
}

size_t prior_mixture_part_size(const PriorFit *fit, int d) {
  return BEFORE + mixture_packed_size(d, fit->components > 0 ? fit->components : mixture_most(d));
}

int prior_mixture_components(const PriorFit *fit) {
  enum { TYPICAL = 64 };
  return fit->components > 0 ? fit->components : TYPICAL;
}

Status prior_mixture_fit_part(const PriorFit *fit, const Samples *samples, int part, double *out) {
  const RngKey key = rng_key(fit->seed, RNG_MIXTURE_START);
  const int d = samples->d, n = samples->n;
  const int components = prior_closed_part_components(fit, d, n, mixture_candidate_fits, part);
  SCRATCH_ARENA(scratch);
  Mixture fitted;
  int most = components;
  if (components == 0) return STATUS_OK;
  if (fit->components > 0)
    TRY(mixture_fit(&scratch, d, n, samples->theta, components, fit->starts, key, fit->replicate, &fitted));
  else if (components == mixture_candidate(d, 0))
    TRY(mixture_try_more(&scratch, d, n, samples->theta, fit->starts, key, fit->replicate, &fitted,
                         out + HEAD, &out[HEAD_SHARED], &most));
  else
    TRY(mixture_try(&scratch, d, n, samples->theta, components, fit->starts, key, fit->replicate, &fitted,
                    out + HEAD, &out[HEAD_SHARED]));
  out[HEAD_MOST] = most;
  mixture_pack(&fitted, out + BEFORE);
  return STATUS_OK;
}

/* Assembles a prior; fails if the reader of prior files would refuse it. */
static Status prior_closed_assemble(Prior *prior, const PriorFit *fit, int n,
                                    bool (*tried)(int d, int n, int components), const double *parts) {
  const size_t size = prior_mixture_part_size(fit, prior->d);
  const double *candidate[MIXTURE_MOST_CANDIDATES], *held_out[MIXTURE_MOST_CANDIDATES], *chosen = parts;
  int components[MIXTURE_MOST_CANDIDATES], count = 0, most = 0;
  MixtureChoice choice = {.count = 0};
  Mixture mixture;
  for (int part = prior_mixture_parts(fit) - 1; part >= 0; part--) { /* candidates fall, these arrays rise */
    if (prior_closed_part_components(fit, prior->d, n, tried, part) == 0) continue;
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
  TRY(mixture_check("the fitted prior", &mixture));
  return prior_closed_create(prior, &mixture, &choice, fit);
}

Status prior_mixture_assemble(Prior *prior, const PriorFit *fit, const Samples *samples,
                              const double *parts) {
  return prior_closed_assemble(prior, fit, samples->n, mixture_candidate_fits, parts);
}

Status prior_mixture_fit_logs_part(const PriorFit *fit, const Logs *logs, int part, double *out) {
  const int components = prior_closed_part_components(fit, logs->d, logs->tasks, logs_candidate_fits, part);
  SCRATCH_ARENA(scratch);
  Mixture fitted;
  double noise;
  if (components == 0) return STATUS_OK;
  TRY(logs_fit(&scratch, logs, components, fit->starts, rng_key(fit->seed, RNG_MIXTURE_START), fit->replicate,
               &fitted, &noise, fit->components == 0 ? out + HEAD : NULL));
  out[HEAD_MOST] = components, out[HEAD_NOISE] = logs_has_rows(logs) ? 0 : noise;
  mixture_pack(&fitted, out + BEFORE);
  return STATUS_OK;
}

Status prior_mixture_assemble_logs(Prior *prior, const PriorFit *fit, const Logs *logs, const double *parts) {
  return prior_closed_assemble(prior, fit, logs->tasks, logs_candidate_fits, parts);
}

/* Describes the fit. The chain is exact and is rebuilt from the study's keys when a file is loaded, so a fit
 * does not depend on the schedule. */
void prior_gaussian_describe_fit(const PriorFit *fit, FILE *out) {
  (void)fit;
  fprintf(out, "maximum likelihood");
}
void prior_mixture_describe_fit(const PriorFit *fit, FILE *out) {
  if (fit->components > 0)
    fprintf(out, "components %d starts %d", fit->components, fit->starts);
  else
    fprintf(out, "components auto, of shared variances, starts %d", fit->starts);
}

double prior_mixture_cost(const PriorFit *fit, int d, double samples) {
  double sum = mixture_try_more_cost(d, samples, fit->starts);
  if (fit->components > 0) return mixture_fit_cost(d, samples, fit->components, fit->starts);
  for (int part = 0, c; part < prior_mixture_parts(fit) && (c = mixture_candidate(d, part)) > 0; part++)
    if (mixture_candidate_fits(d, (int)samples, c)) sum += mixture_try_cost(d, samples, c, fit->starts);
  return sum;
}

double prior_mixture_logs_cost(const PriorFit *fit, int d, double tasks, double rows) {
  double sum = 0;
  if (fit->components > 0) return logs_fit_cost(d, tasks, rows, fit->components, fit->starts, false);
  for (int part = 0, c; part < prior_mixture_parts(fit) && (c = mixture_candidate(d, part)) > 0; part++)
    if (logs_candidate_fits(d, (int)tasks, c)) sum += logs_fit_cost(d, tasks, rows, c, fit->starts, true);
  return sum;
}
