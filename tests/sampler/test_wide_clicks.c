/* Clicks and counts that are all 0 under wide priors, whose posterior goes on far beyond where expectation
 * propagation puts it, and counts so large that it fails: draws compared with sums over a grid, and with the
 * closed form of a precise count; the check of draws accuses none that are right, and names those that are
 * wrong. One dimension, or features along the axes of two and five, turned. */
#include "glm_fixture.h"
#include "sampler/check/spread.h"

enum { POINTS = 40001, DRAWS = 2000, FEW = 300 };

/* ---- the posterior of n rewards with the sum `total` at phi = 1 under N(0, sd^2), on a grid */

typedef struct {
  double x[POINTS], cumulative[POINTS], mean, sd;
} Grid;

static void tabulate(const Likelihood *likelihood, int n, double sum, double sd, Grid *out) {
  static double log_density[POINTS];
  double total = 0, square = 0, top = -INFINITY;
  out->mean = 0;
  for (int k = 0; k < POINTS; k++) {
    const double x = out->x[k] = sd * (9.0 * k / (POINTS - 1) * 2 - 9);
    const double loss = likelihood->ops == likelihood_find("logistic")
                            ? (x > 0 ? x : 0) + log1p(exp(-fabs(x)))
                            : exp(fmin(x, 700));
    log_density[k] = -0.5 * x * x / sd / sd + sum * x - n * loss;
    top = fmax(top, log_density[k]);
  }
  for (int k = 0; k < POINTS; k++) {
    const double weight = exp(log_density[k] - top);
    out->cumulative[k] = total += weight;
    out->mean += weight * out->x[k];
    square += weight * out->x[k] * out->x[k];
  }
  out->mean /= total;
  out->sd = sqrt(square / total - out->mean * out->mean);
}

/* Draws by inversion. */
static void draw_from_grid(const Grid *grid, uint32_t run, double *theta) {
  Rng rng = fixture_rng(run, 31);
  rng_uniform(&rng, DRAWS, theta);
  for (int n = 0; n < DRAWS; n++) {
    const double place = theta[n] * grid->cumulative[POINTS - 1];
    int low = 0, high = POINTS - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (grid->cumulative[middle] < place)
        low = middle + 1;
      else
        high = middle;
    }
    theta[n] = grid->x[low];
  }
}

/* ---- one prior and one history */

typedef struct {
  Mixture mixture;
  Prior prior;
  Likelihood likelihood;
  History history;
  Sampler sampler;
} Case;

/* Sets up `ts` with n rewards y at phi = 1. */
static void set_up(Arena *memory, const char *family, double sd, int n, double y, const char *set,
                   Case *out) {
  const PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
  const double phi = 1;
  int64_t fallbacks = 0;
  bool forgets;
  Config *options;
  *out = (Case){.likelihood = glm(family)};
  CHECK_OK(mixture_create(memory, 1, 1, &out->mixture));
  out->mixture.weight[0] = 1;
  out->mixture.covariance[0] = sd * sd;
  CHECK_OK(mixture_prepare(&out->mixture));
  out->prior = fixture_exact_prior(memory, &out->mixture, &fit);
  CHECK_OK(config_options(memory, "test", sampler_keys(sampler_find("mixts")), set ? 1 : 0, &set, &options));
  const SamplerSetup setup = {
      .prior = &out->prior, .likelihood = &out->likelihood, .runs = 1, .draws = DRAWS, .options = options};
  CHECK_OK(sampler_create(memory, sampler_find("mixts"), &setup, &out->sampler));
  CHECK_OK(sampler_history(memory, &setup, 1, &forgets, &out->history));
  if (!forgets) {
    CHECK_OK(history_create(memory, 1, 1, &out->likelihood, &out->history));
    CHECK_OK(history_reserve(&out->history, n));
  }
  for (int l = 0; l < n; l++) {
    history_record(&out->history, NULL, &phi, &y);
    sampler_observe(&out->sampler, &out->history, &fallbacks);
  }
}

static void draw(Case *self, int draws, uint32_t run, double *theta, double *mean, double *sd) {
  const RngLanes rng = rng_lanes(rng_key(FIXTURE_SEED, RNG_TEST), run, 1, draws, 0);
  int64_t fallbacks = 0;
  sampler_sample(&self->sampler, &self->history, rng, draws, theta, &fallbacks);
  *mean = *sd = 0;
  for (int n = 0; n < draws; n++) *mean += theta[n] / draws;
  for (int n = 0; n < draws; n++) *sd += (theta[n] - *mean) * (theta[n] - *mean) / draws;
  *sd = sqrt(*sd);
}

