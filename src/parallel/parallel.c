#include "parallel/parallel.h"

#include "core/memory.h"

#include <execinfo.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 28 }; /* bytes in one MPI call: counts are int */

static int own_rank, ranks = 1;

void parallel_begin(void) {
  int provided; /* other threads never call MPI */
  if (!getenv("PMIX_NAMESPACE") && !getenv("PMI_RANK") && !getenv("PMI_FD")) {
    /* There is no launcher, whose ranks have a name space. Open MPI would start a daemon for spawning and
     * wait for it. Without the daemon all such processes of a user create and remove the same session folder,
     * so that one fails when another ends; they need neither, so the folder is switched off, too. */
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    setenv("OMPI_MCA_orte_create_session_dirs", "0", 0);
  }
  MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

int parallel_rank(void) { return own_rank; }
int parallel_size(void) { return ranks; }

/* ---- a crash that must not count */

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

void parallel_end(Status outcome) {
  MPI_Barrier(MPI_COMM_WORLD);
  crash_counts_as(outcome);
  MPI_Finalize();
  crash_counts_again();
}

/* ---- what ranks tell each other */

Status parallel_agree(Status mine) {
  if (parallel_size() == 1) return mine;
  int first = mine == STATUS_OK ? parallel_size() : parallel_rank();
  MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == parallel_size()) return STATUS_OK;
  int code = mine;
  char message[2048];
  snprintf(message, sizeof message, "%s", status_message());
  MPI_Bcast(&code, 1, MPI_INT, first, MPI_COMM_WORLD);
  MPI_Bcast(message, sizeof message, MPI_CHAR, first, MPI_COMM_WORLD);
  return status_set((Status)code, "%s", message);
}

void parallel_broadcast(void *bytes, size_t size) {
  for (size_t at = 0; at < size; at += PIECE)
    MPI_Bcast((char *)bytes + at, (int)(size - at < PIECE ? size - at : PIECE), MPI_BYTE, 0, MPI_COMM_WORLD);
}

Status parallel_broadcast_text(char **text) {
  unsigned long size = parallel_rank() == 0 ? strlen(*text) + 1 : 0;
  MPI_Bcast(&size, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
  Status status = STATUS_OK;
  if (parallel_rank() != 0) status = memory_new((void **)text, size, 1);
  TRY(parallel_agree(status));
  parallel_broadcast(*text, size);
  return STATUS_OK;
}

void parallel_collect(void *bytes, size_t size) {
  for (size_t at = 0; parallel_size() > 1 && at < size; at += PIECE)
    MPI_Allreduce(MPI_IN_PLACE, (char *)bytes + at, (int)(size - at < PIECE ? size - at : PIECE), MPI_BYTE,
                  MPI_BOR, MPI_COMM_WORLD);
}

void parallel_send(int to, const void *bytes, size_t size) {
  for (size_t at = 0; at < size; at += PIECE)
    MPI_Send((const char *)bytes + at, (int)(size - at < PIECE ? size - at : PIECE), MPI_BYTE, to, 0,
             MPI_COMM_WORLD);
}

void parallel_receive(int from, void *bytes, size_t size) {
  for (size_t at = 0; at < size; at += PIECE)
    MPI_Recv((char *)bytes + at, (int)(size - at < PIECE ? size - at : PIECE), MPI_BYTE, from, 0,
             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

double parallel_sum(double mine) {
  MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return mine;
}

void parallel_sum_all(size_t n, double *values) {
  const size_t most = PIECE / sizeof *values;
  for (size_t at = 0; at < n; at += most)
    MPI_Allreduce(MPI_IN_PLACE, values + at, (int)(n - at < most ? n - at : most), MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);
}

void parallel_barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

void parallel_library(size_t size, char *text) {
  char name[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(name, &length);
  name[strcspn(name, ",\n")] = '\0';
  snprintf(text, size, "%s", name);
}
