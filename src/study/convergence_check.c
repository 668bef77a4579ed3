#include "study/convergence_check.h"

#include "study/keys.h"

#include <stdio.h>
#include <string.h>

static const struct {
  const char *key, *value, *because;
} FIXED[] = {{"steps", "1", "makes one step after another"},
             {"step_rule", "eta_t", "makes steps that are step_size long"},
             {"eta", "1", "has a target that is not tempered"},
             {"lambda", "1", "has a target that is not tempered"},
             {"temper", "1", "has a target that is not tempered"},
             {"guard", "0", "compares one Gaussian with the target"},
             {"prior", "standard", "starts every method at N(0, I)"},
             {"components", "1", "compares one Gaussian with the target"},
             {"posterior", "shared", "has one target"}};
enum { FIXED_OPTIONS = sizeof FIXED / sizeof *FIXED, SHOWN = 128 };

Status convergence_options(Arena *memory, const Config *options, Config **out) {
  char texts[FIXED_OPTIONS][64];
  const char *sets[FIXED_OPTIONS];
  int count = 0;
  for (int i = 0; i < FIXED_OPTIONS; i++) {
    if (!config_has(options, FIXED[i].key)) continue;
    snprintf(texts[count], sizeof texts[count], "%s=%s", FIXED[i].key, FIXED[i].value);
    sets[count] = texts[count];
    count++;
  }
  return config_override(memory, options, "study convergence", count, sets, out);
}

static bool is_admitted(const SamplerOps *sampler) {
  return sampler && (sampler->gaussian || sampler->chain);
}

static Status refuse_method(void) {
  char names[256] = "";
  for (int i = 0; sampler_method(i); i++) {
    const size_t length = strlen(names);
    if (is_admitted(sampler_method(i)))
      snprintf(names + length, sizeof names - length, "%s%s", length ? ", " : "", sampler_name(i));
  }
  return status_set(STATUS_INPUT,
                    "it does not step towards a target, and study convergence counts steps: take one of %s",
                    names);
}

/* Returns whether the value of `key` is the default, or the one in `set` (NULL: none); otherwise
 * shown[SHOWN] is the value. */
static bool is_left_alone(const Config *config, const Config *defaults, const Config *set, const char *key,
                          char *shown) {
  char other[SHOWN];
  config_show(config, key, SHOWN, shown);
  config_show(defaults, key, SHOWN, other);
  if (strcmp(shown, other) == 0) return true;
  if (set) config_show(set, key, SHOWN, other);
  return strcmp(shown, other) == 0;
}

static Status check_options(const Config *options, const Config *defaults, const Config *set) {
  char shown[SHOWN];
  for (int i = 0; i < FIXED_OPTIONS; i++)
    if (config_has(options, FIXED[i].key) && !is_left_alone(options, defaults, set, FIXED[i].key, shown))
      return status_set(STATUS_INPUT, "option %s = %s, but study convergence %s: leave it out, or give %s",
                        FIXED[i].key, shown, FIXED[i].because, FIXED[i].value);
  return STATUS_OK;
}

Status convergence_check_policy(const PolicyMethod *method, const Config *options) {
  SCRATCH_ARENA(scratch);
  Config *defaults, *set;
  if (!is_admitted(method->sampler)) return refuse_method();
  TRY(config_options(&scratch, "defaults", policy_keys(method->name), 0, NULL, &defaults));
  TRY(convergence_options(&scratch, options, &set));
  return check_options(options, defaults, set);
}

/* Returns whether it is a key of the world or of priors that this study has no use for: its target is its
 * own, and the prior N(0, I). */
static bool is_unused(const char *key) {
  static const char *const used[] = {"problem.dimension", "problem.condition_number", "prior.replicates"};
  for (size_t i = 0; i < sizeof used / sizeof *used; i++)
    if (strcmp(key, used[i]) == 0) return false;
  return strncmp(key, "problem.", 8) == 0 || strncmp(key, "prior.", 6) == 0;
}

Status convergence_check_setting(const Study *study, const Config *setting, const Problem *problem) {
  static const char *const needed[] = {"name=any"};
  SCRATCH_ARENA(scratch);
  Config *defaults;
  char shown[SHOWN];
  (void)study, (void)problem;
  TRY(config_options(&scratch, "defaults", study_keys, 1, needed, &defaults));
  for (int i = 0; study_keys[i].name; i++)
    if (is_unused(study_keys[i].name) && !is_left_alone(setting, defaults, NULL, study_keys[i].name, shown))
      return status_set(STATUS_INPUT,
                        "key '%s': %s, but study convergence has no use for it: its target has "
                        "problem.dimension and problem.condition_number, and its methods start at N(0, I)",
                        study_keys[i].name, shown);
  return STATUS_OK;
}
