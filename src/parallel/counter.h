/* Counters that all ranks share, by one-sided fetch-and-add: no rank is spent on being a manager. They live
 * on rank 0, which should call counter_progress now and then while it computes: on networks without remote
 * atomics the others would wait for it. */
#ifndef PARALLEL_COUNTER_H
#define PARALLEL_COUNTER_H

#include "core/status.h"

#include <stdint.h>

typedef struct Counters Counters;

/* `count` counters at 0. Collective. */
Status counter_create(int count, Counters **out);
/* Collective. NULL is allowed. */
void counter_destroy(Counters *counters);
/* Add and return what was there before. */
int64_t counter_add(Counters *counters, int index, int64_t amount);
/* Add change[i] to every counter i of index[count], all in one trip; now[i] is what it is then. */
void counter_exchange(Counters *counters, int count, const int *index, const int64_t *change, int64_t *now);
/* Let the MPI library serve the other ranks. */
void counter_progress(void);

#endif
