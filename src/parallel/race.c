#include "parallel/race.h"

#include "core/special.h"

#include <string.h>

/* Risk of all comparisons together, one-sided. */
static const double RISK = 0.05;

typedef struct {
  const Race *race;
  int policies, runs; /* C; so far, of those still in it */
  bool *out; /* [C] */
  double *regret; /* [C, most] */
  double *seconds; /* [C], the sum over runs */
  double *scratch; /* [most] */
} RaceState;

static Status race_create(Arena *memory, const Race *race, RaceState *out) {
  const size_t policies = (size_t)race->study->file->policy_count, most = (size_t)race->most;
  *out = (RaceState){.race = race, .policies = race->study->file->policy_count};
  ALLOCATE_ARRAYS(memory, policies, out->out, out->seconds);
  ALLOCATE(memory, out->regret, policies * most);
  ALLOCATE(memory, out->scratch, most);
  return STATUS_OK;
}

static double *regret_of(const RaceState *state, int policy) {
  return state->regret + (size_t)policy * (size_t)state->race->most;
}

static Status race_block(RaceState *state, int policy, int first, int runs, double *seconds) {
  const Race *race = state->race;
  const Task task = {.policy = policy, .first_run = (uint32_t)first, .runs = runs, .world = race->world};
  SCOPED(TaskResult, result, task_result_destroy);
  TRY(task_result_create(race->study, &task, &result));
  TRY(race->study->ops->run(race->study, &task, &race->priors[policy], (Tick){0}, &result));
  for (int b = 0; b < runs; b++) {
    regret_of(state, policy)[first + b] = result.curves[(b + 1) * result.points - 1];
    *seconds += result.seconds[b];
  }
  return STATUS_OK;
}

/* Runs state->runs .. end - 1 of all policies that are still in it: blocks go round the ranks, and every
 * number is that of one rank, so that sums over ranks are exact. */
static Status race_wave(const Parallel *parallel, RaceState *state, int end) {
  const int block = (int)state->race->study->runs.block;
  Status status = STATUS_OK;
  double *spent = state->scratch;
  long turn = 0;
  for (int p = 0; p < state->policies; p++) spent[p] = 0;
  for (int first = state->runs; first < end; first += block)
    for (int p = 0; p < state->policies; p++) {
      if (state->out[p] || turn++ % parallel->size != parallel->rank || status != STATUS_OK) continue;
      status = race_block(state, p, first, end - first < block ? end - first : block, &spent[p]);
    }
  TRY(parallel_agree(parallel, status));
  parallel_sum_all((size_t)state->policies, spent);
  for (int p = 0; p < state->policies; p++) {
    state->seconds[p] += spent[p];
    if (!state->out[p]) parallel_sum_all((size_t)(end - state->runs), regret_of(state, p) + state->runs);
  }
  state->runs = end;
  return STATUS_OK;
}

/* Returns the mean of x[n], and computes its standard error. */
static double race_mean(int n, const double *x, double *se) {
  double sum = 0, square = 0;
  for (int i = 0; i < n; i++) sum += x[i];
  for (int i = 0; i < n; i++) square += (x[i] - sum / n) * (x[i] - sum / n);
  *se = sqrt(square / (n - 1) / n);
  return sum / n;
}

static int race_order(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void race_summarise(RaceState *state, int policy, RaceResult *result) {
  const int n = state->runs;
  result->runs = n;
  result->mean = race_mean(n, regret_of(state, policy), &result->se);
  result->seconds = state->seconds[policy] / n;
  memcpy(state->scratch, regret_of(state, policy), (size_t)n * sizeof *state->scratch);
  qsort(state->scratch, (size_t)n, sizeof *state->scratch, race_order);
  result->tail = state->scratch[(int)ceil(0.95 * n) - 1];
  result->largest = state->scratch[n - 1];
}

static void race_compare(RaceState *state, int policy, int best, RaceResult *result) {
  const double *own = regret_of(state, policy), *least = regret_of(state, best);
  for (int i = 0; i < result->runs; i++) state->scratch[i] = own[i] - least[i];
  result->difference = race_mean(result->runs, state->scratch, &result->difference_se);
}

/* Finds the policy of least regret, and whether it is known well enough; those that are worse leave. */
static int race_judge(RaceState *state, RaceResult *results, bool *known) {
  const double z = state->policies > 1 ? special_upper_quantile(RISK / (state->policies - 1)) : 0;
  int best = -1;
  for (int p = 0; p < state->policies; p++) {
    if (state->out[p]) continue;
    race_summarise(state, p, &results[p]);
    if (best < 0 || results[p].mean < results[best].mean) best = p;
  }
  *known = true;
  for (int p = 0; p < state->policies; p++) {
    RaceResult *result = &results[p];
    race_compare(state, p, best, result);
    if (p == best || state->out[p]) continue;
    if (z * result->difference_se - result->difference > state->race->tolerance * results[best].mean)
      *known = false;
    state->out[p] = result->difference > z * result->difference_se;
  }
  return best;
}

Status race_run(const Parallel *parallel, const Race *race, ProgressMode mode, RaceResult *results, int *best,
                bool *known) {
  SCRATCH_ARENA(memory);
  RaceState state;
  TRY(race_create(&memory, race, &state));
  Progress progress = progress_begin(mode, parallel->rank == 0, "simulating");
  for (int end = RACE_FIRST;; end *= 2) {
    if (end > race->most) end = race->most;
    TRY(race_wave(parallel, &state, end));
    *best = race_judge(&state, results, known);
    progress_update(&progress, state.runs, race->most, (double)state.runs / race->most);
    if (*known || end >= race->most) break;
  }
  progress_end(&progress, state.runs, race->most);
  return STATUS_OK;
}
