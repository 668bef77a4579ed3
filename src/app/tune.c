/* thompson tune: which rule, constants and temper have the least regret for a prior, horizon, arms and noise,
 * found by simulating tasks from that prior. */
#include "app/app.h"
#include "model/prior/prior.h"
#include "parallel/priors/study_priors.h"
#include "parallel/tasks/race.h"
#include "sampler/guard.h"
#include "study/study_problem.h"

static struct {
  const char *study, *output;
  AppTexts sets;
  double tolerance;
  bool json;
} arguments = {.tolerance = 0.02};

static const AppOption options[] = {
    {"tolerance", 0, "SHARE", "how precisely to find the best, as a share of its regret (default: 0.02)",
     .real = &arguments.tolerance, .low = 1e-4, .high = 1},
    {"set", 0, "KEY=VALUE", "change a key of the study", .texts = &arguments.sets},
    {"seed", 0, "N", "the study's seed", .seed_of = &arguments.sets},
    {"output", 'o', "FILE", "write the best policy as a line for `policies` to FILE",
     .output = &arguments.output},
    {"json", 'j', NULL, "as JSON", .flag = &arguments.json},
    {0}};

/* ---- candidates */

enum { POLICY_LINE = 2048 };

/* What the only policy of a study is tried with: a rule, a factor on its temper and, if theta* changes
 * (problem.drift), discounts of its evidence as well. */
static const struct {
  const char *options;
  double temper;
  bool discounted; /* if theta* changes, also with DISCOUNTS */
} DEFAULTS[] = {{"rule: thompson", 1, true},
                {"rule: thompson", 2, true},
                {"rule: thompson", 4, false},
                {"rule: thompson", 8, false},
                {"rule: bayes_ucb, bayes_ucb_alpha: 1", 1, true},
                {"rule: bayes_ucb, bayes_ucb_alpha: 0.3", 1, false},
                {"rule: bayes_ucb, bayes_ucb_alpha: 0.1", 1, true},
                {"rule: bayes_ucb, bayes_ucb_alpha: 0.03", 1, false},
                {"rule: bayes_ucb, bayes_ucb_alpha: 0.01", 1, false},
                {"rule: bayes_ucb, bayes_ucb_alpha: 0.003", 1, false},
                {"rule: greedy", 1, false}};
static const double DISCOUNTS[] = {1, 0.995, 0.99, 0.98, 0.97, 0.95, 0.92, 0.88};
enum {
  DEFAULT_COUNT = sizeof DEFAULTS / sizeof *DEFAULTS,
  DISCOUNT_COUNT = sizeof DISCOUNTS / sizeof *DISCOUNTS
};

/* Returns whether DEFAULTS sets this option. */
static bool is_varied(const char *option) {
  static const char *const varied[] = {"rule", "bayes_ucb_alpha", "quantile", "temper", "discount"};
  for (size_t i = 0; i < sizeof varied / sizeof *varied; i++)
    if (strcmp(option, varied[i]) == 0) return true;
  return false;
}

/* Writes a policy as "name: mixts, components: 5", with the options that differ from their defaults; if
 * `varied`, without the options that DEFAULTS sets. */
static void policy_line(const ConfigPolicy *policy, bool varied, char *out) {
  size_t used = (size_t)snprintf(out, POLICY_LINE, "name: %s", policy->name);
  for (const ConfigKey *key = policy_keys(policy->name); key->name; key++) {
    char value[POLICY_LINE];
    if (!config_present(policy->options, key->name) || (varied && is_varied(key->name))) continue;
    config_show(policy->options, key->name, sizeof value, value);
    if ((key->fallback && strcmp(value, key->fallback) == 0) || used >= POLICY_LINE) continue;
    used += (size_t)snprintf(out + used, POLICY_LINE - used, ", %s: %s", key->name, value);
  }
}

/* Returns whether a policy, as a line of options, suits the study: a history that forgets, say, cannot be
 * tempered. */
static bool tune_candidate_fits(const char *text, AppTexts sets, const char *policy) {
  char set[2 * POLICY_LINE];
  Study study;
  snprintf(set, sizeof set, "policies=[%s]", policy);
  sets.texts[sets.count++] = set;
  const bool fits = app_study_of_file(arguments.study, text, &sets, &study) == STATUS_OK;
  study_destroy(&study);
  return fits;
}

