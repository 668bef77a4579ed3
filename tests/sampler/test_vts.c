/* VTS: the mean-field solution of a Gaussian target; the bound, which never falls, is below the log evidence
 * by brute force, and is greatest where the steps end; runs side by side, draws, extreme data. */
#include "catch_up_fixture.h"
#include "core/arena.h"
#include "glm_fixture.h"

#include "levels.h"
#include "model/mixture/mixture_density.h"
#include "sampler/gradient/vts_ascent.h"

DECLARE_LEVELS(vts_ascend);

enum { MOST = 4 };

/* A bound over one run's history, and q as the sampler would start it. */
typedef struct {
  Config *options;
  Potential potential;
  VtsAscent ascent;
  VtsMixture q;
  Real weight[MOST], mean[MOST * D_MOST], variance[MOST * D_MOST];
} Case;

static void case_create(Arena *memory, Case *self, const Prior *prior, const History *history, int components,
                        uint32_t start) {
  Rng rng = fixture_rng(start, 6000);
  memset(self, 0, sizeof *self);
  CHECK_OK(config_options(memory, "test", sampler_keys(sampler_find("vts")), 0, NULL, &self->options));
  SamplerSetup setup = {.prior = prior,
                        .likelihood = history->likelihood,
                        .runs = 1,
                        .draws = 1,
                        .seed = FIXTURE_SEED,
                        .options = self->options};
  CHECK_OK(potential_create(memory, &setup, 1, &self->potential));
  potential_at(&self->potential, &(HistoryView){history, 1, 0, 1, NULL, NULL});
  CHECK_OK(vts_ascent_create(memory, &self->potential, components, &self->ascent));
  self->q = (VtsMixture){self->weight, self->mean, self->variance};
  double mean[MOST * D_MOST];
  rng_normal(&rng, components * prior->d, mean);
  for (int m = 0; m < components; m++) self->weight[m] = real_of(1.0 / components);
  for (int i = 0; i < components * prior->d; i++)
    self->mean[i] = real_of(mean[i]), self->variance[i] = real_of(1);
}

/* Takes steps; returns F after them. */
static double ascend(Case *self, int steps) {
  int64_t fallbacks = 0;
  vts_ascend(&self->ascent, &self->q, 0, steps, -INFINITY, &fallbacks);
  CU_ASSERT_EQUAL(fallbacks, 0);
  return self->ascent.value[0];
}
static double bound_at(Case *self) { return ascend(self, 0); }

static Prior standard_prior(Arena *memory, int d) {
  Prior prior;
  PriorFit chain = {.schedule.stages = 2, .schedule.alpha = 0.9};
  CHECK_OK(prior_standard(memory, d, &chain, &prior));
  return prior;
}

/* Returns 0.7 N(2, S) + 0.3 N(-2, 1/2 I) with S_ij = 0.6^|i - j|, along all coordinates. */
static Prior two_modes(Arena *memory, int d) {
  Prior prior;
  Mixture mixture;
  PriorFit chain = {.schedule.stages = 2, .schedule.alpha = 0.9};
  CHECK_OK(mixture_create(memory, d, 2, &mixture));
  mixture.weight[0] = 0.7, mixture.weight[1] = 0.3;
  for (int i = 0; i < d; i++) {
    mixture.mean[i] = 2, mixture.mean[d + i] = -2;
    for (int j = 0; j < d; j++) {
      mixture.covariance[i * d + j] = pow(0.6, abs(i - j));
      mixture.covariance[d * d + i * d + j] = i == j ? 0.5 : 0;
    }
  }
  CHECK_OK(mixture_prepare(&mixture));
  CHECK_OK(prior_from_mixture(memory, &mixture, &chain, &prior));
  return prior;
}

