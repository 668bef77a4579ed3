/* Tables of keys: walking their words, the closest one to a typo, what a key allows and where an error is;
 * which node of a file belongs to which key, and the value of every key. */
#include "io/config/config_internal.h"

#include <ctype.h>
#include <float.h>
#include <stdarg.h>
#include <string.h>

/* Longer names are never close to one another. */
enum { NAME_LIMIT = 64 };

const char *config_key_word(const ConfigKey *key, int index, int *length) {
  const char *word = key->words ? key->words : "";
  for (;; word += *length, index--) {
    word += strspn(word, " ");
    *length = (int)strcspn(word, " ");
    if (*length == 0) break;
    if (index == 0) return word;
  }
  word = key->word ? key->word(index) : NULL;
  *length = word ? (int)strlen(word) : 0;
  return word;
}

const char *config_key_help(const ConfigKey *key, char text[CONFIG_HELP]) {
  snprintf(text, CONFIG_HELP, "%s", key->help);
  if (!key->meaning) return text;
  for (int i = 0; key->word(i); i++)
    config_append(CONFIG_HELP, text, "; %s: %s", key->word(i), key->meaning(i));
  return text;
}

void config_append(size_t size, char *out, const char *format, ...) {
  size_t used = strlen(out);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(out + used, size - used, format, arguments);
  va_end(arguments);
}

/* Returns whether two letters are the same, ignoring case and the difference between - and _. */
static bool same_letter(char a, char b) {
  int x = a == '-' ? '_' : tolower((unsigned char)a), y = b == '-' ? '_' : tolower((unsigned char)b);
  return x == y;
}

static int config_fewer_edits(int a, int b) { return a < b ? a : b; }

/* Counts the insertions, deletions, replacements and swaps of neighbours that turn a[m] into b[n], both at
 * most NAME_LIMIT long. */
static int edit_distance(const char *a, int m, const char *b, int n) {
  int row[NAME_LIMIT + 1][NAME_LIMIT + 1];
  for (int i = 0; i <= m; i++) row[i][0] = i;
  for (int j = 0; j <= n; j++) row[0][j] = j;
  for (int i = 1; i <= m; i++) {
    for (int j = 1; j <= n; j++) {
      int change = row[i - 1][j - 1] + !same_letter(a[i - 1], b[j - 1]);
      row[i][j] = config_fewer_edits(change, 1 + config_fewer_edits(row[i - 1][j], row[i][j - 1]));
      bool swapped = i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]);
      if (swapped) row[i][j] = config_fewer_edits(row[i][j], row[i - 2][j - 2] + 1);
    }
  }
  return row[m][n];
}

/* Offers name[length]; if it is the closest so far, `shown` (possibly another name) becomes the
 * suggestion. */
static void config_nearest_offer(ConfigNearest *nearest, const char *name, int length, const char *shown,
                                 int shown_length) {
  size_t typo_length = strlen(nearest->typo);
  if (typo_length == 0 || length == 0 || typo_length > NAME_LIMIT || length > NAME_LIMIT) return;
  int distance = edit_distance(nearest->typo, (int)typo_length, name, length);
  bool near = distance <= 1 + (int)typo_length / 4 && distance < length && distance < (int)typo_length;
  if (!near || (nearest->name && distance >= nearest->distance)) return;
  nearest->name = shown;
  nearest->length = shown_length;
  nearest->distance = distance;
}

/* Other people's terms for words in the tables. */
static const struct {
  const char *theirs, *ours;
} synonyms[] = {{"bernoulli", "logistic"}, {"binomial", "logistic"}, {"binary", "logistic"},
                {"clicks", "logistic"},    {"normal", "gaussian"},   {"counts", "poisson"},
                {"gmm", "mixture"}};

void config_nearest_offer_words(ConfigNearest *nearest, const ConfigKey *key) {
  const char *word;
  for (int i = 0, length; (word = config_key_word(key, i, &length)); i++) {
    config_nearest_offer(nearest, word, length, word, length);
    for (size_t s = 0; s < sizeof synonyms / sizeof *synonyms; s++)
      if (strlen(synonyms[s].ours) == (size_t)length && memcmp(synonyms[s].ours, word, (size_t)length) == 0)
        config_nearest_offer(nearest, synonyms[s].theirs, (int)strlen(synonyms[s].theirs), word, length);
  }
}

void config_nearest_append(const ConfigNearest *nearest, size_t size, char *out) {
  if (nearest->name) config_append(size, out, "; did you mean '%.*s'?", nearest->length, nearest->name);
}

