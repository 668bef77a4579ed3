/* thompson list: the registries, and the keys of a study file. */
#include "app/app.h"
#include "model/prior/prior.h"
#include "policy/policy.h"
#include "rule/rule.h"
#include "study/keys.h"

/* ---- tables of keys as JSON */

static const char *const TYPES[] = {
    [KEY_INT] = "integer",         [KEY_REAL] = "number",
    [KEY_BOOL] = "boolean",        [KEY_WORD] = "word",
    [KEY_TEXT] = "text",           [KEY_INTS] = "list of integers",
    [KEY_WORDS] = "list of words", [KEY_REAL_OR_INTS] = "list of integers, or number"};

/* Adds minimum and maximum, if the key has a range. */
static void app_key_put_range(const ConfigKey *key, json_t *object) {
  const bool real = key->type == KEY_REAL || key->type == KEY_REAL_OR_INTS;
  if (!real && key->type != KEY_INT && key->type != KEY_INTS) return;
  if (key->minimum == 0 && key->maximum == 0) return;
  json_object_set_new(object, "minimum",
                      real ? json_real(key->minimum) : json_integer((json_int_t)key->minimum));
  json_object_set_new(object, "maximum",
                      real ? json_real(key->maximum) : json_integer((json_int_t)key->maximum));
}

/* Lists all words that the key takes. */
static json_t *app_key_words_json(const ConfigKey *key) {
  json_t *list = json_array();
  const char *word;
  for (int i = 0, length; (word = config_key_word(key, i, &length)); i++)
    json_array_append_new(list, json_stringn(word, (size_t)length));
  return list;
}

/* Makes an object with name, type, default and help; if the key has them, range, words, unit and fixed. */
static json_t *app_key_json(const ConfigKey *key) {
  char help[CONFIG_HELP];
  json_t *object = json_pack("{s:s, s:s, s:s?, s:s}", "name", key->name, "type", TYPES[key->type], "default",
                             key->fallback, "help", config_key_help(key, help));
  json_auto_t *words = app_key_words_json(key);
  app_key_put_range(key, object);
  if (json_array_size(words) > 0) json_object_set(object, "words", words);
  if (key->unit) json_object_set_new(object, "unit", json_string(key->unit));
  if (key->fixed) json_object_set_new(object, "fixed", json_true());
  return object;
}

static json_t *app_keys_json(const ConfigKey *keys) {
  json_t *list = json_array();
  for (; keys && keys->name; keys++) json_array_append_new(list, app_key_json(keys));
  return list;
}

/* ---- a JSON schema with which editors complete and check study files (draft 2020-12) */

static json_t *app_json_any_of(json_t *a, json_t *b) { return json_pack("{s:[o, o]}", "anyOf", a, b); }

/* Returns the type of one number in JSON. */
static const char *app_scalar_type(const ConfigKey *key) {
  if (key->type == KEY_INTS) return TYPES[KEY_INT];
  return TYPES[key->type == KEY_REAL_OR_INTS ? KEY_REAL : key->type];
}

/* Describes one value; for a list, one element. */
static json_t *app_scalar_schema(const ConfigKey *key) {
  json_t *words = app_key_words_json(key), *enumeration = json_pack("{s:o}", "enum", words);
  if (key->type == KEY_WORD || key->type == KEY_WORDS) return enumeration;
  json_t *schema = key->type == KEY_TEXT ? json_pack("{s:[s, s, s]}", "type", "string", "number", "null")
                                         : json_pack("{s:s}", "type", app_scalar_type(key));
  app_key_put_range(key, schema);
  if (json_array_size(words) > 0) return app_json_any_of(schema, enumeration);
  json_decref(enumeration);
  return schema;
}

