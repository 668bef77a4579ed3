#include "core/shell.h"

#include <string.h>

/* Letters of a word that no shell gives a meaning. */
static const char PLAIN[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./,:=@%+-";

void shell_print(FILE *out, const char *text) {
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
