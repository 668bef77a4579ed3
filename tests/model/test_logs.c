/* Priors from logs of past tasks: the E-step against dense Gaussian algebra, EM against closed forms, noise
 * and evidence of clicks against what they represent. */
#include "harness.h"

#include "core/core_tick.h"
#include "core/linalg/linalg.h"
#include "core/rng.h"
#include "model/history/likelihoods.h"
#include "model/logs/em_logs.h"
#include "model/prior/logs_fit.h"

#include <string.h>

enum { D = 3, MOST_ROWS = 6 };

static const Likelihood gaussian = {.ops = &likelihood_gaussian, .noise = 0.7};

/* A task's rows. */
typedef struct {
  int n;
  double x[MOST_ROWS][D], y[MOST_ROWS];
} Task;

/* Makes tasks of 1 to MOST_ROWS rows; theta ~ N(1, 1). */
static void make_tasks(int tasks, double noise, Task *out) {
  Rng rng = {.key = rng_key(11, RNG_TEST)};
  for (int t = 0; t < tasks; t++) {
    double theta[D], e[MOST_ROWS];
    out[t].n = 1 + (int)rng_index(&rng, MOST_ROWS);
    rng_normal(&rng, D, theta);
    rng_normal(&rng, MOST_ROWS, e);
    for (int r = 0; r < out[t].n; r++) {
      rng_normal(&rng, D, out[t].x[r]);
      out[t].y[r] = noise * e[r];
      for (int i = 0; i < D; i++) out[t].y[r] += (1 + theta[i]) * out[t].x[r][i];
    }
  }
}

static void log_tasks(Arena *memory, int tasks, const Task *task, const Likelihood *likelihood, Logs *out) {
  CHECK_OK(logs_create(memory, D, likelihood, out));
  for (int t = 0; t < tasks; t++) CHECK_OK(logs_add(out, t, task[t].x[0], task[t].y[0]));
  for (int r = 1; r < MOST_ROWS; r++) /* rows may come in any order */
    for (int t = tasks - 1; t >= 0; t--)
      if (r < task[t].n) CHECK_OK(logs_add(out, t, task[t].x[r], task[t].y[r]));
}

static void two_gaussians(Arena *memory, Mixture *out) {
  CHECK_OK(mixture_create(memory, D, 2, out));
  for (int c = 0; c < 2; c++) {
    out->weight[c] = c ? 0.3 : 0.7;
    for (int i = 0; i < D; i++) {
      out->mean[c * D + i] = c ? -1 + i : 0.5;
      for (int j = 0; j < D; j++) out->covariance[(c * D + i) * D + j] = (i == j ? 1 + c : 0) + 0.3 * (1 - c);
    }
  }
  CHECK_OK(mixture_prepare(out));
}

/* Computes log N(y; X m, X S X' + sigma^2 I), and mean and covariance of theta given y: the n x n algebra
 * that the E-step never does. */
static double dense(const Task *task, double sigma, const double *m, const double *s, double *mean,
                    double *covariance) {
  const int n = task->n;
  double a[MOST_ROWS * MOST_ROWS], sx[D][MOST_ROWS], residual[MOST_ROWS], inverse[MOST_ROWS * MOST_ROWS];
  double square = 0;
  for (int i = 0; i < D; i++)
    for (int r = 0; r < n; r++) {
      sx[i][r] = 0;
      for (int j = 0; j < D; j++) sx[i][r] += s[i * D + j] * task->x[r][j];
    }
  for (int r = 0; r < n; r++) {
    residual[r] = task->y[r];
    for (int i = 0; i < D; i++) residual[r] -= task->x[r][i] * m[i];
    for (int q = 0; q < n; q++) {
      a[r * n + q] = r == q ? sigma * sigma : 0;
      for (int i = 0; i < D; i++) a[r * n + q] += task->x[r][i] * sx[i][q];
    }
  }
  CHECK_OK(linalg_cholesky(n, a));
  linalg_inverse(n, a, inverse);
  memcpy(mean, m, D * sizeof *m);
  memcpy(covariance, s, D * D * sizeof *s);
  for (int r = 0; r < n; r++)
    for (int q = 0; q < n; q++) {
      square += residual[r] * inverse[r * n + q] * residual[q];
      for (int i = 0; i < D; i++) {
        mean[i] += sx[i][r] * inverse[r * n + q] * residual[q];
        for (int j = 0; j < D; j++) covariance[i * D + j] -= sx[i][r] * inverse[r * n + q] * sx[j][q];
      }
    }
  return -0.5 * (square + linalg_log_determinant(n, a) + n * log(2 * M_PI));
}

