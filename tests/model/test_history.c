/* Likelihoods against finite differences; the evidence of a block of runs, and passes over its rows, against
 * sums over observations. */
#include "core/arena.h"
#include "harness.h"

#include "core/rng.h"
#include "levels.h"
#include "model/history/history_internal.h"
#include "model/history/history_passes.h"
#include "model/history/history_plain.h"

#include <stdlib.h>
#include <string.h>

/* Checks that slope and curvature are the derivatives of log_likelihood and that samples have mean g(u).
 * Walks the registry. */
static void test_likelihoods(void) {
  const LikelihoodOps *family;
  int count = 0;
  for (; (family = likelihood_family(count)); count++) {
    Likelihood likelihood = {.ops = family, .noise = 0.7};
    CU_ASSERT_PTR_EQUAL(likelihood_find(family->name), family);
    CU_ASSERT_STRING_EQUAL(likelihood_name(count), family->name);
    for (double u = -1.5; u <= 1.5; u += 0.5) {
      double y = 1, h = 1e-4;
      double low = family->log_likelihood(&likelihood, y, u - h),
             high = family->log_likelihood(&likelihood, y, u + h);
      double middle = family->log_likelihood(&likelihood, y, u);
      double slope, curvature;
      family->derivatives(&likelihood, 1, &y, &u, &slope, &curvature);
      CHECK_NEAR(slope, (high - low) / (2 * h), 1e-6);
      CHECK_NEAR(curvature, (high - 2 * middle + low) / (h * h), 1e-5);
      enum { N = 20000 };
      double uniform[2 * N], mean = 0, square = 0;
      Rng rng = {.key = rng_key(1, RNG_TEST), .run = (uint32_t)count};
      rng_uniform(&rng, N, uniform);
      rng_normal(&rng, N, uniform + N);
      for (int i = 0; i < N; i++) {
        double reward = family->sample(&likelihood, u, uniform[i], uniform[N + i]);
        mean += reward / N, square += reward * reward / N;
      }
      double expected;
      family->mean(&likelihood, 1, &u, &expected);
      CHECK_NEAR(mean, expected, 5 * sqrt((square - mean * mean) / N)); /* 5 standard errors */
    }
  }
  CU_ASSERT(count >= 1);
  CU_ASSERT_PTR_NULL(likelihood_find("gausian"));
  CU_ASSERT_PTR_NULL(likelihood_name(count));
}

/* Checks the normal density, at its peak and one standard deviation away. */
static void test_gaussian(void) {
  Likelihood likelihood = {.ops = likelihood_find("gaussian"), .noise = 2};
  CHECK_NEAR(likelihood.ops->log_likelihood(&likelihood, 3, 3), log(0.3989422804014327 / 2), 1e-15);
  CHECK_NEAR(likelihood.ops->log_likelihood(&likelihood, 5, 3), log(0.24197072451914337 / 2), 1e-15);
  CHECK_NEAR(likelihood.ops->sample(&likelihood, 1, 0.5, -1.5), -2, 1e-15);
  CU_ASSERT(likelihood_is_conjugate(&likelihood));
}

enum { D = 3, RUNS = 70, ROUNDS = 5, DRAWS = 3 };

typedef struct {
  History history;
  Likelihood likelihood;
  double phi[ROUNDS][D * RUNS], y[ROUNDS][RUNS];
} Case;

static void case_create(Arena *memory, Case *self) {
  self->likelihood = (Likelihood){.ops = likelihood_find("gaussian"), .noise = 0.5};
  CHECK_OK(history_create(memory, D, RUNS, &self->likelihood, &self->history));
  Rng rng = {.key = rng_key(2, RNG_TEST)};
  for (int t = 0; t < ROUNDS; t++) {
    rng_normal(&rng, D * RUNS, self->phi[t]);
    rng_normal(&rng, RUNS, self->y[t]);
    history_record(&self->history, NULL, self->phi[t], self->y[t]);
  }
}

