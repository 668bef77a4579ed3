/* A network as mean reward: gradient, Gauss-Newton and exact Hessian against finite differences in double
 * precision, batches, and samplers that accept it. */
#include "catch_up_fixture.h"
#include "model/network/network_plain.h"

#include "core/arena.h"
#include "sampler/gradient/potential.h"

/* p = 4 * 5 + 5 * 4 + 5. 70 rows are more than the network processes at once. */
enum { D = 3, P = 49, RUNS = 2, ROWS = 70 };
static const int HIDDEN[] = {5, 4};
static const double ETA = 2.5, LAMBDA = 0.6;

static Likelihood network_likelihood(const char *family, int d, int hidden_count, const int *hidden) {
  return (Likelihood){
      .ops = likelihood_find(family), .noise = 0.7, .network = network_shape(d, hidden_count, hidden, 1)};
}

typedef struct {
  Likelihood likelihood;
  Prior prior;
  int rows;
  double phi[ROWS][D][RUNS], y[ROWS][RUNS], theta[P * RUNS];
  History history;
  FixtureSampler lmc;
  Potential potential;
} Case;

static double output(const Case *c, int run, int row, const double *theta) {
  double phi[D], u;
  for (int i = 0; i < D; i++) phi[i] = (float)c->phi[row][i][run];
  network_plain_forward(&c->likelihood.network, theta, phi, &u);
  return u;
}

/* Returns theta of a run, as the program rounds it. */
static void weights(const Case *c, int run, double *theta) {
  for (int i = 0; i < P; i++) theta[i] = (float)c->theta[i * RUNS + run];
}

/* Begins a case. `residual` NAN: any rewards; otherwise every reward is the network's output plus residual
 * times a number of its row. */
static void begin(Arena *memory, Case *c, int rows, double residual) {
  const char *sets[] = {"eta=2.5", "lambda=0.6"};
  Rng rng = fixture_rng(0, 8000);
  double normal[ROWS];
  memset(c, 0, sizeof *c);
  c->rows = rows;
  c->likelihood = network_likelihood("gaussian", D, 2, HIDDEN);
  CU_ASSERT_EQUAL_FATAL(network_parameters(&c->likelihood.network), P);
  CHECK_OK(prior_weights(P, &c->prior));
  rng_normal(&rng, ROWS * D * RUNS, &c->phi[0][0][0]);
  rng_normal(&rng, P * RUNS, c->theta);
  rng_normal(&rng, ROWS, normal);
  for (int i = 0; i < P * RUNS; i++) c->theta[i] *= 0.7;
  CHECK_OK(history_create(memory, D, RUNS, &c->likelihood, &c->history));
  CHECK_OK(history_reserve(&c->history, rows));
  for (int l = 0; l < rows; l++) {
    for (int run = 0; run < RUNS; run++) {
      double theta[P];
      weights(c, run, theta);
      c->y[l][run] = isnan(residual) ? 2 * normal[l] : output(c, run, l, theta) + residual * normal[l];
    }
    history_record(&c->history, NULL, &c->phi[l][0][0], c->y[l]);
  }
  c->lmc = make_sampler(memory, "lmc", &c->prior, &c->likelihood, 0, RUNS, 1, 2, sets);
  CHECK_OK(potential_create(memory, &c->lmc.sampler.setup, RUNS, &c->potential));
  potential_at(&c->potential, &(HistoryView){&c->history, 1, 0, RUNS, NULL, NULL});
}

static void end(Case *c) { free_sampler(&c->lmc); }

/* Computes U of a run from its definition. */
static double definition(const Case *c, int run, const double *theta) {
  double loss = 0, square = 0;
  for (int i = 0; i < P; i++) square += theta[i] * theta[i];
  for (int l = 0; l < c->rows; l++) {
    const double error = c->y[l][run] - output(c, run, l, theta);
    loss += 0.5 * error * error;
  }
  return ETA * (0.5 * LAMBDA * square + loss);
}