const char *config_nearest(const char *typo, const char *(*word)(int index)) {
  ConfigNearest nearest = {.typo = typo};
  config_nearest_offer_words(&nearest, &(ConfigKey){.word = word});
  return nearest.name;
}

Status config_unknown_name(Status code, const char *typo, const char *what, const char *(*word)(int index)) {
  const ConfigKey key = {.type = KEY_WORD, .word = word};
  ConfigNearest nearest = {.typo = typo};
  char text[1200];
  config_allowed(&key, sizeof text, text);
  config_nearest_offer_words(&nearest, &key);
  config_nearest_append(&nearest, sizeof text, text);
  return status_set(code, "'%s' is not %s; allowed: %s", config_shown(typo).text, what, text);
}

static void config_append_words(const ConfigKey *key, const char *before, size_t size, char *out) {
  const char *word;
  for (int i = 0, length; (word = config_key_word(key, i, &length)); i++)
    config_append(size, out, "%s%.*s", i == 0 ? before : " | ", length, word);
}

static void config_append_range(const ConfigKey *key, size_t size, char *out) {
  double least = key->minimum, most = key->maximum;
  double endless = key->type == KEY_REAL ? DBL_MAX : 9e18;
  bool below = least <= -endless, above = most >= endless;
  char least_text[32], most_text[32];
  config_real_text(least, least_text);
  config_real_text(most, most_text);
  if ((least == 0 && most == 0) || (below && above)) return;
  if (above)
    config_append(size, out, " of at least %s", least_text);
  else if (below)
    config_append(size, out, " of at most %s", most_text);
  else
    config_append(size, out, " in [%s, %s]", least_text, most_text);
}

void config_allowed(const ConfigKey *key, size_t size, char *out) {
  *out = '\0';
  switch (key->type) {
  case KEY_INT: config_append(size, out, "an integer"); break;
  case KEY_REAL: config_append(size, out, "a number"); break;
  case KEY_INTS: config_append(size, out, "a list of integers, each"); break;
  case KEY_REAL_OR_INTS: config_append(size, out, "a list of integers, or a number"); break;
  case KEY_WORDS: config_append(size, out, "a list of"); break;
  case KEY_BOOL: config_append(size, out, "true | false"); return;
  case KEY_TEXT: config_append(size, out, "text"); return;
  case KEY_WORD: config_append_words(key, "", size, out); return;
  }
  if (key->type == KEY_WORDS) {
    config_append_words(key, " ", size, out);
    return;
  }
  config_append_range(key, size, out);
  config_append_words(key, ", or ", size, out);
  if (key->parts) config_append(size, out, ", or a mapping of the keys '%s.*'", key->name);
}

/* ---- messages */

Status config_refuse(ConfigPlace place, const char *format, ...) {
  char sentence[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  if (place.line == 0) return status_set(STATUS_INPUT, "%s: %s", place.source, sentence);
  return status_set(STATUS_INPUT, "%s:%d:%d: %s", place.source, place.line, place.column, sentence);
}

ConfigShown config_shown(const char *text) {
  ConfigShown shown;
  size_t length = strlen(text), limit = sizeof shown.text - 4;
  if (length > limit) {
    length = limit;
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) length--;
  }
  for (size_t i = 0; i < length; i++) shown.text[i] = (unsigned char)text[i] < 0x20 ? ' ' : text[i];
  strcpy(shown.text + length, text[length] ? "..." : "");
  return shown;
}

/* ---- the keys of a table, and what a file gives for them */

int config_key_count(const ConfigKey *keys) {
  int count = 0;
  while (keys[count].name) count++;
  return count;
}

int config_key_index(const ConfigKey *keys, const char *name) {
  /* Names are texts of the program, which has one copy of each: so most are found without comparing letters.
   */
  for (int i = 0; keys[i].name; i++)
    if (keys[i].name == name) return i;
  for (int i = 0; keys[i].name; i++)
    if (strcmp(keys[i].name, name) == 0) return i;
  return -1;
}

void config_join_keys(const ConfigKey *keys, const ConfigKey *but, int most, ConfigKey *joined) {
  int count = config_key_count(joined);
  for (; keys && keys->name; keys++) {
    if (but && config_key_index(but, keys->name) >= 0) continue;
    ASSERT(count + 1 < most);
    joined[count++] = *keys;
  }
}

