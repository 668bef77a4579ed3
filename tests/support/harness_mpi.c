#include "harness_mpi.h"

#include <stdlib.h>

int mpi_harness_main(const char *suite, CU_TestInfo *tests) {
  parallel_begin();
  if (parallel_rank() > 0 && !freopen("/dev/null", "w", stdout)) return EXIT_FAILURE;
  double failed = parallel_sum(harness_run(suite, tests) != EXIT_SUCCESS);
  if (parallel_rank() == 0 && failed > 0)
    printf("%s: failed on %g of %d ranks\n", suite, failed, parallel_size());
  Status outcome = failed > 0 ? STATUS_INTERNAL : STATUS_OK;
  parallel_end(outcome);
  return outcome;
}