/* Writes "policies=[...]": the default candidates, which vary the study's only policy, as far as they suit
 * it. */
static Status tune_default_candidates(Arena *memory, const ConfigPolicy *policy, bool drifts,
                                      const char *text, const char **out) {
  char base[POLICY_LINE];
  const char *list = "policies=[", *before = "";
  policy_line(policy, true, base);
  for (int i = 0; i < DEFAULT_COUNT; i++) {
    const int discounts = drifts && DEFAULTS[i].discounted ? DISCOUNT_COUNT : 1;
    for (int k = 0; k < discounts; k++) {
      const double factor = DEFAULTS[i].temper * config_real(policy->options, "temper");
      char more[128] = "";
      int used = 0;
      if (factor != 1) used = snprintf(more, sizeof more, ", temper: %.12g", factor);
      if (DISCOUNTS[k] != 1)
        snprintf(more + used, sizeof more - (size_t)used, ", discount: %.12g", DISCOUNTS[k]);
      const char *candidate;
      TRY(arena_print(memory, &candidate, "{%s, %s%s, label: '%s%s'}", base, DEFAULTS[i].options, more,
                      strchr(DEFAULTS[i].options, ' ') + 1, more));
      if (!tune_candidate_fits(text, arguments.sets, candidate)) continue;
      TRY(arena_print(memory, &list, "%s%s%s", list, before, candidate));
      before = ", ";
    }
  }
  return arena_print(memory, out, "%s]", list);
}

/* Checks that tasks can be simulated: a bandit in one setting, whose one theta* does not shape the arms. */
static Status tune_check_tasks(const Study *study) {
  const Config *setting = study->file->settings[0];
  SCOPED(Problem, problem, problem_destroy);
  if (strcmp(study->ops->name, "bandit") != 0)
    return status_set(STATUS_INPUT, "key 'study': value '%s': rules are tuned in study bandit",
                      study->ops->name);
  if (study->file->setting_count > 1)
    return status_set(
        STATUS_INPUT,
        "key 'sweep': %d settings; rules are tuned in one: --set KEY=VALUE fixes a swept key at one value",
        study->file->setting_count);
  TRY(study_problem_create(setting, &problem));
  if (!problem.per_arm && !problem.quadratic && !problem.ops->arms_of_theta) return STATUS_OK;
  return status_set(
      STATUS_INPUT,
      "problem.family: %s: tasks are simulated with theta* drawn from the policy's prior; this needs "
      "one theta* for all arms, arms that do not depend on it, and rewards that depend on phi' theta*",
      problem.ops->name);
}

/* Reads the study with its candidates, and the same study with a separate seed for the tasks. */
static Status read_candidates(Arena *memory, Study *priors, Study *tasks) {
  SCOPED(char *, text, memory_free_text);
  AppTexts sets = arguments.sets;
  const char *seed, *list;
  TRY(config_study_text(arguments.study, &text));
  TRY(app_study_of_file(arguments.study, text, &sets, priors));
  TRY(tune_check_tasks(priors));
  if (sets.count + 3 > (int)(sizeof sets.texts / sizeof *sets.texts))
    return status_set(STATUS_INPUT, "%d --set options are too many", sets.count);
  PolicyMethod method;
  if (priors->file->policy_count == 1 && policy_find(priors->file->policies[0].name, &method) &&
      method.sampler) {
    const bool drifts = config_is(priors->file->settings[0], "problem.drift.kind", "switch") &&
                        !method.sampler->by_observation;
    TRY(tune_default_candidates(memory, &priors->file->policies[0], drifts, text, &list));
    sets.texts[sets.count++] = list;
    study_destroy(priors);
    TRY(app_study_of_file(arguments.study, text, &sets, priors));
  }
  const RngKey key = rng_key(priors->seed, RNG_TUNE);
  TRY(arena_print(memory, &seed, "seed=%llu",
                  (unsigned long long)(key.word[0] | (uint64_t)(key.word[1] & 0x1fffff) << 32)));
  sets.texts[sets.count++] = seed;
  sets.texts[sets.count++] = "rounds_kept=auto"; /* the last round is what a race compares */
  return app_study_of_file(arguments.study, text, &sets, tasks);
}

