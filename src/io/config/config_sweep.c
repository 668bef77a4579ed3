/* The settings of a study: the product of the lists under `sweep`, first axis slowest; or all lists in step
 * (zip); or the points of a design, which takes the value of each key from a range or a list. */
#include "core/design.h"
#include "io/config/config_internal.h"

#include <math.h>
#include <string.h>

/* ---- axes */

/* Returns the value of a numeric key as a real number. */
static double config_value_number(const ConfigKey *key, const ConfigValue *value) {
  return key->type == KEY_INT ? (double)value->integer : value->real;
}

static bool config_key_is_numeric(const ConfigKey *key) {
  return key->type == KEY_INT || key->type == KEY_REAL || key->type == KEY_REAL_OR_INTS;
}

/* Reads the range {from: a, to: b, scale: linear | log} of a key. */
static Status config_sweep_read_range(Arena *memory, const ConfigKey *row, const ConfigNode *node,
                                      ConfigRange *range) {
  enum { FROM, TO, SCALE, PARTS };
  const ConfigKey end = {
      .type = row->type == KEY_INT ? KEY_INT : KEY_REAL, .minimum = row->minimum, .maximum = row->maximum};
  ConfigKey keys[PARTS + 1] = {[FROM] = end,
                               [TO] = end,
                               [SCALE] = {.name = "scale",
                                          .type = KEY_WORD,
                                          .words = "linear log",
                                          .fallback = "linear",
                                          .help = "what is even over the range: values or their logarithms"}};
  const char *owner;
  ConfigGiven given;
  ConfigValue *values;
  keys[FROM].name = "from";
  keys[FROM].help = "the smallest value";
  keys[TO].name = "to";
  keys[TO].help = "the largest value";
  TRY(arena_print(memory, &owner, "sweep.%s.", row->name));
  if (!config_key_is_numeric(row))
    return config_refuse(node->place, "key 'sweep.%s': a range needs numbers; give a list, such as [a, b]",
                         row->name);
  TRY(config_given_new(memory, keys, &given));
  for (const ConfigNode *child = node->first; child; child = child->next)
    TRY(config_given_take(memory, owner, child->key, child, &given));
  TRY(config_table_values(memory, owner, node->place, &given, NULL, &values));
  *range = (ConfigRange){.given = true,
                         .from = values[FROM],
                         .to = values[TO],
                         .logarithmic = strcmp(values[SCALE].word, "log") == 0};
  const double from = config_value_number(row, &range->from);
  if (from >= config_value_number(row, &range->to))
    return config_refuse(given.node[FROM]->place,
                         "key '%sfrom': value '%s' is not below '%sto', which is '%s'", owner,
                         given.node[FROM]->text, owner, given.node[TO]->text);
  if (range->logarithmic && from <= 0)
    return config_refuse(given.node[FROM]->place,
                         "key '%sfrom': value '%s' has no logarithm; allowed with scale "
                         "log: numbers above 0",
                         owner, given.node[FROM]->text);
  return STATUS_OK;
}

static Status config_sweep_read_list(Arena *memory, const ConfigKey *row, const ConfigNode *list,
                                     ConfigValue **values, int *count) {
  const char *name = row->name;
  if (list->kind != NODE_SEQUENCE || list->count == 0)
    return config_refuse(list->place,
                         "key 'sweep.%s': expects a list of values, such as [a, b], or in a design a range, "
                         "such as {from: 1, to: 2}",
                         name);
  if (list->count > CONFIG_SETTING_LIMIT)
    return config_refuse(list->place, "key 'sweep.%s': more than %d settings", name, CONFIG_SETTING_LIMIT);
  ALLOCATE(memory, *values, list->count);
  for (const ConfigNode *item = list->first; item; item = item->next) {
    if (item->kind == NODE_SEQUENCE && row->type == KEY_REAL_OR_INTS)
      return config_refuse(item->place, "key 'sweep.%s': lists cannot be swept; only numbers can", name);
    TRY(config_value_parse(memory, row, "sweep.", name, item, &(*values)[(*count)++]));
  }
  return STATUS_OK;
}

