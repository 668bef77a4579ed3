/* Histories that forget: a plain version of assumed-density filtering, row by row; windows that have not
 * forgotten anything yet, which equal full histories; long streams compared with the full history; a run that
 * moves to another history; a run next to one that forgets; and options that contradict each other. */
#include "glm_fixture.h"

enum { D = 3, RUNS = 19, N = 60 };

static History filtered(Arena *memory, const Mixture *mixture, const Likelihood *likelihood, int keep) {
  History history;
  CHECK_OK(history_create_filtered(memory, mixture, keep, RUNS, 1, likelihood, &history));
  return history;
}

static void record(History *history, const Rows *rows, int from, int end) {
  double phi[D * RUNS], y[RUNS];
  for (int l = from; l < end; l++) {
    for (int n = 0; n < RUNS; n++) {
      y[n] = rows[n].y[l];
      for (int i = 0; i < D; i++) phi[i * RUNS + n] = rows[n].phi[l][i];
    }
    history_record(history, NULL, phi, y);
  }
}

static Rows *all_rows(const Likelihood *likelihood) {
  Rows *rows = fixture_new(RUNS, sizeof *rows);
  for (int n = 0; n < RUNS; n++) rows[n] = make_rows(likelihood, D, N, 1.5, (uint32_t)n);
  return rows;
}

/* ---- a plain version */

typedef struct {
  double precision[D * D], vector[D], log_scale;
} Site;

/* Computes log mass, mean and variance of N(u; m, v) p(y | u), by the rectangle rule. */
static void integrate(const Likelihood *likelihood, double y, double m, double v, double *out) {
  enum { POINTS = 4000 };
  const double reach = 14 * sqrt(v) + 2 * v, step = 2 * reach / POINTS;
  double mass = 0, first = 0, second = 0;
  for (int k = 0; k < POINTS; k++) {
    const double u = m - reach + step * (k + 0.5);
    double deviance;
    likelihood->ops->deviance(likelihood, 1, &y, &u, &deviance);
    const double weight = exp(-0.5 * deviance - 0.5 * (u - m) * (u - m) / v);
    mass += weight, first += weight * u, second += weight * u * u;
  }
  out[0] = log(mass * step / sqrt(2 * M_PI * v));
  out[1] = first / mass;
  out[2] = second / mass - out[1] * out[1];
}

/* Takes a row: the posterior before the row is its cavity, and the site takes it to the moments after the
 * row. */
static void plain_take(const Mixture *mixture, int c, const Rows *rows, int l, Site *self) {
  double p[D * D], s[D * D], mu = 0, v = 0, tilted[3];
  for (int i = 0; i < D * D; i++) p[i] = mixture_precision(mixture, c)[i] + self->precision[i];
  fixture_invert(D, p, s);
  for (int i = 0; i < D; i++)
    for (int j = 0; j < D; j++) {
      mu += rows->phi[l][i] * s[i * D + j] * (mixture_information(mixture, c)[j] + self->vector[j]);
      v += rows->phi[l][i] * s[i * D + j] * rows->phi[l][j];
    }
  integrate(&rows->likelihood, rows->y[l], mu, v, tilted);
  const double lambda = 1 / tilted[2] - 1 / v, nu = tilted[1] / tilted[2] - mu / v;
  for (int i = 0; i < D; i++) {
    self->vector[i] += nu * rows->phi[l][i];
    for (int j = 0; j < D; j++) self->precision[i * D + j] += lambda * rows->phi[l][i] * rows->phi[l][j];
  }
  self->log_scale += tilted[0] + 0.5 * log(1 + lambda * v) +
                     0.5 * (mu * mu / v - (mu / v + nu) * (mu / v + nu) / (1 / v + lambda));
}

/* Checks against the plain version. A click is absorbed without iterating, so the difference is that of the
 * quadratures, in units of the largest entry; a count is absorbed to the default tolerance of expectation
 * propagation, which adds up over 25 rows in the factor. */
