/* Files that users supply. All of them must be regular files: every rank reads them, some are read twice
 * (parsed, then hashed), and a resumed job reads them again. A pipe or a device would yield something else
 * each time, or block forever. */
#pragma once

#include "core/status.h"

#include <stdio.h>

/* Opens `path` for reading, without ever blocking; the caller closes the descriptor. Returns STATUS_FILE if
 * it cannot be opened or is not a regular file. */
Status input_open(const char *path, int *fd);
/* Opens `path` likewise as a stream; fclose() it, or declare it SCOPED (core/arena.h) with input_close. */
Status input_stream(const char *path, FILE **stream);
static inline void input_close(FILE **stream) {
  if (*stream) fclose(*stream);
}