/* Reads axis a: a list or a range. */
static Status config_sweep_read_axis(Arena *memory, const ConfigGiven *axes, int a, ConfigSweep *sweep) {
  const ConfigKey *row = &axes->keys[sweep->keys[a]];
  const ConfigNode *node = axes->node[sweep->keys[a]];
  if (row->fixed || config_key_is_list(row))
    return config_refuse(node->key_place, "key 'sweep.%s': '%s' cannot be swept", row->name, row->name);
  if (node->kind != NODE_MAPPING)
    return config_sweep_read_list(memory, row, node, &sweep->values[a], &sweep->counts[a]);
  if (!sweep->design)
    return config_refuse(node->place,
                         "key 'sweep.%s': a range needs a design, such as design: {kind: sobol, points: 64}; "
                         "without one, give a list, such as [a, b]",
                         row->name);
  return config_sweep_read_range(memory, row, node, &sweep->ranges[a]);
}

/* Fills study->axes[a], which is what callers see of an axis: text as it is, a number in its shortest form.
 */
static Status config_sweep_fill_axis(Arena *memory, const ConfigKey *key, int a, StudyFile *study) {
  bool numeric = config_key_is_numeric(key);
  double *numbers;
  const char **texts;
  ALLOCATE(memory, numbers, study->setting_count);
  ALLOCATE(memory, texts, study->setting_count);
  for (int s = 0; s < study->setting_count; s++) {
    const ConfigValue *value = study->settings[s]->axis_values[a];
    char text[32] = "null";
    numeric = numeric && !value->word;
    numbers[s] = config_value_number(key, value);
    switch (key->type) {
    case KEY_INT: snprintf(text, sizeof text, "%lld", (long long)value->integer); break;
    case KEY_REAL:
    case KEY_REAL_OR_INTS: config_real_text(value->real, text); break;
    case KEY_BOOL: strcpy(text, value->boolean ? "true" : "false"); break;
    default: break;
    }
    TRY(arena_print(memory, &texts[s], "%s", value->word ? value->word : text));
  }
  study->axes[a] = (ConfigAxis){key->name, numeric, numbers, texts};
  return STATUS_OK;
}

/* ---- which values each setting takes */

/* Counts the settings of lists. */
static Status config_sweep_count(ConfigPlace place, const ConfigKey *keys, const ConfigSweep *sweep,
                                 int64_t *count) {
  *count = sweep->zip ? sweep->counts[0] : 1;
  for (int a = 0; a < sweep->axis_count; a++) {
    if (!sweep->zip) *count *= sweep->counts[a];
    if (*count > CONFIG_SETTING_LIMIT)
      return config_refuse(
          place,
          "key 'sweep': more than %d settings; make the lists shorter, or use zip: true or a "
          "design",
          CONFIG_SETTING_LIMIT);
    if (sweep->zip && sweep->counts[a] != sweep->counts[0])
      return config_refuse(
          place, "key 'sweep': zip: true needs lists of equal length, but '%s' has %d values and '%s' has %d",
          keys[sweep->keys[0]].name, sweep->counts[0], keys[sweep->keys[a]].name, sweep->counts[a]);
  }
  return STATUS_OK;
}

/* Chooses values[settings, axes] from lists. */
static void config_sweep_choose(const ConfigSweep *sweep, int settings, const ConfigValue **chosen) {
  for (int s = 0; s < settings; s++, chosen += sweep->axis_count) {
    for (int a = sweep->axis_count - 1, rest = s; a >= 0; a--) {
      chosen[a] = &sweep->values[a][sweep->zip ? s : rest % sweep->counts[a]];
      rest /= sweep->counts[a];
    }
  }
}

