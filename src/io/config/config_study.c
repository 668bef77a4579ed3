/* Reads a study: the text of a file; the file and each --set as layers over the table of keys, from which
 * policies, values and settings follow. */
#include "io/config/config_internal.h"
#include "io/input.h"
#include "io/store.h"

#include <string.h>

/* ---- the text: UTF-8 without NUL, of bounded size */

/* Checks that bytes[size] can be parsed: of no other encoding or format, and without NUL. */
static Status config_text_check(const char *source, size_t size, const char *bytes) {
  ConfigPlace place = {.source = source};
  const char *kind = input_kind(size, bytes);
  if (kind) return config_refuse(place, "this is %s; a study file is text in UTF-8", kind);
  const size_t text = strnlen(bytes, size);
  if (text == size) return STATUS_OK;
  place.line = place.column = 1; /* columns are counted in characters */
  for (size_t i = 0; i < text; i++) {
    if (((unsigned char)bytes[i] & 0xC0) != 0x80) place.column++;
    if (bytes[i] == '\n') {
      place.line++;
      place.column = 1;
    }
  }
  return config_refuse(place, "a NUL byte; a study file is text in UTF-8");
}

Status config_study_text(const char *path, char **out) {
  static const char mark[] = "\xEF\xBB\xBF";
  SCOPED(char *, text, memory_free_text);
  size_t size;
  *out = NULL;
  TRY(store_read_text(path, CONFIG_TEXT_LIMIT, &text, &size));
  TRY(config_text_check(path, size, text));
  if (strncmp(text, mark, 3) == 0) memmove(text, text + 3, size - 2);
  *out = text;
  text = NULL;
  return STATUS_OK;
}

/* ---- layers */

/* What one source (the file, or one --set) gives; also used for what all of them give together. */
typedef struct {
  ConfigGiven values, axes;
  const ConfigNode *zip, *policies;
} Layer;

static Status config_layer_new(Arena *memory, const ConfigKey *keys, Layer *layer) {
  *layer = (Layer){.zip = NULL};
  TRY(config_given_new(memory, keys, &layer->values));
  layer->values.top = true;
  return config_given_new(memory, keys, &layer->axes);
}

/* Adds the entry `name: node` of `sweep` to a layer. */
static Status config_layer_take_axis(Arena *memory, const char *name, const ConfigNode *node, Layer *layer) {
  if (strcmp(name, "zip") != 0) return config_given_take(memory, "sweep.", name, node, &layer->axes);
  if (layer->zip) return config_refuse(node->key_place, "key 'sweep.zip': given twice");
  layer->zip = node;
  return STATUS_OK;
}

/* Adds one entry at the top level of the file, or one --set, to a layer. */
static Status config_layer_take_entry(Arena *memory, const ConfigNode *node, Layer *layer) {
  if (strcmp(node->key, "policies") == 0) return layer->policies = node, STATUS_OK;
  if (strncmp(node->key, "sweep.", 6) == 0) return config_layer_take_axis(memory, node->key + 6, node, layer);
  if (strcmp(node->key, "sweep") != 0) return config_given_take(memory, "", node->key, node, &layer->values);
  if (config_node_null(node)) return STATUS_OK;
  if (node->kind != NODE_MAPPING)
    return config_refuse(node->place,
                         "key 'sweep': expects a mapping of keys to lists, such as {problem.noise: [1, 2]}");
  for (const ConfigNode *child = node->first; child; child = child->next)
    TRY(config_layer_take_axis(memory, child->key, child, layer));
  return STATUS_OK;
}

/* Merges a --set into `lower`, which it overrides: a list for a scalar key is its sweep, and a single value
 * removes the sweep. */
