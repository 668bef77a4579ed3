/* A study file as text: UTF-8 without NUL, of bounded size. */
#include "io/config/config_internal.h"
#include "io/store.h"

#include <stdlib.h>
#include <string.h>

enum { LETTER = -1 /* any byte but zero */ };

/* Encodings, known by the byte order mark or by the zeros around the first characters (YAML 1.2.2, section
 * 5.2). */
static const struct {
  const char *name;
  int length, head[4];
} encodings[] = {{"UTF-32 (big endian)", 4, {0, 0, 0xFE, 0xFF}},
                 {"UTF-32 (little endian)", 4, {0xFF, 0xFE, 0, 0}},
                 {"UTF-32 (big endian)", 4, {0, 0, 0, LETTER}},
                 {"UTF-32 (little endian)", 4, {LETTER, 0, 0, 0}},
                 {"UTF-16 (big endian)", 2, {0xFE, 0xFF}},
                 {"UTF-16 (little endian)", 2, {0xFF, 0xFE}},
                 {"UTF-16 (big endian)", 4, {0, LETTER, 0, LETTER}},
                 {"UTF-16 (little endian)", 4, {LETTER, 0, LETTER, 0}}};

static bool config_text_begins_with(size_t size, const char *bytes, int length, const int *head) {
  if (size < (size_t)length) return false;
  for (int i = 0; i < length; i++) {
    int byte = (unsigned char)bytes[i];
    if (head[i] == LETTER ? byte == 0 : byte != head[i]) return false;
  }
  return true;
}

/* Returns the position of bytes[at], with the column counted in characters. */
static ConfigPlace config_text_place(const char *source, const char *bytes, size_t at) {
  ConfigPlace place = {.source = source, .line = 1, .column = 1};
  for (size_t i = 0; i < at; i++) {
    if (((unsigned char)bytes[i] & 0xC0) != 0x80) place.column++;
    if (bytes[i] == '\n') place.line++, place.column = 1;
  }
  return place;
}

/* Checks that bytes[size] can be parsed: neither UTF-16 nor UTF-32, and without NUL. */
static Status check_bytes(const char *source, size_t size, const char *bytes) {
  for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++)
    if (config_text_begins_with(size, bytes, encodings[i].length, encodings[i].head))
      return config_refuse((ConfigPlace){.source = source}, "this is %s; a study file is text in UTF-8",
                           encodings[i].name);
  size_t text = strnlen(bytes, size);
  if (text < size)
    return config_refuse(config_text_place(source, bytes, text), "a NUL byte; a study file is text in UTF-8");
  return STATUS_OK;
}

Status config_study_text(const char *path, char **out) {
  static const char mark[] = "\xEF\xBB\xBF";
  size_t size;
  TRY(store_read_text(path, CONFIG_TEXT_LIMIT, out, &size));
  Status status = check_bytes(path, size, *out);
  if (status != STATUS_OK) {
    free(*out);
    *out = NULL;
  } else if (strncmp(*out, mark, 3) == 0) {
    memmove(*out, *out + 3, size - 2);
  }
  return status;
}
