#include "study/study_names.h"

#include "io/digest.h"
#include "study/keys.h"
#include "study/study_problem.h"

#include <string.h>

/* A change of the program that changes numbers of finished tasks raises this. */
enum { NUMBERS = 1 };

/* Returns whether the numbers of a task may depend on a key of its setting as it is written: not if something
 * else that is hashed says the same. What a policy believes is hashed by study_belief_print. */
static bool study_name_has_key(const Study *study, const char *key) {
  static const char *const others[] = {"name",  "title",       "figure",          "runs",
                                       "block", "rounds_kept", "prior.replicates"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(key, others[i]) == 0) return false;
  if (strncmp(key, "runs.", strlen("runs.")) == 0) return false;
  if (!study->ops->believes || strncmp(key, "prior.", strlen("prior.")) != 0) return true;
  return strcmp(key, "prior.test_fraction") == 0; /* which theta* there are */
}

/* Prints the keys of one table with their values, and the digests of files that they name. */
static Status study_name_print_keys(const Study *study, const Config *config, const ConfigKey *keys,
                                    FILE *out) {
  for (const ConfigKey *key = keys; key->name; key++) {
    if (keys == study_keys && !study_name_has_key(study, key->name)) continue;
    if (!config_present(config, key->name)) continue;
    fprintf(out, "%s: ", key->name);
    config_write(config, key->name, out);
    fputc('\n', out);
    const char *end = strstr(key->name, "file");
    const char *path =
        key->type == KEY_TEXT && end && strcmp(end, "file") == 0 ? config_text(config, key->name) : NULL;
    char digest[DIGEST_SIZE];
    if (!path) continue;
    TRY(digest_file(path, digest));
    fprintf(out, "%s\n", digest);
  }
  return STATUS_OK;
}

/* Prints what all tasks of a policy in a setting depend on. */
static Status study_name_print_cell(const Study *study, int s, const ConfigPolicy *policy, FILE *out) {
  const Config *setting = study->file->settings[s];
  fprintf(out, "numbers %d\npolicy %s\n", NUMBERS, policy->name);
  for (int i = 0; i < study->ops->points(setting); i++) fprintf(out, "%.17g ", study_axis_value(study, s, i));
  fputc('\n', out);
  TRY(study_name_print_keys(study, setting, study_keys, out));
  return study_name_print_keys(study, policy->options, config_table(policy->options), out);
}

/* Computes the digest of what a cell and a replicate of its priors depend on. */
static Status study_name_cell(const Study *study, int s, int p, const Problem *problem, uint32_t replicate,
                              char out[DIGEST_SIZE]) {
  const ConfigPolicy *policy = &study->file->policies[p];
  SCOPED(char *, text, memory_free_text);
  size_t size = 0;
  Belief belief;
  TRY(study_belief_create(study->file->settings[s], policy, problem, replicate, &belief));
  FILE *stream = open_memstream(&text, &size);
  if (!stream) return status_set(STATUS_INTERNAL, "out of memory");
  Status status = study_name_print_cell(study, s, policy, stream);
  if (status == STATUS_OK) status = study_belief_print(&belief, policy_named(policy->name).sampler, stream);
  fprintf(stream, "replicate %u\n", replicate);
  if (fclose(stream) != 0) return status_set(STATUS_INTERNAL, "out of memory");
  return status == STATUS_OK ? digest_hex(text, size, out) : status;
}

/* Names the tasks of a cell. */
static Status study_name_blocks(Study *study, int s, int p, const Problem *problem) {
  SCRATCH_ARENA(scratch);
  char(*cells)[DIGEST_SIZE];
  ALLOCATE(&scratch, cells, study->runs.replicates);
  for (int r = 0; r < study->runs.replicates; r++)
    TRY(study_name_cell(study, s, p, problem, (uint32_t)r, cells[r]));
  for (int k = 0; k < study->runs.blocks; k++) {
    const int index = study_task_index(study, s, p, k);
    const Task task = study_task(study, index);
    char text[128], digest[DIGEST_SIZE];
    const int length =
        snprintf(text, sizeof text, "%s runs %u %d", cells[task.replicate], task.first_run, task.runs);
    TRY(digest_hex(text, (size_t)length, digest));
    memcpy(study->names[index].digits, digest, sizeof study->names[index].digits);
  }
  return STATUS_OK;
}

static int study_compare_names(const TaskName *a, const TaskName *b) { return memcmp(a, b, sizeof *a); }

static int study_by_name(const void *a, const void *b, void *context) {
  const Study *study = context;
  const int first = *(const int *)a, second = *(const int *)b;
  const int order = study_compare_names(&study->names[first], &study->names[second]);
  return order != 0 ? order : first - second;
}

Status study_name_tasks(Study *study) {
  ALLOCATE(&study->memory, study->names, study->task_count);
  ALLOCATE(&study->memory, study->by_name, study->task_count);
  for (int s = 0; s < study->file->setting_count; s++) {
    SCOPED(Problem, problem, problem_destroy);
    TRY(study_problem_create(study->file->settings[s], &problem));
    for (int p = 0; p < study->file->policy_count; p++) TRY(study_name_blocks(study, s, p, &problem));
  }
  for (int i = 0; i < study->task_count; i++) study->by_name[i] = i;
  qsort_r(study->by_name, (size_t)study->task_count, sizeof *study->by_name, study_by_name, study);
  return STATUS_OK;
}

int study_find_tasks(const Study *study, const TaskName *name, int *first) {
  int low = 0, high = study->task_count;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (study_compare_names(&study->names[study->by_name[middle]], name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  *first = low;
  while (high < study->task_count && study_compare_names(&study->names[study->by_name[high]], name) == 0)
    high++;
  return high - low;
}

bool study_repeats_task(const Study *study, int index, int shard, int shards) {
  int first;
  if (study->runs.adaptive) return false;
  const int count = study_find_tasks(study, &study->names[index], &first);
  for (int i = 0; i < count && study->by_name[first + i] < index; i++)
    if (study->by_name[first + i] % shards == shard) return true;
  return false;
}