static void test_append(void) {
  SCRATCH_ARENA(memory);
  Case self;
  case_create(&memory, &self);
  static const double zero[D] = {0};
  double lambda[D * D * RUNS], b[D * RUNS], residual[RUNS]; /* at theta = 0 the one of the rewards */
  const HistoryView view = {&self.history, 1, 0, RUNS, zero, NULL};
  CU_ASSERT_EQUAL(self.history.rounds, ROUNDS);
  history_evidence(&view, lambda, b);
  history_residual(&view, residual);
  for (int n = 0; n < RUNS; n++) {
    double squares = 0;
    for (int t = 0; t < ROUNDS; t++) squares += self.y[t][n] * self.y[t][n] / 0.25;
    CHECK_NEAR(residual[n], squares, 1e-12);
    double trace = 0;
    for (int i = 0; i < D; i++) {
      double vector = 0;
      for (int t = 0; t < ROUNDS; t++) vector += self.phi[t][i * RUNS + n] * self.y[t][n] / 0.25;
      CHECK_NEAR(b[i * RUNS + n], vector, 1e-12);
      for (int j = 0; j < D; j++) {
        double precision = 0;
        for (int t = 0; t < ROUNDS; t++)
          precision += self.phi[t][i * RUNS + n] * self.phi[t][j * RUNS + n] / 0.25;
        CHECK_NEAR(lambda[(i * D + j) * RUNS + n], precision, 1e-12);
        CU_ASSERT_EQUAL(lambda[(i * D + j) * RUNS + n], lambda[(j * D + i) * RUNS + n]);
        if (i == j) trace += 0.25 * precision;
      }
    }
    CHECK_NEAR(history_squares(&self.history, n), trace, 1e-12);
  }
  history_clear(&self.history);
  CU_ASSERT_EQUAL(self.history.rounds, 0);
  history_evidence(&view, lambda, b);
  history_residual(&view, residual);
  for (int k = 0; k < D * D * RUNS; k++) CU_ASSERT_EQUAL(lambda[k], 0);
  for (int k = 0; k < D * RUNS; k++) CU_ASSERT_EQUAL(b[k], 0);
  for (int k = 0; k < RUNS; k++) CU_ASSERT_EQUAL(residual[k], 0);
}

/* Computes the log likelihood of all rewards at theta = shift + scale z, by its definition; differences
 * between two z must agree with -1/2 z' Lambda_z z + z' b_z. */
static double log_likelihood(const Case *self, int run, const double *theta) {
  double sum = 0;
  for (int t = 0; t < ROUNDS; t++) {
    double u = 0;
    for (int i = 0; i < D; i++) u += self->phi[t][i * RUNS + run] * theta[i];
    sum += self->likelihood.ops->log_likelihood(&self->likelihood, self->y[t][run], u);
  }
  return sum;
}

static void test_evidence(void) {
  SCRATCH_ARENA(memory);
  Case self;
  case_create(&memory, &self);
  const double shift[D] = {1, -2, 0.5}, scale[D] = {0.1, 3, 2};
  const int parts[][2] = {{0, RUNS * DRAWS}, {5, 1}, {64, 130}};
  for (int mapped = 0; mapped < 2; mapped++) {
    for (int p = 0; p < 3; p++) {
      int first = parts[p][0], lanes = parts[p][1];
      double *precision = malloc((size_t)(D * D * lanes) * sizeof *precision);
      double *vector = malloc((size_t)(D * lanes) * sizeof *vector);
      const HistoryView view = {&self.history,        DRAWS, first, lanes, mapped ? shift : NULL,
                                mapped ? scale : NULL};
      history_evidence(&view, precision, vector);
      for (int n = 0; n < lanes; n++) {
        int run = (first + n) / DRAWS;
        double zero[D] = {0}, theta[D], z[D] = {0.3, -0.8, 1.1}, quadratic = 0;
        for (int i = 0; i < D; i++) {
          theta[i] = mapped ? shift[i] + scale[i] * z[i] : z[i];
          if (mapped) zero[i] = shift[i];
          quadratic += z[i] * vector[i * lanes + n];
          for (int j = 0; j < D; j++) quadratic -= 0.5 * z[i] * precision[(i * D + j) * lanes + n] * z[j];
        }
        double expected = log_likelihood(&self, run, theta) - log_likelihood(&self, run, zero);
        CHECK_NEAR(quadratic, expected, 1e-11 * (1 + fabs(expected)));
      }
      free(precision);
      free(vector);
    }
  }
}

/* ---- a history that keeps rows: derivatives at a point, deviance and reach against sums over
 * observations */

enum { ROWS_D = 5, ROWS_RUNS = 20, ROWS_DRAWS = 3, ROWS_LANES = ROWS_RUNS * ROWS_DRAWS, OBSERVATIONS = 37 };
enum { ROWS_ARMS = 19 }; /* where rows are arms: more than a page of rows */

/* Results for one lane, in the coordinates z. */
typedef struct {
  double gradient[ROWS_D], precision[ROWS_D * ROWS_D], deviance, reach;
} Sums;

typedef struct {
  Likelihood likelihood;
  History history;
  HistoryView view;
  double phi[OBSERVATIONS][ROWS_D * ROWS_RUNS], y[OBSERVATIONS][ROWS_RUNS], z[ROWS_D * ROWS_LANES];
} RowsCase;

