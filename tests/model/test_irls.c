/* IRLS: modes against scikit-learn and SciPy; separable data, long features and far starts; the closed form
 * under a Gaussian likelihood; the evidence that it leaves. */
#include "core/arena.h"
#include "sampler_fixture.h"

#include "irls_golden.h"
#include "model/history/irls.h"

enum { D = GOLDEN_D, ROWS = GOLDEN_ROWS, RUNS = 19, DRAWS = 3, LANES = RUNS * DRAWS, ROWS_MOST = 200 };

typedef struct {
  History history;
  HistoryView view;
  Irls irls;
  double prior_precision[D * D * LANES], prior_vector[D * LANES]; /* P, h in the view's coordinates */
  double precision[D * D * LANES], vector[D * LANES], mode[D * LANES];
  int64_t fallbacks[RUNS];
} Problem;

static double scale_of(const Problem *self, int i) { return self->view.scale ? self->view.scale[i] : 1; }
static double shift_of(const Problem *self, int i) { return self->view.shift ? self->view.shift[i] : 0; }

/* Makes a problem in which every run gets the same observations in another order, and every lane the same
 * prior and another start (lane 0 the start without evidence). */
static void problem_create(Arena *memory, const GoldenMode *golden, const Likelihood *likelihood, int draws,
                           bool mapped, double tolerance, Problem *self) {
  static const double shift[D] = {0.5, -1, 2, 0}, scale[D] = {2, 0.3, 1, 5};
  const int lanes = RUNS * draws;
  *self = (Problem){0};
  CHECK_OK(history_create(memory, D, RUNS, likelihood, &self->history));
  CHECK_OK(history_reserve(&self->history, ROWS));
  CHECK_OK(irls_create(memory, D, lanes, tolerance, &self->irls));
  self->view = (HistoryView){&self->history, draws, 0, lanes, mapped ? shift : NULL, mapped ? scale : NULL};
  for (int t = 0; t < ROWS; t++) {
    double phi[D * RUNS], y[RUNS];
    for (int n = 0; n < RUNS; n++) {
      y[n] = golden->y[(t + n) % ROWS];
      for (int i = 0; i < D; i++) phi[i * RUNS + n] = golden->phi[(t + n) % ROWS][i];
    }
    history_record(&self->history, NULL, phi, y);
  }
  Rng rng = fixture_rng(0, 3);
  rng_normal(&rng, D * lanes, self->vector);
  for (int n = 0; n < lanes; n++)
    for (int i = 0; i < D; i++) {
      self->precision[(i * D + i) * lanes + n] = n;
      self->vector[i * lanes + n] *= n;
      for (int j = 0; j < D; j++) {
        double p = scale_of(self, i) * golden->precision[i][j];
        self->prior_precision[(i * D + j) * lanes + n] = p * scale_of(self, j);
        self->prior_vector[i * lanes + n] += p * (golden->mean[j] - shift_of(self, j));
      }
    }
}

static void problem_solve(Problem *self) {
  const PriorLanes prior = {.precision = self->prior_precision, .vector = self->prior_vector};
  const EvidenceLanes evidence = {.precision = self->precision, .vector = self->vector};
  irls_solve(&self->irls, &self->view, prior, evidence, self->mode, self->fallbacks);
}

static void lane_theta(const Problem *self, int n, double theta[D]) {
  for (int i = 0; i < D; i++)
    theta[i] = shift_of(self, i) + scale_of(self, i) * self->mode[i * self->view.lanes + n];
}

/* Computes gradient[D] and Hessian, negated, of the log posterior at theta, by its definition. */
static void posterior(const GoldenMode *golden, const Likelihood *likelihood, const double *theta,
                      double *gradient, double *hessian) {
  for (int i = 0; i < D; i++) {
    gradient[i] = 0;
    for (int j = 0; j < D; j++) {
      gradient[i] -= golden->precision[i][j] * (theta[j] - golden->mean[j]);
      hessian[i * D + j] = golden->precision[i][j];
    }
  }
  for (int t = 0; t < ROWS; t++) {
    double u = 0, slope, curvature;
    const double *phi = golden->phi[t];
    for (int i = 0; i < D; i++) u += phi[i] * theta[i];
    likelihood->ops->derivatives(likelihood, 1, &golden->y[t], &u, &slope, &curvature);
    for (int i = 0; i < D; i++) {
      gradient[i] += slope * phi[i];
      for (int j = 0; j < D; j++) hessian[i * D + j] -= curvature * phi[i] * phi[j];
    }
  }
}