/* Central differences of a function of theta along coordinate i, or i and j. No ReLU of these examples
 * switches within the step, except for the few that a tolerance on the worst would reveal. */
static const double STEP = 1e-5, WIDE = 1e-3;

static double slope_of(const Case *c, int run, int i) {
  double theta[P], side[2];
  for (int k = 0; k < 2; k++) {
    weights(c, run, theta);
    theta[i] += k ? STEP : -STEP;
    side[k] = definition(c, run, theta);
  }
  return (side[1] - side[0]) / (2 * STEP);
}

static double output_slope(const Case *c, int run, int row, int i) {
  double theta[P], side[2];
  for (int k = 0; k < 2; k++) {
    weights(c, run, theta);
    theta[i] += k ? STEP : -STEP;
    side[k] = output(c, run, row, theta);
  }
  return (side[1] - side[0]) / (2 * STEP);
}

/* Returns entry (i, j) of the Hessian of U, by four corners: f is linear in each weight where no ReLU
 * switches, so the step can be wide. */
static double curvature_of(const Case *c, int run, int i, int j) {
  double u[4];
  for (int corner = 0; corner < 4; corner++) {
    double theta[P];
    weights(c, run, theta);
    theta[i] += corner & 1 ? WIDE : -WIDE;
    theta[j] += corner & 2 ? WIDE : -WIDE;
    u[corner] = definition(c, run, theta);
  }
  return (u[3] - u[1] - u[2] + u[0]) / (4 * WIDE * WIDE);
}

/* Checks the gradient to single precision, and the Gauss-Newton Hessian eta (lambda I + J'J). */
static void test_derivatives(void) {
  SCRATCH_ARENA(memory);
  static Case c;
  static double jacobian[ROWS][P], hessian[P * P * RUNS];
  double gradient[P * RUNS], alone[P * RUNS], bound[RUNS];
  begin(&memory, &c, ROWS, NAN);
  potential_derivatives(&c.potential, c.theta, alone, NULL);
  potential_derivatives(&c.potential, c.theta, gradient, hessian);
  potential_ceiling(&c.potential, c.theta, bound, NULL);
  /* The history can be emptied and filled again. */
  double again[P * RUNS];
  history_clear(&c.history);
  for (int l = 0; l < ROWS; l++) history_record(&c.history, NULL, &c.phi[l][0][0], c.y[l]);
  potential_derivatives(&c.potential, c.theta, again, NULL);
  CU_ASSERT(memcmp(again, alone, sizeof again) == 0);
  for (int run = 0; run < RUNS; run++) {
    double trace = ETA * LAMBDA;
    for (int i = 0; i < P; i++) {
      const double expected = slope_of(&c, run, i);
      CHECK_NEAR(alone[i * RUNS + run], expected, 2e-5 * (100 + fabs(expected)));
      CHECK_NEAR(gradient[i * RUNS + run], expected, 2e-5 * (100 + fabs(expected)));
      for (int l = 0; l < ROWS; l++) jacobian[l][i] = output_slope(&c, run, l, i);
    }
    for (int i = 0; i < P; i++)
      for (int j = 0; j < P; j++) {
        double expected = i == j ? LAMBDA : 0;
        for (int l = 0; l < ROWS; l++) expected += jacobian[l][i] * jacobian[l][j];
        CHECK_NEAR(hessian[(i * P + j) * RUNS + run], ETA * expected, 2e-5 * (100 + ETA * fabs(expected)));
        if (i == j) trace += ETA * (expected - LAMBDA);
      }
    CHECK_NEAR(bound[run], trace, 1e-4 * trace);
  }
  end(&c);
}

/* Returns the layer of a weight: f is linear in those of one layer, so the Hessian of f has no entries within
 * a layer. */
static int layer_of(int i) { return i < 20 ? 0 : i < 44 ? 1 : 2; }