/* Checks log marginal likelihoods and expected features, also in shifted and scaled coordinates. */
static void test_expect(void) {
  enum { TASKS = 150, F = 1 + D + D * (D + 1) / 2, ITEMS = 131, FIRST = 40 };
  static Task task[TASKS];
  SCRATCH_ARENA(memory);
  Logs logs;
  Mixture mixture, moved;
  EmLogs items;
  double shift[D] = {0.3, -2, 1}, scale[D] = {0.5, 3, 1.5}, to[D], by[D];
  double density[ITEMS], sums[2 * F] = {0}, expected[2 * F] = {0}, total = 0;
  make_tasks(TASKS, gaussian.noise, task);
  log_tasks(&memory, TASKS, task, &gaussian, &logs);
  two_gaussians(&memory, &mixture);
  CHECK_OK(mixture_copy(&memory, &mixture, &moved));
  for (int i = 0; i < D; i++) by[i] = 1 / scale[i], to[i] = -shift[i] / scale[i];
  CHECK_OK(mixture_transform(&moved, to, by));
  const LogsFrame frame = {.shift = shift, .scale = scale, .variance = gaussian.noise * gaussian.noise};
  CHECK_OK(em_logs_create(&memory, &logs, &frame, FIRST, ITEMS, 2, &items));
  em_logs_density(&items, &moved, density);
  const double sum = items.data.expect(&items.data, ITEMS, &moved, sums);
  for (int k = 0; k < ITEMS; k++) {
    double log_weight[2], mean[2][D], covariance[2][D * D], share[2];
    for (int c = 0; c < 2; c++)
      log_weight[c] =
          log(mixture.weight[c]) + dense(&task[(FIRST + k) % TASKS], gaussian.noise, mixture.mean + c * D,
                                         mixture.covariance + c * D * D, mean[c], covariance[c]);
    const double top = fmax(log_weight[0], log_weight[1]),
                 log_sum = top + log(exp(log_weight[0] - top) + exp(log_weight[1] - top));
    CHECK_NEAR(density[k], log_sum, 1e-10 * (1 + fabs(log_sum)));
    total += log_sum;
    for (int c = 0; c < 2; c++) {
      double z[D], *feature = expected + c * F;
      share[c] = exp(log_weight[c] - log_sum);
      *feature++ += share[c];
      for (int i = 0; i < D; i++) z[i] = (mean[c][i] - shift[i]) / scale[i], *feature++ += share[c] * z[i];
      for (int i = 0; i < D; i++)
        for (int j = 0; j <= i; j++)
          *feature++ += share[c] * (covariance[c][i * D + j] / (scale[i] * scale[j]) + z[i] * z[j]);
    }
  }
  CHECK_NEAR(sum, total, 1e-9 * fabs(total));
  for (int f = 0; f < 2 * F; f++) CHECK_NEAR(sums[f], expected[f], 1e-9 * (1 + fabs(expected[f])));
}

/* Checks that iterations never lower the log marginal likelihood, except for the effect of the floor of the
 * variances, 1e-6: the slope in a variance is below 1e3 here. With one covariance for both Gaussians the
 * start, which has two, does not count. */
