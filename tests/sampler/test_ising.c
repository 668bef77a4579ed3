/* The uniform prior on the hypercube: its chain against the two-point mixtures that its coordinates are, and
 * tilted transport on it against the enumeration of all corners. */
#include "core/arena.h"

#include "sampler/methods.h"
#include "sampler_fixture.h"

enum { D = 5, CORNERS = 1 << D, MANY = 8000 };

static Prior make(Arena *memory, int d, int stages, double alpha) {
  PriorFit fit = fixture_fit(stages, alpha, LAST_STAGE_REPAIRED);
  Prior prior;
  CHECK_OK(prior_ising(memory, d, &fit, &prior));
  return prior;
}

static void test_samples(void) {
  SCRATCH_ARENA(memory);
  Prior prior = make(&memory, D, 10, 0.8);
  RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = 1, .lanes = MANY};
  double *theta = fixture_new(D * MANY, sizeof *theta);
  prior.ops->sample(&prior, &rng, theta);
  for (int i = 0; i < D; i++)
    for (int j = 0; j < D; j++) {
      double sum = 0, product = 0;
      for (int n = 0; n < MANY; n++) {
        CU_ASSERT(fabs(theta[i * MANY + n]) == 1);
        sum += theta[i * MANY + n], product += theta[i * MANY + n] * theta[j * MANY + n];
      }
      CHECK_NEAR(sum / MANY, 0, 5 / sqrt(MANY));
      CHECK_NEAR(product / MANY, i == j, 5 / sqrt(MANY));
    }
  free(theta);
}

/* Computes the log of 1/2 N(s; root, noise) + 1/2 N(s; -root, noise), by its definition. */
static double log_coordinate(double alpha_bar, double s) {
  double root = sqrt(alpha_bar), noise = 1 - alpha_bar;
  return log(exp(-(s - root) * (s - root) / (2 * noise)) + exp(-(s + root) * (s + root) / (2 * noise)));
}

/* Checks density, score, noise and Jacobian at one point, by differences of the definition (error about
 * 1e-9). */
static void test_chain(void) {
  SCRATCH_ARENA(memory);
  const int stages[] = {1, 10, 60};
  Prior prior = make(&memory, 2, 60, 0.95);
  const Chain *chain = prior.chain;
  CU_ASSERT_EQUAL(chain->density_from, 1);
  for (int k = 0; k < 3; k++)
    for (double x = -1.6; x < 1.7; x += 0.4) {
      const double alpha_bar = chain->schedule.alpha_bar[stages[k]], step = 1e-4, noise = sqrt(1 - alpha_bar);
      const double s[4] = {x, 0.3, 0.7, -0.1}, v[4] = {1, 0, 2, 3};
      double density[2], score[4], eps[4], jacobian[8], pulled[4];
      chain->density(chain, stages[k], 2, s, density, score);
      chain->noise_jacobian(chain, stages[k], 2, s, eps, jacobian);
      chain->noise_vjp(chain, stages[k], 2, s, v, pulled);
      CHECK_NEAR(density[0] - density[1],
                 log_coordinate(alpha_bar, s[0]) + log_coordinate(alpha_bar, s[2]) -
                     log_coordinate(alpha_bar, s[1]) - log_coordinate(alpha_bar, s[3]),
                 1e-10);
      for (int i = 0; i < 4; i++) {
        double up = log_coordinate(alpha_bar, s[i] + step), here = log_coordinate(alpha_bar, s[i]),
               down = log_coordinate(alpha_bar, s[i] - step);
        double curvature = (up - 2 * here + down) / (step * step);
        CHECK_NEAR(score[i], (up - down) / (2 * step), 1e-4);
        CHECK_NEAR(eps[i], -noise * score[i], 1e-12);
        CHECK_NEAR(jacobian[(i / 2 * 2 + i / 2) * 2 + i % 2], -noise * curvature,
                   1e-3 * (1 + fabs(noise * curvature)));
        CHECK_NEAR(jacobian[(i / 2 * 2 + 1 - i / 2) * 2 + i % 2], 0, 0);
        CHECK_NEAR(pulled[i], v[i] * jacobian[(i / 2 * 2 + i / 2) * 2 + i % 2], 1e-12);
      }
    }
}

