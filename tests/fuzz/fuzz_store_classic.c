/* libFuzzer target for the bytes of classic NetCDF files (CDF-1, 2, 5): the checks in src/io/store_open.c,
 * the library behind them, and all readers.
 *
 * Inputs that are not classic NetCDF are skipped: HDF5 1.10 is known to crash on hostile files, and
 * fuzz_store_contents.c tests what our readers do with the contents of netCDF-4 files.
 *
 * Built and run by preset clang, with -max_len=7000 (tests/fuzz/CMakeLists.txt). */
#include "store_readers.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 4 || memcmp(data, "CDF", 3) != 0) return -1;
  static char path[64];
  int fd = memfd_create("fuzz_store_classic", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const char *broken = broken_reader(path);
  if (broken) {
    fprintf(stderr, "broken promise: %s: %s\n", broken, status_message());
    abort();
  }
  close(fd);
  return 0;
}
