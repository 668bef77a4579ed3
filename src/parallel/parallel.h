/* The ranks of a job. Only this folder calls MPI. */
#pragma once

#include "core/arena.h"

#include <stddef.h>
#include <stdint.h>

/* Starts MPI (once), alone or under mpiexec or srun. Collective. */
void parallel_begin(void);
/* Returns the number of this rank, from 0; 0 before MPI is started. */
int parallel_rank(void);
/* Returns how many ranks there are; 1 before MPI is started. */
int parallel_size(void);
/* Ends MPI, once this rank has written everything. All ranks wait for each other; a crash inside MPI_Finalize
 * does not change the `outcome`. Collective. */
void parallel_end(Status outcome);

/* Agrees on an outcome: every rank brings its own, and all return that of the lowest rank that failed, with
 * its message. Collective. */
Status parallel_agree(Status mine);
/* ALLOCATE_ON_RANKS(arena, pointer, count): ALLOCATE on all ranks, which fails on all of them
 * if one lacks memory: a rank that returned alone would leave the others waiting. Collective. */
#define ALLOCATE_ON_RANKS(arena, pointer, count)                                                             \
  TRY(parallel_agree(arena_new((arena), (void **)&(pointer), (size_t)(count), sizeof *(pointer))))
/* Sends rank 0's bytes to all. Collective. */
void parallel_broadcast(void *bytes, size_t size);
/* Sends *text of rank 0 to all; the other ranks get an allocated copy to free(). Collective. */
Status parallel_broadcast_text(char **text);
/* Combines the bytes of all ranks by bitwise or, on every rank; exact where only one rank has non-zero bytes.
 * Collective. */
void parallel_collect(void *bytes, size_t size);
/* Sends bytes from one rank to another, or receives them; both call. */
void parallel_send(int to, const void *bytes, size_t size);
void parallel_receive(int from, void *bytes, size_t size);
/* Returns the sum over ranks, on every rank. Collective. */
double parallel_sum(double mine);
/* Sums n values likewise, in place. Collective. */
void parallel_sum_all(size_t n, double *values);
void parallel_barrier(void);
/* Returns the bytes of memory that a rank may use: its share of its machine, or what Slurm grants it; the
 * least of all ranks. Collective. */
double parallel_memory(void);
/* Writes the name of the MPI library: "Open MPI v4.1.4 ...". */
void parallel_library(size_t size, char *text);

/* Counters that all ranks share, by one-sided fetch-and-add, so that no rank has to act as a manager. They
 * live on some of the ranks, the hosts, which should call parallel_counter_progress now and then while they
 * compute: on networks without remote atomics the other ranks would wait for them. */
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