/* Checks one component with Gaussian prior and rewards: it arrives in the first step, from anywhere. */
static void test_mean_field(void) {
  SCRATCH_ARENA(memory);
  enum { DIM = 4 };
  Likelihood likelihood = fixture_likelihood(0.7);
  Prior prior = standard_prior(&memory, DIM);
  for (uint32_t start = 0; start < 5; start++) {
    History history = fixture_history(&memory, DIM, 1, start, 6, &likelihood);
    Case self;
    double precision[DIM * DIM], covariance[DIM * DIM], mean[DIM];
    case_create(&memory, &self, &prior, &history, 1, start);
    linear_target(&history, 0, 1 / (0.7 * 0.7), 0.7 * 0.7, precision, covariance, mean);
    ascend(&self, 1);
    for (int i = 0; i < DIM; i++) {
      CHECK_NEAR(self.mean[i][0], mean[i], 1e-12 * (1 + fabs(mean[i])));
      CHECK_NEAR(self.variance[i][0], 1 / precision[i * DIM + i], 1e-12);
    }
    CHECK_NEAR(self.weight[0][0], 1, 0);
  }
}

/* Checks that the bound never falls, and that its value is what the steps report. At the end no small change
 * of a parameter raises it. */
static void check_ascent(const Prior *prior, const History *history, int components, uint32_t start) {
  SCRATCH_ARENA(memory);
  enum { STEPS = 150 };
  Case self;
  case_create(&memory, &self, prior, history, components, start);
  double value = bound_at(&self);
  for (int k = 0; k < STEPS; k++) {
    const double said = ascend(&self, 1);
    const double after = bound_at(&self);
    CHECK_NEAR(said, after, 1e-9 * (1 + fabs(after)));
    CU_ASSERT_TRUE(after >= value - 1e-11 * (1 + fabs(value))); /* rounding of two sums */
    value = after;
  }
  for (int p = 0; p < components * prior->d; p++)
    for (int sign = -1; sign <= 1; sign += 2) {
      const Real mean = self.mean[p], variance = self.variance[p];
      self.mean[p] += sign * 0.01 * sqrt(variance[0]);
      CU_ASSERT_TRUE(bound_at(&self) <= value + 1e-7 * (1 + fabs(value)));
      self.mean[p] = mean, self.variance[p] *= 1 + sign * 0.01;
      CU_ASSERT_TRUE(bound_at(&self) <= value + 1e-7 * (1 + fabs(value)));
      self.variance[p] = variance;
    }
  for (int m = 0; m < components; m++)
    for (int sign = -1; sign <= 1; sign += 2) {
      const Real move = sign * 0.01 * self.weight[m];
      Real weight[MOST], sum = {0};
      memcpy(weight, self.weight, sizeof weight);
      self.weight[m] += move;
      for (int k = 0; k < components; k++) sum += self.weight[k];
      for (int k = 0; k < components; k++) self.weight[k] /= sum;
      CU_ASSERT_TRUE(bound_at(&self) <= value + 1e-7 * (1 + fabs(value)));
      memcpy(self.weight, weight, sizeof weight);
    }
}

static void test_ascent(void) {
  SCRATCH_ARENA(memory);
  static const char *const names[] = {"gaussian", "logistic", "poisson"};
  for (int f = 0; f < 3; f++)
    for (int modes = 1; modes <= 2; modes++) {
      Likelihood likelihood = glm(names[f]);
      Prior prior = modes == 1 ? standard_prior(&memory, 3) : two_modes(&memory, 3);
      for (int n = 0; n <= 20; n += 20) {
        Rows rows = make_rows(&likelihood, 3, n > 0 ? n : 1, 1.5, 0);
        History history = make_history(&memory, 1, &rows, &likelihood);
        if (n == 0) history_clear(&history);
        for (int components = 1; components <= MOST; components++)
          check_ascent(&prior, &history, components, 0);
      }
    }
}