/* Returns sqrt(v' A v). */
static double norm(const double *a, const double *v) {
  double sum = 0;
  for (int i = 0; i < D; i++)
    for (int j = 0; j < D; j++) sum += v[i] * a[i * D + j] * v[j];
  return sqrt(sum);
}

/* Checks what irls.h promises of a solution, settled or not: (P + Lambda) mode = h + b. */
static void check_evidence(const Problem *self, int n) {
  const int lanes = self->view.lanes;
  for (int i = 0; i < D; i++) {
    double sum = 0, size = 1;
    for (int j = 0; j < D; j++) {
      const int at = (i * D + j) * lanes + n;
      double term = (self->prior_precision[at] + self->precision[at]) * self->mode[j * lanes + n];
      sum += term, size += fabs(term);
    }
    CHECK_NEAR(sum, self->prior_vector[i * lanes + n] + self->vector[i * lanes + n], 1e-12 * size);
  }
}

/* Checks L L' = P + Lambda. */
static void check_factor(const Problem *self, int n) {
  const int lanes = self->view.lanes;
  for (int i = 0; i < D; i++)
    for (int j = 0; j <= i; j++) {
      double sum = 0;
      for (int k = 0; k <= j; k++)
        sum += self->irls.factor[(i * D + k) * lanes + n] * self->irls.factor[(j * D + k) * lanes + n];
      double expected =
          self->prior_precision[(i * D + j) * lanes + n] + self->precision[(i * D + j) * lanes + n];
      CHECK_NEAR(sum, expected, 1e-11 * (1 + fabs(expected)));
    }
}

/* Checks the golden modes, which are stationary to 2e-9 (checked when they were made). The distance to the
 * mode in posterior standard deviations is that of the gradient in the inverse Hessian; the requested
 * tolerance is 1e-10, plus rounding. */
static void test_golden_modes(void) {
  SCRATCH_ARENA(memory);
  for (size_t c = 0; c < sizeof golden_modes / sizeof *golden_modes; c++)
    for (int draws = 1; draws <= DRAWS; draws += DRAWS - 1)
      for (int mapped = 0; mapped < 2; mapped++) {
        const GoldenMode *golden = &golden_modes[c];
        const Likelihood likelihood = {.ops = likelihood_find(golden->family), .noise = 1};
        static Problem self;
        problem_create(&memory, golden, &likelihood, draws, mapped, 1e-10, &self);
        problem_solve(&self);
        for (int n = 0; n < self.view.lanes; n++) {
          double theta[D], gradient[D], hessian[D * D], covariance[D * D];
          lane_theta(&self, n, theta);
          for (int i = 0; i < D; i++) CHECK_NEAR(theta[i], golden->mode[i], 1e-8);
          posterior(golden, &likelihood, theta, gradient, hessian);
          fixture_invert(D, hessian, covariance);
          CHECK_NEAR(norm(covariance, gradient), 0, 1e-9);
          check_evidence(&self, n);
          check_factor(&self, n);
          /* The evidence precision is the Hessian at the mode, in the view's coordinates. */
          for (int i = 0; i < D; i++)
            for (int j = 0; j < D; j++) {
              const int at = (i * D + j) * self.view.lanes + n;
              double expected = scale_of(&self, i) * scale_of(&self, j) * hessian[i * D + j];
              CHECK_NEAR(self.prior_precision[at] + self.precision[at], expected,
                         1e-4 * (1 + fabs(expected)));
            }
        }
        for (int b = 0; b < RUNS; b++) CU_ASSERT_EQUAL(self.fallbacks[b], 0);
      }
}

/* Checks that one pass gives the closed form, from any start; as rows, because the family is made to look not
 * conjugate. */
