/* One value: checked against its key when read, and written so that it reads back as the same value. */
#include "core/numeral.h"
#include "io/config/config_internal.h"

#include <errno.h>
#include <fenv.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

/* Returns how many decimal digits the text starts with. */
static size_t config_count_digits(const char *text) { return strspn(text, "0123456789"); }

/* Returns whether the text is a decimal number, with or without fraction and exponent; hexadecimal, nan and
 * inf are not. */
static bool config_is_number(const char *text) {
  text += *text == '+' || *text == '-';
  size_t whole = config_count_digits(text), fraction = 0;
  text += whole;
  if (*text == '.') text += 1 + (fraction = config_count_digits(text + 1));
  if (whole + fraction == 0) return false;
  if (*text == 'e' || *text == 'E') {
    text += 1 + (text[1] == '+' || text[1] == '-');
    if (config_count_digits(text) == 0) return false;
    text += config_count_digits(text);
  }
  return *text == '\0';
}

/* Returns what numeral_read does, without raising a floating-point exception; errno reports overflow and
 * underflow. */
static double config_parse_real(const char *text) {
  fenv_t environment;
  feholdexcept(&environment);
  errno = 0;
  double value = numeral_read(text, NULL);
  fesetenv(&environment);
  return value;
}

static void config_print(char *out, size_t size, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  numeral_print(out, size, format, arguments);
  va_end(arguments);
}

void config_real_text(double value, char *out) {
  for (int digits = 15; digits <= 17; digits++) {
    config_print(out, 32, "%.*g", digits, value);
    if (config_parse_real(out) == value) return;
  }
}

/* The value being checked, for messages about it. */
typedef struct {
  Arena *memory;
  const ConfigKey *key;
  const char *owner, *path;
} Check;

/* Refuses with "key 'a.b': value 'v' <problem>; allowed: ...; did you mean 'z'?" */
static Status config_value_refuse(const Check *check, const ConfigNode *node, const char *problem) {
  char value[120], allowed[1200], nearest_text[120] = "";
  config_allowed(check->key, sizeof allowed, allowed);
  if (node->kind == NODE_SCALAR) {
    ConfigNearest nearest = {.typo = node->text};
    static const ConfigKey booleans = {.words = "true false"};
    config_nearest_offer_words(&nearest, check->key->type == KEY_BOOL ? &booleans : check->key);
    config_nearest_append(&nearest, sizeof nearest_text, nearest_text);
    snprintf(value, sizeof value, "value %s%s%s", node->plain ? "'" : "'\"", config_shown(node->text).text,
             node->plain ? "'" : "\"'");
  } else {
    snprintf(value, sizeof value, node->kind == NODE_SEQUENCE ? "a list" : "a mapping");
  }
  return config_refuse(node->place, "key '%s%s': %s %s; allowed: %s%s", check->owner, check->path, value,
                       problem, allowed, nearest_text);
}

static bool is_word(const ConfigKey *key, const char *text) {
  const char *word;
  for (int i = 0, length; (word = config_key_word(key, i, &length)); i++)
    if (strlen(text) == (size_t)length && memcmp(word, text, (size_t)length) == 0) return true;
  return false;
}

static bool in_range(const ConfigKey *key, double value) {
  return (key->minimum == 0 && key->maximum == 0) || (value >= key->minimum && value <= key->maximum);
}

static Status read_integer(const Check *check, const ConfigNode *node, int64_t *out) {
  const char *text = node->text;
  const char *digits = text + (*text == '+' || *text == '-');
  size_t length = config_count_digits(digits);
  if (!node->plain) return config_value_refuse(check, node, "is quoted text, not an integer");
  if (length == 0 || digits[length]) {
    if (!config_is_number(text)) return config_value_refuse(check, node, "is not an integer");
    return config_value_refuse(check, node, "is a real number; write an integer with digits only");
  }
  if (*digits == '0' && length > 1)
    return config_value_refuse(check, node, "starts with 0, which some readers treat as octal");
  errno = 0;
  *out = strtoll(text, NULL, 10);
  if (errno == ERANGE) return config_value_refuse(check, node, "does not fit in a 64-bit integer");
  if (check->key->type == KEY_REAL_OR_INTS || in_range(check->key, (double)*out)) return STATUS_OK;
  return config_value_refuse(check, node, "is out of range");
}

