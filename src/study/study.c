#include "study/study.h"

#include "core/memory.h"
#include "policy/policy.h"
#include "study/bandit.h"
#include "study/convergence.h"
#include "study/posterior.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const StudyOps *const registry[] = {&study_bandit, &study_posterior, &study_convergence, NULL};

const StudyOps *study_kind(int index) { return registry[index]; }
const char *study_kind_name(int index) { return registry[index] ? registry[index]->name : NULL; }

/* Replicate r has the runs [cut(r), cut(r + 1)). */
static int64_t replicate_cut(const Study *study, int64_t replicate) {
  return (int64_t)((__int128)study->runs * replicate / study_replicates(study));
}

int study_replicates(const Study *study) {
  return (int)config_int(study->file->settings[0], "prior.replicates");
}

uint32_t study_replicate(const Study *study, int64_t run) {
  int64_t low = 0, high = study_replicates(study) - 1;
  while (low < high) {
    int64_t middle = (low + high + 1) / 2;
    if (replicate_cut(study, middle) <= run)
      low = middle;
    else
      high = middle - 1;
  }
  return (uint32_t)low;
}

/* A policy must fit the prior and the likelihood in every setting, before anything is run or fitted. */
static Status check_policies(const Study *study, const Config *setting) {
  Problem problem;
  TRY(problem_create(setting, &problem));
  Status status = STATUS_OK;
  if (study->ops->check_setting) status = study->ops->check_setting(study, setting, &problem);
  for (int p = 0; p < study->file->policy_count && status == STATUS_OK; p++) {
    const ConfigPolicy *policy = &study->file->policies[p];
    PolicyMethod method;
    Belief belief;
    ASSERT(policy_find(policy->name, &method));
    status = policy_check(&method, policy->options, &problem);
    if (status == STATUS_OK && study->ops->check_policy)
      status = study->ops->check_policy(&method, policy->options);
    if (status == STATUS_OK && method.sampler) {
      status = belief_create(setting, policy, &problem, 0, &belief);
      if (status == STATUS_OK && belief.kind == BELIEF_WEIGHTS && !study->ops->networks)
        status = status_set(STATUS_INPUT,
                            "model: network has other parameters than theta*, with which study %s compares",
                            study->ops->name);
      if (status == STATUS_OK) status = belief_check(&belief, method.sampler, &problem);
    }
    if (status != STATUS_OK) status_prefix(status, "policy '%s': ", policy->label);
  }
  problem_destroy(&problem);
  return status;
}

/* The blocks of one policy in one setting, in run order; with tasks NULL they are only counted. A block never
 * spans two replicates. */
static int list_blocks(const Study *study, int setting, int policy, int index, Task *tasks) {
  int64_t block = config_int(study->file->settings[0], "block");
  int count = 0;
  for (int r = 0; r < study_replicates(study); r++)
    for (int64_t first = replicate_cut(study, r), end = replicate_cut(study, r + 1); first < end;
         first += block, count++)
      if (tasks)
        tasks[index + count] = (Task){.index = index + count,
                                      .setting = setting,
                                      .policy = policy,
                                      .first_run = (uint32_t)first,
                                      .replicate = (uint32_t)r,
                                      .runs = (int)(end - first < block ? end - first : block)};
  return count;
}

static Status list_tasks(Study *study) {
  int64_t total =
      (int64_t)list_blocks(study, 0, 0, 0, NULL) * study->file->setting_count * study->file->policy_count;
  if (total > 1000000000)
    return status_set(STATUS_INPUT, "%lld tasks: too many; raise block, or sweep less", (long long)total);
  NEW(study->tasks, total);
  for (int s = 0; s < study->file->setting_count; s++)
    for (int p = 0; p < study->file->policy_count; p++)
      study->task_count += list_blocks(study, s, p, study->task_count, study->tasks);
  return STATUS_OK;
}

static Status check_names(const StudyFile *file) {
  const char *name = config_text(file->settings[0], "name");
  if (name[0] == '\0' || name[0] == '.' || strchr(name, '/'))
    return status_set(STATUS_INPUT,
                      "key 'name': '%s' cannot be the name of a folder; it must not be empty, begin with a "
                      "dot, or hold a slash",
                      name);
  if (file->policy_count == 0)
    return status_set(STATUS_INPUT, "key 'policies' is needed: a list such as [ts, diffts]");
  return STATUS_OK;
}

bool study_measures(const Study *study, const char *metric) {
  const char *const *metrics;
  int count = config_words(study->file->settings[0], "metrics", &metrics);
  for (int i = 0; i < count; i++)
    if (strcmp(metrics[i], metric) == 0) return true;
  return false;
}

static Status select_curves(Study *study) {
  int count = 0;
  while (study->ops->curves[count].name) count++;
  NEW(study->curves, count);
  for (int i = 0; i < count; i++)
    if (!study->ops->curves[i].metric || study_measures(study, study->ops->curves[i].metric))
      study->curves[study->curve_count++] = &study->ops->curves[i];
  return STATUS_OK;
}

