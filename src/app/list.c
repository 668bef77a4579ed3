/* thompson list: the registries. */
#include "app/app.h"
#include "model/likelihood.h"
#include "model/prior.h"
#include "policy/policy.h"
#include "problem/problem.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* One registered thing, of any family. */
typedef struct {
  const char *name, *summary, *reference;
  unsigned needs;
  bool has_needs;
  const ConfigKey *keys; /* options; NULL: the family has none */
} Entry;

#define COPY(ops) ((Entry){.name = (ops)->name, .summary = (ops)->summary, .reference = (ops)->reference})

static bool policy_entry(int index, Entry *out) {
  PolicyMethod method;
  if (!policy_method(index, &method)) return false;
  *out = COPY(&method);
  out->keys = policy_keys(method.name);
  out->has_needs = method.sampler != NULL;
  if (method.sampler) out->needs = method.sampler->needs;
  return true;
}
static bool sampler_entry(int index, Entry *out) {
  const SamplerOps *ops = sampler_method(index);
  if (!ops) return false;
  *out = COPY(ops);
  out->keys = ops->keys;
  out->needs = ops->needs;
  out->has_needs = true;
  return true;
}
static bool prior_entry(int index, Entry *out) {
  const PriorOps *ops = prior_family(index);
  if (ops) *out = COPY(ops);
  return ops != NULL;
}
static bool likelihood_entry(int index, Entry *out) {
  const LikelihoodOps *ops = likelihood_family(index);
  if (ops) *out = COPY(ops);
  return ops != NULL;
}
static bool problem_entry(int index, Entry *out) {
  const ProblemOps *ops = problem_family(index);
  if (ops) *out = COPY(ops);
  return ops != NULL;
}
static bool study_entry(int index, Entry *out) {
  const StudyOps *ops = study_kind(index);
  if (ops) *out = COPY(ops);
  return ops != NULL;
}

static const struct {
  const char *name;
  bool (*entry)(int index, Entry *out);
} families[] = {{"policies", policy_entry},        {"samplers", sampler_entry}, {"priors", prior_entry},
                {"likelihoods", likelihood_entry}, {"problems", problem_entry}, {"studies", study_entry}};
enum { FAMILIES = sizeof families / sizeof *families };

static const struct {
  unsigned bit;
  const char *word;
} needs_words[] = {
#define NEEDS_WORD(name, place, text) {NEEDS_##name, text},
    NEEDS_LIST(NEEDS_WORD)
#undef NEEDS_WORD
};

static json_t *json_of_entry(const Entry *entry) {
  json_t *object = json_pack("{s:s, s:s, s:s}", "name", entry->name, "summary", entry->summary, "reference",
                             entry->reference);
  if (entry->has_needs) {
    json_t *needs = json_array();
    for (size_t i = 0; i < sizeof needs_words / sizeof *needs_words; i++)
      if (entry->needs & needs_words[i].bit) json_array_append_new(needs, json_string(needs_words[i].word));
    json_object_set_new(object, "needs", needs);
  }
  if (entry->keys) {
    json_t *list = json_array();
    for (const ConfigKey *key = entry->keys; key->name; key++)
      json_array_append_new(
          list, json_pack("{s:s, s:s, s:s}", "name", key->name, "default", key->fallback, "help", key->help));
    json_object_set_new(object, "options", list);
  }
  return object;
}

static void print_family(int family) {
  Entry entry;
  printf("%s\n", families[family].name);
  for (int i = 0; families[family].entry(i, &entry); i++) {
    printf("  %-12s %s (%s)\n", entry.name, entry.summary, entry.reference);
    for (const ConfigKey *key = entry.keys; key && key->name; key++)
      printf("      %-12s %s; default %s\n", key->name, key->help, key->fallback);
  }
}

static json_t *json_of_family(int family) {
  json_t *list = json_array();
  Entry entry;
  for (int i = 0; families[family].entry(i, &entry); i++) json_array_append_new(list, json_of_entry(&entry));
  return list;
}

typedef struct {
  int family; /* -1: all */
  bool json;
} Arguments;

static const struct argp_option options[] = {{"json", 'j', NULL, 0, "as JSON", 0}, {0}};

static error_t parse(int key, char *text, struct argp_state *state) {
  Arguments *arguments = state->input;
  switch (key) {
  case 'j': arguments->json = true; return 0;
  case ARGP_KEY_ARG:
    for (int f = 0; f < FAMILIES; f++)
      if (strcmp(text, families[f].name) == 0) {
        arguments->family = f;
        return 0;
      }
    argp_error(state, "'%s' is none of policies, samplers, priors, likelihoods, problems, studies", text);
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

Status app_list(int argc, char **argv) {
  static const struct argp argp = {options,
                                   parse,
                                   "[policies|samplers|priors|likelihoods|problems|studies]",
                                   "List what is registered.",
                                   NULL,
                                   NULL,
                                   NULL};
  Arguments arguments = {.family = -1};
  app_parse(&argp, argc, argv, &arguments);
  if (!arguments.json) {
    for (int f = 0; f < FAMILIES; f++)
      if (arguments.family < 0 || arguments.family == f) print_family(f);
    return STATUS_OK;
  }
  json_t *root = arguments.family >= 0 ? json_of_family(arguments.family) : json_object();
  for (int f = 0; f < FAMILIES && arguments.family < 0; f++)
    json_object_set_new(root, families[f].name, json_of_family(f));
  json_dumpf(root, stdout, JSON_INDENT(2));
  printf("\n");
  json_decref(root);
  return STATUS_OK;
}
