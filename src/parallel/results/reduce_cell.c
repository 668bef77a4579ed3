#include "parallel/results/reduce_cell.h"

#include "core/quantile.h"
#include "parallel/statistics.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

Status reduce_cell_create(Arena *memory, const Study *study, int64_t runs, Cell *out) {
  *out = (Cell){.runs = runs};
  ALLOCATE(memory, out->curves, (size_t)study->along * (size_t)runs * (size_t)study->places);
  ALLOCATE(memory, out->status, runs);
  return columns_create(memory, (size_t)runs, &out->columns);
}

static void reduce_cell_copy_task_result(const Study *study, const Task *task, const TaskResult *result,
                                         Cell *cell) {
  const size_t places = (size_t)study->places, runs = (size_t)cell->runs, first = task->first_run;
  for (int i = 0, count; i < result->points; i += count) { /* adjacent points that stay adjacent */
    const int k = study_place(study, task->setting, i);
    count = 1;
    while (i + count < result->points && study_place(study, task->setting, i + count) == k + count) count++;
    for (int c = 0; c < study->along; c++)
      for (int b = 0; b < task->runs; b++)
        memcpy(cell->curves + ((size_t)c * runs + first + (size_t)b) * places + (size_t)k,
               study_result_values(result, c, b) + i, (size_t)count * sizeof *cell->curves);
  }
  columns_copy(&result->columns, (size_t)task->runs, first, &cell->columns);
  memset(cell->status + first, result->status, (size_t)task->runs);
}

Status reduce_cell_sum_fit_seconds(const Study *study, const char *directory, int setting, int policy,
                                   const Problem *problem, double *seconds) {
  const Config *config = study->file->settings[setting];
  double sum = 0;
  int fitted = 0;
  for (int r = 0; r < study->runs.replicates; r++) {
    Belief belief;
    SCOPED(StoreFile *, file, store_close);
    char path[4096];
    double value;
    TRY(study_belief_create(config, &study->file->policies[policy], problem, (uint32_t)r, &belief));
    if (belief.kind != BELIEF_FITTED) continue;
    study_belief_path(&belief, directory, sizeof path, path);
    if (access(path, R_OK) != 0) continue; /* not fitted yet: the study is unfinished */
    if (store_open_own(path, &file) != STATUS_OK) {
      fprintf(stderr, "thompson: %s; the time of its fit is left out\n", status_message());
      continue;
    }
    if (store_get_real_attribute(file, "seconds_fit", &value) == STATUS_OK) sum += value, fitted++;
  }
  *seconds = fitted ? sum : NAN;
  return STATUS_OK;
}

Status reduce_cell_load(Finished *finished, int setting, int policy, int blocks, Cell *cell,
                        ReduceCounts *counts) {
  const Study *study = finished->study;
  const size_t runs = (size_t)cell->runs, size = (size_t)study->along * runs * (size_t)study->places;
  for (size_t i = 0; i < size; i++) cell->curves[i] = NAN;
  memset(cell->status, RUN_NOT_RUN, runs);
  columns_clear(runs, &cell->columns);
  for (int k = 0; k < blocks; k++) {
    const Task task = study_task(study, study_task_index(study, setting, policy, k));
    SCOPED(TaskResult, result, study_result_destroy);
    if (finished->state[task.index] == RUN_NOT_RUN) {
      counts->missing++;
      continue;
    }
    TRY(study_result_create(study, &task, &result));
    const Status status = finished_load(finished, &task, &result);
    if (status == STATUS_INPUT) {
      fprintf(stderr, "%s; its runs count as not run\n", status_message());
      counts->missing++;
      counts->damaged++;
      continue;
    }
    TRY(status);
    reduce_cell_copy_task_result(study, &task, &result, cell);
    counts->failed += result.status == RUN_FAILED;
    counts->ok += result.status != RUN_FAILED;
  }
  return STATUS_OK;
}

void reduce_cell_complete_world(const Study *study, const Cell *cell, Cell *first) {
  const size_t points = (size_t)study->places, size = (size_t)cell->runs * points;
  for (int c = 0; c < study->along; c++) {
    if (!study->curves[c]->of_world) continue;
    for (size_t at = (size_t)c * size; at < (size_t)(c + 1) * size; at += points)
      if (isnan(first->curves[at]))
        memcpy(first->curves + at, cell->curves + at, points * sizeof *cell->curves);
  }
}

/* Summaries of cells. */

double *reduce_cell_summary_part(const Study *study, double *summary, int curve, int part) {
  return summary + ((size_t)curve * SUMMARY_ROWS + (size_t)(part - PART_MEAN)) * (size_t)study->places;
}

/* Computes the mean of values (minus base, when given), its standard error, the number of runs, and the
 * standard error over replicates: out[4, places]. */
static Status reduce_cell_fill_rows(const Study *study, const Cell *cell, int curve, const double *base,
                                    double *out) {
  const int places = study->places;
  const double *values = cell->curves + (size_t)curve * (size_t)cell->runs * (size_t)places;
  statistics_mean(cell->runs, places, values, base, out, out + places, out + 2 * places);
  return statistics_replicate_se(study, cell->runs, values, base, out + 3 * places);
}

