/* Which files in a study's folder are the study's own. Only these are ever removed, replaced or set aside;
 * the rest may be somebody else's notes, figures or links, and stays as it is.
 *
 * A file is the study's own if its name follows this program's scheme (parallel/parallel_checkpoint.h), it is
 * a regular file, and it carries the study's SHA-256 (tasks, results) or the program's seal (priors, whose
 * names are hashes of what they were learned from). Links are never followed, neither in the folder nor to
 * its parts. */
#pragma once

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FOLDER_NAME = 64 };

/* Writes the file name of a journal, "0123456789abcdef.journal"; the second function tells whether a name is
 * one. */
void parallel_folder_journal_name(uint64_t number, char name[FOLDER_NAME]);
bool parallel_folder_is_journal_name(const char *name);

/* Checks the folder. STATUS_FILE when a link, a folder or the like is in the place of a file of the study, or
 * something other than a folder is at DIR/tasks or DIR/priors; STATUS_RESUME when an earlier version of this
 * program kept its tasks there. The functions below return these, too. */
Status parallel_folder_check(const char *directory);

/* Checks the folder likewise, and writes the name of results or finished tasks in it, relative to the folder,
 * or an empty name if there are none. */
Status parallel_folder_find_work(const char *directory, size_t size, char *name);

/* Removes the study with this SHA-256. STATUS_FILE, before anything is removed, when a file has a name of the
 * study but is not its own. DIR/study.yaml, which the caller has checked, is removed last. */
Status parallel_folder_remove_study(const char *directory, const char *sha256);

/* Removes the temporary files of killed jobs (io/durable.h). */
void parallel_folder_sweep(const char *directory);

/* Ensures that DIR/name, a file of results, can be replaced: if it is the study's but damaged, it is set
 * aside and reported; STATUS_FILE when it is somebody else's. */
Status parallel_folder_make_room(const char *directory, const char *name, const char *sha256);