static void test_gaussian_closed_form(void) {
  SCRATCH_ARENA(memory);
  LikelihoodOps rows = *likelihood_find("gaussian");
  rows.quadratic = false;
  const Likelihood likelihood = {.ops = &rows, .noise = 0.3};
  GoldenMode golden = golden_modes[2];
  static Problem self;
  Rng rng = fixture_rng(0, 4);
  rng_normal(&rng, ROWS, golden.y);
  for (int mapped = 0; mapped < 2; mapped++) {
    double a[D * D] = {0}, inverse[D * D], b[D] = {0};
    for (int i = 0; i < D; i++)
      for (int j = 0; j < D; j++) {
        a[i * D + j] = golden.precision[i][j];
        b[i] += golden.precision[i][j] * golden.mean[j];
        for (int t = 0; t < ROWS; t++) a[i * D + j] += golden.phi[t][i] * golden.phi[t][j] / 0.09;
      }
    for (int t = 0; t < ROWS; t++)
      for (int i = 0; i < D; i++) b[i] += golden.phi[t][i] * golden.y[t] / 0.09;
    fixture_invert(D, a, inverse);
    problem_create(&memory, &golden, &likelihood, DRAWS, mapped, 1e-10, &self);
    problem_solve(&self);
    for (int n = 0; n < LANES; n++) {
      double theta[D];
      lane_theta(&self, n, theta);
      for (int i = 0; i < D; i++) {
        double expected = 0;
        for (int j = 0; j < D; j++) {
          expected += inverse[i * D + j] * b[j];
          const int at = (i * D + j) * LANES + n;
          double s = scale_of(&self, i) * scale_of(&self, j);
          CHECK_NEAR((self.prior_precision[at] + self.precision[at]) / s, a[i * D + j], 1e-10 * a[i * D + i]);
        }
        CHECK_NEAR(theta[i], expected, 1e-10);
      }
      check_evidence(&self, n);
    }
    for (int r = 0; r < RUNS; r++) CU_ASSERT_EQUAL(self.fallbacks[r], 0);
  }
}

/* Checks that with nothing observed the mode is the prior's mean. */
static void test_no_observations(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = {.ops = likelihood_find("poisson"), .noise = 1};
  static Problem self;
  problem_create(&memory, &golden_modes[2], &likelihood, DRAWS, false, 1e-10, &self);
  history_clear(&self.history);
  problem_solve(&self);
  for (int n = 0; n < LANES; n++)
    for (int i = 0; i < D; i++) CHECK_NEAR(self.mode[i * LANES + n], golden_modes[2].mean[i], 1e-12);
}

/* Logistic rewards of features of one length, every run with its own: y = 1 where phi' theta > 0, except in
 * rows that are flipped. */
typedef struct {
  int n; /* rows */
  double phi[ROWS_MOST][D][RUNS], y[ROWS_MOST][RUNS];
} Labels;

static void make_labels(double length, int n, int flip_every, Labels *out) {
  Rng rng = fixture_rng((uint32_t)n, 5);
  double theta[D * RUNS];
  out->n = n;
  rng_normal(&rng, D * RUNS, theta);
  for (int t = 0; t < n; t++) {
    double phi[D * RUNS];
    rng_normal(&rng, D * RUNS, phi);
    for (int b = 0; b < RUNS; b++) {
      double u = 0, square = 0;
      for (int i = 0; i < D; i++) {
        u += phi[i * RUNS + b] * theta[i * RUNS + b];
        square += phi[i * RUNS + b] * phi[i * RUNS + b];
      }
      for (int i = 0; i < D; i++) out->phi[t][i][b] = length * phi[i * RUNS + b] / sqrt(square);
      out->y[t][b] = (u > 0) != (flip_every > 0 && t % flip_every == 0);
    }
  }
}

/* Computes |gradient of the log posterior| of run b at theta[D] under the prior N(0, I), in posterior
 * standard deviations. */
static double from_mode(const Labels *labels, int b, const double *theta) {
  double gradient[D], hessian[D * D] = {0}, covariance[D * D];
  for (int i = 0; i < D; i++) gradient[i] = -theta[i], hessian[i * (D + 1)] = 1;
  for (int t = 0; t < labels->n; t++) {
    double u = 0;
    for (int i = 0; i < D; i++) u += labels->phi[t][i][b] * theta[i];
    double wrong =
        1 / (1 + exp(fmin(labels->y[t][b] > 0 ? u : -u, 700))); /* probability of the other reward */
    for (int i = 0; i < D; i++) {
      gradient[i] += (labels->y[t][b] > 0 ? wrong : -wrong) * labels->phi[t][i][b];
      for (int j = 0; j < D; j++)
        hessian[i * D + j] += wrong * (1 - wrong) * labels->phi[t][i][b] * labels->phi[t][j][b];
    }
  }
  fixture_invert(D, hessian, covariance);
  return norm(covariance, gradient);
}

