/* Which files belong to this program, so that it removes or replaces no others. Links are never followed: a
 * link belongs to nobody.
 *
 * `folder` is an open folder, or AT_FDCWD; `name` is relative to it. */
#pragma once

#include "core/status.h"

#include <stdbool.h>

typedef enum {
  OWNERSHIP_NOTHING, /* there is no file, or an empty one */
  OWNERSHIP_OURS, /* a file that ends with this program's seal, whether or not the rest is intact */
  OWNERSHIP_UNKNOWN, /* somebody else's file, or one of ours whose end is damaged */
  OWNERSHIP_OTHER /* a link, a folder, or anything else that is not a regular file */
} Ownership;

Ownership io_ownership_of(int folder, const char *name);

/* Returns whether a regular file contains `text`, such as the SHA-256 of a study, anywhere in its bytes. */
bool io_ownership_carries(int folder, const char *name, const char *text);

/* What tells the files of a kind from all others of this program: the global attributes that they have and
 * lack (NULL: any); `has` is NULL for a kind that is text, as no NetCDF file is. */
typedef struct {
  const char *what; /* for messages: "draws" */
  const char *has, *lacks;
} OwnershipKind;

/* Checks that a file may be written at `path`, where a user wants it. Returns STATUS_FILE if the folder
 * cannot be written, or if something is there that this program did not write, or that is of another kind
 * than `kind` (NULL: any). */
Status io_ownership_check_output(const char *path, const OwnershipKind *kind);