/* Returns one of a run's first arms, so that runs differ in how many they have played; the run with the most
 * arms returns to some of them. */
static int arm_of(int t, int run) { return (7 * t + run) % (1 + run % ROWS_ARMS); }

static void rows_create(Arena *memory, const LikelihoodOps *family, int d, int draws, bool mapped,
                        bool by_arm, RowsCase *self) {
  static const double shift[ROWS_D] = {0.3, -0.2, 0.1, 0, -0.4}, scale[ROWS_D] = {0.5, 2, 1, 0.7, 1.3};
  Rng rng = {.key = rng_key(4, RNG_TEST), .run = (uint32_t)d, .round = (uint32_t)draws};
  self->likelihood = (Likelihood){.ops = family, .noise = 1};
  if (by_arm)
    CHECK_OK(history_create_planned(memory, d, ROWS_RUNS, (HistoryPlan){.arms = ROWS_ARMS}, &self->likelihood,
                                    &self->history));
  else
    CHECK_OK(history_create(memory, d, ROWS_RUNS, &self->likelihood, &self->history));
  CHECK_OK(history_reserve(&self->history, OBSERVATIONS));
  rng_normal(&rng, d * ROWS_RUNS * draws, self->z);
  for (int t = 0; t < OBSERVATIONS; t++) {
    int arm[ROWS_RUNS];
    rng_normal(&rng, d * ROWS_RUNS, self->phi[t]);
    for (int b = 0; b < ROWS_RUNS; b++) {
      self->y[t][b] = (t + b) % (family->admits(2) ? 4 : 2);
      arm[b] = arm_of(t, b);
      int first = 0; /* round of this arm */
      while (arm_of(first, b) != arm[b]) first++;
      for (int i = 0; i < d && by_arm; i++)
        self->phi[t][i * ROWS_RUNS + b] = self->phi[first][i * ROWS_RUNS + b];
    }
    history_record(&self->history, arm, self->phi[t], self->y[t]);
  }
  self->view = (HistoryView){.history = &self->history,
                             .draws = draws,
                             .lanes = ROWS_RUNS * draws,
                             .shift = mapped ? shift : NULL,
                             .scale = mapped ? scale : NULL};
}

/* The observations of a run as plain rows. */
typedef struct {
  double phi[OBSERVATIONS * ROWS_D], y[OBSERVATIONS];
  PlainRows rows;
} PlainRun;

static void plain_run(const RowsCase *self, int run, PlainRun *out) {
  const int d = self->history.d;
  for (int t = 0; t < OBSERVATIONS; t++) {
    for (int i = 0; i < d; i++) out->phi[t * d + i] = self->phi[t][i * ROWS_RUNS + run];
    out->y[t] = self->y[t][run];
  }
  out->rows = (PlainRows){
      .likelihood = &self->likelihood, .d = d, .count = OBSERVATIONS, .phi = out->phi, .y = out->y};
}

/* Sums up what lane n should get, at z and for the step z, by a plain pass over the observations in theta,
 * from which it returns to z. */
static Sums sum_rows(const RowsCase *self, int n) {
  const HistoryView *view = &self->view;
  const int d = self->history.d;
  double theta[ROWS_D] = {0}, step[ROWS_D] = {0}, scale[ROWS_D];
  PlainRun run;
  Sums out;
  plain_run(self, n / view->draws, &run);
  for (int i = 0; i < d; i++) {
    scale[i] = view->scale ? view->scale[i] : 1;
    step[i] = scale[i] * self->z[i * view->lanes + n];
    theta[i] = (view->shift ? view->shift[i] : 0) + step[i];
  }
  out.deviance = -2 * history_plain_pass(&run.rows, theta, out.gradient, out.precision);
  out.reach = history_plain_reach(&run.rows, step);
  for (int i = 0; i < d; i++) {
    out.gradient[i] *= scale[i];
    for (int j = 0; j < d; j++) out.precision[i * d + j] *= scale[i] * scale[j];
  }
  return out;
}

