/* Event logs of a bandit study (the key event_log): the features, arms and rewards that a policy met in a
 * setting, in run order, as DIR/events/SETTING-POLICY.nc. Features are those of the world, which is replayed;
 * arms, rewards and probabilities come from the finished tasks. */
#include "io/provenance.h"
#include "parallel/results/reduce_internal.h"
#include "problem/world.h"
#include "study/study_problem.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* Curves of a task that are kept for the log (study/probe/event.c). */
enum { ARM, REWARD, PROPENSITY, KEPT };

/* A log that is being written. */
typedef struct {
  const Study *study;
  const Problem *problem;
  StoreFile *file;
  size_t event; /* number of the next event */
  size_t entry; /* values in the context or the features of one event */
  size_t room; /* values that `buffer` holds */
  double *buffer; /* contexts or features of consecutive events */
  int *integers; /* [3, rounds] */
} EventWriter;

/* Appends a label to a file name. Characters that a file name should not have become %XX; so does a dash
 * unless `dash`, because a dash ends the name of the setting. */
static void reduce_events_append_label(const char *label, bool dash, size_t size, char *out) {
  for (size_t n = strlen(out); *label && n + 4 < size; label++, n = strlen(out)) {
    const unsigned char letter = (unsigned char)*label;
    const bool plain = isalnum(letter) || strchr("._=+,", letter) || (letter == '-' && dash);
    snprintf(out + n, size - n, plain ? "%c" : "%%%02X", letter);
  }
}

static void reduce_events_file_name(const StudyFile *file, int setting, int policy, size_t size, char *out) {
  out[0] = '\0';
  reduce_events_append_label(file->setting_labels[setting], false, size, out);
  snprintf(out + strlen(out), size - strlen(out), "-");
  reduce_events_append_label(file->policies[policy].label, true, size, out);
  snprintf(out + strlen(out), size - strlen(out), ".nc");
}

enum { NAME_ROOM = 4096, LONGEST = NAME_MAX - 24 /* leaves room for the rest of a temporary name */ };

Status reduce_events_check(const Study *study) {
  char name[NAME_ROOM];
  if (!config_bool(study->file->settings[0], "event_log")) return STATUS_OK;
  for (int s = 0; s < study->file->setting_count; s++)
    for (int p = 0; p < study->file->policy_count; p++) {
      reduce_events_file_name(study->file, s, p, sizeof name, name);
      if (strlen(name) > LONGEST)
        return status_set(STATUS_INPUT,
                          "event_log: '%s' is too long for a file name (%zu bytes, at most %d); give the "
                          "policy a shorter label, or sweep fewer keys",
                          name, strlen(name), LONGEST);
    }
  return STATUS_OK;
}

/* Writes the contexts or features of consecutive runs: all rounds at once if the buffer has room, or else
 * those of a single run in pieces that fit. */
static Status reduce_events_write_world(EventWriter *writer, World *world) {
  const size_t rounds = (size_t)writer->problem->rounds, runs = (size_t)world->runs,
               room = writer->room / writer->entry / runs, span = room < rounds ? room : rounds;
  const size_t features = writer->problem->per_arm ? 0 : (size_t)writer->problem->arms;
  for (size_t k = 0, begin = 0; k < rounds; k++) {
    world_advance(world, (uint32_t)k + 1);
    for (size_t b = 0; b < runs; b++)
      for (size_t i = 0; i < writer->entry; i++)
        writer->buffer[(b * span + k - begin) * writer->entry + i] = world->features[i * runs + b];
    if (k + 1 < rounds && k + 1 - begin < span) continue;
    const size_t start[3] = {writer->event + begin}, many = runs * (k + 1 - begin),
                 d = (size_t)writer->problem->d;
    TRY(store_put_part(writer->file, features ? "features" : "context", start,
                       features ? (size_t[]){many, features, d} : (size_t[]){many, d}, writer->buffer));
    begin = k + 1;
  }
  return STATUS_OK;
}

/* Writes the events of a finished task. */
static Status reduce_events_write_task(EventWriter *writer, Finished *finished, const Task *task) {
  const size_t rounds = (size_t)writer->problem->rounds, fitting = writer->room / writer->entry / rounds;
  const int most = fitting > 1 ? (int)(fitting < INT_MAX ? fitting : INT_MAX) : 1;
  int *arm = writer->integers, *number = arm + rounds, *round = number + rounds;
  SCOPED(TaskResult, result, study_result_destroy);
  TRY(study_result_create(writer->study, task, &result));
  TRY(finished_load(finished, task, &result));
  for (int b = 0; b < task->runs; b++) {
    const size_t start = writer->event + (size_t)b * rounds;
    const double *kept[KEPT];
    for (int i = 0; i < KEPT; i++) kept[i] = study_result_values(&result, writer->study->published + i, b);
    for (size_t k = 0; k < rounds; k++)
      arm[k] = (int)kept[ARM][k], number[k] = (int)task->first_run + b, round[k] = (int)k + 1;
    TRY(store_put_part(writer->file, "arm", &start, &rounds, arm));
    TRY(store_put_part(writer->file, "run", &start, &rounds, number));
    TRY(store_put_part(writer->file, "round", &start, &rounds, round));
    TRY(store_put_part(writer->file, "reward", &start, &rounds, kept[REWARD]));
    TRY(store_put_part(writer->file, "propensity", &start, &rounds, kept[PROPENSITY]));
  }
  for (int first = 0, runs; first < task->runs; first += runs) {
    SCOPED(World, world, world_destroy);
    runs = task->runs - first < most ? task->runs - first : most;
    TRY(world_create(writer->problem, task->replicate, task->first_run + (uint32_t)first, runs, &world));
    TRY(reduce_events_write_world(writer, &world));
    writer->event += (size_t)runs * rounds;
  }
  return STATUS_OK;
}

