/* thompson plan: what a study will do and roughly cost; runs nothing. */
#include "app/app.h"
#include "io/store.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Floating-point operations a second of one core in a whole simulation, for estimates only: a plan says so.
 */
static const double ASSUMED_SPEED = 2e10;

typedef struct {
  const char *study;
  AppTexts sets;
  char seed[40];
  bool json;
} Arguments;

enum { KEY_SET = 256, KEY_SEED };

static const struct argp_option options[] = {{"set", KEY_SET, "KEY=VALUE", 0, "change a key of the study", 0},
                                             {"seed", KEY_SEED, "N", 0, "the study's seed", 0},
                                             {"json", 'j', NULL, 0, "as JSON", 0},
                                             {0}};

static error_t parse(int key, char *text, struct argp_state *state) {
  Arguments *arguments = state->input;
  switch (key) {
  case KEY_SET: app_texts_add(state, &arguments->sets, text); return 0;
  case KEY_SEED: app_take_seed(state, &arguments->sets, arguments->seed, text); return 0;
  case 'j': arguments->json = true; return 0;
  case ARGP_KEY_ARG: app_take(state, &arguments->study, text, "study file"); return 0;
  case ARGP_KEY_END: app_need(state, arguments->study, "study file"); return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

typedef struct {
  double core_hours; /* simulation, by ASSUMED_SPEED */
  double training_hours; /* of the distinct priors, by the same speed */
  int priors; /* distinct fits */
  double memory; /* bytes for each rank: one block and the arrays of the reducer */
  double matrices; /* the part of it that Gaussians on the weights of a network take */
  double bytes; /* of results.nc before compression, and the task files */
} Estimate;

/* Of a block: two matrices for each run, and ten to work with. */
static double matrix_bytes(const Study *study, const Belief *belief, const ConfigPolicy *policy, int d) {
  PolicyMethod method;
  ASSERT(policy_find(policy->name, &method));
  const double p = likelihood_parameters(&belief->likelihood, d);
  const double runs = (double)config_int(study->file->settings[0], "block");
  return method.sampler->gaussian ? (2 * runs + 10) * p * p * sizeof(double) : 0;
}

/* Distinct fits of the study, and the flops of training the diffusion models among them: forward and backward
 * of every step. */
static Status count_priors(const Study *study, Estimate *estimate) {
  const StudyFile *file = study->file;
  int most = file->setting_count * file->policy_count, count = 0;
  char(*seen)[65] = malloc((size_t)most * sizeof *seen);
  if (!seen) return status_set(STATUS_INTERNAL, "out of memory");
  Status status = STATUS_OK;
  for (int s = 0; s < file->setting_count && status == STATUS_OK; s++) {
    Problem problem;
    status = problem_create(file->settings[s], &problem);
    for (int p = 0; p < file->policy_count && status == STATUS_OK; p++) {
      Belief belief;
      bool known = false;
      status = belief_create(file->settings[s], &file->policies[p], &problem, 0, &belief);
      if (status == STATUS_OK && belief.kind == BELIEF_WEIGHTS)
        estimate->matrices =
            fmax(estimate->matrices, matrix_bytes(study, &belief, &file->policies[p], problem.d));
      for (int i = 0; i < count; i++) known |= strcmp(seen[i], belief.hash) == 0;
      if (status != STATUS_OK || belief.kind != BELIEF_FITTED || known) continue;
      memcpy(seen[count++], belief.hash, sizeof *seen);
      const PriorFit *fit = &belief.fit;
      double samples = (double)fit->steps * fit->batch,
             size = (double)belief.family->part_size(fit, problem.d);
      if (strcmp(belief.family->name, "diffusion") == 0)
        estimate->training_hours += 6 * samples * size * fit->stages;
    }
    if (status == STATUS_OK) problem_destroy(&problem);
  }
  free(seen);
  estimate->priors = count * study_replicates(study);
  estimate->training_hours *= study_replicates(study) / ASSUMED_SPEED / 3600;
  return status;
}

static Status estimate_study(const Study *study, Estimate *out) {
  *out = (Estimate){0};
  for (int i = 0; i < study->task_count; i++)
    out->core_hours += study->ops->cost(study, &study->tasks[i]) / ASSUMED_SPEED / 3600;
  const Config *first = study->file->settings[0];
  double curves = (double)study->curve_count * study->points * sizeof(double), arms = 1;
  if (config_has(first, "problem.arms")) arms = problem_arms(first);
  out->memory = 4e7 + 2 * curves * (double)study->runs +
                (double)config_int(first, "block") * (curves + arms * 8 * sizeof(double));
  out->bytes = 2 * curves * (double)study->runs * study->file->setting_count * study->file->policy_count;
  Status status = count_priors(study, out);
  out->memory += out->matrices;
  return status;
}

static Status print_json(const Study *study, const Estimate *estimate) {
  const StudyFile *file = study->file;
  json_t *settings = json_array(), *policies = json_array();
  for (int s = 0; s < file->setting_count; s++)
    json_array_append_new(settings, json_string(file->setting_labels[s]));
  for (int p = 0; p < file->policy_count; p++)
    json_array_append_new(policies, json_string(file->policies[p].label));
  json_t *root =
      json_pack("{s:s, s:s, s:o, s:o, s:I, s:i, s:i, s:f, s:f, s:f, s:f, s:s, s:s}", "name", study->name,
                "study", study->ops->name, "settings", settings, "policies", policies, "runs",
                (json_int_t)study->runs, "tasks", study->task_count, "priors", estimate->priors, "core_hours",
                estimate->core_hours + estimate->training_hours, "training_core_hours",
                estimate->training_hours, "memory_bytes_per_rank", estimate->memory, "bytes", estimate->bytes,
                "config_sha256", file->sha256, "config", file->resolved);
  if (!root) return status_set(STATUS_INTERNAL, "out of memory");
  json_dumpf(root, stdout, JSON_INDENT(2));
  printf("\n");
  json_decref(root);
  return STATUS_OK;
}

static void print_text(const Study *study, const Estimate *estimate) {
  const StudyFile *file = study->file;
  printf("%s\n# %d settings x %d policies x %lld runs = %d tasks, %d priors to fit\n", file->resolved,
         file->setting_count, file->policy_count, (long long)study->runs, study->task_count,
         estimate->priors);
  for (int s = 0; s < file->setting_count; s++) printf("#   %s\n", file->setting_labels[s]);
  printf("# about %.2g core-hours, %.2g of them training (at an assumed %.0f Gflop/s a core)\n",
         estimate->core_hours + estimate->training_hours, estimate->training_hours, ASSUMED_SPEED / 1e9);
  printf("# about %.0f MB of memory for each rank, %.1f MB of files\n", estimate->memory / 1e6,
         estimate->bytes / 1e6);
}

Status app_plan(int argc, char **argv) {
  static const struct argp argp = {
      options, parse, "STUDY.yaml", "Show the resolved study, its tasks and estimated cost. Runs nothing.",
      NULL,    NULL,  NULL};
  Arguments arguments = {0};
  char *text;
  size_t size;
  Study study;
  Estimate estimate;
  app_parse(&argp, argc, argv, &arguments);
  TRY(store_read_text(arguments.study, &text, &size));
  Status status = app_study_of_file(arguments.study, text, &arguments.sets, &study);
  free(text);
  TRY(status);
  status = estimate_study(&study, &estimate);
  if (status == STATUS_OK && arguments.json)
    status = print_json(&study, &estimate);
  else if (status == STATUS_OK)
    print_text(&study, &estimate);
  study_destroy(&study);
  return status;
}
