#include "parallel/crash.h"

#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

enum { FRAMES = 64, PATIENCE = 60 /* seconds */ };

static volatile sig_atomic_t exit_status, crashed;
static struct sigaction former_segv, former_bus, former_alarm;

/* Leaves the process after a crash, by calls that are safe in a signal handler. A second fault, while
 * printing or in another thread, exits at once. */
static void leave_after_crash(int number) {
  static const char sentence[] =
      "thompson: the MPI library crashed at shutdown, after all work was done and written; its stack:\n";
  void *frame[FRAMES];
  (void)number;
  if (!crashed) {
    crashed = 1;
    ssize_t written = write(STDERR_FILENO, sentence, sizeof sentence - 1);
    if (written > 0) backtrace_symbols_fd(frame, backtrace(frame, FRAMES), STDERR_FILENO);
  }
  _exit(exit_status);
}

/* Ends this rank, which would otherwise wait for one that crashed. */
static void leave_waiting(int number) {
  static const char sentence[] = "thompson: MPI_Finalize has not returned for a minute, after all work was "
                                 "done and written; not waiting for it\n";
  (void)number;
  ssize_t written = write(STDERR_FILENO, sentence, sizeof sentence - 1);
  (void)written;
  _exit(exit_status);
}

void crash_counts_as(Status outcome) {
  void *frame[1];
  struct sigaction action = {.sa_handler = leave_after_crash, .sa_flags = SA_NODEFER},
                   waiting = {.sa_handler = leave_waiting};
  backtrace(frame, 1); /* loads its library now; a signal handler must not */
  exit_status = (sig_atomic_t)outcome;
  sigaction(SIGSEGV, &action, &former_segv);
  sigaction(SIGBUS, &action, &former_bus);
  sigaction(SIGALRM, &waiting, &former_alarm);
  alarm(PATIENCE);
}

void crash_counts_again(void) {
  sigaction(SIGSEGV, &former_segv, NULL);
  sigaction(SIGBUS, &former_bus, NULL);
  alarm(0);
  sigaction(SIGALRM, &former_alarm, NULL);
}
