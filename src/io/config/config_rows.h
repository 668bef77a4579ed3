/* Shorthand for the rows of long tables of keys: `{INT("problem.rounds", 1, 1000, "200", "rounds n")},`.
 * Further members of a row follow inside the braces. */
#pragma once

#include "core/design.h"
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

/* The rows of a study's design; the seed of its points is the key `seed`. */
#define DESIGN_ROWS                                                                                          \
  {WORD("design", "none",                                                                                    \
        "how settings are chosen; none: the product of the lists under sweep; with a mapping, points that "  \
        "vary all keys under sweep at once, each over a range {from: a, to: b, scale: linear | log} or a "   \
        "list"),                                                                                             \
   .words = "none", .fixed = true, .parts = true},                                                           \
      {WORD("design.kind", NULL, "which points"), .word = design_kind_name, .meaning = design_kind_meaning,  \
       .fixed = true},                                                                                       \
  {                                                                                                          \
    INT("design.points", 2, DESIGN_MOST_POINTS, NULL,                                                        \
        "N; saltelli and sobol: a power of two; a Sobol design of more points begins with those of one of "  \
        "fewer"),                                                                                            \
        .fixed = true                                                                                        \
  }
