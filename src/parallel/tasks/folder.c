#include "parallel/tasks/folder.h"

#include "io/digest.h"
#include "io/durable.h"
#include "io/ownership.h"
#include "parallel/tasks/finished.h"
#include "parallel/tasks/former.h"
#include "study/keys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

/* Names. */

void folder_journal_name(uint64_t number, char name[FOLDER_NAME]) {
  snprintf(name, FOLDER_NAME, "%016jx.journal", (uintmax_t)number);
}

bool folder_is_journal_name(const char *name) {
  enum { DIGITS = 16 };
  return strspn(name, "0123456789abcdef") == DIGITS && strcmp(name + DIGITS, ".journal") == 0;
}

/* Tells whether an earlier version of this program kept tasks under that name: "000042.nc",
 * "000042.failed.nc", "000042-000137-0123456789abcdef.nc". */
static bool folder_is_old_task_name(const char *name) {
  const size_t digits = strspn(name, "0123456789"), length = strlen(name);
  if (digits < 6 || (digits > 6 && name[0] == '0') || length < digits + 3 ||
      strcmp(name + length - 3, ".nc") != 0)
    return false;
  return length == digits + 3 || strcmp(name + digits, ".failed.nc") == 0 || name[digits] == '-';
}

static bool folder_is_result_name(const char *name) {
  return strcmp(name, "results.nc") == 0 || strcmp(name, "prior_samples.nc") == 0;
}

/* Returns whether a name in DIR/events can be that of an event log (parallel/results/reduce_events.c). */
static bool folder_is_event_log(const char *name) {
  const size_t length = strlen(name);
  return length > 3 && name[0] != '.' && strcmp(name + length - 3, ".nc") == 0;
}

static bool folder_is_study_name(const char *name) { return strcmp(name, "study.yaml") == 0; }

static bool folder_is_top_name(const char *name) {
  return folder_is_result_name(name) || folder_is_study_name(name);
}

/* The parts of a folder, and the names of our files in each. */
typedef struct {
  const char *name;
  bool (*has)(const char *name);
} Part;

static const Part parts[] = {{"tasks", folder_is_journal_name},
                             {"priors", study_belief_is_file_name},
                             {"events", folder_is_event_log},
                             {".", folder_is_top_name}};
enum { PARTS = sizeof parts / sizeof *parts };

/* Walking through the files with our names. */

typedef struct {
  const char *directory;
  const Part *part;
  bool temporary; /* visits the temporary files of killed jobs instead */
  int folder; /* the open part */
  const char *sha256, *first_line; /* of the study and its resolved text, if needed */
  char *found; /* [PATH_SIZE], results or finished tasks, if needed */
} Walk;

static Status folder_walk_all_parts(Walk walk, Status (*visit)(const Walk *walk, const char *name)) {
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
    struct dirent *entry;
    while (status == STATUS_OK && (entry = readdir(stream)))
      if (walk.temporary ? durable_is_temporary(entry->d_name, sizeof of, of) && walk.part->has(of)
                         : walk.part->has(entry->d_name))
        status = visit(&walk, entry->d_name);
      else if (walk.part == parts && folder_is_old_task_name(entry->d_name))
        status = status_set(STATUS_RESUME,
                            "%s/tasks/%s was written by a version of this program that kept one file per "
                            "task; use another folder, or finish with that version",
                            walk.directory, entry->d_name);
    closedir(stream);
  }
  return status;
}

/* What a walk does with each file. */

