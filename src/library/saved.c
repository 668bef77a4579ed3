/* Files of posteriors and of agents: a prior file (model/prior/prior.h) with what was learned under that
 * prior, so that a service continues where it stopped, with the random numbers that come next. docs/files.md
 * describes the format. All later versions read what one version has written: whoever changes the format
 * raises SAVED_FORMAT, and keeps reading the earlier ones, of which tests/golden has samples. */
#include "library/library.h"

#include <limits.h>
#include <string.h>

enum { SAVED_FORMAT = 2, UNAGED_FORMAT = 1 /* of files without `share` */ };

/* What is counted for each agent: its variable in the file, and the largest value. */
enum { OBSERVATIONS, CHOICES, ROUND, LIVES, COUNTS };
static const struct {
  const char *name, *text;
  int64_t most;
} counts[COUNTS] = {[OBSERVATIONS] = {"observations", "observations so far", INT_MAX},
                    [CHOICES] = {"choices", "choices since the agent was told to forget", INT_MAX},
                    [ROUND] = {"random_round", "position in the stream of random numbers", UINT32_MAX},
                    [LIVES] = {"lives", "number of times the agent was told to forget", UINT32_MAX}};

typedef struct {
  const char *kind; /* posterior | agents */
  const Prior *prior; /* to write */
  thompson_arguments arguments;
  const char *note; /* the caller's, of agents; or NULL */
  int64_t fallbacks;
  size_t count; /* agents */
  int64_t *counts[COUNTS]; /* [count] */
  size_t size; /* doubles of evidence per agent; 0: observations are kept instead */
  double *evidence; /* [count, size] */
  size_t rows; /* of all agents, one agent after the other */
  double *x, *y; /* [rows, d], [rows] */
  double *share; /* [rows], or NULL if no observation has aged */
} Saved;

/* ---- write */

/* Writes the caller's text as a variable, since an attribute has room for 64 kB only. */
static Status library_put_note(StoreFile *file, const char *note) {
  int axis;
  if (!note || !*note) return STATUS_OK;
  TRY(store_dimension(file, "note_byte", strlen(note), &axis));
  return store_write(file, "note", STORE_BYTE, 1, &axis, "text of the caller's, in UTF-8", NULL, note);
}

static Status library_put_saved(StoreFile *file, const void *what) {
  const Saved *saved = what;
  const Prior *prior = saved->prior;
  int agent, axis[2];
  TRY(prior_put(prior, file));
  TRY(store_int_attribute(file, "saved_format", saved->share ? SAVED_FORMAT : UNAGED_FORMAT));
  TRY(store_text_attribute(file, NULL, "saved", saved->kind));
  TRY(store_text_attribute(file, NULL, "sampler", saved->arguments.sampler));
  TRY(store_text_attribute(file, NULL, "likelihood", saved->arguments.likelihood));
  TRY(store_text_attribute(file, NULL, "options", saved->arguments.options));
  TRY(store_int_attribute(file, "seed", (int64_t)saved->arguments.seed));
  TRY(store_int_attribute(file, "fallbacks", saved->fallbacks));
  TRY(library_put_note(file, saved->note));
  if (saved->count == 0) return STATUS_OK;
  TRY(store_dimension(file, "agent", saved->count, &agent));
  for (int i = 0; i < COUNTS; i++)
    TRY(store_write(file, counts[i].name, STORE_INT64, 1, &agent, counts[i].text, NULL, saved->counts[i]));
  if (saved->size > 0) {
    axis[0] = agent;
    TRY(store_dimension(file, "entry", saved->size, &axis[1]));
    return store_write(file, "evidence", STORE_DOUBLE, 2, axis,
                       "for each component: precision by rows from the diagonal on, precision-weighted mean, "
                       "and sum of (y / noise)^2 or the logarithm of a factor; then observations",
                       NULL, saved->evidence);
  }
  if (saved->rows == 0) return STATUS_OK;
  TRY(store_dimension(file, "observation", saved->rows, &axis[0]));
  TRY(store_dimension(file, "feature", (size_t)prior->d, &axis[1]));
  TRY(store_write(file, "x", STORE_DOUBLE, 2, axis, "features, agent by agent", NULL, saved->x));
  TRY(store_write(file, "y", STORE_DOUBLE, 1, axis, "rewards", NULL, saved->y));
  if (!saved->share) return STATUS_OK;
  return store_write(file, "share", STORE_DOUBLE, 1, axis, "what ageing has left of the evidence of each",
                     NULL, saved->share);
}

