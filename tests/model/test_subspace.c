/* The observed subspace of a history: directions, singular values and projected rewards against the evidence,
 * in coordinates of theta and of a chain; fewer and more observations than dimensions. */
#include "core/arena.h"
#include "model/history/history_subspace.h"
#include "sampler_fixture.h"

enum { D = 5 };

/* Checks V orthonormal, V' diag(S^2) V = Lambda and V S U'y = b, and that the residual completes the squares:
 * |y|^2 - |U'y|^2. Lambda is of size 100, so rounding is below 1e-11. */
static void check_subspace(const History *history, const double *shift, const double *scale, int rank) {
  SCRATCH_ARENA(memory);
  const HistoryView view = history_view_in(history_view(history, 1, 0, 1), shift, scale);
  Subspace seen;
  double precision[D * D], vector[D], residual, squares = 0;
  CHECK_OK(history_subspace_find(&memory, &view, &seen));
  CU_ASSERT_EQUAL(seen.rank, rank);
  history_evidence(&view, precision, vector);
  history_residual(&view, &residual);
  for (int j = 0; j < rank; j++) {
    CU_ASSERT(seen.value[j] > 0 && (j == 0 || seen.value[j] <= seen.value[j - 1]));
    squares += seen.reward[j] * seen.reward[j];
    for (int k = 0; k < rank; k++) {
      double sum = 0;
      for (int i = 0; i < D; i++) sum += seen.direction[j * D + i] * seen.direction[k * D + i];
      CHECK_NEAR(sum, j == k, 1e-10);
    }
  }
  for (int i = 0; i < D; i++) {
    double b = 0;
    for (int j = 0; j < rank; j++) b += seen.direction[j * D + i] * seen.value[j] * seen.reward[j];
    CHECK_NEAR(b, vector[i], 1e-9);
    for (int k = 0; k < D; k++) {
      double sum = 0;
      for (int j = 0; j < rank; j++)
        sum += seen.direction[j * D + i] * seen.value[j] * seen.value[j] * seen.direction[j * D + k];
      CHECK_NEAR(sum, precision[i * D + k], 1e-9);
    }
  }
  CHECK_NEAR(seen.residual, residual - squares, 1e-9 * (1 + residual));
}

static void test_against_evidence(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = fixture_likelihood(0.3);
  const double shift[D] = {1, -1, 0.5, 0, 2}, scale[D] = {1, 2, 0.5, 1, 3};
  const int rows[] = {0, 1, 3, 5, 8}, ranks[] = {0, 1, 3, 5, 5};
  for (int k = 0; k < 5; k++) {
    History history = fixture_history(&memory, D, 1, 0, rows[k], &likelihood);
    check_subspace(&history, NULL, NULL, ranks[k]);
    check_subspace(&history, shift, scale, ranks[k]);
  }
}

/* Checks that a direction that is observed twice counts once. */
static void test_repeated_rows(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = fixture_likelihood(0.3);
  History history;
  CHECK_OK(history_create(&memory, D, 1, &likelihood, &history));
  CHECK_OK(history_reserve(&history, 4));
  for (int k = 0; k < 4; k++) {
    const double phi[D] = {k % 2, 1, 0, 0.5, -k % 2}, y = k;
    history_record(&history, NULL, phi, &y);
  }
  check_subspace(&history, NULL, NULL, 2);
}

int main(void) {
  CU_TestInfo tests[] = {{"against the evidence", test_against_evidence},
                         {"repeated rows", test_repeated_rows},
                         CU_TEST_INFO_NULL};
  return harness_run("subspace", tests);
}
