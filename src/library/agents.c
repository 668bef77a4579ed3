/* Agents of the library: many posteriors with the same prior. What each agent has learned, evidence or rows,
 * is kept separately; a chunk of agents is loaded into a posterior with one run per agent
 * (library_posterior.c, library_draws.c), which draws, chooses and observes for all of them at once. An
 * agent's random numbers are named by its number and by how often it has drawn, so they depend neither on the
 * chunk nor on the other agents. */
#include "library/library.h"

#include <limits.h>
#include <string.h>

/* ---- create and destroy */

thompson_status thompson_agents_add(thompson_agents *self, int n) {
  if (n < 0 || n > INT_MAX - self->count) return status_set(STATUS_INPUT, "cannot add %d agents", n);
  const size_t kept = (size_t)self->count, count = kept + (size_t)n, size = (size_t)self->size;
  RESIZE(&self->agent_memory, self->agent, kept, count);
  RESIZE(&self->evidence_memory, self->evidence, kept * size, count * size);
  self->count = (int)count;
  return THOMPSON_OK;
}

thompson_status thompson_agents_set_note(thompson_agents *self, const char *note) {
  arena_free(&self->note_memory);
  self->note = NULL;
  return note && *note ? arena_print(&self->note_memory, &self->note, "%s", note) : STATUS_OK;
}

const char *thompson_agents_note(const thompson_agents *self) { return self->note; }

/* Frees agents that could not be finished, for SCOPED (core/arena.h). */
static void agents_drop(thompson_agents **self) { thompson_agents_free(*self); }

thompson_status thompson_agents_new(const thompson_prior *prior, int n, const char *sampler,
                                    const char *likelihood, const char *options, uint64_t seed,
                                    thompson_agents **out) {
  SCRATCH_ARENA(memory);
  SCOPED(thompson_agents *, self, agents_drop);
  const thompson_arguments arguments = {
      .sampler = sampler, .likelihood = likelihood, .options = options, .seed = seed};
  *out = NULL;
  NEW(self, 1);
  self->width = AGENTS_CHUNK;
  TRY(library_posterior_new(prior, &arguments, NULL, self->width, &self->posterior));
  self->size = (int)history_state(&self->posterior->history);
  if (self->size == 0) { /* rows: one agent at a time */
    thompson_posterior_free(self->posterior);
    self->width = 1;
    TRY(library_posterior_new(prior, &arguments, NULL, 1, &self->posterior));
  }
  if (self->posterior->method->update) {
    const char *names = "";
    for (int i = 0; sampler_name(i); i++)
      if (!sampler_find(sampler_name(i))->update)
        TRY(arena_print(&memory, &names, "%s%s%s", names, *names ? ", " : "", sampler_name(i)));
    return status_set(STATUS_INPUT,
                      "sampler %s carries a state from observation to observation, which agents cannot keep "
                      "apart: use a posterior for each agent, or one of %s",
                      sampler, names);
  }
  TRY(thompson_agents_add(self, n));
  *out = self;
  self = NULL;
  return THOMPSON_OK;
}

void thompson_agents_free(thompson_agents *self) {
  if (!self) return;
  for (int i = 0; i < self->count; i++) arena_free(&self->agent[i].memory);
  arena_free(&self->agent_memory);
  arena_free(&self->evidence_memory);
  arena_free(&self->features_memory);
  arena_free(&self->note_memory);
  thompson_posterior_free(self->posterior);
  free(self);
}

int thompson_agents_count(const thompson_agents *self) { return self->count; }

double thompson_agents_noise(const thompson_agents *self) { return self->posterior->likelihood.noise; }

int64_t thompson_agents_fallbacks(const thompson_agents *self) { return self->posterior->fallbacks; }

void thompson_agents_arguments(const thompson_agents *self, thompson_arguments *out) {
  thompson_posterior_arguments(self->posterior, out);
}

/* ---- chunks */

static Status agents_check_ids(const thompson_agents *self, int m, const int *ids) {
  if (m < 0) return status_set(STATUS_INPUT, "%d agents; allowed: 0 or more", m);
  for (int i = 0; i < m; i++)
    if (ids[i] < 0 || ids[i] >= self->count)
      return status_set(STATUS_INPUT, "ids: element %d (from 0) is %d; allowed: agents 0 to %d", i, ids[i],
                        self->count - 1);
  return STATUS_OK;
}

static Status agents_reserve_features(thompson_agents *self, size_t room) {
  if (room <= self->room) return STATUS_OK;
  RESIZE(&self->features_memory, self->features, 0, room);
  self->room = room;
  return STATUS_OK;
}