static void check_rows(const RowsCase *self) {
  static double gradient[ROWS_D * ROWS_LANES], precision[ROWS_D * ROWS_D * ROWS_LANES], deviance[ROWS_LANES],
      also[ROWS_D * ROWS_LANES], reach[ROWS_LANES];
  const HistoryView *view = &self->view;
  const int d = self->history.d, lanes = view->lanes;
  history_derivatives(view, self->z, NULL, gradient, precision);
  history_log_likelihood(view, self->z, deviance, also);
  for (int n = 0; n < lanes; n++) deviance[n] *= -2;
  history_reach(view, self->z, 0, reach); /* `enough` is never reached: the exact maximum */
  for (int n = 0; n < lanes; n++) {
    const Sums sums = sum_rows(self, n);
    for (int i = 0; i < d; i++) {
      const double rounding = 1e-12 * fmax(1, fabs(sums.gradient[i])) * OBSERVATIONS;
      CHECK_NEAR(gradient[i * lanes + n], sums.gradient[i], rounding);
      CHECK_NEAR(also[i * lanes + n], sums.gradient[i], rounding);
    }
    for (int k = 0; k < d * d; k++)
      CHECK_NEAR(precision[k * lanes + n], sums.precision[k],
                 1e-12 * fmax(1, fabs(sums.precision[k])) * OBSERVATIONS);
    CHECK_NEAR(deviance[n], sums.deviance, 1e-12 * OBSERVATIONS * fmax(1, sums.deviance));
    CHECK_NEAR(reach[n], sums.reach, 1e-12 * fmax(1, sums.reach));
  }
}

/* Checks that an upper bound is enough where it is below `enough`: never below the maximum, never above |phi|
 * |step|. */
static void check_bound(const RowsCase *self) {
  const HistoryView *view = &self->view;
  const int d = self->history.d, lanes = view->lanes;
  double reach[ROWS_LANES];
  history_reach(view, self->z, 1e6, reach);
  for (int n = 0; n < lanes; n++) {
    double step = 0, longest = 0;
    for (int i = 0; i < d; i++) step += pow((view->scale ? view->scale[i] : 1) * self->z[i * lanes + n], 2);
    for (int t = 0; t < OBSERVATIONS; t++) {
      double square = 0;
      for (int i = 0; i < d; i++) square += pow(self->phi[t][i * ROWS_RUNS + n / view->draws], 2);
      longest = fmax(longest, square);
    }
    CU_ASSERT(reach[n] >= sum_rows(self, n).reach * (1 - 1e-12));
    CHECK_NEAR(reach[n], sqrt(longest * step), 1e-12 * (1 + sqrt(longest * step)));
  }
}

/* Checks that strips where all lanes have settled keep what they had, and that the others update every
 * lane. */
static void check_settled(const RowsCase *self) {
  static double gradient[ROWS_D * ROWS_LANES], precision[ROWS_D * ROWS_D * ROWS_LANES];
  const HistoryView *view = &self->view;
  const int lanes = view->lanes, d = self->history.d;
  bool settled[ROWS_LANES];
  for (int k = 0; k < d * lanes; k++) gradient[k] = -7;
  for (int n = 0; n < lanes; n++) settled[n] = n != lanes - 1;
  history_derivatives(view, self->z, settled, gradient, precision);
  const Sums sums = sum_rows(self, lanes - 1);
  for (int i = 0; i < d; i++) {
    CU_ASSERT_EQUAL(gradient[i * lanes], -7);
    CHECK_NEAR(gradient[i * lanes + lanes - 1], sums.gradient[i],
               1e-12 * fmax(1, fabs(sums.gradient[i])) * OBSERVATIONS);
  }
}

/* Checks that draws of a run share its rows, as they are and in coordinates theta = shift + scale z. */
static void check_each_case(bool by_arm) {
  SCRATCH_ARENA(memory);
  static const int dimensions[] = {1, 2, 5};
  static RowsCase self;
  for (int f = 0; likelihood_family(f); f++) {
    if (likelihood_family(f)->quadratic) continue;
    for (int k = 0; k < 3; k++)
      for (int draws = 1; draws <= ROWS_DRAWS; draws++)
        for (int mapped = 0; mapped < 2; mapped++) {
          rows_create(&memory, likelihood_family(f), dimensions[k], draws, mapped, by_arm, &self);
          check_rows(&self);
          check_bound(&self);
          check_settled(&self);
        }
  }
}

static void test_rows(void) { check_each_case(false); }

/* Some slope and curvature that depend on everything a visitor gets. */
static void some_slope(double y, double mean, double variance, double *slope, double *curvature) {
  *slope = y - mean * variance;
  *curvature = 1 / (1 + variance + mean * mean);
}

static void visit_cells(void *context, const HistoryMarginals *cells) {
  (void)context;
  for (int k = 0; k < cells->n; k++) {
    some_slope(cells->y[k], cells->mean[k], cells->variance[k], &cells->slope[k], &cells->curvature[k]);
    cells->slope[k] *= cells->counts[k];
    cells->curvature[k] *= cells->counts[k];
  }
}