/* Computes F of one run under the Gaussian target with this precision and vector, term by term. */
static double plain_bound(const Potential *potential, int run, int components, const Real *weight,
                          const Real *mean, const Real *variance) {
  const int d = potential->d, lanes = potential->view.lanes, n = run % VECTOR_LANES;
  double sum = 0;
  for (int m = 0; m < components; m++) {
    double energy = 0, density = 0;
    for (int i = 0; i < d; i++) {
      energy += potential->vector[i * lanes + run] * mean[m * d + i][n];
      energy -= 0.5 * potential->precision[i * (d + 1) * lanes + run] * variance[m * d + i][n];
      for (int j = 0; j < d; j++)
        energy -=
            0.5 * mean[m * d + i][n] * potential->precision[(i * d + j) * lanes + run] * mean[m * d + j][n];
    }
    for (int k = 0; k < components; k++) {
      double product = weight[k][n];
      for (int i = 0; i < d; i++) {
        const double total = variance[m * d + i][n] + variance[k * d + i][n];
        const double gap = mean[m * d + i][n] - mean[k * d + i][n];
        product *= exp(-0.5 * gap * gap / total) / sqrt(2 * M_PI * total);
      }
      density += product;
    }
    sum += weight[m][n] * (energy - log(density));
  }
  return sum;
}

/* q of several runs, in groups. */
enum { SIDE = 11, GROUPS = 2 };
typedef struct {
  Real weight[GROUPS * MOST], mean[GROUPS * MOST * D_MOST], variance[GROUPS * MOST * D_MOST];
} Side;

static VtsMixture side_group(Side *q, int d, int components, int run) {
  const int first = run / VECTOR_LANES * components;
  return (VtsMixture){q->weight + first, q->mean + first * d, q->variance + first * d};
}

/* Checks that run `run` of q has the same bits as lane `lane` of the first group of p. */
static void check_same(int rows, const Real *q, int run, const Real *p, int lane) {
  for (int k = 0; k < rows; k++)
    CU_ASSERT(q[run / VECTOR_LANES * rows + k][run % VECTOR_LANES] == p[k][lane]);
}

/* Checks runs side by side: the F that the steps report equals F, term by term; a run has the same bits
 * alone, and at the levels whose processors fuse products and sums. */
static void check_side(const Prior *prior, const History *history, int components, int steps) {
  SCRATCH_ARENA(memory);
  Case self;
  Side start, fitted, alone, plain;
  int64_t fallbacks[SIDE] = {0};
  case_create(&memory, &self, prior, history, components, 0);
  CHECK_OK(potential_create(&memory,
                            &(SamplerSetup){.prior = prior,
                                            .likelihood = history->likelihood,
                                            .runs = SIDE,
                                            .draws = 1,
                                            .options = self.options},
                            SIDE, &self.potential));
  const int d = prior->d, vector = components * d;
  Rng rng = fixture_rng((uint32_t)components, 7000);
  rng_normal(&rng, GROUPS * vector * VECTOR_LANES, (double *)start.mean);
  for (int i = 0; i < GROUPS * vector; i++) start.variance[i] = real_of(1 + 0.5 * (i % 3));
  for (int i = 0; i < GROUPS * components; i++) start.weight[i] = real_of(1.0 / components);
  potential_at(&self.potential, &(HistoryView){history, 1, 0, SIDE, NULL, NULL});
  fitted = plain = start;
  for (int run = 0; run < SIDE; run += VECTOR_LANES) {
    VtsMixture q = side_group(&fitted, d, components, run), p = side_group(&plain, d, components, run);
    vts_ascend(&self.ascent, &q, run, steps, 1e-9, fallbacks);
    for (int n = 0; n < VECTOR_LANES && run + n < SIDE; n++) {
      const double value = plain_bound(&self.potential, run + n, components, q.weight, q.mean, q.variance);
      CHECK_NEAR(self.ascent.value[n], value, 1e-11 * (1 + fabs(value)));
    }
    if (runnable_levels() == 3) {
      vts_ascend_v3(&self.ascent, &p, run, steps, 1e-9, fallbacks);
#ifndef SIMD_ONE_VERSION
      CU_ASSERT(memcmp(q.weight, p.weight, (size_t)components * sizeof(Real)) == 0);
      CU_ASSERT(memcmp(q.mean, p.mean, (size_t)vector * sizeof(Real)) == 0);
      CU_ASSERT(memcmp(q.variance, p.variance, (size_t)vector * sizeof(Real)) == 0);
#endif
    }
  }
  for (int run = 2; run < SIDE; run += 7) {
    alone = start;
    const VtsMixture from = side_group(&start, d, components, run);
    for (int k = 0; k < vector; k++) alone.mean[k][0] = from.mean[k][run % VECTOR_LANES];
    for (int k = 0; k < vector; k++) alone.variance[k][0] = from.variance[k][run % VECTOR_LANES];
    potential_at(&self.potential, &(HistoryView){history, 1, run, 1, NULL, NULL});
    vts_ascend(&self.ascent, &(VtsMixture){alone.weight, alone.mean, alone.variance}, run, steps, 1e-9,
               fallbacks);
    check_same(components, fitted.weight, run, alone.weight, 0);
    check_same(vector, fitted.mean, run, alone.mean, 0);
    check_same(vector, fitted.variance, run, alone.variance, 0);
  }
  for (int n = 0; n < SIDE; n++) CU_ASSERT_EQUAL(fallbacks[n], 0);
}

