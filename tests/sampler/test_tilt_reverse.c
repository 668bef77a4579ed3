/* The reverse process of tilted transport: how fast its law approaches the prior as the stages get shorter.
 * Densities on the line are carried through the stages by quadrature, so there is no Monte Carlo error. */
#include "core/arena.h"
#include "sampler/tilted/tilt_reverse.h"
#include "sampler_fixture.h"

enum { CELLS = 640 };

static const double PI = 3.14159265358979323846, LOW = -8, STEP = 0.025,
                    END = 0.05; /* alpha_bar_T, whatever T */

static double place(int k) { return LOW + STEP * k; }

/* Computes the law of s_0 or s_t on the grid, by the definition s_t = sqrt(abar) s_0 + noise. */
static void law(const Mixture *mixture, double alpha_bar, double *density) {
  for (int k = 0; k < CELLS; k++) {
    density[k] = 0;
    for (int c = 0; c < mixture->components; c++) {
      double variance = alpha_bar * mixture->covariance[c] + 1 - alpha_bar;
      double away = place(k) - sqrt(alpha_bar) * mixture->mean[c];
      density[k] += mixture->weight[c] * exp(-away * away / (2 * variance)) / sqrt(2 * PI * variance);
    }
  }
}

/* Computes shift[CELLS] and scale[CELLS]: the stage moves place(k) to shift + scale z, z the standard
 * normal. */
static void kernel(TiltReverse *reverse, int t, double *shift, double *scale) {
  for (int from = 0; from < CELLS; from += CHUNK_LANES)
    for (int z = 0; z <= 1; z++) {
      for (int n = 0; n < CHUNK_LANES; n++) reverse->s[n] = place(from + n), reverse->normal[n] = z;
      tilt_reverse_stage(reverse, t, CHUNK_LANES);
      for (int n = 0; n < CHUNK_LANES; n++)
        if (z)
          scale[from + n] = reverse->s[n] - shift[from + n];
        else
          shift[from + n] = reverse->s[n];
    }
}

/* Carries the law through a stage; sums over the grid are exact to rounding while the scale is above 1.5
 * STEP. */
static void carry(TiltReverse *reverse, int t, double *density) {
  double shift[CELLS], scale[CELLS], after[CELLS] = {0};
  kernel(reverse, t, shift, scale);
  for (int i = 0; i < CELLS; i++) {
    CU_ASSERT(scale[i] > 1.5 * STEP);
    for (int k = 0; k < CELLS; k++) {
      double u = (place(k) - shift[i]) / scale[i];
      if (fabs(u) < 9) after[k] += density[i] * STEP * exp(-0.5 * u * u) / (scale[i] * sqrt(2 * PI));
    }
  }
  memcpy(density, after, sizeof after);
}

/* Computes the total variation between the prior and the end of the reverse process that starts from the law
 * of s_T. */
static double error_of(bool exponential, int components, int stages) {
  SCRATCH_ARENA(memory);
  PriorFit fit = fixture_fit(stages, pow(END, 1.0 / stages), LAST_STAGE_REPAIRED);
  const Likelihood likelihood = fixture_likelihood(1);
  Mixture mixture = fixture_mixture(&memory, 1, components, 1.5);
  TiltReverse reverse;
  double density[CELLS], prior[CELLS], sum = 0;
  fit.standardise = false;
  Prior exact = fixture_exact_prior(&memory, &mixture, &fit);
  SamplerSetup setup = {.prior = &exact, .likelihood = &likelihood, .runs = 1, .draws = 1};
  CHECK_OK(tilt_reverse_create(&memory, &setup, CHUNK_LANES, exponential, &reverse));
  law(&mixture, END, density);
  for (int t = stages; t >= 1; t--) carry(&reverse, t, density);
  law(&mixture, 1, prior);
  for (int k = 0; k < CELLS; k++) sum += fabs(density[k] - prior[k]) * STEP / 2;
  return sum;
}

/* Checks that for a Gaussian prior, which has Gaussian stages, `moments` makes no error except rounding. */
static void test_gaussian(void) {
  for (int stages = 1; stages <= 16; stages *= 4) CHECK_NEAR(error_of(false, 1, stages), 0, 1e-13);
}

/* Checks the order: halving the stages divides the error by 2 to the order, from which the next order
 * deviates by less than the tolerance here. */
static void check_order(bool exponential, double factor, double tolerance) {
  for (int components = exponential ? 1 : 2; components <= 3; components++) {
    double error[3];
    for (int k = 0; k < 3; k++) error[k] = error_of(exponential, components, 32 << k);
    CHECK_NEAR(error[0] / error[1], factor, 2 * tolerance);
    CHECK_NEAR(error[1] / error[2], factor, tolerance);
  }
}

static void test_orders(void) {
  check_order(true, 2, 0.05);
  check_order(false, 4, 0.4);
}

int main(void) {
  CU_TestInfo tests[] = {{"moments of a Gaussian prior", test_gaussian},
                         {"first order of the exponential integrator, second of the moments", test_orders},
                         CU_TEST_INFO_NULL};
  return harness_run("tilt_reverse", tests);
}
