/* Files that users supply. All of them must be regular files: every rank reads them, some are read twice
 * (parsed, then hashed), and a resumed job reads them again. A pipe or a device would yield something else
 * each time, or block forever. */
#pragma once

#include "core/status.h"

#include <stddef.h>
#include <stdio.h>

/* Opens `path` for reading, without ever blocking; the caller closes the descriptor. Returns STATUS_FILE if
 * it cannot be opened or is not a regular file. */
Status input_open(const char *path, int *fd);
/* Opens `path` likewise as a stream; fclose() it, or declare it SCOPED (core/arena.h) with input_close. */
Status input_stream(const char *path, FILE **stream);
static inline void input_close(FILE **stream) {
  if (*stream) fclose(*stream);
}
/* Returns what a file is that begins with bytes[size] if it is known and not text in UTF-8, such as "UTF-16
 * (little endian)" or "a zip archive"; otherwise NULL. */
const char *input_kind(size_t size, const void *bytes);
/* Returns the length of the UTF-8 sequence that bytes[left] begin with; 0 if it is not valid (Unicode, Table
 * 3-7). `left` is at least 1. */
size_t input_utf8_length(size_t left, const void *bytes);
