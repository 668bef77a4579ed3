/* What verbs print of tasks: the table that `run`, `reduce` and `status --table` print. */
#include "app/app.h"
#include "sampler/check/draws_check.h"

int app_label_width(const StudyFile *file) {
  size_t widest = strlen("policy");
  for (int p = 0; p < file->policy_count; p++)
    if (strlen(file->policies[p].label) > widest) widest = strlen(file->policies[p].label);
  return (int)widest;
}

void app_print_task(const Study *study, const Task *task, const char *verdict, const char *reason) {
  printf("task %d (setting %s, policy %s, runs %u to %u): %s%s\n", task->index,
         study->file->setting_labels[task->setting], study->file->policies[task->policy].label,
         task->first_run, task->first_run + (unsigned)task->runs - 1, verdict, reason);
}

/* Prints a number in a column, or "-" if it is NaN: all runs failed, or one alone has no standard error. */
static void table_print_number(const char *sign, int width, int digits, double x) {
  if (isnan(x))
    printf("%*s", width, "-");
  else
    printf(*sign ? "%+*.*g" : "%*.*g", width, digits, x);
}

/* Prints a curve in one setting: mean and standard error at all points, if there are few, or at the last one,
 * with the paired difference from the first policy. */
static void table_print_setting(const Study *study, const Leaderboard *board, int setting) {
  const StudyOps *ops = study->ops;
  const StudyFile *file = study->file;
  const bool few = study->points <= BOARD_POINTS;
  const int points = ops->points(file->settings[setting]), shown = few ? points : 1,
            widest = app_label_width(file);
  printf("\n%s: %s ", file->setting_labels[setting], study->curves[0]->long_name);
  if (few) {
    printf("by %s\n  %-*s", ops->axis, widest, "policy");
    for (int i = 0; i < points; i++) printf("  %7g %8s", study_axis_value(study, setting, i), "se");
  } else {
    printf("at %s %g\n  %-*s %10s %8s   %12s %8s", ops->axis, study_axis_value(study, setting, points - 1),
           widest, "policy", "mean", "se", "difference", "se");
  }
  printf(" %6s\n", "runs");
  for (int p = 0; p < file->policy_count; p++) {
    const BoardPoint *point = leaderboard_points(board, study, setting, p);
    printf("  %-*s", widest, file->policies[p].label);
    for (int i = 0; i < shown; i++) {
      table_print_number("", few ? 9 : 11, few ? 3 : 4, point[i].mean);
      table_print_number("", 9, 2, point[i].se);
    }
    if (!few && p == 0) printf("%24s", "");
    if (!few && p > 0) {
      table_print_number("+", 15, 4, point->difference);
      table_print_number("", 9, 2, point->difference_se);
    }
    printf(" %6.0f\n", point->runs);
  }
}

/* Returns a policy's line of the leaderboard by the number of its cell. */
static const char *table_cell_policy(const Study *study, int cell) {
  return study->file->policies[cell % study->file->policy_count].label;
}

static const char *table_cell_setting(const Study *study, int cell) {
  return study->file->setting_labels[cell / study->file->policy_count];
}

/* Prints in which settings policies had fallbacks: how many, and in how many runs. */
static void table_print_fallbacks(const Study *study, const Leaderboard *board) {
  bool first = true;
  for (int c = 0; c < study->file->setting_count * study->file->policy_count; c++) {
    const BoardCell *cell = &board->cells[c];
    if (cell->fallbacks == 0) continue;
    if (first)
      printf("\nnumerical fallbacks: a simpler method was used where a number went wrong, or a learned prior "
             "was asked for more than it was trained on (docs/guide.md#numerical-fallbacks)\n");
    first = false;
    printf("  %s, %s: %lld in %lld of %lld runs (%.2g%%)\n", table_cell_setting(study, c),
           table_cell_policy(study, c), (long long)cell->fallbacks, (long long)cell->runs_with_fallbacks,
           (long long)cell->runs, 100.0 * (double)cell->runs_with_fallbacks / (double)cell->runs);
  }
}

/* Returns whether a mean over runs is outside [least, most] by more than DRAWS_CHECK_ERRORS standard errors.
 */
static bool table_mean_is_outside(Moments moments, double least, double most) {
  const double error = DRAWS_CHECK_ERRORS * moments_se(moments);
  return moments.mean - error > most || moments.mean + error < least;
}

