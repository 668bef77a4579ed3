#include "study/study_names.h"

#include "io/digest.h"
#include "study/keys.h"
#include "study/study_unused.h"

#include <string.h>

/* A change of the program that changes numbers of finished tasks raises this. */
enum { NUMBERS = 2 };

/* Returns whether the numbers of a task may depend on a key of its setting as it is written: not if it has no
 * effect, or something else that is hashed says the same. What a policy believes is hashed by
 * study_belief_print. */
static bool study_name_has_key(const Study *study, const Config *setting, const Problem *problem,
                               const char *key) {
  char why[128];
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
  if (strcmp(key, "prior.test_fraction") == 0) return problem->theta.set.n > 0; /* which theta* there are */
  if (study->ops->believes && strncmp(key, "prior.", strlen("prior.")) == 0) return false;
  return !study_key_is_unused(study, setting, key, sizeof why, why);
}

/* Prints a key with its value, and the digest of a file that it names. */
static Status study_name_print_key(const Config *config, const ConfigKey *key, FILE *out) {
  if (!config_present(config, key->name)) return STATUS_OK;
  fprintf(out, "%s: ", key->name);
  config_write(config, key->name, out);
  fputc('\n', out);
  const char *end = strstr(key->name, "file");
  const char *path =
      key->type == KEY_TEXT && end && strcmp(end, "file") == 0 ? config_text(config, key->name) : NULL;
  char digest[DIGEST_SIZE];
  if (!path) return STATUS_OK;
  TRY(digest_file(path, digest));
  fprintf(out, "%s\n", digest);
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

/* Returns the place of a name in study->names. */
static int study_name_place(const Study *study, int setting, int policy, int replicate) {
  return (setting * study->file->policy_count + policy) * study->runs.replicates + replicate;
}

/* Names the tasks of a cell, which depend on what `cell` says and on what each replicate believes. */
static Status study_name_cell(Study *study, int s, int p, const Problem *problem, const char *cell) {
  const ConfigPolicy *policy = &study->file->policies[p];
  for (int r = 0; r < study->runs.replicates; r++) {
    SCOPED(NameText, text, study_name_free);
    CellName *name = &study->names[study_name_place(study, s, p, r)];
    char digest[DIGEST_SIZE];
    Belief belief;
    TRY(study_belief_create(study->file->settings[s], policy, problem, (uint32_t)r, &belief));
    TRY(study_name_begin(&text));
    fputs(cell, text.stream);
    TRY(study_belief_print(&belief, policy_named(policy->name).sampler, text.stream));
    fprintf(text.stream, "replicate %d\n", r);
    TRY(study_name_end(&text));
    TRY(digest_hex(text.bytes, text.size, digest));
    memcpy(name->digits, digest, sizeof name->digits);
  }
  return STATUS_OK;
}

/* Prints what all tasks of a setting depend on: its points and keys. */
static Status study_name_print_setting(const Study *study, int s, const Problem *problem, NameText *text) {
  const Config *setting = study->file->settings[s];
  TRY(study_name_begin(text));
  for (int i = 0; i < study->ops->points(setting); i++)
    fprintf(text->stream, "%.17g ", study_axis_value(study, s, i));
  fputc('\n', text->stream);
  for (const ConfigKey *key = study_keys; key->name; key++)
    if (study_name_has_key(study, setting, problem, key->name))
      TRY(study_name_print_key(setting, key, text->stream));
  return study_name_end(text);
}

Status study_name_setting(Study *study, int s, const Problem *problem) {
  SCOPED(NameText, setting, study_name_free);
  TRY(study_name_print_setting(study, s, problem, &setting));
  for (int p = 0; p < study->file->policy_count; p++) {
    SCOPED(NameText, cell, study_name_free);
    const ConfigPolicy *policy = &study->file->policies[p];
    TRY(study_name_begin(&cell));
    fprintf(cell.stream, "numbers %d\npolicy %s\n%s", NUMBERS, policy->name, setting.bytes);
    for (const ConfigKey *key = config_table(policy->options); key->name; key++)
      TRY(study_name_print_key(policy->options, key, cell.stream));
    TRY(study_name_end(&cell));
    TRY(study_name_cell(study, s, p, problem, cell.bytes));
  }
  return STATUS_OK;
}

/* Finding. */

static int study_name_count(const Study *study) {
  return study_name_place(study, study->file->setting_count, 0, 0);
}

Status study_names_create(Study *study) {
  ALLOCATE(&study->memory, study->names, study_name_count(study));
  ALLOCATE(&study->memory, study->by_name, study_name_count(study));
  return STATUS_OK;
}

static int study_compare_names(const CellName *a, const CellName *b) { return memcmp(a, b, sizeof *a); }

static int study_by_name(const void *a, const void *b, void *context) {
  const Study *study = context;
  const int first = *(const int *)a, second = *(const int *)b;
  const int order = study_compare_names(&study->names[first], &study->names[second]);
  return order != 0 ? order : first - second;
}

void study_sort_names(Study *study) {
  const int count = study_name_count(study);
  for (int i = 0; i < count; i++) study->by_name[i] = i;
  qsort_r(study->by_name, (size_t)count, sizeof *study->by_name, study_by_name, study);
}

TaskName study_task_name(const Study *study, int index) {
  const Task task = study_task(study, index);
  const int place = study_name_place(study, task.setting, task.policy, (int)task.replicate);
  return (TaskName){.cell = study->names[place], .first_run = task.first_run, .runs = task.runs};
}

/* Returns the block that has exactly these runs; -1 if none has. */
static int study_find_block(const Study *study, uint32_t first_run, int runs) {
  int low = 0, high = study->runs.blocks;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (study->blocks[middle].first_run < first_run)
      low = middle + 1;
    else
      high = middle;
  }
  const RunsBlock *block = &study->blocks[low];
  return low < study->runs.blocks && block->first_run == first_run && block->runs == runs ? low : -1;
}

/* Finds the tasks of a block in the cells with a name, which stands for the replicate of the block, too. */
static TasksAlike study_find_in_block(const Study *study, const CellName *name, int block) {
  const int names = study_name_count(study), replicate = (int)study->blocks[block].replicate;
  int low = 0, high = names;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (study_compare_names(&study->names[study->by_name[middle]], name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  while (high < names && study_compare_names(&study->names[study->by_name[high]], name) == 0 &&
         study->by_name[high] % study->runs.replicates == replicate)
    high++;
  return (TasksAlike){.count = high - low, .first = low, .block = block};
}

TasksAlike study_find_tasks(const Study *study, const TaskName *name) {
  const int block = study_find_block(study, name->first_run, name->runs);
  return block < 0 ? (TasksAlike){0} : study_find_in_block(study, &name->cell, block);
}

int study_task_alike(const Study *study, const TasksAlike *alike, int i) {
  const int cell = study->by_name[alike->first + i] / study->runs.replicates;
  return cell * study->runs.blocks + alike->block;
}

bool study_repeats_task(const Study *study, int index, int shard, int shards) {
  if (study->runs.adaptive) return false;
  const TaskName name = study_task_name(study, index);
  const TasksAlike alike = study_find_in_block(study, &name.cell, index % study->runs.blocks);
  for (int i = 0, task; i < alike.count && (task = study_task_alike(study, &alike, i)) < index; i++)
    if (study_shard(study, task, shards) == shard) return true;
  return false;
}