/* Finds the design that the values of the study ask for, if any. */
static Status config_design_read(const ConfigSweepSource *source, ConfigSweep *sweep, Design *design) {
  const ConfigKey *keys = source->axes->keys;
  const int kind = config_key_index(keys, "design.kind"), points = config_key_index(keys, "design.points");
  if (kind < 0 || source->values[kind].absent) return STATUS_OK;
  const ConfigNode *kind_node = source->given->node[kind], *points_node = source->given->node[points];
  const char *name = source->values[kind].word;
  const uint64_t seed = (uint64_t)source->values[config_key_index(keys, "seed")].integer;
  *design = (Design){.points = (int)source->values[points].integer,
                     .dimensions = sweep->axis_count,
                     .key = rng_key(seed, RNG_DESIGN)};
  while (strcmp(design_kind_name((int)design->kind), name) != 0) design->kind++;
  sweep->design = true;
  if (sweep->axis_count == 0)
    return config_refuse(kind_node->key_place, "key 'design': no key is swept; give ranges or lists under "
                                               "sweep, or design: none");
  if (sweep->zip)
    return config_refuse(source->zip->key_place, "key 'sweep.zip': a design chooses the values of each key "
                                                 "itself; leave out zip, or design");
  if (sweep->axis_count > design_most_dimensions(design->kind))
    return config_refuse(kind_node->place,
                         "key 'design.kind': %d keys are swept; value '%s' allows at most %d",
                         sweep->axis_count, name, design_most_dimensions(design->kind));
  if (design_needs_power(design->kind) && (design->points & (design->points - 1)) != 0)
    return config_refuse(points_node->place,
                         "key 'design.points': value '%d' is not a power of two; allowed "
                         "with kind %s: 2, 4, 8, ... %d",
                         design->points, name, DESIGN_MOST_POINTS);
  if (design_count(design) > CONFIG_SETTING_LIMIT)
    return config_refuse(points_node->place,
                         "key 'design.points': value '%d' makes %lld settings of %d keys; at "
                         "most %d are allowed",
                         design->points, (long long)design_count(design), design->dimensions,
                         CONFIG_SETTING_LIMIT);
  return STATUS_OK;
}

/* Returns the value at `place` in (0, 1) of a range. Integers are rounded. */
static ConfigValue config_range_value(const ConfigKey *key, const ConfigRange *range, double place) {
  const double from = config_value_number(key, &range->from), to = config_value_number(key, &range->to);
  const double value =
      range->logarithmic ? exp((1 - place) * log(from) + place * log(to)) : (1 - place) * from + place * to;
  if (value <= from) return range->from;
  if (value >= to) return range->to;
  if (key->type == KEY_INT) return (ConfigValue){.integer = llround(value)};
  return (ConfigValue){.real = value};
}

/* Chooses values[settings, axes] by the points of a design. */
static Status config_design_choose(Arena *memory, const ConfigKey *keys, const ConfigSweep *sweep,
                                   const Design *design, const ConfigValue **chosen) {
  const int64_t count = design_count(design) * design->dimensions;
  SCRATCH_ARENA(scratch);
  ConfigValue *values;
  double *places;
  ALLOCATE(&scratch, places, count);
  ALLOCATE(memory, values, count);
  design_points(design, places);
  for (int64_t i = 0; i < count; i++) {
    const int a = (int)(i % design->dimensions);
    chosen[i] = &values[i];
    if (sweep->ranges[a].given)
      values[i] = config_range_value(&keys[sweep->keys[a]], &sweep->ranges[a], places[i]);
    else
      chosen[i] = &sweep->values[a][(int)(places[i] * sweep->counts[a])];
  }
  return STATUS_OK;
}

/* ---- labels */

