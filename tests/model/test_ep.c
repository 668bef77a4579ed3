/* Expectation propagation: a public posterior whose moments are known from elsewhere; a plain version, row by
 * row and with quadrature of its own; lanes that do not affect each other; the moments that sites are made
 * of; and draws that candidates move to the posterior itself. */
#include "glm_fixture.h"

#include "bernoulli_glm.h"
#include "model/history/ep.h"
#include "model/history/irls.h"

enum { RUNS = 19 };

/* ---- moments of a tilted Gaussian */

/* Computes log mass, mean and variance of N(u; m, v) exp(-c deviance / 2), by the rectangle rule. */
static void integrate(const Likelihood *likelihood, double y, double c, double m, double v, int points,
                      double *out) {
  double mass = 0, first = 0, second = 0, top = -INFINITY;
  const double reach = 12 * sqrt(v), low = m - reach - v, step = (2 * reach + 2 * v) / points;
  for (int pass = 0; pass < 2; pass++)
    for (int k = 0; k < points; k++) {
      double u = low + step * (k + 0.5), deviance;
      likelihood->ops->deviance(likelihood, 1, &y, &u, &deviance);
      const double value = -0.5 * c * deviance - 0.5 * (u - m) * (u - m) / v;
      if (pass == 0) top = fmax(top, value);
      if (pass == 0) continue;
      const double weight = exp(value - top);
      mass += weight, first += weight * u, second += weight * u * u;
    }
  out[0] = log(mass * step / sqrt(2 * M_PI * v)) + top;
  out[1] = first / mass;
  out[2] = second / mass - out[1] * out[1];
}

/* Checks clicks to 1e-5 of the tilted Gaussian's own units and 1e-4 of its variance, up to a standard
 * deviation of 3; beyond, to 2% and 6%, errors that are reached at 5, before the closed form takes over, for
 * a reward that is 3 deviations off. */
static void test_clicks(void) {
  const Likelihood likelihood = glm("logistic");
  TiltedNodes nodes;
  history_tilted_nodes(&nodes);
  for (int k = 0; k < 2 * 9 * 13; k++) {
    static const double deviations[] = {1e-4, 0.1, 0.5, 1, 2, 3, 5, 10, 40};
    const double y = k % 2, sd = deviations[k / 2 % 9], m = (k / 18 - 6) * 0.5 * fmax(1, sd), v = sd * sd;
    TiltedMoments out;
    double truth[3];
    integrate(&likelihood, y, 1, m, v, 40000, truth);
    history_tilted_moments_of_clicks(&nodes, &(TiltedCells){real_of(y), real_of(1), real_of(m), real_of(v)},
                                     &out);
    const double log_mass = out.log_mass[0], move = out.move[0], shrink = out.shrink[0];
    const double tolerance = sd <= 3 ? 1e-5 : 0.02, deviation = sqrt(truth[2]);
    CHECK_NEAR(log_mass, truth[0], tolerance);
    CHECK_NEAR((m + move - truth[1]) / deviation, 0, tolerance);
    CHECK_NEAR(shrink * v / truth[2], 1, sd <= 3 ? 1e-4 : 0.06);
  }
}

/* Checks any likelihood and count, with the nodes where the answer lies. */
static void test_counted(void) {
  static const char *const families[] = {"logistic", "poisson"};
  TiltedNodes nodes;
  history_tilted_nodes(&nodes);
  for (int f = 0; f < 2; f++)
    for (int k = 0; k < 3 * 3 * 3; k++) {
      const Likelihood likelihood = glm(families[f]);
      static const double counts[] = {1, 7.5, 300};
      const double c = counts[k % 3], m = (k / 3 % 3 - 1) * 1.5, sd = 0.3 + k / 9, v = sd * sd,
                   y = f == 0 ? 0.3 : 2;
      TiltedMoments out;
      double truth[3];
      integrate(&likelihood, y, c, m, v, 40000, truth);
      const double centre = truth[1] + 0.5 * sqrt(truth[2]), spread = 1.2 * truth[2];
      const Real centres = real_of(centre), spreads = real_of(spread);
      history_tilted_moments(&nodes, &likelihood,
                             &(TiltedCells){real_of(y), real_of(c), real_of(m), real_of(v)}, &centres,
                             &spreads, &out);
      const double log_mass = out.log_mass[0], move = out.move[0], shrink = out.shrink[0];
      CHECK_NEAR(log_mass, truth[0], 1e-5);
      CHECK_NEAR((m + move - truth[1]) / sqrt(truth[2]), 0, 3e-5);
      CHECK_NEAR(shrink * v / truth[2], 1, 2e-4);
    }
}

