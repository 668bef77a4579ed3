/* The whole study as YAML with every value filled in, and its hash, which a results file carries and a
 * resumed run compares, naming the first difference. For people there is a second text, without the values
 * that are defaults. */
#include "io/config/config_internal.h"
#include "io/digest.h"

#include <string.h>

/* Writes the keys that are not `omitted`, under the headings of their sections; the keys of a section are
 * adjacent. */
static void config_write_keys(FILE *out, const ConfigKey *keys, const ConfigValue *values,
                              const bool *omitted) {
  const char *before = ""; /* the key written before this one, whose sections have their headings */
  for (; keys->name; keys++, values++, omitted++) {
    const char *part = keys->name;
    int depth = 0;
    if (*omitted) continue;
    for (const char *dot; (dot = strchr(part, '.')); part = dot + 1, depth++)
      if (strncmp(before, keys->name, (size_t)(dot + 1 - keys->name)) != 0)
        fprintf(out, "%*s%.*s:\n", 2 * depth, "", (int)(dot - part), part);
    fprintf(out, "%*s%s: ", 2 * depth, "", part);
    config_value_write(out, keys, values);
    fputc('\n', out);
    before = keys->name;
  }
}

static void config_write_text(FILE *out, const char *text) {
  config_value_write(out, &(ConfigKey){.type = KEY_TEXT}, &(ConfigValue){.word = text});
}

/* Marks the values that equal the defaults of their keys. Those already marked have no value and are
 * skipped. */
static Status mark_defaults(Arena *memory, const ConfigKey *keys, const ConfigValue *values, bool *out) {
  for (int i = 0; keys[i].name; i++)
    if (!out[i] && keys[i].fallback) TRY(config_value_is_default(memory, &keys[i], &values[i], &out[i]));
  return STATUS_OK;
}

/* Writes the policies; if `brief`, without options that have their defaults, and without labels that equal
 * the names. */
static Status config_write_policies(Arena *memory, FILE *out, bool brief, const StudyFile *study) {
  fputs(study->policy_count > 0 ? "policies:\n" : "policies: []\n", out);
  for (int p = 0; p < study->policy_count; p++) {
    const ConfigPolicy *policy = &study->policies[p];
    const Config *options = policy->options;
    bool *omitted;
    ALLOCATE(memory, omitted, config_key_count(options->keys) + 1);
    for (int i = 0; options->keys[i].name; i++) omitted[i] = options->values[i].absent;
    if (brief) TRY(mark_defaults(memory, options->keys, options->values, omitted));
    fputs("  - {name: ", out);
    config_write_text(out, policy->name);
    if (!brief || strcmp(policy->label, policy->name) != 0) {
      fputs(", label: ", out);
      config_write_text(out, policy->label);
    }
    for (int i = 0; options->keys[i].name; i++) {
      if (omitted[i]) continue;
      fprintf(out, ", %s: ", options->keys[i].name);
      config_value_write(out, &options->keys[i], &options->values[i]);
    }
    fputs("}\n", out);
  }
  return STATUS_OK;
}

static void config_write_range(FILE *out, const ConfigKey *key, const ConfigRange *range) {
  fputs("{from: ", out);
  config_value_write(out, key, &range->from);
  fputs(", to: ", out);
  config_value_write(out, key, &range->to);
  fprintf(out, ", scale: %s}\n", range->logarithmic ? "log" : "linear");
}

static void config_write_list(FILE *out, const ConfigKey *key, int count, const ConfigValue *values) {
  for (int i = 0; i < count; i++) {
    fputs(i ? ", " : "[", out);
    config_value_write(out, key, &values[i]);
  }
  fputs("]\n", out);
}

static Status config_write_study(Arena *memory, bool brief, const ConfigKey *keys, const ConfigValue *values,
                                 const ConfigSweep *sweep, const StudyFile *study, const char **out) {
  bool *omitted; /* [keys]: absent, swept and so written under sweep, or not to be shown */
  SCOPED(char *, text, memory_free_text);
  size_t size = 0;
  ALLOCATE(memory, omitted, config_key_count(keys));
  for (int i = 0; keys[i].name; i++) omitted[i] = values[i].absent;
  for (int a = 0; a < sweep->axis_count; a++) omitted[sweep->keys[a]] = true;
  if (brief) TRY(mark_defaults(memory, keys, values, omitted));
  FILE *stream = open_memstream(&text, &size);
  if (!stream) return status_set(STATUS_INTERNAL, "out of memory");
  config_write_keys(stream, keys, values, omitted);
  Status status = config_write_policies(memory, stream, brief, study);
  if (sweep->axis_count > 0) fputs("sweep:\n", stream);
  if (sweep->zip) fputs("  zip: true\n", stream);
  for (int a = 0; a < sweep->axis_count; a++) {
    const ConfigKey *key = &keys[sweep->keys[a]];
    fprintf(stream, "  %s: ", key->name);
    if (sweep->ranges[a].given)
      config_write_range(stream, key, &sweep->ranges[a]);
    else
      config_write_list(stream, key, sweep->counts[a], sweep->values[a]);
  }
  if (fclose(stream) != 0) status = status_set(STATUS_INTERNAL, "out of memory");
  return status == STATUS_OK ? arena_print(memory, out, "%s", text) : status;
}

