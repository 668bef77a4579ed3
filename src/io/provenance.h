/* Where a file came from: program, commit, command, machine, compiler and libraries, recorded as global
 * attributes of every file. */
#pragma once

#include "io/store.h"

/* Sets what only `main` knows, which calls these once, before the first file is written. The texts are
 * copied. */
void provenance_set_command(int argc, char *const *argv);
void provenance_set_mpi(int ranks, const char *library);

/* Returns the wall-clock seconds since provenance_set_command. */
double provenance_elapsed(void);

/* Returns "thompson 0.1.0 (commit 0123456789ab, modified)". */
const char *provenance_source(void);

/* Writes Conventions, title, references, and the provenance itself. `references` names the sources of the
 * methods behind the file; the papers that it names are cited in full. NULL: all papers of the program. */
Status provenance_write(StoreFile *file, const char *title, const char *references);
