/* Features of any size that a double can hold: every sampler ends, and soon, with finite draws. */
#include "core/arena.h"
#include "sampler_fixture.h"

#include <fenv.h>
#include <time.h>

enum { D = 2, DRAWS = 8 };

/* Returns the seconds of this process that `method` takes. */
static double seconds(const SamplerOps *method, const Prior *prior, const History *history) {
  const clock_t start = clock();
  double *theta = fixture_draw(method, prior, history, 0, DRAWS, 0, NULL, NULL);
  for (int i = 0; i < D * DRAWS; i++) CU_ASSERT(isfinite(theta[i]));
  free(theta);
  return (double)(clock() - start) / CLOCKS_PER_SEC;
}

/* Checks features of mixed sizes, of either sign, and rewards of both kinds. Infinities on the way are what
 * is tested, so they are not trapped. The limit is far above the 0.05 s of the slowest, twisted; with
 * sanitizers, which are some 40 times slower, every second size and a matching limit. */
static void test_every_sampler_ends(void) {
  SCRATCH_ARENA(memory);
  const double sizes[] = {1e-300, 1e-16, 1, 1e8, 1e16, 1e150, 1e300};
  enum { SIZES = sizeof sizes / sizeof *sizes };
  const char *sanitized = getenv("THOMPSON_SANITIZED");
  const bool slow = sanitized && strcmp(sanitized, "1") == 0;
  const double limit = slow ? 60 : 1;
  const int step = slow ? 2 : 1;
  static const char *const families[] = {"logistic", "poisson"};
  char sentence[256];
  int runs = 0;
  fedisableexcept(FE_ALL_EXCEPT);
  PriorFit fit = fixture_fit(8, 0.8, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, D, 1, 1);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  for (int f = 0; f < 2; f++) {
    const Likelihood likelihood = {.ops = likelihood_find(families[f]), .noise = 1};
    for (int a = 0; a < SIZES; a += step)
      for (int b = 0; b < SIZES; b += step) {
        const double phi[3][D] = {{sizes[a], 0}, {sizes[a], -sizes[b]}, {0.5, sizes[b]}}, y[] = {1, 0, 1};
        History history;
        ASSERT(history_create(&memory, D, 1, &likelihood, &history) == STATUS_OK);
        CHECK_OK(history_reserve(&history, 3));
        for (int l = 0; l < 3; l++) history_record(&history, NULL, phi[l], &y[l]);
        for (int i = 0; sampler_method(i); i++) {
          const SamplerOps *method = sampler_method(i);
          if (sampler_misfit(method, &prior, &likelihood, sizeof sentence, sentence)) continue;
          CU_ASSERT(seconds(method, &prior, &history) <= limit);
          runs++;
        }
      }
  }
  CU_ASSERT(runs > 0);
}

int main(void) {
  CU_TestInfo tests[] = {{"every sampler ends, whatever the features", test_every_sampler_ends},
                         CU_TEST_INFO_NULL};
  return harness_run("features", tests);
}
