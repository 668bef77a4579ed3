/* Loaded into a job by LD_PRELOAD: each of its processes appends THOMPSON_GATE_RECORDS records to its
 * journal, and waits before the next one as long as the file THOMPSON_GATE exists. What a test does to a job
 * then happens before its end. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADER = 160 }; /* bytes of a record's header, which begins with "thompso" (journals.py) */

size_t fwrite(const void *data, size_t size, size_t count, FILE *file) {
  static int records;
  const char *const gate = getenv("THOMPSON_GATE");
  if (gate && size == HEADER && memcmp(data, "thompso2", 8) == 0 &&
      records++ >= atoi(getenv("THOMPSON_GATE_RECORDS")))
    while (access(gate, F_OK) == 0) usleep(1000);
  size_t (*next)(const void *, size_t, size_t, FILE *);
  *(void **)&next = dlsym(RTLD_NEXT, "fwrite");
  return next(data, size, count, file);
}
