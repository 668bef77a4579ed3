#include "study/study_belief.h"

#include "model/prior/logs_fit.h"
#include "model/prior/prior.h"
#include "model/prior/training_samples.h"
#include "policy/policy.h"
#include "problem/problem_past.h"
#include "sampler/guard.h"
#include "sampler/methods.h"
#include "study/keys.h"
#include "study/study_candidates.h"

#include <string.h>

/* The words of prior.learned_from. */
static const char *const sources[] = {[LEARNED_FROM_THETA] = "theta",
                                      [LEARNED_FROM_LOGS] = "logs",
                                      [LEARNED_FROM_ESTIMATES] = "estimates",
                                      [LEARNED_FROM_MEANS] = "posterior_means"};

/* Returns the guard that the keys ask for, since a learned prior may be wrong. */
static PriorGuard study_belief_guard_of_keys(const Config *setting, const ConfigPolicy *policy,
                                             BeliefKind kind) {
  const bool learned = kind == BELIEF_FITTED || kind == BELIEF_FILE;
  const bool own = config_has(policy->options, "guard") && !config_is(policy->options, "guard", "study");
  const bool automatic =
      own ? config_is(policy->options, "guard", "auto") : config_is(setting, "prior.guard", "auto");
  const double weight = own         ? guard_asked(policy->options)
                        : !learned  ? 0
                        : automatic ? GUARD_AUTO
                                    : config_real(setting, "prior.guard");
  if (weight == 0) return (PriorGuard){0};
  return (PriorGuard){.weight = weight,
                      .tasks = (int)config_int(setting, "prior.guard_tasks"),
                      .width = config_real(setting, "prior.guard_width"),
                      .shrink = automatic ? GUARD_AUTO_SHRINK : config_real(setting, "prior.guard_shrink")};
}

/* Hashes everything that a fitted prior depends on. */
static Status study_belief_compute_hash(const Config *setting, const Problem *problem, Belief *belief) {
  static const char *const uncounted[] = {"problem.file", "problem.rounds", "problem.sample_sizes"};
  char file_hash[DIGEST_SIZE] = "none";
  const char *file = config_text(setting, "problem.file");
  if (file) TRY(digest_file(file, file_hash));
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  if (!out) return status_set(STATUS_INTERNAL, "out of memory");
  fprintf(out, "%s %s file %s d %d test %a samples %lld seed %llu replicate %u\n",
          config_text(setting, "problem.family"), config_text(setting, "problem.theta"), file_hash,
          problem->d, problem->theta.set.n > 0 ? config_real(setting, "prior.test_fraction") : 0,
          (long long)belief->train_samples, (unsigned long long)belief->fit.seed, belief->fit.replicate);
  if (belief->fit.contamination > 0)
    fprintf(out, "contamination %a width %a\n", belief->fit.contamination, belief->fit.guard_width);
  if (belief->learned_from != LEARNED_FROM_THETA) {
    /* What past tasks depend on apart from the distribution of theta*: the world, whatever the length of its
     * runs, and the likelihood that is assumed. */
    char value[1024];
    fprintf(out, "%s of %d tasks of %d, likelihood %s noise %a;", sources[belief->learned_from],
            belief->past_tasks, belief->past_observations, belief->likelihood.ops->name,
            belief->likelihood.noise);
    for (const ConfigKey *key = study_keys; key->name; key++) {
      bool counts =
          strncmp(key->name, "problem.", strlen("problem.")) == 0 || !strcmp(key->name, "likelihood");
      for (size_t i = 0; i < sizeof uncounted / sizeof *uncounted; i++)
        counts &= strcmp(key->name, uncounted[i]) != 0;
      if (!counts) continue;
      config_show(setting, key->name, sizeof value, value);
      fprintf(out, " %s %s", key->name, value);
    }
    fprintf(out, "\n");
  }
  if (belief->family == &prior_auto) { /* how candidates are judged */
    int sizes[CANDIDATE_SIZES];
    const int count = study_candidates_sizes(setting, problem, sizes);
    fprintf(out, "likelihood %s noise %a judged after", belief->likelihood.ops->name,
            belief->likelihood.noise);
    for (int s = 0; s < count; s++) fprintf(out, " %d", sizes[s]);
    fprintf(out, "\n");
  }
  fprintf(out, "%s ", belief->family->name);
  belief->family->describe_fit(&belief->fit, out);
  fclose(out);
  const Status status = digest_hex(text, size, belief->hash);
  free(text);
  return status;
}