static json_t *value_schema(const ConfigKey *key) {
  char help[CONFIG_HELP];
  json_t *schema = app_scalar_schema(key);
  if (config_key_is_list(key))
    schema = app_json_any_of(json_pack("{s:s, s:O}", "type", "array", "items", schema), schema);
  if (key->type == KEY_REAL_OR_INTS)
    schema = app_json_any_of(json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", TYPES[KEY_INT]),
                             schema);
  if (key->parts) schema = app_json_any_of(schema, json_pack("{s:s}", "type", "object"));
  json_object_set_new(schema, "description", json_string(config_key_help(key, help)));
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
  const char *dot = strchr(key->name, '.');
  app_keys_json_put(root, key->name, schema);
  if (!dot) return;
  char *section = strndup(key->name, (size_t)(dot - key->name));
  json_t *inner = json_object_get(json_object_get(root, "properties"), section);
  if (inner && json_object_get(inner, "anyOf")) inner = json_array_get(json_object_get(inner, "anyOf"), 1);
  if (!inner) app_keys_json_put(root, section, inner = closed_mapping_json());
  if (!json_object_get(inner, "properties")) {
    json_object_set_new(inner, "properties", json_object());
    json_object_set_new(inner, "additionalProperties", json_false());
  }
  app_keys_json_put(inner, dot + 1, json_incref(schema));
  free(section);
}

static json_t *app_policies_schema(void) {
  json_t *choices = json_array(), *names = json_array();
  for (int p = 0; study_schema.policy_name(p); p++) {
    const char *name = study_schema.policy_name(p);
    json_t *object = closed_mapping_json();
    json_array_append_new(names, json_string(name));
    app_keys_json_put(object, "name", json_pack("{s:s}", "const", name));
    app_keys_json_put(object, "label", json_pack("{s:[s, s]}", "type", "string", "number"));
    for (const ConfigKey *key = study_schema.policy_keys(name); key && key->name; key++)
      app_keys_json_put(object, key->name, value_schema(key));
    json_object_set_new(object, "required", json_pack("[s]", "name"));
    json_array_append_new(choices, object);
  }
  json_array_append_new(choices, json_pack("{s:o}", "enum", names));
  json_t *one = json_pack("{s:o}", "anyOf", choices);
  return json_pack("{s:s, s:o}", "type", "array", "items", one);
}

/* Describes the values of a swept key: a list or, of numbers, the range of a design. */
static json_t *app_axis_schema(const ConfigKey *key) {
  json_t *list =
      json_pack("{s:s, s:o, s:i}", "type", "array", "items", app_scalar_schema(key), "minItems", 1);
  if (key->type != KEY_INT && key->type != KEY_REAL && key->type != KEY_REAL_OR_INTS) return list;
  json_t *range = closed_mapping_json();
  const ConfigKey number = {.type = key->type, .minimum = key->minimum, .maximum = key->maximum};
  app_keys_json_put(range, "from", app_scalar_schema(&number));
  app_keys_json_put(range, "to", app_scalar_schema(&number));
  app_keys_json_put(range, "scale", json_pack("{s:[s, s]}", "enum", "linear", "log"));
  json_object_set_new(range, "required", json_pack("[s, s]", "from", "to"));
  return app_json_any_of(list, range);
}

/* Makes the schema of study files, including the names of policies and their options. */
static json_t *app_keys_schema(void) {
  json_t *root = closed_mapping_json(), *sweep = closed_mapping_json();
  for (const ConfigKey *key = study_schema.keys; key->name; key++) {
    app_schema_put_key(root, key, value_schema(key));
    if (!key->fixed && !config_key_is_list(key)) app_schema_put_key(sweep, key, app_axis_schema(key));
  }
  app_keys_json_put(sweep, "zip", json_pack("{s:s}", "type", "boolean"));
  app_keys_json_put(root, "policies", app_policies_schema());
  app_keys_json_put(root, "sweep", sweep);
  json_object_set_new(root, "$schema", json_string("https://json-schema.org/draft/2020-12/schema"));
  json_object_set_new(root, "title", json_string("a thompson study file"));
  return root;
}

