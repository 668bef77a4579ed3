/* The fits of the closed-form priors, to samples of theta and to logs of past tasks.
 *
 * A part is one fit with all of its starts, since these compete: with the number of components asked for, or
 * one part for each candidate number. It holds weight[C], mean[C, d], covariance[C, d, d]; in a candidate's
 * part, a head and the log densities of held-out samples come first. */
#include "model/prior/prior_closed.h"

#include "model/mixture/mixture_fit.h"
#include "model/prior/logs_fit.h"

enum { HEAD_COMPONENTS, HEAD_MOST, HEAD_SHARED, HEAD, BEFORE = HEAD + MIXTURE_MOST_HELD_OUT };

int prior_mixture_parts(const PriorFit *fit) { return fit->components > 0 ? 1 : MIXTURE_MOST_CANDIDATES; }

/* Returns the components of a part, or 0 if there are fewer candidates in d dimensions. */
static int part_components(const PriorFit *fit, int d, int part) {
  return fit->components > 0 ? fit->components : mixture_candidate(d, part);
}

static size_t prior_closed_packed_size(int components, int d) {
  return (size_t)components * (1 + (size_t)d + (size_t)d * (size_t)d);
}

size_t prior_mixture_part_size(const PriorFit *fit, int d) {
  return fit->components > 0 ? prior_closed_packed_size(fit->components, d)
                             : BEFORE + prior_closed_packed_size(mixture_most(d), d);
}

/* Returns the three arrays of a part as a mixture, which owns nothing. */
static Mixture prior_closed_view_part(int components, int d, double *part) {
  size_t count = (size_t)components;
  return (Mixture){.d = d,
                   .components = components,
                   .weight = part,
                   .mean = part + count,
                   .covariance = part + count + count * (size_t)d};
}

static Status fit_components(const PriorFit *fit, const Samples *samples, int components, double *out) {
  SCRATCH_ARENA(scratch);
  Mixture fitted, part = prior_closed_view_part(components, samples->d, out);
  TRY(mixture_fit(&scratch, samples->d, samples->n, samples->theta, components, fit->starts,
                  rng_key(fit->seed, RNG_MIXTURE_START), fit->replicate, &fitted));
  mixture_copy_parameters(&fitted, &part);
  return STATUS_OK;
}

static void prior_closed_put_candidate(const Mixture *fitted, int most, double shared, double *part) {
  Mixture to = prior_closed_view_part(fitted->components, fitted->d, part + BEFORE);
  part[HEAD_COMPONENTS] = fitted->components, part[HEAD_MOST] = most, part[HEAD_SHARED] = shared;
  mixture_copy_parameters(fitted, &to);
}

static Status fit_candidate(const PriorFit *fit, const Samples *samples, int components, double *out) {
  const RngKey key = rng_key(fit->seed, RNG_MIXTURE_START);
  const int d = samples->d, n = samples->n;
  SCRATCH_ARENA(scratch);
  Mixture fitted;
  double shared;
  int most = components;
  if (components == mixture_candidate(d, 0))
    TRY(mixture_try_more(&scratch, d, n, samples->theta, fit->starts, key, fit->replicate, &fitted,
                         out + HEAD, &shared, &most));
  else
    TRY(mixture_try(&scratch, d, n, samples->theta, components, fit->starts, key, fit->replicate, &fitted,
                    out + HEAD, &shared));
  prior_closed_put_candidate(&fitted, most, shared, out);
  return STATUS_OK;
}

int prior_mixture_components(const PriorFit *fit) {
  enum { TYPICAL = 64 };
  return fit->components > 0 ? fit->components : TYPICAL;
}

Status prior_mixture_fit_part(const PriorFit *fit, const Samples *samples, int part, double *out) {
  const int components = part_components(fit, samples->d, part);
  if (fit->components > 0) return fit_components(fit, samples, components, out);
  return components > 0 && mixture_candidate_fits(samples->d, samples->n, components)
             ? fit_candidate(fit, samples, components, out)
             : STATUS_OK;
}

