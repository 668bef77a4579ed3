/* What all forms of a history have in common: the choice of the form, its memory, and the counts of
 * observations. */
#include "core/lanes.h"
#include "model/history/history_internal.h"

#include <math.h>
#include <string.h>

Status history_begin(Arena *memory, int d, int runs, HistoryLayout layout, const Likelihood *likelihood,
                     History *out) {
  const int share = layout.share, blocks = layout.blocks;
  ASSERT(d >= 1 && runs >= 1 && share >= 1);
  *out = (History){.memory = memory,
                   .d = d,
                   .runs = runs,
                   .each_round = runs / share,
                   .likelihood = likelihood,
                   .temper = 1,
                   .ops = layout.form};
  TRY(arena_new(memory, (void **)&out->content, 1, out->ops->size));
  struct HistoryContent *content = out->content;
  content->columns = runs;
  content->blocks = blocks;
  ALLOCATE(memory, content->observations, runs);
  ALLOCATE(memory, content->latest, out->each_round);
  ALLOCATE(memory, content->evidence, (size_t)blocks * history_evidence_entries(d) * (size_t)runs);
  for (int b = 0; b < out->each_round; b++) content->latest[b] = b * share;
  return STATUS_OK;
}

Status history_create_planned(Arena *memory, int d, int runs, HistoryPlan plan, const Likelihood *likelihood,
                              History *out) {
  const int share = plan.share > 0 ? plan.share : 1;
  const HistoryOps *form = likelihood_has_functions(likelihood)  ? &history_form_functions
                           : plan.by_observation                 ? &history_form_rows
                           : likelihood_is_conjugate(likelihood) ? &history_form_evidence
                           : likelihood_has_network(likelihood)  ? &history_form_inputs
                           : plan.arms > 0                       ? &history_form_arms
                                                                 : &history_form_rows;
  const HistoryLayout layout = {
      .form = form, .share = share, .blocks = form == &history_form_evidence ? 1 : 0};
  ASSERT(share == 1 || !likelihood_has_network(likelihood));
  TRY(history_begin(memory, d, runs * share, layout, likelihood, out));
  out->content->arms = plan.arms;
  return out->ops->reserve(out, 0);
}

Status history_create(Arena *memory, int d, int runs, const Likelihood *likelihood, History *out) {
  return history_create_planned(memory, d, runs, (HistoryPlan){0}, likelihood, out);
}

Status history_reserve(History *history, int rounds) {
  history_clear(history);
  return history->ops->reserve ? history->ops->reserve(history, rounds) : STATUS_OK;
}

/* Returns the rows of all blocks of evidence, [.., B]. */
static size_t history_block_rows(const History *history) {
  return (size_t)history->content->blocks * history_evidence_entries(history->d);
}

void history_clear(History *history) {
  const struct HistoryContent *content = history->content;
  history->rounds = 0;
  memset(content->observations, 0, (size_t)history->runs * sizeof(int));
  for (size_t i = 0; i < history_block_rows(history); i++)
    memset(content->evidence + i * (size_t)content->columns, 0, (size_t)history->runs * sizeof(double));
  history->ops->clear(history);
}

History history_first_runs(const History *history, int runs) {
  History view = *history;
  ASSERT(runs <= history->each_round && history->each_round == history->runs);
  view.runs = view.each_round = runs;
  return view;
}

void history_record(History *history, const int *arm, const double *phi, const double *y) {
  const struct HistoryContent *content = history->content;
  const int share = history->runs / history->each_round;
  if (share > 1)
    for (int b = 0; b < history->each_round; b++) content->latest[b] = b * share + (arm[b] > 0 ? arm[b] : 0);
  history->ops->append(history, arm, phi, y);
  for (int b = 0; b < history->each_round; b++)
    if (!arm || arm[b] >= 0) content->observations[content->latest[b]]++;
  history->rounds++;
}