static void visit_row(void *context, int row, double mean, double variance, double *slope,
                      double *curvature) {
  const PlainRun *run = context;
  some_slope(run->y[row], mean, variance, slope, curvature);
}

/* Checks passes over rows whose phi' theta is Gaussian against plain ones. */
static void test_marginals(void) {
  static RowsCase self;
  static PlainRun run;
  static const int dimensions[] = {1, 2, 5};
  enum { LANES = ROWS_RUNS };
  for (int k = 0; k < 3; k++) {
    SCRATCH_ARENA(memory);
    const int d = dimensions[k];
    double covariance[ROWS_D * ROWS_D], lanes[ROWS_D * ROWS_D * LANES];
    double precision[ROWS_D * ROWS_D * LANES], vector[ROWS_D * LANES];
    rows_create(&memory, likelihood_find("logistic"), d, 1, false, false, &self);
    for (int i = 0; i < d; i++)
      for (int j = 0; j < d; j++) covariance[i * d + j] = (i == j) + 0.3 / (1 + i + j);
    for (int i = 0; i < d * d; i++)
      for (int n = 0; n < LANES; n++) lanes[i * LANES + n] = (1 + 0.1 * n) * covariance[i];
    history_visit_marginals(&self.view, self.z, lanes, visit_cells, NULL, precision, vector);
    for (int n = 0; n < LANES; n++) {
      double mean[ROWS_D] = {0}, own[ROWS_D * ROWS_D] = {0}, expected[ROWS_D * ROWS_D],
             expected_vector[ROWS_D];
      for (int i = 0; i < d; i++) mean[i] = self.z[i * LANES + n];
      for (int i = 0; i < d * d; i++) own[i] = lanes[i * LANES + n];
      const PlainMarginals given = {.mean = mean, .covariance = own, .visit = visit_row, .context = &run};
      plain_run(&self, n, &run);
      history_plain_marginals(&run.rows, &given, expected, expected_vector);
      for (int i = 0; i < d; i++) /* sums of 37 terms that partly cancel, below 1e3 */
        CHECK_NEAR(vector[i * LANES + n], expected_vector[i], 1e-11);
      for (int i = 0; i < d * d; i++) CHECK_NEAR(precision[i * LANES + n], expected[i], 1e-11);
    }
  }
}

/* Checks a history that stores arms in place of rows: the same sums over observations, with one row for each
 * arm of a run; none after history_clear. */
static void test_arms(void) {
  SCRATCH_ARENA(memory);
  static RowsCase self;
  check_each_case(true);
  rows_create(&memory, likelihood_find("poisson"), 2, 1, false, true, &self);
  for (int b = 0; b < ROWS_RUNS; b++) {
    bool played[ROWS_ARMS] = {false};
    int arms = 0;
    for (int t = 0; t < OBSERVATIONS; t++) {
      arms += played[arm_of(t, b)] ? 0 : 1;
      played[arm_of(t, b)] = true;
    }
    CU_ASSERT_EQUAL(history_rows(&self.history)->length[b], arms);
    CU_ASSERT_EQUAL(history_observations(&self.history, b), OBSERVATIONS);
  }
  history_clear(&self.history);
  for (int t = 0; t < OBSERVATIONS; t++) { /* now every run plays one arm */
    const int arm[ROWS_RUNS] = {0};
    memcpy(self.phi[t], self.phi[0], sizeof *self.phi);
    history_record(&self.history, arm, self.phi[t], self.y[t]);
  }
  check_rows(&self);
}

/* An uneven history against one history for each run, with that run's observations only; gathered runs
 * too. */
typedef struct {
  double gradient[2], precision[4], value, reach, longest;
} Summary;

static Summary summarise(const History *history, int run, const double *z) {
  enum { MOST = 64 };
  const int lanes = history->runs;
  double all[2 * MOST] = {0}, gradient[2 * MOST], precision[4 * MOST], value[MOST] = {0}, reach[MOST] = {0};
  HistoryView view = {history, 1, 0, lanes, NULL, NULL};
  Summary out = {.value = 0};
  for (int i = 0; i < 2; i++)
    for (int n = 0; n < lanes; n++) all[i * lanes + n] = z[i];
  if (likelihood_is_conjugate(history->likelihood)) {
    history_evidence(&view, precision, gradient);
  } else {
    history_derivatives(&view, all, NULL, gradient, precision);
    history_log_likelihood(&view, all, value, NULL);
    history_reach(&view, all, 0, reach);
    out.longest = history_rows(history)->longest[run];
  }
  for (int i = 0; i < 2; i++) out.gradient[i] = gradient[i * lanes + run];
  for (int i = 0; i < 4; i++) out.precision[i] = precision[i * lanes + run];
  out.value = value[run], out.reach = reach[run];
  return out;
}

