/* Fits of the candidates of family auto. */
#include "harness.h"

#include "model/prior/prior.h"
#include "study/study_candidates.h"

#include <string.h>

/* Checks that networks of a chain take 12 000 steps by default, all other candidates the default of their
 * family; a given number of steps applies to all. */
static void test_steps(void) {
  PriorFit fit;
  CHECK_OK(fit_of_options("defaults", 0, NULL, 1, &fit));
  for (int c = 0; c < CANDIDATES; c++) {
    const PriorOps *family = prior_find(candidates[c].family);
    PriorFit alone = fit;
    CU_ASSERT_PTR_NOT_NULL_FATAL(family);
    prior_settle(family, &alone, 6);
    CU_ASSERT_EQUAL(study_candidates_fit(&fit, c, 6).steps, c == CANDIDATE_CHAIN ? 12000 : alone.steps);
    /* 0: chosen on held-out samples; a Gaussian is the mixture with one. */
    CU_ASSERT_EQUAL(study_candidates_fit(&fit, c, 6).components, strcmp(family->name, "gaussian") == 0);
  }
  CU_ASSERT(prior_find(candidates[CANDIDATE_CHAIN].family)->able == PRIOR_CHAIN);
  fit.steps = 40;
  for (int c = 0; c < CANDIDATES; c++) CU_ASSERT_EQUAL(study_candidates_fit(&fit, c, 6).steps, 40);
}

int main(void) {
  CU_TestInfo tests[] = {{"steps of the training", test_steps}, CU_TEST_INFO_NULL};
  return harness_run("candidates", tests);
}
