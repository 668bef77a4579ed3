/* The settings of a study whose matrices are spread over ranks. A part, which is a block of such a setting
 * with all its policies, is run by a group of ranks, since the matrices of a run serve all policies. Groups
 * work side by side: each takes the largest part that is left. The first rank of a group keeps the results.
 * Groups are formed from the last ranks on, so that rank 0, which has the shared counters, is the last to be
 * away. */
#include "core/clock.h"
#include "parallel/grid.h"
#include "parallel/group.h"
#include "parallel/tasks/tasks_internal.h"

#include <math.h>
#include <sys/resource.h>

static const double MEMORY_SHARE = 0.8; /* of a rank's memory that matrices may take */

/* How the ranks are grouped. */
typedef struct {
  int groups, ranks; /* ... and how many ranks are in one of them */
} Grouping;

/* A group, as one of its ranks sees it. */
typedef struct {
  TasksRunner *runner;
  Dense dense;
  int reported; /* the setting that was last reported */
} Group;

/* Lists the tasks of a part that are to be run; `tasks` may be NULL, if only their number is wanted. */
static int tasks_spread_list_part(const TasksRunner *runner, SpreadPart part, Task *tasks) {
  const Study *study = runner->study;
  int count = 0;
  for (int p = 0; p < study->file->policy_count; p++) {
    const int index = study_task_index(study, part.setting, p, part.block);
    if (!tasks_has_to_run(runner, index)) continue;
    if (tasks) tasks[count] = study_task(study, index);
    count++;
  }
  return count;
}

static int tasks_spread_largest_first(const void *a, const void *b, void *context) {
  const Study *study = context;
  const SpreadPart *first = a, *second = b;
  const double one = study->spread_bytes[first->setting] * study->blocks[first->block].runs,
               other = study->spread_bytes[second->setting] * study->blocks[second->block].runs;
  if (one != other) return one < other ? 1 : -1;
  return first->setting != second->setting ? first->setting - second->setting : first->block - second->block;
}

Status tasks_spread_list(Arena *memory, TasksRunner *runner) {
  const Study *study = runner->study;
  const StudyFile *file = study->file;
  int settings = 0;
  for (int s = 0; s < file->setting_count; s++) settings += study->spread_bytes[s] > 0;
  ALLOCATE(memory, runner->part, (size_t)settings * (size_t)study->runs.blocks);
  ALLOCATE(memory, runner->together, file->policy_count);
  ALLOCATE(memory, runner->results, file->policy_count);
  for (int s = 0; s < file->setting_count; s++) {
    if (study->spread_bytes[s] == 0) continue;
    for (int k = 0; k < study->runs.blocks; k++) {
      const SpreadPart part = {.setting = s, .block = k};
      const int count = tasks_spread_list_part(runner, part, NULL);
      if (count == 0) continue;
      runner->part[runner->parts++] = part;
      runner->spread_count += count;
    }
  }
  qsort_r(runner->part, (size_t)runner->parts, sizeof *runner->part, tasks_spread_largest_first,
          (void *)study);
  return STATUS_OK;
}

/* Decides how the ranks are grouped. By itself a group has as few ranks as have the memory for the largest
 * setting; but ranks that would have nothing else to do join. */
static Grouping tasks_spread_group_ranks(const TasksRunner *runner) {
  const Study *study = runner->study;
  const Config *first = study->file->settings[0];
  const bool automatic = config_is(first, "ranks_per_setting", "auto");
  const double memory = MEMORY_SHARE * parallel_memory();
  const int all = parallel_size();
  double bytes = 0, least = automatic ? 1 : (double)config_int(first, "ranks_per_setting");
  for (int i = 0; i < runner->parts; i++) bytes = fmax(bytes, study->spread_bytes[runner->part[i].setting]);
  if (automatic && grid_is_available()) least = fmax(1, ceil(bytes / memory));
  const int ranks = (int)fmin(least, all), side_by_side = all / ranks;
  const int groups = runner->parts < side_by_side ? runner->parts : side_by_side;
  return (Grouping){.groups = groups, .ranks = automatic && runner->count == 0 ? all : groups * ranks};
}

/* Polls for a stop between the runs and policies of a block. Collective over the group. */
static bool tasks_spread_goes_on(void *context, double fraction) {
  (void)fraction;
  const Group *group = context;
  double stop = tasks_stop_is_asked(group->runner);
  tasks_show_progress(group->runner);
  group_sum_all(1, &stop);
  return stop == 0;
}

static bool speaks; /* the first rank of the first group does */

static void tasks_spread_report_stage(const char *what, double seconds) {
  if (speaks && seconds >= 1) fprintf(stderr, "  %s: %.1f s\n", what, seconds);
}