thompson_status thompson_posterior_save(const thompson_posterior *self, const char *path) {
  SCRATCH_ARENA(memory);
  Saved saved = {.kind = "posterior", .fallbacks = self->fallbacks, .count = 1, .x = self->x, .y = self->y};
  if (self->given)
    return status_set(STATUS_INPUT, "the likelihood is a function of theta, for which there are no files");
  int64_t values[COUNTS] = {[OBSERVATIONS] = self->history.rounds,
                            [CHOICES] = self->choices,
                            [ROUND] = self->round,
                            [LIVES] = self->lives};
  thompson_posterior_arguments(self, &saved.arguments);
  saved.rows = (size_t)thompson_observation_count(self);
  for (int i = 0; i < COUNTS; i++) saved.counts[i] = &values[i];
  for (size_t l = 0; l < saved.rows; l++)
    if (self->share[l] < 1) saved.share = self->share;
  if (self->forgets) { /* it does not keep its observations */
    saved.size = history_state(&self->history);
    ALLOCATE(&memory, saved.evidence, saved.size);
    history_store(&self->history, 0, saved.evidence);
  }
  saved.prior = self->prior;
  return library_write(path, library_put_saved, &saved);
}

static Status library_allocate_rows(Arena *memory, Saved *saved, int d) {
  ALLOCATE(memory, saved->x, saved->rows * (size_t)d);
  ALLOCATE(memory, saved->y, saved->rows);
  return STATUS_OK;
}

thompson_status thompson_agents_save(const thompson_agents *self, const char *path) {
  SCRATCH_ARENA(memory);
  const size_t d = (size_t)self->posterior->d;
  Saved saved = {.kind = "agents",
                 .note = self->note,
                 .fallbacks = self->posterior->fallbacks,
                 .count = (size_t)self->count,
                 .size = (size_t)self->size,
                 .evidence = self->evidence};
  thompson_agents_arguments(self, &saved.arguments);
  for (int i = 0; i < COUNTS; i++) ALLOCATE(&memory, saved.counts[i], saved.count);
  for (int i = 0; i < self->count; i++) {
    const Agent *agent = &self->agent[i];
    saved.counts[OBSERVATIONS][i] = agent->observations;
    saved.counts[CHOICES][i] = agent->choices;
    saved.counts[ROUND][i] = agent->round;
    saved.rows += saved.size > 0 ? 0 : (size_t)agent->observations;
  }
  TRY(library_allocate_rows(&memory, &saved, (int)d));
  if (saved.size == 0)
    for (size_t i = 0, row = 0; i < saved.count; i++)
      for (int l = 0; l < self->agent[i].observations; l++, row++) {
        const double *from = self->agent[i].rows + (size_t)l * (d + 1);
        memcpy(saved.x + row * d, from, d * sizeof *from);
        saved.y[row] = from[d];
      }
  saved.prior = self->posterior->prior;
  return library_write(path, library_put_saved, &saved);
}

/* ---- read */

static Status library_refuse_damaged(StoreFile *file, const char *what) {
  return status_set(STATUS_INPUT, "%s: %s is out of range", store_path(file), what);
}

/* Removes what has no effect beside a constant quantile, which earlier versions accepted. */
static Status library_drop_useless_options(Arena *memory, const char **options) {
  LibraryOptions texts;
  TRY(library_options(memory, *options, &texts));
  const char *quantile = library_take_option(&texts, "quantile");
  if (!quantile || strcmp(quantile, "auto") == 0) return STATUS_OK;
  library_take_option(&texts, "horizon");
  library_take_option(&texts, "bayes_ucb_alpha");
  const char *kept;
  TRY(arena_print(memory, &kept, "quantile=%s", quantile));
  for (int i = 0; i < texts.count; i++) TRY(arena_print(memory, &kept, "%s,%s", kept, texts.text[i]));
  *options = kept;
  return STATUS_OK;
}

static Status library_get_note(StoreFile *file, Arena *memory, const char **out) {
  size_t length = SIZE_MAX;
  char *note;
  if (!store_has_variable(file, "note")) return STATUS_OK;
  TRY(store_shape(file, "note", 1, &length));
  ALLOCATE(memory, note, length + 1);
  *out = note;
  return store_get_part(file, "note", STORE_BYTE, NULL, NULL, note);
}