/* Assembles a prior; fails if the reader of prior files would refuse it. */
static Status prior_closed_assemble_components(Prior *prior, const PriorFit *fit, const MixtureChoice *choice,
                                               int components, int d, const double *part) {
  Mixture mixture;
  TRY(mixture_create(prior->memory, d, components, &mixture));
  const Mixture fitted = prior_closed_view_part(components, d, (double *)(uintptr_t)part);
  mixture_copy_parameters(&fitted, &mixture);
  TRY(mixture_check("the fitted prior", &mixture));
  return prior_closed_create(prior, &mixture, choice, fit);
}

/* Assembles a mixture fitted to n items; `tried` says whether these are enough for a number of components.
 * Parts are `size` apart. */
static Status prior_closed_assemble_mixture(Prior *prior, const PriorFit *fit, int d, int n,
                                            bool (*tried)(int d, int n, int components), size_t size,
                                            const double *parts) {
  MixtureChoice choice = {.count = 0};
  if (fit->components > 0)
    return prior_closed_assemble_components(prior, fit, &choice, fit->components, d, parts);
  int components[MIXTURE_MOST_CANDIDATES], count = 0, most = 0;
  const double *candidate[MIXTURE_MOST_CANDIDATES], *held_out[MIXTURE_MOST_CANDIDATES];
  for (int part = prior_mixture_parts(fit) - 1; part >= 0; part--) { /* candidates fall, these arrays rise */
    const int asked = mixture_candidate(d, part);
    if (asked == 0 || !tried(d, n, asked)) continue;
    candidate[count] = parts + (size_t)part * size;
    held_out[count] = candidate[count] + HEAD;
    components[count] = (int)candidate[count][HEAD_COMPONENTS];
    most = (int)candidate[count++][HEAD_MOST];
  }
  mixture_choice_make(mixture_held_out(n), count, components, held_out, &choice);
  for (int k = 0; k < count; k++) choice.shared[k] = candidate[k][HEAD_SHARED];
  choice.most = most;
  return prior_closed_assemble_components(prior, fit, &choice, components[choice.chosen], d,
                                          candidate[choice.chosen] + BEFORE);
}

Status prior_mixture_assemble(Prior *prior, const PriorFit *fit, const Samples *samples,
                              const double *parts) {
  return prior_closed_assemble_mixture(prior, fit, samples->d, samples->n, mixture_candidate_fits,
                                       prior_mixture_part_size(fit, samples->d), parts);
}

/* ---- from logs: a part ends with the noise */

size_t prior_mixture_logs_part_size(const PriorFit *fit, int d) {
  return prior_mixture_part_size(fit, d) + 1;
}

Status prior_mixture_fit_logs_part(const PriorFit *fit, const Logs *logs, int part, double *out) {
  const int components = part_components(fit, logs->d, part);
  const bool candidate = fit->components == 0;
  double *noise = out + prior_mixture_part_size(fit, logs->d);
  SCRATCH_ARENA(scratch);
  Mixture fitted, to = prior_closed_view_part(components, logs->d, out);
  if (candidate && (components == 0 || !logs_candidate_fits(logs->d, logs->tasks, components)))
    return STATUS_OK;
  TRY(logs_fit(&scratch, logs, components, fit->starts, rng_key(fit->seed, RNG_MIXTURE_START), fit->replicate,
               &fitted, noise, candidate ? out + HEAD : NULL));
  if (candidate)
    prior_closed_put_candidate(&fitted, components, 0, out);
  else
    mixture_copy_parameters(&fitted, &to);
  return STATUS_OK;
}

Status prior_mixture_assemble_logs(Prior *prior, const PriorFit *fit, const Logs *logs, const double *parts) {
  const size_t size = prior_mixture_logs_part_size(fit, logs->d);
  TRY(prior_closed_assemble_mixture(prior, fit, logs->d, logs->tasks, logs_candidate_fits, size, parts));
  if (logs_has_rows(logs)) return STATUS_OK;
  for (int part = 0; part < prior_mixture_parts(fit); part++)
    if (part_components(fit, logs->d, part) == prior->mixture->components)
      prior->noise = parts[((size_t)part + 1) * size - 1];
  return STATUS_OK;
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