/* Returns how many of the m agents form the next chunk, to draw or to observe, so that none is in it twice.
 * If draws are not in closed form or a rule counts choices, all agents that draw together have equal numbers
 * of observations and choices. */
static int agents_chunk_length(thompson_agents *self, int m, const int *ids, bool draws) {
  const thompson_posterior *posterior = self->posterior;
  const Agent *first = &self->agent[ids[0]];
  const bool closed = sampler_moments_fit(posterior->method, posterior->prior, &posterior->likelihood);
  const bool even = draws && (posterior->rule.ops->moments || !closed);
  int length = 0;
  self->chunk++;
  for (; length < m && length < self->width; length++) {
    Agent *agent = &self->agent[ids[length]];
    if (agent->chunk == self->chunk) break;
    if (even && (agent->choices != first->choices || agent->observations != first->observations)) break;
    agent->chunk = self->chunk;
  }
  return length;
}

/* Loads the histories of these agents into the posterior; *out is a view of its history. */
static Status agents_load_chunk(thompson_agents *self, int length, const int *ids, History *out) {
  thompson_posterior *posterior = self->posterior;
  const size_t d = (size_t)posterior->d;
  if (self->size == 0) { /* rows of a single agent */
    const Agent *agent = &self->agent[ids[0]];
    history_clear(&posterior->history);
    if (agent->observations > posterior->room)
      TRY(library_posterior_grow_history(posterior, agent->observations));
    for (int l = 0; l < agent->observations; l++) {
      const double *row = agent->rows + (size_t)l * (d + 1);
      history_record(&posterior->history, NULL, row, row + d);
    }
  }
  *out = history_first_runs(&posterior->history, length);
  if (self->size > 0) history_clear(out);
  for (int n = 0; n < length; n++) {
    const Agent *agent = &self->agent[ids[n]];
    self->run[n] = (uint32_t)ids[n], self->round[n] = agent->round, self->fallbacks[n] = 0;
    if (self->size > 0)
      history_load(out, n, agent->observations, self->evidence + (size_t)ids[n] * (size_t)self->size);
  }
  return STATUS_OK;
}

/* Finishes a chunk of agents that have drawn: adds up their fallbacks and advances their rounds. */
static void agents_end_chunk(thompson_agents *self, int length, const int *ids) {
  for (int n = 0; n < length; n++) {
    self->posterior->fallbacks += self->fallbacks[n];
    self->agent[ids[n]].round++;
  }
}

/* ---- use */

Status agents_add_row(thompson_agents *self, Agent *agent, const double *x, double y) {
  const size_t d = (size_t)self->posterior->d, width = d + 1;
  if (agent->observations == agent->room) {
    const size_t kept = (size_t)agent->room, room = kept < 4 ? 4 : kept + kept / 2;
    RESIZE(&agent->memory, agent->rows, kept * width, room * width);
    agent->room = (int)room;
  }
  double *row = agent->rows + (size_t)agent->observations++ * width;
  memcpy(row, x, d * sizeof *row);
  row[d] = y;
  return STATUS_OK;
}

/* Takes back the last observation of each of these agents, from the states before it. */
static void agents_take_back(thompson_agents *self, int m, const int *ids, const double *before) {
  const size_t size = (size_t)self->size;
  while (m-- > 0) {
    self->agent[ids[m]].observations--;
    memcpy(self->evidence + (size_t)ids[m] * size, before + (size_t)m * size, size * sizeof *before);
  }
}

/* Adds one observation to each agent of a chunk, which begins at `at`. If the history forgets, keeps their
 * states before[m, size], and takes all observations of the call back if one cannot be represented. */
static Status agents_observe_chunk(thompson_agents *self, int at, int length, const int *ids, const double *x,
                                   const double *y, double *before) {
  thompson_posterior *posterior = self->posterior;
  const size_t d = (size_t)posterior->d, size = (size_t)self->size;
  History history;
  TRY(agents_load_chunk(self, length, ids + at, &history));
  io_dataset_transpose(length, (int)d, x + (size_t)at * d, self->features);
  history_record(&history, NULL, self->features, y + at);
  if (posterior->forgets) history_filtered_fallbacks(&history, self->fallbacks);
  for (int n = 0; n < length; n++) {
    const int id = ids[at + n];
    double *evidence = self->evidence + (size_t)id * size;
    if (posterior->forgets) memcpy(before + (size_t)(at + n) * size, evidence, size * sizeof *before);
    self->agent[id].observations++;
    history_store(&history, n, evidence);
    if (!posterior->forgets || history_accepts(&history, evidence)) continue;
    agents_take_back(self, at + n + 1, ids, before);
    return library_posterior_refuse(posterior, at + n, y[at + n]);
  }
  return STATUS_OK;
}

