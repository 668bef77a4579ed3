/* Internal to src/model: how the closed-form priors are fitted (prior_closed.c), for the ops of
 * prior_mixture.c. */
#pragma once

#include "model/mixture/mixture_choice.h"
#include "model/prior/prior.h"

/* Creates the prior of `mixture`, which is in the prior's memory and is prepared here, with its exact
 * chain. */
Status prior_closed_create(Prior *prior, const Mixture *mixture, const MixtureChoice *choice,
                           const PriorFit *settings);

/* Implements PriorOps, as the other families do. */
int prior_mixture_parts(const PriorFit *fit);
size_t prior_mixture_part_size(const PriorFit *fit, int d);
int prior_mixture_components(const PriorFit *fit);
Status prior_mixture_fit_part(const PriorFit *fit, const Samples *samples, int part, double *out);
Status prior_mixture_assemble(Prior *prior, const PriorFit *fit, const Samples *samples, const double *parts);
Status prior_mixture_fit_logs_part(const PriorFit *fit, const Logs *logs, int part, double *out);
Status prior_mixture_assemble_logs(Prior *prior, const PriorFit *fit, const Logs *logs, const double *parts);
void prior_gaussian_describe_fit(const PriorFit *fit, FILE *out);
void prior_mixture_describe_fit(const PriorFit *fit, FILE *out);

double prior_mixture_cost(const PriorFit *fit, int d, double samples);
double prior_mixture_logs_cost(const PriorFit *fit, int d, double tasks, double rows);
