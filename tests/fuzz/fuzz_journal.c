/* libFuzzer target for damage to journals of finished tasks: the input says what is flipped, overwritten, cut
 * off or appended (journal_damage.h). A task that can be read is as it was written; a repair loses nothing
 * that could be read, and each damaged place is reported once.
 *
 * Built and run by preset clang, with -max_len=32 (tests/fuzz/CMakeLists.txt). */
#include "journal_damage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char folder[] = "/dev/shm/fuzz-journal-XXXXXX";
  static FILE *silence;
  if (!silence) {
    if (!mkdtemp(folder)) abort();
    silence = freopen("/dev/null", "w", stderr); /* where repairs are reported */
  }
  const char *broken = journal_damage_run(folder, data, size);
  if (broken) {
    printf("broken promise: %s: %s\n", broken, status_message());
    abort();
  }
  return 0;
}