/* Says how the ranks are grouped. */
static void tasks_spread_report_groups(const Group *group, Grouping grouping) {
  if (!speaks) return;
  fprintf(stderr, "matrices spread over ranks: parts %d, groups %d, ranks in all groups %d, %s%s\n",
          group->runner->parts, grouping.groups, grouping.ranks, group->dense.ops->name,
          grid_is_available() ? "" : ", since this build has no ScaLAPACK");
}

/* Says which setting the first group works on. */
static void tasks_spread_report_setting(Group *group, int setting) {
  if (!speaks || group->reported == setting) return;
  group->reported = setting;
  fprintf(stderr, "first group: setting %s\n", group->runner->study->file->setting_labels[setting]);
}

/* Reports the peak memory of the first group. Collective over each group. */
static void tasks_spread_report_memory(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const double own = (double)usage.ru_maxrss * 1024; /* VmHWM */
  double all = own;
  group_sum_all(1, &all);
  if (!speaks) return;
  fprintf(stderr, "  peak memory: %.2f GB on its first rank, %.2f GB per rank on average\n", own / 1e9,
          all / 1e9 / group_size());
}

/* Keeps the results of a part, on the first rank of the group. */
static Status tasks_spread_keep(TasksRunner *runner, int count, double seconds) {
  for (int i = 0; i < count; i++)
    TRY(tasks_keep_result(runner, &runner->together[i], &runner->results[i], seconds));
  return tasks_sync_journal(runner);
}

/* Runs the tasks of a part. Collective over the group. */
static Status tasks_spread_run_part(Group *group, SpreadPart part) {
  TasksRunner *runner = group->runner;
  const double start = clock_wall();
  const StudySpread spread = {
      .dense = &group->dense, .tick = {tasks_spread_goes_on, group}, .stage = tasks_spread_report_stage};
  const int count = tasks_spread_list_part(runner, part, runner->together);
  Status status = STATUS_OK;
  tasks_spread_report_setting(group, part.setting);
  for (int i = 0; i < count && status == STATUS_OK; i++)
    status = study_result_create(runner->study, &runner->together[i], &runner->results[i]);
  status = group_agree(status);
  if (status == STATUS_OK)
    status = group_agree(study_run_spread(runner->study, &spread, count, runner->together, runner->results));
  if (status == STATUS_OK && group_rank() == 0)
    status = tasks_spread_keep(runner, count, clock_wall() - start);
  for (int i = 0; i < count; i++) study_result_destroy(&runner->results[i]);
  return group_agree(status);
}

/* Takes the next part for the group; returns -1 if none is left or too many tasks have failed. Collective
 * over the group. */
static int tasks_spread_take(const Group *group) {
  TasksRunner *runner = group->runner;
  int next = -1;
  if (group_rank() == 0) next = queue_take_part(runner->queue);
  if (tasks_too_many_failed(runner)) queue_stop(runner->queue);
  if (tasks_too_many_failed(runner) || next >= runner->parts) next = -1;
  group_broadcast(&next, sizeof next);
  return next;
}

/* Runs parts until none is left or the work was stopped. Collective over the group. */
static Status tasks_spread_run_parts(Group *group) {
  TasksRunner *runner = group->runner;
  Status status = STATUS_OK;
  int next;
  while (status == STATUS_OK && tasks_spread_goes_on(group, 0) && (next = tasks_spread_take(group)) >= 0)
    status = tasks_spread_run_part(group, runner->part[next]);
  if (status == STATUS_STOPPED) return STATUS_OK;
  if (status != STATUS_OK)
    queue_stop(runner->queue); /* results cannot be kept, so no rank should begin more */
  return status;
}

/* Works in a group. Collective over its ranks. */
static Status tasks_spread_work(TasksRunner *runner, Grouping grouping, bool first) {
  const bool many = grid_is_available() && group_size() > 1;
  Group group = {.runner = runner, .reported = -1};
  speaks = first && group_rank() == 0 && runner->options->progress != PROGRESS_NONE;
  group.dense = many ? grid_create(GRID_BLOCK) : dense_lapack(group_rank(), group_size(), group_sum_all);
  tasks_spread_report_groups(&group, grouping);
  const Status status = tasks_spread_run_parts(&group);
  tasks_spread_report_memory();
  if (many) grid_destroy(&group.dense);
  return status;
}

Status tasks_spread_run(TasksRunner *runner) {
  if (runner->parts == 0) return STATUS_OK;
  const Grouping grouping = tasks_spread_group_ranks(runner);
  const int place = parallel_rank() - (parallel_size() - grouping.ranks);
  const int number = place < 0 ? -1 : (int)((int64_t)place * grouping.groups / grouping.ranks);
  group_begin(number);
  const Status status = number < 0 ? STATUS_OK : tasks_spread_work(runner, grouping, number == 0);
  group_end();
  return status;
}
