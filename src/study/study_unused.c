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

/* Writes why a key has no effect in a setting, or nothing if it has one. */
static void study_explain_unused(const Study *study, const Config *setting, const char *key, size_t size,
                                 char *why) {
  const ProblemOps *family = study_problem_family(setting);
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

/* Notes which policies the sweep does not change, and in which settings. */
static void study_note_repeated(const Study *study, void (*note)(const char *sentence)) {
  char sentence[512], others[64];
  for (int p = 0; p < study->file->policy_count; p++) {
    int alike = 0, example = 0;
    for (int s = study->file->setting_count - 1; s > 0; s--) {
      if (study_first_alike(study, s, p) == s) continue;
      alike++;
      example = s;
    }
    if (alike == 0) continue;
    snprintf(others, sizeof others, ", and likewise in %d more", alike - 1);
    snprintf(
        sentence, sizeof sentence,
        "the sweep does not change policy %s in setting %s, whose results are those of %s%s; equal tasks "
        "are run once",
        study->file->policies[p].label, study->file->setting_labels[example],
        study->file->setting_labels[study_first_alike(study, example, p)], alike > 1 ? others : "");
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
      study_explain_unused(study, setting, key->name, sizeof why, why);
      unused = *why;
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
