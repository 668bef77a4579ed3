#include "study/study.h"

#include "problem/problem_cases.h"
#include "sampler/guard.h"
#include "study/studies.h"
#include "study/study_names.h"
#include "study/study_problem.h"

static const StudyOps *const registry[] = {
#define STUDY_ENTRY(name) &study_##name,
    STUDY_LIST(STUDY_ENTRY)
#undef STUDY_ENTRY
        NULL};

const StudyOps *study_kind(int index) { return registry[index]; }
const StudyOps *study_kind_of(const Config *setting) {
  int i = 0;
  while (!config_is(setting, "study", registry[i]->name)) i++;
  return registry[i];
}
const char *study_kind_name(int index) { return registry[index] ? registry[index]->name : NULL; }

const double study_quantiles[STUDY_QUANTILES] = {0.5, 0.9, 0.95, 0.99, 1};

enum {
  NAME_SIZE = 64,
  MOST_NAMES = 128,
  MOST_NAME = 200 /* bytes of a study's name: a folder's name may have 255, and jobs append to it */
};

/* Writes CURVE, or CURVE_diff. */
static void study_target_text(const StudyCurve *curve, bool paired, size_t size, char *out) {
  snprintf(out, size, "%s%s", curve->name, paired ? "_diff" : "");
}

const char *study_target_name(int index) {
  static char names[MOST_NAMES][NAME_SIZE];
  int count = 0;
  for (int i = 0; registry[i]; i++)
    for (const StudyCurve *curve = registry[i]->curves; curve->name; curve++) {
      if (curve->unpublished || curve->each) continue;
      for (int paired = 0; paired <= !curve->shared; paired++) {
        if (count++ < index) continue;
        ASSERT(index < MOST_NAMES);
        study_target_text(curve, paired, NAME_SIZE, names[index]);
        return names[index];
      }
    }
  return NULL;
}

/* Returns whether a curve is the first of its study with its word; several may have the same. */
static bool study_curve_is_first_of_word(const StudyCurve *curves, int c) {
  for (int i = 0; i < c; i++)
    if (curves[i].metric && strcmp(curves[i].metric, curves[c].metric) == 0) return false;
  return true;
}

/* Returns the first curve that word number `index` asks for, in studies of estimates or in all others; NULL
 * after the last. */
static const StudyCurve *study_curve_of_word(bool estimates, int index) {
  for (int k = 0; registry[k]; k++) {
    const StudyCurve *curves = registry[k]->curves;
    if (registry[k]->estimates != estimates) continue;
    for (int c = 0; curves[c].name; c++)
      if (curves[c].metric && study_curve_is_first_of_word(curves, c) && index-- == 0) return &curves[c];
  }
  return NULL;
}

const char *study_metric_name(int index) {
  const StudyCurve *curve = study_curve_of_word(false, index);
  return curve ? curve->metric : NULL;
}

const char *study_metric_meaning(int index) { return study_curve_of_word(false, index)->long_name; }

const char *study_estimator_name(int index) {
  const StudyCurve *curve = study_curve_of_word(true, index);
  return curve ? curve->metric : NULL;
}

const char *study_estimator_meaning(int index) { return study_curve_of_word(true, index)->long_name; }

void study_target(const Study *study, size_t size, char *out) {
  study_target_text(study->curves[study->target_curve], study->target_paired, size, out);
}

/* Finds the curve that runs.of names; with a fixed number of runs the first one, paired unless shared. */
static Status study_find_target(Study *study) {
  char name[NAME_SIZE], allowed[512] = "";
  if (study->ops->estimates && study->runs.adaptive)
    return status_set(STATUS_INPUT, "key 'runs': study %s needs a fixed number, not runs.target_se",
                      study->ops->name);
  study->target_paired = !study->curves[0]->shared;
  if (!study->runs.adaptive) return STATUS_OK;
  const char *of = config_text(study->file->settings[0], "runs.of");
  for (int c = 0; c < study->published; c++) {
    if (study->curves[c]->each) continue;
    for (int paired = 0; paired <= !study->curves[c]->shared; paired++) {
      study_target_text(study->curves[c], paired, sizeof name, name);
      study->target_curve = c;
      study->target_paired = paired;
      if (strcmp(name, of) == 0) return STATUS_OK;
      snprintf(allowed + strlen(allowed), sizeof allowed - strlen(allowed), "%s%s", *allowed ? " | " : "",
               name);
    }
  }
  return status_set(STATUS_INPUT, "key 'runs.of': this study does not measure '%s'; allowed: %s", of,
                    allowed);
}

