#include "parallel/checkpoint.h"

#include "io/durable.h"
#include "parallel/finished.h"
#include "parallel/former.h"
#include "study/keys.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

static Status path_of(size_t size, char *path, const char *directory, const char *name) {
  int length = snprintf(path, size, "%s/%s", directory, name);
  if (length < 0 || (size_t)length >= size)
    return status_set(STATUS_FILE, "%s: the path is too long", directory);
  return STATUS_OK;
}

/* Makes a folder and its parents, like mkdir -p. */
static Status make_folder(const char *path) {
  char part[PATH_SIZE];
  for (size_t i = 1; i <= strlen(path); i++) {
    if (path[i] != '/' && path[i] != '\0') continue;
    if (i >= sizeof part) return status_set(STATUS_FILE, "%s: the path is too long", path);
    memcpy(part, path, i);
    part[i] = '\0';
    if (mkdir(part, 0777) != 0 && errno != EEXIST)
      return status_set(STATUS_FILE, "%s: cannot make the folder: %s", part, strerror(errno));
  }
  struct stat info;
  if (stat(path, &info) == 0 && !S_ISDIR(info.st_mode))
    return status_set(STATUS_FILE, "%s: cannot make the folder: a file stands there", path);
  return STATUS_OK;
}

/* Refuses a folder with another study than this one. */
static Status checkpoint_compare(const char *directory, const Study *study) {
  SCOPED(char *, old, memory_free_text);
  char difference[1024];
  TRY(checkpoint_study(directory, &old));
  if (!config_first_difference(old, study->file->resolved, sizeof difference, difference)) return STATUS_OK;
  return status_set(STATUS_RESUME, "%s holds another study; %s; use -o for another folder, or --overwrite",
                    directory, difference);
}

/* Prepares the folder of an unfinished or new study, with all that belongs in it. If several shards begin at
 * once, one of them writes the study. */
static Status make_ready(const char *directory, const Study *study, bool exists) {
  char path[PATH_SIZE];
  TRY(path_of(sizeof path, path, directory, "tasks"));
  TRY(make_folder(path));
  TRY(path_of(sizeof path, path, directory, "priors"));
  TRY(make_folder(path));
  TRY(path_of(sizeof path, path, directory, "study.yaml"));
  return exists ? STATUS_OK : store_write_text_first(path, study->file->resolved);
}

/* Says what to do with a folder that a new study cannot have: only its own study can go on there. */
static Status refuse_study(const char *directory, const Study *study) {
  SCOPED(char *, old, memory_free_text);
  char difference[1024] = "";
  TRY(checkpoint_study(directory, &old));
  if (!config_first_difference(old, study->file->resolved, sizeof difference, difference))
    return status_set(STATUS_FILE,
                      "%s already holds this study; use --resume to continue it, --overwrite to replace it, "
                      "or -o for another folder",
                      directory);
  return status_set(STATUS_FILE,
                    "%s already holds another study (%s); use --overwrite to replace it, or -o for another "
                    "folder",
                    directory, difference);
}

/* Returns whether the folder holds a study; STATUS_FILE when it does and must not, and when it holds what
 * is not the program's to touch. The search for work comes first: a shard that begins meanwhile writes the
 * study before it. */
static Status inspect_folder(const char *directory, const Study *study, CheckpointMode mode, bool *exists) {
  char path[PATH_SIZE], work[PATH_SIZE];
  TRY(folder_check(directory));
  TRY(folder_find_work(directory, sizeof work, work));
  TRY(path_of(sizeof path, path, directory, "study.yaml"));
  *exists = access(path, F_OK) == 0;
  if (!*exists && work[0] != '\0')
    return status_set(
        STATUS_FILE,
        "%s holds %s but no study.yaml that says of what; move it away, or use -o for another folder",
        directory, work);
  return *exists && mode == CHECKPOINT_FRESH ? refuse_study(directory, study) : STATUS_OK;
}

/* Removes the study in the folder. Its study.yaml must be as this program writes it, with every value
 * filled in: what a user wrote by hand is not ours. */
static Status remove_study(const char *directory) {
  SCOPED(char *, text, memory_free_text);
  StudyFile *file;
  TRY(checkpoint_study(directory, &text));
  Status status = config_study_parse(directory, text, &study_schema, 0, NULL, &file);
  if (status != STATUS_OK || strcmp(file->resolved, text) != 0)
    status =
        status_set(STATUS_FILE,
                   "%s/study.yaml is not as this program writes it and will not be removed; move it away "
                   "or use another folder",
                   directory);
  else
    status = folder_remove_study(directory, file->sha256);
  config_study_free(file);
  return status;
}

/* Checks that what a study that goes on finds is its own: study.yaml, finished tasks, results. `alone`:
 * nobody else is writing. */
static Status check_own(const char *directory, const Study *study, bool alone) {
  SCRATCH_ARENA(scratch);
  Former former;
  Finished finished;
  TRY(checkpoint_compare(directory, study));
  TRY(former_read(&scratch, directory, study, &former));
  TRY(folder_make_room(directory, "prior_samples.nc", study->file->sha256));
  return finished_open(&scratch, directory, study, alone, &finished);
}

Status checkpoint_open(const char *directory, const Study *study, CheckpointMode mode, int shard,
                       Lock **lock) {
  bool exists;
  *lock = NULL;
  TRY(make_folder(directory));
  TRY(inspect_folder(directory, study, mode, &exists));
  TRY(lock_take(directory, shard, lock));
  TRY(inspect_folder(directory, study, mode,
                     &exists)); /* another job may have come and gone while this one waited */
  if (exists && mode == CHECKPOINT_OVERWRITE) {
    TRY(remove_study(directory));
    exists = false;
  }
  TRY(make_ready(directory, study, exists));
  TRY(check_own(directory, study, shard < 0));
  if (shard < 0) folder_sweep(directory);
  return STATUS_OK;
}

Status checkpoint_study(const char *directory, char **text) {
  char path[PATH_SIZE];
  TRY(path_of(sizeof path, path, directory, "study.yaml"));
  if (access(directory, F_OK) != 0)
    return status_set(STATUS_FILE, "cannot read %s: %s", directory, strerror(errno));
  if (access(path, F_OK) != 0)
    return status_set(STATUS_INPUT, "%s holds no study (no study.yaml in it)", directory);
  return config_study_text(path, text);
}
