/* smc, against a second implementation straight from its description, number by number; without perturbation
 * this is importance weighting of prior samples. Together with smc_tempered: runs do not depend on each
 * other, and nothing breaks when the cloud does. */
#include "catch_up_fixture.h"
#include "core/arena.h"

#include "core/linalg/linalg.h"

/* Appends row l of fixture_data with rewards that the likelihood admits, for runs first_run on. */
static void append_row(History *history, const Likelihood *likelihood, uint32_t first_run, int rows, int l) {
  double phi[FIXTURE_DIMENSION * 16], y[16];
  for (int run = 0; run < history->runs; run++) {
    FixtureData data = fixture_data(history->d, rows, likelihood->noise, first_run + (uint32_t)run);
    for (int i = 0; i < history->d; i++) phi[i * history->runs + run] = data.phi[l][i];
    y[run] = fixture_reward(likelihood, data.y[l]);
  }
  history_record(history, NULL, phi, y);
}

/* ---- smc */

enum { P = 150, ROWS = 4, D = 2 };

/* The cloud of one run and its last effective sample size, from the description in smc.c. */
typedef struct {
  double x[P][D], ess;
} Reference;

static RngKey observe_key(void) { return rng_key(FIXTURE_SEED, RNG_OBSERVE); }

static Reference reference_start(const Prior *prior, uint32_t run) {
  Reference out = {.ess = P};
  for (uint32_t j = 0; j < P; j++) {
    RngLanes rng = {.key = observe_key(), .run = run, .draws = j + 2, .first_lane = j, .lanes = 1};
    prior->ops->sample(prior, &rng, out.x[j]);
  }
  return out;
}

/* Absorbs rows from .. to - 1 together in round `to`. */
static void reference_absorb(Reference *cloud, const Likelihood *likelihood, const FixtureData *data,
                             uint32_t run, int from, int to, double step_size, double temper) {
  const double sigma = likelihood_is_conjugate(likelihood) ? likelihood->noise : 1;
  double weight[P], largest = -INFINITY, sum = 0, squares = 0, reached = 0, offset;
  Reference moved = *cloud;
  for (uint32_t j = 0; j < P; j++) {
    Rng rng = {.key = observe_key(), .run = run, .round = (uint32_t)to, .draw = j};
    double z[D];
    rng_normal(&rng, D, z);
    weight[j] = 0;
    for (int i = 0; i < D; i++) moved.x[j][i] += step_size * sigma / sqrt(to) * z[i];
    for (int l = from; l < to; l++) {
      double u = 0, y = fixture_reward(likelihood, data->y[l]);
      for (int i = 0; i < D; i++) u += data->phi[l][i] * moved.x[j][i];
      weight[j] += temper * likelihood->ops->log_likelihood(likelihood, y, u);
    }
    largest = fmax(largest, weight[j]);
  }
  for (int j = 0; j < P; j++) sum += weight[j] = exp(weight[j] - largest);
  for (int j = 0; j < P; j++) weight[j] /= sum, squares += weight[j] * weight[j];
  cloud->ess = 1 / squares;
  Rng rng = {.key = rng_subkey(observe_key(), RNG_RESAMPLING), .run = run, .round = (uint32_t)to};
  rng_uniform(&rng, 1, &offset);
  for (int j = 0, m = 0; j < P; j++)
    for (reached += weight[j]; m < P && (m + offset) / P < reached; m++)
      memcpy(cloud->x[m], moved.x[j], sizeof moved.x[j]);
}

/* Checks to 1e-9 relative: the difference of evidence against the observation itself. The draw picks by its
 * uniform number. */
static void check_against_reference(const Sampler *sampler, const Reference *cloud, int run, int runs,
                                    int draws, const double *theta) {
  CHECK_NEAR(sampler->notes[run].ess, cloud->ess, 1e-9 * cloud->ess);
  for (int m = 0; m < draws; m++) {
    Rng rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST),
               .run = (uint32_t)run,
               .round = DRAW_ROUND,
               .draw = (uint32_t)m};
    double uniform;
    rng_uniform(&rng, 1, &uniform);
    for (int i = 0; i < D; i++)
      CHECK_NEAR(theta[i * runs * draws + run * draws + m], cloud->x[(int)(uniform * P)][i], 1e-12);
  }
}

