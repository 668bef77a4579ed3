/* Manual pages, in the man(7) format, from the same tables as --help. The build calls `thompson --manual` and
 * `thompson VERB --manual`. */
#pragma once

#include "app/app.h"

/* Prints the page of the program: its verbs, up to one whose name is NULL, and its exit status. */
void manual_program(const AppVerb *verbs);
/* Prints the page of a verb; `name` is "thompson run". */
void manual_verb(const struct argp *argp, const char *name);
