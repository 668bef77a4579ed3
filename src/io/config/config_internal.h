/* Shared by the files config*.c: the YAML tree with positions in the source, values, and tables. */
#pragma once

#include "io/config/config.h"

#include <stddef.h>

enum {
  CONFIG_TEXT_LIMIT = 1 << 20, /* bytes of a study file, and of its resolved text */
  CONFIG_SCALAR_LIMIT = 4096, /* bytes of one scalar: long enough for a path */
  CONFIG_LABEL_LIMIT = 200, /* bytes of a policy's label */
  CONFIG_DEPTH_LIMIT = 32, /* nested lists and mappings */
  CONFIG_MAPPING_LIMIT = 1000, /* keys of one mapping */
  CONFIG_POLICY_LIMIT = 1000, /* policies of a study */
  CONFIG_SETTING_LIMIT = 100000 /* settings of a study */
};

/* A position in a source, counted from 1. Line 0 is the source as a whole, as for "--set a=b". */
typedef struct {
  const char *source;
  int line, column;
} ConfigPlace;

/* Returns STATUS_INPUT with the message "source:line:column: ...". */
Status config_refuse(ConfigPlace place, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A text cut to a length that fits into a message, never within a character, on one line. */
typedef struct {
  char text[84];
} ConfigShown;
ConfigShown config_shown(const char *text);

/* One node of a YAML tree (config_yaml.c). A child of a mapping carries its own key. */
typedef enum { NODE_SCALAR, NODE_SEQUENCE, NODE_MAPPING } ConfigNodeKind;
typedef struct ConfigNode ConfigNode;
struct ConfigNode {
  ConfigNodeKind kind;
  ConfigPlace place, key_place;
  const char *key; /* NULL in a sequence */
  const char *text; /* of a scalar */
  bool plain; /* a scalar without quotes */
  int count; /* children */
  ConfigNode *first; /* first child */
  ConfigNode *next; /* next sibling */
};

/* Parses one YAML document; *out is NULL if there is none. Without `lines`, all positions are the source as a
 * whole. */
Status config_tree_parse(Arena *memory, const char *source, bool lines, const char *text, ConfigNode **out);
/* Parses "key=value" into a node that carries its key; `what` ("--set") names it in messages. A missing value
 * is null. */
Status config_tree_assignment(Arena *memory, const char *what, const char *text, ConfigNode **out);
bool config_node_null(const ConfigNode *node);
/* Returns the child with this key; NULL if there is none, or if the node is NULL or not a mapping. */
const ConfigNode *config_node_child(const ConfigNode *node, const char *key);

/* One checked value (config_value.c). The type of its key determines which members are used. */
typedef struct {
  bool absent; /* given in parts, or a part of a key that is not */
  const char *word; /* WORD, TEXT, or a word in place of a number; otherwise NULL, also for an absent text */
  int64_t integer;
  double real;
  bool boolean;
  int count;
  const int64_t *integers; /* [count] */
  const char *const *words; /* [count] */
} ConfigValue;

/* Checks `node` against `key` and converts it; NULL gives the default. `owner` and `path` ("policies.vits2."
 * and "steps") name it in messages. */
Status config_value_parse(Arena *memory, const ConfigKey *key, const char *owner, const char *path,
                          const ConfigNode *node, ConfigValue *out);
/* Finds whether the value is the default of its key, which must have one. */
Status config_value_is_default(Arena *memory, const ConfigKey *key, const ConfigValue *value, bool *out);
/* Writes the value so that it reads back as the same value. */
void config_value_write(FILE *out, const ConfigKey *key, const ConfigValue *value);

/* Writes a real to out[32] with 15 to 17 digits, the fewest that read back as the same number. */
void config_real_text(double value, char *out);

/* Writes what a key allows, for a message: "an integer in [1, 10], or all". */
void config_allowed(const ConfigKey *key, size_t size, char *out);
/* Appends formatted text to the string in out[size], which is cut to size as by snprintf. */
void config_append(size_t size, char *out, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The closest of the names offered so far (config_table.c). Names are not copied. */
typedef struct {
  const char *typo, *name;
  int length, distance;
} ConfigNearest;
/* Offers every word of a key. */
void config_nearest_offer_words(ConfigNearest *nearest, const ConfigKey *key);
/* Appends "; did you mean 'z'?" if a close name was offered. */
void config_nearest_append(const ConfigNearest *nearest, size_t size, char *out);

/* The nodes that a source gives for the keys of one table (config_table.c). */
typedef struct {
  const ConfigKey *keys;
  const ConfigNode **node; /* [keys], NULL if not given */
  int *order; /* [count], keys in order of appearance */
  int count;
  bool top; /* top level of a study file, where "policies" and "sweep" are allowed too */
} ConfigGiven;

int config_key_count(const ConfigKey *keys);
Status config_given_new(Arena *memory, const ConfigKey *keys, ConfigGiven *given);
/* Adds the entry `path: node`, or all entries under it if `path` is a section. */
Status config_given_take(Arena *memory, const char *owner, const char *path, const ConfigNode *node,
                         ConfigGiven *given);
/* Sets or replaces the node of a key. Removes its parts if it is now given whole, and the whole if it is a
 * part. */
void config_given_put(ConfigGiven *given, int key, const ConfigNode *node);
void config_given_remove(ConfigGiven *given, int key);
/* Reads the value of every key into values[keys]. A key that is in `swept` (which may be NULL) needs none. */
Status config_table_values(Arena *memory, const char *owner, ConfigPlace place, const ConfigGiven *given,
                           const ConfigGiven *swept, ConfigValue **values);

struct Config {
  const ConfigKey *keys;
  const ConfigValue *values; /* [keys] */
  int axis_count;
  const int *axis_keys; /* [axis_count], keys whose values the sweep sets */
  const ConfigValue **axis_values; /* [axis_count] */
};

/* What a study says about its settings. */
typedef struct {
  ConfigPlace place; /* of the study as a whole */
  const ConfigGiven *given, *axes; /* at the top level, and under `sweep` */
  const ConfigNode *zip; /* NULL if not given */
  const ConfigValue *values; /* [keys] */
} ConfigSweepSource;

/* The range of a key in a design. */
typedef struct {
  bool given, logarithmic;
  ConfigValue from, to;
} ConfigRange;

/* The lists and ranges of a sweep. */
typedef struct {
  int axis_count;
  bool zip, design;
  int *keys; /* [axis_count] */
  int *counts; /* [axis_count] */
  ConfigValue **values; /* [axis_count][counts] */
  ConfigRange *ranges; /* [axis_count] */
} ConfigSweep;

/* Reads the sweep, and fills the settings, labels and axes of `study` (config_sweep.c). */
Status config_sweep_expand(Arena *memory, const ConfigSweepSource *source, ConfigSweep *sweep,
                           StudyFile *study);
/* Fills `resolved`, `changed` and `sha256` of `study` (config_resolve.c). */
Status config_resolve(Arena *memory, ConfigPlace place, const ConfigKey *keys, const ConfigValue *values,
                      const ConfigSweep *sweep, StudyFile *study);
