/* Numbers as text, with a decimal point whatever the locale of the process: where people write 0,5, strtod
 * reads 0 from "0.5", and printf writes what nothing here can read. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

/* Reads a number as strtod does. */
double numeral_read(const char *text, char **end);
/* Prints as vsnprintf does. */
int numeral_print(char *out, size_t size, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

typedef struct {
  char text[64];
} Counted;
/* Returns the number with its noun: "1 task", "2 tasks", "3 policies". */
Counted numeral_count(long long number, const char *noun);