Status config_given_new(Arena *memory, const ConfigKey *keys, ConfigGiven *given) {
  int count = config_key_count(keys);
  *given = (ConfigGiven){.keys = keys};
  ALLOCATE(memory, given->node, count);
  ALLOCATE(memory, given->order, count);
  return STATUS_OK;
}

void config_given_remove(ConfigGiven *given, int key) {
  int kept = 0;
  for (int i = 0; i < given->count; i++)
    if (given->order[i] != key) given->order[kept++] = given->order[i];
  given->count = kept;
  given->node[key] = NULL;
}

/* Returns whether `name` is in the section `path`, as "problem.arms" is in "problem"; all names are in the
 * section "". */
static bool in_section(const char *name, const char *path) {
  size_t length = strlen(path);
  return length == 0 || (strncmp(name, path, length) == 0 && name[length] == '.');
}

/* Returns whether one of the two is a key that may be given in parts, and the other is one of its parts. */
static bool config_keys_conflict(const ConfigKey *a, const ConfigKey *b) {
  return (a->parts && in_section(b->name, a->name)) || (b->parts && in_section(a->name, b->name));
}

void config_given_put(ConfigGiven *given, int key, const ConfigNode *node) {
  for (int i = 0; given->keys[i].name; i++)
    if (given->node[i] && config_keys_conflict(&given->keys[i], &given->keys[key]))
      config_given_remove(given, i);
  if (!given->node[key]) given->order[given->count++] = key;
  given->node[key] = node;
}

/* Returns whether the key is given in parts, or is a part of a key that is given whole or not at all. */
static bool config_key_is_absent(const ConfigGiven *given, int key) {
  const ConfigKey *keys = given->keys;
  bool part = false, given_in_parts = false;
  for (int i = 0; keys[i].name; i++) {
    if (!keys[i].parts || (i != key && !in_section(keys[key].name, keys[i].name))) continue;
    part = i != key;
    for (int j = 0; keys[j].name; j++)
      given_in_parts |= given->node[j] && in_section(keys[j].name, keys[i].name);
  }
  return part ? !given_in_parts : given_in_parts;
}

static bool is_section(const ConfigKey *keys, const char *path) {
  for (int i = 0; keys[i].name; i++)
    if (in_section(keys[i].name, path)) return true;
  return false;
}

/* Lists what may appear directly in a section, as "family | theta | ...". The keys of a section must be
 * adjacent. */
static void config_list_section(const ConfigKey *keys, const char *section, size_t size, char *out) {
  const char *last = "";
  size_t last_length = 0, skip = strlen(section) + (*section != '\0');
  *out = '\0';
  for (int i = 0; keys[i].name; i++) {
    if (!in_section(keys[i].name, section)) continue;
    const char *name = keys[i].name + skip;
    size_t length = strcspn(name, ".");
    if (length == last_length && strncmp(name, last, length) == 0) continue;
    config_append(size, out, "%s%.*s", *out ? " | " : "", (int)length, name);
    last = name;
    last_length = length;
  }
}

/* Returns the length of `name` when it is cut to the number of parts that `typo` has. */
static int config_cut_key_to_depth(const char *name, const char *typo) {
  const char *end = name;
  for (;; end++) {
    end += strcspn(end, ".");
    typo = strchr(typo, '.');
    if (!*end || !typo) return (int)(end - name);
    typo++;
  }
}

/* Offers a name cut to the depth of the typo ("problm"), whole, by its last part ("arms" for "problem.arms"),
 * and finally if the last parts of both are equal ("problem.likelihood" for "likelihood"). */
static void consider_key(ConfigNearest *nearest, const char *name) {
  int length = (int)strlen(name), cut = config_cut_key_to_depth(name, nearest->typo);
  const char *last = strrchr(name, '.');
  config_nearest_offer(nearest, name, cut, name, cut);
  config_nearest_offer(nearest, name, length, name, length);
  if (last && !strchr(nearest->typo, '.'))
    config_nearest_offer(nearest, last + 1, (int)strlen(last + 1), name, length);
  const char *typo_last = strrchr(nearest->typo, '.');
  if (typo_last && !nearest->name && strcmp(typo_last + 1, last ? last + 1 : name) == 0)
    *nearest = (ConfigNearest){nearest->typo, name, length, length};
}