thompson_status thompson_agents_observe(thompson_agents *self, int m, const int *ids, const double *x,
                                        const double *y) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)self->posterior->d, size = (size_t)self->size;
  int64_t fallbacks = 0;
  double *before = NULL;
  TRY(agents_check_ids(self, m, ids));
  TRY(library_posterior_admit(self->posterior, m, x, y));
  for (int i = 0; i < m; i++)
    if (self->agent[ids[i]].observations > INT_MAX - m)
      return status_set(STATUS_INPUT, "agent %d has too many observations for more", ids[i]);
  if (self->posterior->forgets) ALLOCATE(&scratch, before, (size_t)m * size);
  TRY(agents_reserve_features(self, AGENTS_CHUNK * d));
  for (int length, at = 0; at < m; at += length) {
    length = agents_chunk_length(self, m - at, ids + at, false);
    if (size == 0) {
      TRY(agents_add_row(self, &self->agent[ids[at]], x + (size_t)at * d, y[at]));
      continue;
    }
    TRY(agents_observe_chunk(self, at, length, ids, x, y, before));
    for (int n = 0; n < length; n++) fallbacks += self->fallbacks[n];
  }
  self->posterior->fallbacks += fallbacks;
  return THOMPSON_OK;
}

thompson_status thompson_agents_forget(thompson_agents *self, int m, const int *ids) {
  const size_t size = (size_t)self->size;
  TRY(agents_check_ids(self, m, ids));
  for (int i = 0; i < m; i++) {
    Agent *agent = &self->agent[ids[i]];
    agent->observations = agent->choices = 0;
    if (size > 0) memset(self->evidence + (size_t)ids[i] * size, 0, size * sizeof *self->evidence);
  }
  return THOMPSON_OK;
}

thompson_status thompson_agents_age(thompson_agents *self, int m, const int *ids, int rounds) {
  double factor;
  const size_t size = (size_t)self->size;
  TRY(agents_check_ids(self, m, ids));
  TRY(library_posterior_age_factor(self->posterior, rounds, &factor));
  for (int i = 0; i < m; i++) {
    double *evidence = self->evidence + (size_t)ids[i] * size;
    for (size_t k = 0; k < size; k++) evidence[k] *= factor;
  }
  return THOMPSON_OK;
}

/* ---- choices */

/* The arms of one call for m agents, and where its results go. */
typedef struct {
  int m;
  const thompson_arms *arms;
  ArmSet set; /* which of them each agent has */
  size_t stride; /* from the features of one agent to those of the next; 0: all share them */
  int *arm; /* [m]; NULL: nothing is chosen */
  double *propensity; /* [m], or NULL */
  double *probability; /* [m, k], or NULL */
  double *mean, *deviation; /* [m, k], or NULL: of mean rewards */
} Choice;

/* Returns how many agents from `at` on have as many arms as the first of them, at most `length`. */
static int agents_with_equal_arms(const Choice *call, int at, int length) {
  const int arms = arms_number(call->set, at);
  int equal = 1;
  while (equal < length && arms_number(call->set, at + equal) == arms) equal++;
  return equal;
}

/* Gathers features[arms, d, length] of the arms that each agent of a chunk has. */
static void agents_gather_arms(thompson_agents *self, const Choice *call, int at, int length) {
  const size_t d = (size_t)self->posterior->d, runs = (size_t)length;
  for (size_t n = 0; n < runs; n++) {
    const double *from = call->arms->features + ((size_t)at + n) * call->stride;
    double *to = self->features + n;
    for (int arm = 0; arm < call->arms->k; arm++, from += d) {
      if (!arms_has(call->set, at + (int)n, arm)) continue;
      for (size_t i = 0; i < d; i++, to += runs) *to = from[i];
    }
  }
}

/* Spreads values[length, arms] of the arms that each agent of a chunk has over all[m, k], with `missing` for
 * the others. */
static void agents_spread(const Choice *call, int at, int length, const double *values, double missing,
                          double *all) {
  all += (size_t)at * (size_t)call->arms->k;
  for (int n = at; n < at + length; n++)
    for (int arm = 0; arm < call->arms->k; arm++) *all++ = arms_has(call->set, n, arm) ? *values++ : missing;
}

