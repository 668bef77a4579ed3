/* Noise schedule and reverse chain against closed forms: products of Gaussians, and the exact chain of N(0,
 * I). */
#include "core/arena.h"
#include "harness.h"

#include "model/denoiser/denoiser_chain.h"

#include <stdio.h>
#include <string.h>

static void test_schedule(void) {
  SCRATCH_ARENA(memory);
  Schedule schedule;
  CHECK_OK(schedule_create(&memory, &(ScheduleRule){.stages = 100, .alpha = 0.97}, &schedule));
  CHECK_NEAR(schedule.alpha_bar[100], pow(0.97, 100), 1e-15);
  CU_ASSERT_EQUAL(schedule.alpha_bar[0], 1);
  CU_ASSERT_EQUAL(schedule.beta_tilde[1], 0);
  for (int t = 2; t <= 100;
       t++) { /* product of N(s_t / sqrt(alpha), beta / alpha) and the variance 1 - alpha_bar_{t-1} */
    double precision = schedule.alpha[t] / schedule.beta[t] + 1 / (1 - schedule.alpha_bar[t - 1]);
    CHECK_NEAR(schedule.beta_tilde[t], 1 / precision, 1e-14);
  }
  CU_ASSERT_EQUAL(schedule_variance(&schedule, 1, LAST_STAGE_LITERAL), 0);
  CU_ASSERT_EQUAL(schedule_variance(&schedule, 1, LAST_STAGE_REPAIRED), schedule.beta_tilde[2]);
  CU_ASSERT_EQUAL(schedule_variance(&schedule, 50, LAST_STAGE_REPAIRED), schedule.beta_tilde[50]);
  CHECK_OK(schedule_create(&memory, &(ScheduleRule){.stages = 1, .alpha = 0.97}, &schedule));
  CHECK_NEAR(schedule_variance(&schedule, 1, LAST_STAGE_REPAIRED), 0.03, 1e-15);
  CHECK_FAILS(schedule_create(&memory, &(ScheduleRule){.stages = 3, .alpha = 1.5}, &schedule), STATUS_INPUT,
              "between 0 and 1");
  CHECK_FAILS(schedule_create(&memory, &(ScheduleRule){.stages = 0, .alpha = 0.97}, &schedule), STATUS_INPUT,
              "at least 1 stage");
}

static void test_keep_signal(void) {
  SCRATCH_ARENA(memory);
  for (int i = 0, stages[] = {1, 5, 10, 25, 300}; i < 5; i++) {
    Schedule schedule;
    CHECK_OK(schedule_create(
        &memory, &(ScheduleRule){.stages = stages[i], .alpha = 0.97, .keep_signal = true}, &schedule));
    CHECK_NEAR(schedule.alpha_bar[stages[i]], pow(0.97, 100), 1e-13);
  }
}

/* Checks that the logarithm of r_t = alpha_bar_t / (1 - alpha_bar_t) rises in equal steps; a single stage has
 * the last ratio. */
static void test_log_snr(void) {
  SCRATCH_ARENA(memory);
  for (int i = 0, stages[] = {1, 2, 7, 300}; i < 4; i++) {
    const int T = stages[i];
    Schedule schedule;
    CHECK_OK(schedule_create(
        &memory,
        &(ScheduleRule){.stages = T, .log_snr = true, .alpha = 7, .first_snr = 200, .last_snr = 0.05},
        &schedule));
    for (int t = 1; t <= T; t++) {
      const double ratio = schedule.alpha_bar[t] / (1 - schedule.alpha_bar[t]),
                   even = T == 1 ? log(0.05) : (log(200) * (T - t) + log(0.05) * (t - 1)) / (T - 1);
      CHECK_NEAR(log(ratio), even, 1e-10);
    }
  }
}

static void test_log_snr_refusals(void) {
  SCRATCH_ARENA(memory);
  Schedule schedule;
  ScheduleRule rule = {.stages = 3, .log_snr = true, .first_snr = 0.05, .last_snr = 0.05};
  CHECK_FAILS(schedule_create(&memory, &rule, &schedule), STATUS_INPUT, "first_snr 0.05 above last_snr 0.05");
  rule.first_snr = 200, rule.keep_signal = true;
  CHECK_FAILS(schedule_create(&memory, &rule, &schedule), STATUS_INPUT, "keep_signal needs a constant alpha");
  rule.keep_signal = false, rule.stages = 100000, rule.first_snr = 1e9, rule.last_snr = 1e9 - 1;
  CHECK_FAILS(schedule_create(&memory, &rule, &schedule), STATUS_INPUT, "between 0 and 1"); /* no step left */
}

/* Checks that the description of a fitted prior contains the numbers that its schedule uses, and no
 * others. */
static void test_description(void) {
  const ScheduleRule base = {.stages = 9, .alpha = 0.97, .first_snr = 200, .last_snr = 0.05};
  for (int log_snr = 0; log_snr <= 1; log_snr++) {
    ScheduleRule rules[] = {base, base, base, base, base};
    const bool differs[] = {false, true, !log_snr, log_snr, log_snr};
    rules[1].stages = 8, rules[2].alpha = 0.9, rules[3].first_snr = 100, rules[4].last_snr = 1;
    char text[5][100] = {{0}};
    for (int i = 0; i < 5; i++) {
      FILE *out = fmemopen(text[i], sizeof text[i], "w");
      rules[i].log_snr = log_snr;
      schedule_describe(&rules[i], out);
      fclose(out);
      CU_ASSERT_EQUAL(strcmp(text[0], text[i]) != 0, differs[i]);
    }
  }
}

