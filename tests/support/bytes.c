#include "bytes.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

Status bytes_open(size_t size, const void *bytes, GzipFile *out) {
  static int memory = -1;
  char path[64];
  if (memory < 0) memory = memfd_create("bytes", MFD_CLOEXEC);
  if (memory < 0 || ftruncate(memory, 0) != 0 || pwrite(memory, bytes, size, 0) != (ssize_t)size)
    return status_set(STATUS_FILE, "no file in memory");
  snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
  const Status status = gzip_open(path, out);
  out->path = "it.csv";
  return status;
}