static void test_side_by_side(void) {
  SCRATCH_ARENA(memory);
  Likelihood likelihood = fixture_likelihood(0.7);
  for (int d = 1; d <= D_MOST; d++) {
    Prior prior = standard_prior(&memory, d);
    History history = fixture_history(&memory, d, SIDE, 20, 6, &likelihood);
    for (int components = 1; components <= MOST; components++)
      for (int steps = 1; steps <= 10; steps += 9) check_side(&prior, &history, components, steps);
  }
}

/* Checks in one dimension that F is at most the log of the integral of exp(-U), and not far below: the bounds
 * on entropy and prior cost (1 - log 2) / 2 for one component and log 2 or so where modes overlap. */
static void test_log_evidence(void) {
  SCRATCH_ARENA(memory);
  static const char *const names[] = {"logistic", "poisson"};
  Prior prior = two_modes(&memory, 1);
  for (int f = 0; f < 2; f++)
    for (uint32_t run = 0; run < 4; run++) {
      Likelihood likelihood = glm(names[f]);
      Rows rows = make_rows(&likelihood, 1, 1 + 3 * (int)run, 1, run);
      History history = make_history(&memory, 1, &rows, &likelihood);
      double integral = 0, best = -INFINITY;
      for (double theta = -12; theta < 12; theta += 0.001) {
        double log_density, sum;
        mixture_log_density(prior.mixture, 1, &theta, &log_density);
        sum = log_density;
        for (int l = 0; l < rows.n; l++) {
          double u = rows.phi[l][0] * theta, deviance;
          likelihood.ops->deviance(&likelihood, 1, &rows.y[l], &u, &deviance);
          sum -= 0.5 * deviance;
        }
        if (sum > -600) integral += 0.001 * exp(sum);
      }
      for (int components = 1; components <= MOST; components++) {
        Case self;
        case_create(&memory, &self, &prior, &history, components, run);
        for (int k = 0; k < 200; k++) {
          const double value = ascend(&self, 1);
          CU_ASSERT_TRUE(value <= log(integral) + 1e-6);
          best = fmax(best, value);
        }
      }
      CU_ASSERT_TRUE(best >= log(integral) - 1);
    }
}

/* Checks that draws of the sampler under a Gaussian target have the mean and the variances of the mean-field
 * solution. */
static void test_draws(void) {
  SCRATCH_ARENA(memory);
  enum { DIM = 3, DRAWS = 20000 };
  static const char *const sets[] = {"components=1"};
  Likelihood likelihood = fixture_likelihood(0.5);
  Prior prior = standard_prior(&memory, DIM);
  History history = fixture_history(&memory, DIM, 1, 3, 6, &likelihood);
  double precision[DIM * DIM], covariance[DIM * DIM], mean[DIM];
  FixtureSampler fixture = make_sampler(&memory, "vts", &prior, &likelihood, 0, 1, DRAWS, 1, sets);
  double *theta = draw_from(&fixture, &history, DRAWS);
  linear_target(&history, 0, 4, 0.25, precision, covariance, mean);
  for (int i = 0; i < DIM; i++) {
    const double variance = 1 / precision[i * DIM + i];
    double sum = 0, square = 0;
    for (int n = 0; n < DRAWS; n++) sum += theta[i * DRAWS + n] / DRAWS;
    for (int n = 0; n < DRAWS; n++) square += pow(theta[i * DRAWS + n] - sum, 2) / DRAWS;
    CHECK_NEAR(sum, mean[i], 5 * sqrt(variance / DRAWS)); /* five standard errors */
    CHECK_NEAR(square, variance, 5 * variance * sqrt(2.0 / DRAWS));
  }
  free(theta);
  free_sampler(&fixture);
}