/* Checks that the mean of q(s_{t-1} | s_t, s_0) at the s_0 that the noise implies (Ho et al. 2020, equation
 * 7) is mu_t. */
static void test_mean_factors(void) {
  SCRATCH_ARENA(memory);
  Schedule c;
  CHECK_OK(schedule_create(&memory, &(ScheduleRule){.stages = 100, .alpha = 0.97}, &c));
  for (int t = 1; t <= 100; t++) {
    double s = 1.3, eps = -0.4, of_state, of_noise;
    double s0 = (s - sqrt(1 - c.alpha_bar[t]) * eps) / sqrt(c.alpha_bar[t]);
    double mean = sqrt(c.alpha_bar[t - 1]) * c.beta[t] / (1 - c.alpha_bar[t]) * s0 +
                  sqrt(c.alpha[t]) * (1 - c.alpha_bar[t - 1]) / (1 - c.alpha_bar[t]) * s;
    schedule_mean_factors(&c, t, &of_state, &of_noise);
    CHECK_NEAR(of_state * s + of_noise * eps, mean, 1e-13);
  }
}

/* Computes the exact noise for data N(0, I): E[eps | s] = sqrt(1 - alpha_bar) s. */
static void gaussian_noise(const Chain *chain, int t, int lanes, const double *s, double *eps) {
  for (int i = 0; i < chain->d * lanes; i++) eps[i] = sqrt(1 - chain->schedule.alpha_bar[t]) * s[i];
}

static void runaway_noise(const Chain *chain, int t, int lanes, const double *s, double *eps) {
  (void)t;
  for (int i = 0; i < chain->d * lanes; i++) eps[i] = -1e6 * s[i];
}

enum { CHAIN_D = 3, CHAIN_LANES = 100 };

static Chain gaussian_chain(Arena *memory, int stages, LastStage last_stage) {
  Chain chain;
  CHECK_OK(denoiser_chain_create(memory, &chain, CHAIN_D, &(ScheduleRule){.stages = stages, .alpha = 0.9},
                                 last_stage));
  chain.noise = gaussian_noise;
  chain.shift[1] = -4, chain.scale[1] = 0.5;
  return chain;
}

/* Checks each lane alone, with its own stream. d is odd, so the number of calls is part of the contract. */
static void test_chain_stream(void) {
  SCRATCH_ARENA(memory);
  for (int last = LAST_STAGE_REPAIRED; last <= LAST_STAGE_LITERAL; last++) {
    Chain chain = gaussian_chain(&memory, 20, (LastStage)last);
    double theta[CHAIN_D * CHAIN_LANES], scratch[2 * CHAIN_D * CHAIN_LANES];
    RngLanes lanes = {.key = rng_key(3, RNG_TEST),
                      .run = 5,
                      .draws = 7,
                      .round = 2,
                      .first_lane = 11,
                      .lanes = CHAIN_LANES};
    denoiser_chain_sample(&chain, &lanes, theta, scratch);
    for (int n = 0; n < CHAIN_LANES; n++) {
      Rng rng = {lanes.key, 5 + (11 + (uint32_t)n) / 7, 2, (11 + (uint32_t)n) % 7, 0};
      double s[CHAIN_D], z[CHAIN_D];
      rng_normal(&rng, CHAIN_D, s);
      for (int t = 20; t >= 1; t--) {
        rng_normal(&rng, CHAIN_D, z);
        double variance = t > 1                        ? chain.schedule.beta_tilde[t]
                          : last == LAST_STAGE_LITERAL ? 0
                                                       : chain.schedule.beta_tilde[2];
        for (int i = 0; i < CHAIN_D; i++)
          s[i] = sqrt(0.9) * s[i] + sqrt(variance) * z[i]; /* mu_t of the Gaussian chain */
      }
      CHECK_NEAR(theta[n], s[0], 1e-12);
      CHECK_NEAR(theta[CHAIN_LANES + n], -4 + 0.5 * s[1], 1e-12);
      CU_ASSERT_EQUAL(rng.position, lanes.position);
    }
  }
}

static void test_chain_guard(void) {
  SCRATCH_ARENA(memory);
  Chain chain = gaussian_chain(&memory, 30, LAST_STAGE_REPAIRED);
  double theta[CHAIN_D * CHAIN_LANES], scratch[2 * CHAIN_D * CHAIN_LANES];
  RngLanes lanes = {.key = rng_key(3, RNG_TEST), .draws = 1, .lanes = CHAIN_LANES};
  chain.noise = runaway_noise;
  denoiser_chain_sample(&chain, &lanes, theta, scratch);
  for (int n = 0; n < CHAIN_LANES; n++) CHECK_NEAR(fabs(theta[n]), CHAIN_GUARD, 0);
}

int main(void) {
  CU_TestInfo tests[] = {{"schedule", test_schedule},
                         {"keep_signal", test_keep_signal},
                         {"stages even in the logarithm of the signal-to-noise ratio", test_log_snr},
                         {"refused signal-to-noise ratios", test_log_snr_refusals},
                         {"description", test_description},
                         {"mean of the reverse step", test_mean_factors},
                         {"streams of an unconditional sample", test_chain_stream},
                         {"guard", test_chain_guard},
                         CU_TEST_INFO_NULL};
  return harness_run("chain", tests);
}