static bool folder_file_is_regular(const Walk *walk, const char *name) {
  struct stat info;
  return fstatat(walk->folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || S_ISREG(info.st_mode);
}

/* Checks that a file of ours is regular, and notes its name if it is results or finished tasks. */
static Status folder_check_regular(const Walk *walk, const char *name) {
  if (walk->found && (walk->part == parts || folder_is_result_name(name)))
    snprintf(walk->found, PATH_SIZE, "%s/%s", walk->part->name, name);
  if (folder_file_is_regular(walk, name)) return STATUS_OK;
  return status_set(
      STATUS_FILE,
      "%s/%s/%s is a link or not a regular file, so it does not belong to the study; use another folder",
      walk->directory, walk->part->name, name);
}

static bool folder_file_is_own(const Walk *walk, const char *name) {
  if (folder_is_study_name(name)) return true;
  if (walk->part->has == study_belief_is_file_name)
    return io_ownership_of(walk->folder, name) == OWNERSHIP_OURS;
  if (walk->part == parts)
    return io_ownership_of(walk->folder, name) == OWNERSHIP_NOTHING || /* an empty journal */
           io_ownership_carries(walk->folder, name, journal_mark);
  return io_ownership_carries(walk->folder, name, walk->sha256) ||
         (strcmp(name, "results.nc") == 0 && walk->first_line &&
          io_ownership_of(walk->folder, name) == OWNERSHIP_OURS &&
          io_ownership_carries(walk->folder, name, walk->first_line));
}

static Status folder_check_own(const Walk *walk, const char *name) {
  if (folder_file_is_own(walk, name)) return STATUS_OK;
  return status_set(STATUS_FILE,
                    "%s/%s/%s is damaged or does not belong to the study in this folder, and will not be "
                    "removed; move it away or use another folder",
                    walk->directory, walk->part->name, name);
}

/* Removes what the reducer made from results of the study as it was, which the next one makes again. */
static Status folder_remove_derived(const Walk *walk, const char *name) {
  const bool derived = walk->part->has == folder_is_event_log || strcmp(name, "prior_samples.nc") == 0;
  if (derived && io_ownership_carries(walk->folder, name, walk->sha256)) unlinkat(walk->folder, name, 0);
  return STATUS_OK;
}

static Status folder_sweep_temporary(const Walk *walk, const char *name) {
  if (folder_file_is_regular(walk, name)) unlinkat(walk->folder, name, 0);
  return STATUS_OK;
}

/* Removes a file of the study unless it is study.yaml: while that exists, the rest is known to be the study's
 * own. */
static Status folder_remove_own(const Walk *walk, const char *name) {
  if (folder_is_study_name(name) || !folder_file_is_own(walk, name) || unlinkat(walk->folder, name, 0) == 0)
    return STATUS_OK;
  return status_set(STATUS_FILE, "%s/%s/%s: cannot remove it: %s", walk->directory, walk->part->name, name,
                    strerror(errno));
}

Status folder_check(const char *directory) {
  return folder_walk_all_parts((Walk){.directory = directory}, folder_check_regular);
}

Status folder_make_room(const char *directory, const char *name, const char *sha256) {
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  if (io_ownership_of(AT_FDCWD, path) != OWNERSHIP_UNKNOWN || !io_ownership_carries(AT_FDCWD, path, sha256))
    return io_ownership_check_output(path, NULL);
  fprintf(stderr, "%s is damaged; the file is set aside\n", path);
  return durable_set_aside(path);
}

/* ---- beginning a job */

/* Makes a folder, whose path is shorter than PATH_SIZE, and its parents, like mkdir -p. */
static Status folder_make(const char *path) {
  char part[PATH_SIZE];
  for (size_t i = 1; i <= strlen(path); i++) {
    if (path[i] != '/' && path[i] != '\0') continue;
    memcpy(part, path, i);
    part[i] = '\0';
    if (mkdir(part, 0777) != 0 && errno != EEXIST)
      return status_set(STATUS_FILE, "%s: cannot make the folder: %s", part, strerror(errno));
  }
  struct stat info;
  if (stat(path, &info) == 0 && !S_ISDIR(info.st_mode))
    return status_set(STATUS_FILE, "%s: cannot make the folder: a file has this name", path);
  return STATUS_OK;
}

bool folder_is_version(const char *resolved, const Study *study) {
  SCOPED(StudyFile *, file, config_study_drop);
  if (config_study_parse("study.yaml", resolved, &study_schema, 0, NULL, &file) != STATUS_OK) return false;
  const Config *old = file->settings[0], *now = study->file->settings[0];
  const bool same =
      config_is(old, "name", config_text(now, "name")) && config_is(old, "study", config_text(now, "study"));
  if (!same)
    status_set(STATUS_RESUME, "study %s of the kind %s is there, not %s of the kind %s",
               config_text(old, "name"), config_text(old, "study"), config_text(now, "name"),
               config_text(now, "study"));
  return same;
}

/* Compares the study in the folder with this one, and refuses it if the mode does not allow the difference;
 * explains what to do. *edited says whether it is another version of this study, with the SHA-256
 * `sha256`. */
static Status folder_compare_study(const char *directory, const Study *study, FolderMode mode, bool *edited,
                                   char sha256[DIGEST_SIZE]) {
  SCOPED(char *, old, memory_free_text);
  char difference[1024] = "";
  TRY(folder_read_study(directory, &old));
  const bool same = !config_first_difference(old, study->file->resolved, sizeof difference, difference);
  *edited = !same;
  if (mode != FOLDER_FRESH) {
    if (same) return STATUS_OK;
    TRY(digest_hex(old, strlen(old), sha256));
    if (mode == FOLDER_RESUME && folder_is_version(old, study)) return STATUS_OK;
    return status_set(STATUS_RESUME, "%s holds another study; %s; use -o for another folder, or --overwrite",
                      directory, difference);
  }
  if (same)
    return status_set(STATUS_FILE,
                      "%s already holds this study; use --resume to continue it, --overwrite to replace it, "
                      "or -o for another folder",
                      directory);
  return status_set(STATUS_FILE,
                    "%s already holds another study (%s); use --resume if this is an edit of it, --overwrite "
                    "to replace it, or -o for another folder",
                    directory, difference);
}

/* Makes this study the one that the folder holds, where it is another version of it. */
static Status folder_take_edit(const char *directory, const Study *study, FolderMode mode) {
  char path[PATH_SIZE], sha256[DIGEST_SIZE];
  bool edited;
  TRY(folder_compare_study(directory, study, mode, &edited, sha256));
  if (!edited) return STATUS_OK;
  snprintf(path, sizeof path, "%s/study.yaml", directory);
  TRY(store_write_text(path, study->file->resolved, true));
  return folder_walk_all_parts((Walk){.directory = directory, .sha256 = sha256}, folder_remove_derived);
}

/* Finds whether the folder holds a study. STATUS_FILE when it does but must not, and when it holds something
 * that this program must not touch. The search for work comes first, because a shard that begins meanwhile
 * writes the study before any work. */
static Status folder_inspect(const char *directory, const Study *study, FolderMode mode, bool *exists) {
  char path[PATH_SIZE], work[PATH_SIZE] = "";
  TRY(folder_walk_all_parts((Walk){.directory = directory, .found = work}, folder_check_regular));
  snprintf(path, sizeof path, "%s/study.yaml", directory);
  *exists = access(path, F_OK) == 0;
  if (!*exists && work[0] != '\0')
    return status_set(
        STATUS_FILE,
        "%s holds %s but no study.yaml to identify it; move it away, or use -o for another folder", directory,
        strncmp(work, "./", 2) == 0 ? work + 2 : work);
  char sha256[DIGEST_SIZE];
  bool edited;
  return *exists && mode == FOLDER_FRESH ? folder_compare_study(directory, study, mode, &edited, sha256)
                                         : STATUS_OK;
}

/* Removes the temporary files of killed jobs (io/durable.h). */
static void folder_sweep(const char *directory) {
  folder_walk_all_parts((Walk){.directory = directory, .temporary = true}, folder_sweep_temporary);
}

/* Removes the study in the folder; nothing is removed when a file has a name of the study but is not its own.
 * Its study.yaml, which goes last, must be as this program writes it, with every value filled in: a file that
 * a user wrote by hand is not ours. */
static Status folder_remove_study(const char *directory) {
  SCOPED(char *, text, memory_free_text);
  SCOPED(StudyFile *, file, config_study_drop);
  char path[PATH_SIZE];
  TRY(folder_read_study(directory, &text));
  if (config_study_parse(directory, text, &study_schema, 0, NULL, &file) != STATUS_OK ||
      strcmp(file->resolved, text) != 0)
    return status_set(STATUS_FILE,
                      "%s/study.yaml differs from what this program writes and will not be removed; move it "
                      "away or use another folder",
                      directory);
  SCOPED(char *, first_line, memory_free_text);
  first_line = strndup(text, strcspn(text, "\n") + 1);
  if (!first_line) return status_set(STATUS_INTERNAL, "out of memory");
  const Walk walk = {.directory = directory, .sha256 = file->sha256, .first_line = first_line};
  TRY(folder_walk_all_parts(walk, folder_check_own));
  TRY(folder_walk_all_parts(walk, folder_remove_own));
  folder_sweep(directory);
  snprintf(path, sizeof path, "%s/study.yaml", directory);
  if (unlink(path) == 0 || errno == ENOENT) return STATUS_OK;
  return status_set(STATUS_FILE, "%s: cannot remove it: %s", path, strerror(errno));
}

Status folder_open(const char *directory, const Study *study, FolderMode mode, int shard, Lock **lock) {
  SCRATCH_ARENA(scratch);
  char path[PATH_SIZE];
  const bool alone = shard < 0; /* nobody else is writing */
  Former former;
  Finished finished;
  bool exists;
  *lock = NULL;
  if (strlen(directory) > PATH_SIZE - 512) /* room for the names of files */
    return status_set(STATUS_FILE, "%s: the path is too long", directory);
  TRY(folder_make(directory));
  TRY(folder_inspect(directory, study, mode, &exists));
  TRY(io_lock_take(directory, shard, lock));
  /* Another job may have come and gone while this one waited. */
  TRY(folder_inspect(directory, study, mode, &exists));
  if (exists && mode == FOLDER_OVERWRITE) {
    TRY(folder_remove_study(directory));
    exists = false;
  }
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s", directory, i == 0 ? "tasks" : "priors");
    TRY(folder_make(path));
  }
  snprintf(path, sizeof path, "%s/study.yaml", directory);
  /* If several shards begin at once, one of them writes the study; the others must find their own. */
  if (!exists) TRY(store_write_text(path, study->file->resolved, false));
  TRY(folder_take_edit(directory, study,
                       mode == FOLDER_FRESH || mode == FOLDER_OVERWRITE ? FOLDER_JOIN : mode));
  TRY(former_read(&scratch, directory, study, &former));
  TRY(folder_make_room(directory, "prior_samples.nc", study->file->sha256));
  TRY(finished_open(&scratch, directory, study, alone, &finished));
  if (alone) folder_sweep(directory);
  return STATUS_OK;
}

Status folder_read_study(const char *directory, char **text) {
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s/study.yaml", directory);
  if (access(directory, F_OK) != 0)
    return status_set(STATUS_FILE, "cannot read %s: %s", directory, strerror(errno));
  if (access(path, F_OK) != 0)
    return status_set(STATUS_INPUT, "%s holds no study (no study.yaml in it)", directory);
  return config_study_text(path, text);
}
