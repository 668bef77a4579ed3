#include "io/io_shell.h"

#include "io/input.h"

#include <stdbool.h>
#include <string.h>

/* Characters that have no special meaning in any shell. */
static const char PLAIN[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./,:=@%+-";

/* Prints a word that is not UTF-8 or has control characters, so that it can be shown and read everywhere: $''
 * of bash, with the odd bytes by number. */
static void io_shell_print_odd(FILE *out, const char *text) {
  fputs("$'", out);
  for (size_t length; *text; text += length) {
    const unsigned char c = (unsigned char)*text;
    length = input_utf8_length(strlen(text), text);
    if (length == 0 || c < ' ' || c == 127) {
      fprintf(out, "\\%03o", c);
      length = 1;
    } else {
      fprintf(out, "%s%.*s", c == '\'' || c == '\\' ? "\\" : "", (int)length, text);
    }
  }
  fputc('\'', out);
}

static bool io_shell_is_odd(const char *text) {
  bool odd = false;
  for (size_t length; *text && !odd; text += length) {
    length = input_utf8_length(strlen(text), text);
    odd = length == 0 || (unsigned char)*text < ' ' || *text == 127;
  }
  return odd;
}

void io_shell_print(FILE *out, const char *text) {
  if (*text && text[strspn(text, PLAIN)] == '\0') {
    fputs(text, out);
    return;
  }
  if (io_shell_is_odd(text)) {
    io_shell_print_odd(out, text);
    return;
  }
  fputc('\'', out);
  for (; *text; text++)
    if (*text == '\'')
      fputs("'\\''", out);
    else
      fputc(*text, out);
  fputc('\'', out);
}
