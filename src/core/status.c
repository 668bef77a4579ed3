#include "core/status.h"

#include "core/numeral.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_SIZE = 2048 };
static _Thread_local char message[MESSAGE_SIZE];

Status status_set(Status code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  numeral_print(message, sizeof message, format, arguments);
  va_end(arguments);
  return code;
}

Status status_prefix(Status code, const char *format, ...) {
  char tail[MESSAGE_SIZE];
  memcpy(tail, message, sizeof tail);
  va_list arguments;
  va_start(arguments, format);
  int length = numeral_print(message, sizeof message, format, arguments);
  va_end(arguments);
  if (length >= 0 && length < MESSAGE_SIZE)
    snprintf(message + length, sizeof message - (size_t)length, "%s", tail);
  return code;
}

const char *status_message(void) { return message; }

void status_assert_failed(const char *file, int line, const char *function, const char *text) {
  fprintf(stderr, "%s:%d: %s: assertion failed: %s (this is a bug in thompson)\n", file, line, function,
          text);
  abort();
}
