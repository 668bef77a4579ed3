/* The last rank crashes inside MPI_Finalize, after its work: the job has not failed. The status of this test
 * is that of mpiexec. */
#include "parallel/parallel.h"

#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

/* Crashes from an attribute: MPI_Finalize begins with the attributes of MPI_COMM_SELF (MPI 3.1, section
 * 8.7.1). */
static int crash(MPI_Comm communicator, int key, void *value, void *extra) {
  (void)communicator, (void)key, (void)value, (void)extra;
  raise(SIGSEGV);
  return MPI_SUCCESS;
}

int main(void) {
  parallel_begin();
  bool last = parallel_rank() == parallel_size() - 1;
  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, crash, &key, NULL);
  if (last) MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  parallel_end(STATUS_OK);
  return last ? EXIT_FAILURE : EXIT_SUCCESS; /* the last rank never gets here */
}