Status study_create(StudyFile *file, Study *out) {
  const Config *first = file->settings[0];
  *out = (Study){.file = file,
                 .name = config_text(first, "name"),
                 .seed = (uint64_t)config_int(first, "seed"),
                 .runs = config_int(first, "runs")};
  for (int i = 0; registry[i]; i++)
    if (config_is(first, "study", registry[i]->name)) out->ops = registry[i];
  ASSERT(out->ops);
  TRY(select_curves(out));
  TRY(check_names(file));
  if (study_replicates(out) > out->runs)
    return status_set(STATUS_INPUT, "key 'prior.replicates': %d, but there are only %lld runs",
                      study_replicates(out), (long long)out->runs);
  for (int s = 0; s < file->setting_count; s++) {
    Status status = check_policies(out, file->settings[s]);
    if (status != STATUS_OK)
      return file->setting_count == 1 ? status
                                      : status_prefix(status, "setting %s: ", file->setting_labels[s]);
    int points = out->ops->points(file->settings[s]);
    if (points > out->points) out->points = points;
  }
  return list_tasks(out);
}

void study_destroy(Study *study) {
  config_study_free(study->file);
  free(study->tasks);
  free(study->curves);
  *study = (Study){0};
}

static Status allocate_result(const Study *study, const Task *task, TaskResult *out) {
  size_t runs = (size_t)task->runs;
  *out = (TaskResult){.runs = task->runs, .points = study->points, .status = RUN_NOT_RUN};
  NEW(out->curves, (size_t)study->curve_count * runs * (size_t)study->points);
  NEW(out->seconds, runs);
  NEW(out->fallbacks, runs);
  return STATUS_OK;
}

Status task_result_create(const Study *study, const Task *task, TaskResult *out) {
  Status status = allocate_result(study, task, out);
  if (status != STATUS_OK) task_result_destroy(out);
  return status;
}

void task_result_destroy(TaskResult *result) {
  free(result->curves);
  free(result->seconds);
  free(result->fallbacks);
  *result = (TaskResult){0};
}

static void clear_result(const Study *study, TaskResult *result) {
  size_t size = (size_t)study->curve_count * (size_t)result->runs * (size_t)result->points;
  for (size_t i = 0; i < size; i++) result->curves[i] = NAN;
  for (int b = 0; b < result->runs; b++) result->seconds[b] = NAN, result->fallbacks[b] = 0;
  result->message[0] = '\0';
}

static Status task_prior(const Study *study, const Task *task, const char *directory, Prior *out) {
  const Config *setting = study->file->settings[task->setting];
  Problem problem;
  Belief belief;
  TRY(problem_create(setting, &problem));
  Status status =
      belief_create(setting, &study->file->policies[task->policy], &problem, task->replicate, &belief);
  if (status == STATUS_OK) status = belief_prior(&belief, &problem, directory, out);
  problem_destroy(&problem);
  return status;
}

Status study_run_task(const Study *study, const Task *task, const char *directory, StudyTick tick,
                      TaskResult *result) {
  Prior prior = {0};
  clear_result(study, result);
  Status status = task_prior(study, task, directory, &prior);
  if (status == STATUS_OK) status = study->ops->run(study, task, &prior, tick, result);
  prior_destroy(&prior);
  result->status = status == STATUS_OK ? RUN_OK : RUN_FAILED;
  if (status == STATUS_STOPPED || status == STATUS_INTERNAL || status == STATUS_OK) return status;
  clear_result(study, result);
  snprintf(result->message, sizeof result->message, "%s", status_message());
  return STATUS_OK;
}

double study_dimension(const Config *setting) {
  return config_is(setting, "problem.dimension", "auto") ? 2
                                                         : (double)config_int(setting, "problem.dimension");
}

/* Of a network with p weights, the mean over rounds: a gradient is 6 p for each row; Gaussian approximations
 * take some products of p x p matrices for each step. */
static double network_cost(const ConfigPolicy *policy, const PolicyMethod *method, double d, double rounds) {
  const int64_t *hidden;
  const int layers = config_ints(policy->options, "hidden", &hidden);
  double p = (double)hidden[layers - 1] + 1, rows = rounds / 2, in = d;
  for (int l = 0; l < layers; in = (double)hidden[l++]) p += ((in + 1) * (double)hidden[l]);
  if (!config_is(policy->options, "minibatch", "all"))
    rows = (double)config_int(policy->options, "minibatch");
  const double matrices = method->sampler->gaussian ? 10 * p * p * p + 2 * p * p * rows : 0;
  return (double)config_int(policy->options, "steps") * (6 * p * rows + matrices);
}

double study_draw_cost(const Study *study, const Task *task) {
  const Config *setting = study->file->settings[task->setting];
  const ConfigPolicy *policy = &study->file->policies[task->policy];
  double d = study_dimension(setting), cost = 50 * d * d * d;
  PolicyMethod method;
  ASSERT(policy_find(policy->name, &method));
  if (method.sampler && config_is(policy->options, "model", "network"))
    return network_cost(policy, &method, d, (double)config_int(setting, "problem.rounds"));
  if (!method.sampler || !(method.sampler->needs & NEEDS_CHAIN)) return cost;
  const int64_t *hidden;
  int layers = config_ints(setting, "prior.hidden", &hidden);
  double width = layers ? (double)hidden[0] : 10 * d;
  return cost + (double)config_int(setting, "prior.stages") * (2 * (2 * d * width + width * width) + 200 * d);
}
