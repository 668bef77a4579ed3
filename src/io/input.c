#include "io/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
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

/* ---- what else a file may be */

enum { LETTER = -1 /* any byte but zero */ };

/* Encodings, known by the byte order mark or by the zeros around the first characters (YAML 1.2.2, section
 * 5.2); and formats, by their magic numbers. */
static const struct {
  const char *name;
  size_t length;
  int head[6];
} kinds[] = {{"UTF-32 (big endian)", 4, {0, 0, 0xFE, 0xFF}},
             {"UTF-32 (little endian)", 4, {0xFF, 0xFE, 0, 0}},
             {"UTF-32 (big endian)", 4, {0, 0, 0, LETTER}},
             {"UTF-32 (little endian)", 4, {LETTER, 0, 0, 0}},
             {"UTF-16 (big endian)", 2, {0xFE, 0xFF}},
             {"UTF-16 (little endian)", 2, {0xFF, 0xFE}},
             {"UTF-16 (big endian)", 4, {0, LETTER, 0, LETTER}},
             {"UTF-16 (little endian)", 4, {LETTER, 0, LETTER, 0}},
             {"gzip data", 2, {0x1F, 0x8B}},
             {"a zip archive (or a spreadsheet)", 4, {'P', 'K', 3, 4}},
             {"bzip2 data", 3, {'B', 'Z', 'h'}},
             {"xz data", 6, {0xFD, '7', 'z', 'X', 'Z', 0}},
             {"zstd data", 4, {0x28, 0xB5, 0x2F, 0xFD}},
             {"a NetCDF-4 or HDF5 file", 4, {0x89, 'H', 'D', 'F'}},
             {"a NumPy file", 6, {0x93, 'N', 'U', 'M', 'P', 'Y'}},
             {"a Parquet file", 4, {'P', 'A', 'R', '1'}}};

const char *input_kind(size_t size, const void *bytes) {
  const unsigned char *byte = bytes;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    bool begins = size >= kinds[i].length;
    for (size_t k = 0; begins && k < kinds[i].length; k++)
      begins = kinds[i].head[k] == LETTER ? byte[k] != 0 : byte[k] == kinds[i].head[k];
    if (begins) return kinds[i].name;
  }
  return NULL;
}

size_t input_utf8_length(size_t left, const void *bytes) {
  const unsigned char *text = bytes;
  const unsigned first = text[0], second = left > 1 ? text[1] : 0;
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  const unsigned low = first == 0xe0   ? 0xa0
                       : first == 0xf0 ? 0x90
                                       : 0x80,
                 high = first == 0xed   ? 0x9f
                        : first == 0xf4 ? 0x8f
                                        : 0xbf;
  if (first < 0xc2 || first > 0xf4 || left < length || second < low || second > high) return 0;
  for (size_t i = 2; i < length; i++)
    if ((text[i] & 0xc0) != 0x80) return 0;
  return length;
}