/* Checks smc that is told row by row, or of all rows at once by the first draw. */
static void check_smc(const char *likelihood_name, const char *step_size, double temper, bool told) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 3, DRAWS = 60 };
  const Likelihood likelihood = {.ops = likelihood_find(likelihood_name), .noise = 0.6};
  const char *sets[] = {"particles=150", step_size, temper == 2 ? "temper=2" : "temper=1"};
  const double step = atof(strchr(step_size, '=') + 1);
  PriorFit fit = fixture_fit(5, 0.9, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, D, 2, 1);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  Reference clouds[RUNS];
  History history;
  double theta[D * RUNS * DRAWS];
  FixtureSampler smc = make_sampler(&memory, "smc", &prior, &likelihood, 0, RUNS, DRAWS, 3, sets);
  CHECK_OK(history_create(&memory, D, RUNS, &likelihood, &history));
  CHECK_OK(history_reserve(&history, ROWS));
  for (int run = 0; run < RUNS; run++) clouds[run] = reference_start(&prior, (uint32_t)run);
  for (int l = 0; l <= ROWS; l++) {
    if (told || l == 0 || l == ROWS) {
      draw_into(&smc, &history, DRAWS, theta);
      for (int run = 0; run < RUNS; run++) {
        FixtureData data = fixture_data(D, ROWS, likelihood.noise, (uint32_t)run);
        int from = told ? l - 1 : 0;
        if (l > 0) reference_absorb(&clouds[run], &likelihood, &data, (uint32_t)run, from, l, step, temper);
        check_against_reference(&smc.sampler, &clouds[run], run, RUNS, DRAWS, theta);
      }
    }
    if (l == ROWS) break;
    append_row(&history, &likelihood, 0, ROWS, l);
    if (told) sampler_observe(&smc.sampler, &history, smc.fallbacks);
  }
  for (int run = 0; run < RUNS; run++) CU_ASSERT_EQUAL(smc.fallbacks[run], 0);
  free_sampler(&smc);
}

static void test_smc_without_perturbation_is_importance_weighting(void) {
  for (int i = 0; likelihood_family(i); i++) {
    check_smc(likelihood_name(i), "step_size=0", 1, true);
    check_smc(likelihood_name(i), "step_size=0", 1, false);
  }
}

static void test_smc_with_perturbation(void) {
  for (int i = 0; likelihood_family(i); i++) {
    check_smc(likelihood_name(i), "step_size=0.2", 1, true);
    check_smc(likelihood_name(i), "step_size=0.5", 2, true);
    check_smc(likelihood_name(i), "step_size=0.5", 2, false);
  }
}

/* Checks that a history that is shorter than what has been seen counts as another one. */
static void test_smc_starts_afresh(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 50 };
  const Likelihood likelihood = fixture_likelihood(0.5);
  PriorFit fit = fixture_fit(5, 0.9, LAST_STAGE_REPAIRED);
  Prior prior;
  double used[D * DRAWS], fresh[D * DRAWS];
  CHECK_OK(prior_standard(&memory, D, &fit, &prior));
  History three = fixture_history(&memory, D, 1, 0, 3, &likelihood),
          two = fixture_history(&memory, D, 1, 0, 2, &likelihood);
  FixtureSampler first = make_sampler(&memory, "smc", &prior, &likelihood, 0, 1, DRAWS, 0, NULL);
  FixtureSampler second = make_sampler(&memory, "smc", &prior, &likelihood, 0, 1, DRAWS, 0, NULL);
  draw_into(&first, &three, DRAWS, used);
  draw_into(&first, &two, DRAWS, used);
  draw_into(&second, &two, DRAWS, fresh);
  CU_ASSERT(memcmp(used, fresh, sizeof used) == 0);
  free_sampler(&first);
  free_sampler(&second);
}

/* Checks a block of runs, told round by round and drawn from in between, against each run alone, byte by
 * byte. */
static void check_blocks(const char *name, const char *likelihood_name) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 3, DRAWS = 7, FIRST = 5 };
  const Likelihood likelihood = {.ops = likelihood_find(likelihood_name), .noise = 0.7};
  const char *particles = "particles=99";
  PriorFit fit = fixture_fit(5, 0.9, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, D, 2, 1);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  double block[D * RUNS * DRAWS], alone[D * DRAWS], ess[RUNS];
  for (int k = -1; k < RUNS; k++) {
    const int runs = k < 0 ? RUNS : 1, first = FIRST + (k < 0 ? 0 : k);
    double *theta = k < 0 ? block : alone;
    History history;
    CHECK_OK(history_create(&memory, D, runs, &likelihood, &history));
    CHECK_OK(history_reserve(&history, ROWS));
    FixtureSampler told =
        make_sampler(&memory, name, &prior, &likelihood, (uint32_t)first, runs, DRAWS, 1, &particles);
    for (int l = 0; l < ROWS; l++) {
      append_row(&history, &likelihood, (uint32_t)first, ROWS, l);
      sampler_observe(&told.sampler, &history, told.fallbacks);
      draw_into(&told, &history, DRAWS, theta);
    }
    if (k < 0)
      for (int b = 0; b < RUNS; b++) ess[b] = told.sampler.notes[b].ess;
    else
      CU_ASSERT(told.sampler.notes[0].ess == ess[k]);
    free_sampler(&told);
    for (int i = 0; k >= 0 && i < D; i++)
      CU_ASSERT(memcmp(alone + i * DRAWS, block + (i * RUNS + k) * DRAWS, DRAWS * sizeof *alone) == 0);
  }
}

