/* The whole study as YAML with every value filled in, and its hash: what a results file carries and a resumed
 * run compares. */
#include "io/config/config_internal.h"
#include "io/digest.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  FILE *out;
  const ConfigKey *keys;
  const ConfigValue *values;
  const bool *omitted; /* [keys]: swept, or absent */
} Writer;

/* The part of a key's name that follows the section's `length` characters. */
static const char *part_after(const char *name, int length) { return name + length + (length > 0); }

static bool same_start(const char *a, const char *b, int length) {
  return strncmp(a, b, (size_t)length) == 0 && (length == 0 || (a[length] == '.' && b[length] == '.'));
}

/* An earlier key lies in the same section, so that its heading is written already. */
static bool heading_written(const Writer *writer, int key, int length) {
  for (int i = 0; i < key; i++)
    if (!writer->omitted[i] && same_start(writer->keys[i].name, writer->keys[key].name, length)) return true;
  return false;
}

/* All keys in the section that is the first `length` characters of key `first`, from that key on. A key that
 * is swept stands under sweep instead, so that each key stands once; an absent one stands nowhere. */
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

static void write_policies(FILE *out, int count, const ConfigPolicy *policies) {
  fputs(count > 0 ? "policies:\n" : "policies: []\n", out);
  for (int p = 0; p < count; p++) {
    const Config *options = policies[p].options;
    fputs("  - {name: ", out);
    write_text(out, policies[p].name);
    fputs(", label: ", out);
    write_text(out, policies[p].label);
    for (int i = 0; options->keys[i].name; i++) {
      fprintf(out, ", %s: ", options->keys[i].name);
      config_value_write(out, &options->keys[i], &options->values[i]);
    }
    fputs("}\n", out);
  }
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

Status config_resolve(Arena *memory, ConfigPlace place, const ConfigKey *keys, const ConfigValue *values,
                      const ConfigSweep *sweep, StudyFile *study) {
  bool *omitted;
  char *text = NULL;
  size_t size = 0;
  ALLOCATE(memory, omitted, config_key_count(keys));
  for (int i = 0; keys[i].name; i++) omitted[i] = values[i].absent;
  for (int a = 0; a < sweep->axis_count; a++) omitted[sweep->keys[a]] = true;
  FILE *out = open_memstream(&text, &size);
  if (!out) return status_set(STATUS_INTERNAL, "out of memory");
  write_section(&(Writer){out, keys, values, omitted}, 0, 0, 0);
  write_policies(out, study->policy_count, study->policies);
  write_sweep(out, keys, sweep);
  Status status = fclose(out) == 0 ? STATUS_OK : status_set(STATUS_INTERNAL, "out of memory");
  if (status == STATUS_OK && size > CONFIG_TEXT_LIMIT)
    status = config_refuse(place, "with all values filled in, the study is longer than %d bytes",
                           CONFIG_TEXT_LIMIT);
  if (status == STATUS_OK) status = arena_print(memory, &study->resolved, "%s", text);
  if (status == STATUS_OK) status = digest_hex(text, size, study->sha256);
  free(text);
  return status;
}