/* Loads the prior of each candidate. Tasks are drawn from that of *first, the first policy that samples. */
static Status tune_load_priors(Arena *memory, const Study *study, const char *folder, Prior *out,
                               int *first) {
  const Config *setting = study->file->settings[0];
  SCOPED(Problem, problem, problem_destroy);
  TRY(study_problem_create(setting, &problem));
  *first = -1;
  for (int p = 0; p < study->file->policy_count; p++) {
    Belief belief;
    TRY(study_belief_create(setting, &study->file->policies[p], &problem, 0, &belief));
    TRY(study_belief_prior(memory, &belief, &problem, folder, &out[p]));
    if (*first < 0 && belief.kind != BELIEF_NONE) *first = p;
    if (belief.kind == BELIEF_WEIGHTS)
      return status_set(STATUS_INPUT,
                        "policy %s: model: network: its prior is over weights, and rules are tuned on tasks "
                        "with rewards that depend on phi' theta*",
                        study->file->policies[p].label);
  }
  if (*first >= 0) return STATUS_OK;
  return status_set(STATUS_INPUT, "policies: none has a prior from which tasks can be simulated");
}

/* ---- what is found */

typedef struct {
  const Study *study;
  RaceResult *results, *wide; /* [policies]; `wide` for tasks of the wide Gaussian, NULL without a guard */
  int first, best;
  bool known;
  const char *prior; /* the family of the tasks' prior */
  int *order; /* [policies], by mean regret */
} Found;

static void tune_print_table(const Found *found) {
  const StudyFile *file = found->study->file;
  const int rounds = (int)config_int(file->settings[0], "problem.rounds"), widest = app_label_width(file);
  printf("tasks from the prior of policy %s (%s): cumulative regret after %d rounds\n",
         file->policies[found->first].name, found->prior, rounds);
  printf("  %-*s %10s %8s %8s %8s %12s %8s %8s %10s%s\n", widest, "policy", "mean", "se", "95%", "largest",
         "difference", "se", "runs", "us/round", found->wide ? "       wide       se" : "");
  for (int i = 0; i < file->policy_count; i++) {
    const int p = found->order[i];
    const RaceResult *r = &found->results[p];
    printf("  %-*s %10.4g %8.2g %8.4g %8.4g", widest, file->policies[p].label, r->mean, r->se, r->tail,
           r->largest);
    if (p == found->best)
      printf(" %12s %8s", "", "");
    else
      printf(" %+12.3g %8.2g", r->difference, r->difference_se);
    printf(" %8d %10.3g", r->runs, r->seconds / rounds * 1e6);
    if (found->wide) printf(" %10.4g %8.2g", found->wide[p].mean, found->wide[p].se);
    printf("\n");
  }
  printf("\n95%%: 95%% of runs have at most this regret; difference: paired with the best\n");
  if (found->wide)
    printf("wide: regret if theta* is not from the prior but from the wide Gaussian that guards it\n");
  printf(found->known ? "The first is the best of these to within %g of its regret, at 95%% confidence, if "
                        "tasks are from that prior.\n"
                      : "After %2$d runs it is still open which is best to within %1$g of its regret.\n",
         arguments.tolerance, found->results[found->best].runs);
}

static Status tune_print_json(const Found *found, const char *line) {
  const StudyFile *file = found->study->file;
  json_t *rows = json_array();
  for (int i = 0; i < file->policy_count; i++) {
    const int p = found->order[i];
    const RaceResult *r = &found->results[p];
    json_t *row =
        json_pack("{s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "policy", file->policies[p].label, "runs",
                  r->runs, "mean", r->mean, "se", r->se, "percentile_95", r->tail, "largest", r->largest,
                  "difference", r->difference, "difference_se", r->difference_se, "seconds_per_round",
                  r->seconds / (double)config_int(file->settings[0], "problem.rounds"));
    if (found->wide) json_object_set_new(row, "mean_wide", json_real(found->wide[p].mean));
    json_array_append_new(rows, row);
  }
  json_t *root = json_pack("{s:s, s:s, s:f, s:b, s:s, s:o}", "tasks_of", file->policies[found->first].name,
                           "prior", found->prior, "tolerance", arguments.tolerance, "known", found->known,
                           "best", line, "policies", rows);
  return app_print_json(root, 0);
}

