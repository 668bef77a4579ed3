/* Shared by all CUnit test programs: run a table of tests, trap floating-point exceptions, print one closing
 * line, set the exit status. */
#pragma once

#include <CUnit/Basic.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

/* Runs tests[] (which ends with CU_TEST_INFO_NULL) as one suite. Division by zero, invalid operations and
 * overflow raise SIGFPE while they run. Prints "suite: N passed, N failed" and returns the exit status. With
 * MPI, only rank 0 prints. */
int harness_run(const char *suite, CU_TestInfo *tests);

/* Tells whether the tests that walk a registry take this member: all of them, unless THOMPSON_MEMBERS in the
 * environment names the wanted ones ("lmc,student"). NULL asks whether all are taken. */
bool harness_wants(const char *member);

/* Returns how many bytes this process has read from files so far. */
long harness_bytes_read(void);

/* |actual - expected| <= tolerance; prints all three when that fails. NaN fails. */
#define CHECK_NEAR(actual, expected, tolerance)                                                              \
  CU_assertImplementation(harness_near((actual), (expected), (tolerance), #actual, __FILE__, __LINE__),      \
                          __LINE__, "CHECK_NEAR(" #actual ", " #expected ")", __FILE__, "", CU_FALSE)
bool harness_near(double actual, double expected, double tolerance, const char *text, const char *file,
                  int line);

/* The Status is STATUS_OK; prints the sentence when it is not. */
#define CHECK_OK(call)                                                                                       \
  CU_assertImplementation(harness_ok((call), #call, __FILE__, __LINE__), __LINE__, "CHECK_OK(" #call ")",    \
                          __FILE__, "", CU_FALSE)
bool harness_ok(int status, const char *text, const char *file, int line);

/* The call fails with `code` and its sentence contains `part`; prints the sentence when it does not. */
#define CHECK_FAILS(call, code, part)                                                                        \
  CU_assertImplementation(harness_fails((call), (code), (part), #call, __FILE__, __LINE__), __LINE__,        \
                          "CHECK_FAILS(" #call ")", __FILE__, "", CU_FALSE)
bool harness_fails(int status, int code, const char *part, const char *text, const char *file, int line);
