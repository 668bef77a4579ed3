#include "study/study_names.h"

#include "io/digest.h"
#include "study/keys.h"

#include <string.h>

/* A change of the program that changes numbers of finished tasks raises this. */
enum { NUMBERS = 1 };

/* Returns whether the numbers of a task may depend on a key of its setting as it is written: not if something
 * else that is hashed says the same. What a policy believes is hashed by study_belief_print. */
static bool study_name_has_key(const Study *study, const char *key) {
  static const char *const others[] = {"name",
                                       "title",
                                       "figure",
                                       "runs",
                                       "block",
                                       "design",
                                       "rounds_kept",
                                       "prior.replicates",
                                       "ranks_per_setting"};
  static const char *const sections[] = {"runs.", "design."};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(key, others[i]) == 0) return false;
  for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
    if (strncmp(key, sections[i], strlen(sections[i])) == 0) return false;
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

/* A text that is printed to memory. */
typedef struct {
  FILE *stream;
  char *bytes;
  size_t size;
} NameText;

static Status study_name_begin(NameText *text) {
  text->stream = open_memstream(&text->bytes, &text->size);
  return text->stream ? STATUS_OK : status_set(STATUS_INTERNAL, "out of memory");
}

/* Ends the text, whose bytes are then complete. */
static Status study_name_end(NameText *text) {
  const int failed = fclose(text->stream);
  text->stream = NULL;
  return failed ? status_set(STATUS_INTERNAL, "out of memory") : STATUS_OK;
}

static void study_name_free(NameText *text) {
  if (text->stream) fclose(text->stream);
  free(text->bytes);
}

/* Names the tasks of a cell, which depend on what `cell` says and on what each replicate believes. */
static Status study_name_cell(Study *study, int s, int p, const Problem *problem, const char *cell) {
  SCRATCH_ARENA(scratch);
  const ConfigPolicy *policy = &study->file->policies[p];
  char(*replicates)[DIGEST_SIZE];
  ALLOCATE(&scratch, replicates, study->runs.replicates);
  for (int r = 0; r < study->runs.replicates; r++) {
    SCOPED(NameText, text, study_name_free);
    Belief belief;
    TRY(study_belief_create(study->file->settings[s], policy, problem, (uint32_t)r, &belief));
    TRY(study_name_begin(&text));
    fputs(cell, text.stream);
    TRY(study_belief_print(&belief, policy_named(policy->name).sampler, text.stream));
    fprintf(text.stream, "replicate %d\n", r);
    TRY(study_name_end(&text));
    TRY(digest_hex(text.bytes, text.size, replicates[r]));
  }
  for (int k = 0; k < study->runs.blocks; k++) {
    const int index = study_task_index(study, s, p, k);
    const Task task = study_task(study, index);
    char text[128], digest[DIGEST_SIZE];
    const int length =
        snprintf(text, sizeof text, "%s runs %u %d", replicates[task.replicate], task.first_run, task.runs);
    TRY(digest_hex(text, (size_t)length, digest));
    memcpy(study->names[index].digits, digest, sizeof study->names[index].digits);
  }
  return STATUS_OK;
}

/* Prints what all tasks of a setting depend on: its points and keys. */
static Status study_name_print_setting(const Study *study, int s, NameText *text) {
  const Config *setting = study->file->settings[s];
  TRY(study_name_begin(text));
  for (int i = 0; i < study->ops->points(setting); i++)
    fprintf(text->stream, "%.17g ", study_axis_value(study, s, i));
  fputc('\n', text->stream);
  TRY(study_name_print_keys(study, setting, study_keys, text->stream));
  return study_name_end(text);
}

Status study_name_setting(Study *study, int s, const Problem *problem) {
  SCOPED(NameText, setting, study_name_free);
  TRY(study_name_print_setting(study, s, &setting));
  for (int p = 0; p < study->file->policy_count; p++) {
    SCOPED(NameText, cell, study_name_free);
    const ConfigPolicy *policy = &study->file->policies[p];
    TRY(study_name_begin(&cell));
    fprintf(cell.stream, "numbers %d\npolicy %s\n%s", NUMBERS, policy->name, setting.bytes);
    TRY(study_name_print_keys(study, policy->options, config_table(policy->options), cell.stream));
    TRY(study_name_end(&cell));
    TRY(study_name_cell(study, s, p, problem, cell.bytes));
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

void study_sort_names(Study *study) {
  for (int i = 0; i < study->task_count; i++) study->by_name[i] = i;
  qsort_r(study->by_name, (size_t)study->task_count, sizeof *study->by_name, study_by_name, study);
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
    if (study_shard(study, study->by_name[first + i], shards) == shard) return true;
  return false;
}
