#include "parallel/counter.h"

#include "core/memory.h"

#include <mpi.h>
#include <stdlib.h>

/* A rank alone needs no window, for which some libraries start a launcher. */
struct Counters {
  int64_t *alone; /* NULL of several ranks */
  MPI_Win window;
};

Status counter_create(int count, Counters **out) {
  NEW(*out, 1);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks == 1) {
    NEW((*out)->alone, (size_t)count);
    return STATUS_OK;
  }
  int64_t *values;
  MPI_Aint size = rank == 0 ? count * (MPI_Aint)sizeof *values : 0;
  MPI_Win_allocate(size, sizeof *values, MPI_INFO_NULL, MPI_COMM_WORLD, &values, &(*out)->window);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, (*out)->window);
  if (rank == 0) {
    for (int i = 0; i < count; i++) values[i] = 0;
    MPI_Win_sync((*out)->window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return STATUS_OK;
}

void counter_destroy(Counters *counters) {
  if (!counters) return;
  if (!counters->alone) {
    MPI_Win_unlock_all(counters->window);
    MPI_Win_free(&counters->window);
  }
  free(counters->alone);
  free(counters);
}

/* before = what counter i is, then += amount; of several ranks only there after complete(). */
static void fetch_and_add(Counters *counters, int i, const int64_t *amount, int64_t *before) {
  if (counters->alone) {
    *before = counters->alone[i];
    counters->alone[i] += *amount;
  } else {
    MPI_Fetch_and_op(amount, before, MPI_INT64_T, 0, i, MPI_SUM, counters->window);
  }
}

static void complete(Counters *counters) {
  if (!counters->alone) MPI_Win_flush(0, counters->window);
}

int64_t counter_add(Counters *counters, int index, int64_t amount) {
  int64_t before;
  fetch_and_add(counters, index, &amount, &before);
  complete(counters);
  return before;
}

void counter_exchange(Counters *counters, int count, const int *index, const int64_t *change, int64_t *now) {
  for (int k = 0; k < count; k++) fetch_and_add(counters, index[k], &change[index[k]], &now[index[k]]);
  complete(counters);
  for (int k = 0; k < count; k++) now[index[k]] += change[index[k]];
}

void counter_progress(void) {
  int flag;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}
