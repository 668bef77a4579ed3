#include "app/app_keys.h"

#include <string.h>

static const char *const TYPES[] = {
    [KEY_INT] = "integer", [KEY_REAL] = "number",           [KEY_BOOL] = "boolean",       [KEY_WORD] = "word",
    [KEY_TEXT] = "text",   [KEY_INTS] = "list of integers", [KEY_WORDS] = "list of words"};

static bool app_key_has_range(const ConfigKey *key) {
  return (key->type == KEY_INT || key->type == KEY_REAL || key->type == KEY_INTS) &&
         (key->minimum != 0 || key->maximum != 0);
}

static json_t *key_number_json(const ConfigKey *key, double value) {
  return key->type == KEY_REAL ? json_real(value) : json_integer((json_int_t)value);
}

/* Lists all words that the key takes. */
static json_t *app_key_words_json(const ConfigKey *key) {
  json_t *list = json_array();
  const char *word;
  for (int i = 0, length; (word = config_key_word(key, i, &length)); i++)
    json_array_append_new(list, json_stringn(word, (size_t)length));
  return list;
}

static json_t *key_json(const ConfigKey *key) {
  json_t *object = json_pack("{s:s, s:s, s:s?, s:s}", "name", key->name, "type", TYPES[key->type], "default",
                             key->fallback, "help", key->help);
  json_t *words = app_key_words_json(key);
  if (app_key_has_range(key)) {
    json_object_set_new(object, "minimum", key_number_json(key, key->minimum));
    json_object_set_new(object, "maximum", key_number_json(key, key->maximum));
  }
  if (json_array_size(words) > 0) json_object_set(object, "words", words);
  if (key->unit) json_object_set_new(object, "unit", json_string(key->unit));
  if (key->fixed) json_object_set_new(object, "fixed", json_true());
  json_decref(words);
  return object;
}

json_t *app_keys_json(const ConfigKey *keys) {
  json_t *list = json_array();
  for (; keys && keys->name; keys++) json_array_append_new(list, key_json(keys));
  return list;
}

/* ---- schema */

static json_t *app_json_any_of(json_t *a, json_t *b) { return json_pack("{s:[o, o]}", "anyOf", a, b); }

/* Describes one value; for a list, one element. */
static json_t *app_scalar_schema(const ConfigKey *key) {
  json_t *words = app_key_words_json(key), *schema = NULL;
  switch (key->type) {
  case KEY_INT:
  case KEY_INTS: schema = json_pack("{s:s}", "type", "integer"); break;
  case KEY_REAL: schema = json_pack("{s:s}", "type", "number"); break;
  case KEY_BOOL: schema = json_pack("{s:s}", "type", "boolean"); break;
  case KEY_TEXT: schema = json_pack("{s:[s, s, s]}", "type", "string", "number", "null"); break;
  case KEY_WORD:
  case KEY_WORDS: return json_pack("{s:o}", "enum", words);
  }
  if (app_key_has_range(key)) {
    json_object_set_new(schema, "minimum", key_number_json(key, key->minimum));
    json_object_set_new(schema, "maximum", key_number_json(key, key->maximum));
  }
  if (json_array_size(words) == 0) {
    json_decref(words);
    return schema;
  }
  return app_json_any_of(schema, json_pack("{s:o}", "enum", words));
}

static json_t *value_schema(const ConfigKey *key) {
  json_t *schema = app_scalar_schema(key);
  if (key->type == KEY_INTS || key->type == KEY_WORDS)
    schema = app_json_any_of(json_pack("{s:s, s:O}", "type", "array", "items", schema), schema);
  if (key->parts) schema = app_json_any_of(schema, json_pack("{s:s}", "type", "object"));
  json_object_set_new(schema, "description", json_string(key->help));
  if (key->fallback && strcmp(key->fallback, "null") != 0) {
    json_t *fallback = json_loads(key->fallback, JSON_DECODE_ANY, NULL);
    json_object_set_new(schema, "default", fallback ? fallback : json_string(key->fallback));
  }
  return schema;
}

/* Makes the schema of a mapping that allows no properties but those put into it later. */
static json_t *closed_mapping_json(void) {
  return json_pack("{s:s, s:{}, s:b}", "type", "object", "properties", "additionalProperties", 0);
}

static void app_keys_json_put(json_t *mapping, const char *name, json_t *schema) {
  json_object_set_new(json_object_get(mapping, "properties"), name, schema);
}

/* Adds the key under its dotted name and, if it has a section, also inside that section. */
static void app_schema_put_key(json_t *root, const ConfigKey *key, json_t *schema) {
  char section[64];
  const char *dot = strchr(key->name, '.');
  app_keys_json_put(root, key->name, schema);
  if (!dot) return;
  ASSERT((size_t)(dot - key->name) < sizeof section);
  memcpy(section, key->name, (size_t)(dot - key->name));
  section[dot - key->name] = '\0';
  json_t *inner = json_object_get(json_object_get(root, "properties"), section);
  if (inner && json_object_get(inner, "anyOf")) inner = json_array_get(json_object_get(inner, "anyOf"), 1);
  if (!inner) app_keys_json_put(root, section, inner = closed_mapping_json());
  if (!json_object_get(inner, "properties")) {
    json_object_set_new(inner, "properties", json_object());
    json_object_set_new(inner, "additionalProperties", json_false());
  }
  app_keys_json_put(inner, dot + 1, json_incref(schema));
}

static json_t *app_policies_schema(const ConfigSchema *study) {
  json_t *choices = json_array(), *names = json_array();
  for (int p = 0; study->policy_name(p); p++) {
    const char *name = study->policy_name(p);
    json_t *object = closed_mapping_json();
    json_array_append_new(names, json_string(name));
    app_keys_json_put(object, "name", json_pack("{s:s}", "const", name));
    app_keys_json_put(object, "label", json_pack("{s:[s, s]}", "type", "string", "number"));
    for (const ConfigKey *key = study->policy_keys(name); key && key->name; key++)
      app_keys_json_put(object, key->name, value_schema(key));
    json_object_set_new(object, "required", json_pack("[s]", "name"));
    json_array_append_new(choices, object);
  }
  json_array_append_new(choices, json_pack("{s:o}", "enum", names));
  json_t *one = json_pack("{s:o}", "anyOf", choices);
  return json_pack("{s:s, s:o}", "type", "array", "items", one);
}

json_t *app_keys_schema(const ConfigSchema *study) {
  json_t *root = closed_mapping_json(), *sweep = closed_mapping_json();
  for (const ConfigKey *key = study->keys; key->name; key++) {
    app_schema_put_key(root, key, value_schema(key));
    if (!key->fixed && key->type != KEY_INTS && key->type != KEY_WORDS)
      app_schema_put_key(
          sweep, key,
          json_pack("{s:s, s:o, s:i}", "type", "array", "items", app_scalar_schema(key), "minItems", 1));
  }
  app_keys_json_put(sweep, "zip", json_pack("{s:s}", "type", "boolean"));
  app_keys_json_put(root, "policies", app_policies_schema(study));
  app_keys_json_put(root, "sweep", sweep);
  json_object_set_new(root, "$schema", json_string("https://json-schema.org/draft/2020-12/schema"));
  json_object_set_new(root, "title", json_string("a thompson study file"));
  return root;
}