/* Checks starts of size 0 to 1e6 from N(0, I). Rounding of a sum of 200 terms of size 1e3, with a curvature
 * of up to 1e6 each: 1e-8 standard deviations. */
static void check_labels(double length, int n, int flip_every) {
  SCRATCH_ARENA(memory);
  static const double starts[] = {0, 1, 1e3, 1e6};
  static Labels labels;
  const Likelihood likelihood = {.ops = likelihood_find("logistic"), .noise = 1};
  make_labels(length, n, flip_every, &labels);
  History history;
  Irls irls;
  CHECK_OK(history_create(&memory, D, RUNS, &likelihood, &history));
  CHECK_OK(history_reserve(&history, n));
  CHECK_OK(irls_create(&memory, D, RUNS, 1e-10, &irls));
  for (int t = 0; t < n; t++) history_record(&history, NULL, &labels.phi[t][0][0], labels.y[t]);
  const HistoryView view = {&history, 1, 0, RUNS, NULL, NULL};
  for (size_t s = 0; s < sizeof starts / sizeof *starts; s++) {
    double prior_precision[D * D * RUNS] = {0}, prior_vector[D * RUNS] = {0};
    double precision[D * D * RUNS] = {0}, vector[D * RUNS], mode[D * RUNS];
    int64_t fallbacks[RUNS] = {0};
    Rng rng = fixture_rng((uint32_t)s, 6);
    rng_normal(&rng, D * RUNS, vector);
    for (int k = 0; k < D * RUNS; k++) vector[k] *= starts[s];
    for (int i = 0; i < D; i++)
      for (int b = 0; b < RUNS; b++) prior_precision[(i * D + i) * RUNS + b] = 1;
    const PriorLanes prior = {.precision = prior_precision, .vector = prior_vector};
    const EvidenceLanes evidence = {.precision = precision, .vector = vector};
    irls_solve(&irls, &view, prior, evidence, mode, fallbacks);
    for (int b = 0; b < RUNS; b++) {
      double theta[D];
      for (int i = 0; i < D; i++) theta[i] = mode[i * RUNS + b];
      CHECK_NEAR(from_mode(&labels, b, theta), 0, 1e-8);
      CU_ASSERT_EQUAL(fallbacks[b], 0);
    }
  }
}

/* Checks separable rewards, and rewards with every tenth one flipped. */
static void test_long_features(void) {
  static const int rows[] = {5, 20, 60, ROWS_MOST};
  for (double length = 1; length <= 1000; length *= 10)
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
      check_labels(length, rows[k], 0);
      check_labels(length, rows[k], 10);
    }
}

/* Checks lanes that do not settle. A Poisson rate falls by a factor of about e per step and has a limit of
 * e^80 (likelihood.c), beyond which the slope carries no information, so that from e^300 the mode is out of
 * reach: every such lane counts once, its neighbour that starts well does not, and the evidence still fits
 * the mode. */
static void test_lanes_that_do_not_settle_count(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = {.ops = likelihood_find("poisson"), .noise = 1};
  GoldenMode golden = golden_modes[2];
  static Problem self;
  for (int t = 0; t < ROWS; t++) golden.phi[t][0] = 1;
  problem_create(&memory, &golden, &likelihood, DRAWS, false, 1e-10, &self);
  memset(self.precision, 0, sizeof self.precision);
  memset(self.vector, 0, sizeof self.vector);
  for (int n = 1; n < LANES; n++) /* start at mean + (300, 0, ..) */
    for (int i = 0; i < D; i++) self.vector[i * LANES + n] = 300 * golden.precision[i][0];
  problem_solve(&self);
  for (int b = 0; b < RUNS; b++) CU_ASSERT_EQUAL(self.fallbacks[b], b == 0 ? DRAWS - 1 : DRAWS);
  for (int n = 0; n < LANES; n++) check_evidence(&self, n);
}

int main(void) {
  CU_TestInfo tests[] = {{"modes of scikit-learn and SciPy", test_golden_modes},
                         {"Gaussian likelihood: the closed form", test_gaussian_closed_form},
                         {"no observations", test_no_observations},
                         {"separable rewards, long features, far starts", test_long_features},
                         {"lanes that do not settle count", test_lanes_that_do_not_settle_count},
                         CU_TEST_INFO_NULL};
  return harness_run("irls", tests);
}