static void check_same(const Summary *a, const Summary *b) {
  for (int i = 0; i < 2; i++) CHECK_NEAR(a->gradient[i], b->gradient[i], 1e-13 * (1 + fabs(b->gradient[i])));
  for (int i = 0; i < 4; i++) CHECK_NEAR(a->precision[i], b->precision[i], 1e-13 * (1 + b->precision[4 - 1]));
  CHECK_NEAR(a->value, b->value, 0);
  CHECK_NEAR(a->reach, b->reach, 0);
  CHECK_NEAR(a->longest, b->longest, 0);
}

static void test_uneven(void) {
  SCRATCH_ARENA(memory);
  enum { EACH = 3, ARMS = 14, R = EACH * ARMS, T = 120, GATHERED = 5 };
  static const int wanted[GATHERED] = {7, 41, 0, 21, 16};
  static const double z[2] = {0.4, -0.7};
  for (int f = 0; likelihood_family(f); f++) {
    Likelihood likelihood = {.ops = likelihood_family(f), .noise = 0.5};
    History uneven, alone[R], gathered;
    Rng rng = {.key = rng_key(6, RNG_TEST), .run = (uint32_t)f};
    int count[R] = {0};
    CHECK_OK(history_create_planned(&memory, 2, EACH, (HistoryPlan){.share = ARMS}, &likelihood, &uneven));
    CHECK_OK(history_create(&memory, 2, GATHERED, &likelihood, &gathered));
    CHECK_OK(history_reserve(&uneven, T));
    CHECK_OK(history_reserve(&gathered, T));
    for (int n = 0; n < R; n++) {
      CHECK_OK(history_create(&memory, 2, 1, &likelihood, &alone[n]));
      CHECK_OK(history_reserve(&alone[n], T));
    }
    for (int again = 0; again < 2; again++) { /* the second time after history_clear */
      history_clear(&uneven);
      for (int n = 0; n < R; n++) history_clear(&alone[n]), count[n] = 0;
      for (int t = 0; t < T; t++) {
        /* Arms of the first two are played often, those of the last seldom, and the last run never. */
        double phi[2 * EACH], y[EACH];
        const int arm[EACH] = {t % 10, t % 9, (t * t) % 13};
        int run[EACH];
        rng_normal(&rng, 2 * EACH, phi);
        for (int m = 0; m < EACH; m++) {
          double one[2] = {phi[m], phi[EACH + m]};
          run[m] = m * ARMS + arm[m];
          y[m] = (t + m) % 2;
          history_record(&alone[run[m]], NULL, one, &y[m]);
          count[run[m]]++;
        }
        history_record(&uneven, arm, phi, y);
        for (int m = 0; m < EACH; m++) CU_ASSERT_EQUAL(history_latest_runs(&uneven)[m], run[m]);
      }
      history_gather(&uneven, wanted, &gathered);
      CU_ASSERT_EQUAL(gathered.rounds, T);
      for (int n = 0; n < R; n++) {
        Summary expected = summarise(&alone[n], 0, z), found = summarise(&uneven, n, z);
        check_same(&found, &expected);
        CU_ASSERT_EQUAL(history_observations(&uneven, n), count[n]);
        for (int g = 0; g < GATHERED; g++)
          if (wanted[g] == n) {
            found = summarise(&gathered, g, z);
            check_same(&found, &expected);
            CU_ASSERT_EQUAL(history_observations(&gathered, g), count[n]);
          }
      }
    }
  }
}

DECLARE_LEVELS(history_passes_log_likelihood);

/* Checks that every instruction level gives the log likelihood of clicks, up to rounding. */
static void test_levels(void) {
  SCRATCH_ARENA(memory);
  enum { T = 20 };
  const Likelihood likelihood = {.ops = likelihood_find("logistic"), .noise = 1};
  __typeof__(&history_passes_log_likelihood) const levels[] = {
      history_passes_log_likelihood_v1, history_passes_log_likelihood_v3, history_passes_log_likelihood_v4};
  History history;
  double phi[2 * TILE_LANES], y[TILE_LANES], z[2 * TILE_LANES], expected[TILE_LANES] = {0}, found[TILE_LANES];
  Rng rng = {.key = rng_key(7, RNG_TEST)};
  CHECK_OK(history_create(&memory, 2, TILE_LANES, &likelihood, &history));
  CHECK_OK(history_reserve(&history, T));
  rng_normal(&rng, 2 * TILE_LANES, z);
  for (int t = 0; t < T; t++) {
    rng_normal(&rng, 2 * TILE_LANES, phi);
    for (int n = 0; n < TILE_LANES; n++) {
      const double u = phi[n] * z[n] + phi[TILE_LANES + n] * z[TILE_LANES + n];
      y[n] = (t + n) % 2;
      expected[n] += likelihood.ops->log_likelihood(&likelihood, y[n], u);
    }
    history_record(&history, NULL, phi, y);
  }
  const HistoryView view = {&history, 1, 0, TILE_LANES, NULL, NULL};
  for (int level = 0; level < runnable_levels(); level++) {
    levels[level](&view, z, found, NULL);
    for (int n = 0; n < TILE_LANES; n++) CHECK_NEAR(found[n], expected[n], -1e-12 * expected[n]);
  }
}