static void test_blocks(void) {
  for (int i = 0; likelihood_family(i); i++) {
    check_blocks("smc", likelihood_name(i));
    check_blocks("smc_tempered", likelihood_name(i));
  }
}

/* Checks evidence of standard deviation 1e-4, 1e4 times narrower than the prior: smc is left with one
 * particle, counted; smc_tempered arrives: mean and variance within 5 standard errors of 900 draws. */
static void test_narrow_evidence(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 20000 };
  const Likelihood likelihood = fixture_likelihood(1e-4);
  const double phi[4] = {1, 0, 0, 1}, y[2] = {0.7, -1.3};
  const char *particles = "particles=2000";
  PriorFit fit = fixture_fit(5, 0.9, LAST_STAGE_REPAIRED);
  Prior prior;
  History history;
  double *theta = fixture_new(2 * DRAWS, sizeof *theta);
  CHECK_OK(prior_standard(&memory, 2, &fit, &prior));
  CHECK_OK(history_create(&memory, 2, 1, &likelihood, &history));
  for (int l = 0; l < 2; l++) history_record(&history, NULL, phi + 2 * l, y + l);
  for (int k = 0; k < 2; k++) {
    FixtureSampler smc =
        make_sampler(&memory, k ? "smc_tempered" : "smc", &prior, &likelihood, 0, 1, DRAWS, 1, &particles);
    draw_into(&smc, &history, DRAWS, theta);
    CU_ASSERT_EQUAL(smc.fallbacks[0], k ? 0 : 1);
    for (int m = 0; m < 2 * DRAWS; m++) CU_ASSERT_FATAL(isfinite(theta[m]));
    if (k == 0) {
      CHECK_NEAR(smc.sampler.notes[0].ess, 1, 1e-6);
      for (int m = 1; m < DRAWS; m++) CU_ASSERT(theta[m] == theta[0]);
    } else {
      for (int i = 0; i < 2; i++) {
        double mean, variance;
        const double shrink = 1 / (1 + 1e-8);
        linalg_moments(1, DRAWS, theta + i * DRAWS, &mean, &variance);
        CHECK_NEAR(mean, y[i] * shrink, 5 * 1e-4 / sqrt(900));
        CHECK_NEAR(variance, 1e-8, 5 * 1e-8 * sqrt(2.0 / 900));
      }
    }
    free_sampler(&smc);
  }
  free(theta);
}

/* ---- a prior whose samples are not numbers in the second of two runs */

static void broken_prior_sample(const Prior *prior, RngLanes *rng, double *theta) {
  rng_lanes_normal(rng, prior->d, theta);
  const uint32_t run = rng->run + rng->first_lane / rng->draws;
  for (uint32_t k = 0; run == 1 && k < (uint32_t)prior->d * rng->lanes; k++) theta[k] = NAN;
}

static void broken_density(const Prior *prior, int lanes, const double *theta, double *out) {
  (void)prior;
  for (int n = 0; n < lanes; n++) out[n] = -theta[n] * theta[n];
}

static void test_no_particle_left(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 2, DRAWS = 20 };
  const PriorOps ops = {.name = "broken", .sample = broken_prior_sample, .log_density = broken_density};
  const Prior prior = {.ops = &ops, .d = 2};
  const Likelihood likelihood = fixture_likelihood(1);
  History history = fixture_history(&memory, 2, RUNS, 0, 3, &likelihood);
  for (int k = 0; k < 2; k++) {
    double theta[2 * RUNS * DRAWS];
    FixtureSampler smc =
        make_sampler(&memory, k ? "smc_tempered" : "smc", &prior, &likelihood, 0, RUNS, DRAWS, 0, NULL);
    draw_into(&smc, &history, DRAWS, theta);
    CU_ASSERT_EQUAL(smc.fallbacks[0], 0);
    CU_ASSERT_EQUAL(smc.fallbacks[1], 1 + DRAWS); /* the cloud, and each draw when it is replaced */
    free_sampler(&smc);
    for (int m = 0; m < 2 * RUNS * DRAWS; m++) CU_ASSERT(isfinite(theta[m]));
  }
}

int main(void) {
  CU_TestInfo tests[] = {{"smc without perturbation is importance weighting",
                          test_smc_without_perturbation_is_importance_weighting},
                         {"smc with perturbation", test_smc_with_perturbation},
                         {"smc starts afresh with another history", test_smc_starts_afresh},
                         {"runs do not depend on each other", test_blocks},
                         {"narrow evidence", test_narrow_evidence},
                         {"no particle left", test_no_particle_left},
                         CU_TEST_INFO_NULL};
  return harness_run("smc", tests);
}
