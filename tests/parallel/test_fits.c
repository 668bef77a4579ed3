/* Fits of priors that are stopped: what was complete before is not lost. */
#include "harness.h"

#include "parallel/priors/fits.h"

/* Stops once this share of the work is done, and counts the calls. */
typedef struct {
  double until, last;
  int calls;
} Stop;

static bool stop_tick(void *context, double fraction) {
  Stop *self = context;
  self->calls++;
  self->last = fraction;
  return fraction < self->until;
}

/* Checks two fits, a Gaussian in one part and a diffusion model in several: stopped later, the
 * first is complete and the same as without a stop, the second is not. */
static void test_stop(void) {
  SCRATCH_ARENA(memory);
  enum { D = 2, N = 200 };
  double theta[D * N];
  Rng rng = {.key = rng_key(1, RNG_TEST)};
  rng_normal(&rng, D * N, theta);
  const Samples samples = {.d = D, .n = N, .theta = theta};
  const FitSource source = {.samples = &samples};
  PriorFit fit;
  CHECK_OK(fit_of_options("test", 2, (const char *const[]){"stages=30", "training_steps=20"}, 1, &fit));
  prior_settle(prior_find("diffusion"), &fit, D);
  Fit fits[2] = {{.family = prior_find("gaussian"), .fit = &fit, .source = source},
                 {.family = prior_find("diffusion"), .fit = &fit, .source = source}};
  Stop stop = {.until = 0.6};
  Prior gaussian, whole;
  CU_ASSERT_EQUAL(fits_run(&memory, 2, fits, (Tick){stop_tick, &stop}), STATUS_STOPPED);
  CU_ASSERT_EQUAL(fits[0].done, fits[0].parts);
  CU_ASSERT(fits[1].done >= 1);
  CU_ASSERT(fits[1].done < fits[1].parts);
  CU_ASSERT(stop.last >= 0.6 && stop.last < 0.75);
  CU_ASSERT(stop.calls > 10); /* within parts too */
  CHECK_OK(fits_assemble(&memory, &fits[0], &gaussian));
  CHECK_OK(prior_fit(&memory, prior_find("gaussian"), &fit, &samples, &whole));
  for (int i = 0; i < D * D; i++)
    CU_ASSERT_EQUAL(gaussian.mixture->covariance[i], whole.mixture->covariance[i]);
}

int main(void) {
  CU_TestInfo tests[] = {{"a stop between and within parts", test_stop}, CU_TEST_INFO_NULL};
  parallel_begin();
  const int failed = harness_run("fits", tests);
  parallel_end(STATUS_OK);
  return failed;
}
