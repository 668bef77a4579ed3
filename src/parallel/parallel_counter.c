#include "parallel/parallel_counter.h"

#include "core/memory.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>

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
  /* With several ranks `now` is valid only after this. */
  for (int k = 0; k < count && !counters->alone; k++)
    if (k + 1 == count || stops[k + 1].host != stops[k].host)
      MPI_Win_flush(parallel_counter_rank_of_host(counters, stops[k].host), counters->window);
  for (int k = 0; k < count; k++) stops[k].now += stops[k].change;
}

void parallel_counter_progress(void) {
  int flag;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}
