#include "app/app.h"

#include <ftw.h>
#include <sys/stat.h>

static Status app_scratch_make_folders(Scratch *out) {
  const char *place = getenv("TMPDIR");
  char priors[sizeof out->path + 16];
  const int most = sizeof out->path;
  if (!place) place = "/tmp";
  if (snprintf(out->path, sizeof out->path, "%s/thompson-XXXXXX", place) >= most || !mkdtemp(out->path)) {
    out->path[0] = '\0';
    return status_set(STATUS_FILE, "cannot make a temporary folder in %s", place);
  }
  snprintf(priors, sizeof priors, "%s/priors", out->path);
  if (mkdir(priors, 0700) != 0) return status_set(STATUS_FILE, "%s: cannot make the folder", priors);
  return STATUS_OK;
}

Status app_scratch_create(Scratch *out) {
  *out = (Scratch){.path = ""};
  const Status status = parallel_rank() == 0 ? app_scratch_make_folders(out) : STATUS_OK;
  parallel_broadcast(out->path, sizeof out->path);
  return parallel_agree(status);
}

static int app_scratch_remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where) {
  (void)info, (void)kind, (void)where;
  return remove(path);
}

void app_scratch_destroy(Scratch *scratch) {
  if (!scratch->path[0]) return;
  parallel_barrier();
  if (parallel_rank() == 0) nftw(scratch->path, app_scratch_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