Status config_resolve(Arena *memory, ConfigPlace place, const ConfigKey *keys, const ConfigValue *values,
                      const ConfigSweep *sweep, StudyFile *study) {
  TRY(config_write_study(memory, false, keys, values, sweep, study, &study->resolved));
  TRY(config_write_study(memory, true, keys, values, sweep, study, &study->changed));
  const size_t size = strlen(study->resolved);
  if (size > CONFIG_TEXT_LIMIT)
    return config_refuse(place, "with all values filled in, the study is longer than %d bytes",
                         CONFIG_TEXT_LIMIT);
  return digest_hex(study->resolved, size, study->sha256);
}

/* ---- the first difference between two resolved studies, for the message "resume refused" */

/* The two studies to compare, and where the message goes. */
typedef struct {
  Arena *memory;
  const ConfigNode *root[2];
  size_t size;
  char *out;
} Comparison;

/* Returns the label of a policy, which stands for the whole of it in a list; any other node itself. */
static const ConfigNode *config_label_or_node(const ConfigNode *node) {
  const ConfigNode *label = config_node_child(node, "label");
  return label && label->kind == NODE_SCALAR ? label : node;
}

static void config_print_node(FILE *out, const ConfigNode *node) {
  node = config_label_or_node(node);
  if (node->kind == NODE_SCALAR) {
    fputs(node->text, out);
    return;
  }
  fputc(node->kind == NODE_MAPPING ? '{' : '[', out);
  for (const ConfigNode *child = node->first; child; child = child->next) {
    if (child->key) fprintf(out, "%s: ", child->key);
    config_print_node(out, child);
    if (child->next) fputs(", ", out);
  }
  fputc(node->kind == NODE_MAPPING ? '}' : ']', out);
}

/* Writes the message. A side shows its value or, if it has none, the sweep of that key. */
static bool config_difference_report(const Comparison *self, const char *path, const ConfigNode *old_node,
                                     const ConfigNode *new_node) {
  const ConfigNode *const nodes[] = {old_node, new_node};
  snprintf(self->out, self->size, "%s: ", path);
  for (int side = 0; side < 2; side++) {
    const ConfigNode *node = nodes[side], *sweep = config_node_child(self->root[side], "sweep");
    const ConfigNode *swept = node ? NULL : config_node_child(sweep, path);
    char text[256] = "(absent)"; /* config_shown cuts it much shorter */
    FILE *stream = node || swept ? fmemopen(text, sizeof text, "w") : NULL;
    if (stream) {
      config_print_node(stream, node ? node : swept);
      fclose(stream);
      text[sizeof text - 1] = '\0';
    }
    config_append(self->size, self->out, "%s%s%s", side == 0 ? "" : " -> ", swept ? "swept over " : "",
                  config_shown(text).text);
  }
  return true;
}

/* Returns whether two nodes are shown as the same: policies are if they have the same label. */
static bool config_nodes_equal(const ConfigNode *a, const ConfigNode *b) {
  const ConfigNode *left = config_label_or_node(a), *right = config_label_or_node(b);
  if (left != a && right != b) a = left, b = right;
  if (a->kind != b->kind || a->count != b->count) return false;
  if (a->kind == NODE_SCALAR)
    return strcmp(a->text, b->text) == 0 && config_node_null(a) == config_node_null(b);
  for (a = a->first, b = b->first; a; a = a->next, b = b->next)
    if ((a->key && strcmp(a->key, b->key) != 0) || !config_nodes_equal(a, b)) return false;
  return true;
}

/* Finds the first difference between two nodes, one of which may be absent (NULL), with this name in the
 * section `parent`. */
static bool config_nodes_differ(Comparison *self, const char *parent, const char *name, const ConfigNode *a,
                                const ConfigNode *b) {
  const ConfigNode *one = a ? a : b;
  const char *path;
  if (arena_print(self->memory, &path, "%s%s%s", parent, *parent ? "." : "", name) != STATUS_OK)
    return config_difference_report(self, parent, a, b);
  /* If only one side has a section, its first key is the difference, not the section. */
  if (one->kind == NODE_MAPPING && (a && b ? b->kind == NODE_MAPPING : one->first != NULL)) {
    for (const ConfigNode *child = a ? a->first : NULL; child; child = child->next)
      if (config_nodes_differ(self, path, child->key, child, config_node_child(b, child->key))) return true;
    for (const ConfigNode *child = b ? b->first : NULL; child; child = child->next)
      if (!config_node_child(a, child->key) && config_nodes_differ(self, path, child->key, NULL, child))
        return true;
    return false;
  }
  if (!a || !b || !config_nodes_equal(a, b)) return config_difference_report(self, path, a, b);
  for (a = a->first, b = b->first; a; a = a->next, b = b->next) {
    const ConfigNode *label = config_label_or_node(a);
    if (label != a && config_nodes_differ(self, path, label->text, a, b)) return true;
  }
  return false;
}

bool config_first_difference(const char *old_resolved, const char *new_resolved, size_t size, char *out) {
  SCRATCH_ARENA(memory);
  Comparison self = {.memory = &memory, .size = size, .out = out};
  const char *texts[2] = {old_resolved, new_resolved};
  bool different = false;
  if (size > 0) *out = '\0';
  for (int side = 0; side < 2 && !different; side++) {
    ConfigNode *root = NULL;
    different =
        config_tree_parse(&memory, side == 0 ? "old" : "new", true, texts[side], &root) != STATUS_OK || !root;
    self.root[side] = root;
    if (different) snprintf(out, size, "the %s configuration cannot be read", side == 0 ? "old" : "new");
  }
  return different || config_nodes_differ(&self, "", "", self.root[0], self.root[1]);
}
