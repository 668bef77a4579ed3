/* Linear Thompson sampling on rewards that are not linear: draws against sums over the rows, computed
 * here. */
#include "catch_up_fixture.h"
#include "core/arena.h"
#include "core/linalg/linalg.h"

enum { D = 3, RUNS = 4, EACH = 2, ARMS = RUNS / EACH, DRAWS = 2, ROUNDS = 9 };

static const double ETA = 5, LAMBDA = 0.4, TEMPER = 2;

/* The observations of one run. */
typedef struct {
  int n;
  double phi[ROUNDS][D], y[ROUNDS];
} Seen;

/* Checks draw by draw: V^-1 b + L^-T z with eta (lambda I + temper X'X) = L L', V the part in brackets. */
static void check_draws(const Seen *seen, const double *theta) {
  for (int run = 0; run < RUNS; run++) {
    double precision[D * D], inverse[D * D], pull[D] = {0};
    for (int i = 0; i < D; i++)
      for (int j = 0; j < D; j++) {
        double sum = LAMBDA * (i == j);
        for (int l = 0; l < seen[run].n; l++) sum += TEMPER * seen[run].phi[l][i] * seen[run].phi[l][j];
        precision[i * D + j] = ETA * sum;
      }
    for (int l = 0; l < seen[run].n; l++)
      for (int i = 0; i < D; i++) pull[i] += ETA * TEMPER * seen[run].phi[l][i] * seen[run].y[l];
    fixture_invert(D, precision, inverse);
    ASSERT(linalg_cholesky(D, precision) == STATUS_OK);
    for (int m = 0; m < DRAWS; m++) {
      double z[D];
      Rng rng = {
          .key = rng_key(FIXTURE_SEED, RNG_TEST), .run = (uint32_t)run, .round = 77, .draw = (uint32_t)m};
      rng_normal(&rng, D, z);
      for (int i = D - 1; i >= 0; i--) {
        for (int j = i + 1; j < D; j++) z[i] -= precision[j * D + i] * z[j];
        z[i] /= precision[i * D + i];
      }
      for (int i = 0; i < D; i++) {
        double expected = z[i];
        for (int j = 0; j < D; j++) expected += inverse[i * D + j] * pull[j];
        CHECK_NEAR(theta[i * RUNS * DRAWS + run * DRAWS + m], expected, 1e-10);
      }
    }
  }
}

/* Checks runs that observe at different times; draws are requested only after some rounds; then a shorter
 * history. */
static void check_rewards(const char *name) {
  SCRATCH_ARENA(memory);
  static const char *const sets[] = {"eta=5", "lambda=0.4", "temper=2"};
  const Likelihood likelihood = {.ops = likelihood_find(name), .noise = 0.6};
  PriorFit fit = fixture_fit(5, 0.8, LAST_STAGE_REPAIRED);
  Prior prior;
  CHECK_OK(prior_standard(&memory, D, &fit, &prior));
  History history;
  CHECK_OK(history_create_planned(&memory, D, EACH, (HistoryPlan){.share = ARMS}, &likelihood, &history));
  CHECK_OK(history_reserve(&history, ROUNDS));
  FixtureSampler lints = make_sampler(&memory, "lints", &prior, &likelihood, 0, RUNS, DRAWS, 3, sets);
  Rng rng = fixture_rng(0, 8000);
  for (int game = 0; game < 2; game++) {
    Seen seen[RUNS] = {0};
    history_clear(&history);
    for (int round = 0; round < ROUNDS - 4 * game; round++) {
      const int arm[EACH] = {round % ARMS, round / 3 % ARMS};
      double phi[D * EACH], y[EACH];
      rng_normal(&rng, D * EACH, phi);
      for (int m = 0; m < EACH; m++) {
        Seen *own = &seen[m * ARMS + arm[m]];
        y[m] = own->y[own->n] = (round + m) % 2;
        for (int i = 0; i < D; i++) own->phi[own->n][i] = phi[i * EACH + m];
        own->n++;
      }
      history_record(&history, arm, phi, y);
      if (round % 3 == 1) continue;
      double *theta = draw_from(&lints, &history, DRAWS);
      check_draws(seen, theta);
      free(theta);
    }
  }
  for (int run = 0; run < RUNS; run++) CU_ASSERT_EQUAL(lints.fallbacks[run], 0);
  free_sampler(&lints);
}

static void test_rewards_as_if_linear(void) {
  check_rewards("logistic");
  check_rewards("poisson");
}

int main(void) {
  CU_TestInfo tests[] = {{"rewards of any likelihood are taken as linear", test_rewards_as_if_linear},
                         CU_TEST_INFO_NULL};
  return harness_run("lints", tests);
}