static void test_monotone(void) {
  enum { TASKS = 120, F = 1 + D + D * (D + 1) / 2 };
  static Task task[TASKS];
  SCRATCH_ARENA(memory);
  for (int both = 0; both < 4; both++) {
    const int learn = both % 2, tied = both / 2;
    Logs logs;
    LogsFrame frame;
    Mixture mixture;
    EmLogs items;
    make_tasks(TASKS, gaussian.noise, task);
    log_tasks(&memory, TASKS, task, &gaussian, &logs);
    logs.estimate_noise = learn;
    CHECK_OK(logs_frame(&memory, &logs, &frame));
    CHECK_OK(em_logs_create(&memory, &logs, &frame, 0, TASKS, 2, &items));
    two_gaussians(&memory, &mixture);
    double before = -INFINITY, first = 0, now = 0;
    for (int k = 0; k < 60; k++) {
      const EmPlan plan = {.most_iterations = 1, .tied = 2 * tied};
      CHECK_OK(em_continue(&items.data, &plan, rng_key(1, RNG_TEST), 0, &mixture, &now));
      if (k == tied) first = now;
      CU_ASSERT(k <= tied || now >= before - 1e-3 / TASKS);
      before = now;
    }
    CU_ASSERT(now > first + 1e-3);
    const int differ = memcmp(mixture.covariance, mixture.covariance + D * D, D * D * sizeof(double));
    CU_ASSERT_EQUAL(differ == 0, tied);
  }
}

/* Checks one observation y = theta + noise of each task: the best-fitting Gaussian has the mean of y, and the
 * variance of y less that of the noise, or 0 where that is negative. */
static void test_one_dimension(void) {
  enum { TASKS = 400 };
  SCRATCH_ARENA(memory);
  for (int spread = 0; spread < 2; spread++) {
    Likelihood likelihood = {.ops = &likelihood_gaussian, .noise = spread ? 0.5 : 2};
    Logs logs;
    Mixture mixture;
    Rng rng = {.key = rng_key(5, RNG_TEST)};
    double y[TASKS], mean, variance, noise, one = 1;
    CHECK_OK(logs_create(&memory, 1, &likelihood, &logs));
    rng_normal(&rng, TASKS, y);
    for (int t = 0; t < TASKS; t++) y[t] = 1e3 + 1.3 * y[t];
    for (int t = 0; t < TASKS; t++) CHECK_OK(logs_add(&logs, t, &one, y[t]));
    linalg_moments(1, TASKS, y, &mean, &variance);
    CHECK_OK(logs_fit(&memory, &logs, 1, 1, rng_key(1, RNG_TEST), 0, &mixture, &noise, NULL));
    CHECK_NEAR(mixture.mean[0], mean, 1e-4);
    CHECK_NEAR(noise, likelihood.noise, 0);
    if (spread)
      CHECK_NEAR(mixture.covariance[0], variance - 0.25, 1e-4);
    else
      CU_ASSERT(mixture.covariance[0] < 0.05);
  }
}

/* Takes the count down, and gives up at 0. */
static bool count_down(void *context, double fraction) {
  int *left = context;
  CU_ASSERT_EQUAL(fraction, 0); /* the number of iterations is not known in advance */
  return (*left)-- > 0;
}

/* Checks that a fit that is watched gives the same mixture, and that one that is abandoned after 3 iterations
 * says so. */
static void test_tick(void) {
  enum { TASKS = 40, MANY = 1000000 };
  static Task task[TASKS];
  SCRATCH_ARENA(memory);
  Logs logs;
  Mixture alone, watched;
  double noise;
  int left = MANY;
  make_tasks(TASKS, 0.7, task);
  log_tasks(&memory, TASKS, task, &gaussian, &logs);
  CHECK_OK(logs_fit(&memory, &logs, 2, 2, rng_key(1, RNG_TEST), 0, &alone, &noise, NULL));
  core_tick_exchange((Tick){count_down, &left});
  CHECK_OK(logs_fit(&memory, &logs, 2, 2, rng_key(1, RNG_TEST), 0, &watched, &noise, NULL));
  CU_ASSERT(left < MANY - 10);
  CU_ASSERT_EQUAL(memcmp(alone.mean, watched.mean, 2 * D * sizeof *alone.mean), 0);
  left = 3;
  CU_ASSERT_EQUAL(logs_fit(&memory, &logs, 2, 2, rng_key(1, RNG_TEST), 0, &watched, &noise, NULL),
                  STATUS_STOPPED);
  CU_ASSERT_EQUAL(left, -1);
  core_tick_exchange((Tick){NULL, NULL});
}

