/* Names and messages: walking lists of words, finding the closest one to a typo, saying what a key allows,
 * and where an error is. */
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

void config_nearest_offer(ConfigNearest *nearest, const char *name, int length, const char *shown,
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