static Status library_get_saved(StoreFile *file, Arena *memory, thompson_prior *prior, Saved *saved) {
  PriorFit defaults;
  int64_t format, seed;
  const char *kind;
  if (!store_has_attribute(file, "saved_format"))
    return status_set(STATUS_INPUT, "%s has no saved %s: it lacks the attribute 'saved_format'",
                      store_path(file), saved->kind);
  TRY(store_get_int_attribute(file, "saved_format", &format));
  if (format > SAVED_FORMAT)
    return status_set(STATUS_INPUT,
                      "%s was written by a later version: its format is %lld, this one reads %d",
                      store_path(file), (long long)format, SAVED_FORMAT);
  TRY(store_get_text_attribute(memory, file, "saved", &kind));
  if (strcmp(kind, saved->kind) != 0)
    return status_set(STATUS_INPUT, "%s does not hold a saved %s, but a saved %s", store_path(file),
                      saved->kind, kind);
  TRY(store_get_text_attribute(memory, file, "sampler", &saved->arguments.sampler));
  TRY(store_get_text_attribute(memory, file, "likelihood", &saved->arguments.likelihood));
  TRY(store_get_text_attribute(memory, file, "options", &saved->arguments.options));
  TRY(library_drop_useless_options(memory, &saved->arguments.options));
  TRY(store_get_int_attribute(file, "fallbacks", &saved->fallbacks));
  TRY(library_get_note(file, memory, &saved->note));
  TRY(store_get_int_attribute(file, "seed", &seed));
  saved->arguments.seed = (uint64_t)seed;
  TRY(fit_of_options("defaults", 0, NULL, 1, &defaults));
  TRY(prior_get(&prior->memory, file, &defaults, &prior->prior));
  if (!store_has_dimension(file, "agent")) return STATUS_OK;
  TRY(store_dimension_length(file, "agent", &saved->count));
  if (saved->count > INT_MAX) return library_refuse_damaged(file, "the number of agents");
  for (int i = 0; i < COUNTS; i++) ALLOCATE(memory, saved->counts[i], saved->count);
  for (int i = 0; i < COUNTS; i++) {
    TRY(store_shape(file, counts[i].name, 1, &saved->count));
    TRY(store_get_int64s(file, counts[i].name, saved->counts[i]));
    for (size_t n = 0; n < saved->count; n++)
      if (saved->counts[i][n] < 0 || saved->counts[i][n] > counts[i].most)
        return library_refuse_damaged(file, counts[i].name);
  }
  if (store_has_variable(file, "evidence")) {
    TRY(store_dimension_length(file, "entry", &saved->size));
    size_t shape[] = {saved->count, saved->size};
    TRY(store_shape(file, "evidence", 2, shape));
    ALLOCATE(memory, saved->evidence, saved->count * saved->size);
    return store_get_doubles(file, "evidence", saved->evidence);
  }
  for (size_t i = 0; i < saved->count; i++) saved->rows += (size_t)saved->counts[OBSERVATIONS][i];
  if (saved->rows == 0) return STATUS_OK;
  if (saved->rows > INT_MAX) return library_refuse_damaged(file, "the number of observations");
  size_t shape[] = {saved->rows, (size_t)prior->prior.d};
  TRY(store_shape(file, "x", 2, shape));
  TRY(store_shape(file, "y", 1, shape));
  TRY(library_allocate_rows(memory, saved, prior->prior.d));
  TRY(store_get_doubles(file, "x", saved->x));
  TRY(store_get_doubles(file, "y", saved->y));
  if (!store_has_variable(file, "share")) return STATUS_OK;
  TRY(store_shape(file, "share", 1, shape));
  ALLOCATE(memory, saved->share, saved->rows);
  TRY(store_get_doubles(file, "share", saved->share));
  for (size_t l = 0; l < saved->rows; l++)
    if (!(saved->share[l] >= 0 && saved->share[l] <= 1)) return library_refuse_damaged(file, "share");
  return STATUS_OK;
}

static Status library_read_saved(const char *path, Arena *memory, thompson_prior *prior, Saved *saved) {
  StoreFile *file;
  const LibraryFiles before = library_enter_files();
  Status status = store_open_own(path, &file);
  if (status == STATUS_OK) {
    status = library_get_saved(file, memory, prior, saved);
    store_abandon(file);
  }
  library_leave_files(before);
  return status;
}

/* Checks that the histories of `self` take the evidence that was saved, if they have a state of a fixed
 * size. */