static Status read_real(const Check *check, const ConfigNode *node, double *out) {
  static const char *const endless[] = {"nan", ".nan", "inf", ".inf", "infinity"};
  const char *text = node->text + (*node->text == '+' || *node->text == '-');
  if (!node->plain) return config_value_refuse(check, node, "is quoted text, not a number");
  for (size_t i = 0; i < sizeof endless / sizeof *endless; i++)
    if (strcasecmp(text, endless[i]) == 0) return config_value_refuse(check, node, "is not finite");
  if (!config_is_number(node->text)) return config_value_refuse(check, node, "is not a number");
  *out = config_parse_real(node->text) + 0.0; /* no negative zero */
  if (errno == ERANGE && (isinf(*out) || *out == 0))
    return config_value_refuse(check, node, "does not fit in a double");
  return in_range(check->key, *out) ? STATUS_OK : config_value_refuse(check, node, "is out of range");
}

/* Reads a list of words, or of integers; those of KEY_REAL_OR_INTS have no range, which is of numbers. */
static Status read_list(const Check *check, const ConfigNode *node, ConfigValue *out) {
  bool words = check->key->type == KEY_WORDS;
  const char *fallback = check->key->fallback;
  const ConfigNode *item = node->kind == NODE_SEQUENCE ? node->first : node;
  int count = node->kind == NODE_SEQUENCE ? node->count : 1;
  if (count == 0 && !(fallback && strcmp(fallback, "[]") == 0))
    return config_value_refuse(check, node, "without values is not allowed");
  int64_t *integers;
  const char **texts;
  ALLOCATE(check->memory, integers, words ? 0 : count);
  ALLOCATE(check->memory, texts, words ? count : 0);
  for (int i = 0; i < count; i++, item = item->next) {
    if (item->kind != NODE_SCALAR) return config_value_refuse(check, item, "is not allowed inside the list");
    if (!words) {
      TRY(read_integer(check, item, &integers[i]));
      continue;
    }
    if (!is_word(check->key, item->text)) return config_value_refuse(check, item, "is unknown");
    for (int j = 0; j < i; j++)
      if (strcmp(texts[j], item->text) == 0) return config_value_refuse(check, item, "is listed twice");
    texts[i] = item->text;
  }
  out->count = count;
  out->integers = integers;
  out->words = texts;
  return STATUS_OK;
}

/* Reads the default in the table; if it is wrong, that is our mistake, not the user's. */
static Status config_read_fallback(const Check *check, ConfigValue *out) {
  ConfigNode *node;
  const char *fallback = check->key->fallback;
  if (check->key->type == KEY_TEXT && strcmp(fallback, "null") == 0) return STATUS_OK;
  Status status = config_tree_parse(check->memory, "built-in default", false, fallback, &node);
  if (status == STATUS_OK && node)
    status = config_value_parse(check->memory, check->key, check->owner, check->path, node, out);
  ASSERT(node || status != STATUS_OK);
  return status == STATUS_OK ? STATUS_OK : status_prefix(STATUS_INTERNAL, "a bug in a table of keys: ");
}

