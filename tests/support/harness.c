#include "harness.h"

#include "core/status.h"
#include "io/store.h"

#include <fenv.h>
#include <stdlib.h>
#include <string.h>

int harness_run(const char *suite, CU_TestInfo *tests) {
  CU_SuiteInfo suites[] = {{.pName = suite, .pTests = tests}, CU_SUITE_INFO_NULL};
  if (CU_initialize_registry() != CUE_SUCCESS || CU_register_suites(suites) != CUE_SUCCESS)
    return EXIT_FAILURE;
  store_prepare_library();
  CU_basic_set_mode(CU_BRM_NORMAL);
#ifndef __clang__ /* which may divide before it is known whether it should: a trap says nothing about the    \
                     source */
  feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
#endif
  CU_basic_run_tests();
  fedisableexcept(FE_ALL_EXCEPT);
  unsigned run = CU_get_number_of_tests_run(), failed = CU_get_number_of_tests_failed();
  printf("%s: %u passed, %u failed\n", suite, run - failed, failed);
  bool good = run > 0 && CU_get_number_of_failures() == 0 && CU_get_error() == CUE_SUCCESS;
  CU_cleanup_registry();
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

bool harness_wants(const char *member) {
  const char *names = getenv("THOMPSON_MEMBERS");
  if (!names || !member) return !names;
  const size_t length = strlen(member);
  for (const char *at = names; (at = strstr(at, member)); at += length)
    if ((at == names || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) return true;
  return false;
}

long harness_bytes_read(void) {
  long bytes = -1;
  FILE *counters = fopen("/proc/self/io", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(counters);
  CU_ASSERT_EQUAL(fscanf(counters, "rchar: %ld", &bytes), 1);
  fclose(counters);
  return bytes;
}

bool harness_near(double actual, double expected, double tolerance, const char *text, const char *file,
                  int line) {
  if (fabs(actual - expected) <= tolerance) return true;
  printf("\n    %s:%d: %s = %.17g, expected %.17g within %.3g\n", file, line, text, actual, expected,
         tolerance);
  return false;
}

bool harness_ok(int status, const char *text, const char *file, int line) {
  if (status == STATUS_OK) return true;
  printf("\n    %s:%d: %s gave %d: %s\n", file, line, text, status, status_message());
  return false;
}

bool harness_fails(int status, int code, const char *part, const char *text, const char *file, int line) {
  if (status == code && strstr(status_message(), part)) return true;
  printf("\n    %s:%d: %s gave %d, expected %d with \"%s\" in: %s\n", file, line, text, status, code, part,
         status == STATUS_OK ? "(no error)" : status_message());
  return false;
}
