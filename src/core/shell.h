/* Words of commands that are printed for people to run. */
#pragma once

#include <stdio.h>

/* Prints `text` as one word of the shell (POSIX, 2.2.2), quoted where it needs to be. */
void shell_print(FILE *out, const char *text);