/* ---- families */

/* A registered member of any family. */
typedef struct {
  const char *name, *summary, *reference;
  const SamplerOps *sampler; /* NULL: it is or has none, so that it needs nothing */
  const ConfigKey *own; /* options; NULL: none */
  const ConfigKey *keys; /* the same, and the options shared by the family; NULL: it has none */
} Entry;

#define COPY(ops) ((Entry){.name = (ops)->name, .summary = (ops)->summary, .reference = (ops)->reference})

static bool list_policy_entry(int index, Entry *out) {
  PolicyMethod method;
  if (!policy_method(index, &method)) return false;
  *out = COPY(&method);
  out->keys = policy_keys(method.name);
  out->own = method.sampler ? method.sampler->keys : out->keys;
  out->sampler = method.sampler;
  return true;
}
static bool list_sampler_entry(int index, Entry *out) {
  const SamplerOps *ops = sampler_method(index);
  if (!ops) return false;
  *out = COPY(ops);
  out->keys = sampler_keys(ops);
  out->own = ops->keys;
  out->sampler = ops;
  return true;
}
static bool list_rule_entry(int index, Entry *out) {
  const RuleOps *ops = rule_method(index);
  if (!ops) return false;
  *out = COPY(ops);
  out->keys = out->own = ops->keys;
  return true;
}

/* The entries of a family whose members have no options. */
#define PLAIN_ENTRY(family, Ops, member)                                                                     \
  static bool list_##family##_entry(int index, Entry *out) {                                                 \
    const Ops *ops = member(index);                                                                          \
    if (ops) *out = COPY(ops);                                                                               \
    return ops != NULL;                                                                                      \
  }
PLAIN_ENTRY(prior, PriorOps, prior_family)
PLAIN_ENTRY(likelihood, LikelihoodOps, likelihood_family)
PLAIN_ENTRY(problem, ProblemOps, problem_family)
PLAIN_ENTRY(study, StudyOps, study_kind)
#undef PLAIN_ENTRY

static const struct {
  const char *name;
  bool (*entry)(int index, Entry *out);
} families[] = {
    {"policies", list_policy_entry}, {"samplers", list_sampler_entry},       {"rules", list_rule_entry},
    {"priors", list_prior_entry},    {"likelihoods", list_likelihood_entry}, {"problems", list_problem_entry},
    {"studies", list_study_entry}};
enum { FAMILIES = sizeof families / sizeof *families };

static const struct {
  unsigned bit;
  const char *word;
} needs_words[] = {
#define NEEDS_WORD(name, place, text) {NEEDS_##name, text},
    NEEDS_LIST(NEEDS_WORD)
#undef NEEDS_WORD
};

static json_t *json_of_entry(const Entry *entry, const ConfigKey *keys) {
  json_t *object = json_pack("{s:s, s:s, s:s}", "name", entry->name, "summary", entry->summary, "reference",
                             entry->reference);
  if (entry->sampler) {
    json_t *needs = json_array();
    for (size_t i = 0; i < sizeof needs_words / sizeof *needs_words; i++)
      if (entry->sampler->needs & needs_words[i].bit)
        json_array_append_new(needs, json_string(needs_words[i].word));
    json_object_set_new(object, "needs", needs);
  }
  if (entry->keys) json_object_set_new(object, "options", app_keys_json(keys));
  return object;
}

/* Prints each option in a few words; `list NAME` describes it in full. */
static void print_options(const char *indent, const ConfigKey *keys) {
  char help[CONFIG_HELP];
  for (const ConfigKey *key = keys; key && key->name; key++)
    printf("%s%-12s %s; %s%s\n", indent, key->name, config_key_help(key, help),
           key->fallback ? "default " : "required", key->fallback ? key->fallback : "");
}

/* Prints a family with its options. Every sampler is also a policy; in the list of policies only its name
 * appears. */
