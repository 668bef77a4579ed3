/* Finds the first difference between two resolved studies, for the message "resume refused". */
#include "io/config/config_internal.h"

#include <string.h>

/* The two studies to compare, and where the message goes. */
typedef struct {
  Arena memory;
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

/* Shows one side of the message: the value or, if there is none, the sweep of that key. *swept is what to
 * write before it. */
static ConfigShown config_difference_side(const Comparison *self, int side, const char *path,
                                          const ConfigNode *node, const char **swept) {
  const ConfigNode *sweep = self->root[side] ? config_node_child(self->root[side], "sweep") : NULL;
  char text[256] = "(absent)"; /* config_shown cuts it much shorter */
  *swept = !node && sweep && (node = config_node_child(sweep, path)) ? "swept over " : "";
  FILE *stream = node ? fmemopen(text, sizeof text, "w") : NULL;
  if (stream) {
    config_print_node(stream, node);
    fclose(stream);
    text[sizeof text - 1] = '\0';
  }
  return config_shown(text);
}

static bool config_difference_report(const Comparison *self, const char *path, const ConfigNode *old_node,
                                     const ConfigNode *new_node) {
  const char *old_swept, *new_swept;
  const ConfigShown old_text = config_difference_side(self, 0, path, old_node, &old_swept),
                    new_text = config_difference_side(self, 1, path, new_node, &new_swept);
  snprintf(self->out, self->size, "%s: %s%s -> %s%s", path, old_swept, old_text.text, new_swept,
           new_text.text);
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

static bool config_nodes_differ(Comparison *self, const char *path, const ConfigNode *a, const ConfigNode *b);

static bool config_child_differs(Comparison *self, const char *path, const char *name, const ConfigNode *a,
                                 const ConfigNode *b) {
  const char *child_path;
  if (arena_print(&self->memory, &child_path, "%s%s%s", path, *path ? "." : "", name) != STATUS_OK)
    return config_difference_report(self, path, a, b);
  if (!a || !b) {
    /* A section that only one side has: its first key is the difference, not the section. */
    const ConfigNode *only = a ? a : b;
    if (only->kind == NODE_MAPPING && only->first)
      return config_child_differs(self, child_path, only->first->key, a ? only->first : NULL,
                                  b ? only->first : NULL);
    return config_difference_report(self, child_path, a, b);
  }
  return config_nodes_differ(self, child_path, a, b);
}

static bool config_nodes_differ(Comparison *self, const char *path, const ConfigNode *a,
                                const ConfigNode *b) {
  if (a->kind == NODE_MAPPING && b->kind == NODE_MAPPING) {
    for (const ConfigNode *child = a->first; child; child = child->next)
      if (config_child_differs(self, path, child->key, child, config_node_child(b, child->key))) return true;
    for (const ConfigNode *child = b->first; child; child = child->next)
      if (!config_node_child(a, child->key) && config_child_differs(self, path, child->key, NULL, child))
        return true;
    return false;
  }
  if (!config_nodes_equal(a, b)) return config_difference_report(self, path, a, b);
  for (a = a->first, b = b->first; a; a = a->next, b = b->next) {
    const ConfigNode *label = config_label_or_node(a);
    if (label != a && config_child_differs(self, path, label->text, a, b)) return true;
  }
  return false;
}

bool config_first_difference(const char *old_resolved, const char *new_resolved, size_t size, char *out) {
  Comparison self = {.size = size, .out = out};
  const char *texts[2] = {old_resolved, new_resolved};
  bool different = false;
  if (size > 0) *out = '\0';
  for (int side = 0; side < 2 && !different; side++) {
    ConfigNode *root = NULL;
    different =
        config_tree_parse(&self.memory, side == 0 ? "old" : "new", true, texts[side], &root) != STATUS_OK ||
        !root;
    self.root[side] = root;
    if (different) snprintf(out, size, "the %s configuration cannot be read", side == 0 ? "old" : "new");
  }
  different = different || config_nodes_differ(&self, "", self.root[0], self.root[1]);
  arena_free(&self.memory);
  return different;
}
