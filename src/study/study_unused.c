#include "study/study_unused.h"

#include "problem/problems.h"
#include "study/keys.h"
#include "study/study_names.h"
#include "study/study_problem.h"

#include <stdio.h>
#include <string.h>

/* Returns whether a list of keys and sections, separated by blanks, has this key or its section. */
static bool study_lists_key(const char *list, const char *key) {
  while (list && *list) {
    const size_t length = strcspn(list, " ");
    if (strncmp(list, key, length) == 0 && (key[length] == '\0' || key[length] == '.')) return true;
    list += length + strspn(list + length, " ");
  }
  return false;
}

static bool study_some_kind_uses(const char *key) {
  bool used = false;
  for (int i = 0; study_kind(i); i++) used = used || study_lists_key(study_kind(i)->keys, key);
  return used;
}

static bool study_some_family_uses(const char *key) {
  bool used = study_lists_key(problem_target.keys, key);
  for (int i = 0; problem_family(i); i++) used = used || study_lists_key(problem_family(i)->keys, key);
  return used;
}

bool study_key_is_unused(const Study *study, const Config *setting, const char *key, size_t size, char *why) {
  const ProblemOps *family = study_problem_family(setting);
  const LikelihoodOps *likelihood = likelihood_find(config_text(setting, "likelihood"));
  *why = '\0';
  if (study_some_kind_uses(key) && !study_lists_key(study->ops->keys, key))
    snprintf(why, size, "study %s does not use it", study->ops->name);
  else if (family->keys && study_some_family_uses(key) && !study_lists_key(family->keys, key))
    snprintf(why, size, "problem.family %s does not use it", family->name);
  else if (family->take && strcmp(key, "problem.sample_sizes") == 0)
    snprintf(why, size, "draws are compared after all observations of a case");
  else if (strcmp(key, "stream.switch_at") == 0 &&
           config_int(setting, key) >= config_int(setting, "stream.tasks"))
    snprintf(why, size, "there are only %lld bandits, so theta* never changes",
             (long long)config_int(setting, "stream.tasks"));
  else if (strcmp(key, "feedback.delay_distribution") == 0 && config_int(setting, "feedback.delay") == 0)
    snprintf(why, size, "no reward is late");
  else if (strcmp(key, "problem.noise") == 0 && !likelihood->quadratic)
    snprintf(why, size, "rewards with the likelihood %s have no noise", likelihood->name);
  return *why;
}

/* Returns the first setting in which a policy has the tasks that it has in setting s, found by their names: s
 * itself if there is no earlier one. */
static int study_first_alike(const Study *study, int s, int p) {
  const TaskName name = study_task_name(study, study_task_index(study, s, p, 0));
  const TasksAlike alike = study_find_tasks(study, &name);
  for (int i = 0; i < alike.count; i++) {
    const Task task = study_task(study, study_task_alike(study, &alike, i));
    if (task.policy == p && task.setting < s) return task.setting;
  }
  return s;
}

/* The settings in which a policy has the tasks of an earlier one: how many, the first, and that earlier one.
 */
typedef struct {
  int count, setting, earlier;
} Repeated;

static Repeated study_find_repeated(const Study *study, int p) {
  Repeated out = {0};
  for (int s = study->file->setting_count - 1; s > 0; s--) {
    const int earlier = study_first_alike(study, s, p);
    if (earlier != s) out = (Repeated){.count = out.count + 1, .setting = s, .earlier = earlier};
  }
  return out;
}

/* Notes which policies the sweep does not change, and in which settings; in one sentence if that is true of
 * all alike. */
static void study_note_repeated(const Study *study, void (*note)(const char *sentence)) {
  const StudyFile *file = study->file;
  const Repeated first = study_find_repeated(study, 0);
  char sentence[512], others[64] = "", policy[128];
  bool all = file->policy_count > 1;
  for (int p = 1; p < file->policy_count && all; p++) {
    const Repeated own = study_find_repeated(study, p);
    all = memcmp(&own, &first, sizeof own) == 0;
  }
  for (int p = 0; p < (all ? 1 : file->policy_count); p++) {
    const Repeated own = study_find_repeated(study, p);
    if (own.count == 0) continue;
    snprintf(policy, sizeof policy, all ? "any policy" : "policy %s", file->policies[p].label);
    if (own.count > 1) snprintf(others, sizeof others, ", and likewise in %d more", own.count - 1);
    snprintf(sentence, sizeof sentence,
             "the sweep does not change %s in setting %s, whose results are those of %s%s; equal tasks are "
             "run once",
             policy, file->setting_labels[own.setting], file->setting_labels[own.earlier],
             own.count > 1 ? others : "");
    note(sentence);
  }
}

Status study_unused_note(const Study *study, void (*note)(const char *sentence)) {
  char why[128], value[64], other[64], sentence[512];
  for (const ConfigKey *key = study_keys; key->name; key++) {
    bool unused = true, is_default = true, swept = false;
    config_show(study->file->settings[0], key->name, sizeof value, value);
    for (int s = 0; s < study->file->setting_count && unused; s++) {
      const Config *setting = study->file->settings[s];
      bool same;
      TRY(config_is_default(setting, key->name, &same));
      is_default = is_default && same;
      unused = study_key_is_unused(study, setting, key->name, sizeof why, why);
      config_show(setting, key->name, sizeof other, other);
      swept = swept || strcmp(other, value) != 0;
    }
    if (!unused || is_default) continue;
    snprintf(sentence, sizeof sentence, "%s is %s%s, but %s", key->name, value,
             swept ? " and other values" : "", why);
    note(sentence);
  }
  if (!study->runs.adaptive) study_note_repeated(study, note);
  return STATUS_OK;
}