/* Finishes the choices of a chunk of agents, which took places arm[length] among the arms they have. */
static void agents_count_choices(thompson_agents *self, const Choice *call, int at, int length,
                                 const int *ids) {
  for (int n = 0; n < length; n++) {
    Agent *agent = &self->agent[ids[n]];
    call->arm[at + n] = arms_at(call->set, at + n, call->arm[at + n]);
    agent->choices += agent->choices < INT_MAX;
  }
  agents_end_chunk(self, length, ids);
}

/* Computes what the agents of a chunk believe of the arms that they have. */
static Status agents_score_chunk(thompson_agents *self, int at, int length, const RuleChoice *choice,
                                 const Choice *call) {
  SCRATCH_ARENA(scratch);
  const int entries = length * choice->arms.count;
  Moments *rewards;
  ALLOCATE(&scratch, rewards, entries);
  rule_rewards(&self->posterior->rule, choice, rewards, self->fallbacks);
  for (int i = 0; i < entries; i++) self->probability[i] = rewards[i].mean;
  agents_spread(call, at, length, self->probability, NAN, call->mean);
  for (int i = 0; i < entries; i++) self->probability[i] = moments_deviation(rewards[i]);
  agents_spread(call, at, length, self->probability, NAN, call->deviation);
  return STATUS_OK;
}

/* Serves a chunk of agents, which have equally many arms. */
static Status agents_choose_chunk(thompson_agents *self, int at, int length, const int *ids,
                                  const Choice *call) {
  Rule *rule = &self->posterior->rule;
  double *p = self->probability;
  const int arms = arms_number(call->set, at);
  int *arm = call->arm ? call->arm + at : NULL;
  History history;
  TRY(agents_load_chunk(self, length, ids, &history));
  agents_gather_arms(self, call, at, length);
  rule->runs = self->run;
  rule->rounds = self->round;
  const RuleChoice choice = {.history = &history,
                             .choices = self->agent[ids[0]].choices,
                             .arms.count = arms,
                             .features = self->features};
  if (call->mean) return agents_score_chunk(self, at, length, &choice, call);
  if (call->propensity || call->probability) rule_probabilities(rule, &choice, p, self->fallbacks);
  if (call->probability) agents_spread(call, at, length, p, 0, call->probability);
  if (!arm) return STATUS_OK;
  if (call->propensity) {
    rule_pick(rule, 0, length, arms, p, arm);
    for (int n = 0; n < length; n++) call->propensity[at + n] = p[n * arms + arm[n]];
  } else {
    rule_choose(rule, &choice, arm, self->fallbacks);
    rule_explore(rule, 0, length, choice.arms, arm);
  }
  agents_count_choices(self, call, at, length, ids);
  return STATUS_OK;
}

/* Checks the arms of every agent that are available; the features of others may be anything. */
static Status agents_check_arms(const thompson_agents *self, const Choice *call) {
  const size_t d = (size_t)self->posterior->d;
  const thompson_arms *arms = call->arms;
  if (!arms->available)
    return library_posterior_check_arms(self->posterior, arms->own ? call->m : 1, arms->k, arms->features);
  TRY(library_posterior_check_arms(self->posterior, 0, arms->k, arms->features));
  for (int n = 0; n < call->m; n++) {
    const double *features = arms->features + (size_t)n * call->stride;
    if (arms_number(call->set, n) == 0)
      return status_set(STATUS_INPUT, "available: row %d (from 0) has no arm", n);
    for (int arm = 0; arm < arms->k; arm++) {
      if (!arms_has(call->set, n, arm)) continue;
      Status status = library_check("arms", d, features + (size_t)arm * d);
      if (status != STATUS_OK) return status_prefix(status, "arm %d of row %d (from 0): ", arm, n);
    }
  }
  return STATUS_OK;
}

static Status library_agents_choose(thompson_agents *self, const int *ids, Choice call) {
  const int m = call.m, k = call.arms->k;
  const size_t all = (size_t)(k > 0 ? k : 0), entries = all * (size_t)self->posterior->d;
  call.set = (ArmSet){.count = k, .available = call.arms->available};
  call.stride = call.arms->own ? entries : 0;
  TRY(agents_check_ids(self, m, ids));
  TRY(agents_check_arms(self, &call));
  if (!call.arm || call.propensity) TRY(library_posterior_begin_propensity(self->posterior));
  TRY(agents_reserve_features(self, AGENTS_CHUNK * (entries + all)));
  self->probability = self->features + AGENTS_CHUNK * entries;
  for (int length, at = 0; at < m; at += length) {
    length = agents_chunk_length(self, m - at, ids + at, true);
    length = agents_with_equal_arms(&call, at, length);
    TRY(agents_choose_chunk(self, at, length, ids + at, &call));
  }
  return STATUS_OK;
}

