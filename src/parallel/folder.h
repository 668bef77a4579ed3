/* What in a study's folder is the study's own. Only that is ever removed, replaced or set aside; the rest
 * may be somebody else's notes, figures or links, and stays as it is.
 *
 * A file is the study's own when it bears a name of this program's scheme (parallel/checkpoint.h), is a
 * regular file, and carries the study's SHA-256 (tasks, results) or the program's seal (priors, whose names
 * are hashes of what they were learned from). Links are never followed, in the folder or to its parts. */
#pragma once

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FOLDER_NAME = 64 };

/* Writes the file name of a journal, "0123456789abcdef.journal". Returns whether a name is one. */
void folder_journal_name(uint64_t number, char name[FOLDER_NAME]);
bool folder_is_journal_name(const char *name);
/* Returns whether a file in DIR/events can be an event log (parallel/events.h). */
bool folder_is_event_log(const char *name);

/* Returns STATUS_FILE when a link, a folder or the like stands where a file of the study should be, or no
 * folder at DIR/tasks or DIR/priors; STATUS_RESUME when an earlier version of this program kept its tasks
 * there. So do the functions below. */
Status folder_check(const char *directory);

/* Finds results or finished tasks in the folder: the name of one of them, relative to it; empty when there
 * are none. */
Status folder_find_work(const char *directory, size_t size, char *name);

/* Removes the study with this SHA-256. STATUS_FILE, before anything is removed, when a file bears a name
 * of the study and is not its own. DIR/study.yaml goes last; the caller has checked it. */
Status folder_remove_study(const char *directory, const char *sha256);

/* Removes what killed jobs were writing (io/durable.h). */
void folder_sweep(const char *directory);

/* Sees to it that DIR/name, a file of results, can be replaced: a damaged one of the study is set aside
 * and reported; STATUS_FILE when it is somebody else's. */
Status folder_make_room(const char *directory, const char *name, const char *sha256);