static void config_layer_merge(const Layer *upper, Layer *lower) {
  for (int i = 0; i < upper->values.count; i++) {
    int key = upper->values.order[i];
    const ConfigNode *node = upper->values.node[key];
    const ConfigKey *row = &upper->values.keys[key];
    const bool sweeps =
        node->kind == NODE_SEQUENCE && !config_key_is_list(row) && row->type != KEY_REAL_OR_INTS;
    config_given_put(sweeps ? &lower->axes : &lower->values, key, node);
    if (!sweeps && lower->axes.node[key]) config_given_remove(&lower->axes, key);
  }
  for (int i = 0; i < upper->axes.count; i++)
    config_given_put(&lower->axes, upper->axes.order[i], upper->axes.node[upper->axes.order[i]]);
  if (upper->zip) lower->zip = upper->zip;
  if (upper->policies) lower->policies = upper->policies;
}

/* Reads a policy: its name alone, or a mapping of its name, its label and its options. */
static Status config_read_policy(Arena *memory, const ConfigSchema *schema, const ConfigNode *node,
                                 ConfigPolicy *policy) {
  static const ConfigKey no_keys[] = {{.name = NULL}},
                         label_key = {.name = "label", .type = KEY_TEXT, .fallback = "null"};
  const ConfigKey name_key = {.name = "policies", .type = KEY_WORD, .word = schema->policy_name};
  const ConfigNode *name = node->kind == NODE_MAPPING ? config_node_child(node, "name") : node,
                   *label = config_node_child(node, "label");
  const char *owner;
  ConfigValue value, *values;
  ConfigGiven given;
  Config *options;
  if (!name)
    return config_refuse(node->place, "key 'policies': a policy needs a name, such as {name: ts, label: x}");
  TRY(config_value_parse(memory, &name_key, "", "policies", name, &value));
  policy->name = policy->label = value.word;
  TRY(arena_print(memory, &owner, "policies.%s.", policy->name));
  if (label) TRY(config_value_parse(memory, &label_key, owner, "label", label, &value));
  if (label && value.word) {
    if (!*value.word || strlen(value.word) > CONFIG_LABEL_LIMIT)
      return config_refuse(label->place, "key '%slabel': a label must have 1 to %d bytes", owner,
                           CONFIG_LABEL_LIMIT);
    policy->label = value.word;
  }
  const ConfigKey *keys = schema->policy_keys ? schema->policy_keys(policy->name) : NULL;
  if (!keys) keys = no_keys;
  ASSERT(config_key_index(keys, "name") < 0 && config_key_index(keys, "label") < 0);
  TRY(config_given_new(memory, keys, &given));
  for (const ConfigNode *child = node->kind == NODE_MAPPING ? node->first : NULL; child; child = child->next)
    if (child != name && child != label) TRY(config_given_take(memory, owner, child->key, child, &given));
  TRY(config_table_values(memory, owner, node->place, &given, NULL, &values));
  ALLOCATE(memory, options, 1);
  *options = (Config){.keys = keys, .values = values};
  policy->options = options;
  return STATUS_OK;
}

static Status config_read_policies(Arena *memory, const ConfigSchema *schema, const ConfigNode *list,
                                   StudyFile *study) {
  const ConfigNode *node = list;
  int count = 1;
  if (list && list->kind == NODE_SEQUENCE) node = list->first, count = list->count;
  if (!list || config_node_null(list)) count = 0;
  if (count > CONFIG_POLICY_LIMIT)
    return config_refuse(list->place, "key 'policies': %d policies; at most %d are allowed", count,
                         CONFIG_POLICY_LIMIT);
  ALLOCATE(memory, study->policies, count);
  for (int i = 0; i < count; i++, node = node->next) {
    ConfigPolicy *policies = study->policies;
    TRY(config_read_policy(memory, schema, node, &policies[i]));
    for (int j = 0; j < i; j++)
      if (strcmp(policies[j].label, policies[i].label) == 0)
        return config_refuse(node->place,
                             "key 'policies': two policies have the label '%s'; give one of them another "
                             "label, as in {name: %s, label: other}",
                             policies[i].label, policies[i].name);
  }
  study->policy_count = count;
  return STATUS_OK;
}

/* ---- settings: the product of the lists of values, first axis slowest, or all lists in step (zip) */