/* Checks the noise: EM knows at least what least squares knows. The degrees of freedom are the sum of (n - d)
 * over tasks with more rows than dimensions, and the standard error of sigma is sigma / sqrt(2 times
 * that). */
static void test_noise(void) {
  enum { TASKS = 3000 };
  static Task task[TASKS];
  SCRATCH_ARENA(memory);
  Logs logs;
  Mixture mixture;
  double noise, freedom = 0;
  make_tasks(TASKS, 0.4, task);
  log_tasks(&memory, TASKS, task, &gaussian, &logs);
  logs.estimate_noise = true;
  for (int t = 0; t < TASKS; t++) freedom += task[t].n > D ? task[t].n - D : 0;
  CHECK_OK(logs_fit(&memory, &logs, 1, 1, rng_key(1, RNG_TEST), 0, &mixture, &noise, NULL));
  CHECK_NEAR(noise, 0.4, 3 * 0.4 / sqrt(2 * freedom));
  for (int i = 0; i < D; i++) { /* N(1, 1), within 4 standard errors of a mean and variance of that many */
    CHECK_NEAR(mixture.mean[i], 1, 4 * 1.2 / sqrt(TASKS));
    CHECK_NEAR(mixture.covariance[i * (D + 1)], 1, 4 * 2 / sqrt(TASKS));
  }
}

/* Checks that posterior draws have the moments of the dense posterior: 4 standard errors of the mean of that
 * many draws, and of their variance. */
static void test_draws(void) {
  enum { TASKS = 70, DRAWS = 4000 };
  static Task task[TASKS];
  static double z[D * TASKS * DRAWS];
  SCRATCH_ARENA(memory);
  Logs logs;
  Mixture one;
  EmLogs items;
  double shift[D] = {0}, scale[D] = {1, 1, 1}, mean[D], covariance[D * D];
  make_tasks(TASKS, gaussian.noise, task);
  log_tasks(&memory, TASKS, task, &gaussian, &logs);
  CHECK_OK(mixture_create(&memory, D, 1, &one));
  one.weight[0] = 1;
  for (int i = 0; i < D; i++) one.covariance[i * (D + 1)] = 1, one.mean[i] = i;
  CHECK_OK(mixture_prepare(&one));
  const LogsFrame frame = {.shift = shift, .scale = scale, .variance = gaussian.noise * gaussian.noise};
  CHECK_OK(em_logs_create(&memory, &logs, &frame, 0, TASKS, 1, &items));
  em_logs_draw(&items, &one, DRAWS, rng_key(3, RNG_TEST), 0, z);
  for (int t = 0; t < TASKS; t += 23) {
    dense(&task[t], gaussian.noise, one.mean, one.covariance, mean, covariance);
    for (int i = 0; i < D; i++) {
      double m, v;
      const double truth = covariance[i * (D + 1)];
      linalg_moments(1, DRAWS, z + (size_t)(i * TASKS + t) * DRAWS, &m, &v);
      CHECK_NEAR(m, mean[i], 4 * sqrt(truth / DRAWS));
      CHECK_NEAR(v, truth, 4 * truth * sqrt(2.0 / DRAWS));
    }
  }
}

/* Checks marginal likelihoods of clicks against quadrature in one dimension, under a narrow and a wide prior,
 * where those of Laplace are 0.02 and up to 0.08 off. */
