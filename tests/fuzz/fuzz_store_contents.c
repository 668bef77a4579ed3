/* libFuzzer target for the contents of NetCDF files: the input describes dimensions, variables, attributes
 * and values (store_contents.h); the library writes them as netCDF-4 or a classic file, and all readers read
 * it. A flipped bit in a file with a seal must be noticed.
 *
 * Built and run by preset clang, with -max_len=600 (tests/fuzz/CMakeLists.txt). */
#include "io/store.h"
#include "store_contents.h"
#include "store_readers.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_damage(const char *path, int fd) {
  struct stat info;
  char byte;
  StoreFile *file;
  if (fstat(fd, &info) != 0) abort();
  off_t at = info.st_size / 4; /* before the seal, however short the file is */
  if (pread(fd, &byte, 1, at) != 1) abort();
  byte ^= 4;
  if (pwrite(fd, &byte, 1, at) != 1 || store_open(path, &file) != STATUS_INPUT) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char path[64];
  int fd = memfd_create("fuzz_store_contents", MFD_CLOEXEC);
  if (fd < 0) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  bool sealed;
  if (store_contents_write(path, data, size, &sealed)) {
    const char *broken = broken_reader(path);
    if (broken) {
      fprintf(stderr, "broken promise: %s: %s\n", broken, status_message());
      abort();
    }
    if (sealed) check_damage(path, fd);
  }
  close(fd);
  return 0;
}
