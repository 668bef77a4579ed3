/* The library in several threads at once: each thread has the numbers that it has alone, and messages of its
 * own. Under ThreadSanitizer (tests/README.md) it also looks for accesses without an order. */
#include "harness.h"
#include "library/thompson.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { D = 2, THREADS = 8, ROUNDS = 100, DRAWS = 4, SAMPLES = 200, NUMBERS = ROUNDS * DRAWS * D };
static const char *const SAMPLERS[THREADS] = {"diffts", "dps",       "vits1", "joint",
                                              "tilted", "localised", "exact", "smc"};
static const char *const FIT = "stages=3,training_steps=20,hidden=[4]";

typedef struct {
  int number; /* of the thread */
  const thompson_prior *diffusion, *mixture; /* every thread's */
  const double *samples; /* [SAMPLES, D] */
  double theta[NUMBERS], own[D]; /* draws; a sample from a prior of its own */
  bool well;
} Work;

static bool has_own_sentence(const Work *self) {
  char name[20];
  thompson_posterior *nobody;
  snprintf(name, sizeof name, "nobody%d", self->number);
  return thompson_posterior_new(self->mixture, name, "gaussian", NULL, 1, &nobody) == THOMPSON_INPUT &&
         strstr(thompson_error(), name);
}

/* Fits, writes and reads a prior of its own, and samples from it; tells whether all went well. */
static bool use_own_prior(Work *self) {
  char path[40];
  thompson_prior *fitted, *prior = NULL;
  snprintf(path, sizeof path, "test_threads.%d.nc", self->number);
  bool well = !thompson_prior_from_theta(self->samples, SAMPLES, D, "diffusion", FIT, &fitted) &&
              !thompson_prior_save(fitted, path) && !thompson_prior_open(path, &prior) &&
              !thompson_prior_sample(prior, 1, 1, self->own);
  thompson_prior_close(fitted), thompson_prior_close(prior);
  remove(path);
  return well;
}

static bool use_shared_prior(Work *self) {
  /* Two threads have each prior at the same time, and use its reverse chain. */
  const thompson_prior *prior = self->number < 3 ? self->diffusion : self->mixture;
  thompson_posterior *posterior;
  bool well = !thompson_posterior_new(prior, SAMPLERS[self->number], "gaussian", "noise=0.5", 1, &posterior);
  for (int round = 0; well && round < ROUNDS; round++) {
    const double *x = self->samples + round * D, y = x[0] - x[1];
    well = !thompson_observe(posterior, 1, x, &y) &&
           !thompson_draw(posterior, DRAWS, self->theta + round * DRAWS * D) && has_own_sentence(self);
  }
  thompson_posterior_free(posterior);
  return well;
}

static void *work(void *argument) {
  Work *self = argument;
  self->well = use_shared_prior(self) && use_own_prior(self);
  return NULL;
}

static void test_as_alone(void) {
  const double weight[] = {0.25, 0.75}, mean[] = {-1, 2, 1, 0}, covariance[] = {1, 0, 0, 1, 2, 0.5, 0.5, 1};
  static double samples[SAMPLES * D];
  static Work alone[THREADS], together[THREADS];
  thompson_prior *diffusion, *mixture;
  pthread_t thread[THREADS];
  CHECK_OK(thompson_prior_from_mixture(2, D, weight, mean, covariance, &mixture));
  CHECK_OK(thompson_prior_sample(mixture, SAMPLES, 1, samples));
  CHECK_OK(thompson_prior_from_theta(samples, SAMPLES, D, "diffusion", FIT, &diffusion));
  for (int t = 0; t < THREADS; t++) {
    alone[t] = together[t] =
        (Work){.number = t, .diffusion = diffusion, .mixture = mixture, .samples = samples};
    work(&alone[t]);
  }
  for (int t = 0; t < THREADS; t++) pthread_create(&thread[t], NULL, work, &together[t]);
  for (int t = 0; t < THREADS; t++) {
    pthread_join(thread[t], NULL);
    CU_ASSERT(alone[t].well && together[t].well);
    CU_ASSERT(memcmp(alone[t].theta, together[t].theta, sizeof alone->theta) == 0);
    CU_ASSERT(memcmp(alone[t].own, together[t].own, sizeof alone->own) == 0);
  }
  thompson_prior_close(diffusion), thompson_prior_close(mixture);
}

int main(void) {
  CU_TestInfo tests[] = {{"as alone", test_as_alone}, CU_TEST_INFO_NULL};
  return harness_run("threads", tests);
}