static void test_logistic(void) {
  enum { TASKS = 130, GRID = 4001 };
  const Likelihood likelihood = {.ops = &likelihood_logistic};
  SCRATCH_ARENA(memory);
  Logs logs;
  Mixture one;
  EmLogs items;
  Rng rng = {.key = rng_key(8, RNG_TEST)};
  double shift = 0.2, density[TASKS], zero[TASKS] = {0}, ones[TASKS] = {0};
  CHECK_OK(logs_create(&memory, 1, &likelihood, &logs));
  for (int t = 0; t < TASKS; t++)
    for (int r = 0; r < 20 + t % 7; r++) {
      double x = 1, u;
      rng_uniform(&rng, 1, &u);
      const double y = u < 0.3 + 0.4 * (t % 2);
      (y > 0 ? ones : zero)[t]++;
      CHECK_OK(logs_add(&logs, t, &x, y));
    }
  CHECK_OK(mixture_create(&memory, 1, 1, &one));
  one.weight[0] = one.covariance[0] = 1;
  CHECK_OK(mixture_prepare(&one));
  for (int wide = 0; wide < 2; wide++) {
    double scale = wide ? 10 : 1.5;
    const LogsFrame frame = {.shift = &shift, .scale = &scale};
    CHECK_OK(em_logs_create(&memory, &logs, &frame, 0, TASKS, 1, &items));
    em_logs_density(&items, &one, density);
    for (int t = 0; t < TASKS; t++) {
      double sum = 0;
      for (int k = 0; k < GRID; k++) {
        const double z = -6 + 12.0 * k / (GRID - 1), u = shift + scale * z;
        sum += exp(ones[t] * u - (ones[t] + zero[t]) * log1p(exp(u)) - z * z / 2) / sqrt(2 * M_PI) * 12 /
               (GRID - 1);
      }
      CHECK_NEAR(density[t], log(sum), 0.04);
    }
  }
}

/* Fits a prior to logs in this process, networks to draws under the mixture that fits them. */
static Status fit_logs(Arena *memory, const PriorOps *family, const PriorFit *fit, const Logs *logs,
                       Prior *out) {
  SCRATCH_ARENA(scratch);
  Prior mixture;
  Samples samples;
  const FitSource source = {.logs = logs};
  if (family->able & PRIOR_LOGS) return fit_source_whole(memory, &source, family, fit, out);
  TRY(fit_source_whole(&scratch, &source, logs_family(family), fit, &mixture));
  TRY(logs_draws(&scratch, logs, fit, mixture.mixture, mixture.noise, &samples));
  TRY(prior_fit(memory, family, fit, &samples, out));
  out->noise = mixture.noise;
  return STATUS_OK;
}

/* Checks a whole fit of every family: finite samples, roughly where the tasks are. */
static void test_families(void) {
  enum { TASKS = 100 };
  static Task task[TASKS];
  make_tasks(TASKS, gaussian.noise, task);
  for (int f = 0; prior_family(f); f++) {
    SCRATCH_ARENA(memory);
    Logs logs;
    Prior prior;
    PriorFit fit = {.starts = 2,
                    .schedule = {.stages = 4, .alpha = 0.5},
                    .standardise = true,
                    .hidden_count = 1,
                    .hidden = {8},
                    .steps = 100,
                    .batch = 64,
                    .patience = 5,
                    .learning_rate = 0.01,
                    .seed = 1};
    double theta[D * 1000], mean, variance;
    log_tasks(&memory, TASKS, task, &gaussian, &logs);
    prior_settle(prior_family(f), &fit, D);
    CHECK_OK(fit_logs(&memory, prior_family(f), &fit, &logs, &prior));
    CHECK_NEAR(prior.noise, gaussian.noise, 0);
    RngLanes rng = {.key = rng_key(1, RNG_TEST), .draws = 1000, .lanes = 1000};
    prior.ops->sample(&prior, &rng, theta);
    linalg_moments(1, D * 1000, theta, &mean, &variance);
    CHECK_NEAR(mean, 1, 0.5);
  }
}

/* Checks that a Gaussian learned from clicks alone is the one that the tasks came from, N(3, 1): its mean
 * within four standard errors, where a task's own estimate has a standard deviation of 1.5 or so; its
 * variance within the same. Fitted by Laplace's method its mean is 0.2 less. */
