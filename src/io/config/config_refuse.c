/* Messages with the position of an error. */
#include "io/config/config_internal.h"

#include <stdarg.h>
#include <string.h>

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
