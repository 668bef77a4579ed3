/* The whole study as YAML with every value filled in, and its hash, which a results file carries and a
 * resumed run compares. For people there is a second text, without the values that are defaults. */
#include "io/config/config_internal.h"
#include "io/digest.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  FILE *out;
  const ConfigKey *keys;
  const ConfigValue *values;
  const bool *omitted; /* [keys]: swept, absent, or not to be shown */
} Writer;

/* Returns the part of a key's name that follows the section's `length` characters. */
static const char *part_after(const char *name, int length) { return name + length + (length > 0); }

static bool config_keys_share_section(const char *a, const char *b, int length) {
  return strncmp(a, b, (size_t)length) == 0 && (length == 0 || (a[length] == '.' && b[length] == '.'));
}

/* Returns whether an earlier key is in the same section, so that its heading is already written. */
static bool config_section_has_heading(const Writer *writer, int key, int length) {
  for (int i = 0; i < key; i++)
    if (!writer->omitted[i] &&
        config_keys_share_section(writer->keys[i].name, writer->keys[key].name, length))
      return true;
  return false;
}

/* Writes the keys in the section whose name is the first `length` characters of key `first`, from that key
 * on. A swept key is written under sweep instead, so that each key appears once; an absent one is not
 * written. */
static void config_write_section(const Writer *writer, int first, int length, int depth) {
  for (int i = first; writer->keys[i].name; i++) {
    const char *name = writer->keys[i].name;
    if (writer->omitted[i] || !config_keys_share_section(name, writer->keys[first].name, length)) continue;
    const char *part = part_after(name, length);
    int part_length = (int)strcspn(part, "."), inner = (int)(part - name) + part_length;
    if (part[part_length] && config_section_has_heading(writer, i, inner)) continue;
    fprintf(writer->out, "%*s%.*s:", 2 * depth, "", part_length, part);
    if (part[part_length]) {
      fputc('\n', writer->out);
      config_write_section(writer, i, inner, depth + 1);
      continue;
    }
    fputc(' ', writer->out);
    config_value_write(writer->out, &writer->keys[i], &writer->values[i]);
    fputc('\n', writer->out);
  }
}

static void config_write_text(FILE *out, const char *text) {
  config_value_write(out, &(ConfigKey){.type = KEY_TEXT}, &(ConfigValue){.word = text});
}

/* Writes a policy without the options marked in omitted[options] and, if `brief`, without a label that equals
 * its name. */
static void config_write_policy(FILE *out, const ConfigPolicy *policy, bool brief, const bool *omitted) {
  const Config *options = policy->options;
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

/* Marks the values that equal the defaults of their keys. Those already marked have no value and are
 * skipped. */
static Status mark_defaults(Arena *memory, const ConfigKey *keys, const ConfigValue *values, bool *out) {
  for (int i = 0; keys[i].name; i++)
    if (!out[i] && keys[i].fallback) TRY(config_value_is_default(memory, &keys[i], &values[i], &out[i]));
  return STATUS_OK;
}

/* Writes the policies; if `brief`, without options that have their defaults. */
static Status config_write_policies(Arena *memory, FILE *out, bool brief, const StudyFile *study) {
  fputs(study->policy_count > 0 ? "policies:\n" : "policies: []\n", out);
  for (int p = 0; p < study->policy_count; p++) {
    const Config *options = study->policies[p].options;
    bool *omitted;
    ALLOCATE(memory, omitted, config_key_count(options->keys) + 1);
    for (int i = 0; options->keys[i].name; i++) omitted[i] = options->values[i].absent;
    if (brief) TRY(mark_defaults(memory, options->keys, options->values, omitted));
    config_write_policy(out, &study->policies[p], brief, omitted);
  }
  return STATUS_OK;
}

static void config_write_sweep(FILE *out, const ConfigKey *keys, const ConfigSweep *sweep) {
  if (sweep->axis_count > 0) fputs("sweep:\n", out);
  if (sweep->zip) fputs("  zip: true\n", out);
  for (int a = 0; a < sweep->axis_count; a++) {
    const ConfigKey *key = &keys[sweep->keys[a]];
    fprintf(out, "  %s: ", key->name);
    for (int i = 0; i < sweep->counts[a]; i++) {
      fputs(i ? ", " : "[", out);
      config_value_write(out, key, &sweep->values[a][i]);
    }
    fputs("]\n", out);
  }
}

static Status config_write_study(Arena *memory, bool brief, const ConfigKey *keys, const ConfigValue *values,
                                 const ConfigSweep *sweep, const StudyFile *study, const char **out) {
  bool *omitted;
  char *text = NULL;
  size_t size = 0;
  ALLOCATE(memory, omitted, config_key_count(keys));
  for (int i = 0; keys[i].name; i++) omitted[i] = values[i].absent;
  for (int a = 0; a < sweep->axis_count; a++) omitted[sweep->keys[a]] = true;
  if (brief) TRY(mark_defaults(memory, keys, values, omitted));
  FILE *stream = open_memstream(&text, &size);
  if (!stream) return status_set(STATUS_INTERNAL, "out of memory");
  config_write_section(&(Writer){stream, keys, values, omitted}, 0, 0, 0);
  Status status = config_write_policies(memory, stream, brief, study);
  config_write_sweep(stream, keys, sweep);
  if (fclose(stream) != 0) status = status_set(STATUS_INTERNAL, "out of memory");
  if (status == STATUS_OK) status = arena_print(memory, out, "%s", text);
  free(text);
  return status;
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
