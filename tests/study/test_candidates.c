/* Fits of the candidates of family auto, and the sizes at which their draws are judged. */
#include "harness.h"
#include "study_text.h"

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

/* Checks that draws are judged after the whole of y, whose length the operator of an inverse problem knows.
 */
static void test_sizes(void) {
  static const char text[] =
      "name: t\nstudy: posterior\npolicies: [ts]\n"
      "problem: {family: inverse, theta: gaussian, operator: mask, dimension: 12, sample_sizes: arms}\n";
  int sizes[CANDIDATE_SIZES];
  Problem problem;
  Study study = study_text_study(text);
  CHECK_OK(study_text_problem(text, &problem));
  CU_ASSERT_EQUAL(study_candidates_sizes(study.file->settings[0], &problem, sizes), 1);
  CU_ASSERT_EQUAL(sizes[0], 6);
  problem_destroy(&problem);
  study_destroy(&study);
}

int main(void) {
  CU_TestInfo tests[] = {{"steps of the training", test_steps},
                         {"sizes at which draws are judged", test_sizes},
                         CU_TEST_INFO_NULL};
  return harness_run("candidates", tests);
}
