/* Priors learned from logs of past tasks (logs.h): a Gaussian or a mixture of Gaussians by EM over the tasks'
 * evidences, and posterior draws under it, which the families of networks learn from.
 *
 * In a study that learns from logs, simulated tasks go into Logs by logs_add, all of them on every rank, as
 * training samples do. `gaussian` and `mixture` are fitted in independent parts, which ranks share as they
 * share those of a fit to samples: family->parts(fit) of family->logs_part_size(fit, d) doubles each, by
 * family->fit_logs_part, then family->assemble_logs. The other families need a mixture of the same logs first
 * (logs_family; with fit->components = 0, as many components as predict best), then logs_draws under it, and
 * from these samples on the fit is as any other. prior_fit_logs does all of it in one process.
 *
 * Tasks are taken to stand in random order: those that are held out, and those that starts are compared on,
 * are the first ones. Simulated tasks do; a user's go through logs_sample. */
#pragma once

#include "model/logs/em_logs.h"
#include "model/prior/prior.h"

enum { LOGS_DRAWS = 4, LOGS_MOST_COMPONENTS = 64 };

/* Coordinates in which the Gaussian that fits the logs best has mean 0 and variances 1, and that Gaussian. */
typedef struct {
  double *shift, *scale; /* [d]: theta = shift + scale z */
  Mixture common; /* of z, one component, prepared */
  double variance, least_variance; /* of the noise: under it, and the least that can be learned */
} LogsFrame;
Status logs_frame(Arena *memory, const Logs *logs, LogsFrame *out);
/* Takes all items of `logs` in this frame, for mixtures of at most `components`. */
Status logs_items(Arena *memory, const Logs *logs, const LogsFrame *frame, int first, int items,
                  int components, EmLogs *out);

/* Returns whether a number of components is tried for so many tasks, in d dimensions. */
bool logs_candidate_fits(int d, int tasks, int components);
/* Fits the best of several starts, of theta, prepared; *noise gets the standard deviation of the rewards,
 * given or learned. held_out, unless NULL, gets the log marginal likelihoods of mixture_held_out(tasks)
 * tasks under fits to the others. Returns STATUS_INPUT with fewer tasks than components. Streams as in
 * mixture_fit. */
Status logs_fit(Arena *memory, const Logs *logs, int components, int starts, RngKey key, uint32_t run,
                Mixture *out, double *noise, double *held_out);

/* Returns the operations of logs_fit (SamplerOps.cost) with so many rows of each task, 0 where none are
 * kept. */
double logs_fit_cost(int d, double tasks, double rows, int components, int starts, bool choosing);

/* Returns how EM goes: `choosing` the number of components, or with a number that is given. */
EmPlan logs_plan(int components, int starts, bool choosing);
/* Transforms a mixture of theta to one of z; prepared. Transforms it back; prepared. */
Status mixture_to_frame(const LogsFrame *frame, Mixture *mixture);
Status mixture_from_frame(const LogsFrame *frame, Mixture *mixture);

/* Returns what `family` is fitted to first: itself, if it is fitted to logs, or the mixture that draws
 * come from. */
const PriorOps *logs_family(const PriorOps *family);
/* Draws LOGS_DRAWS times from each task's posterior under a mixture of theta and this noise. */
Status logs_draws(Arena *memory, const Logs *logs, const PriorFit *fit, const Mixture *mixture, double noise,
                  Samples *out);
/* Computes the mean of each task's posterior under a Gaussian of theta, one sample for each: what takes a
 * guess of theta for theta itself would learn from. */
Status logs_means(Arena *memory, const Logs *logs, const Mixture *gaussian, double noise, Samples *out);
/* Computes density[tasks], the log marginal likelihood of each task under a prepared mixture of theta and
 * the likelihood's noise (em_logs_density). */
Status logs_density(const Logs *logs, const Mixture *mixture, double *density);
/* Fits all parts here, in order; *out has the noise too. */
Status prior_fit_logs(Arena *memory, const PriorOps *family, const PriorFit *fit, const Logs *logs,
                      Prior *out);