/* Checks the bytes of the rows of 64 runs with 100 arms each over 1000 rounds, whichever arms they choose:
 * tiles never run out, and are far below 1 GB. */
static void test_memory(void) {
  SCRATCH_ARENA(memory);
  enum { R = 64, ARMS = 100, T = 1000, DIM = 5 };
  Likelihood likelihood = {.ops = likelihood_find("logistic"), .noise = 1};
  History history;
  static double phi[DIM * R], y[R];
  int arm[R];
  CHECK_OK(history_create_planned(&memory, DIM, R, (HistoryPlan){.share = ARMS}, &likelihood, &history));
  CHECK_OK(history_reserve(&history, T));
  const HistoryRows *rows = history_rows(&history);
  double bytes = 8.0 * rows->tiles * TILE_ROWS * TILE_LANES * (DIM + 1);
  CU_ASSERT_TRUE(bytes < 1e8);
  for (int pattern = 0; pattern < 3; pattern++) { /* one arm; all in turn; the arms of few strips in turn */
    history_clear(&history);
    for (int t = 0; t < T; t++) {
      for (int b = 0; b < R; b++)
        arm[b] = pattern == 0 ? 0 : pattern == 1 ? t % ARMS : t * TILE_LANES % (ARMS - 4);
      history_record(&history, arm, phi, y);
    }
    CU_ASSERT_TRUE(rows->used <= rows->tiles);
  }
}

/* Checks that in every form observations are counted, observations that are kept row by row come back, and
 * there is evidence or zeros; evidence that is set is the evidence. */
static void test_forms(void) {
  SCRATCH_ARENA(memory);
  enum { R = 19, K = 3, T = 21 };
  const Likelihood gaussian = {.ops = likelihood_find("gaussian"), .noise = 0.5},
                   logistic = {.ops = likelihood_find("logistic"), .noise = 1};
  Likelihood network = gaussian;
  const int width = 4;
  network.network = network_shape(2, 1, &width, 1);
  History history[6];
  CHECK_OK(history_create(&memory, 2, R, &gaussian, &history[0]));
  CHECK_OK(history_create_planned(&memory, 2, R, (HistoryPlan){.arms = K}, &gaussian, &history[1]));
  CHECK_OK(history_create_planned(&memory, 2, R, (HistoryPlan){.arms = K}, &network, &history[2]));
  CHECK_OK(history_create_planned(&memory, 2, R, (HistoryPlan){.arms = K}, &logistic, &history[3]));
  CHECK_OK(history_create(&memory, 2, R, &logistic, &history[4]));
  CHECK_OK(
      history_create_planned(&memory, 2, R, (HistoryPlan){.by_observation = true}, &gaussian, &history[5]));
  for (int f = 0; f < 6; f++) {
    History *h = &history[f];
    static double phi[T][2 * R], y[T][R];
    double precision[4 * R], vector[2 * R], twice[4 * R], arms[K][2 * R];
    Rng rng = {.key = rng_key(8, RNG_TEST)};
    CHECK_OK(history_reserve(h, T));
    for (int k = 0; k < K; k++) rng_normal(&rng, 2 * R, arms[k]);
    for (int t = 0; t < T; t++) {
      int arm[R];
      for (int n = 0; n < R; n++) {
        arm[n] = (t + n) % K, y[t][n] = t % 2;
        for (int i = 0; i < 2; i++) phi[t][i * R + n] = arms[arm[n]][i * R + n];
      }
      history_record(h, arm, phi[t], y[t]);
    }
    CU_ASSERT_EQUAL(h->rounds, T);
    const HistoryView view = {h, 1, 0, R, NULL, NULL};
    if (f < 5) history_evidence(&view, precision, vector);
    for (int n = 0; n < R; n++) {
      double lambda = 0, squares = 0;
      CU_ASSERT_EQUAL(history_observations(h, n), T);
      for (int t = 0; t < T; t++) {
        lambda += phi[t][n] * phi[t][n] / 0.25;
        squares += phi[t][n] * phi[t][n] + phi[t][R + n] * phi[t][R + n];
        double x[6];
        if (f < 4) continue;
        CHECK_NEAR(history_observation(h, n, t, 3, x), y[t][n], 0);
        CHECK_NEAR(x[0], phi[t][n], 0);
        CHECK_NEAR(x[3], phi[t][R + n], 0);
      }
      if (f < 2 || f >= 4) CHECK_NEAR(history_squares(h, n), squares, 1e-12 * squares);
      if (f == 5) continue; /* has only observations */
      CHECK_NEAR(precision[n], f < 2 ? lambda : 0, 1e-12 * lambda);
      if (f >= 2) CHECK_NEAR(vector[n], 0, 0);
    }
    if (f == 0) {
      history_set_evidence(h, 7, 2, precision, vector);
      history_evidence(&view, twice, vector);
      for (int k = 0; k < 4 * R; k++) CHECK_NEAR(twice[k], 2 * precision[k], 0);
      CU_ASSERT_EQUAL(h->rounds, 7);
      CU_ASSERT_EQUAL(history_observations(h, R - 1), 7);
    }
  }
}

