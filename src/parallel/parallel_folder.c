#include "parallel/parallel_folder.h"

#include "io/durable.h"
#include "io/ownership.h"
#include "study/study_belief.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

/* Names. */

void parallel_folder_journal_name(uint64_t number, char name[FOLDER_NAME]) {
  snprintf(name, FOLDER_NAME, "%016jx.journal", (uintmax_t)number);
}

bool parallel_folder_is_journal_name(const char *name) {
  enum { DIGITS = 16 };
  return strspn(name, "0123456789abcdef") == DIGITS && strcmp(name + DIGITS, ".journal") == 0;
}

/* Tells whether an earlier version of this program kept tasks under that name: "000042.nc",
 * "000042.failed.nc", "000042-000137-0123456789abcdef.nc". */
static bool parallel_folder_is_old_task_name(const char *name) {
  const size_t digits = strspn(name, "0123456789"), length = strlen(name);
  if (digits < 6 || (digits > 6 && name[0] == '0') || length < digits + 3 ||
      strcmp(name + length - 3, ".nc") != 0)
    return false;
  return length == digits + 3 || strcmp(name + digits, ".failed.nc") == 0 || name[digits] == '-';
}

static bool parallel_folder_is_result_name(const char *name) {
  return strcmp(name, "results.nc") == 0 || strcmp(name, "prior_samples.nc") == 0;
}

/* Returns whether a name in DIR/events can be that of an event log (parallel/reduce_events.c). */
static bool parallel_folder_is_event_log(const char *name) {
  const size_t length = strlen(name);
  return length > 3 && name[0] != '.' && strcmp(name + length - 3, ".nc") == 0;
}

static bool parallel_folder_is_study_name(const char *name) { return strcmp(name, "study.yaml") == 0; }

static bool parallel_folder_is_top_name(const char *name) {
  return parallel_folder_is_result_name(name) || parallel_folder_is_study_name(name);
}

/* The parts of a folder, and the names of our files in each. */
typedef struct {
  const char *name;
  bool (*has)(const char *name);
} Part;

static const Part parts[] = {{"tasks", parallel_folder_is_journal_name},
                             {"priors", study_belief_is_file_name},
                             {"events", parallel_folder_is_event_log},
                             {".", parallel_folder_is_top_name}};
enum { PARTS = sizeof parts / sizeof *parts };

/* Walking through the files with our names. */

typedef struct {
  const char *directory;
  const Part *part;
  bool temporary; /* visits the temporary files of killed jobs instead */
  int folder; /* the open part */
  const char *sha256; /* of the study, if needed */
  char *found; /* [PATH_SIZE], results or finished tasks, if needed */
} Walk;

static Status parallel_folder_walk_all_parts(Walk walk, Status (*visit)(const Walk *walk, const char *name)) {
  Status status = STATUS_OK;
  for (walk.part = parts; status == STATUS_OK && walk.part < parts + PARTS; walk.part++) {
    char path[PATH_SIZE + 16], of[NAME_MAX + 1];
    snprintf(path, sizeof path, "%s/%s", walk.directory, walk.part->name);
    walk.folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (walk.folder < 0 && errno == ENOENT) continue;
    if (walk.folder < 0 && (errno == ELOOP || errno == ENOTDIR))
      return status_set(STATUS_FILE,
                        "%s is a link or not a folder, so it does not belong to the study; use another "
                        "folder",
                        path);
    DIR *stream = walk.folder < 0 ? NULL : fdopendir(walk.folder);
    if (!stream) return status_set(STATUS_FILE, "%s: cannot read the folder: %s", path, strerror(errno));
    for (struct dirent *entry; status == STATUS_OK && (entry = readdir(stream));)
      if (walk.temporary ? durable_is_temporary(entry->d_name, sizeof of, of) && walk.part->has(of)
                         : walk.part->has(entry->d_name))
        status = visit(&walk, entry->d_name);
      else if (walk.part == parts && parallel_folder_is_old_task_name(entry->d_name))
        status = status_set(STATUS_RESUME,
                            "%s/tasks/%s was written by a version of this program that kept one file per "
                            "task; use another folder, or finish with that version",
                            walk.directory, entry->d_name);
    closedir(stream);
  }
  return status;
}