static void check_plain(const char *family, double tolerance) {
  SCRATCH_ARENA(memory);
  enum { C = 2, FEW = 25 };
  const Likelihood likelihood = glm(family);
  const Mixture mixture = fixture_mixture(&memory, D, C, 1);
  Rows *rows = all_rows(&likelihood);
  History history = filtered(&memory, &mixture, &likelihood, 0);
  record(&history, rows, 0, FEW);
  for (int c = 0; c < C; c++) {
    double precision[D * D * RUNS] = {0}, vector[D * RUNS] = {0}, log_scale[RUNS];
    history_forgotten(&(HistoryView){&history, 1, 0, RUNS, NULL, NULL}, c, precision, vector, log_scale);
    for (int n = 0; n < RUNS; n++) {
      Site plain = {0};
      double top = 0;
      for (int l = 0; l < FEW; l++) plain_take(&mixture, c, &rows[n], l, &plain);
      for (int i = 0; i < D; i++) top = fmax(top, plain.precision[i * (D + 1)]);
      for (int i = 0; i < D * D; i++)
        CHECK_NEAR(precision[i * RUNS + n] / top, plain.precision[i] / top, tolerance);
      for (int i = 0; i < D; i++) CHECK_NEAR(vector[i * RUNS + n] / top, plain.vector[i] / top, tolerance);
      CHECK_NEAR(log_scale[n], plain.log_scale, 25 * tolerance);
    }
  }
  CU_ASSERT_EQUAL(history_retained(&history).rounds, 0);
  free(rows);
}

static void test_plain(void) {
  check_plain("logistic", 1e-4);
  check_plain("poisson", 1e-2);
}

/* ---- windows */

static void check_equal(int count, const double *a, const double *b) {
  CU_ASSERT_EQUAL(memcmp(a, b, (size_t)count * sizeof *a), 0);
}

static Prior exact_prior(Arena *memory, const Mixture *mixture) {
  const PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
  return fixture_exact_prior(memory, mixture, &fit);
}

/* Checks that the bytes are the same as long as nothing is forgotten. */
static void test_window(void) {
  SCRATCH_ARENA(memory);
  enum { KEEP = 12, DRAWS = 3 };
  const Likelihood likelihood = glm("logistic");
  Mixture mixture = fixture_mixture(&memory, D, 2, 1);
  const Prior prior = exact_prior(&memory, &mixture);
  Rows *rows = all_rows(&likelihood);
  History full = make_history(&memory, RUNS, rows, &likelihood), window;
  CHECK_OK(history_create(&memory, D, RUNS, &likelihood, &full));
  CHECK_OK(history_reserve(&full, N));
  window = filtered(&memory, &mixture, &likelihood, KEEP);
  record(&full, rows, 0, 2 * KEEP - 1);
  record(&window, rows, 0, 2 * KEEP - 1);
  const char *const set = "memory.keep=12";
  double *a = fixture_draw(sampler_find("mixts"), &prior, &full, 0, DRAWS, 0, NULL, NULL),
         *b = fixture_draw(sampler_find("mixts"), &prior, &window, 0, DRAWS, 1, &set, NULL);
  check_equal(D * RUNS * DRAWS, a, b);
  record(&window, rows, 2 * KEEP - 1, 2 * KEEP);
  CU_ASSERT_EQUAL(history_retained(&window).rounds, KEEP);
  free(a), free(b), free(rows);
}

/* Computes how far moments of component-wise posteriors are at most from those of the full history: means in
 * standard deviations, and variances. */
static void find_farthest(int keep, double *mean_off, double *variance_off) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = glm("logistic");
  Mixture mixture = fixture_mixture(&memory, D, 2, 1);
  const Prior prior = exact_prior(&memory, &mixture);
  Rows *rows = all_rows(&likelihood);
  History full = make_history(&memory, RUNS, rows, &likelihood),
          other = filtered(&memory, &mixture, &likelihood, keep);
  double m[2][D * RUNS], s[2][D * D * RUNS];
  int64_t ignored[RUNS] = {0};
  record(&other, rows, 0, N);
  fixture_moments(sampler_find("mixts"), &prior, &full, 1, 0, NULL, m[0], s[0], ignored);
  fixture_moments(sampler_find("mixts"), &prior, &other, 1, 0, NULL, m[1], s[1], ignored);
  *mean_off = *variance_off = 0;
  for (int n = 0; n < RUNS; n++)
    for (int i = 0; i < D; i++) {
      const double v = s[0][i * (D + 1) * RUNS + n];
      *mean_off = fmax(*mean_off, fabs(m[1][i * RUNS + n] - m[0][i * RUNS + n]) / sqrt(v));
      *variance_off = fmax(*variance_off, fabs(s[1][i * (D + 1) * RUNS + n] / v - 1));
    }
  free(rows);
}

/* Checks 60 clicks in each of 19 runs: windows forget little, the filter more, and neither forgets anything
 * that matters (the bounds are twice what was measured). */
static void test_stream(void) {
  double mean[3], variance[3];
  find_farthest(0, &mean[0], &variance[0]);
  find_farthest(5, &mean[1], &variance[1]);
  find_farthest(20, &mean[2], &variance[2]);
  printf("off: filter %.3f %.3f, 5 rows %.3f %.3f, 20 rows %.3f %.3f\n", mean[0], variance[0], mean[1],
         variance[1], mean[2], variance[2]);
  CU_ASSERT_TRUE(mean[0] < 0.6 && variance[0] < 0.6);
  CU_ASSERT_TRUE(mean[1] < mean[0] && mean[2] < 0.1 && variance[2] < 0.1);
}

