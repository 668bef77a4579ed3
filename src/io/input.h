/* Files that a user gives. All of them are regular files: every rank reads them, some are read twice (parsed,
 * then hashed), and a resumed job reads them again, so a pipe or a device would give something else each
 * time, or nothing for ever. */
#pragma once

#include "core/status.h"

#include <stdio.h>

/* Opens `path` for reading; never waits. close() the descriptor. STATUS_FILE when it cannot be opened or
 * is not a regular file. */
Status input_open(const char *path, int *fd);
/* Opens the same as a stream; fclose() it, or declare it SCOPED (core/arena.h) by input_close. */
Status input_stream(const char *path, FILE **stream);
static inline void input_close(FILE **stream) {
  if (*stream) fclose(*stream);
}