static void test_clicks(void) {
  enum { TASKS = 3000, CLICKS = 15 };
  const Likelihood likelihood = {.ops = &likelihood_logistic, .noise = 1};
  const PriorFit fit = {.starts = 1, .components = 1, .seed = 1, .schedule = {.stages = 4, .alpha = 0.5}};
  SCRATCH_ARENA(memory);
  Logs logs;
  Prior prior;
  Rng rng = {.key = rng_key(21, RNG_TEST)};
  CHECK_OK(logs_create(&memory, 1, &likelihood, &logs));
  for (int t = 0; t < TASKS; t++) {
    double theta, x[CLICKS], uniform[CLICKS];
    rng.run = (uint32_t)t;
    rng.position = 0;
    rng_normal(&rng, 1, &theta);
    rng_normal(&rng, CLICKS, x);
    rng_uniform(&rng, CLICKS, uniform);
    for (int r = 0; r < CLICKS; r++)
      CHECK_OK(logs_add(&logs, t, &x[r], uniform[r] < 1 / (1 + exp(-(3 + theta) * x[r]))));
  }
  CHECK_OK(fit_logs(&memory, prior_find("mixture"), &fit, &logs, &prior));
  CHECK_NEAR(prior.mixture->mean[0], 3, 4 * 1.5 / sqrt(TASKS));
  CHECK_NEAR(prior.mixture->covariance[0], 1, 4 * 2.25 * sqrt(2.0 / TASKS));
}

/* Estimates the posterior mean of a task with logistic rewards under N(prior, I) from draws of the prior. */
static void importance_mean(const Task *task, const double *prior, Rng *rng, double *mean) {
  enum { DRAWS = 20000 };
  double total = 0, squares = 0;
  for (int i = 0; i < D; i++) mean[i] = 0;
  for (int m = 0; m < DRAWS; m++) {
    double theta[D], weight = 1;
    rng->draw = (uint32_t)m;
    rng_normal(rng, D, theta);
    for (int i = 0; i < D; i++) theta[i] += prior[i];
    for (int r = 0; r < task->n; r++) {
      double u = 0;
      for (int i = 0; i < D; i++) u += task->x[r][i] * theta[i];
      weight /= 1 + exp(task->y[r] > 0 ? -u : u);
    }
    total += weight, squares += weight * weight;
    for (int i = 0; i < D; i++) mean[i] += weight * theta[i];
  }
  CU_ASSERT(total * total > 1600 * squares);
  for (int i = 0; i < D; i++) mean[i] /= total;
}

/* Checks posterior means under a Gaussian: with Gaussian rewards those of the dense algebra, with logistic
 * rewards those of draws of the prior weighted by their likelihood, of effective size above 1 600, so that
 * 0.1 is four of their errors. */
static void test_means(void) {
  enum { TASKS = 70 };
  static const Likelihood logistic = {.ops = &likelihood_logistic, .noise = 1};
  static Task task[TASKS];
  SCRATCH_ARENA(memory);
  Mixture one;
  Rng rng = {.key = rng_key(5, RNG_TEST)};
  CHECK_OK(mixture_create(&memory, D, 1, &one));
  one.weight[0] = 1;
  for (int i = 0; i < D; i++) one.covariance[i * (D + 1)] = 1, one.mean[i] = i;
  CHECK_OK(mixture_prepare(&one));
  make_tasks(TASKS, 0.7, task);
  for (int kind = 0; kind < 2; kind++) {
    Logs logs;
    Samples means;
    if (kind)
      for (int t = 0; t < TASKS; t++)
        for (int r = 0; r < task[t].n; r++) task[t].y[r] = task[t].y[r] > 0;
    log_tasks(&memory, TASKS, task, kind ? &logistic : &gaussian, &logs);
    CHECK_OK(logs_means(&memory, &logs, &one, 0.7, &means));
    CU_ASSERT_EQUAL(means.n, TASKS);
    for (int t = 0; t < TASKS; t++) {
      double mean[D], covariance[D * D];
      if (kind)
        importance_mean(&task[t], one.mean, &rng, mean);
      else
        dense(&task[t], 0.7, one.mean, one.covariance, mean, covariance);
      for (int i = 0; i < D; i++) CHECK_NEAR(means.theta[i * TASKS + t], mean[i], kind ? 0.1 : 1e-10);
    }
  }
}

int main(void) {
  CU_TestInfo tests[] = {{"E-step", test_expect},
                         {"monotone", test_monotone},
                         {"one dimension", test_one_dimension},
                         {"noise", test_noise},
                         {"tick", test_tick},
                         {"draws", test_draws},
                         {"logistic", test_logistic},
                         {"families", test_families},
                         {"means", test_means},
                         {"clicks", test_clicks},
                         CU_TEST_INFO_NULL};
  return harness_run("logs", tests);
}
