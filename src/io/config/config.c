/* Values of one setting or one policy, options without a study, and the listing of a table. */
#include "io/config/config_internal.h"

#include <string.h>

static const ConfigValue *config_value_of(const Config *config, int key) {
  for (int a = 0; a < config->axis_count; a++)
    if (config->axis_keys[a] == key) return config->axis_values[a];
  return &config->values[key];
}

/* Finds the value of a key whose type is one of the bits in `types`. */
static const ConfigValue *config_find(const Config *config, const char *name, unsigned types) {
  int key = config_key_index(config->keys, name);
  ASSERT(key >= 0 && "the table has that key");
  ASSERT(types >> config->keys[key].type & 1 && "the key has that type");
  ASSERT(!config_value_of(config, key)->absent);
  return config_value_of(config, key);
}

int64_t config_int(const Config *config, const char *key) {
  const ConfigValue *value = config_find(config, key, 1u << KEY_INT);
  ASSERT(!value->word);
  return value->integer;
}

double config_real(const Config *config, const char *key) {
  const ConfigValue *value = config_find(config, key, 1u << KEY_REAL | 1u << KEY_REAL_OR_INTS);
  ASSERT(!value->word);
  return value->real;
}

bool config_bool(const Config *config, const char *key) {
  return config_find(config, key, 1u << KEY_BOOL)->boolean;
}

const char *config_text(const Config *config, const char *key) {
  return config_find(config, key,
                     1u << KEY_WORD | 1u << KEY_TEXT | 1u << KEY_INT | 1u << KEY_REAL | 1u << KEY_INTS)
      ->word;
}

bool config_is(const Config *config, const char *key, const char *word) {
  const char *text = config_text(config, key);
  return text && strcmp(text, word) == 0;
}

int config_ints(const Config *config, const char *key, const int64_t **list) {
  const ConfigValue *value = config_find(config, key, 1u << KEY_INTS | 1u << KEY_REAL_OR_INTS);
  *list = value->integers;
  return value->count;
}

int config_words(const Config *config, const char *key, const char *const **list) {
  const ConfigValue *value = config_find(config, key, 1u << KEY_WORDS);
  *list = value->words;
  return value->count;
}

void config_write(const Config *config, const char *key, FILE *out) {
  const int place = config_key_index(config->keys, key);
  ASSERT(place >= 0);
  config_value_write(out, &config->keys[place], config_value_of(config, place));
}

const ConfigKey *config_table(const Config *config) { return config->keys; }

void config_show(const Config *config, const char *key, size_t size, char *out) {
  ASSERT(size > 0);
  memset(out, 0, size);
  FILE *stream = fmemopen(out, size, "w");
  ASSERT(stream);
  config_write(config, key, stream);
  fclose(stream);
  out[size - 1] = '\0';
}

bool config_present(const Config *config, const char *key) {
  int index = config_key_index(config->keys, key);
  return index >= 0 && !config_value_of(config, index)->absent;
}

Status config_is_default(const Config *config, const char *key, bool *out) {
  SCRATCH_ARENA(scratch);
  const int place = config_key_index(config->keys, key);
  ASSERT(place >= 0);
  const ConfigValue *value = config_value_of(config, place);
  *out = value->absent;
  if (value->absent || !config->keys[place].fallback) return STATUS_OK;
  return config_value_is_default(&scratch, &config->keys[place], value, out);
}

bool config_has(const Config *config, const char *key) { return config_key_index(config->keys, key) >= 0; }

/* Reads the options; those not in `sets` are as in `base`, or have their defaults if it is NULL. */
static Status config_read_options(Arena *memory, const char *what, const ConfigKey *keys, const Config *base,
                                  int set_count, const char *const *sets, Config **out) {
  ConfigGiven all, one;
  ConfigValue *values;
  const char *source;
  TRY(arena_print(memory, &source, "%s", what));
  TRY(config_given_new(memory, keys, &all));
  for (int i = 0; i < set_count; i++) {
    ConfigNode *node;
    TRY(config_tree_assignment(memory, source, sets[i], &node));
    TRY(config_given_new(memory, keys, &one));
    TRY(config_given_take(memory, "", node->key, node, &one));
    for (int k = 0; k < one.count; k++) config_given_put(&all, one.order[k], one.node[one.order[k]]);
  }
  TRY(config_table_values(memory, "", (ConfigPlace){.source = source}, &all, NULL, &values));
  if (base)
    for (int k = 0; keys[k].name; k++)
      if (!all.node[k]) values[k] = *config_value_of(base, k);
  ALLOCATE(memory, *out, 1);
  **out = (Config){.keys = keys, .values = values};
  return STATUS_OK;
}

Status config_options(Arena *memory, const char *what, const ConfigKey *keys, int set_count,
                      const char *const *sets, Config **out) {
  return config_read_options(memory, what, keys, NULL, set_count, sets, out);
}

Status config_override(Arena *memory, const Config *base, const char *what, int set_count,
                       const char *const *sets, Config **out) {
  return config_read_options(memory, what, base->keys, base, set_count, sets, out);
}

void config_describe(FILE *out, const ConfigKey *keys) {
  for (; keys->name; keys++) {
    char allowed[1200], help[CONFIG_HELP];
    config_allowed(keys, sizeof allowed, allowed);
    bool absent = keys->fallback && strcmp(keys->fallback, "null") == 0;
    fprintf(out, "%s: %s", keys->name, allowed);
    if (keys->unit) fprintf(out, ", in %s", keys->unit);
    if (!keys->fallback)
      fprintf(out, "; required\n");
    else
      fprintf(out, "; default %s\n", absent ? "none" : keys->fallback);
    fprintf(out, "    %s\n", config_key_help(keys, help));
  }
}
