/* The prior that agents learn from the observations of all of them: each agent is a task of logs
 * (model/prior/prior_online.h). The evidence of an agent does not depend on its prior, so the new prior can
 * replace the old one while the agents keep what they have observed.
 *
 * With the option `memory` an agent has Gaussians in place of observations, one for each component of the
 * present prior: log p(y | theta) ~ log s_c + b_c' theta - theta' Lambda_c theta / 2 where the posterior
 * under component c is (model/history/history_filtered.c). Their mean, weighed by how probable the components
 * are after all that the agent has observed, is its evidence: the task of the logs, and what the agent keeps
 * for each component of the new prior. */
#include "library/library.h"
#include "model/prior/logs_fit.h"
#include "model/prior/prior.h"
#include "model/prior/prior_online.h"
#include "sampler/mixture/mixture_posterior.h"

#include <math.h>
#include <string.h>

enum { COMPONENTS = 16 };

/* Joins the Gaussians of agents that forget, one agent at a time. */
typedef struct {
  History own; /* a view of the posterior's history: what the agent has forgotten, and its last rows */
  History whole; /* the same with all rows forgotten */
  MixturePosterior *posterior;
  int64_t ignored; /* fallbacks */
  double *share; /* [C]: probability of each component */
  double *evidence; /* [d d + d]: of one component */
  double *joined; /* [d d + d]: precision and vector */
  double *phi; /* [d] */
} Joint;

static Status agents_joint_create(Arena *memory, const thompson_agents *self, Joint *out) {
  static const MixtureOptions options = {.candidates = 1, .forgets = true};
  const thompson_posterior *posterior = self->posterior;
  const Mixture *prior = history_filtered_prior(&posterior->history);
  const size_t d = (size_t)posterior->d;
  *out = (Joint){.own = history_first_runs(&posterior->history, 1)};
  TRY(history_create_filtered(memory, prior, 0, 1, 1, &posterior->likelihood, &out->whole));
  TRY(mixture_posterior_create(memory, prior, &posterior->likelihood, 1, options, &out->posterior));
  ALLOCATE(memory, out->share, prior->components);
  ALLOCATE_ARRAYS(memory, d * d + d, &out->evidence, &out->joined);
  ALLOCATE(memory, out->phi, d);
  return STATUS_OK;
}

/* Loads an agent, and computes the probabilities of the components. */
static void agents_joint_load(const thompson_agents *self, int id, Joint *joint) {
  const double *state = self->evidence + (size_t)id * (size_t)self->size;
  const int observations = self->agent[id].observations,
            components = history_filtered_prior(&joint->whole)->components;
  history_clear(&joint->own);
  history_load(&joint->own, 0, observations, state);
  history_clear(&joint->whole);
  history_load(&joint->whole, 0, observations, state);
  const History rows = history_retained(&joint->own);
  for (int l = 0; l < history_observations(&rows, 0); l++) {
    const double y = history_observation(&rows, 0, l, 1, joint->phi);
    history_record(&joint->whole, NULL, joint->phi, &y);
  }
  mixture_posterior_evidence(joint->posterior, &joint->whole, joint->share, &joint->ignored);
  const double sum = mixture_posterior_log_sum(components, 1, joint->share);
  for (int c = 0; c < components; c++) joint->share[c] = exp(joint->share[c] - sum);
}

/* Sets joint->joined to what the agent has forgotten in one of its two histories. */
static void agents_joint_sum(Joint *joint, const History *history) {
  const int d = history->d, entries = d * d + d;
  const HistoryView view = history_view(history, 1, 0, 1);
  double log_scale;
  memset(joint->joined, 0, (size_t)entries * sizeof *joint->joined);
  for (int c = 0; c < history_filtered_prior(history)->components; c++) {
    memset(joint->evidence, 0, (size_t)entries * sizeof *joint->evidence);
    history_forgotten(&view, c, joint->evidence, joint->evidence + d * d, &log_scale);
    for (int i = 0; i < entries; i++) joint->joined[i] += joint->share[c] * joint->evidence[i];
  }
}

/* Adds an agent that forgets as a task, and stores in block[d (d + 3) / 2 + 1] what it keeps for each
 * component of the new prior, as history_store does. */
static Status agents_log_joint(const thompson_agents *self, int id, Joint *joint, double *block, Logs *logs) {
  SCRATCH_ARENA(scratch);
  const int d = logs->d;
  double *entry, *next;
  ALLOCATE(&scratch, entry, logs_width(d));
  agents_joint_load(self, id, joint);
  agents_joint_sum(joint, &joint->own);
  for (int i = 0; i < d; i++)
    for (int j = i; j < d; j++) *block++ = joint->joined[i * d + j];
  memcpy(block, joint->joined + d * d, (size_t)d * sizeof *block);
  block[d] = 0; /* a scale that all components share */
  agents_joint_sum(joint, &joint->whole);
  next = entry;
  for (int i = 0; i < d; i++)
    for (int j = 0; j <= i; j++) *next++ = joint->joined[i * d + j];
  memcpy(next, joint->joined + d * d, (size_t)d * sizeof *next);
  next[d] = 0; /* a constant of the task */
  next[d + 1] = self->agent[id].observations;
  return logs_add_task(logs, entry);
}