static void print_family(int family) {
  const bool policies = families[family].entry == list_policy_entry;
  Entry entry;
  printf("%s\n", families[family].name);
  if (policies) {
    printf("  * every sampler (`thompson list samplers`), with these options too:");
    for (int i = 0; list_policy_entry(i, &entry); i++)
      if (entry.sampler) printf(" %s", entry.name);
    printf("\n");
    print_options("      ", policy_shared_keys());
    print_options("      ", rule_shared_keys());
  }
  for (int i = 0; families[family].entry(i, &entry); i++) {
    if (policies && entry.sampler) continue;
    printf("  %-12s %s (%s)\n", entry.name, entry.summary, entry.reference);
    print_options("      ", entry.own);
  }
  if (families[family].entry != list_sampler_entry) return;
  printf("  * every sampler\n");
  print_options("      ", sampler_shared_keys());
}

static json_t *json_of_family(int family) {
  json_t *list = json_array();
  Entry entry;
  for (int i = 0; families[family].entry(i, &entry); i++)
    json_array_append_new(list, json_of_entry(&entry, entry.keys));
  return list;
}

/* ---- how a study file says which settings it has */

static const struct {
  const char *name, *summary, *example;
} settings_words[] = {
    {"sweep",
     "keys with several values each; the settings of the study are the product of the lists, with zip: true "
     "under sweep their rows, and with a design points of these lists and ranges",
     "sweep: {problem.noise: [0.5, 1], prior.stages: [25, 50, 100]}"},
    {"zip",
     "under sweep; true: all lists have the same length and advance together, so that there are as many "
     "settings as values; false, the default: their product",
     CONFIG_ZIP_EXAMPLE},
    {"design",
     "beside sweep, which has a range or a list for each key: settings that are points of a design, for many "
     "keys at once",
     "design: {kind: sobol, points: 64}\n"
     "    sweep: {problem.noise: {from: 0.1, to: 4, scale: log}, problem.theta: [gm_cross, gm_rays]}"}};
enum { SETTINGS_WORDS = sizeof settings_words / sizeof *settings_words };

/* ---- one name */

/* Returns whether `name` is the key or a section that contains it: `problem` covers all of `problem.*`. */
static bool list_name_covers_key(const char *key, const char *name) {
  const size_t length = strlen(name);
  return strncmp(key, name, length) == 0 && (key[length] == '\0' || key[length] == '.');
}

static json_t *json_of_name(const char *name) {
  json_t *found = json_array();
  Entry entry;
  for (int f = 0; f < FAMILIES; f++)
    for (int i = 0; families[f].entry(i, &entry); i++) {
      if (strcmp(entry.name, name) != 0) continue;
      json_t *object = json_of_entry(&entry, entry.own);
      json_object_set_new(object, "family", json_string(families[f].name));
      json_array_append_new(found, object);
    }
  for (const ConfigKey *key = study_keys; key->name; key++) {
    if (!list_name_covers_key(key->name, name)) continue;
    json_t *object = app_key_json(key);
    json_object_set_new(object, "family", json_string("keys"));
    json_array_append_new(found, object);
  }
  for (int w = 0; w < SETTINGS_WORDS; w++)
    if (strcmp(settings_words[w].name, name) == 0)
      json_array_append_new(found, json_pack("{s:s, s:s, s:s, s:s}", "name", name, "summary",
                                             settings_words[w].summary, "example", settings_words[w].example,
                                             "family", "settings"));
  return found;
}

