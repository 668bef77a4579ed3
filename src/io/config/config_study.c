/* Reads a study: the file and each --set are layers over the table of keys, from which policies, values and
 * settings follow. */
#include "io/config/config_internal.h"

#include "core/memory.h"

#include <string.h>

/* What one source (the file, or one --set) gives; also used for what all of them give together. */
typedef struct {
  ConfigGiven values, axes;
  const ConfigNode *zip, *policies;
} Layer;

static const ConfigKey no_keys[] = {{.name = NULL}};

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

static bool is_list(const ConfigKey *key) { return key->type == KEY_INTS || key->type == KEY_WORDS; }

/* Merges `upper` into `lower`, which it overrides. In a --set, a list for a scalar key is its sweep, and a
 * single value removes the sweep. */
static void config_layer_merge(const Layer *upper, bool set, Layer *lower) {
  for (int i = 0; i < upper->values.count; i++) {
    int key = upper->values.order[i];
    const ConfigNode *node = upper->values.node[key];
    bool sweeps = set && node->kind == NODE_SEQUENCE && !is_list(&upper->values.keys[key]);
    config_given_put(sweeps ? &lower->axes : &lower->values, key, node);
    if (set && !sweeps && lower->axes.node[key]) config_given_remove(&lower->axes, key);
  }
  for (int i = 0; i < upper->axes.count; i++)
    config_given_put(&lower->axes, upper->axes.order[i], upper->axes.node[upper->axes.order[i]]);
  if (upper->zip) lower->zip = upper->zip;
  if (upper->policies) lower->policies = upper->policies;
}

static Status config_layer_take_file(Arena *memory, ConfigPlace place, const char *text, Layer *all) {
  ConfigNode *root;
  Layer layer;
  TRY(config_tree_parse(memory, place.source, true, text, &root));
  if (!root || config_node_null(root)) return config_refuse(place, "the study file is empty");
  if (root->kind != NODE_MAPPING)
    return config_refuse(root->place, "expected a mapping of keys, such as name: figure2");
  TRY(config_layer_new(memory, all->values.keys, &layer));
  for (const ConfigNode *child = root->first; child; child = child->next)
    TRY(config_layer_take_entry(memory, child, &layer));
  config_layer_merge(&layer, false, all);
  return STATUS_OK;
}

static Status config_layer_take_set(Arena *memory, const char *text, Layer *all) {
  ConfigNode *node;
  Layer layer;
  TRY(config_tree_assignment(memory, "--set", text, &node));
  TRY(config_layer_new(memory, all->values.keys, &layer));
  TRY(config_layer_take_entry(memory, node, &layer));
  config_layer_merge(&layer, true, all);
  return STATUS_OK;
}

/* Reads the label of a policy; everything else in its mapping is an option. */
static Status config_read_policy_label(Arena *memory, const ConfigNode *node, const char *owner,
                                       ConfigPolicy *policy) {
  static const ConfigKey label_key = {.name = "label", .type = KEY_TEXT, .fallback = "null"};
  const ConfigNode *label = node->kind == NODE_MAPPING ? config_node_child(node, "label") : NULL;
  ConfigValue value = {.word = NULL};
  if (label) TRY(config_value_parse(memory, &label_key, owner, "label", label, &value));
  policy->label = value.word ? value.word : policy->name;
  if (value.word && (!*value.word || strlen(value.word) > CONFIG_LABEL_LIMIT))
    return config_refuse(label->place, "key '%slabel': a label must have 1 to %d bytes", owner,
                         CONFIG_LABEL_LIMIT);
  return STATUS_OK;
}

static Status config_read_policy_options(Arena *memory, const ConfigKey *keys, const ConfigNode *node,
                                         const char *owner, ConfigPolicy *policy) {
  ConfigGiven given;
  ConfigValue *values;
  Config *options;
  ASSERT(config_key_index(keys, "name") < 0 && config_key_index(keys, "label") < 0);
  TRY(config_given_new(memory, keys, &given));
  for (const ConfigNode *child = node->kind == NODE_MAPPING ? node->first : NULL; child; child = child->next)
    if (strcmp(child->key, "name") != 0 && strcmp(child->key, "label") != 0)
      TRY(config_given_take(memory, owner, child->key, child, &given));
  TRY(config_table_values(memory, owner, node->place, &given, NULL, &values));
  ALLOCATE(memory, options, 1);
  *options = (Config){.keys = keys, .values = values};
  policy->options = options;
  return STATUS_OK;
}

static Status config_read_policy(Arena *memory, const ConfigSchema *schema, const ConfigNode *node,
                                 ConfigPolicy *policy) {
  const ConfigKey name_key = {.name = "policies", .type = KEY_WORD, .word = schema->policy_name};
  const ConfigNode *name = node->kind == NODE_MAPPING ? config_node_child(node, "name") : node;
  const char *owner;
  ConfigValue value;
  if (!name)
    return config_refuse(node->place, "key 'policies': a policy needs a name, such as {name: ts, label: x}");
  TRY(config_value_parse(memory, &name_key, "", "policies", name, &value));
  policy->name = value.word;
  TRY(arena_print(memory, &owner, "policies.%s.", policy->name));
  TRY(config_read_policy_label(memory, node, owner, policy));
  const ConfigKey *keys = schema->policy_keys ? schema->policy_keys(policy->name) : NULL;
  return config_read_policy_options(memory, keys ? keys : no_keys, node, owner, policy);
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

static Status config_read_zip(Arena *memory, const ConfigNode *node, bool *out) {
  static const ConfigKey zip_key = {.name = "zip", .type = KEY_BOOL};
  ConfigValue value = {.boolean = false};
  if (node) TRY(config_value_parse(memory, &zip_key, "sweep.", "zip", node, &value));
  *out = value.boolean;
  return STATUS_OK;
}

static Status config_study_build(StudyFile *self, ConfigPlace place, const char *text,
                                 const ConfigSchema *schema, int set_count, const char *const *sets) {
  Arena *memory = &self->memory;
  Layer all;
  ConfigValue *values;
  ConfigSweep sweep;
  bool zip;
  TRY(config_layer_new(memory, schema->keys, &all));
  TRY(config_layer_take_file(memory, place, text, &all));
  for (int i = 0; i < set_count; i++) TRY(config_layer_take_set(memory, sets[i], &all));
  TRY(config_table_values(memory, "", place, &all.values, &all.axes, &values));
  TRY(config_read_policies(memory, schema, all.policies, self));
  TRY(config_read_zip(memory, all.zip, &zip));
  TRY(config_sweep_expand(memory, place, &all.axes, zip, values, &sweep, self));
  return config_resolve(memory, place, schema->keys, values, &sweep, self);
}

Status config_study_parse(const char *name, const char *text, const ConfigSchema *schema, int set_count,
                          const char *const *sets, StudyFile **out) {
  StudyFile *self;
  *out = NULL;
  NEW(self, 1);
  const char *source;
  Status status = arena_print(&self->memory, &source, "%s", name);
  if (status == STATUS_OK)
    status = config_study_build(self, (ConfigPlace){.source = source}, text, schema, set_count, sets);
  if (status == STATUS_OK)
    *out = self;
  else
    config_study_free(self);
  return status;
}

void config_study_free(StudyFile *study) {
  if (!study) return;
  arena_free(&study->memory);
  free(study);
}
