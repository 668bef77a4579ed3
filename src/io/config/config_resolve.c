/* The whole study as YAML with every value filled in, and its hash: what a results file carries and a resumed
 * run compares. The same without what is as it is by default, for people. */
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

static bool same_start(const char *a, const char *b, int length) {
  return strncmp(a, b, (size_t)length) == 0 && (length == 0 || (a[length] == '.' && b[length] == '.'));
}

/* Returns whether an earlier key lies in the same section, so that its heading is written already. */
static bool heading_written(const Writer *writer, int key, int length) {
  for (int i = 0; i < key; i++)
    if (!writer->omitted[i] && same_start(writer->keys[i].name, writer->keys[key].name, length)) return true;
  return false;
}

/* Writes all keys in the section that is the first `length` characters of key `first`, from that key on. A
 * key that is swept stands under sweep instead, so that each key stands once; an absent one stands
 * nowhere. */
static void write_section(const Writer *writer, int first, int length, int depth) {
  for (int i = first; writer->keys[i].name; i++) {
    const char *name = writer->keys[i].name;
    if (writer->omitted[i] || !same_start(name, writer->keys[first].name, length)) continue;
    const char *part = part_after(name, length);
    int part_length = (int)strcspn(part, "."), inner = (int)(part - name) + part_length;
    if (part[part_length] && heading_written(writer, i, inner)) continue;
    fprintf(writer->out, "%*s%.*s:", 2 * depth, "", part_length, part);
    if (part[part_length]) {
      fputc('\n', writer->out);
      write_section(writer, i, inner, depth + 1);
      continue;
    }
    fputc(' ', writer->out);
    config_value_write(writer->out, &writer->keys[i], &writer->values[i]);
    fputc('\n', writer->out);
  }
}

static void write_text(FILE *out, const char *text) {
  config_value_write(out, &(ConfigKey){.type = KEY_TEXT}, &(ConfigValue){.word = text});
}

/* Writes a policy without the options that are omitted[options]; `brief`: without a label that is its
 * name. */
static void write_policy(FILE *out, const ConfigPolicy *policy, bool brief, const bool *omitted) {
  const Config *options = policy->options;
  fputs("  - {name: ", out);
  write_text(out, policy->name);
  if (!brief || strcmp(policy->label, policy->name) != 0) {
    fputs(", label: ", out);
    write_text(out, policy->label);
  }
  for (int i = 0; options->keys[i].name; i++) {
    if (omitted[i]) continue;
    fprintf(out, ", %s: ", options->keys[i].name);
    config_value_write(out, &options->keys[i], &options->values[i]);
  }
  fputs("}\n", out);
}

/* Marks the values that their keys have by default too; what is marked has no value. */
static Status mark_defaults(Arena *memory, const ConfigKey *keys, const ConfigValue *values, bool *out) {
  for (int i = 0; keys[i].name; i++)
    if (!out[i] && keys[i].fallback) TRY(config_value_is_default(memory, &keys[i], &values[i], &out[i]));
  return STATUS_OK;
}

/* Writes the policies; `brief`: without what has its default. */
static Status write_policies(Arena *memory, FILE *out, bool brief, const StudyFile *study) {
  fputs(study->policy_count > 0 ? "policies:\n" : "policies: []\n", out);
  for (int p = 0; p < study->policy_count; p++) {
    const Config *options = study->policies[p].options;
    bool *omitted;
    ALLOCATE(memory, omitted, config_key_count(options->keys) + 1);
    for (int i = 0; options->keys[i].name; i++) omitted[i] = options->values[i].absent;
    if (brief) TRY(mark_defaults(memory, options->keys, options->values, omitted));
    write_policy(out, &study->policies[p], brief, omitted);
  }
  return STATUS_OK;
}

static void write_sweep(FILE *out, const ConfigKey *keys, const ConfigSweep *sweep) {
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

static Status write_study(Arena *memory, bool brief, const ConfigKey *keys, const ConfigValue *values,
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
  write_section(&(Writer){stream, keys, values, omitted}, 0, 0, 0);
  Status status = write_policies(memory, stream, brief, study);
  write_sweep(stream, keys, sweep);
  if (fclose(stream) != 0) status = status_set(STATUS_INTERNAL, "out of memory");
  if (status == STATUS_OK) status = arena_print(memory, out, "%s", text);
  free(text);
  return status;
}

Status config_resolve(Arena *memory, ConfigPlace place, const ConfigKey *keys, const ConfigValue *values,
                      const ConfigSweep *sweep, StudyFile *study) {
  TRY(write_study(memory, false, keys, values, sweep, study, &study->resolved));
  TRY(write_study(memory, true, keys, values, sweep, study, &study->changed));
  const size_t size = strlen(study->resolved);
  if (size > CONFIG_TEXT_LIMIT)
    return config_refuse(place, "with all values filled in, the study is longer than %d bytes",
                         CONFIG_TEXT_LIMIT);
  return digest_hex(study->resolved, size, study->sha256);
}