/* ---- a run on its own */

/* Checks that runs that are stored, loaded elsewhere in another order and continued there have the same
 * bits. */
static void check_moved(int keep) {
  SCRATCH_ARENA(memory);
  enum { HALF = N / 2 };
  const Likelihood likelihood = glm("logistic");
  const Mixture mixture = fixture_mixture(&memory, D, 2, 1);
  Rows *rows = all_rows(&likelihood), *turned = fixture_new(RUNS, sizeof *turned);
  History one = filtered(&memory, &mixture, &likelihood, keep),
          two = filtered(&memory, &mixture, &likelihood, keep);
  const size_t size = history_state(&one);
  double *a = fixture_new(size, sizeof *a), *b = fixture_new(size, sizeof *b);
  record(&one, rows, 0, HALF);
  record(&two, rows, 0, 3);
  history_clear(&two);
  for (int n = 0; n < RUNS; n++) {
    turned[RUNS - 1 - n] = rows[n];
    history_store(&one, n, a);
    history_load(&two, RUNS - 1 - n, HALF, a);
  }
  record(&one, rows, HALF, N);
  record(&two, turned, HALF, N);
  for (int n = 0; n < RUNS; n++) {
    history_store(&one, n, a);
    history_store(&two, RUNS - 1 - n, b);
    check_equal((int)size, a, b);
    CU_ASSERT_EQUAL(history_observations(&two, n), N);
  }
  free(a), free(b), free(rows), free(turned);
}

static void test_moved(void) {
  check_moved(0);
  check_moved(7);
}

/* Checks that a run counts fallbacks only when it forgets, whatever its neighbours do: its pivots are
 * jittered, since it starts with a negative precision. */
static void test_fallbacks(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = glm("logistic");
  const Mixture mixture = fixture_mixture(&memory, D, 1, 1);
  History history = filtered(&memory, &mixture, &likelihood, 0);
  double state[D * (D + 3) / 2 + 1] = {-1e9}, phi[D * RUNS] = {0}, y[RUNS] = {0};
  int arm[RUNS] = {-1};
  int64_t fallbacks[RUNS] = {0};
  CU_ASSERT_EQUAL(history_state(&history), sizeof state / sizeof *state);
  history_load(&history, 0, 1, state);
  history_record(&history, arm, phi, y);
  history_filtered_fallbacks(&history, fallbacks);
  CU_ASSERT_EQUAL(fallbacks[0], 0);
  arm[0] = 0;
  history_record(&history, arm, phi, y);
  history_filtered_fallbacks(&history, fallbacks);
  CU_ASSERT_EQUAL(fallbacks[0], 1);
}

/* ---- options */

static Status create(const Prior *prior, const Likelihood *likelihood, int count, const char *const *sets) {
  SCRATCH_ARENA(memory);
  Config *options;
  Sampler sampler;
  const SamplerOps *method = sampler_find("mixts");
  CHECK_OK(config_options(&memory, "test", sampler_keys(method), count, sets, &options));
  const SamplerSetup setup = {
      .prior = prior, .likelihood = likelihood, .runs = 1, .draws = 1, .options = options};
  return sampler_create(&memory, method, &setup, &sampler);
}

static void test_refused(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = glm("logistic");
  Mixture mixture = fixture_mixture(&memory, D, 2, 1);
  const Prior prior = exact_prior(&memory, &mixture);
  static const char *const bad[][2] = {{"memory=filtered", "candidates=2"},
                                       {"memory=filtered", "approximation=laplace"},
                                       {"memory.keep=5", "temper=2"}};
  for (int k = 0; k < 3; k++) CU_ASSERT_EQUAL(create(&prior, &likelihood, 2, bad[k]), STATUS_INPUT);
  CHECK_OK(create(&prior, &likelihood, 1, bad[0]));
  CHECK_OK(create(&prior, &likelihood, 2, (const char *const[]){"memory.keep=5", "candidates=4"}));
}

int main(void) {
  CU_TestInfo tests[] = {{"the plain version", test_plain},
                         {"windows that forget nothing", test_window},
                         {"streams", test_stream},
                         {"runs that move", test_moved},
                         {"fallbacks", test_fallbacks},
                         {"refused options", test_refused},
                         CU_TEST_INFO_NULL};
  return harness_run("filtered", tests);
}