/* Checks P(x = 1 | s) = 1 / (1 + exp(-2 e^-T s / (1 - e^-2T))). */
static void test_denoise(void) {
  SCRATCH_ARENA(memory);
  enum { POINTS = 1000 };
  Prior prior = make(&memory, 1, 20, 0.9);
  for (int t = 1; t <= 20; t += 9)
    for (double x = -2; x < 2.1; x += 0.5) {
      double s[POINTS], uniform[POINTS], out[POINTS], sum = 0, time = -0.5 * t * log(0.9);
      for (int n = 0; n < POINTS; n++) s[n] = x, uniform[n] = (n + 0.5) / POINTS;
      prior.chain->denoise(prior.chain, t, POINTS, s, uniform, out);
      for (int n = 0; n < POINTS; n++) sum += out[n] > 0;
      CHECK_NEAR(sum / POINTS, 1 / (1 + exp(-2 * exp(-time) * x / (1 - exp(-2 * time)))), 1.0 / POINTS);
    }
}

/* Computes mean and second moments of the posterior by enumeration. */
static void enumerate(const FixtureData *data, double *mean, double *second) {
  double total = 0;
  memset(mean, 0, D * sizeof *mean);
  memset(second, 0, D * D * sizeof *second);
  for (int corner = 0; corner < CORNERS; corner++) {
    double x[D], energy = 0;
    for (int i = 0; i < D; i++) x[i] = corner >> i & 1 ? 1 : -1;
    for (int l = 0; l < data->n; l++) {
      double error = data->y[l];
      for (int i = 0; i < D; i++) error -= data->phi[l][i] * x[i];
      energy += error * error / (2 * data->noise * data->noise);
    }
    total += exp(-energy);
    for (int i = 0; i < D; i++) {
      mean[i] += exp(-energy) * x[i];
      for (int j = 0; j < D; j++) second[i * D + j] += exp(-energy) * x[i] * x[j];
    }
  }
  for (int i = 0; i < D; i++) mean[i] /= total;
  for (int i = 0; i < D * D; i++) second[i] /= total;
}

/* Checks the posterior: the last step of tilted transport is exact, so only the draws' own error is left: 5
 * standard errors (of at most 1), 8 for a cloud with the same number of particles. */
static void test_posterior(void) {
  SCRATCH_ARENA(memory);
  static const struct {
    const SamplerOps *method;
    int set_count;
    const char *set[2];
    double deviations;
  } cases[] = {{&sampler_exact, 0, {NULL}, 5},
               {&sampler_tilted, 2, {"baseline=mala", "steps=200"}, 5},
               {&sampler_tilted, 2, {"baseline=exact", "steps=0"}, 5},
               {&sampler_tilted, 2, {"baseline=smc", "particles=8000"}, 8}};
  Prior prior = make(&memory, D, 100, 0.97);
  for (int n = 0; n <= 8; n += 4)
    for (int k = 0; k < 4; k++) {
      const Likelihood likelihood = fixture_likelihood(3);
      History history = fixture_history(&memory, D, 1, 0, n, &likelihood);
      FixtureData data = fixture_data(D, n, 3, 0);
      double mean[D], second[D * D];
      double *theta =
          fixture_draw(cases[k].method, &prior, &history, 0, MANY, cases[k].set_count, cases[k].set, NULL);
      enumerate(&data, mean, second);
      for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) {
          double sum = 0, product = 0, deviations = cases[k].deviations;
          for (int m = 0; m < MANY; m++)
            sum += theta[i * MANY + m], product += theta[i * MANY + m] * theta[j * MANY + m];
          CHECK_NEAR(sum / MANY, mean[i], deviations / sqrt(MANY));
          CHECK_NEAR(product / MANY, second[i * D + j], deviations / sqrt(MANY));
        }
      free(theta);
    }
}