thompson_status thompson_agents_choose(thompson_agents *self, int m, const int *ids, int k,
                                       const double *arms, int own_arms, int *arm) {
  return thompson_agents_choose_propensity(self, m, ids, k, arms, own_arms, arm, NULL);
}

thompson_status thompson_agents_choose_propensity(thompson_agents *self, int m, const int *ids, int k,
                                                  const double *arms, int own_arms, int *arm,
                                                  double *propensity) {
  const thompson_arms all = {.k = k, .features = arms, .own = own_arms};
  return thompson_agents_choose_among(self, m, ids, &all, arm, propensity);
}

thompson_status thompson_agents_probabilities(thompson_agents *self, int m, const int *ids, int k,
                                              const double *arms, int own_arms, double *probability) {
  const thompson_arms all = {.k = k, .features = arms, .own = own_arms};
  return thompson_agents_probabilities_among(self, m, ids, &all, probability);
}

thompson_status thompson_agents_choose_among(thompson_agents *self, int m, const int *ids,
                                             const thompson_arms *arms, int *arm, double *propensity) {
  return library_agents_choose(self, ids,
                               (Choice){.m = m, .arms = arms, .arm = arm, .propensity = propensity});
}

thompson_status thompson_agents_probabilities_among(thompson_agents *self, int m, const int *ids,
                                                    const thompson_arms *arms, double *probability) {
  return library_agents_choose(self, ids, (Choice){.m = m, .arms = arms, .probability = probability});
}

thompson_status thompson_agents_score(thompson_agents *self, int m, const int *ids, const thompson_arms *arms,
                                      double *mean, double *sd) {
  return library_agents_choose(self, ids, (Choice){.m = m, .arms = arms, .mean = mean, .deviation = sd});
}

/* ---- what else they say */

thompson_status thompson_agents_p_value(thompson_agents *self, int m, const int *ids, double *p_value) {
  SCRATCH_ARENA(memory);
  int most = 0;
  Alarm *alarm;
  TRY(agents_check_ids(self, m, ids));
  for (int i = 0; i < m; i++) {
    const int observations = self->agent[ids[i]].observations;
    if (observations == 0)
      return status_set(STATUS_INPUT, "a p-value of the prior needs observations, and agent %d has none",
                        ids[i]);
    most = observations > most ? observations : most;
  }
  if (self->posterior->discount < 1)
    return status_set(STATUS_INPUT, "a p-value of the prior needs observations that count in full, and these "
                                    "agents have the option discount");
  if (m == 0) return THOMPSON_OK;
  TRY(library_posterior_alarm(&memory, self->posterior, most, &alarm));
  for (int i = 0; i < m; i++) {
    History history;
    TRY(agents_load_chunk(self, 1, ids + i, &history));
    p_value[i] = alarm_p_value(alarm, &history, 0, (uint32_t)ids[i]);
  }
  return THOMPSON_OK;
}

thompson_status thompson_agents_draw(thompson_agents *self, int m, const int *ids, int draws, double *theta) {
  thompson_posterior *posterior = self->posterior;
  const size_t width = (size_t)draws * (size_t)posterior->d;
  if (draws < 1) return status_set(STATUS_INPUT, "%d draws requested; at least 1 is needed", draws);
  TRY(agents_check_ids(self, m, ids));
  if (draws > posterior->rule.sampler.setup.draws) TRY(library_posterior_begin_sampler(posterior, draws));
  for (int length, at = 0; at < m; at += length) {
    length = agents_chunk_length(self, m - at, ids + at, true);
    const int lanes = length * draws;
    History history;
    TRY(agents_load_chunk(self, length, ids + at, &history));
    const RngLanes rng = {.key = posterior->key,
                          .draws = (uint32_t)draws,
                          .lanes = (uint32_t)lanes,
                          .runs = self->run,
                          .rounds = self->round};
    sampler_sample(&posterior->rule.sampler, &history, rng, draws, posterior->rule.theta, self->fallbacks);
    io_dataset_transpose(posterior->d, lanes, posterior->rule.theta, theta + (size_t)at * width);
    agents_end_chunk(self, length, ids + at);
  }
  return THOMPSON_OK;
}