static int config_compare_labels(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Labels setting s: a point by its number, for its values have many digits and may occur twice. */
static Status config_sweep_label(Arena *memory, const ConfigSweep *sweep, int s, StudyFile *study) {
  const char *label = sweep->axis_count > 0 ? "" : "default";
  if (sweep->design) return arena_print(memory, &study->setting_labels[s], "point=%d", s);
  for (int a = 0; a < sweep->axis_count; a++)
    TRY(arena_print(memory, &label, "%s%s%s=%s", label, a > 0 ? ", " : "", study->axes[a].key,
                    study->axes[a].texts[s]));
  study->setting_labels[s] = label;
  return STATUS_OK;
}

static Status config_sweep_label_all(Arena *memory, ConfigPlace place, const ConfigSweep *sweep,
                                     StudyFile *study) {
  const char **sorted;
  ALLOCATE_ARRAYS(memory, study->setting_count, &study->setting_labels, &sorted);
  for (int s = 0; s < study->setting_count; s++) TRY(config_sweep_label(memory, sweep, s, study));
  memcpy(sorted, study->setting_labels, (size_t)study->setting_count * sizeof *sorted);
  qsort(sorted, (size_t)study->setting_count, sizeof *sorted, config_compare_labels);
  for (int s = 1; s < study->setting_count; s++)
    if (strcmp(sorted[s - 1], sorted[s]) == 0)
      return config_refuse(place, "key 'sweep': the setting '%s' occurs twice", config_shown(sorted[s]).text);
  return STATUS_OK;
}

/* ---- all of it */

/* Reads the axes and what they make. */
static Status config_sweep_read(Arena *memory, const ConfigSweepSource *source, ConfigSweep *sweep,
                                Design *design) {
  static const ConfigKey zip_key = {.name = "zip", .type = KEY_BOOL};
  const ConfigGiven *axes = source->axes;
  ConfigValue zip = {.boolean = false};
  if (source->zip) TRY(config_value_parse(memory, &zip_key, "sweep.", "zip", source->zip, &zip));
  *sweep =
      (ConfigSweep){.axis_count = axes->count, .keys = axes->order, .zip = zip.boolean && axes->count > 1};
  ALLOCATE(memory, sweep->counts, axes->count);
  ALLOCATE(memory, sweep->values, axes->count);
  ALLOCATE(memory, sweep->ranges, axes->count);
  TRY(config_design_read(source, sweep, design));
  for (int a = 0; a < axes->count; a++) TRY(config_sweep_read_axis(memory, axes, a, sweep));
  return STATUS_OK;
}

Status config_sweep_expand(Arena *memory, const ConfigSweepSource *source, ConfigSweep *sweep,
                           StudyFile *study) {
  const ConfigGiven *axes = source->axes;
  const int axis_count = axes->count;
  Design design;
  Config *configs;
  const ConfigValue **chosen; /* [settings, axes] */
  int64_t count;
  TRY(config_sweep_read(memory, source, sweep, &design));
  if (sweep->design)
    count = design_count(&design);
  else
    TRY(config_sweep_count(source->place, axes->keys, sweep, &count));
  study->grid = !sweep->zip && !sweep->design;
  study->axis_count = axis_count;
  study->setting_count = (int)count;
  ALLOCATE(memory, study->axes, axis_count);
  ALLOCATE(memory, configs, study->setting_count);
  ALLOCATE(memory, study->settings, study->setting_count);
  ALLOCATE(memory, chosen, count * axis_count);
  if (sweep->design)
    TRY(config_design_choose(memory, axes->keys, sweep, &design, chosen));
  else
    config_sweep_choose(sweep, study->setting_count, chosen);
  for (int s = 0; s < study->setting_count; s++, chosen += axis_count) {
    configs[s] = (Config){.keys = axes->keys,
                          .values = source->values,
                          .axis_count = axis_count,
                          .axis_keys = sweep->keys,
                          .axis_values = chosen};
    study->settings[s] = &configs[s];
  }
  for (int a = 0; a < axis_count; a++)
    TRY(config_sweep_fill_axis(memory, &axes->keys[axes->order[a]], a, study));
  return config_sweep_label_all(memory, source->place, sweep, study);
}