static LearnedFrom study_belief_learned_from(const Config *setting) {
  size_t i = 0;
  while (!config_is(setting, "prior.learned_from", sources[i])) i++;
  return (LearnedFrom)i;
}

/* Returns whether the family of a fitted belief can be fitted to the logs directly. */
static bool study_belief_takes_logs(const Belief *belief) {
  return belief->family->able & PRIOR_LOGS || belief->family == &prior_auto;
}

Status study_belief_fit_prior(const Config *setting, const PriorOps *family, const Problem *problem,
                              Belief *belief) {
  belief->kind = BELIEF_FITTED;
  belief->past_observations = (int)config_int(setting, "prior.past_observations");
  belief->family = family;
  belief->learned_from = study_belief_learned_from(setting);
  prior_settle(family, &belief->fit, problem->d);
  if (belief->learned_from == LEARNED_FROM_THETA) {
    belief->train_samples =
        config_is(setting, "prior.train_samples", "all") ? -1 : config_int(setting, "prior.train_samples");
  } else {
    TRY(problem_past_check(problem));
    if (belief->fit.contamination > 0 && belief->learned_from == LEARNED_FROM_LOGS &&
        study_belief_takes_logs(belief))
      return status_set(STATUS_INPUT,
                        "prior.contamination replaces training samples, but a %s prior is learned from logs "
                        "without samples; use prior.guard",
                        belief->family->name);
    belief->past_tasks = (int)config_int(setting, "prior.past_tasks");
  }
  return study_belief_compute_hash(setting, problem, belief);
}

Status study_belief_prerequisite(const Config *setting, const Problem *problem, const Belief *belief,
                                 Belief *out) {
  const bool means = belief->learned_from == LEARNED_FROM_MEANS;
  *out = (Belief){.kind = BELIEF_NONE};
  if (!means && (belief->learned_from != LEARNED_FROM_LOGS || study_belief_takes_logs(belief)))
    return STATUS_OK;
  *out = *belief;
  out->learned_from = LEARNED_FROM_LOGS;
  out->fit.contamination = 0;
  out->family = means ? prior_find("gaussian") : logs_family(belief->family);
  if (means)
    prior_settle(out->family, &out->fit, problem->d);
  else
    out->fit.components = 0; /* the number that predicts best */
  return study_belief_compute_hash(setting, problem, out);
}

/* Finds the first task that a guard learns its weight from; the prior is learned from those before it. */
static Status study_belief_first_guard_task(const Belief *belief, int64_t *out) {
  *out = 0;
  if (belief->kind != BELIEF_FITTED) return STATUS_OK;
  *out = belief->learned_from == LEARNED_FROM_THETA ? belief->train_samples : belief->past_tasks;
  if (*out >= 0) return STATUS_OK;
  return status_set(
      STATUS_INPUT,
      "prior.guard_tasks: prior.train_samples: all leaves no theta for other tasks; use a number");
}

