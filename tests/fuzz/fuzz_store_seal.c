/* libFuzzer target for damage to files with a checksum (results, priors, histories): the input says what is
 * flipped, overwritten, cut off or appended (store_damage.h). A file at a place where only this program
 * writes is accepted when it is whole and refused otherwise; the readers of users' files keep their promises.
 *
 * Built and run by preset clang, with -max_len=33 (tests/fuzz/CMakeLists.txt). */
#include "core/status.h"
#include "store_damage.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char path[64];
  if (!path[0]) snprintf(path, sizeof path, "/dev/shm/fuzz_store_seal.%d.nc", (int)getpid());
  const char *broken = damage_run(path, data, size);
  remove(path);
  if (broken) {
    fprintf(stderr, "broken promise: %s: %s\n", broken, status_message());
    abort();
  }
  return 0;
}
