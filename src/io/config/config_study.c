/* Reads a study: the text of a file; the file and each --set as layers over the table of keys, from which
 * policies and values follow; config_sweep.c expands the settings. */
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
  if (strcmp(node->key, "zip") == 0)
    return config_refuse(node->key_place, "key 'zip': it belongs under sweep, as in " CONFIG_ZIP_EXAMPLE);
  if (strcmp(node->key, "sweep") != 0) return config_given_take(memory, "", node->key, node, &layer->values);
  if (config_node_null(node)) return STATUS_OK;
  if (node->kind != NODE_MAPPING)
    return config_refuse(node->place,
                         "key 'sweep': expects a mapping of keys to lists, such as {problem.noise: [1, 2]}");
  for (const ConfigNode *child = node->first; child; child = child->next)
    TRY(config_layer_take_axis(memory, child->key, child, layer));
  return STATUS_OK;
}

/* Merges a --set into `lower`, which it overrides: a list or a range for a scalar key is its sweep, and a
 * single value removes the sweep. */
static void config_layer_merge(const Layer *upper, Layer *lower) {
  for (int i = 0; i < upper->values.count; i++) {
    int key = upper->values.order[i];
    const ConfigNode *node = upper->values.node[key];
    const ConfigKey *row = &upper->values.keys[key];
    const bool list =
        config_key_is_list(row) || (row->type == KEY_REAL_OR_INTS && node->kind != NODE_MAPPING);
    const bool sweeps = node->kind != NODE_SCALAR && !list;
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

/* ---- all of it */

Status config_study_parse(const char *name, const char *text, const ConfigSchema *schema, int set_count,
                          const char *const *sets, StudyFile **out) {
  SCOPED(StudyFile *, self, config_study_drop);
  Layer all, set;
  ConfigNode *node;
  ConfigValue *values;
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
  const ConfigSweepSource source = {
      .place = place, .given = &all.values, .axes = &all.axes, .zip = all.zip, .values = values};
  TRY(config_sweep_expand(memory, &source, &sweep, self));
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
