/* Priors learned from logs of past tasks (logs.h): a Gaussian or a mixture of Gaussians, by EM over the
 * evidence of the tasks, and posterior draws under it, from which the families with networks learn.
 *
 * In a study that learns from logs, all simulated tasks are added to Logs (logs_add) on every rank, as
 * training samples are. `gaussian` and `mixture` are fitted in independent parts, which ranks share as in a
 * fit to samples. The other families first need a mixture fitted to the same logs (logs_family; with
 * fit->components = 0, the number of components that predicts best), then logs_draws under it; from these
 * samples on, the fit is like any other.
 *
 * Tasks are assumed to be in random order, because the first ones are held out and serve to compare starts.
 * Simulated tasks are; a user's go through logs_sample. */
#pragma once

#include "model/logs/em_logs.h"
#include "model/prior/prior.h"

enum { LOGS_DRAWS = 4, LOGS_MOST_COMPONENTS = 64 };

/* Creates a frame in which theta is z, and N(0, I) in place of the Gaussian that fits best. */
Status logs_frame_standard(Arena *memory, int d, LogsFrame *out);
/* Finds the frame of logs. */
Status logs_frame(Arena *memory, const Logs *logs, LogsFrame *out);

/* Returns whether a fit with this number of components is tried for `tasks` tasks in d dimensions. */
bool logs_candidate_fits(int d, int tasks, int components);
/* Fits a mixture of theta, the best of several starts, prepared; *noise gets the standard deviation of the
 * rewards, given or learned. held_out, unless NULL, gets the log marginal likelihoods of
 * mixture_held_out(tasks) tasks under fits to the others. Returns STATUS_INPUT if there are fewer tasks than
 * components, or the logs do not identify the spread of theta (logs_identified.h). Streams as in mixture_fit.
 */
Status logs_fit(Arena *memory, const Logs *logs, int components, int starts, RngKey key, uint32_t run,
                Mixture *out, double *noise, double *held_out);

/* Returns the plan of EM, for `choosing` the number of components or for a given number. */
EmPlan logs_plan(int components, int starts, bool choosing);

/* Returns the family to fit to the logs: `family` itself if it can be, else the mixture that its samples are
 * drawn from. */
const PriorOps *logs_family(const PriorOps *family);
/* Draws LOGS_DRAWS times from each task's posterior under a mixture of theta and this noise. */
Status logs_draws(Arena *memory, const Logs *logs, const PriorFit *fit, const Mixture *mixture, double noise,
                  Samples *out);
/* Computes the mean of each task's posterior under a Gaussian of theta, as one sample per task: the training
 * data of a method that takes estimates of theta for theta itself. */
Status logs_means(Arena *memory, const Logs *logs, const Mixture *gaussian, double noise, Samples *out);
/* Computes density[tasks], the log marginal likelihood of each task under a prepared mixture of theta and
 * the likelihood's noise (em_logs_density). */
Status logs_density(const Logs *logs, const Mixture *mixture, double *density);
/* Creates *out, a sentence that says for how many tasks the posterior under a prepared mixture of theta is
 * known only roughly (em_logs_count_few); NULL if for none. */
Status logs_describe_few(Arena *memory, const Logs *logs, const Mixture *mixture, const char **out);
