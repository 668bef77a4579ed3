#include "io/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static Status input_refuse(const char *path, const char *reason) {
  return status_set(STATUS_FILE, "cannot read %s: %s", path, reason);
}

Status input_open(const char *path, int *fd) {
  struct stat info;
  *fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* do not wait for the writer of a FIFO */
  if (*fd < 0) return input_refuse(path, strerror(errno));
  int error = fstat(*fd, &info) == 0 ? 0 : errno;
  if (error == 0 && S_ISREG(info.st_mode)) return STATUS_OK;
  close(*fd);
  *fd = -1;
  if (error == 0 && S_ISDIR(info.st_mode)) error = EISDIR;
  return input_refuse(path,
                      error ? strerror(error)
                            : "it is not a regular file (a pipe or a device cannot be read twice; write its "
                              "content to a file)");
}

Status input_stream(const char *path, FILE **stream) {
  int fd;
  *stream = NULL;
  TRY(input_open(path, &fd));
  *stream = fdopen(fd, "rb");
  if (*stream) return STATUS_OK;
  Status status = input_refuse(path, strerror(errno));
  close(fd);
  return status;
}
