/* Counters that all ranks share, by one-sided fetch-and-add: no rank is spent on being a manager. They live
 * on several hosts, ranks that should call counter_progress now and then while they compute: on networks
 * without remote atomics the others would wait for them. */
#pragma once

#include "parallel/parallel.h"

#include <stdint.h>

typedef struct Counters Counters;

/* One counter of a trip: what to add, and what it is then. */
typedef struct {
  int host, index;
  int64_t change, now;
} CounterStop;

/* Creates `count` counters at 0 on each of `hosts` <= ranks; host h is the first rank r with r * hosts /
 * ranks = h, so host 0 is rank 0. Collective. */
Status counter_create(const Parallel *parallel, int hosts, int count, Counters **out);
/* Destroys the counters; NULL is allowed. Collective. */
void counter_destroy(Counters *counters);
/* Adds to a counter of host 0 and returns what was there before. */
int64_t counter_add(Counters *counters, int index, int64_t amount);
/* Visits `count` counters, all in one trip, those of a host one after another. */
void counter_exchange(Counters *counters, int count, CounterStop *stops);
/* Lets the MPI library serve the other ranks. */
void counter_progress(void);