/* Reads what an oracle needs. */
static Status study_belief_take_oracle(const Config *setting, const Problem *problem, Belief *out) {
  if (!config_text(setting, "prior.module") || !config_text(setting, "prior.callable") ||
      config_is(setting, "prior.sigma_min", "none") || config_is(setting, "prior.sigma_max", "none"))
    return status_set(STATUS_INPUT, "prior 'oracle' needs the keys prior.module, prior.callable, "
                                    "prior.sigma_min and prior.sigma_max");
  out->kind = BELIEF_ORACLE;
  out->family = prior_oracle_family();
  out->oracle = (OracleProcess){.module = config_text(setting, "prior.module"),
                                .callable = config_text(setting, "prior.callable"),
                                .d = problem->d,
                                .batch = (int)config_int(setting, "prior.batch"),
                                .limit = config_real(setting, "prior.call_limit"),
                                .range = {.stages = out->fit.schedule.stages,
                                          .sigma_min = config_real(setting, "prior.sigma_min"),
                                          .sigma_max = config_real(setting, "prior.sigma_max")}};
  if (!(out->oracle.range.sigma_min < out->oracle.range.sigma_max))
    return status_set(STATUS_INPUT, "key 'prior.sigma_min': %g; it must be below prior.sigma_max = %g",
                      out->oracle.range.sigma_min, out->oracle.range.sigma_max);
  if (!config_is(setting, "prior.dimension", "auto") && config_int(setting, "prior.dimension") != problem->d)
    return status_set(STATUS_INPUT, "key 'prior.dimension': %lld, but theta* has %d dimensions",
                      (long long)config_int(setting, "prior.dimension"), problem->d);
  return STATUS_OK;
}

/* Sets the kind of belief that a word names, and what belongs to it. Families of priors are fitted, and a
 * word that is not known is the name of a file. */
static Status study_belief_choose_kind(const Config *setting, const PolicyMethod *method, const char *word,
                                       const Problem *problem, Belief *out) {
  const PriorOps *family = study_candidates_family(word);
  if (strcmp(word, "standard") == 0) {
    out->kind = BELIEF_STANDARD;
  } else if (strcmp(word, "ising") == 0) {
    out->kind = BELIEF_ISING;
  } else if (strcmp(word, "exact") == 0) {
    out->kind = BELIEF_EXACT;
    const Status status = problem_check_exact_prior(problem);
    if (status != STATUS_OK) return status_prefix(status, "prior 'exact': ");
  } else if (strcmp(word, "oracle") == 0) {
    return study_belief_take_oracle(setting, problem, out);
  } else if (!family) {
    out->kind = BELIEF_FILE;
    out->file = word;
  } else if (config_is(setting, "study", "stream")) {
    out->kind = BELIEF_STANDARD;
    out->learns = true;
  } else if (problem->ops->rewards) {
    return status_set(STATUS_INPUT,
                      "prior '%s': problem.family = %s has no theta* that a prior could be fitted to; use "
                      "prior: standard, or a prior file (thompson train --logs)",
                      word, problem->ops->name);
  } else if (family == &prior_auto && method->sampler != &sampler_auto) {
    return status_set(STATUS_INPUT, "prior auto is chosen together with its sampler; use the policy auto");
  } else {
    return study_belief_fit_prior(setting, family, problem, out);
  }
  return STATUS_OK;
}