/* Checks that a run's stored evidence can be loaded into a view of a history with fewer runs, as agents do,
 * and that a view is cleared and discounted without the other runs. */
static void test_fewer_runs(void) {
  enum { B = 5, FEWER = 2 };
  const Likelihood likelihood = {.ops = likelihood_find("gaussian"), .noise = 0.5};
  Arena memory = {0};
  History whole, other;
  double phi[D * B], y[B], state[2][D * (D + 3) / 2 + 1], precision[2][D * D * B], vector[2][D * B];
  Rng rng = {.key = rng_key(9, RNG_TEST)};
  CHECK_OK(history_create(&memory, D, B, &likelihood, &whole));
  CHECK_OK(history_create(&memory, D, B, &likelihood, &other));
  CU_ASSERT_EQUAL_FATAL(history_state(&whole), sizeof state[0] / sizeof **state);
  rng_normal(&rng, D * B, phi);
  rng_normal(&rng, B, y);
  history_record(&whole, NULL, phi, y);
  History view = history_first_runs(&other, FEWER);
  history_store(&whole, B - 1, state[0]);
  history_load(&view, FEWER - 1, 1, state[0]);
  history_store(&view, FEWER - 1, state[1]);
  CU_ASSERT(memcmp(state[0], state[1], sizeof state[0]) == 0);
  history_evidence(&(HistoryView){&whole, 1, B - 1, 1, NULL, NULL}, precision[0], vector[0]);
  history_evidence(&(HistoryView){&view, 1, FEWER - 1, 1, NULL, NULL}, precision[1], vector[1]);
  CU_ASSERT(memcmp(precision[0], precision[1], D * D * sizeof(double)) == 0);
  CU_ASSERT(memcmp(vector[0], vector[1], D * sizeof(double)) == 0);
  view = history_first_runs(&whole, FEWER);
  history_discount(&view, 0.5);
  history_store(&whole, B - 1, state[1]);
  CU_ASSERT(memcmp(state[0], state[1], sizeof state[0]) == 0);
  history_store(&whole, FEWER - 1, state[0]);
  history_discount(&view, 0);
  history_store(&whole, FEWER - 1, state[1]);
  CU_ASSERT(state[0][0] > 0 && state[1][0] == 0);
  history_clear(&view);
  history_store(&whole, FEWER, state[0]);
  history_store(&whole, 0, state[1]);
  CU_ASSERT(state[0][0] > 0 && state[1][0] == 0 && history_observations(&whole, 0) == 0);
  arena_free(&memory);
}

int main(void) {
  CU_TestInfo tests[] = {{"likelihoods", test_likelihoods},
                         {"Gaussian likelihood", test_gaussian},
                         {"append and clear", test_append},
                         {"evidence in other coordinates", test_evidence},
                         {"rows", test_rows},
                         {"passes over rows whose phi' theta is Gaussian", test_marginals},
                         {"arms for rows", test_arms},
                         {"uneven histories", test_uneven},
                         {"memory of an uneven history", test_memory},
                         {"every form", test_forms},
                         {"a view with fewer runs", test_fewer_runs},
                         {"instruction levels", test_levels},
                         CU_TEST_INFO_NULL};
  return harness_run("history", tests);
}
