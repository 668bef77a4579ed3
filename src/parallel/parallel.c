#include "parallel/parallel.h"

#include "core/arena.h"
#include "parallel/crash.h"
#include "parallel/parallel_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 28 }; /* bytes in one MPI call: counts are int */

static int own_rank, ranks = 1;
static int neighbours = 1; /* ranks of this machine, with this one */

/* Tells the user's own code (io_worker.h) which of the ranks of this machine it belongs to. */
static void parallel_number_neighbours(void) {
  MPI_Comm machine;
  int number = 0;
  char text[16];
  if (ranks > 1) {
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    MPI_Comm_rank(machine, &number);
    MPI_Comm_size(machine, &neighbours);
    MPI_Comm_free(&machine);
  }
  snprintf(text, sizeof text, "%d", number);
  setenv("THOMPSON_LOCAL_RANK", text, 1);
}

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
  parallel_number_neighbours();
}

int parallel_rank(void) { return own_rank; }
int parallel_size(void) { return ranks; }

void parallel_end(Status outcome) {
  MPI_Barrier(MPI_COMM_WORLD);
  crash_counts_as(outcome);
  MPI_Finalize();
  crash_counts_again();
}

/* ---- what ranks tell each other */

Status parallel_agree_over(MPI_Comm members, Status mine) {
  int rank, size;
  if (parallel_size() == 1) return mine;
  MPI_Comm_rank(members, &rank);
  MPI_Comm_size(members, &size);
  int first = mine == STATUS_OK ? size : rank;
  MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, members);
  if (first == size) return STATUS_OK;
  int code = mine;
  char message[2048];
  snprintf(message, sizeof message, "%s", status_message());
  MPI_Bcast(&code, 1, MPI_INT, first, members);
  MPI_Bcast(message, sizeof message, MPI_CHAR, first, members);
  return status_set((Status)code, "%s", message);
}

Status parallel_agree(Status mine) { return parallel_agree_over(MPI_COMM_WORLD, mine); }

void parallel_broadcast_over(MPI_Comm members, void *bytes, size_t size) {
  for (size_t at = 0; at < size; at += PIECE)
    MPI_Bcast((char *)bytes + at, (int)(size - at < PIECE ? size - at : PIECE), MPI_BYTE, 0, members);
}

void parallel_broadcast(void *bytes, size_t size) { parallel_broadcast_over(MPI_COMM_WORLD, bytes, size); }

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
  if (parallel_size() == 1) return;
  for (size_t at = 0; at < size; at += PIECE)
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

void parallel_sum_all_over(MPI_Comm members, size_t n, double *values) {
  const size_t most = PIECE / sizeof *values;
  for (size_t at = 0; at < n; at += most)
    MPI_Allreduce(MPI_IN_PLACE, values + at, (int)(n - at < most ? n - at : most), MPI_DOUBLE, MPI_SUM,
                  members);
}

void parallel_sum_all(size_t n, double *values) { parallel_sum_all_over(MPI_COMM_WORLD, n, values); }

double parallel_sum(double mine) {
  parallel_sum_all(1, &mine);
  return mine;
}

void parallel_barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

/* Returns the bytes that Slurm grants for a unit of which this rank has so many; INFINITY if it does not say.
 */
static double parallel_granted_memory(const char *variable, double units) {
  const char *megabytes = getenv(variable);
  const double granted = megabytes ? strtod(megabytes, NULL) : 0;
  return granted > 0 ? granted * 1048576 * units : INFINITY;
}

double parallel_memory(void) {
  const char *cpus = getenv("SLURM_CPUS_PER_TASK");
  const double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / neighbours,
               node = parallel_granted_memory("SLURM_MEM_PER_NODE", 1.0 / neighbours),
               cpu = parallel_granted_memory("SLURM_MEM_PER_CPU", cpus ? fmax(1, strtod(cpus, NULL)) : 1);
  double bytes = fmin(machine, fmin(node, cpu));
  if (ranks > 1) MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  return bytes;
}

void parallel_library(size_t size, char *text) {
  char name[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(name, &length);
  name[strcspn(name, ",\n")] = '\0';
  snprintf(text, size, "%s", name);
}

/* ---- counters */

struct Counters {
  int hosts;
  int64_t *alone; /* a single rank needs no window, for which some libraries start a launcher */
  MPI_Win window; /* with several ranks */
};

/* Returns the first rank r with r * hosts / ranks = host. */
static int parallel_counter_rank_of_host(const Counters *counters, int host) {
  return (int)(((int64_t)host * parallel_size() + counters->hosts - 1) / counters->hosts);
}

Status parallel_counter_create(int hosts, int count, Counters **out) {
  Counters *counters = NULL;
  ASSERT(hosts <= parallel_size());
  Status status = memory_new((void **)&counters, 1, sizeof *counters);
  if (status == STATUS_OK && parallel_size() == 1)
    status = memory_new((void **)&counters->alone, (size_t)count, sizeof *counters->alone);
  status = parallel_agree(status);
  *out = NULL;
  if (status != STATUS_OK) {
    free(counters);
    return status;
  }
  *out = counters;
  counters->hosts = hosts;
  if (counters->alone) return STATUS_OK;
  int64_t *values;
  const int host = (int)((int64_t)parallel_rank() * hosts / parallel_size());
  const int here = parallel_counter_rank_of_host(counters, host) == parallel_rank() ? count : 0;
  MPI_Win_allocate(here * (MPI_Aint)sizeof *values, sizeof *values, MPI_INFO_NULL, MPI_COMM_WORLD, &values,
                   &counters->window);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, counters->window);
  for (int i = 0; i < here; i++) values[i] = 0;
  MPI_Win_sync(counters->window);
  MPI_Barrier(MPI_COMM_WORLD);
  return STATUS_OK;
}

void parallel_counter_destroy(Counters *counters) {
  if (!counters) return;
  if (!counters->alone) {
    MPI_Win_unlock_all(counters->window);
    MPI_Win_free(&counters->window);
  }
  free(counters->alone);
  free(counters);
}

int64_t parallel_counter_add(Counters *counters, int index, int64_t amount) {
  CounterStop stop = {.host = 0, .index = index, .change = amount};
  parallel_counter_exchange(counters, 1, &stop);
  return stop.now - amount;
}

void parallel_counter_exchange(Counters *counters, int count, CounterStop *stops) {
  for (int k = 0; k < count; k++) {
    CounterStop *stop = &stops[k];
    if (counters->alone) {
      stop->now = counters->alone[stop->index];
      counters->alone[stop->index] += stop->change;
    } else {
      MPI_Fetch_and_op(&stop->change, &stop->now, MPI_INT64_T,
                       parallel_counter_rank_of_host(counters, stop->host), stop->index, MPI_SUM,
                       counters->window);
    }
  }
  if (!counters->alone) /* `now` is valid only after this */
    for (int k = 0; k < count; k++)
      if (k + 1 == count || stops[k + 1].host != stops[k].host)
        MPI_Win_flush(parallel_counter_rank_of_host(counters, stops[k].host), counters->window);
  for (int k = 0; k < count; k++) stops[k].now += stops[k].change;
}

void parallel_counter_progress(void) {
  int flag;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}