/* Returns whether the draws of a policy in a cell are not where the posterior is. */
static bool table_draws_are_off(const Study *study, int c, const BoardCell *cell) {
  enum { FEWEST = 8 /* runs needed for a standard error */ };
  const ConfigPolicy *policy = &study->file->policies[c % study->file->policy_count];
  const SamplerOps *sampler = policy_named(policy->name).sampler;
  if (!sampler || cell->spread.moments.n < FEWEST) return false;
  const double narrow = (sampler->narrow > 0 ? sampler->narrow : 1) / DRAWS_CHECK_FACTOR,
               wide = (sampler->wide > 0 ? sampler->wide : 1) * DRAWS_CHECK_FACTOR;
  return cell->offset.far > 0 || cell->spread.far > 0 ||
         table_mean_is_outside(cell->offset.moments, -DRAWS_CHECK_OFFSET, DRAWS_CHECK_OFFSET) ||
         table_mean_is_outside(cell->spread.moments, narrow * narrow, wide * wide);
}

/* Prints in which settings the draws of policies are not where the posterior is, judged by the offset and
 * spread of every run (sampler/check/draws_check.h). */
static void table_print_draws(const Study *study, const Leaderboard *board) {
  bool first = true;
  for (int c = 0; c < study->file->setting_count * study->file->policy_count; c++) {
    const BoardCell *cell = &board->cells[c];
    const Moments offset = cell->offset.moments;
    const int far = cell->spread.far > cell->offset.far ? cell->spread.far : cell->offset.far;
    if (!table_draws_are_off(study, c, cell)) continue;
    if (first)
      printf("\ndraws that are not where the posterior is, averaged over runs: their offset in the direction "
             "from the prior's mean to the posterior's, and their distance from the latter "
             "(docs/guide.md#draws-that-are-not-from-the-posterior)\n");
    first = false;
    printf("  %s, %s: %.2g +- %.1g standard deviations %s, spread %.3g times the posterior's",
           table_cell_setting(study, c), table_cell_policy(study, c), fabs(offset.mean), moments_se(offset),
           offset.mean < 0 ? "short of it" : "beyond it", sqrt(cell->spread.moments.mean));
    if (far > 0)
      printf("; more than %d standard deviations away in %d of %lld runs", DRAWS_CHECK_BEYOND, far,
             (long long)cell->runs);
    printf("\n");
  }
}

/* Prints why an estimate is not to be trusted. */
static void table_print_doubt(const CellEstimate *estimate) {
  const double *value = estimate->value;
  const double weight = value[ESTIMATES_of_mean_weight], arm = value[ESTIMATES_of_doubtful_arm],
               arm_weight = value[ESTIMATES_of_doubtful_arm_weight];
  switch (estimate->doubt) {
  case DOUBT_FEW_EVENTS:
    printf("fewer than %d events: the log shows too little of what the policy does\n", ESTIMATES_FEW_EVENTS);
    return;
  case DOUBT_ARM_0_ABSENT:
    printf("arm 0 is never played; arms are counted from 0, or give their number as problem.arms\n");
    return;
  case DOUBT_ARM_WEIGHT_HIGH:
    printf(
        "the propensities of arm %.0f are too small: 1 / propensity of its events, over all events, has the "
        "mean %.4g, and at most 1 is possible\n",
        arm, arm_weight);
    return;
  default:
    printf("the mean weight is %.4g, and not 1 +- %.2g: propensities are too %s", weight,
           value[ESTIMATES_of_mean_weight_se], weight > 1 ? "small" : "large");
    if (weight < 1) printf(", or the log lacks arms that the policy takes");
    if (weight < 1 && arm_weight == 0)
      printf(": arm %.0f is never played", arm);
    else if (weight < 1 && arm_weight > 0)
      printf(": for arm %.0f the mean of 1 / propensity is %.4g", arm, arm_weight);
    printf("\n");
  }
}

/* Prints a value, its standard error, and both ends of its interval: value[4]. */
static void table_print_value(const double *value) {
  table_print_number("", 11, 4, value[0]);
  table_print_number("", 9, 2, value[1]);
  table_print_number("", 11, 4, value[2]);
  table_print_number("", 11, 4, value[3]);
}

