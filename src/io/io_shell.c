#include "io/io_shell.h"

#include <string.h>

/* Characters that have no special meaning in any shell. */
static const char PLAIN[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./,:=@%+-";

void io_shell_print(FILE *out, const char *text) {
  if (*text && text[strspn(text, PLAIN)] == '\0') {
    fputs(text, out);
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
