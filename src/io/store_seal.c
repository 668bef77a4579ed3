/* A seal after the last byte of every NetCDF file that this program writes: "thompson" and the SHA-256 of
 * everything before it.
 *
 * Readers of NetCDF ignore what follows the data. The seal reveals a flipped bit in a finished task or a
 * cached prior before it is used; HDF5 by itself would read on, and can crash. A file without a seal may be
 * somebody else's, unless it is where only this program writes (store_open_own), or unless what follows its
 * data is the remains of a seal after a power cut (store_open). */
#include "io/digest.h"
#include "io/store_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEAL_SIZE = 8 + DIGEST_SIZE - 1, BUFFER = 1 << 16, PAGE = 4096 };
static const char mark[] = "thompson";

/* Computes the digest of the first `size` bytes of a stream; *whole is false if there are fewer. */
static Status digest_stream(FILE *stream, uint64_t size, char out[DIGEST_SIZE], bool *whole) {
  char block[BUFFER];
  Digest digest;
  digest_begin(&digest);
  while (size > 0) {
    size_t n = fread(block, 1, size < BUFFER ? (size_t)size : BUFFER, stream);
    if (n == 0) break;
    digest_add(&digest, block, n);
    size -= n;
  }
  *whole = size == 0;
  return digest_end(&digest, out);
}

bool store_stream_length(FILE *stream, uint64_t *size) {
  if (fseeko(stream, 0, SEEK_END) != 0) return false;
  off_t end = ftello(stream);
  *size = (uint64_t)end;
  return end >= 0 && fseeko(stream, 0, SEEK_SET) == 0;
}

int store_seal(const char *path) {
  errno = 0;
  FILE *stream = fopen(path, "r+b");
  if (!stream) return errno;
  uint64_t size;
  char digest[DIGEST_SIZE];
  bool whole;
  bool good = store_stream_length(stream, &size) &&
              digest_stream(stream, size, digest, &whole) == STATUS_OK && whole &&
              fseeko(stream, 0, SEEK_END) == 0 && fprintf(stream, "%s%s", mark, digest) == SEAL_SIZE;
  good = fclose(stream) == 0 && good;
  return good ? 0 : errno != 0 ? errno : EIO;
}

Status store_seal_verify(const char *path, FILE *stream, uint64_t size, bool *sealed) {
  char tail[SEAL_SIZE], digest[DIGEST_SIZE];
  bool whole;
  *sealed = size >= SEAL_SIZE && fseeko(stream, -SEAL_SIZE, SEEK_END) == 0 &&
            fread(tail, 1, SEAL_SIZE, stream) == SEAL_SIZE && memcmp(tail, mark, 8) == 0;
  if (!*sealed) return STATUS_OK;
  rewind(stream);
  TRY(digest_stream(stream, size - SEAL_SIZE, digest, &whole));
  if (whole && memcmp(tail + 8, digest, DIGEST_SIZE - 1) == 0) return STATUS_OK;
  return status_set(STATUS_INPUT, "%s is damaged: its checksum does not match its content", path);
}

/* Returns whether the last `length` bytes are padding: the netCDF library pads a classic file that is written
 * without fill values to a whole page, with zeros. */
static bool is_padding(FILE *stream, uint64_t size, size_t length) {
  char tail[SEAL_SIZE];
  bool zeros = size % PAGE == 0 && fseeko(stream, -(off_t)length, SEEK_END) == 0 &&
               fread(tail, 1, length, stream) == length;
  for (size_t i = 0; i < length && zeros; i++) zeros = tail[i] == 0;
  return zeros;
}

Status store_seal_check_tail(const char *path, FILE *stream, uint64_t size, uint64_t end) {
  if (size <= end || size - end > SEAL_SIZE || is_padding(stream, size, (size_t)(size - end)))
    return STATUS_OK;
  return status_set(STATUS_INPUT, "%s is damaged: the last %ju bytes, after its data, are not a checksum",
                    path, (uintmax_t)(size - end));
}

bool store_is_sealed(int file) {
  struct stat info;
  char tail[SEAL_SIZE];
  return fstat(file, &info) == 0 && info.st_size >= SEAL_SIZE &&
         pread(file, tail, SEAL_SIZE, info.st_size - SEAL_SIZE) == SEAL_SIZE && memcmp(tail, mark, 8) == 0;
}
