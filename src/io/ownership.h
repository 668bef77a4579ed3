/* Which files are this program's, so that it removes or replaces no other. Links are never followed: a link
 * is nobody's.
 *
 * `folder` is an open folder, or AT_FDCWD; `name` is relative to it. */
#pragma once

#include "core/status.h"

#include <stdbool.h>

typedef enum {
  OWNERSHIP_NOTHING, /* nothing stands there, or an empty file */
  OWNERSHIP_OURS, /* a file that ends with the seal of this program, whole or damaged before it */
  OWNERSHIP_UNKNOWN, /* a file that somebody else wrote, or one of ours whose end is damaged */
  OWNERSHIP_OTHER /* a link, a folder, or what else is no regular file */
} Ownership;

Ownership ownership_of(int folder, const char *name);

/* Returns whether a regular file has `text`, such as the SHA-256 of a study, anywhere in its bytes. */
bool ownership_carries(int folder, const char *name, const char *text);

/* Returns STATUS_FILE when a file cannot, or is not to, be written at `path`, where a user wants it:
 * something stands there that this program did not write, or the folder does not take it. */
Status ownership_check_output(const char *path);