Status study_belief_create(const Config *setting, const ConfigPolicy *policy, const Problem *problem,
                           uint32_t replicate, Belief *out) {
  const PolicyMethod method = policy_named(policy->name);
  *out = (Belief){.likelihood = policy_likelihood(&method, policy->options, problem)};
  const char *given = config_text(setting, "prior.family");
  if (!method.default_prior) return STATUS_OK;
  if (study_belief_learned_from(setting) != LEARNED_FROM_THETA && strcmp(given, "samples") != 0 &&
      !study_candidates_family(given))
    return status_set(STATUS_INPUT,
                      "prior.learned_from: %s, but with prior.family: %s the prior is given and nothing is "
                      "learned; use prior.family: samples, gaussian or mixture",
                      config_text(setting, "prior.learned_from"), given);
  out->fit = fit_of_keys(setting, problem->seed, replicate);
  Status status = schedule_check(&out->fit.schedule);
  if (status != STATUS_OK) return status_prefix(status, "key 'prior.schedule': ");
  /* The components of a sampler's own key concern its approximation. */
  if (config_key_index(sampler_keys(method.sampler), "components") < 0 &&
      !config_is(policy->options, "components", "study"))
    out->fit.components =
        config_is(policy->options, "components", "auto") ? 0 : (int)config_int(policy->options, "components");
  const char *word = config_text(policy->options, "prior");
  if (strcmp(word, "default") == 0 && problem->cases > 0) {
    word = strcmp(given, "oracle") == 0 ? given : "exact"; /* that of the case */
  } else if (strcmp(word, "default") == 0) {
    /* A default that is learned is replaced by prior.family, unless it is Gaussian by definition. */
    const bool learned =
        study_candidates_family(method.default_prior) && strcmp(method.default_prior, "gaussian") != 0;
    word = !learned || strcmp(given, "samples") == 0 ? method.default_prior
           : strcmp(given, "file") == 0              ? config_text(setting, "prior.file")
                                                     : given;
  }
  if (likelihood_has_network(&out->likelihood)) {
    out->kind = BELIEF_WEIGHTS;
    out->guard = study_belief_guard_of_keys(setting, policy, out->kind);
    if (word && strcmp(word, "standard") == 0) return STATUS_OK;
    return status_set(STATUS_INPUT, "model: network needs prior: standard, N(0, I) on its weights");
  }
  if (!word)
    return status_set(STATUS_INPUT, "prior.family = file needs key 'prior.file', which is not given");
  TRY(study_belief_choose_kind(setting, &method, word, problem, out));
  out->guard = study_belief_guard_of_keys(setting, policy, out->kind);
  out->past_observations = (int)config_int(setting, "prior.past_observations");
  if (out->guard.tasks == 0) return STATUS_OK;
  int64_t first;
  TRY(problem_past_check(problem));
  return study_belief_first_guard_task(out, &first);
}

int study_belief_items(const Belief *belief, const Problem *problem) {
  return belief->learned_from == LEARNED_FROM_THETA
             ? problem_theta_training_count(&problem->theta, belief->train_samples)
             : belief->past_tasks;
}

enum { HASH_SHOWN = 20 /* digits of the hash in the name of a file */ };

void study_belief_path(const Belief *belief, const char *directory, size_t size, char *path) {
  ASSERT(belief->kind == BELIEF_FITTED);
  snprintf(path, size, "%s/priors/%s-%.*s.nc", directory, belief->family->name, HASH_SHOWN, belief->hash);
}

bool study_belief_is_file_name(const char *name) {
  char family[32], hash[HASH_SHOWN + 1];
  int end = 0; /* set if the whole of this is there */
  sscanf(name, "%31[^-]-%20[0-9a-f].nc%n", family, hash, &end);
  return end > 0 && name[end] == '\0' && strlen(hash) == HASH_SHOWN && study_candidates_family(family);
}

Status study_belief_print(const Belief *belief, const SamplerOps *sampler, FILE *out) {
  const PriorGuard *guard = &belief->guard;
  char digest[DIGEST_SIZE];
  fprintf(out, "belief %d\n", (int)belief->kind);
  if (belief->kind == BELIEF_NONE) return STATUS_OK;
  if (belief->kind == BELIEF_FITTED) fprintf(out, "%s %s\n", belief->family->name, belief->hash);
  if (belief->kind == BELIEF_FILE) {
    TRY(digest_file(belief->file, digest));
    fprintf(out, "file %s\n", digest);
  }
  if (belief->kind == BELIEF_ORACLE)
    fprintf(out, "oracle %s:%s, %d dimensions in batches of %d, noise %a to %a\n", belief->oracle.module,
            belief->oracle.callable, belief->oracle.d, belief->oracle.batch, belief->oracle.range.sigma_min,
            belief->oracle.range.sigma_max);
  fprintf(out, "guard %a %a %a\n", guard->weight, guard->width, guard->shrink);
  if (guard->tasks > 0)
    fprintf(out, "learned from %d tasks of %d after %lld or %d\n", guard->tasks, belief->past_observations,
            (long long)belief->train_samples, belief->past_tasks);
  const unsigned closed = NEEDS_MIXTURE | NEEDS_GAUSSIAN;
  if (sampler->needs != 0 && !(sampler->needs & ~closed) && belief->kind != BELIEF_EXACT) return STATUS_OK;
  schedule_describe(&belief->fit.schedule, out);
  fprintf(out, " last stage %d, standardised %d\n", (int)belief->fit.last_stage, belief->fit.standardise);
  return STATUS_OK;
}

