/* Whole text files: durable writing, and reading into memory. */
#include "core/memory.h"
#include "io/durable.h"
#include "io/input.h"
#include "io/store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes all of text[length] to the file `name`; returns 0 or errno. */
static int store_write_all(const char *name, const char *text, size_t length) {
  int fd = open(name, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  int error = 0;
  while (length > 0 && error == 0) {
    ssize_t n = write(fd, text, length);
    if (n < 0) {
      if (errno != EINTR) error = errno;
      continue;
    }
    text += n;
    length -= (size_t)n;
  }
  if (close(fd) != 0 && error == 0) error = errno;
  return error;
}

static Status write_durably(const char *path, const char *text,
                            Status (*publish)(const char *temporary, const char *path)) {
  char *temporary;
  TRY(durable_begin(path, &temporary));
  Status status = STATUS_OK;
  int error = store_write_all(temporary, text, strlen(text));
  if (error != 0) {
    unlink(temporary);
    status = status_set(STATUS_FILE, "cannot write %s: %s", path, strerror(error));
  } else {
    status = publish(temporary, path);
  }
  free(temporary);
  return status;
}

Status store_write_text(const char *path, const char *text) {
  return write_durably(path, text, durable_publish);
}

Status store_write_text_first(const char *path, const char *text) {
  return write_durably(path, text, durable_publish_first);
}

/* Reads fd to its end into *text, which grows from `capacity` bytes as needed, and terminates it with a
 * NUL. */
static Status read_to_end(int fd, const char *path, size_t limit, size_t capacity, char **text,
                          size_t *length) {
  NEW(*text, capacity);
  for (*length = 0; *length <= limit;) {
    if (*length + 1 == capacity) {
      char *larger;
      NEW(larger, 2 * capacity);
      memcpy(larger, *text, *length);
      free(*text);
      *text = larger;
      capacity *= 2;
    }
    ssize_t n = read(fd, *text + *length, capacity - 1 - *length);
    if (n == 0) {
      (*text)[*length] = '\0';
      return STATUS_OK;
    }
    if (n > 0) *length += (size_t)n;
    if (n < 0 && errno != EINTR) return status_set(STATUS_FILE, "cannot read %s: %s", path, strerror(errno));
  }
  return status_set(STATUS_INPUT, "%s: more than %zu bytes", path, limit);
}

Status store_read_text(const char *path, size_t limit, char **out, size_t *size) {
  struct stat info;
  int fd;
  *out = NULL;
  *size = 0;
  TRY(input_open(path, &fd));
  /* Most files are read at once: room for the text, the terminator, and one byte to see the end. */
  size_t guess = fstat(fd, &info) == 0 && (size_t)info.st_size < limit ? (size_t)info.st_size : limit;
  Status status = read_to_end(fd, path, limit, guess + 2, out, size);
  close(fd);
  if (status != STATUS_OK) {
    free(*out);
    *out = NULL;
    *size = 0;
  }
  return status;
}