Status reduce_cell_summarise(const Study *study, const Cell *cell, const Cell *first, int curves,
                             double *out) {
  const size_t size = (size_t)cell->runs * (size_t)study->places;
  for (int c = 0; c < curves; c++) {
    const StudyCurve *curve = study->curves[c];
    TRY(reduce_cell_fill_rows(study, curve->of_world ? first : cell, c, NULL,
                              reduce_cell_summary_part(study, out, c, PART_MEAN)));
    if (curve->tails)
      TRY(statistics_quantiles(cell->runs, study->places, cell->curves + (size_t)c * size,
                               reduce_cell_summary_part(study, out, c, PART_QUANTILES)));
    if (!curve->shared)
      TRY(reduce_cell_fill_rows(study, cell, c, first->curves + (size_t)c * size,
                                reduce_cell_summary_part(study, out, c, PART_DIFF_MEAN)));
  }
  return STATUS_OK;
}

/* Returns why an estimate whose means over runs are mean[ESTIMATES_POINTS] is not to be trusted. */
static Doubt reduce_cell_doubt(const double *mean) {
  if (mean[ESTIMATES_ARM_0_ABSENT] > 0) return DOUBT_ARM_0_ABSENT;
  if (mean[ESTIMATES_ARM_WEIGHT] > 1) return DOUBT_ARM_WEIGHT_HIGH;
  if (mean[ESTIMATES_WEIGHT] > mean[ESTIMATES_WEIGHT_HIGH]) return DOUBT_WEIGHT_HIGH;
  if (mean[ESTIMATES_WEIGHT] < mean[ESTIMATES_WEIGHT_LOW]) return DOUBT_WEIGHT_LOW;
  return mean[ESTIMATES_SIZE] < ESTIMATES_FEW_EVENTS ? DOUBT_FEW_EVENTS : DOUBT_NONE;
}

/* Summarises a curve of a study of estimates, whose means over runs are mean[ESTIMATES_POINTS]:
 * out[ESTIMATES_COUNT], NAN if there are none. The interval is a percentile interval, widened by the other
 * one if that rests on few rare events or has no width; the bootstrap samples in `mean` are sorted in place.
 */
static void reduce_cell_summarise_estimate(double *mean, double *out) {
  double *sample = mean + ESTIMATES_FIRST, centre = 0, square = 0;
  int n = 0;
  for (int s = 0; s < ESTIMATES_RESAMPLES; s++)
    if (!isnan(sample[s])) {
      centre += sample[s];
      sample[n++] = sample[s];
    }
  centre /= n > 0 ? n : 1;
  for (int s = 0; s < n; s++) square += (sample[s] - centre) * (sample[s] - centre);
  quantile_sort(n, sample);
  out[ESTIMATES_of_value] = mean[ESTIMATES_VALUE];
  out[ESTIMATES_of_value_se] = n > 1 ? sqrt(square / (n - 1)) : NAN;
  out[ESTIMATES_of_value_low] = n > 1 ? quantile_of_sorted(n, sample, 0.025) : NAN;
  out[ESTIMATES_of_value_high] = n > 1 ? quantile_of_sorted(n, sample, 0.975) : NAN;
  if (mean[ESTIMATES_RARE] < ESTIMATES_FEW_RARE ||
      !(out[ESTIMATES_of_value_low] < out[ESTIMATES_of_value_high])) {
    out[ESTIMATES_of_value_low] = fmin(out[ESTIMATES_of_value_low], mean[ESTIMATES_LOW]);
    out[ESTIMATES_of_value_high] = fmax(out[ESTIMATES_of_value_high], mean[ESTIMATES_HIGH]);
  }
  out[ESTIMATES_of_effective_sample_size] = mean[ESTIMATES_SIZE];
  out[ESTIMATES_of_mean_weight] = mean[ESTIMATES_WEIGHT];
  out[ESTIMATES_of_mean_weight_se] = mean[ESTIMATES_WEIGHT_SE];
  out[ESTIMATES_of_doubtful_arm] = mean[ESTIMATES_ARM];
  out[ESTIMATES_of_doubtful_arm_weight] = mean[ESTIMATES_ARM_WEIGHT];
  out[ESTIMATES_of_logged_value] = mean[ESTIMATES_LOGGED];
  out[ESTIMATES_of_logged_value_se] = mean[ESTIMATES_LOGGED_SE];
  out[ESTIMATES_of_logged_value_low] = mean[ESTIMATES_LOGGED_LOW];
  out[ESTIMATES_of_logged_value_high] = mean[ESTIMATES_LOGGED_HIGH];
}

void reduce_cell_estimate(const Cell *cell, int curve, CellEstimate *out) {
  double mean[ESTIMATES_POINTS], se[ESTIMATES_POINTS], n[ESTIMATES_POINTS];
  statistics_mean(cell->runs, ESTIMATES_POINTS,
                  cell->curves + (size_t)curve * (size_t)cell->runs * ESTIMATES_POINTS, NULL, mean, se, n);
  out->doubt = reduce_cell_doubt(mean);
  reduce_cell_summarise_estimate(mean, out->value);
}