static Status reduce_events_write_cell(EventWriter *writer, Finished *finished, int s, int p, int blocks,
                                       size_t events) {
  enum { ROOM = 1 << 22 };
  SCRATCH_ARENA(scratch);
  const Study *study = writer->study;
  const Problem *problem = writer->problem;
  const bool context = problem->per_arm;
  StoreFile *file = writer->file;
  int dimension[3], along = 0;
  writer->entry = (size_t)problem->d * (size_t)problem_vectors(problem);
  writer->room = writer->entry > ROOM ? writer->entry : ROOM;
  ALLOCATE(&scratch, writer->buffer, writer->room);
  ALLOCATE(&scratch, writer->integers, 3 * problem->rounds);
  TRY(store_dimension(file, "event", events, &dimension[along++]));
  if (!context) TRY(store_dimension(file, "arm", (size_t)problem->arms, &dimension[along++]));
  TRY(store_dimension(file, "dim", (size_t)problem->d, &dimension[along++]));
  TRY(provenance_write(file, "events of a bandit study", NULL));
  TRY(store_text_attribute(file, NULL, "config_sha256", study->file->sha256));
  TRY(store_text_attribute(file, NULL, "setting", study->file->setting_labels[s]));
  TRY(store_text_attribute(file, NULL, "policy", study->file->policies[p].label));
  TRY(store_text_attribute(file, NULL, "likelihood", problem->likelihood.ops->name));
  if (likelihood_has_noise(&problem->likelihood))
    TRY(store_real_attribute(file, "noise", problem->likelihood.noise));
  TRY(store_variable(file, context ? "context" : "features", STORE_DOUBLE, along, dimension,
                     context ? "context, the same for all arms" : "features of each arm", "1"));
  TRY(store_variable(file, "arm", STORE_INT, 1, dimension, "arm that was played, counted from 0", "1"));
  TRY(store_variable(file, "reward", STORE_DOUBLE, 1, dimension, "reward of that arm", "1"));
  TRY(store_variable(file, "propensity", STORE_DOUBLE, 1, dimension,
                     "probability with which the arm was picked", "1"));
  TRY(store_variable(file, "run", STORE_INT, 1, dimension, "number of the run, from 0", "1"));
  TRY(store_variable(file, "round", STORE_INT, 1, dimension, "round of the run, from 1", "1"));
  for (int k = 0; k < blocks; k++) {
    const Task task = study_task(study, study_task_index(study, s, p, k));
    if (finished->state[task.index] == RUN_OK) TRY(reduce_events_write_task(writer, finished, &task));
  }
  return STATUS_OK;
}

static Status reduce_events_write_log(Finished *finished, int s, int p, int blocks) {
  const Study *study = finished->study;
  SCOPED(Problem, problem, problem_destroy);
  EventWriter writer = {.study = study, .problem = &problem};
  char name[NAME_ROOM], part[NAME_ROOM + 16], path[2 * NAME_ROOM];
  size_t runs = 0; /* that succeeded */
  for (int k = 0; k < blocks; k++) {
    const Task task = study_task(study, study_task_index(study, s, p, k));
    if (finished->state[task.index] == RUN_OK) runs += (size_t)task.runs;
  }
  if (runs == 0) return STATUS_OK;
  reduce_events_file_name(study->file, s, p, sizeof name, name);
  snprintf(part, sizeof part, "events/%s", name);
  TRY(folder_make_room(finished->directory, part, study->file->sha256));
  snprintf(path, sizeof path, "%s/%s", finished->directory, part);
  TRY(study_problem_create(study->file->settings[s], &problem));
  TRY(store_create(path, &writer.file));
  return store_finish(
      writer.file, reduce_events_write_cell(&writer, finished, s, p, blocks, runs * (size_t)problem.rounds));
}

Status reduce_events_write(Finished *finished, const int *blocks) {
  const StudyFile *file = finished->study->file;
  char path[NAME_ROOM];
  if (!config_bool(file->settings[0], "event_log") || !config_is(file->settings[0], "study", "bandit"))
    return STATUS_OK;
  snprintf(path, sizeof path, "%s/events", finished->directory);
  if (mkdir(path, 0777) != 0 && errno != EEXIST)
    return status_set(STATUS_FILE, "%s: cannot make the folder: %s", path, strerror(errno));
  for (int s = 0; s < file->setting_count; s++)
    for (int p = 0; p < file->policy_count; p++) TRY(reduce_events_write_log(finished, s, p, blocks[s]));
  return STATUS_OK;
}
