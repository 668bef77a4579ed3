/* Counters that all ranks share, by one-sided fetch-and-add, so that no rank has to act as a manager. They
 * live on some of the ranks, the hosts, which should call parallel_counter_progress now and then while they
 * compute: on networks without remote atomics the other ranks would wait for them. */
#pragma once

#include "parallel/parallel.h"

#include <stdint.h>

typedef struct Counters Counters;

/* One counter of a trip: what to add, and its value afterwards. */
typedef struct {
  int host, index;
  int64_t change, now;
} CounterStop;

/* Creates `count` counters, all 0, on each of `hosts` <= ranks hosts; host h is the first rank r with r *
 * hosts / ranks = h, so host 0 is rank 0. Collective. */
Status parallel_counter_create(int hosts, int count, Counters **out);
/* Destroys the counters; NULL is allowed. Collective. */
void parallel_counter_destroy(Counters *counters);
/* Adds to a counter of host 0 and returns its previous value. */
int64_t parallel_counter_add(Counters *counters, int index, int64_t amount);
/* Adds to `count` counters in one trip. Stops at the same host should follow one another. */
void parallel_counter_exchange(Counters *counters, int count, CounterStop *stops);
/* Lets the MPI library serve the other ranks. */
void parallel_counter_progress(void);
