/* Expands lists of values into settings: the product of the lists, first axis slowest, or all lists in step
 * (zip). */
#include "io/config/config_internal.h"

#include <stdlib.h>
#include <string.h>

static Status config_sweep_read_axis(Arena *memory, const ConfigGiven *axes, int key, ConfigValue **values,
                                     int *count) {
  const ConfigKey *row = &axes->keys[key];
  const ConfigNode *list = axes->node[key];
  const char *name = row->name;
  if (row->fixed || row->type == KEY_INTS || row->type == KEY_WORDS)
    return config_refuse(list->key_place, "key 'sweep.%s': '%s' cannot be swept", name, name);
  if (list->kind != NODE_SEQUENCE || list->count == 0)
    return config_refuse(list->place, "key 'sweep.%s': expects a list of values, such as [a, b]", name);
  if (list->count > CONFIG_SETTING_LIMIT)
    return config_refuse(list->place, "key 'sweep.%s': more than %d settings", name, CONFIG_SETTING_LIMIT);
  ALLOCATE(memory, *values, list->count);
  *count = 0;
  for (const ConfigNode *item = list->first; item; item = item->next)
    TRY(config_value_parse(memory, row, "sweep.", name, item, &(*values)[(*count)++]));
  return STATUS_OK;
}

/* Writes the value as a label shows it: text as it is, a number in its shortest form. */
static Status config_value_label(Arena *memory, const ConfigKey *key, const ConfigValue *value,
                                 const char **out) {
  char text[32];
  if (value->word) return *out = value->word, STATUS_OK;
  switch (key->type) {
  case KEY_INT: return arena_print(memory, out, "%lld", (long long)value->integer);
  case KEY_REAL: config_real_text(value->real, text); return arena_print(memory, out, "%s", text);
  case KEY_BOOL: return *out = value->boolean ? "true" : "false", STATUS_OK;
  default: return *out = "null", STATUS_OK;
  }
}

/* Fills study->axes[a], which is what callers see of an axis. */
static Status config_sweep_fill_axis(Arena *memory, const ConfigKey *key, int a, StudyFile *study) {
  bool numeric = key->type == KEY_INT || key->type == KEY_REAL;
  double *numbers;
  const char **texts;
  ALLOCATE_ARRAYS(memory, study->setting_count, numbers, texts);
  for (int s = 0; s < study->setting_count; s++) {
    const ConfigValue *value = study->settings[s]->axis_values[a];
    if (value->word) numeric = false;
    numbers[s] = key->type == KEY_INT ? (double)value->integer : value->real;
    TRY(config_value_label(memory, key, value, &texts[s]));
  }
  study->axes[a] = (ConfigAxis){key->name, numeric, numbers, texts};
  return STATUS_OK;
}

static Status config_sweep_count(ConfigPlace place, const ConfigKey *keys, const ConfigSweep *sweep,
                                 int *out) {
  int64_t count = 1;
  if (sweep->zip && sweep->axis_count > 0) count = sweep->counts[0];
  for (int a = 0; a < sweep->axis_count; a++) {
    if (!sweep->zip) count *= sweep->counts[a];
    if (count > CONFIG_SETTING_LIMIT)
      return config_refuse(place,
                           "key 'sweep': more than %d settings; make the lists shorter, or use zip: true",
                           CONFIG_SETTING_LIMIT);
    if (sweep->zip && sweep->counts[a] != sweep->counts[0])
      return config_refuse(
          place, "key 'sweep': zip: true needs lists of equal length, but '%s' has %d values and '%s' has %d",
          keys[sweep->keys[0]].name, sweep->counts[0], keys[sweep->keys[a]].name, sweep->counts[a]);
  }
  *out = (int)count;
  return STATUS_OK;
}

/* Computes chosen[axis_count]: which value of each axis the setting uses. */
static void config_sweep_choose(const ConfigSweep *sweep, int setting, int *chosen) {
  for (int a = sweep->axis_count - 1; a >= 0; a--) {
    chosen[a] = sweep->zip ? setting : setting % sweep->counts[a];
    if (!sweep->zip) setting /= sweep->counts[a];
  }
}

static Status config_setting_label(Arena *memory, const StudyFile *study, int setting, const char **out) {
  const ConfigAxis *axes = study->axes, *end = axes + study->axis_count;
  size_t size = 1;
  for (const ConfigAxis *axis = axes; axis < end; axis++)
    size += strlen(axis->key) + strlen(axis->texts[setting]) + 3;
  char *label;
  ALLOCATE(memory, label, size);
  *out = axes < end ? label : "default";
  for (const ConfigAxis *axis = axes; axis < end; axis++) {
    if (axis > axes) label = stpcpy(label, ", ");
    label = stpcpy(stpcpy(stpcpy(label, axis->key), "="), axis->texts[setting]);
  }
  return STATUS_OK;
}

static int config_compare_labels(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static Status config_sweep_refuse_twins(Arena *memory, ConfigPlace place, const StudyFile *study) {
  const char **sorted;
  ALLOCATE(memory, sorted, study->setting_count);
  memcpy(sorted, study->setting_labels, (size_t)study->setting_count * sizeof *sorted);
  qsort(sorted, (size_t)study->setting_count, sizeof *sorted, config_compare_labels);
  for (int i = 1; i < study->setting_count; i++)
    if (strcmp(sorted[i - 1], sorted[i]) == 0)
      return config_refuse(place, "key 'sweep': the setting '%s' occurs twice", config_shown(sorted[i]).text);
  return STATUS_OK;
}

static Status config_sweep_make_settings(Arena *memory, const ConfigKey *keys, const ConfigValue *values,
                                         const ConfigSweep *sweep, StudyFile *study) {
  Config *configs;
  const ConfigValue **chosen_values;
  int *chosen;
  size_t count = (size_t)study->setting_count, axes = (size_t)sweep->axis_count;
  ALLOCATE_ARRAYS(memory, count, configs, study->settings, study->setting_labels);
  ALLOCATE(memory, chosen_values, count * axes);
  ALLOCATE(memory, chosen, axes);
  for (size_t s = 0; s < count; s++, chosen_values += axes) {
    config_sweep_choose(sweep, (int)s, chosen);
    for (size_t a = 0; a < axes; a++) chosen_values[a] = &sweep->values[a][chosen[a]];
    configs[s] = (Config){keys, values, sweep->axis_count, sweep->keys, chosen_values};
    study->settings[s] = &configs[s];
  }
  return STATUS_OK;
}

Status config_sweep_expand(Arena *memory, ConfigPlace place, const ConfigGiven *axes, bool zip,
                           const ConfigValue *values, ConfigSweep *sweep, StudyFile *study) {
  *sweep = (ConfigSweep){.axis_count = axes->count, .keys = axes->order, .zip = zip && axes->count > 1};
  ALLOCATE_ARRAYS(memory, axes->count, sweep->counts, sweep->values, study->axes);
  study->axis_count = axes->count;
  for (int a = 0; a < axes->count; a++)
    TRY(config_sweep_read_axis(memory, axes, axes->order[a], &sweep->values[a], &sweep->counts[a]));
  TRY(config_sweep_count(place, axes->keys, sweep, &study->setting_count));
  TRY(config_sweep_make_settings(memory, axes->keys, values, sweep, study));
  for (int a = 0; a < axes->count; a++)
    TRY(config_sweep_fill_axis(memory, &axes->keys[axes->order[a]], a, study));
  for (int s = 0; s < study->setting_count; s++)
    TRY(config_setting_label(memory, study, s, &study->setting_labels[s]));
  return config_sweep_refuse_twins(memory, place, study);
}
