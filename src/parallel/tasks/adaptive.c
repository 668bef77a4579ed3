#include "parallel/tasks/adaptive.h"

#include <math.h>
#include <string.h>

Status adaptive_create(Arena *memory, Finished *finished, Adaptive *out) {
  const Study *study = finished->study;
  const size_t settings = (size_t)study->file->setting_count;
  *out = (Adaptive){.study = study, .finished = finished};
  ALLOCATE(memory, out->settings, settings);
  ALLOCATE(memory, out->moments, settings * (size_t)study->file->policy_count);
  for (size_t s = 0; s < settings; s++)
    out->settings[s] = (AdaptiveSetting){
        .wanted = study_runs_first_wave(&study->runs), .ended = !study->runs.adaptive, .se = NAN};
  return STATUS_OK;
}

/* Computes the moments[policy_count] of one block, of the target's curve at the last point of the setting. A
 * task that cannot be read is an error if `strict`; otherwise it is marked as not run. */
static Status adaptive_read_block(Adaptive *adaptive, signed char *state, int setting, int block, bool strict,
                                  Moments *moments) {
  SCRATCH_ARENA(scratch);
  const Study *study = adaptive->study;
  double *values, *base;
  const int runs = study->blocks[block].runs;
  ALLOCATE(&scratch, values, 2 * runs);
  base = values + runs;
  for (int p = 0; p < study->file->policy_count; p++) {
    const Task task = study_task(study, study_task_index(study, setting, p, block));
    double *into = p == 0 ? base : values;
    for (int b = 0; b < runs; b++) into[b] = NAN; /* if the task failed or has not run */
    if (state[task.index] == RUN_OK) {
      SCOPED(TaskResult, result, study_result_destroy);
      TRY(study_result_create(study, &task, &result));
      const Status status = finished_load(adaptive->finished, &task, &result);
      if (status == STATUS_INPUT && strict) return status_set(STATUS_FILE, "%s", status_message());
      if (status == STATUS_INPUT) {
        state[task.index] = RUN_NOT_RUN;
      } else {
        TRY(status);
        for (int b = 0; b < runs; b++)
          into[b] = study_result_values(&result, study->target_curve, b)[result.points - 1];
      }
    }
    moments[p] = (Moments){0};
    for (int b = 0; b < runs; b++) {
      const double value = into[b] - (study->target_paired && p > 0 ? base[b] : 0);
      if (!isnan(value)) moments[p] = moments_join(moments[p], (Moments){.n = 1, .mean = value});
    }
  }
  return STATUS_OK;
}

static bool adaptive_wave_is_finished(const Study *study, const signed char *state, int setting, int first,
                                      int end) {
  for (int p = 0; p < study->file->policy_count; p++)
    for (int k = first; k < end; k++)
      if (state[study_task_index(study, setting, p, k)] == RUN_NOT_RUN) return false;
  return true;
}

/* Adds the wave's moments[blocks, policies] to those of the setting, in run order, then decides on the next
 * wave. A policy with fewer than two successful runs has no standard error, and more runs would not give it
 * one, so it is ignored. */
static void adaptive_decide_wave(Adaptive *adaptive, int setting, const Moments *wave) {
  const Study *study = adaptive->study;
  int policies = study->file->policy_count;
  AdaptiveSetting *at = &adaptive->settings[setting];
  Moments *moments = adaptive->moments + (size_t)setting * (size_t)policies;
  for (; at->seen < at->wanted; at->seen++)
    for (int p = 0; p < policies; p++) moments[p] = moments_join(moments[p], *wave++);
  at->se = NAN;
  for (int p = study->target_paired ? 1 : 0; p < policies; p++) {
    double se = moments_se(moments[p]);
    if (isnan(se)) se = INFINITY; /* not all values are finite */
    if (moments[p].n > 1 && (isnan(at->se) || se > at->se)) at->se = se;
  }
  at->wanted = study_runs_next_wave(&study->runs, at->seen, at->se);
  at->ended = at->wanted == at->seen;
}

/* Reports that the setting ended because of failures, short of its target. */
static void adaptive_report_no_error(const Adaptive *adaptive, int setting) {
  const Study *study = adaptive->study;
  const AdaptiveSetting *at = &adaptive->settings[setting];
  char target[64];
  study_target(study, sizeof target, target);
  fprintf(stderr,
          "thompson: setting %s stops after %lld runs without reaching its target: no policy has a standard "
          "error of %s, which needs two successful runs%s%s\n",
          study->file->setting_labels[setting], (long long)study_runs_in_blocks(&study->runs, at->seen),
          target, study->target_paired ? " of both the policy and the first one, " : "",
          study->target_paired ? study->file->policies[0].label : "");
}