/* Prints the value of the policy that left the log, which all estimates of the setting have if their runs
 * have not failed. */
static void table_print_logged(const CellEstimate *estimate, int rows, int widest) {
  int row = 0;
  while (row + 1 < rows && isnan(estimate[row].value[ESTIMATES_of_logged_value])) row++;
  printf("  %-*s %-9s", widest, "(log)", "mean");
  table_print_value(estimate[row].value + ESTIMATES_of_logged_value);
  printf("\n");
}

/* Prints which arm the log shows in too few events for any policy, marked or not. */
static void table_print_missing_arm(const CellEstimate *estimate) {
  const double arm = estimate->value[ESTIMATES_of_doubtful_arm],
               weight = estimate->value[ESTIMATES_of_doubtful_arm_weight];
  if (weight < 1 && estimate->doubt != DOUBT_ARM_0_ABSENT)
    printf("  log: for arm %.0f the mean of 1 / propensity is %.4g, and not 1: it was not possible in every "
           "event (a log can say so: available), or its propensities are too large, and values of policies "
           "that often take it are wrong\n",
           arm, weight);
}

/* Prints the values of a study of estimates in one setting, and marks the ones that are not to be trusted. */
static void table_print_estimates(const Study *study, const Leaderboard *board, int setting) {
  const StudyFile *file = study->file;
  const CellEstimate *first = leaderboard_estimates(board, study, setting, 0);
  const int widest = app_label_width(file), curves = study->curve_count, rows = file->policy_count * curves;
  bool doubtful = false;
  printf("\n%s: value of a policy, its mean reward per event\n", file->setting_labels[setting]);
  printf("  %-*s %-9s %10s %8s %22s %9s\n", widest, "policy", "estimator", "value", "se", "95% interval",
         "events");
  for (int row = 0; row < rows; row++) {
    const double *value = first[row].value;
    printf("  %-*s %-9s", widest, file->policies[row / curves].label, study->curves[row % curves]->name);
    table_print_value(value + ESTIMATES_of_value);
    table_print_number("", 10, 4, value[ESTIMATES_of_effective_sample_size]);
    printf(first[row].doubt > 0 ? " !\n" : "\n");
    doubtful |= first[row].doubt > 0;
  }
  table_print_logged(first, rows, widest);
  if (doubtful) printf("  !: do not trust the value and its interval\n");
  for (int row = 0; row < rows; row++) {
    const CellEstimate *estimate = first + row;
    const bool same =
        row % curves > 0 && estimate->doubt == estimate[-1].doubt &&
        estimate->value[ESTIMATES_of_mean_weight] == estimate[-1].value[ESTIMATES_of_mean_weight];
    if (estimate->doubt == DOUBT_NONE || same) continue;
    printf("  %s, %s: ", file->policies[row / curves].label, study->curves[row % curves]->name);
    table_print_doubt(estimate);
  }
  table_print_missing_arm(first);
}

/* Says below the settings how their numbers are to be read. */
static void table_print_legend(const Study *study) {
  if (study->ops->estimates) {
    printf("\n(log): the policy that left the log; events: effective sample size; interval: bootstrap over "
           "events, Wilson's too if rewards of a kind are rare\n");
    return;
  }
  if (study->points > BOARD_POINTS)
    printf("\ndifference: paired with the first policy, same theta*, arms and noise");
  printf("\nse: standard error over runs%s\n",
         study->runs.replicates > 1 ? ", or over the means of replicates where that is larger" : "");
}

/* Returns whether a run of some policy has ended in a setting. */
static bool table_setting_has_runs(const Study *study, const Leaderboard *board, int setting) {
  const int policies = study->file->policy_count;
  for (int p = 0; p < policies; p++)
    if (board->cells[setting * policies + p].runs > 0) return true;
  return false;
}

void app_print_table(const Study *study, const Leaderboard *board) {
  int waiting = 0;
  for (int s = 0; s < study->file->setting_count; s++)
    if (!table_setting_has_runs(study, board, s))
      waiting++;
    else if (study->ops->estimates)
      table_print_estimates(study, board, s);
    else
      table_print_setting(study, board, s);
  if (waiting > 0) printf("\n%d of %d settings have no finished run\n", waiting, study->file->setting_count);
  table_print_legend(study);
  table_print_fallbacks(study, board);
  table_print_draws(study, board);
}