static Status tune_report(Found *found) {
  char options_line[POLICY_LINE], line[POLICY_LINE + 4];
  const StudyFile *study = found->study->file;
  for (int p = 0; p < study->policy_count; p++) { /* sorts by mean regret */
    int place = p;
    for (; place > 0 && found->results[found->order[place - 1]].mean > found->results[p].mean; place--)
      found->order[place] = found->order[place - 1];
    found->order[place] = p;
  }
  policy_line(&study->policies[found->best], false, options_line);
  snprintf(line, sizeof line, "{%s}", options_line);
  if (arguments.json) {
    TRY(tune_print_json(found, line));
  } else {
    tune_print_table(found);
    printf("%s\n", line);
  }
  if (!arguments.output) return STATUS_OK;
  FILE *file = fopen(arguments.output, "w");
  const bool written = file && fprintf(file, "%s\n", line) > 0;
  if ((file && fclose(file) != 0) || !written)
    return status_set(STATUS_FILE, "%s: cannot write the file", arguments.output);
  return STATUS_OK;
}

/* ---- the verb */

/* Makes the prior of theta* for the tasks that the guard protects against; *has: the policy has a guard. */
static Status tune_wide_prior(Arena *memory, const ConfigPolicy *policy, const Prior *prior, bool *has,
                              Prior *out) {
  const SamplerSetup setup = {.prior = prior, .options = policy->options};
  Mixture *mixture;
  *has = guard_of(&setup) > 0;
  if (!*has) return STATUS_OK;
  ALLOCATE(memory, mixture, 1);
  TRY(prior_wide_create(memory, prior_stand_in(prior),
                        prior->guard.width > 0 ? prior->guard.width : WIDE_WIDTH, mixture));
  return prior_from_mixture(memory, mixture, &(PriorFit){.schedule = {.stages = 1, .alpha = 0.9}}, out);
}

static Status tune_race_policies(Arena *memory, const Study *priors, const Study *tasks) {
  SCOPED(Scratch, scratch, app_scratch_destroy);
  const int policies = priors->file->policy_count;
  Found found = {.study = tasks};
  Prior *prior, wide;
  bool guarded = false, ignored;
  int best;
  ALLOCATE(memory, prior, policies);
  ALLOCATE(memory, found.results, policies);
  ALLOCATE(memory, found.order, policies);
  TRY(app_scratch_create(&scratch));
  TRY(study_priors_fit(priors, scratch.path, PROGRESS_AUTO, NULL));
  Status status = tune_load_priors(memory, priors, scratch.path, prior, &found.first);
  const Prior *world = status == STATUS_OK ? &prior[found.first] : NULL;
  if (world) status = tune_wide_prior(memory, &priors->file->policies[found.first], world, &guarded, &wide);
  TRY(parallel_agree(status));
  found.prior = world->ops->name;
  Race race = {
      .study = tasks, .priors = prior, .world = world, .tolerance = arguments.tolerance, .most = RACE_MOST};
  TRY(race_run(&race, found.results, &found.best, &found.known));
  if (guarded) {
    ALLOCATE(memory, found.wide, policies);
    race.world = &wide;
    race.most = 2 * RACE_FIRST;
    race.tolerance = 0;
    TRY(race_run(&race, found.wide, &best, &ignored));
  }
  return parallel_rank() == 0 ? tune_report(&found) : STATUS_OK;
}

static Status tune_study(void) {
  static const OwnershipKind kind = {"a policy", .has = NULL};
  SCRATCH_ARENA(memory);
  SCOPED(Study, priors, study_destroy);
  SCOPED(Study, tasks, study_destroy);
  if (arguments.output) TRY(app_try_output(arguments.output, &kind));
  TRY(parallel_agree(read_candidates(&memory, &priors, &tasks)));
  return parallel_agree(tune_race_policies(&memory, &priors, &tasks));
}

const AppVerb app_tune = {
    .options = options,
    .argument = &arguments.study,
    .what = "study file",
    .usage = "STUDY.yaml",
    .help = "Find which rule, constants and temper have the least regret for a prior, horizon, arms and "
            "noise, alone or under mpiexec or srun.\vThe candidates are the policies of the study or, if it "
            "has only one, a list of rules on top of it. All face the same tasks, whose theta* is drawn "
            "from the prior of the first policy that samples: the result is best if that prior is right. If "
            "the prior has a guard, another column shows the regret for tasks from the wide Gaussian. Runs "
            "are added until the best is known to within the tolerance. The last line is a policy for "
            "`policies`; -o writes it to a file.",
    .collective = tune_study};
