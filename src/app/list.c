/* thompson list: the registries, and the keys of a study file. */
#include "app/app.h"
#include "app/app_keys.h"
#include "model/prior/prior.h"
#include "policy/policy.h"
#include "rule/rule.h"
#include "study/keys.h"

#include <string.h>

/* A registered member of any family. */
typedef struct {
  const char *name, *summary, *reference;
  unsigned needs;
  bool has_needs;
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
  out->has_needs = method.sampler != NULL;
  if (method.sampler) out->needs = method.sampler->needs;
  return true;
}
static bool list_sampler_entry(int index, Entry *out) {
  const SamplerOps *ops = sampler_method(index);
  if (!ops) return false;
  *out = COPY(ops);
  out->keys = sampler_keys(ops);
  out->own = ops->keys;
  out->needs = ops->needs;
  out->has_needs = true;
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
  if (entry->has_needs) {
    json_t *needs = json_array();
    for (size_t i = 0; i < sizeof needs_words / sizeof *needs_words; i++)
      if (entry->needs & needs_words[i].bit) json_array_append_new(needs, json_string(needs_words[i].word));
    json_object_set_new(object, "needs", needs);
  }
  if (entry->keys) json_object_set_new(object, "options", app_keys_json(keys));
  return object;
}

/* Prints each option in a few words; `list NAME` describes it in full. */
static void print_options(const char *indent, const ConfigKey *keys) {
  for (const ConfigKey *key = keys; key && key->name; key++)
    printf("%s%-12s %s; %s%s\n", indent, key->name, key->help, key->fallback ? "default " : "required",
           key->fallback ? key->fallback : "");
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
      if (entry.has_needs) printf(" %s", entry.name);
    printf("\n");
    print_options("      ", policy_shared_keys());
    print_options("      ", rule_shared_keys());
  }
  for (int i = 0; families[family].entry(i, &entry); i++) {
    if (policies && entry.has_needs) continue;
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
    const ConfigKey one[] = {*key, {.name = NULL}};
    if (!list_name_covers_key(key->name, name)) continue;
    json_t *list = app_keys_json(one), *object = json_array_get(list, 0);
    json_object_set_new(object, "family", json_string("keys"));
    json_array_append(found, object);
    json_decref(list);
  }
  return found;
}

static void print_name(const char *name) {
  Entry entry;
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
  return NULL;
}

static bool list_knows_name(const char *name) {
  json_t *found = json_of_name(name);
  const bool any = json_array_size(found) > 0;
  json_decref(found);
  return any;
}

/* ---- the verb */

typedef struct {
  int family; /* -1: all */
  bool keys; /* only the keys of a study file */
  const char *name; /* of one member or key; NULL: all */
  bool json, schema;
} Arguments;

enum { KEY_SCHEMA = 256 };
static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "as JSON", 0},
    {"schema", KEY_SCHEMA, NULL, 0, "the keys as a JSON schema of study files, for editors", 0},
    {0}};

static error_t list_parse(int key, char *text, struct argp_state *state) {
  Arguments *arguments = state->input;
  switch (key) {
  case 'j': arguments->json = true; return 0;
  case KEY_SCHEMA: arguments->schema = true; return 0;
  case ARGP_KEY_ARG:
    if (state->arg_num > 0) argp_error(state, "only one name is allowed; '%s' is a second one", text);
    arguments->keys = strcmp(text, "keys") == 0;
    for (int f = 0; f < FAMILIES; f++)
      if (strcmp(text, families[f].name) == 0) arguments->family = f;
    if (arguments->keys || arguments->family >= 0) return 0;
    arguments->name = text;
    if (!list_knows_name(text)) {
      const char *near = config_nearest(text, list_any_name);
      argp_error(state,
                 "unknown name '%s'; allowed: policies, samplers, rules, priors, likelihoods, problems, "
                 "studies, keys, or the name of a member or a key%s%s%s",
                 text, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

static json_t *app_list_json(const Arguments *arguments) {
  if (arguments->schema) return app_keys_schema(&study_schema);
  if (arguments->name) return json_of_name(arguments->name);
  if (arguments->keys) return app_keys_json(study_keys);
  if (arguments->family >= 0) return json_of_family(arguments->family);
  json_t *root = json_object();
  for (int f = 0; f < FAMILIES; f++) json_object_set_new(root, families[f].name, json_of_family(f));
  json_object_set_new(root, "keys", app_keys_json(study_keys));
  return root;
}

static void list_print_text(const Arguments *arguments) {
  if (arguments->name)
    print_name(arguments->name);
  else if (arguments->keys)
    config_describe(stdout, study_keys);
  else
    for (int f = 0; f < FAMILIES; f++)
      if (arguments->family < 0 || arguments->family == f) print_family(f);
}

Status app_list(int argc, char **argv) {
  static const struct argp argp = {
      .options = options,
      .parser = list_parse,
      .args_doc = "[policies|samplers|rules|priors|likelihoods|problems|studies|keys|NAME]",
      .doc = "List what is registered, the keys of a study file, or everything about the members and keys "
             "with one name."};
  Arguments arguments = {.family = -1};
  app_parse(&argp, argc, argv, &arguments);
  if (!arguments.json && !arguments.schema) {
    list_print_text(&arguments);
    return STATUS_OK;
  }
  json_t *root = app_list_json(&arguments);
  app_print_json(root, 15);
  return STATUS_OK;
}
