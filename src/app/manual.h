/* Manual pages, in the language of man(7), from the tables that --help is made of. The build calls
 * `thompson --manual` and `thompson VERB --manual`. */
#pragma once

#include "app/app.h"

/* Prints the page of the program: its verbs, which end with a NULL name, and its exit status. */
void manual_program(const AppVerb *verbs);
/* Prints the page of a verb; `name` is "thompson run". */
void manual_verb(const struct argp *argp, const char *name);