/* Checks every corner by the definition of its weight: a uniform number gives the corner at which the sum of
 * the probabilities, in the order of the corners' numbers, goes beyond it. */
static void test_hypercube(void) {
  SCRATCH_ARENA(memory);
  enum { GRID = 200000 };
  Prior prior = make(&memory, D, 10, 0.8);
  const Likelihood likelihood = fixture_likelihood(1);
  History history = fixture_history(&memory, D, 1, 3, 4, &likelihood);
  FixtureData data = fixture_data(D, 4, 1, 3);
  RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .round = 7, .draws = GRID, .lanes = GRID};
  double below[CORNERS + 1] = {0}, *uniform = fixture_new(GRID, sizeof *uniform);
  double *theta = fixture_draw(&sampler_exact, &prior, &history, 0, GRID, 0, NULL, NULL);
  rng_lanes_uniform(&rng, 1, uniform);
  for (int corner = 0; corner < CORNERS; corner++) {
    double energy = 0;
    for (int l = 0; l < data.n; l++) {
      double error = data.y[l];
      for (int i = 0; i < D; i++) error -= data.phi[l][i] * (corner >> i & 1 ? 1 : -1);
      energy += error * error / 2;
    }
    below[corner + 1] = below[corner] + exp(-energy);
  }
  for (int k = 0; k < GRID; k++) {
    const double place = uniform[k] * below[CORNERS], rounding = 1e-12 * below[CORNERS];
    int corner = 0;
    for (int i = 0; i < D; i++) corner += (theta[i * GRID + k] > 0) << i;
    CU_ASSERT(below[corner] <= place + rounding && place <= below[corner + 1] + rounding);
  }
  free(theta);
  free(uniform);
}

/* Checks that evidence beyond the first stage still ends on corners; here only the true corner remains. */
static void test_strong_evidence(void) {
  SCRATCH_ARENA(memory);
  Prior prior = make(&memory, D, 100, 0.97);
  const Likelihood likelihood = fixture_likelihood(0.01);
  History history;
  CHECK_OK(history_create(&memory, D, 1, &likelihood, &history));
  for (int i = 0; i < D; i++) {
    double phi[D] = {0}, y = i % 2 ? 1 : -1;
    phi[i] = 1;
    history_record(&history, NULL, phi, &y);
  }
  double *theta = fixture_draw(&sampler_tilted, &prior, &history, 0, 100, 0, NULL, NULL);
  for (int k = 0; k < D * 100; k++) CU_ASSERT(theta[k] == (k / 100 % 2 ? 1 : -1));
  free(theta);
}

/* Checks that every sampler that accepts the prior runs on it. */
static void test_every_sampler(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = fixture_likelihood(1.5);
  char sentence[256];
  int count = 0;
  Prior prior = make(&memory, D, 30, 0.9);
  History history = fixture_history(&memory, D, 2, 0, 6, &likelihood);
  for (int k = 0; sampler_method(k); k++) {
    if (sampler_misfit(sampler_method(k), &prior, &likelihood, sizeof sentence, sentence)) continue;
    int64_t fallbacks[2];
    double *theta = fixture_draw(sampler_method(k), &prior, &history, 0, 20, 0, NULL, fallbacks);
    for (int i = 0; i < D * 40; i++) CU_ASSERT(isfinite(theta[i]));
    if (strcmp(sampler_method(k)->name, "dps") != 0) CU_ASSERT(fallbacks[0] == 0 && fallbacks[1] == 0);
    free(theta);
    count++;
  }
  CU_ASSERT(count >= 4);
}

int main(void) {
  CU_TestInfo tests[] = {{"samples", test_samples},
                         {"chain", test_chain},
                         {"clean samples given a state", test_denoise},
                         {"the probability of every corner", test_hypercube},
                         {"exact draws and tilted transport against enumeration", test_posterior},
                         {"strong evidence", test_strong_evidence},
                         {"every sampler", test_every_sampler},
                         CU_TEST_INFO_NULL};
  return harness_run("ising", tests);
}