static Status unknown_key(Arena *memory, const ConfigGiven *given, const char *owner, const char *path,
                          const ConfigNode *node) {
  const ConfigKey *keys = given->keys;
  char allowed[1200], nearest_text[160] = "";
  const char *dot = strrchr(path, '.'), *section = "";
  if (dot) TRY(arena_print(memory, &section, "%.*s", (int)(dot - path), path));
  if (!is_section(keys, section)) section = "";
  config_list_section(keys, section, sizeof allowed, allowed);
  if (given->top && !*section) config_append(sizeof allowed, allowed, " | policies | sweep");
  ConfigNearest nearest = {.typo = path};
  for (int i = 0; keys[i].name; i++) consider_key(&nearest, keys[i].name);
  if (given->top) {
    consider_key(&nearest, "policies");
    consider_key(&nearest, "sweep");
  }
  config_nearest_append(&nearest, sizeof nearest_text, nearest_text);
  return config_refuse(node->key_place, "key '%s%s': unknown key; allowed%s%s%s: %s%s", owner,
                       config_shown(path).text, *section ? " in '" : "", section, *section ? "'" : " here",
                       *allowed ? allowed : "none", nearest_text);
}

Status config_given_take(Arena *memory, const char *owner, const char *path, const ConfigNode *node,
                         ConfigGiven *given) {
  int key = config_key_index(given->keys, path);
  bool in_parts = key >= 0 && given->keys[key].parts && node->kind == NODE_MAPPING;
  if (key >= 0 && !in_parts) {
    for (int i = 0; given->keys[i].name; i++)
      if (given->node[i] && (i == key || config_keys_conflict(&given->keys[i], &given->keys[key])))
        return config_refuse(node->key_place, "key '%s%s': given twice, first in line %d", owner, path,
                             given->node[i]->key_place.line);
    config_given_put(given, key, node);
    return STATUS_OK;
  }
  if (!*path || !is_section(given->keys, path)) return unknown_key(memory, given, owner, path, node);
  if (config_node_null(node)) return STATUS_OK;
  if (node->kind != NODE_MAPPING) {
    char allowed[1200];
    config_list_section(given->keys, path, sizeof allowed, allowed);
    return config_refuse(node->place, "key '%s%s': %s%s%s where a mapping of keys belongs; allowed in it: %s",
                         owner, path, node->kind == NODE_SCALAR ? "value '" : "a list",
                         node->kind == NODE_SCALAR ? config_shown(node->text).text : "",
                         node->kind == NODE_SCALAR ? "'" : "", allowed);
  }
  for (const ConfigNode *child = node->first; child; child = child->next) {
    const char *child_path;
    TRY(arena_print(memory, &child_path, "%s.%s", path, child->key));
    TRY(config_given_take(memory, owner, child_path, child, given));
  }
  return STATUS_OK;
}

static Status missing_key(const ConfigGiven *given, int missing, const char *owner, ConfigPlace place) {
  const ConfigKey *key = &given->keys[missing];
  char allowed[1200];
  int part = -1; /* one that is given, of the key that the missing one is a part of */
  for (int i = 0; given->keys[i].name; i++)
    for (int k = 0; given->keys[i].parts && given->keys[k].name && part < 0; k++)
      if (given->node[k] && config_keys_conflict(&given->keys[i], &given->keys[k]) &&
          config_keys_conflict(&given->keys[i], key))
        part = k;
  config_allowed(key, sizeof allowed, allowed);
  if (part < 0)
    return config_refuse(place, "key '%s%s': must be given (%s); allowed: %s", owner, key->name, key->help,
                         allowed);
  const char *name = given->keys[part].name;
  int whole = (int)(strrchr(name, '.') - name);
  return config_refuse(given->node[part]->key_place,
                       "key '%s%s': needs '%s', which is not given (%s; allowed: %s); to give '%.*s' as one "
                       "value, leave out '%s'",
                       owner, name, key->name, key->help, allowed, whole, name, name);
}

Status config_table_values(Arena *memory, const char *owner, ConfigPlace place, const ConfigGiven *given,
                           const ConfigGiven *swept, ConfigValue **values) {
  const ConfigKey *keys = given->keys;
  ALLOCATE(memory, *values, config_key_count(keys));
  for (int i = 0; keys[i].name; i++) {
    if (!given->node[i] && swept && swept->node[i]) continue;
    (*values)[i].absent = config_key_is_absent(given, i);
    if ((*values)[i].absent) continue;
    if (!given->node[i] && !keys[i].fallback) return missing_key(given, i, owner, place);
    TRY(config_value_parse(memory, &keys[i], owner, keys[i].name, given->node[i], &(*values)[i]));
  }
  return STATUS_OK;
}