/* Checks exact minus Gauss-Newton Hessian: zero where the network fits the rewards or within a layer;
 * elsewhere proportional to the residuals, and not zero. */
static void test_exact_hessian(void) {
  SCRATCH_ARENA(memory);
  enum { FEW = 6 };
  static Case c;
  static double hessian[P * P * RUNS], first[P][P];
  double gradient[P * RUNS];
  for (int k = 0; k < 3; k++) {
    double largest = 0;
    begin(&memory, &c, FEW, 0.5 * k);
    potential_derivatives(&c.potential, c.theta, gradient, hessian);
    for (int i = 0; i < P; i++)
      for (int j = 0; j < P; j++) {
        const double difference = curvature_of(&c, 0, i, j) - hessian[(i * P + j) * RUNS];
        if (k == 0 || layer_of(i) == layer_of(j)) CHECK_NEAR(difference, 0, 2e-3);
        if (k == 1) first[i][j] = difference;
        if (k == 2) CHECK_NEAR(difference, 2 * first[i][j], 4e-3);
        largest = fmax(largest, fabs(difference));
      }
    if (k > 0) CU_ASSERT(largest > 0.3 * k);
    end(&c);
  }
}

/* ---- samplers */

enum { SMALL_D = 2, DRAWS = 3, SMALL_RUNS = 3, SMALL_ROWS = 6 };

static double *draw(Arena *memory, const SamplerOps *method, const Prior *prior, const Likelihood *likelihood,
                    int first_run, int runs, int64_t *fallbacks) {
  History history = fixture_history(memory, SMALL_D, runs, (uint32_t)first_run, SMALL_ROWS, likelihood);
  double *theta = fixture_draw(method, prior, &history, (uint32_t)first_run, DRAWS, 0, NULL, fallbacks);
  return theta;
}

/* Checks every sampler that accepts networks: finite draws, the same bytes when repeated, and a run's draws
 * do not depend on its neighbours. */
static void test_every_sampler(void) {
  SCRATCH_ARENA(memory);
  const int hidden[] = {4, 3};
  const Likelihood likelihood = network_likelihood("gaussian", SMALL_D, 2, hidden);
  const int p = (int)network_parameters(&likelihood.network);
  int64_t fallbacks[SMALL_RUNS];
  int methods = 0;
  char sentence[256];
  Prior prior;
  CHECK_OK(prior_weights(p, &prior));
  for (int i = 0; sampler_method(i); i++) {
    const SamplerOps *method = sampler_method(i);
    if (sampler_misfit(method, &prior, &likelihood, sizeof sentence, sentence)) {
      CU_ASSERT_FALSE(method->networks);
      continue;
    }
    methods++;
    double *block = draw(&memory, method, &prior, &likelihood, 0, SMALL_RUNS, fallbacks);
    double *again = draw(&memory, method, &prior, &likelihood, 0, SMALL_RUNS, NULL);
    const int lanes = SMALL_RUNS * DRAWS;
    CU_ASSERT(memcmp(block, again, (size_t)(p * lanes) * sizeof *block) == 0);
    for (int j = 0; j < p * lanes; j++) CU_ASSERT_FATAL(isfinite(block[j]));
    for (int run = 0; run < SMALL_RUNS; run++) {
      CU_ASSERT_EQUAL(fallbacks[run], 0);
      double *alone = draw(&memory, method, &prior, &likelihood, run, 1, NULL);
      for (int j = 0; j < p; j++)
        CU_ASSERT(memcmp(alone + j * DRAWS, block + j * lanes + run * DRAWS, DRAWS * sizeof *alone) == 0);
      free(alone);
    }
    free(block);
    free(again);
  }
  CU_ASSERT(methods >= 4);
}

/* Checks a network without hidden layers: it is linear, f = w' phi + b, so Langevin chains settle where those
 * of the linear model with features (phi, 1) do: at N(V^-1 b, V^-1 / eta). Mean over chains after many steps;
 * the discretisation moves no mean. */
