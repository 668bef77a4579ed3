/* What all forms of a history have in common: the choice of the form, its memory, and the counts of
 * observations. */
#include "model/history/history_internal.h"

#include <string.h>

Status history_begin(Arena *memory, int d, int runs, int share, const HistoryOps *form,
                     const Likelihood *likelihood, History *out) {
  ASSERT(d >= 1 && runs >= 1 && share >= 1);
  *out = (History){.memory = memory,
                   .d = d,
                   .runs = runs,
                   .each_round = runs / share,
                   .likelihood = likelihood,
                   .temper = 1,
                   .ops = form};
  TRY(arena_new(memory, (void **)&out->content, 1, out->ops->size));
  ALLOCATE(memory, out->content->observations, runs);
  ALLOCATE(memory, out->content->latest, out->each_round);
  for (int b = 0; b < out->each_round; b++) out->content->latest[b] = b * share;
  return STATUS_OK;
}

Status history_create_planned(Arena *memory, int d, int runs, HistoryPlan plan, const Likelihood *likelihood,
                              History *out) {
  const int share = plan.share > 0 ? plan.share : 1;
  const HistoryOps *form = plan.by_observation                   ? &history_form_rows
                           : likelihood_is_conjugate(likelihood) ? &history_form_evidence
                           : likelihood_has_network(likelihood)  ? &history_form_inputs
                           : plan.arms > 0                       ? &history_form_arms
                                                                 : &history_form_rows;
  ASSERT(share == 1 || !likelihood_has_network(likelihood));
  TRY(history_begin(memory, d, runs * share, share, form, likelihood, out));
  out->content->arms = plan.arms;
  return out->ops->reserve(out, 0);
}

Status history_create(Arena *memory, int d, int runs, const Likelihood *likelihood, History *out) {
  return history_create_planned(memory, d, runs, (HistoryPlan){0}, likelihood, out);
}

Status history_reserve(History *history, int rounds) {
  history_clear(history);
  return history->ops->reserve(history, rounds);
}

void history_clear(History *history) {
  history->rounds = 0;
  memset(history->content->observations, 0, (size_t)history->runs * sizeof(int));
  history->ops->clear(history);
}

void history_record(History *history, const int *arm, const double *phi, const double *y) {
  const struct HistoryContent *content = history->content;
  const int share = history->runs / history->each_round;
  for (int b = 0; share > 1 && b < history->each_round; b++)
    content->latest[b] = b * share + (arm[b] > 0 ? arm[b] : 0);
  history->ops->append(history, arm, phi, y);
  for (int b = 0; b < history->each_round; b++)
    if (!arm || arm[b] >= 0) content->observations[content->latest[b]]++;
  history->rounds++;
}

void history_discount(History *history, double factor) {
  ASSERT(history->ops->discount && factor >= 0 && factor <= 1);
  history->ops->discount(history, factor);
}

void history_gather(const History *from, const int *run, History *to) {
  ASSERT(from->ops->copy_run && to->ops == from->ops);
  ASSERT(to->d == from->d && to->likelihood->ops == from->likelihood->ops);
  history_clear(to);
  to->temper = from->temper;
  to->rounds = from->rounds;
  for (int n = 0; n < to->runs; n++) {
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

size_t history_state(const History *history) {
  return history->ops->state ? history->ops->state(history) : 0;
}

void history_store(const History *history, int run, double *state) {
  history->ops->store(history, run, state);
}

void history_load(History *history, int run, int observations, const double *state) {
  history->ops->load(history, run, state);
  history->content->observations[run] = observations;
  if (observations > history->rounds) history->rounds = observations;
}

void history_repeat_runs(const HistoryView *view, int first, int runs, int rows, double *x, double *scratch) {
  memcpy(scratch, x, (size_t)rows * (size_t)runs * sizeof *x);
  for (int i = 0; i < rows; i++)
    for (int n = 0; n < view->lanes; n++)
      x[(ptrdiff_t)i * view->lanes + n] =
          scratch[(ptrdiff_t)i * runs + (view->first + n) / view->draws - first];
}

double *history_pack(const History *history, int run, HistoryBlock block, double *out) {
  const size_t d = (size_t)history->d, runs = (size_t)history->runs;
  for (size_t i = 0; i < d; i++)
    for (size_t j = i; j < d; j++) *out++ = block.precision[(i * d + j) * runs + (size_t)run];
  for (size_t i = 0; i < d; i++) *out++ = block.vector[i * runs + (size_t)run];
  *out++ = block.number[run];
  return out;
}

const double *history_unpack(const History *history, int run, const double *from, HistoryBlock block) {
  const size_t d = (size_t)history->d, runs = (size_t)history->runs;
  for (size_t i = 0; i < d; i++)
    for (size_t j = i; j < d; j++)
      block.precision[(i * d + j) * runs + (size_t)run] = block.precision[(j * d + i) * runs + (size_t)run] =
          *from++;
  for (size_t i = 0; i < d; i++) block.vector[i * runs + (size_t)run] = *from++;
  block.number[run] = *from++;
  return from;
}
