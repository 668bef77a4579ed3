/* Numbers as text: recognising them, and writing the fewest digits that read back as the same value. */
#include "io/config/config_internal.h"

#include <errno.h>
#include <fenv.h>
#include <stdlib.h>
#include <string.h>

size_t config_count_digits(const char *text) { return strspn(text, "0123456789"); }

bool config_is_number(const char *text) {
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

double config_parse_real(const char *text) {
  fenv_t environment;
  feholdexcept(&environment);
  errno = 0;
  double value = strtod(text, NULL);
  fesetenv(&environment);
  return value;
}

void config_real_text(double value, char *out) {
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(out, 32, "%.*g", digits, value);
    if (config_parse_real(out) == value) return;
  }
}