static bool complains(Case *self, const double *theta) {
  char sentence[256];
  Spread spread;
  CHECK_OK(spread_measure(&self->sampler, &self->history, DRAWS, theta, &spread));
  CU_ASSERT(spread.known);
  return spread_complaint(&spread, sizeof sentence, sentence);
}

/* Moves draws by `off` standard deviations, and scales them about their mean. */
static bool complains_about(Case *self, const Grid *grid, const double *right, double off, double factor) {
  static double wrong[DRAWS];
  for (int n = 0; n < DRAWS; n++) wrong[n] = grid->mean + off * grid->sd + factor * (right[n] - grid->mean);
  return complains(self, wrong);
}

/* Compares draws with the grid: five standard errors of 2 000 draws, 0.11 and 0.08 standard deviations, and
 * 3% for what forty steps leave; and has draws judged: those of the sampler and from the grid, which are
 * right, and draws that are off by 0.6 standard deviations or a factor of 1.6. */
static void test_zeros(void) {
  static const struct {
    const char *family;
    int n;
    double sd;
  } cases[] = {{"logistic", 20, 10}, {"poisson", 5, 30}, {"logistic", 20, 3}};
  static Grid grid;
  static double theta[DRAWS];
  for (uint32_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    SCRATCH_ARENA(memory);
    Case self;
    double mean, sd;
    set_up(&memory, cases[k].family, cases[k].sd, cases[k].n, 0, NULL, &self);
    tabulate(&self.likelihood, cases[k].n, 0, cases[k].sd, &grid);
    draw(&self, DRAWS, k, theta, &mean, &sd);
    CHECK_NEAR((mean - grid.mean) / grid.sd, 0, 0.14);
    CHECK_NEAR(sd / grid.sd, 1, 0.11);
    CU_ASSERT_FALSE(complains(&self, theta));
    draw_from_grid(&grid, k, theta);
    CU_ASSERT_FALSE(complains(&self, theta));
    CU_ASSERT(complains_about(&self, &grid, theta, -0.6, 1));
    CU_ASSERT(complains_about(&self, &grid, theta, 0.6, 1));
    CU_ASSERT(complains_about(&self, &grid, theta, 0, 1.6));
    CU_ASSERT(complains_about(&self, &grid, theta, 0, 1 / 1.6));
  }
}

/* Checks that draws are judged where forty steps do not settle the mean. */
static void test_slow(void) {
  SCRATCH_ARENA(memory);
  static Grid grid;
  static double theta[DRAWS];
  Case self;
  set_up(&memory, "logistic", 30, 100, 0, NULL, &self);
  tabulate(&self.likelihood, 100, 0, 30, &grid);
  draw_from_grid(&grid, 0, theta);
  CU_ASSERT(complains_about(&self, &grid, theta, 0.6, 1));
}

/* ---- more dimensions: features along the axes, turned by a reflection about v = (1, 2, .., d), have a
 * posterior that is a product in turned coordinates */

enum { TURNED_MOST = 5, TURNED_EACH = 20 };

/* Computes z - 2 v (v' z) / |v|^2, with entries of z[d] `stride` apart. */
static void reflect(int d, size_t stride, double *z) {
  double along = 0, square = 0;
  for (int i = 0; i < d; i++) {
    along += (i + 1) * z[(size_t)i * stride];
    square += (i + 1) * (i + 1);
  }
  for (int i = 0; i < d; i++) z[(size_t)i * stride] -= 2 * (i + 1) * along / square;
}

/* Records TURNED_EACH clicks along each axis, sum[d] of them 1. */
static void set_up_turned(Arena *memory, int d, const int *sum, double sd, Case *out) {
  const PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
  *out = (Case){.likelihood = glm("logistic")};
  CHECK_OK(mixture_create(memory, d, 1, &out->mixture));
  out->mixture.weight[0] = 1;
  for (int i = 0; i < d; i++) out->mixture.covariance[i * (d + 1)] = sd * sd;
  CHECK_OK(mixture_prepare(&out->mixture));
  out->prior = fixture_exact_prior(memory, &out->mixture, &fit);
  out->sampler =
      (Sampler){.ops = sampler_find("smc_tempered"),
                .setup = {.prior = &out->prior, .likelihood = &out->likelihood, .runs = 1, .draws = DRAWS},
                .d = d,
                .temper = 1};
  CHECK_OK(history_create(memory, d, 1, &out->likelihood, &out->history));
  CHECK_OK(history_reserve(&out->history, d * TURNED_EACH));
  for (int l = 0; l < d * TURNED_EACH; l++) {
    const int axis = l % d;
    const double y = l / d < sum[axis];
    double phi[TURNED_MOST] = {0};
    phi[axis] = 1;
    reflect(d, 1, phi);
    history_record(&out->history, NULL, phi, &y);
  }
}