static void test_linear_network(void) {
  SCRATCH_ARENA(memory);
  enum { CHAINS = 400, DIM = SMALL_D + 1 };
  static const char *const sets[] = {"eta=2", "lambda=0.5", "steps=60"};
  const Likelihood likelihood = network_likelihood("gaussian", SMALL_D, 0, NULL);
  FixtureData data = fixture_data(SMALL_D, SMALL_ROWS, likelihood.noise, 0);
  History history = fixture_history(&memory, SMALL_D, 1, 0, SMALL_ROWS, &likelihood);
  double v[DIM * DIM], b[DIM] = {0}, inverse[DIM * DIM];
  Prior prior;
  CHECK_OK(prior_weights(DIM, &prior));
  for (int i = 0; i < DIM * DIM; i++) v[i] = i % (DIM + 1) == 0 ? 0.5 : 0;
  for (int l = 0; l < data.n; l++)
    for (int i = 0; i < DIM; i++) {
      const double x = i < SMALL_D ? data.phi[l][i] : 1;
      b[i] += x * data.y[l];
      for (int j = 0; j < DIM; j++) v[i * DIM + j] += x * (j < SMALL_D ? data.phi[l][j] : 1);
    }
  fixture_invert(DIM, v, inverse);
  double *theta = fixture_draw(sampler_find("lmc"), &prior, &history, 0, CHAINS, 3, sets, NULL);
  for (int i = 0; i < DIM; i++) {
    double expected = 0, mean = 0, square = 0;
    for (int j = 0; j < DIM; j++) expected += inverse[i * DIM + j] * b[j];
    for (int n = 0; n < CHAINS; n++) {
      mean += theta[i * CHAINS + n] / CHAINS;
      square += theta[i * CHAINS + n] * theta[i * CHAINS + n] / CHAINS;
    }
    const double variance = square - mean * mean;
    CHECK_NEAR(mean, expected, 5 * sqrt(variance / CHAINS));
    /* Within the noise of 400 chains and the discretisation's 1 / (1 - a / 2), a <= 0.4. */
    CHECK_NEAR(variance / (inverse[i * (DIM + 1)] / 2), 1.1, 0.3);
  }
  free(theta);
}

static void test_refusals(void) {
  const Likelihood gaussian = network_likelihood("gaussian", 2, 2, HIDDEN),
                   logistic = network_likelihood("logistic", 2, 2, HIDDEN);
  char sentence[256];
  Prior prior;
  CHECK_OK(prior_weights((int)network_parameters(&gaussian.network), &prior));
  CU_ASSERT_TRUE(sampler_misfit(sampler_find("lints"), &prior, &gaussian, sizeof sentence, sentence));
  CU_ASSERT_PTR_NOT_NULL(strstr(sentence, "one of vits1, vits2, vits2_hf, lmc"));
  CU_ASSERT_TRUE(sampler_misfit(sampler_find("lmc"), &prior, &logistic, sizeof sentence, sentence));
  CU_ASSERT_FALSE(sampler_misfit(sampler_find("lmc"), &prior, &gaussian, sizeof sentence, sentence));
  /* Matrices of a network that are larger than any machine should be asked for. */
  const int wide[] = {60, 60};
  const Likelihood large = network_likelihood("gaussian", 20, 2, wide);
  CHECK_OK(prior_weights((int)network_parameters(&large.network), &prior));
  fixture_refused("vits2", &prior, &large, 64, 1, "eta=1", "reduce block");
}

int main(void) {
  CU_TestInfo tests[] = {{"gradient and Gauss-Newton Hessian by finite differences", test_derivatives},
                         {"what the exact Hessian has beyond it", test_exact_hessian},
                         {"every sampler that takes networks", test_every_sampler},
                         {"a network without hidden layers is the linear model", test_linear_network},
                         {"refusals", test_refusals},
                         CU_TEST_INFO_NULL};
  return harness_run("network_rows", tests);
}