/* Creates N(0, I), without matrices where the problem has none. */
static Status study_belief_standard(Arena *memory, const Belief *belief, const Problem *problem, Prior *out) {
  SCRATCH_ARENA(scratch);
  Isotropic standard;
  if (problem->theta.isotropic.d == 0) return prior_standard(memory, problem->d, &belief->fit, out);
  TRY(denoiser_isotropic_create(&scratch, problem->d, 1, &standard));
  standard.weight[0] = standard.variance[0] = 1;
  return prior_isotropic(memory, &standard, &belief->fit, out);
}

Status study_belief_prior(Arena *memory, const Belief *belief, const Problem *problem, const char *directory,
                          Prior *out) {
  char path[4096];
  switch (belief->kind) {
  case BELIEF_NONE: *out = (Prior){0}; break;
  case BELIEF_STANDARD: TRY(study_belief_standard(memory, belief, problem, out)); break;
  case BELIEF_WEIGHTS: TRY(prior_weights(likelihood_parameters(&belief->likelihood, problem->d), out)); break;
  case BELIEF_ISING: TRY(prior_ising(memory, problem->d, &belief->fit, out)); break;
  case BELIEF_EXACT: TRY(problem_exact_prior(memory, problem, &belief->fit, out)); break;
  case BELIEF_FILE:
    TRY(prior_load(memory, belief->file, &belief->fit, out));
    if (out->d != problem->d)
      return status_set(STATUS_INPUT, "%s: a prior in %d dimensions, but theta* has %d", belief->file, out->d,
                        problem->d);
    break;
  case BELIEF_ORACLE: TRY(prior_oracle_process(memory, &belief->oracle, out)); break;
  case BELIEF_FITTED:
    study_belief_path(belief, directory, sizeof path, path);
    const Status status = prior_load_own(memory, path, &belief->fit, out);
    if (status == STATUS_INPUT)
      return status_prefix(status, "remove this file and it will be fitted again: ");
    TRY(status);
  }
  out->guard = belief->guard;
  if (belief->guard.tasks == 0) return STATUS_OK;
  SCRATCH_ARENA(scratch);
  Logs tasks;
  int64_t first;
  TRY(prior_check_guard(out));
  TRY(study_belief_first_guard_task(belief, &first));
  TRY(logs_create(&scratch, problem->d, &belief->likelihood, &tasks));
  TRY(problem_past_logs(problem, belief->fit.replicate, (int)first, out->guard.tasks,
                        belief->past_observations, &tasks));
  if (tasks.tasks == 0)
    return status_set(STATUS_INPUT, "prior.guard_tasks: the prior is learned from all available theta; use a "
                                    "smaller prior.train_samples or prior.past_tasks");
  return prior_wide_learn(prior_stand_in(out), out->guard.width, &tasks, &out->guard.weight);
}

/* ---- what a fitted prior is learned from */