/* What a walk does with each file. */

static bool parallel_folder_file_is_regular(const Walk *walk, const char *name) {
  struct stat info;
  return fstatat(walk->folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || S_ISREG(info.st_mode);
}

/* Checks that a file of ours is regular, and notes its name if it is results or finished tasks. */
static Status parallel_folder_check_regular(const Walk *walk, const char *name) {
  if (walk->found && (walk->part == parts || parallel_folder_is_result_name(name)))
    snprintf(walk->found, PATH_SIZE, "%s/%s", walk->part->name, name);
  if (parallel_folder_file_is_regular(walk, name)) return STATUS_OK;
  return status_set(
      STATUS_FILE,
      "%s/%s/%s is a link or not a regular file, so it does not belong to the study; use another folder",
      walk->directory, walk->part->name, name);
}

static bool parallel_folder_file_is_own(const Walk *walk, const char *name) {
  if (parallel_folder_is_study_name(name)) return true;
  if (walk->part->has == study_belief_is_file_name)
    return io_ownership_of(walk->folder, name) == OWNERSHIP_OURS;
  return (walk->part == parts &&
          io_ownership_of(walk->folder, name) == OWNERSHIP_NOTHING) || /* an empty journal */
         io_ownership_carries(walk->folder, name, walk->sha256);
}

static Status parallel_folder_check_own(const Walk *walk, const char *name) {
  if (parallel_folder_file_is_own(walk, name)) return STATUS_OK;
  return status_set(STATUS_FILE,
                    "%s/%s/%s is damaged or does not belong to the study in this folder, and will not be "
                    "removed; move it away or use another folder",
                    walk->directory, walk->part->name, name);
}

static Status parallel_folder_sweep_temporary(const Walk *walk, const char *name) {
  if (parallel_folder_file_is_regular(walk, name)) unlinkat(walk->folder, name, 0);
  return STATUS_OK;
}

/* Removes a file of the study unless it is study.yaml: while that exists, the rest is known to be the study's
 * own. */
static Status parallel_folder_remove_own(const Walk *walk, const char *name) {
  if (parallel_folder_is_study_name(name) || !parallel_folder_file_is_own(walk, name) ||
      unlinkat(walk->folder, name, 0) == 0)
    return STATUS_OK;
  return status_set(STATUS_FILE, "%s/%s/%s: cannot remove it: %s", walk->directory, walk->part->name, name,
                    strerror(errno));
}

Status parallel_folder_check(const char *directory) {
  return parallel_folder_walk_all_parts((Walk){.directory = directory}, parallel_folder_check_regular);
}

Status parallel_folder_find_work(const char *directory, size_t size, char *name) {
  char found[PATH_SIZE] = "";
  TRY(parallel_folder_walk_all_parts((Walk){.directory = directory, .found = found},
                                     parallel_folder_check_regular));
  snprintf(name, size, "%s", strncmp(found, "./", 2) == 0 ? found + 2 : found);
  return STATUS_OK;
}

Status parallel_folder_remove_study(const char *directory, const char *sha256) {
  const Walk walk = {.directory = directory, .sha256 = sha256};
  char path[PATH_SIZE];
  TRY(parallel_folder_walk_all_parts(walk, parallel_folder_check_own));
  TRY(parallel_folder_walk_all_parts(walk, parallel_folder_remove_own));
  parallel_folder_sweep(directory);
  snprintf(path, sizeof path, "%s/study.yaml", directory);
  if (unlink(path) == 0 || errno == ENOENT) return STATUS_OK;
  return status_set(STATUS_FILE, "%s: cannot remove it: %s", path, strerror(errno));
}

void parallel_folder_sweep(const char *directory) {
  parallel_folder_walk_all_parts((Walk){.directory = directory, .temporary = true},
                                 parallel_folder_sweep_temporary);
}

Status parallel_folder_make_room(const char *directory, const char *name, const char *sha256) {
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  if (io_ownership_of(AT_FDCWD, path) != OWNERSHIP_UNKNOWN || !io_ownership_carries(AT_FDCWD, path, sha256))
    return io_ownership_check_output(path);
  fprintf(stderr, "%s is damaged; the file is set aside\n", path);
  return durable_set_aside(path);
}