/* Polls every setting once; *polled counts the settings whose wave had finished. The new blocks of such a
 * setting are read, if `together` a share on each rank, and if they are still finished then, this rank or
 * rank 0 decides. */
static Status adaptive_poll_settings(signed char *state, Adaptive *adaptive, bool together, int *polled) {
  const Study *study = adaptive->study;
  *polled = 0;
  for (int s = 0; s < study->file->setting_count; s++) {
    const AdaptiveSetting *at = &adaptive->settings[s];
    if (at->ended || !adaptive_wave_is_finished(study, state, s, at->seen, at->wanted)) continue;
    SCRATCH_ARENA(scratch);
    const int policies = study->file->policy_count, moments = (at->wanted - at->seen) * policies;
    Moments *wave;
    Status status = arena_new(&scratch, (void **)&wave, (size_t)moments, sizeof *wave);
    for (int k = at->seen; k < at->wanted && status == STATUS_OK; k++)
      if (!together || (k + s) % parallel_size() == parallel_rank())
        status = adaptive_read_block(adaptive, state, s, k, together, wave + (k - at->seen) * policies);
    TRY(together ? parallel_agree(status) : status);
    if (together) parallel_collect(wave, (size_t)moments * sizeof *wave);
    ++*polled;
    if ((together && parallel_rank() > 0) ||
        !adaptive_wave_is_finished(study, state, s, at->seen, at->wanted))
      continue;
    adaptive_decide_wave(adaptive, s, wave);
    if (together && isnan(at->se)) adaptive_report_no_error(adaptive, s);
  }
  if (together)
    parallel_broadcast(adaptive->settings, (size_t)study->file->setting_count * sizeof *adaptive->settings);
  return STATUS_OK;
}

Status adaptive_look(signed char *state, Adaptive *adaptive, bool *open) {
  int polled;
  *open = false;
  TRY(adaptive_poll_settings(state, adaptive, true, &polled));
  for (int s = 0; s < adaptive->study->file->setting_count; s++) *open |= !adaptive->settings[s].ended;
  return STATUS_OK;
}

Status adaptive_replay(const signed char *state, Adaptive *adaptive) {
  SCRATCH_ARENA(scratch);
  signed char *own;
  int polled = 1;
  ALLOCATE(&scratch, own, adaptive->study->task_count);
  memcpy(own, state, (size_t)adaptive->study->task_count);
  Status status = STATUS_OK;
  while (polled > 0 && status == STATUS_OK) status = adaptive_poll_settings(own, adaptive, false, &polled);
  return status;
}

Status adaptive_present(Adaptive *adaptive, int setting, Moments *moments) {
  SCRATCH_ARENA(scratch);
  const Study *study = adaptive->study;
  const int policies = study->file->policy_count;
  Moments *block;
  ALLOCATE(&scratch, block, policies);
  memset(moments, 0, (size_t)policies * sizeof *moments);
  for (int k = 0; k < study->runs.blocks; k++) {
    TRY(adaptive_read_block(adaptive, adaptive->finished->state, setting, k, false, block));
    for (int p = 0; p < policies; p++) moments[p] = moments_join(moments[p], block[p]);
  }
  return STATUS_OK;
}

Status adaptive_count_blocks(Finished *finished, int *blocks, int64_t *runs) {
  SCRATCH_ARENA(scratch);
  const Study *study = finished->study;
  Adaptive adaptive;
  TRY(adaptive_create(&scratch, finished, &adaptive));
  TRY(adaptive_replay(finished->state, &adaptive));
  *runs = 0;
  for (int s = 0; s < study->file->setting_count; s++) {
    blocks[s] = adaptive.settings[s].wanted;
    if (!adaptive.settings[s].ended)
      for (int p = 0; p < study->file->policy_count; p++)
        for (int k = blocks[s]; k < study->runs.blocks; k++)
          if (finished->state[study_task_index(study, s, p, k)] != RUN_NOT_RUN) blocks[s] = k + 1;
    const int64_t here = study_runs_in_blocks(&study->runs, blocks[s]);
    if (here > *runs) *runs = here;
  }
  return STATUS_OK;
}