static Status library_check_evidence(const thompson_posterior *self, const Saved *saved, bool fixed) {
  const History *history = &self->history;
  if (saved->size != (fixed ? history_state(history) : 0))
    return status_set(STATUS_INPUT, "its evidence does not match its likelihood and its options");
  if (!fixed) return STATUS_OK;
  for (size_t i = 0; i < saved->count; i++)
    if (!history_accepts(history, saved->evidence + i * saved->size))
      return status_set(STATUS_INPUT, "the evidence of agent %zu (from 0) is out of range", i);
  return STATUS_OK;
}

/* Creates a posterior in the state that was saved. */
static Status library_restore_posterior(const Saved *saved, const thompson_prior *prior,
                                        thompson_posterior **out) {
  const thompson_arguments *given = &saved->arguments;
  if (saved->count != 1) return status_set(STATUS_INPUT, "it does not hold exactly one posterior");
  TRY(thompson_posterior_new(prior, given->sampler, given->likelihood, given->options, given->seed, out));
  thompson_posterior *self = *out;
  TRY(library_check_evidence(self, saved, self->forgets));
  TRY(library_posterior_check(self, saved->rows, saved->x, saved->y));
  self->lives = (uint32_t)*saved->counts[LIVES];
  TRY(library_posterior_begin_sampler(self, 1));
  if (self->forgets)
    history_load(&self->history, 0, (int)*saved->counts[OBSERVATIONS], saved->evidence);
  else
    TRY(library_posterior_observe(self, (int)saved->rows, saved->x, saved->y));
  if (saved->share && !self->forgets) memcpy(self->share, saved->share, saved->rows * sizeof *self->share);
  self->round = (uint32_t)*saved->counts[ROUND];
  self->choices = (int)*saved->counts[CHOICES];
  self->fallbacks = saved->fallbacks;
  return STATUS_OK;
}

/* Creates agents in the state that was saved. */
static Status library_restore_agents(const Saved *saved, const thompson_prior *prior, thompson_agents **out) {
  const size_t d = (size_t)prior->prior.d;
  const thompson_arguments *given = &saved->arguments;
  TRY(thompson_agents_new(prior, (int)saved->count, given->sampler, given->likelihood, given->options,
                          given->seed, out));
  thompson_agents *self = *out;
  TRY(thompson_agents_set_note(self, saved->note));
  if (saved->count > 0) TRY(library_check_evidence(self->posterior, saved, self->size > 0));
  TRY(library_posterior_check(self->posterior, saved->rows, saved->x, saved->y));
  self->posterior->fallbacks = saved->fallbacks;
  if (saved->size > 0) memcpy(self->evidence, saved->evidence, saved->count * saved->size * sizeof(double));
  for (size_t i = 0, row = 0; i < saved->count; i++) {
    Agent *agent = &self->agent[i];
    const int64_t observations = saved->counts[OBSERVATIONS][i];
    agent->choices = (int)saved->counts[CHOICES][i];
    agent->round = (uint32_t)saved->counts[ROUND][i];
    if (saved->size > 0) {
      agent->observations = (int)observations;
      continue;
    }
    while (agent->observations < observations) {
      TRY(agents_add_row(self, agent, saved->x + row * d, saved->y[row]));
      row++;
    }
  }
  return STATUS_OK;
}

/* Opens a file of either kind: exactly one of `posterior` and `agents` is not NULL. */
static Status library_open_saved(const char *path, thompson_prior **prior, thompson_posterior **posterior,
                                 thompson_agents **agents) {
  SCRATCH_ARENA(memory);
  Saved saved = {.kind = posterior ? "posterior" : "agents"};
  TRY(library_prior_new(prior));
  TRY(library_read_saved(path, &memory, *prior, &saved));
  library_prior_share(*prior);
  Status status = posterior ? library_restore_posterior(&saved, *prior, posterior)
                            : library_restore_agents(&saved, *prior, agents);
  return status == STATUS_OK ? status : status_prefix(status, "%s: ", path);
}

thompson_status thompson_posterior_open(const char *path, thompson_prior **prior, thompson_posterior **out) {
  *out = NULL;
  Status status = library_open_saved(path, prior, out, NULL);
  if (status != STATUS_OK) thompson_posterior_free(*out), *out = NULL;
  return library_finish_prior(status, prior);
}

thompson_status thompson_agents_open(const char *path, thompson_prior **prior, thompson_agents **out) {
  *out = NULL;
  Status status = library_open_saved(path, prior, NULL, out);
  if (status != STATUS_OK) thompson_agents_free(*out), *out = NULL;
  return library_finish_prior(status, prior);
}
