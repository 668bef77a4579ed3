/* Files that are either complete or absent: written under a temporary name in the same folder, synced,
 * renamed.
 *
 * The temporary name is hidden and contains the process id (".results.nc.4711.0.tmp"), so that a killed
 * process leaves nothing that could be mistaken for a result, and the next process knows what to delete. */
#pragma once

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Creates an empty temporary file in the folder of `path`, with the permissions of the file that it is to
 * replace; *temporary is its name, which the caller frees.
 * Returns STATUS_FILE if the folder cannot be written, or if something other than a regular file is at
 * `path`: links are neither followed nor replaced. */
Status durable_begin(const char *path, char **temporary);

/* Removes the temporary files for `path` that killed processes of this machine have left, and those of this
 * process itself, which must not be writing to `path`. Only where no other machine writes to `path`. */
void durable_sweep(const char *path);

/* Checks that durable_begin would succeed, and leaves nothing behind. For results that take long to
 * compute. */
Status durable_try(const char *path);

/* Syncs the closed temporary file, renames it to `path`, and syncs the folder. Unless `replace`, keeps a file
 * that another process has put at `path` in the meantime: if several publish at once, on one machine or many,
 * the first wins, and the files of the others are removed. On failure the temporary file is removed, and what
 * was at `path` is unchanged. */
Status durable_publish(const char *temporary, const char *path, bool replace);

/* Returns whether `name`, without its folder, is one that durable_begin makes; of[size] is then the name of
 * the file it was meant to become. */
bool durable_is_temporary(const char *name, size_t size, char *of);

/* Syncs the folder of `path`, which makes the name of a new file there durable. */
Status durable_sync_folder_of(const char *path);

/* Renames a file that cannot be used to PATH.bad or, if that is taken, to PATH.bad.2 and so on: nothing is
 * replaced. It is no error if the file is gone. */
Status durable_set_aside(const char *path);
