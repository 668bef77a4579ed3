#include "app/app.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

Status scratch_create(char folder[SCRATCH_PATH]) {
  const char *place = getenv("TMPDIR");
  char priors[SCRATCH_PATH + 16];
  if (!place) place = "/tmp";
  if (snprintf(folder, SCRATCH_PATH, "%s/thompson-XXXXXX", place) >= SCRATCH_PATH || !mkdtemp(folder)) {
    folder[0] = '\0';
    return status_set(STATUS_FILE, "cannot make a temporary folder in %s", place);
  }
  snprintf(priors, sizeof priors, "%s/priors", folder);
  if (mkdir(priors, 0700) != 0) return status_set(STATUS_FILE, "%s: cannot make the folder", priors);
  return STATUS_OK;
}

static int app_scratch_remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where) {
  (void)info, (void)kind, (void)where;
  return remove(path);
}

void scratch_destroy(const char *folder) {
  if (folder[0]) nftw(folder, app_scratch_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
