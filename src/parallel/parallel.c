#include "parallel/parallel.h"

#include "core/memory.h"
#include "parallel/crash.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 1 << 28 }; /* bytes in one MPI call: counts are int */

/* Keeps Open MPI, when there is no launcher, from starting a daemon for spawning and waiting for it. Without
 * the daemon all such processes of a user create and remove the same session folder, so that one fails when
 * another ends; they need neither, so the folder is switched off, too. Ranks of a launcher, which do need
 * one, have a name space. */
static void parallel_start_alone(void) {
  if (getenv("PMIX_NAMESPACE") || getenv("PMI_RANK") || getenv("PMI_FD")) return;
  setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
  setenv("OMPI_MCA_orte_create_session_dirs", "0", 0);
}

Parallel parallel_begin(void) {
  Parallel parallel;
  int provided; /* other threads never call MPI */
  parallel_start_alone();
  MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &parallel.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &parallel.size);
  return parallel;
}

void parallel_end(Status outcome) {
  MPI_Barrier(MPI_COMM_WORLD);
  crash_counts_as(outcome);
  MPI_Finalize();
  crash_counts_again();
}

Status parallel_agree(const Parallel *parallel, Status mine) {
  if (parallel->size == 1) return mine;
  int first = mine == STATUS_OK ? parallel->size : parallel->rank;
  MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == parallel->size) return STATUS_OK;
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

Status parallel_broadcast_text(const Parallel *parallel, char **text) {
  unsigned long size = parallel->rank == 0 ? strlen(*text) + 1 : 0;
  MPI_Bcast(&size, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
  Status status = STATUS_OK;
  if (parallel->rank != 0) status = memory_new((void **)text, size, 1);
  TRY(parallel_agree(parallel, status));
  parallel_broadcast(*text, size);
  return STATUS_OK;
}

void parallel_collect(const Parallel *parallel, void *bytes, size_t size) {
  for (size_t at = 0; parallel->size > 1 && at < size; at += PIECE)
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
