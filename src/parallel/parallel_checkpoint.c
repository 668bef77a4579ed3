#include "parallel/parallel_checkpoint.h"

#include "io/durable.h"
#include "parallel/finished.h"
#include "parallel/former.h"
#include "study/keys.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

/* Makes a folder, whose path is shorter than PATH_SIZE, and its parents, like mkdir -p. */
static Status parallel_checkpoint_make_folder(const char *path) {
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

/* Refuses a folder that holds a different study or, if the study is to be new, any study, and explains what
 * to do: only the study in the folder can continue there. */
static Status parallel_checkpoint_compare_study(const char *directory, const Study *study, bool fresh) {
  SCOPED(char *, old, memory_free_text);
  char difference[1024] = "";
  TRY(parallel_checkpoint_study(directory, &old));
  const bool same = !config_first_difference(old, study->file->resolved, sizeof difference, difference);
  if (same && !fresh) return STATUS_OK;
  if (!fresh)
    return status_set(STATUS_RESUME, "%s holds another study; %s; use -o for another folder, or --overwrite",
                      directory, difference);
  if (same)
    return status_set(STATUS_FILE,
                      "%s already holds this study; use --resume to continue it, --overwrite to replace it, "
                      "or -o for another folder",
                      directory);
  return status_set(STATUS_FILE,
                    "%s already holds another study (%s); use --overwrite to replace it, or -o for another "
                    "folder",
                    directory, difference);
}

/* Finds whether the folder holds a study. STATUS_FILE when it does but must not, and when it holds something
 * that this program must not touch. The search for work comes first, because a shard that begins meanwhile
 * writes the study before any work. */
static Status parallel_checkpoint_inspect_folder(const char *directory, const Study *study,
                                                 CheckpointMode mode, bool *exists) {
  char path[PATH_SIZE], work[PATH_SIZE];
  TRY(parallel_folder_find_work(directory, sizeof work, work));
  snprintf(path, sizeof path, "%s/study.yaml", directory);
  *exists = access(path, F_OK) == 0;
  if (!*exists && work[0] != '\0')
    return status_set(
        STATUS_FILE,
        "%s holds %s but no study.yaml to identify it; move it away, or use -o for another folder", directory,
        work);
  return *exists && mode == CHECKPOINT_FRESH ? parallel_checkpoint_compare_study(directory, study, true)
                                             : STATUS_OK;
}

/* Removes the study in the folder. Its study.yaml must be as this program writes it, with every value filled
 * in: a file that a user wrote by hand is not ours. */
static Status parallel_checkpoint_remove_study(const char *directory) {
  SCOPED(char *, text, memory_free_text);
  StudyFile *file;
  TRY(parallel_checkpoint_study(directory, &text));
  Status status = config_study_parse(directory, text, &study_schema, 0, NULL, &file);
  if (status != STATUS_OK || strcmp(file->resolved, text) != 0)
    status = status_set(STATUS_FILE,
                        "%s/study.yaml differs from what this program writes and will not be removed; move "
                        "it away or use another folder",
                        directory);
  else
    status = parallel_folder_remove_study(directory, file->sha256);
  config_study_free(file);
  return status;
}

Status parallel_checkpoint_open(const char *directory, const Study *study, CheckpointMode mode, int shard,
                                Lock **lock) {
  SCRATCH_ARENA(scratch);
  char path[PATH_SIZE];
  const bool alone = shard < 0; /* nobody else is writing */
  Former former;
  Finished finished;
  bool exists;
  *lock = NULL;
  if (strlen(directory) > PATH_SIZE - 512) /* room for the names of files */
    return status_set(STATUS_FILE, "%s: the path is too long", directory);
  TRY(parallel_checkpoint_make_folder(directory));
  TRY(parallel_checkpoint_inspect_folder(directory, study, mode, &exists));
  TRY(io_lock_take(directory, shard, lock));
  /* Another job may have come and gone while this one waited. */
  TRY(parallel_checkpoint_inspect_folder(directory, study, mode, &exists));
  if (exists && mode == CHECKPOINT_OVERWRITE) {
    TRY(parallel_checkpoint_remove_study(directory));
    exists = false;
  }
  snprintf(path, sizeof path, "%s/tasks", directory);
  TRY(parallel_checkpoint_make_folder(path));
  snprintf(path, sizeof path, "%s/priors", directory);
  TRY(parallel_checkpoint_make_folder(path));
  snprintf(path, sizeof path, "%s/study.yaml", directory);
  /* If several shards begin at once, one of them writes the study; the others must find their own. */
  if (!exists) TRY(store_write_text(path, study->file->resolved, false));
  TRY(parallel_checkpoint_compare_study(directory, study, false));
  TRY(former_read(&scratch, directory, study, &former));
  TRY(parallel_folder_make_room(directory, "prior_samples.nc", study->file->sha256));
  TRY(finished_open(&scratch, directory, study, alone, &finished));
  if (alone) parallel_folder_sweep(directory);
  return STATUS_OK;
}

Status parallel_checkpoint_study(const char *directory, char **text) {
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s/study.yaml", directory);
  if (access(directory, F_OK) != 0)
    return status_set(STATUS_FILE, "cannot read %s: %s", directory, strerror(errno));
  if (access(path, F_OK) != 0)
    return status_set(STATUS_INPUT, "%s holds no study (no study.yaml in it)", directory);
  return config_study_text(path, text);
}