/* ---- the public posterior */

typedef struct {
  double precision[GLM_D * GLM_D * RUNS], vector[GLM_D * RUNS], log_evidence[RUNS];
  double mean[GLM_D], sd[GLM_D]; /* of run 0 */
  int64_t fallbacks[RUNS];
} Solved;

/* Solves from the mode, or from the evidence that is already there. */
static void solve(Arena *memory, const History *history, double tolerance, bool from_mode, Solved *self) {
  const int runs = history->runs;
  const HistoryView view = {history, 1, 0, runs, NULL, NULL};
  double p[GLM_D * GLM_D], *prior = fixture_new((size_t)(GLM_D * GLM_D * runs), sizeof *prior),
                           *none = fixture_new((size_t)(GLM_D * runs), sizeof *none);
  double mode[GLM_D * RUNS], covariance[GLM_D * GLM_D];
  Irls irls;
  Ep ep;
  glm_prior_precision(p);
  for (int i = 0; i < GLM_D * GLM_D * runs; i++) prior[i] = p[i / runs];
  CHECK_OK(irls_create(memory, GLM_D, runs, 1e-8, &irls));
  CHECK_OK(ep_create(memory, GLM_D, runs, tolerance, &ep));
  const PriorLanes before = {.precision = prior, .vector = none};
  const EvidenceLanes evidence = {.precision = self->precision, .vector = self->vector};
  if (from_mode) irls_solve(&irls, &view, before, evidence, mode, self->fallbacks);
  ep_solve(&ep, &view, before, evidence, self->log_evidence, self->fallbacks);
  const double log_det = fixture_invert(GLM_D, p, covariance);
  for (int n = 0; n < runs; n++) self->log_evidence[n] += 0.5 * log_det;
  for (int i = 0; i < GLM_D * GLM_D; i++) p[i] += self->precision[i * runs];
  fixture_invert(GLM_D, p, covariance);
  for (int i = 0; i < GLM_D; i++) {
    self->mean[i] = 0, self->sd[i] = sqrt(covariance[i * GLM_D + i]);
    for (int j = 0; j < GLM_D; j++) self->mean[i] += covariance[i * GLM_D + j] * self->vector[j * runs];
  }
  free(prior);
  free(none);
}

static void check_public(const Solved *solved, double tolerance) {
  for (int i = 0; i < GLM_D; i++) {
    CHECK_NEAR(solved->mean[i], GLM_EP_MEAN[i], tolerance);
    CHECK_NEAR(solved->sd[i], GLM_EP_SD[i], tolerance);
  }
}

/* Checks the public posterior: the fixed point to the digits that are known; the error that the default
 * tolerance leaves, from the mode and from the posterior of one click less, where the evidence, of second
 * order, is the better part. */
static void test_public_posterior(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = glm("logistic");
  Solved *exact = fixture_new(1, sizeof *exact), *quick = fixture_new(1, sizeof *quick),
         *warm = fixture_new(1, sizeof *warm);
  History history = glm_history(&memory, 1, &likelihood);
  solve(&memory, &history, 1e-9, true, exact);
  check_public(exact, 1e-5);
  CHECK_NEAR(exact->log_evidence[0], GLM_EP_LOG_EVIDENCE, 1e-4);
  solve(&memory, &history, EP_TOLERANCE, true, quick);
  check_public(quick, 5e-3);
  CHECK_NEAR(quick->log_evidence[0], GLM_EP_LOG_EVIDENCE, 2e-3);
  History before;
  CHECK_OK(history_create(&memory, GLM_D, 1, &likelihood, &before));
  CHECK_OK(history_reserve(&before, GLM_ROWS));
  for (int l = 0; l < GLM_ROWS; l++) {
    double phi[GLM_D], y = glm_row(l, phi);
    history_record(&before, NULL, phi, &y);
    if (l >= GLM_ROWS - 20) solve(&memory, &before, EP_TOLERANCE, l == GLM_ROWS - 20, warm);
  }
  check_public(warm, 5e-3);
  CU_ASSERT_EQUAL(exact->fallbacks[0] + quick->fallbacks[0] + warm->fallbacks[0], 0);
  free(exact), free(quick), free(warm);
}

/* ---- a plain version: dense, one row at a time, with the quadrature above */