/* Returns the numbers that an agent has for one component (history_store). */
static size_t agents_block(const thompson_agents *self) {
  const size_t d = (size_t)self->posterior->d;
  return d * (d + 3) / 2 + 1;
}

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

/* Adds all agents that have observed something; blocks[agents, d (d + 3) / 2 + 1] of those that forget. */
static Status agents_gather_logs(Arena *scratch, const thompson_agents *self, double *blocks, Logs *logs) {
  const size_t d = (size_t)logs->d;
  Joint joint;
  double *entry;
  ALLOCATE(scratch, entry, logs_width(logs->d));
  if (self->posterior->forgets) TRY(agents_joint_create(scratch, self, &joint));
  for (int id = 0; id < self->count; id++) {
    const Agent *agent = &self->agent[id];
    const int task = logs->tasks;
    if (agent->observations == 0) continue;
    if (self->posterior->forgets) {
      TRY(agents_log_joint(self, id, &joint, blocks + (size_t)id * agents_block(self), logs));
      continue;
    }
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
static Status agents_learn_prior(Arena *memory, const thompson_agents *self, double *blocks, Prior *out) {
  const thompson_posterior *posterior = self->posterior;
  const Likelihood gaussian = {.ops = likelihood_find("gaussian"), .noise = 1},
                   *likelihood = posterior->forgets ? &gaussian : &posterior->likelihood;
  const Mixture *present = prior_stand_in(posterior->prior);
  SCRATCH_ARENA(scratch);
  Mixture start;
  Online online;
  PriorFit defaults;
  if (!present)
    return status_set(
        STATUS_INPUT,
        "learning a prior starts from a mixture that the present prior is or has; a %s prior has none",
        posterior->prior->ops->name);
  TRY(prior_wide_create(&scratch, present, 1, &start));
  TRY(prior_online_create(&scratch, &start, COMPONENTS, likelihood,
                          rng_key(posterior->seed, RNG_MIXTURE_START), 0, &online));
  TRY(agents_gather_logs(&scratch, self, blocks, &online.logs));
  TRY(prior_online_learn(&online));
  TRY(fit_of_options("defaults", 0, NULL, 1, &defaults));
  TRY(prior_from_mixture(memory, &online.now, &defaults, out));
  if (!out->note) TRY(logs_describe_few(memory, &online.logs, &online.now, &out->note));
  if (likelihood_has_noise(&posterior->likelihood)) out->noise = posterior->likelihood.noise;
  out->rewards = posterior->likelihood.ops->name;
  return STATUS_OK;
}

/* Gives every agent its block for each component of the prior of `after`; its last rows stay as they are. */
static Status agents_replace_evidence(thompson_agents *self, const thompson_posterior *after,
                                      const double *blocks) {
  const size_t block = agents_block(self),
               components = (size_t)history_filtered_prior(&after->history)->components,
               before = (size_t)history_filtered_prior(&self->posterior->history)->components * block,
               rest = (size_t)self->size - before, size = components * block + rest;
  Arena memory = {0};
  double *evidence;
  ALLOCATE(&memory, evidence, (size_t)self->count * size);
  for (size_t id = 0; id < (size_t)self->count; id++) {
    double *to = evidence + id * size;
    for (size_t c = 0; c < components; c++) memcpy(to + c * block, blocks + id * block, block * sizeof *to);
    memcpy(to + components * block, self->evidence + id * (size_t)self->size + before, rest * sizeof *to);
  }
  arena_free(&self->evidence_memory);
  self->evidence_memory = memory;
  self->evidence = evidence;
  self->size = (int)size;
  return STATUS_OK;
}

thompson_status thompson_agents_learn_prior_until(thompson_agents *self, const volatile int *stop,
                                                  thompson_prior **out) {
  SCRATCH_ARENA(scratch);
  thompson_posterior *before = self->posterior, *after = NULL;
  thompson_arguments arguments;
  double *blocks = NULL;
  *out = NULL;
  if (before->forgets) ALLOCATE(&scratch, blocks, (size_t)self->count * agents_block(self));
  thompson_posterior_arguments(before, &arguments);
  TRY(library_prior_new(out));
  const Tick tick = library_until(stop);
  Status status = agents_learn_prior(&(*out)->memory, self, blocks, &(*out)->prior);
  core_tick_exchange(tick);
  if (status == STATUS_OK) {
    library_prior_share(*out);
    status = library_posterior_new(*out, &arguments, NULL, self->width, &after);
  }
  if (status == STATUS_OK && before->forgets) status = agents_replace_evidence(self, after, blocks);
  if (status == STATUS_OK) {
    after->fallbacks = before->fallbacks;
    self->posterior = after;
  }
  thompson_posterior_free(status == STATUS_OK ? before : after);
  return library_finish_prior(status, out);
}

thompson_status thompson_agents_learn_prior(thompson_agents *self, thompson_prior **out) {
  return thompson_agents_learn_prior_until(self, NULL, out);
}
