/* Shorthand for the rows of long tables of keys: `{INT("problem.rounds", 1, 1000, "200", "rounds n")},`.
 * Further members of a row follow inside the braces. */
#pragma once

#include "io/config/config.h"

#define INT(key, low, high, value, text)                                                                     \
  .name = key, .type = KEY_INT, .minimum = low, .maximum = high, .fallback = value, .help = text
#define REAL(key, low, high, value, text)                                                                    \
  .name = key, .type = KEY_REAL, .minimum = low, .maximum = high, .fallback = value, .help = text
#define INTS(key, low, high, value, text)                                                                    \
  .name = key, .type = KEY_INTS, .minimum = low, .maximum = high, .fallback = value, .help = text
#define REAL_OR_INTS(key, low, high, value, text)                                                            \
  .name = key, .type = KEY_REAL_OR_INTS, .minimum = low, .maximum = high, .fallback = value, .help = text
#define BOOL(key, value, text) .name = key, .type = KEY_BOOL, .fallback = value, .help = text
#define WORD(key, value, text) .name = key, .type = KEY_WORD, .fallback = value, .help = text
#define WORDS(key, value, text) .name = key, .type = KEY_WORDS, .fallback = value, .help = text
#define TEXT(key, value, text) .name = key, .type = KEY_TEXT, .fallback = value, .help = text