static Status config_sweep_read_axis(Arena *memory, const ConfigGiven *axes, int key, ConfigValue **values,
                                     int *count) {
  const ConfigKey *row = &axes->keys[key];
  const ConfigNode *list = axes->node[key];
  const char *name = row->name;
  if (row->fixed || config_key_is_list(row))
    return config_refuse(list->key_place, "key 'sweep.%s': '%s' cannot be swept", name, name);
  if (list->kind != NODE_SEQUENCE || list->count == 0)
    return config_refuse(list->place, "key 'sweep.%s': expects a list of values, such as [a, b]", name);
  if (list->count > CONFIG_SETTING_LIMIT)
    return config_refuse(list->place, "key 'sweep.%s': more than %d settings", name, CONFIG_SETTING_LIMIT);
  ALLOCATE(memory, *values, list->count);
  *count = 0;
  for (const ConfigNode *item = list->first; item; item = item->next) {
    if (item->kind == NODE_SEQUENCE && row->type == KEY_REAL_OR_INTS)
      return config_refuse(item->place, "key 'sweep.%s': lists cannot be swept; only numbers can", name);
    TRY(config_value_parse(memory, row, "sweep.", name, item, &(*values)[(*count)++]));
  }
  return STATUS_OK;
}

/* Fills study->axes[a], which is what callers see of an axis: text as it is, a number in its shortest form.
 */
static Status config_sweep_fill_axis(Arena *memory, const ConfigKey *key, int a, StudyFile *study) {
  bool numeric = key->type == KEY_INT || key->type == KEY_REAL || key->type == KEY_REAL_OR_INTS;
  double *numbers;
  const char **texts;
  ALLOCATE(memory, numbers, study->setting_count);
  ALLOCATE(memory, texts, study->setting_count);
  for (int s = 0; s < study->setting_count; s++) {
    const ConfigValue *value = study->settings[s]->axis_values[a];
    char text[32] = "null";
    numeric = numeric && !value->word;
    numbers[s] = key->type == KEY_INT ? (double)value->integer : value->real;
    switch (key->type) {
    case KEY_INT: snprintf(text, sizeof text, "%lld", (long long)value->integer); break;
    case KEY_REAL:
    case KEY_REAL_OR_INTS: config_real_text(value->real, text); break;
    case KEY_BOOL: strcpy(text, value->boolean ? "true" : "false"); break;
    default: break;
    }
    TRY(arena_print(memory, &texts[s], "%s", value->word ? value->word : text));
  }
  study->axes[a] = (ConfigAxis){key->name, numeric, numbers, texts};
  return STATUS_OK;
}