Status config_value_parse(Arena *memory, const ConfigKey *key, const char *owner, const char *path,
                          const ConfigNode *node, ConfigValue *out) {
  Check check = {.memory = memory, .key = key, .owner = owner, .path = path};
  const bool list = config_key_is_list(key) || key->type == KEY_REAL_OR_INTS;
  *out = (ConfigValue){0};
  if (!node) return config_read_fallback(&check, out);
  if (node->kind == NODE_MAPPING) return config_value_refuse(&check, node, "is not allowed for this key");
  if (node->kind == NODE_SEQUENCE && !list)
    return config_value_refuse(&check, node, "where one value belongs (lists go under sweep)");
  if (key->type == KEY_TEXT) {
    if (!config_node_null(node)) return out->word = node->text, STATUS_OK;
    return key->fallback ? config_read_fallback(&check, out)
                         : config_value_refuse(&check, node, "means not given, but this key is required");
  }
  if (key->type != KEY_WORDS && node->kind == NODE_SCALAR && is_word(key, node->text))
    return out->word = node->text, STATUS_OK;
  switch (key->type) {
  case KEY_INT: return read_integer(&check, node, &out->integer);
  case KEY_REAL: return read_real(&check, node, &out->real);
  case KEY_BOOL:
    out->boolean = strcmp(node->text, "true") == 0;
    if (node->plain && (out->boolean || strcmp(node->text, "false") == 0)) return STATUS_OK;
    return config_value_refuse(&check, node, "is neither true nor false");
  case KEY_REAL_OR_INTS:
    return node->kind == NODE_SCALAR ? read_real(&check, node, &out->real) : read_list(&check, node, out);
  case KEY_INTS:
  case KEY_WORDS: return read_list(&check, node, out);
  default: return config_value_refuse(&check, node, "is unknown");
  }
}

/* Writes a text, without quotes if no YAML reader takes it for a number, a truth value or null. */
static void config_value_write_text(FILE *out, const char *text) {
  static const char *const reserved[] = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"};
  static const char safe[] = "0123456789.+-_/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  bool plain = *text && !strchr("0123456789.+-", *text) && text[strspn(text, safe)] == '\0';
  for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
    plain = plain && strcasecmp(text, reserved[i]) != 0;
  if (plain) {
    fputs(text, out);
    return;
  }
  fputc('"', out);
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') fputc('\\', out);
    fputc(*text, out);
  }
  fputc('"', out);
}

static bool same_word(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

Status config_value_is_default(Arena *memory, const ConfigKey *key, const ConfigValue *value, bool *out) {
  ConfigValue fallback;
  TRY(config_value_parse(memory, key, "", key->name, NULL, &fallback));
  *out = same_word(value->word, fallback.word) && value->integer == fallback.integer &&
         !(value->real < fallback.real || value->real > fallback.real) &&
         value->boolean == fallback.boolean && value->count == fallback.count;
  for (int i = 0; i < value->count && *out; i++)
    *out = key->type == KEY_WORDS ? same_word(value->words[i], fallback.words[i])
                                  : value->integers[i] == fallback.integers[i];
  return STATUS_OK;
}

/* Writes a number; YAML 1.1 readers take 1e-05 for text, but 1.0e-05 for a number. */
static void config_value_write_real(FILE *out, double value) {
  char text[32];
  config_real_text(value, text);
  const char *exponent = strchr(text, 'e');
  if (exponent && !strchr(text, '.'))
    fprintf(out, "%.*s.0%s", (int)(exponent - text), text, exponent);
  else
    fputs(text, out);
}

static void config_value_write_integers(FILE *out, int count, const int64_t *integers) {
  fputc('[', out);
  for (int i = 0; i < count; i++) fprintf(out, "%s%" PRId64, i ? ", " : "", integers[i]);
  fputc(']', out);
}

void config_value_write(FILE *out, const ConfigKey *key, const ConfigValue *value) {
  if (value->word) {
    config_value_write_text(out, value->word);
    return;
  }
  switch (key->type) {
  case KEY_INT: fprintf(out, "%" PRId64, value->integer); break;
  case KEY_REAL: config_value_write_real(out, value->real); break;
  case KEY_BOOL: fputs(value->boolean ? "true" : "false", out); break;
  case KEY_INTS: config_value_write_integers(out, value->count, value->integers); break;
  case KEY_REAL_OR_INTS:
    if (value->count > 0)
      config_value_write_integers(out, value->count, value->integers);
    else
      config_value_write_real(out, value->real);
    break;
  case KEY_WORDS:
    fputc('[', out);
    for (int i = 0; i < value->count; i++)
      fputs(i ? ", " : "", out), config_value_write_text(out, value->words[i]);
    fputc(']', out);
    break;
  default: fputs("null", out); break;
  }
}