typedef struct {
  double mean[D_MOST], covariance[SQUARE_MOST], log_evidence; /* up to that of the prior alone */
} Plain;

/* Computes S and m; returns log |S|. */
static double plain_posterior(const Rows *rows, const double *prior, const double *h, const double *lambda,
                              const double *nu, Plain *out) {
  const int d = rows->d;
  double precision[SQUARE_MOST], b[D_MOST];
  memcpy(precision, prior, (size_t)(d * d) * sizeof *prior);
  memcpy(b, h, (size_t)d * sizeof *h);
  for (int l = 0; l < rows->n; l++)
    for (int i = 0; i < d; i++) {
      b[i] += nu[l] * rows->phi[l][i];
      for (int j = 0; j < d; j++) precision[i * d + j] += lambda[l] * rows->phi[l][i] * rows->phi[l][j];
    }
  const double log_det = fixture_invert(d, precision, out->covariance);
  for (int i = 0; i < d; i++) {
    out->mean[i] = 0;
    for (int j = 0; j < d; j++) out->mean[i] += out->covariance[i * d + j] * b[j];
  }
  out->log_evidence = -0.5 * log_det;
  for (int i = 0; i < d; i++) out->log_evidence += 0.5 * out->mean[i] * b[i];
  return -log_det;
}

static void plain_marginal(const Rows *rows, int l, const Plain *self, double *mu, double *v) {
  *mu = *v = 0;
  for (int i = 0; i < rows->d; i++) {
    *mu += rows->phi[l][i] * self->mean[i];
    for (int j = 0; j < rows->d; j++)
      *v += rows->phi[l][i] * self->covariance[i * rows->d + j] * rows->phi[l][j];
  }
}

/* Visits each row in turn, updating the posterior after it (Minka 2001). */
static void plain_ep(const Rows *rows, double temper, const double *prior, const double *h, Plain *out) {
  double lambda[ROWS_MOST] = {0}, nu[ROWS_MOST] = {0}, scale = 0;
  plain_posterior(rows, prior, h, lambda, nu, out);
  for (int sweep = 0; sweep < 25; sweep++) {
    scale = 0;
    for (int l = 0; l < rows->n; l++) {
      double mu, v, tilted[3];
      plain_marginal(rows, l, out, &mu, &v);
      const double w = 1 / (1 / v - lambda[l]), m = w * (mu / v - nu[l]);
      integrate(&rows->likelihood, rows->y[l], temper, m, w, 400, tilted);
      lambda[l] = 1 / tilted[2] - 1 / w, nu[l] = tilted[1] / tilted[2] - m / w;
      scale += tilted[0] + 0.5 * log(1 + lambda[l] * w) +
               0.5 * (m * m / w - pow(m / w + nu[l], 2) / (1 / w + lambda[l]));
      plain_posterior(rows, prior, h, lambda, nu, out);
    }
  }
  out->log_evidence += scale;
}

/* Compares runs with the same observations in lanes of their own, next to harder ones, with the plain
 * version. */
static void check_against_plain(const char *family, double temper, double length) {
  SCRATCH_ARENA(memory);
  enum { D = 3, N = 18 };
  const Likelihood likelihood = glm(family);
  Rows *rows = fixture_new(RUNS, sizeof *rows);
  for (int n = 0; n < RUNS; n++)
    rows[n] = make_rows(&likelihood, D, N, n % 3 ? length : 2 * length, (uint32_t)n);
  History history = make_history(&memory, RUNS, rows, &likelihood);
  const HistoryView view = {&history, 1, 0, RUNS, NULL, NULL};
  double p[D * D], unused[D * D], prior[D * D * RUNS], h[D * RUNS],
      precision[D * D * RUNS] = {0}, vector[D * RUNS] = {0}, mode[D * RUNS], log_evidence[RUNS];
  int64_t fallbacks[RUNS] = {0};
  Mixture mixture = fixture_mixture(&memory, D, 1, 1);
  Irls irls;
  Ep ep;
  history.temper = temper;
  fixture_invert(D, mixture.covariance, p);
  for (int i = 0; i < D * D * RUNS; i++) prior[i] = p[i / RUNS];
  for (int i = 0; i < D * RUNS; i++) h[i] = mixture_information(&mixture, 0)[i / RUNS];
  CHECK_OK(irls_create(&memory, D, RUNS, 1e-8, &irls));
  CHECK_OK(ep_create(&memory, D, RUNS, 1e-10, &ep));
  const PriorLanes before = {.precision = prior, .vector = h};
  const EvidenceLanes evidence = {.precision = precision, .vector = vector};
  irls_solve(&irls, &view, before, evidence, mode, fallbacks);
  ep_solve(&ep, &view, before, evidence, log_evidence, fallbacks);
  for (int n = 0; n < RUNS; n++) {
    Plain plain;
    double mine[D * D];
    plain_ep(&rows[n], temper, p, mixture_information(&mixture, 0), &plain);
    for (int i = 0; i < D * D; i++) mine[i] = p[i] + precision[i * RUNS + n];
    fixture_invert(D, mine, unused);
    for (int i = 0; i < D; i++) {
      const double sd = sqrt(plain.covariance[i * D + i]);
      double mean = 0;
      for (int j = 0; j < D; j++)
        mean += unused[i * D + j] * (mixture_information(&mixture, 0)[j] + vector[j * RUNS + n]);
      CHECK_NEAR((mean - plain.mean[i]) / sd, 0, 1e-5);
      CHECK_NEAR(sqrt(unused[i * D + i]) / sd, 1, 1e-5);
    }
    CHECK_NEAR(log_evidence[n], plain.log_evidence, 1e-4);
    CU_ASSERT_EQUAL(fallbacks[n], 0);
  }
  free(rows);
}

