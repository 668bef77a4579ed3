/* libFuzzer target for classic NetCDF files (CDF-1, 2, 5), byte by byte: the walk of src/io/store_classic.c,
 * the library behind it, and all readers.
 *
 * Inputs that are not classic NetCDF are left out: HDF5 1.10 is known to crash on hostile files, and what our
 * readers do with the contents of netCDF-4 files is for fuzz_store_contents.c. The files under test are
 * instrumented, the rest comes from the built library. Build and run (clang), from the root of the
 * repository:
 *
 *   clang -g -O1 -std=gnu11 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -Isrc \
 *     -fno-sanitize-recover=undefined tests/fuzz/fuzz_store_classic.c src/core/{status,memory}.c \
 *     src/io/{store*,dataset*,embedding}.c \
 *     src/model/{prior*,mixture,mixture_check,chain,schedule,network}.c \
 *     build/src/libthompson_core.a -Ibuild/generated -lm -o fuzz_store_classic \
 *     $(pkg-config --cflags --libs netcdf hdf5-serial openblas lapacke sleef libmd zlib)
 *   ASAN_OPTIONS=quarantine_size_mb=8 OPENBLAS_NUM_THREADS=1 ./fuzz_store_classic -max_total_time=600 \
 *     -timeout=5 -max_len=7000 new_corpus tests/fuzz/corpus_store_classic */
#include "store_readers.h"

#include <stdint.h>
#include <stdio.h>
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
