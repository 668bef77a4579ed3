#include "app/scratch.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

Status scratch_create(char folder[SCRATCH_PATH]) {
  const char *place = getenv("TMPDIR");
  char priors[SCRATCH_PATH + 16];
  snprintf(folder, SCRATCH_PATH, "%s/thompson-XXXXXX", place ? place : "/tmp");
  if (!mkdtemp(folder)) return status_set(STATUS_FILE, "%s: cannot make a temporary folder", folder);
  snprintf(priors, sizeof priors, "%s/priors", folder);
  if (mkdir(priors, 0700) != 0) return status_set(STATUS_FILE, "%s: cannot make the folder", priors);
  return STATUS_OK;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where) {
  (void)info, (void)kind, (void)where;
  return remove(path);
}

void scratch_destroy(const char *folder) { nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS); }