/* Checks that a policy fits the setting and, if it samples, its prior; *size is that of a draw. */
static Status study_check_policy(const Study *study, const Config *setting, const ConfigPolicy *policy,
                                 const Problem *problem, double *size) {
  const PolicyMethod method = policy_named(policy->name);
  Belief belief;
  TRY(policy_check(&method, policy->options, problem));
  if (study->ops->check_policy) TRY(study->ops->check_policy(&method, policy->options));
  *size = (double)problem->d * problem->d;
  if (!method.sampler) return STATUS_OK;
  TRY(study_belief_create(setting, policy, problem, 0, &belief));
  if (belief.kind == BELIEF_WEIGHTS && !study->ops->networks)
    return status_set(STATUS_INPUT,
                      "model: network has parameters other than theta*, but study %s compares with theta*",
                      study->ops->name);
  TRY(sampler_check(method.sampler, policy->options, &belief.likelihood));
  if (belief.guard.weight > 0) TRY(guard_check(policy->options, &belief.likelihood, belief.guard.weight));
  *size = study_belief_draw_size(&belief, method.sampler, problem->d, problem->rounds);
  return study_belief_check(&belief, method.sampler, problem);
}

/* Checks that each policy fits the prior and the likelihood in a setting, before anything is run or fitted.
 * Fills in run_size[policies], with the features of all arms next to each draw. */
static Status study_check_policies(const Study *study, int s, const Problem *problem) {
  const Config *setting = study->file->settings[s];
  double *run_size = study->run_size + s * study->file->policy_count;
  if (problem->distributed) {
    study->spread_bytes[s] = study->ops->spread_bytes(setting, problem);
    return study->ops->check_spread(study, setting, problem);
  }
  if (study->ops->check_setting) TRY(study->ops->check_setting(study, setting, problem));
  const double draws = study->ops->draws ? study->ops->draws(setting) : problem->rounds;
  for (int p = 0; p < study->file->policy_count; p++) {
    const ConfigPolicy *policy = &study->file->policies[p];
    const Status status = study_check_policy(study, setting, policy, problem, &run_size[p]);
    if (status != STATUS_OK) return status_prefix(status, "policy '%s': ", policy->label);
    run_size[p] = draws * (run_size[p] + (double)problem->d * problem->arms);
  }
  return STATUS_OK;
}

/* Checks a setting whose runs are cases, or not. All settings must be of one kind, because the runs of a
 * block are the same in all of them. */
static Status study_check_cases(const Study *study, const Problem *problem) {
  const bool cases = study_problem_family(study->file->settings[0])->take;
  if ((problem->cases > 0) != cases)
    return status_set(
        STATUS_INPUT,
        "problem.family: %s, but the first setting has %s; cases and other problems need studies "
        "of their own",
        problem->ops->name, study_problem_family(study->file->settings[0])->name);
  if (cases && study->runs.most > problem->cases)
    return status_set(STATUS_INPUT, "runs: %lld, but %s has only %d cases", (long long)study->runs.most,
                      problem_cases_file(problem)->path, problem->cases);
  return STATUS_OK;
}

Task study_task(const Study *study, int index) {
  int cell = index / study->runs.blocks, policies = study->file->policy_count;
  const RunsBlock *block = &study->blocks[index % study->runs.blocks];
  return (Task){.index = index,
                .setting = cell / policies,
                .policy = cell % policies,
                .first_run = block->first_run,
                .replicate = block->replicate,
                .runs = block->runs};
}

int study_task_index(const Study *study, int setting, int policy, int block) {
  return (setting * study->file->policy_count + policy) * study->runs.blocks + block;
}

int study_shard(const Study *study, int index, int shards) {
  const Task task = study_task(study, index);
  const int blocks = study->runs.blocks;
  if (!study_task_is_distributed(study, &task)) return index % shards;
  return (task.setting * blocks + index % blocks) % shards;
}

