/* A crash between crash_counts_as and crash_counts_again ends the process with the given status, with a
 * stack; others kill it. */
#include "harness.h"
#include "parallel/crash.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs `act` in a child: its stderr is read into text, waitpid's status is returned. */
static int in_child(void (*act)(void), char text[4096]) {
  int ends[2];
  CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    signal(SIGSEGV, SIG_DFL); /* a sanitizer has a handler of its own */
    act();
    _exit(77);
  }
  close(ends[1]);
  size_t size = 0;
  for (ssize_t got; size < 4095 && (got = read(ends[0], text + size, 4095 - size)) > 0;) size += (size_t)got;
  text[size] = '\0';
  close(ends[0]);
  int how = 0;
  waitpid(child, &how, 0);
  return how;
}

static void *fault(void *number) {
  raise(*(int *)number);
  return NULL;
}

static void segv(void) {
  crash_counts_as(STATUS_OK);
  raise(SIGSEGV);
}

static void bus_in_a_thread(void) {
  pthread_t thread;
  int number = SIGBUS;
  crash_counts_as(STATUS_TASKS_FAILED);
  pthread_create(&thread, NULL, fault, &number);
  pthread_join(thread, NULL);
}

static void waits_too_long(void) {
  crash_counts_as(STATUS_TASKS_FAILED);
  alarm(1); /* instead of after its minute */
  for (;;) pause();
}

static void afterwards(void) {
  crash_counts_as(STATUS_OK);
  crash_counts_again();
  raise(SIGSEGV);
}

static void test_outcome(void) {
  char text[4096];
  int how = in_child(segv, text);
  CU_ASSERT(WIFEXITED(how) && WEXITSTATUS(how) == STATUS_OK);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "the MPI library crashed at shutdown"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "test_crash(")); /* a frame of the stack */
  how = in_child(bus_in_a_thread, text);
  CU_ASSERT(WIFEXITED(how) && WEXITSTATUS(how) == STATUS_TASKS_FAILED);
  how = in_child(waits_too_long, text);
  CU_ASSERT(WIFEXITED(how) && WEXITSTATUS(how) == STATUS_TASKS_FAILED);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "MPI_Finalize has not returned"));
}

static void test_afterwards(void) {
  char text[4096];
  int how = in_child(afterwards, text);
  CU_ASSERT(WIFSIGNALED(how) && WTERMSIG(how) == SIGSEGV);
  CU_ASSERT_STRING_EQUAL(text, "");
}

int main(void) {
  CU_TestInfo tests[] = {
      {"outcome and stack", test_outcome}, {"counts again", test_afterwards}, CU_TEST_INFO_NULL};
  return harness_run("crash", tests);
}
