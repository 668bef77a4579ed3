/* The prior that agents learn from the observations of all of them: each agent is a task of logs
 * (model/prior/prior_online.h). The evidence of an agent does not depend on its prior, so the new prior can
 * replace the old one while the agents keep what they have observed. */
#include "library/library.h"
#include "model/prior/logs_fit.h"
#include "model/prior/prior.h"
#include "model/prior/prior_online.h"

enum { COMPONENTS = 16 };

/* Adds an agent's evidence as a task; its precision, vector and sum of squares are in units of the noise. */
static Status agents_log_evidence(const thompson_agents *self, int id, double *entry, Logs *logs) {
  const int d = logs->d;
  const double *evidence = self->evidence + (size_t)id * (size_t)self->size, *vector = evidence;
  const double noise = logs->likelihood->noise, variance = noise * noise;
  for (int i = 0; i < d; i++)
    for (int j = i; j < d; j++) entry[j * (j + 1) / 2 + i] = variance * *vector++;
  double *rest = entry + d * (d + 1) / 2;
  for (int i = 0; i <= d; i++) rest[i] = variance * vector[i];
  rest[d + 1] = self->agent[id].observations;
  return logs_add_task(logs, entry);
}

static Status agents_gather_logs(Arena *scratch, const thompson_agents *self, Logs *logs) {
  const size_t d = (size_t)logs->d;
  double *entry;
  ALLOCATE(scratch, entry, logs_width(logs->d));
  for (int id = 0; id < self->count; id++) {
    const Agent *agent = &self->agent[id];
    const int task = logs->tasks;
    if (agent->observations == 0) continue;
    if (self->size > 0) {
      TRY(agents_log_evidence(self, id, entry, logs));
      continue;
    }
    for (int l = 0; l < agent->observations; l++) {
      const double *row = agent->rows + (size_t)l * (d + 1);
      TRY(logs_add(logs, task, row, row[d]));
    }
  }
  if (logs->tasks >= ONLINE_LEAST) return STATUS_OK;
  return status_set(STATUS_INPUT,
                    "%d of %d agents have observed something; learning a prior needs at least %d",
                    logs->tasks, self->count, ONLINE_LEAST);
}

/* Learns the prior, starting from a Gaussian with the mean and the variances of the present one. */
static Status agents_learn_prior(Arena *memory, const thompson_agents *self, Prior *out) {
  const thompson_posterior *posterior = self->posterior;
  const Mixture *present = prior_stand_in(posterior->prior);
  SCRATCH_ARENA(scratch);
  Mixture start;
  Online online;
  PriorFit defaults;
  if (posterior->forgets)
    return status_set(STATUS_INPUT, "learning a prior needs evidence or observations, and memory = filtered "
                                    "or keep stores neither apart from the prior");
  if (!present)
    return status_set(
        STATUS_INPUT,
        "learning a prior starts from a mixture that the present prior is or has; a %s prior has none",
        posterior->prior->ops->name);
  TRY(prior_wide_create(&scratch, present, 1, &start));
  TRY(prior_online_create(&scratch, &start, COMPONENTS, &posterior->likelihood,
                          rng_key(posterior->seed, RNG_MIXTURE_START), 0, &online));
  TRY(agents_gather_logs(&scratch, self, &online.logs));
  TRY(prior_online_learn(&online));
  TRY(fit_of_options("defaults", 0, NULL, 1, &defaults));
  TRY(prior_from_mixture(memory, &online.now, &defaults, out));
  if (!out->note) TRY(logs_describe_few(memory, &online.logs, &online.now, &out->note));
  if (likelihood_has_noise(&posterior->likelihood)) out->noise = posterior->likelihood.noise;
  return STATUS_OK;
}

thompson_status thompson_agents_learn_prior_until(thompson_agents *self, const volatile int *stop,
                                                  thompson_prior **out) {
  thompson_posterior *before = self->posterior, *after = NULL;
  thompson_arguments arguments;
  thompson_posterior_arguments(before, &arguments);
  TRY(library_prior_new(out));
  const Tick tick = library_until(stop);
  Status status = agents_learn_prior(&(*out)->memory, self, &(*out)->prior);
  core_tick_exchange(tick);
  if (status == STATUS_OK) {
    library_prior_share(*out);
    status = library_posterior_new(*out, &arguments, NULL, self->width, &after);
  }
  if (status == STATUS_OK) {
    after->fallbacks = before->fallbacks;
    self->posterior = after;
    thompson_posterior_free(before);
  }
  return library_finish_prior(status, out);
}

thompson_status thompson_agents_learn_prior(thompson_agents *self, thompson_prior **out) {
  return thompson_agents_learn_prior_until(self, NULL, out);
}