/* What may stand in a command that people are told to run. */
#define FIGURE_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-=, "

static Status study_check_names(const StudyFile *file) {
  const char *name = config_text(file->settings[0], "name");
  if (name[0] == '\0' || strchr(".-", name[0]) || strpbrk(name, "/\\"))
    return status_set(STATUS_INPUT,
                      "key 'name': '%s' cannot be a folder name; it must not be empty, begin with a dot or a "
                      "dash, or contain a slash or a backslash",
                      name);
  const char *figure = config_text(file->settings[0], "figure");
  if (figure && (figure[strspn(figure, FIGURE_LETTERS)] || strchr("/.- ", *figure) || strstr(figure, "..")))
    return status_set(
        STATUS_INPUT,
        "key 'figure': '%s' is not SCRIPT or FOLDER/SCRIPT in analysis/, with options; run prints it "
        "as a command, so it must consist of letters, digits and _ . / - = ,",
        figure);
  if (strlen(name) > MOST_NAME)
    return status_set(STATUS_INPUT, "key 'name': %zu bytes; at most %d are allowed in a folder name",
                      strlen(name), MOST_NAME);
  if (file->policy_count == 0)
    return status_set(STATUS_INPUT, "key 'policies' is needed: a list such as [ts, diffts]");
  return STATUS_OK;
}

bool study_measures(const Study *study, const char *metric) {
  const char *const *metrics;
  const char *key = study->ops->estimates ? "estimators" : "metrics";
  int count = config_words(study->file->settings[0], key, &metrics);
  for (int i = 0; i < count; i++)
    if (strcmp(metrics[i], metric) == 0) return true;
  return false;
}

/* Merges the points of a setting into the axis of the results. */
static Status study_join_axis(Study *study, int s, const Problem *problem) {
  const StudyOps *ops = study->ops;
  const Config *setting = study->file->settings[s];
  const int points = ops->points(setting), before = study->places;
  double *joined, *values;
  int count = 0;
  ALLOCATE(&study->memory, values, points);
  for (int i = 0; i < points; i++) values[i] = ops->axis_value ? ops->axis_value(setting, problem, i) : i + 1;
  study->values[s] = values;
  NEW(joined, points + before);
  for (int i = 0, k = 0; i < points || k < before; count++) {
    const double point = i < points ? values[i] : INFINITY;
    const double place = k < before ? study->axis[k] : INFINITY;
    joined[count] = fmin(point, place);
    i += point <= place;
    k += place <= point;
  }
  free(study->axis);
  study->axis = joined;
  study->places = count;
  if (points > study->points) study->points = points;
  return STATUS_OK;
}

/* Creates the runs, of which the file knows the number if they are cases, and the list of tasks. */
static Status study_create_tasks(Study *study) {
  static const int64_t MOST_TASKS = 100000000; /* a job holds 4 GB about them */
  const Config *first = study->file->settings[0];
  SCOPED(Problem, problem, problem_destroy);
  if (study_problem_family(first)->take) TRY(study_problem_create(first, &problem));
  TRY(study_runs_create(first, problem.cases, &study->runs));
  TRY(study_find_target(study));
  const int64_t tasks = (int64_t)study->runs.blocks * study->file->setting_count * study->file->policy_count;
  if (tasks > MOST_TASKS)
    return status_set(STATUS_INPUT, "%lld tasks: too many; raise block, lower runs, or sweep fewer values",
                      (long long)tasks);
  study->task_count = (int)tasks;
  ALLOCATE(&study->memory, study->blocks, study->runs.blocks);
  study_runs_list(&study->runs, study->blocks);
  return study_names_create(study);
}

/* Checks a setting, takes its points into the axis, and names its tasks. */
static Status study_take_setting(Study *study, int s) {
  const Config *setting = study->file->settings[s];
  SCOPED(Problem, problem, problem_destroy);
  if (study->runs.adaptive && study_problem_is_distributed(setting))
    return status_set(
        STATUS_INPUT,
        "key 'runs': settings that are spread over ranks need a fixed number, not runs.target_se");
  TRY(study_problem_create(setting, &problem));
  TRY(study_check_cases(study, &problem));
  TRY(study_check_policies(study, s, &problem));
  TRY(study_join_axis(study, s, &problem));
  const bool known = likelihood_has_noise(&problem.likelihood) && !problem.ops->take;
  study->noise[s] = known ? problem.likelihood.noise : NAN;
  return study_name_setting(study, s, &problem);
}

