#include "core/numeral.h"

#include <locale.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static locale_t numeral_locale; /* 0, which uselocale takes for no change, if it cannot be made */

static void numeral_make_locale(void) { numeral_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0); }

/* Gives this thread the decimal point, and returns the locale that it had. */
static locale_t numeral_enter(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, numeral_make_locale);
  return uselocale(numeral_locale);
}

double numeral_read(const char *text, char **end) {
  const locale_t before = numeral_enter();
  const double value = strtod(text, end);
  uselocale(before);
  return value;
}

int numeral_print(char *out, size_t size, const char *format, va_list arguments) {
  const locale_t before = numeral_enter();
  const int length = vsnprintf(out, size, format, arguments);
  uselocale(before);
  return length;
}

Counted numeral_count(long long number, const char *noun) {
  Counted out;
  const size_t length = strlen(noun);
  const bool ies = number != 1 && noun[length - 1] == 'y';
  const char *ending = ies ? "ies" : number != 1 ? "s" : "";
  snprintf(out.text, sizeof out.text, "%lld %.*s%s", number, (int)(length - ies), noun, ending);
  return out;
}