static void test_plain(void) {
  check_against_plain("logistic", 1, 1.5);
  check_against_plain("logistic", 0.7, 1.5);
  check_against_plain("poisson", 1, 0.7);
}

/* ---- lanes and rows */

/* Checks that a run alone has the same bits as among others. */
static void test_alone(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = glm("logistic");
  History one = glm_history(&memory, 1, &likelihood), many = glm_history(&memory, RUNS, &likelihood);
  Solved *alone = fixture_new(1, sizeof *alone), *among = fixture_new(1, sizeof *among);
  solve(&memory, &one, EP_TOLERANCE, true, alone);
  solve(&memory, &many, EP_TOLERANCE, true, among);
  for (int n = 0; n < RUNS; n++) {
    CU_ASSERT_EQUAL(among->log_evidence[n], alone->log_evidence[0]);
    for (int i = 0; i < GLM_D * GLM_D; i++)
      CU_ASSERT_EQUAL(among->precision[i * RUNS + n], alone->precision[i]);
  }
  free(alone), free(among);
}

/* ---- draws */

/* Draws from the public posterior, 4 000 times: means within 4 standard errors and the 2% of a deviation that
 * eight candidates leave (Laplace is 0.23 to 0.56 off), deviations within 5% (Laplace: down to 0.87). */
static void test_candidates(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 4000 };
  const Likelihood likelihood = glm("logistic");
  double p[GLM_D * GLM_D];
  Mixture mixture;
  Prior prior;
  PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
  History history = glm_history(&memory, 1, &likelihood);
  int64_t fallbacks;
  glm_prior_precision(p);
  CHECK_OK(mixture_create(&memory, GLM_D, 1, &mixture));
  mixture.weight[0] = 1;
  fixture_invert(GLM_D, p, mixture.covariance);
  CHECK_OK(mixture_prepare(&mixture));
  prior = fixture_exact_prior(&memory, &mixture, &fit);
  double *theta = fixture_draw(sampler_find("ts"), &prior, &history, 0, DRAWS, 0, NULL, &fallbacks);
  CU_ASSERT_EQUAL(fallbacks, 0);
  for (int i = 0; i < GLM_D; i++) {
    double mean = 0, square = 0;
    for (int m = 0; m < DRAWS; m++) mean += theta[i * DRAWS + m] / DRAWS;
    for (int m = 0; m < DRAWS; m++) square += pow(theta[i * DRAWS + m] - mean, 2) / DRAWS;
    CHECK_NEAR((mean - GLM_MEAN[i]) / GLM_SD[i], 0, 0.02 + 4 / sqrt(DRAWS));
    CHECK_NEAR(sqrt(square) / GLM_SD[i], 1, 0.05);
  }
  free(theta);
}

int main(void) {
  CU_TestInfo tests[] = {{"moments of single clicks", test_clicks},
                         {"moments of counted rows", test_counted},
                         {"a public posterior", test_public_posterior},
                         {"the plain version", test_plain},
                         {"a run alone", test_alone},
                         {"draws with candidates", test_candidates},
                         CU_TEST_INFO_NULL};
  return harness_run("ep", tests);
}