Status study_fit_data_create(Arena *memory, const Belief *belief, const Problem *problem, const Prior *base,
                             FitSource *out) {
  SCRATCH_ARENA(scratch);
  const bool takes_logs = belief->learned_from == LEARNED_FROM_LOGS && study_belief_takes_logs(belief);
  const double noise = belief->likelihood.noise;
  Arena *of_logs = takes_logs ? memory : &scratch;
  Samples *samples;
  Logs *logs = NULL;
  Prior standard;
  if (belief->learned_from != LEARNED_FROM_THETA) {
    ALLOCATE(of_logs, logs, 1);
    TRY(logs_create(of_logs, problem->d, &belief->likelihood, logs));
    TRY(problem_past_logs(problem, belief->fit.replicate, 0, belief->past_tasks, belief->past_observations,
                          logs));
  }
  if (takes_logs) {
    *out = (FitSource){.logs = logs};
    return STATUS_OK;
  }
  ALLOCATE(memory, samples, 1);
  switch (belief->learned_from) {
  case LEARNED_FROM_THETA:
    TRY(problem_training_samples(memory, problem, belief->fit.replicate, belief->train_samples, samples));
    break;
  case LEARNED_FROM_LOGS: TRY(logs_draws(memory, logs, &belief->fit, base->mixture, noise, samples)); break;
  case LEARNED_FROM_ESTIMATES: /* the theta of a task is treated as known: its posterior mean under N(0, I) */
    TRY(prior_standard(&scratch, logs->d, &belief->fit, &standard));
    TRY(logs_means(memory, logs, standard.mixture, noise, samples));
    break;
  case LEARNED_FROM_MEANS: /* the same under the base */
    TRY(logs_means(memory, logs, base->mixture, noise, samples));
    break;
  }
  *out = (FitSource){.samples = samples};
  return training_samples_contaminate(&belief->fit, samples);
}

/* ---- what can be known before a prior is fitted */

Status study_belief_check(const Belief *belief, const SamplerOps *sampler, const Problem *problem) {
  SCRATCH_ARENA(scratch);
  const PriorOps *family = belief->family;
  const bool fitted = belief->kind == BELIEF_FITTED, oracle = belief->kind == BELIEF_ORACLE;
  char sentence[512];
  Prior prior;
  Mixture mixture = {.d = problem->d, .components = COMPANION_COMPONENTS};
  const Chain chain = {.d = problem->d, .schedule.stages = belief->fit.schedule.stages};
  const Denoiser denoiser = {.d = problem->d};
  if (belief->kind == BELIEF_NONE) return STATUS_OK;
  if (!fitted && !oracle) {
    TRY(study_belief_prior(&scratch, belief, problem, "", &prior));
  } else { /* it is still to be fitted, or started: an empty prior with the same abilities */
    if (family->components) mixture.components = family->components(&belief->fit);
    const unsigned able = family->able;
    const bool has_companion =
        fitted && !(able & PRIOR_MIXTURE) && (able & PRIOR_DENOISER || problem->d <= COMPANION_MOST);
    prior = (Prior){.ops = family,
                    .d = problem->d,
                    .mixture = able & PRIOR_MIXTURE ? &mixture : NULL,
                    .chain = able & PRIOR_CHAIN ? &chain : NULL,
                    .denoiser = able & PRIOR_DENOISER ? &denoiser : NULL,
                    .companion = has_companion ? &mixture : NULL,
                    /* the choice is still to be made: one that takes any likelihood */
                    .auto_sampler = family == &prior_auto ? "localised" : NULL};
  }
  const bool isotropic = prior.isotropic && belief->guard.tasks == 0; /* as sampler/guard_seen.h has it */
  if (belief->guard.weight > 0 && !isotropic) TRY(prior_check_guard(&prior));
  if (sampler_misfit(sampler, &prior, &belief->likelihood, sizeof sentence, sentence))
    return status_set(STATUS_INPUT, "%s", sentence);
  return STATUS_OK;
}

double study_belief_draw_size(const Belief *belief, const SamplerOps *sampler, int d, double rows) {
  const PriorOps *family = belief->kind == BELIEF_FITTED ? belief->family : NULL;
  const double weights = likelihood_parameters(&belief->likelihood, d);
  double size = likelihood_has_network(&belief->likelihood) ? weights : (double)d * d;
  if (family && family->network_size) size = (double)family->network_size(&belief->fit, d);
  if (family && family->components) size *= family->components(&belief->fit);
  if (sampler->needs & NEEDS_CHAIN) size *= belief->fit.schedule.stages;
  return likelihood_is_conjugate(&belief->likelihood) ? size : size * rows;
}
