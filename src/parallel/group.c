#include "parallel/group.h"

#include "parallel/parallel.h"
#include "parallel/parallel_internal.h"

#include <stdbool.h>

static bool divided; /* in a group of its own, or in none */
static MPI_Comm own; /* while divided */

void group_begin(int number) {
  ASSERT(!divided);
  MPI_Comm_split(MPI_COMM_WORLD, number < 0 ? MPI_UNDEFINED : number, parallel_rank(), &own);
  divided = true;
}

void group_end(void) {
  ASSERT(divided);
  if (own != MPI_COMM_NULL) MPI_Comm_free(&own);
  divided = false;
}

MPI_Comm group_communicator(void) { return divided ? own : MPI_COMM_WORLD; }

int group_rank(void) {
  int rank = parallel_rank();
  if (divided) MPI_Comm_rank(own, &rank);
  return rank;
}

int group_size(void) {
  int size = parallel_size();
  if (divided) MPI_Comm_size(own, &size);
  return size;
}

Status group_agree(Status mine) { return parallel_agree_over(group_communicator(), mine); }

void group_sum_all(size_t n, double *values) { parallel_sum_all_over(group_communicator(), n, values); }

void group_broadcast(void *bytes, size_t size) { parallel_broadcast_over(group_communicator(), bytes, size); }
