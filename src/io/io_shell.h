/* Quoting for commands that are printed for people to run. */
#pragma once

#include <stdio.h>

/* Prints `text` as one word of the shell (POSIX, 2.2.2), quoted if necessary. */
void io_shell_print(FILE *out, const char *text);