static void print_name(const char *name) {
  Entry entry;
  for (int w = 0; w < SETTINGS_WORDS; w++)
    if (strcmp(settings_words[w].name, name) == 0)
      printf("%s: %s\n    %s\n", name, settings_words[w].summary, settings_words[w].example);
  for (int f = 0; f < FAMILIES; f++)
    for (int i = 0; families[f].entry(i, &entry); i++) {
      if (strcmp(entry.name, name) != 0 || families[f].entry == list_sampler_entry)
        continue; /* it is a policy too */
      printf("%s in %s: %s (%s)\n", name, families[f].name, entry.summary, entry.reference);
      if (entry.own) config_describe(stdout, entry.own);
    }
  for (const ConfigKey *key = study_keys; key->name; key++) {
    const ConfigKey one[] = {*key, {.name = NULL}};
    if (list_name_covers_key(key->name, name)) config_describe(stdout, one);
  }
}

/* Returns name `index` among those of all members and keys, or NULL after the last. */
static const char *list_any_name(int index) {
  Entry entry;
  for (int f = 0; f < FAMILIES; f++)
    for (int i = 0; families[f].entry(i, &entry); i++)
      if (index-- == 0) return entry.name;
  for (const ConfigKey *key = study_keys; key->name; key++)
    if (index-- == 0) return key->name;
  return index < SETTINGS_WORDS ? settings_words[index].name : NULL;
}

/* Returns the first key of a study whose last word is `word`; NULL: none is. */
static const char *list_key_ending(const char *word) {
  for (const ConfigKey *key = study_keys; key->name; key++) {
    const char *dot = strrchr(key->name, '.');
    if (dot && strcmp(dot + 1, word) == 0) return key->name;
  }
  return NULL;
}

/* ---- the verb */

static struct {
  int family; /* -1: all */
  bool keys; /* only the keys of a study file */
  const char *name; /* of one member or key; NULL: all */
  bool json, schema;
} arguments = {.family = -1};

static const AppOption options[] = {
    {"json", 'j', NULL, "as JSON", .flag = &arguments.json},
    {"schema", 0, NULL, "the keys as a JSON schema of study files, for editors", .flag = &arguments.schema},
    {0}};

static void list_take(struct argp_state *state, const char *text) {
  if (state->arg_num > 0) argp_error(state, "only one name is allowed; '%s' is a second one", text);
  arguments.keys = strcmp(text, "keys") == 0;
  for (int f = 0; f < FAMILIES; f++)
    if (strcmp(text, families[f].name) == 0) arguments.family = f;
  if (arguments.keys || arguments.family >= 0) return;
  arguments.name = text;
  json_auto_t *found = json_of_name(text);
  if (json_array_size(found) > 0) return;
  const char *ending = list_key_ending(text), *near = ending ? ending : config_nearest(text, list_any_name);
  argp_error(state,
             "unknown name '%s'; allowed: policies, samplers, rules, priors, likelihoods, problems, "
             "studies, keys, or the name of a member or a key%s%s%s",
             text, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static json_t *app_list_json(void) {
  if (arguments.schema) return app_keys_schema();
  if (arguments.name) return json_of_name(arguments.name);
  if (arguments.keys) return app_keys_json(study_keys);
  if (arguments.family >= 0) return json_of_family(arguments.family);
  json_t *root = json_object();
  for (int f = 0; f < FAMILIES; f++) json_object_set_new(root, families[f].name, json_of_family(f));
  json_object_set_new(root, "keys", app_keys_json(study_keys));
  return root;
}

static Status list_print(void) {
  if (arguments.json || arguments.schema) return app_print_json(app_list_json(), 15);
  if (arguments.name)
    print_name(arguments.name);
  else if (arguments.keys)
    config_describe(stdout, study_keys);
  else
    for (int f = 0; f < FAMILIES; f++)
      if (arguments.family < 0 || arguments.family == f) print_family(f);
  return STATUS_OK;
}

const AppVerb app_list = {
    .options = options,
    .take = list_take,
    .usage = "[policies|samplers|rules|priors|likelihoods|problems|studies|keys|NAME]",
    .help =
        "List what is registered, the keys of a study file, or everything about the members and keys "
        "with one name; `list sweep`, `list zip` and `list design`: how a study says which settings it has.",
    .run = list_print};
