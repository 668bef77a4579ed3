/* Files that are whole or absent: written under a temporary name in the same folder, synced, renamed.
 *
 * The temporary name is hidden and carries the process id (".results.nc.4711.0.tmp"), so that a killed
 * process leaves nothing that could be taken for a result, and the next one knows what to sweep. */
#pragma once

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Creates an empty temporary file beside `path`; *temporary is its name, which the caller frees.
 * STATUS_FILE when the folder cannot be written, or when something other than a regular file stands at
 * `path`: links are neither followed nor replaced. */
Status durable_begin(const char *path, char **temporary);

/* Returns whether durable_begin would succeed; leaves nothing. For results that take long to make. */
Status durable_try(const char *path);

/* Syncs the closed temporary file, renames it to `path`, and syncs the folder. On failure the temporary file
 * is removed and what stood at `path` stays as it was. */
Status durable_publish(const char *temporary, const char *path);

/* Publishes likewise, but a file that another process has put at `path` meanwhile stays: when several
 * publish at once, on one machine or many, the first wins, and the files of the others are dropped. */
Status durable_publish_first(const char *temporary, const char *path);

/* Returns whether `name`, without its folder, is one that durable_begin makes; the name of the file that
 * was to be goes to of[size]. */
bool durable_is_temporary(const char *name, size_t size, char *of);

/* Makes the name of a new file at `path` durable. */
Status durable_sync_folder_of(const char *path);

/* Renames a file that cannot be used to PATH.bad, or where that is taken to PATH.bad.2 and so on: nothing
 * is replaced. A file that is gone is no error. */
Status durable_set_aside(const char *path);