void history_discount(History *history, double factor) {
  const struct HistoryContent *content = history->content;
  ASSERT(history->ops->discount && factor >= 0 && factor <= 1);
  for (size_t i = 0; i < history_block_rows(history); i++)
    for (int n = 0; n < history->runs; n++)
      content->evidence[i * (size_t)content->columns + (size_t)n] *= factor;
  history->ops->discount(history, factor);
}

void history_gather(const History *from, const int *run, History *to) {
  ASSERT(from->ops->copy_run && to->ops == from->ops);
  ASSERT(to->d == from->d && to->likelihood->ops == from->likelihood->ops);
  history_clear(to);
  to->temper = from->temper;
  to->rounds = from->rounds;
  for (int n = 0; n < to->runs; n++) {
    lanes_copy((int)history_block_rows(from), 1, from->content->evidence + run[n], from->content->columns,
               to->content->evidence + n, to->content->columns);
    from->ops->copy_run(from, run[n], to, n);
    to->content->observations[n] = history_observations(from, run[n]);
  }
}

int history_observations(const History *history, int run) { return history->content->observations[run]; }

const int *history_latest_runs(const History *history) { return history->content->latest; }

double history_squares(const History *history, int run) {
  ASSERT(history->ops->squares);
  return history->ops->squares(history, run);
}

void history_log_likelihood(const HistoryView *view, const double *z, double *log_likelihood,
                            double *gradient) {
  ASSERT(view->history->ops->log_likelihood);
  view->history->ops->log_likelihood(view, z, log_likelihood, gradient);
}

size_t history_state(const History *history) {
  const size_t d = (size_t)history->d, rest = history->ops->state ? history->ops->state(history) : 0;
  return (size_t)history->content->blocks * (d * (d + 3) / 2 + 1) + rest;
}

void history_store(const History *history, int run, double *state) {
  const size_t d = (size_t)history->d, columns = (size_t)history->content->columns;
  for (int c = 0; c < history->content->blocks; c++) {
    const double *precision = history_block(history, c) + run, *rest = precision + d * d * columns;
    for (size_t i = 0; i < d; i++)
      for (size_t j = i; j < d; j++) *state++ = precision[(i * d + j) * columns];
    for (size_t i = 0; i <= d; i++) *state++ = rest[i * columns];
  }
  if (history->ops->store) history->ops->store(history, run, state);
}

void history_load(History *history, int run, int observations, const double *state) {
  const size_t d = (size_t)history->d, columns = (size_t)history->content->columns;
  for (int c = 0; c < history->content->blocks; c++) {
    double *precision = history_block(history, c) + run, *rest = precision + d * d * columns;
    for (size_t i = 0; i < d; i++)
      for (size_t j = i; j < d; j++)
        precision[(i * d + j) * columns] = precision[(j * d + i) * columns] = *state++;
    for (size_t i = 0; i <= d; i++) rest[i * columns] = *state++;
  }
  history->ops->load(history, run, state);
  history->content->observations[run] = observations;
  if (observations > history->rounds) history->rounds = observations;
}

bool history_accepts(const History *history, const double *state) {
  const size_t d = (size_t)history->d, size = history_state(history);
  for (size_t k = 0; k < size; k++)
    if (!(fabs(state[k]) <= HISTORY_MOST)) return false;
  state += (size_t)history->content->blocks * (d * (d + 3) / 2 + 1);
  return !history->ops->accepts || history->ops->accepts(history, state);
}

void history_repeat_runs(const HistoryView *view, int first, int runs, int rows, double *x, double *scratch) {
  memcpy(scratch, x, (size_t)rows * (size_t)runs * sizeof *x);
  for (int i = 0; i < rows; i++)
    for (int n = 0; n < view->lanes; n++)
      x[(ptrdiff_t)i * view->lanes + n] =
          scratch[(ptrdiff_t)i * runs + (view->first + n) / view->draws - first];
}