/* Checks two far modes and no observation: with components started from the prior's samples, the mixture of
 * all runs' draws has both modes, while one component never has. */
static void test_modes(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 400 };
  static const char *const one[] = {"components=1"}, *const four[] = {"components=4", "steps=50"};
  Likelihood likelihood = fixture_likelihood(1);
  Prior prior = two_modes(&memory, 2);
  Rounds rounds = make_rounds(2, 0, RUNS, 1, false, &likelihood);
  History history = empty_history(&memory, &rounds, &likelihood);
  for (int k = 0; k < 2; k++) {
    FixtureSampler fixture =
        make_sampler(&memory, "vts", &prior, &likelihood, 0, RUNS, 1, k ? 2 : 1, k ? four : one);
    double *theta = draw_from(&fixture, &history, 1);
    int low = 0;
    for (int n = 0; n < RUNS; n++) low += theta[n] + theta[RUNS + n] < 0;
    if (k == 0) CU_ASSERT_TRUE(low == 0 || low == RUNS);
    /* 3 of 10 are below; all four starts in one mode with probability 0.7^4 + 0.3^4 = 0.25, when that mode
     * gets everything: the mean is still 0.3. Components of one mode share its weight; sd sqrt(0.3 0.7 / 400)
     * = 0.023. */
    if (k == 1) CHECK_NEAR(low / (double)RUNS, 0.3, 0.12);
    free(theta);
    free_sampler(&fixture);
  }
  free_rounds(&rounds);
}

/* Checks separable and huge data: finite draws, no fallbacks. */
static void test_extremes(void) {
  SCRATCH_ARENA(memory);
  static const char *const names[] = {"gaussian", "logistic", "poisson"};
  enum { DIM = 2, N = 40 };
  for (int f = 0; f < 3; f++)
    for (int modes = 1; modes <= 2; modes++)
      for (int size = 0; size < 3; size++) {
        const double length = size == 0 ? 0 : size == 1 ? 1e-3 : 30;
        Likelihood likelihood = {.ops = likelihood_find(names[f]), .noise = size == 2 ? 1e-3 : 1};
        Prior prior = modes == 1 ? standard_prior(&memory, DIM) : two_modes(&memory, DIM);
        History history;
        CHECK_OK(history_create(&memory, DIM, 1, &likelihood, &history));
        CHECK_OK(history_reserve(&history, N));
        FixtureSampler fixture = make_sampler(&memory, "vts", &prior, &likelihood, 0, 1, 1, 0, NULL);
        for (int l = 0; l < N; l++) {
          const double phi[DIM] = {length * (l % 3 - 1), length * (l % 2)};
          const double y = f == 2 ? (l % 3 == 2 ? 1000 : 0) : phi[0] + phi[1] > 0;
          history_record(&history, NULL, phi, &y);
          sampler_observe(&fixture.sampler, &history, fixture.fallbacks);
          double *theta = draw_from(&fixture, &history, 1);
          for (int i = 0; i < DIM; i++) CU_ASSERT_TRUE(isfinite(theta[i]));
          free(theta);
        }
        CU_ASSERT_EQUAL(fixture.fallbacks[0], 0);
        free_sampler(&fixture);
      }
}

int main(void) {
  CU_TestInfo tests[] = {{"the mean-field solution of a Gaussian target", test_mean_field},
                         {"the bound never falls and ends at its top", test_ascent},
                         {"the bound is below the log evidence", test_log_evidence},
                         {"runs side by side", test_side_by_side},
                         {"draws", test_draws},
                         {"modes", test_modes},
                         {"extreme data", test_extremes},
                         CU_TEST_INFO_NULL};
  return harness_run("vts", tests);
}
