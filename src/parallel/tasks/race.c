#include "parallel/tasks/race.h"

#include "core/quantile.h"
#include "core/special.h"
#include "parallel/progress.h"
#include "parallel/statistics.h"

#include <string.h>

/* Risk of all comparisons together, one-sided. */
static const double RISK = 0.05;

typedef struct {
  const Race *race;
  int policies, runs; /* C; runs so far of the policies still in the race */
  bool *out; /* [C] */
  double *regret; /* [C, most] */
  double *seconds; /* [C], the sum over runs */
  double *scratch; /* [most] */
} RaceState;

static double *race_regret_of_policy(const RaceState *state, int policy) {
  return state->regret + (size_t)policy * (size_t)state->race->most;
}

static Status race_run_block(RaceState *state, int policy, int first, int runs, double *seconds) {
  const Race *race = state->race;
  const Task task = {.policy = policy, .first_run = (uint32_t)first, .runs = runs, .world = race->world};
  SCOPED(TaskResult, result, study_result_destroy);
  SCOPED(TaskRun, simulation, study_task_run_destroy);
  TRY(study_result_create(race->study, &task, &result));
  TRY(study_task_run_create(race->study, &task, NULL, &simulation));
  simulation.prior = &race->priors[policy];
  simulation.result = &result;
  TRY(race->study->ops->run(&simulation));
  for (int b = 0; b < runs; b++) {
    race_regret_of_policy(state, policy)[first + b] = study_result_values(&result, 0, b)[result.points - 1];
    *seconds += result.columns.seconds[b];
  }
  return STATUS_OK;
}

/* Runs state->runs .. end - 1 of all policies still in the race. Blocks are dealt to the ranks in turn, and
 * every regret comes from a single rank, so that sums over ranks are exact. */
static Status race_run_wave_on_ranks(RaceState *state, int end) {
  const int block = (int)state->race->study->runs.block;
  Status status = STATUS_OK;
  double *spent = state->scratch;
  long turn = 0;
  for (int p = 0; p < state->policies; p++) spent[p] = 0;
  for (int first = state->runs; first < end; first += block)
    for (int p = 0; p < state->policies; p++) {
      if (state->out[p] || turn++ % parallel_size() != parallel_rank() || status != STATUS_OK) continue;
      status = race_run_block(state, p, first, end - first < block ? end - first : block, &spent[p]);
    }
  TRY(parallel_agree(status));
  parallel_sum_all((size_t)state->policies, spent);
  for (int p = 0; p < state->policies; p++) {
    state->seconds[p] += spent[p];
    if (!state->out[p])
      parallel_sum_all((size_t)(end - state->runs), race_regret_of_policy(state, p) + state->runs);
  }
  state->runs = end;
  return STATUS_OK;
}

/* Summarises the policies still in the race and returns the one of least regret, and finds whether it is
 * known well enough; policies that are worse leave. */
static int race_judge_policies(RaceState *state, RaceResult *results, bool *known) {
  const double z = state->policies > 1 ? special_upper_quantile(RISK / (state->policies - 1)) : 0;
  double counted;
  int best = -1;
  for (int p = 0; p < state->policies; p++) {
    const int n = state->runs;
    RaceResult *result = &results[p];
    if (state->out[p]) continue;
    result->runs = n;
    statistics_mean(n, 1, race_regret_of_policy(state, p), NULL, &result->mean, &result->se, &counted);
    if (counted < n) result->mean = INFINITY; /* a regret that is not a number is never the least */
    result->seconds = state->seconds[p] / n;
    memcpy(state->scratch, race_regret_of_policy(state, p), (size_t)n * sizeof *state->scratch);
    quantile_sort(n, state->scratch);
    result->tail = state->scratch[(int)ceil(0.95 * n) - 1];
    result->largest = state->scratch[n - 1];
    if (best < 0 || result->mean < results[best].mean) best = p;
  }
  *known = true;
  for (int p = 0; p < state->policies; p++) {
    RaceResult *result = &results[p];
    statistics_mean(result->runs, 1, race_regret_of_policy(state, p), race_regret_of_policy(state, best),
                    &result->difference, &result->difference_se, &counted);
    if (p == best || state->out[p]) continue;
    if (z * result->difference_se - result->difference > state->race->tolerance * results[best].mean)
      *known = false;
    state->out[p] = result->difference > z * result->difference_se;
  }
  return best;
}

Status race_run(const Race *race, RaceResult *results, int *best, bool *known) {
  SCRATCH_ARENA(memory);
  const int policies = race->study->file->policy_count;
  RaceState state = {.race = race, .policies = policies};
  ALLOCATE_ON_RANKS(&memory, state.out, policies);
  ALLOCATE_ON_RANKS(&memory, state.seconds, policies);
  ALLOCATE_ON_RANKS(&memory, state.regret, (size_t)policies * (size_t)race->most);
  ALLOCATE_ON_RANKS(&memory, state.scratch, race->most);
  Progress progress = progress_begin(PROGRESS_AUTO, "simulating");
  for (int end = RACE_FIRST;; end *= 2) {
    if (end > race->most) end = race->most;
    TRY(race_run_wave_on_ranks(&state, end));
    *best = race_judge_policies(&state, results, known);
    progress_update(&progress, state.runs, race->most, (double)state.runs / race->most);
    if (*known || end >= race->most) break;
  }
  progress_end(&progress, state.runs, race->most);
  return STATUS_OK;
}
