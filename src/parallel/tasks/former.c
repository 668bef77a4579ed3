#include "parallel/tasks/former.h"

#include "io/durable.h"
#include "parallel/tasks/folder.h"

#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

/* Reads the outcomes in an open file of results. Refuses those of another study, and says which key has
 * changed since they were written. */
static Status former_read_status(Arena *memory, StoreFile *file, const Study *study, Former *out) {
  const char *sha, *config;
  char difference[1024] = "its configuration differs";
  size_t shape[3] = {(size_t)study->file->setting_count, (size_t)study->file->policy_count, SIZE_MAX};
  if (!store_has_attribute(file, "config_sha256"))
    return status_set(STATUS_FILE, "%s is not a results file; move it away or use another folder",
                      store_path(file));
  TRY(store_get_text_attribute(memory, file, "config_sha256", &sha));
  if (strcmp(sha, study->file->sha256) != 0) {
    TRY(store_get_text_attribute(memory, file, "config", &config));
    out->edited = folder_is_version(config, study);
    if (out->edited) return STATUS_OK;
    config_first_difference(config, study->file->resolved, sizeof difference, difference);
    return status_set(STATUS_RESUME, "%s belongs to another study; %s", store_path(file), difference);
  }
  TRY(store_shape(file, "status", 3, shape));
  ALLOCATE(memory, out->status, shape[0] * shape[1] * shape[2]);
  TRY(store_get_part(file, "status", STORE_BYTE, NULL, NULL, out->status));
  out->policies = study->file->policy_count;
  out->runs = (int64_t)shape[2];
  return STATUS_OK;
}

Status former_read(Arena *memory, const char *directory, const Study *study, Former *out) {
  char path[PATH_SIZE];
  SCOPED(StoreFile *, file, store_close);
  *out = (Former){0};
  snprintf(path, sizeof path, "%s/results.nc", directory);
  TRY(folder_make_room(directory, "results.nc", study->file->sha256));
  if (access(path, F_OK) != 0) return STATUS_OK;
  Status status = store_open(path, &file);
  if (status == STATUS_OK) status = former_read_status(memory, file, study, out);
  if (status != STATUS_INPUT) return status;
  fprintf(stderr, "%s; the file is set aside\n", status_message());
  return durable_set_aside(path);
}

int64_t former_lost(const Former *former, size_t setting, size_t policy, int64_t runs,
                    const signed char *status) {
  if (former->runs == 0) return 0; /* no results, and no array of them */
  const signed char *had =
      former->status + (setting * (size_t)former->policies + policy) * (size_t)former->runs;
  int64_t lost = 0;
  for (int64_t r = 0; r < former->runs; r++) lost += had[r] == RUN_OK && (r >= runs || status[r] != RUN_OK);
  return lost;
}