/* Has draws judged whose coordinates z[d, DRAWS] are moved by `off` along the first, and scaled there. */
static bool complains_about_turned(Case *self, const double *z, double centre, double off, double factor) {
  static double theta[TURNED_MOST * DRAWS];
  memcpy(theta, z, (size_t)(self->prior.d * DRAWS) * sizeof *z);
  for (int n = 0; n < DRAWS; n++) theta[n] = centre + off + factor * (z[n] - centre);
  for (int n = 0; n < DRAWS; n++) reflect(self->prior.d, DRAWS, theta + n);
  return complains(self, theta);
}

/* Checks the judgement of right draws, and of draws that are off by 0.6 standard deviations or a factor of
 * 1.6 in one direction, under N(0, 10^2 I) and N(0, I), with separated and with mixed clicks. */
static void test_turned(void) {
  static const int sums[][TURNED_MOST] = {{0, 7}, {0, 20, 3, 10, 0}};
  static Grid grid;
  static double z[TURNED_MOST * DRAWS];
  for (uint32_t k = 0; k < 4; k++) {
    SCRATCH_ARENA(memory);
    Case self;
    const int d = k % 2 ? 5 : 2, *sum = sums[k % 2];
    const double sd = k < 2 ? 10 : 1;
    set_up_turned(&memory, d, sum, sd, &self);
    for (int i = d - 1; i >= 0; i--) { /* the first one last, whose grid is used below */
      tabulate(&self.likelihood, TURNED_EACH, sum[i], sd, &grid);
      draw_from_grid(&grid, 10 * k + (uint32_t)i, z + i * DRAWS);
    }
    CU_ASSERT_FALSE(complains_about_turned(&self, z, grid.mean, 0, 1));
    CU_ASSERT(complains_about_turned(&self, z, grid.mean, 0.6 * grid.sd, 1));
    CU_ASSERT(complains_about_turned(&self, z, grid.mean, 0, 1.6));
    CU_ASSERT(complains_about_turned(&self, z, grid.mean, 0, 1 / 1.6));
  }
}

/* Checks a thousand clicks: mean -13.1285, standard deviation 4.9262; and 300 draws by five standard errors
 * and 3%. */
static void test_thousand(void) {
  SCRATCH_ARENA(memory);
  static Grid grid;
  static double theta[DRAWS];
  Case self;
  double mean, sd;
  set_up(&memory, "logistic", 10, 1000, 0, NULL, &self);
  tabulate(&self.likelihood, 1000, 0, 10, &grid);
  CHECK_NEAR(grid.mean, -13.1285, 1e-3);
  CHECK_NEAR(grid.sd, 4.9262, 1e-3);
  draw(&self, FEW, 0, theta, &mean, &sd);
  CHECK_NEAR((mean - grid.mean) / grid.sd, 0, 0.32);
  CHECK_NEAR(sd / grid.sd, 1, 0.24);
}

/* Checks counts up to the largest that is allowed, whatever is kept of them. A posterior so precise is
 * N(log y, 1 / (n y)) to within 1e-3 of its standard deviation; a Gaussian in place of each count adds a
 * little to its width. */
static void test_large_counts(void) {
  static const double counts[] = {1e4, 1e10, 1e13, 1e15, 0x1p53};
  static const char *const sets[] = {NULL, "memory=filtered", "memory.keep=2"};
  static double theta[DRAWS];
  enum { N = 5 };
  for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
      SCRATCH_ARENA(memory);
      Case self;
      double mean, sd;
      const double right = 1 / sqrt(N * counts[k]);
      set_up(&memory, "poisson", 30, N, counts[k], sets[s], &self);
      draw(&self, FEW, 0, theta, &mean, &sd);
      if (fabs(mean - log(counts[k])) > right) printf("\n    %g, %s: %.9g", counts[k], sets[s], mean);
      CHECK_NEAR((mean - log(counts[k])) / right, 0, 1);
      CHECK_NEAR(sd / right, 1, 0.25);
    }
}

int main(void) {
  CU_TestInfo tests[] = {{"rewards of 0 under wide priors", test_zeros},
                         {"steps that are too few", test_slow},
                         {"two and five dimensions", test_turned},
                         {"a thousand clicks of 0", test_thousand},
                         {"large counts", test_large_counts},
                         CU_TEST_INFO_NULL};
  return harness_run("wide_clicks", tests);
}