static int config_compare_labels(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Fills the settings, labels and axes of `study`. */
static Status config_sweep_expand(Arena *memory, ConfigPlace place, const ConfigGiven *axes, bool zip,
                                  const ConfigValue *values, ConfigSweep *sweep, StudyFile *study) {
  Config *configs;
  const ConfigValue **chosen; /* [settings, axes] */
  const char **sorted; /* labels */
  *sweep = (ConfigSweep){.axis_count = axes->count, .keys = axes->order, .zip = zip && axes->count > 1};
  ALLOCATE(memory, sweep->counts, axes->count);
  ALLOCATE(memory, sweep->values, axes->count);
  ALLOCATE(memory, study->axes, axes->count);
  study->axis_count = axes->count;
  for (int a = 0; a < axes->count; a++)
    TRY(config_sweep_read_axis(memory, axes, axes->order[a], &sweep->values[a], &sweep->counts[a]));
  int64_t count = sweep->zip ? sweep->counts[0] : 1;
  for (int a = 0; a < axes->count; a++) {
    if (!sweep->zip) count *= sweep->counts[a];
    if (count > CONFIG_SETTING_LIMIT)
      return config_refuse(place,
                           "key 'sweep': more than %d settings; make the lists shorter, or use zip: true",
                           CONFIG_SETTING_LIMIT);
    if (sweep->zip && sweep->counts[a] != sweep->counts[0])
      return config_refuse(
          place, "key 'sweep': zip: true needs lists of equal length, but '%s' has %d values and '%s' has %d",
          axes->keys[sweep->keys[0]].name, sweep->counts[0], axes->keys[sweep->keys[a]].name,
          sweep->counts[a]);
  }
  study->setting_count = (int)count;
  ALLOCATE(memory, configs, study->setting_count);
  ALLOCATE(memory, study->settings, study->setting_count);
  ALLOCATE_ARRAYS(memory, study->setting_count, &study->setting_labels, &sorted);
  ALLOCATE(memory, chosen, study->setting_count * axes->count);
  for (int s = 0; s < study->setting_count; s++, chosen += axes->count) {
    configs[s] = (Config){.keys = axes->keys,
                          .values = values,
                          .axis_count = axes->count,
                          .axis_keys = sweep->keys,
                          .axis_values = chosen};
    study->settings[s] = &configs[s];
    for (int a = axes->count - 1, rest = s; a >= 0; a--) {
      chosen[a] = &sweep->values[a][sweep->zip ? s : rest % sweep->counts[a]];
      rest /= sweep->counts[a];
    }
  }
  for (int a = 0; a < axes->count; a++)
    TRY(config_sweep_fill_axis(memory, &axes->keys[axes->order[a]], a, study));
  for (int s = 0; s < study->setting_count; s++) {
    const char *label = axes->count > 0 ? "" : "default";
    for (int a = 0; a < axes->count; a++)
      TRY(arena_print(memory, &label, "%s%s%s=%s", label, a > 0 ? ", " : "", study->axes[a].key,
                      study->axes[a].texts[s]));
    study->setting_labels[s] = sorted[s] = label;
  }
  qsort(sorted, (size_t)study->setting_count, sizeof *sorted, config_compare_labels);
  for (int s = 1; s < study->setting_count; s++)
    if (strcmp(sorted[s - 1], sorted[s]) == 0)
      return config_refuse(place, "key 'sweep': the setting '%s' occurs twice", config_shown(sorted[s]).text);
  return STATUS_OK;
}

/* ---- all of it */

Status config_study_parse(const char *name, const char *text, const ConfigSchema *schema, int set_count,
                          const char *const *sets, StudyFile **out) {
  SCOPED(StudyFile *, self, config_study_drop);
  static const ConfigKey zip_key = {.name = "zip", .type = KEY_BOOL};
  Layer all, set;
  ConfigNode *node;
  ConfigValue *values, zip = {.boolean = false};
  ConfigSweep sweep;
  ConfigPlace place = {.line = 0};
  *out = NULL;
  NEW(self, 1);
  Arena *memory = &self->memory;
  TRY(arena_print(memory, &place.source, "%s", name));
  TRY(config_tree_parse(memory, place.source, true, text, &node));
  if (!node || config_node_null(node)) return config_refuse(place, "the study file is empty");
  if (node->kind != NODE_MAPPING)
    return config_refuse(node->place, "expected a mapping of keys, such as name: figure2");
  TRY(config_layer_new(memory, schema->keys, &all));
  for (const ConfigNode *child = node->first; child; child = child->next)
    TRY(config_layer_take_entry(memory, child, &all));
  for (int i = 0; i < set_count; i++) {
    TRY(config_tree_assignment(memory, "--set", sets[i], &node));
    TRY(config_layer_new(memory, schema->keys, &set));
    TRY(config_layer_take_entry(memory, node, &set));
    config_layer_merge(&set, &all);
  }
  TRY(config_table_values(memory, "", place, &all.values, &all.axes, &values));
  TRY(config_read_policies(memory, schema, all.policies, self));
  if (all.zip) TRY(config_value_parse(memory, &zip_key, "sweep.", "zip", all.zip, &zip));
  TRY(config_sweep_expand(memory, place, &all.axes, zip.boolean, values, &sweep, self));
  TRY(config_resolve(memory, place, schema->keys, values, &sweep, self));
  *out = self;
  self = NULL;
  return STATUS_OK;
}

void config_study_free(StudyFile *study) {
  if (!study) return;
  arena_free(&study->memory);
  free(study);
}
