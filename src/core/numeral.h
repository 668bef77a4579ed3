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