Status study_create(StudyFile *file, Study *out) {
  const Config *first = file->settings[0];
  *out =
      (Study){.file = file, .name = config_text(first, "name"), .seed = (uint64_t)config_int(first, "seed")};
  out->ops = study_kind_of(first);
  int curves = 0;
  while (out->ops->curves[curves].name) curves++;
  ALLOCATE(&out->memory, out->curves, curves);
  for (const StudyCurve *curve = out->ops->curves; curve->name; curve++) {
    if (curve->metric ? !study_measures(out, curve->metric)
                      : curve->unpublished && !config_bool(first, "event_log"))
      continue;
    out->curves[out->curve_count++] = curve;
    out->published += !curve->unpublished;
    out->along += !curve->every;
  }
  TRY(study_check_names(file));
  TRY(study_create_tasks(out));
  ALLOCATE(&out->memory, out->run_size, file->setting_count * file->policy_count);
  ALLOCATE(&out->memory, out->values, file->setting_count);
  ALLOCATE_ARRAYS(&out->memory, file->setting_count, &out->spread_bytes, &out->noise);
  for (int s = 0; s < file->setting_count; s++) {
    const Status status = study_take_setting(out, s);
    if (status != STATUS_OK)
      return file->setting_count == 1 ? status
                                      : status_prefix(status, "setting %s: ", file->setting_labels[s]);
  }
  study_sort_names(out);
  return STATUS_OK;
}

/* Checks that the oracles of a setting can be found. */
static Status study_check_oracles(const Study *study, const Config *setting) {
  SCOPED(Problem, problem, problem_destroy);
  Belief belief;
  bool checked = false; /* all policies have the same oracle */
  TRY(study_problem_create(setting, &problem));
  for (int p = 0; p < study->file->policy_count && !checked; p++) {
    TRY(study_belief_create(setting, &study->file->policies[p], &problem, 0, &belief));
    checked = belief.kind == BELIEF_ORACLE;
  }
  return checked ? prior_oracle_process_check(&belief.oracle) : STATUS_OK;
}

/* Returns whether two settings ask the same callable. */
static bool study_same_oracle(const Config *one, const Config *other) {
  static const char *const keys[] = {"prior.family", "prior.module", "prior.callable"};
  bool same = true;
  for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
    const char *value = config_text(one, keys[k]), *second = config_text(other, keys[k]);
    same = same && (value && second ? strcmp(value, second) == 0 : value == second);
  }
  return same;
}

Status study_ready(const Study *study) {
  for (int s = 0; s < study->file->setting_count; s++) {
    const Config *setting = study->file->settings[s];
    bool needed = config_text(setting, "prior.module");
    for (int before = 0; before < s; before++)
      needed = needed && !study_same_oracle(study->file->settings[before], setting);
    if (needed) TRY(study_check_oracles(study, setting));
  }
  return STATUS_OK;
}

int study_place(const Study *study, int setting, int point) {
  int place = point;
  while (study->axis[place] < study_axis_value(study, setting, point)) place++;
  return place;
}

void study_destroy(Study *study) {
  config_study_free(study->file);
  arena_free(&study->memory);
  free(study->axis);
  *study = (Study){0};
}

bool study_task_is_distributed(const Study *study, const Task *task) {
  return study->spread_bytes[task->setting] > 0;
}

double study_task_size(const Study *study, const Task *task) {
  return task->runs * study->run_size[task->setting * study->file->policy_count + task->policy];
}

Status study_references(Arena *memory, const Study *study, const char **out) {
  *out = "";
  for (int p = 0; p < study->file->policy_count; p++) {
    const char *name = study->file->policies[p].name;
    bool seen = false;
    for (int i = 0; i < p; i++) seen |= strcmp(study->file->policies[i].name, name) == 0;
    if (!seen)
      TRY(arena_print(memory, out, "%s%s%s: %s", *out, **out ? "; " : "", name,
                      policy_named(name).reference));
  }
  return STATUS_OK;
}
