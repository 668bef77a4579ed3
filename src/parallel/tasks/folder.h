/* The folder of a study, which keeps finished work durably.
 *
 *   DIR/study.yaml          the resolved study
 *   DIR/tasks/HEX.journal   the tasks that one rank of one job finished (parallel/tasks/journal.h)
 *   DIR/priors/             fitted priors (study/study_belief.h)
 *   .bad, .bad.2, ...       appended to the name of a file that could not be used
 *   DIR/lock, lock.I        held by the jobs that write here (io/io_lock.h)
 *   DIR/results.nc, DIR/prior_samples.nc     written by the reducer
 *
 * Only the study's own files are ever removed, replaced or set aside; the rest may be somebody else's notes,
 * figures or links, and stays as it is. A file is the study's own if its name follows this scheme, it is a
 * regular file, and it carries the study's SHA-256 or, before results of an edited study are there, its name
 * (results), the mark of journals (tasks), or the program's seal (priors, whose names are hashes of what they
 * were learned from). Links are never followed, neither in the folder nor to
 * its parts. */
#pragma once

#include "io/io_lock.h"
#include "study/study.h"

enum { FOLDER_NAME = 64 };

/* Writes the file name of a journal, "0123456789abcdef.journal"; the second function tells whether a name is
 * one. */
void folder_journal_name(uint64_t number, char name[FOLDER_NAME]);
bool folder_is_journal_name(const char *name);

/* Checks the folder. STATUS_FILE when a link, a folder or the like is in the place of a file of the study, or
 * something other than a folder is at DIR/tasks or DIR/priors; STATUS_RESUME when an earlier version of this
 * program kept its tasks there. */
Status folder_check(const char *directory);

/* Ensures that DIR/name, a file of results, can be replaced: if it is the study's but damaged, it is set
 * aside and reported; STATUS_FILE when it is somebody else's. */
Status folder_make_room(const char *directory, const char *name, const char *sha256);

/* Returns whether a resolved study, such as a folder keeps it, is a version of this one: of the same kind and
 * name. Otherwise the message of the status says what differs. */
bool folder_is_version(const char *resolved, const Study *study);

/* What to do with a folder that holds a study. */
typedef enum {
  FOLDER_FRESH, /* refuse it */
  FOLDER_JOIN, /* work on it with other shards, if it is the same study */
  FOLDER_RESUME, /* continue it; the study may have been edited, and is then the folder's from now on */
  FOLDER_OVERWRITE /* remove it */
} FolderMode;

/* Prepares the folder and locks it; the caller must call io_lock_release(*lock). Called on one rank. FRESH
 * refuses a folder that holds a study (STATUS_FILE), JOIN one with another study, and RESUME one with a study
 * of another kind or name; both name what differs (STATUS_RESUME). In an empty or missing folder all begin a
 * new study. If the study was edited, study.yaml is replaced, and what was made from the results of before,
 * pictures' samples and event logs, is removed. Every mode refuses a folder (STATUS_FILE) where something
 * that is not the study's own is in the way: results without a study, links in place of files. Errors of
 * folder_check are returned, too. `shard` is the number of the shard, negative for the whole study. */
Status folder_open(const char *directory, const Study *study, FolderMode mode, int shard, Lock **lock);

/* Reads the resolved study of a folder as text, which the caller frees. STATUS_INPUT when the folder holds
 * none. */
Status folder_read_study(const char *directory, char **text);
