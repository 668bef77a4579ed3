#include "io/ownership.h"

#include "io/durable.h"
#include "io/store_internal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens a regular file for reading, without waiting for the other end of a pipe; negative for anything
 * else. */
static int open_regular(int folder, const char *name, struct stat *info) {
  int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return -1;
  if (fstat(file, info) == 0 && S_ISREG(info->st_mode)) return file;
  close(file);
  return -1;
}

Ownership io_ownership_of(int folder, const char *name) {
  struct stat info;
  if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return OWNERSHIP_NOTHING;
  if (!S_ISREG(info.st_mode)) return OWNERSHIP_OTHER;
  if (info.st_size == 0) return OWNERSHIP_NOTHING;
  int file = open_regular(folder, name, &info);
  bool sealed = file >= 0 && store_is_sealed(file);
  if (file >= 0) close(file);
  return sealed ? OWNERSHIP_OURS : OWNERSHIP_UNKNOWN;
}

bool io_ownership_carries(int folder, const char *name, const char *text) {
  enum { BUFFER = 1 << 16, LONGEST = 128 };
  char bytes[LONGEST + BUFFER]; /* a match may begin in one block and end in the next */
  struct stat info;
  const size_t length = strlen(text);
  int file = open_regular(folder, name, &info);
  ASSERT(length > 0 && length <= LONGEST);
  if (file < 0) return false;
  bool found = false;
  ssize_t n;
  for (size_t kept = 0; !found && (n = read(file, bytes + kept, BUFFER)) > 0;) {
    size_t size = kept + (size_t)n;
    found = memmem(bytes, size, text, length) != NULL;
    kept = size < length ? size : length - 1;
    memmove(bytes, bytes + size - kept, kept);
  }
  close(file);
  return found;
}

Status io_ownership_check_output(const char *path) {
  switch (io_ownership_of(AT_FDCWD, path)) {
  case OWNERSHIP_NOTHING:
  case OWNERSHIP_OURS: return durable_try(path);
  case OWNERSHIP_UNKNOWN:
    return status_set(STATUS_FILE,
                      "cannot write %s: it exists, but this program did not write it (or it is damaged); "
                      "remove it or choose another name",
                      path);
  case OWNERSHIP_OTHER: break;
  }
  return status_set(STATUS_FILE, "cannot write %s: it is a link or not a regular file", path);
}
