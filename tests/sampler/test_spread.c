/* Samplers against priors and rewards that are hard to follow: draws have the spread of the posterior in
 * every direction, or are known not to. The reference is computed apart from the program, in long double and
 * in the coordinates in which the prior is N(0, I). */
#include "core/arena.h"
#include "sampler_fixture.h"

#include "bernoulli_glm.h"

#include "core/linalg/linalg.h"
#include "sampler/check/spread.h"

#include <fenv.h>

enum { MOST = 3, ROWS = 5, DRAWS = 500 };

/* A Gaussian prior of mean 0, given by the root A of its covariance, A A'. */
typedef struct {
  const char *name;
  int d;
  double root[MOST * MOST];
} Case;

static const Case CASES[] = {
    {"condition 1", 3, {1, 0, 0, 0, 1, 0, 0, 0, 1}},
    {"condition 1e4", 3, {1, 0, 0, 0, 1e-1, 0, 0, 0, 1e-2}},
    {"condition 1e8", 3, {1, 0, 0, 0, 1e-2, 0, 0, 0, 1e-4}},
    {"condition 1e12", 3, {1, 0, 0, 0, 1e-3, 0, 0, 0, 1e-6}},
    {"turned, condition 1e12", 2, {0.6, -0.8e-6, 0.8, 0.6e-6}},
    {"correlation 1 - 1e-6", 2, {1, 0, 0.999999, 0.00141421320851}},
};
static const double NOISE[] = {1, 1e-4, 1e-8};

static Prior make_prior(Arena *memory, const Case *c) {
  const int d = c->d;
  PriorFit fit = fixture_fit(40, 0.93, LAST_STAGE_REPAIRED);
  Mixture mixture;
  ASSERT(mixture_create(memory, d, 1, &mixture) == STATUS_OK);
  mixture.weight[0] = 1;
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++) {
      mixture.covariance[i * d + j] = 0;
      for (int k = 0; k < d; k++) mixture.covariance[i * d + j] += c->root[i * d + k] * c->root[j * d + k];
    }
  ASSERT(mixture_prepare(&mixture) == STATUS_OK);
  Prior prior = fixture_exact_prior(memory, &mixture, &fit);
  return prior;
}

/* Makes n observations of a theta that the prior may well have drawn. */
static FixtureData make_data(const Case *c, int n, double noise) {
  FixtureData data = fixture_data(c->d, n, noise, 3);
  Rng rng = fixture_rng(5, 1001);
  double z[MOST], error[ROWS];
  rng_normal(&rng, c->d, z);
  rng_normal(&rng, n, error);
  for (int l = 0; l < n; l++) {
    data.y[l] = noise * error[l];
    for (int i = 0; i < c->d; i++)
      for (int j = 0; j < c->d; j++) data.y[l] += data.phi[l][i] * c->root[i * c->d + j] * z[j];
  }
  return data;
}

/* Draws as `thompson sample` does and judges the draws: the history observation by observation, then all
 * draws. Returns whether there is a complaint. */
static bool draw(const SamplerOps *method, const Prior *prior, const FixtureData *data,
                 const Likelihood *likelihood, double *theta, char *sentence) {
  SCRATCH_ARENA(memory);
  int64_t fallbacks = 0;
  Config *options;
  Sampler sampler;
  History history;
  Spread spread;
  RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = DRAWS, .lanes = DRAWS};
  CHECK_OK(config_options(&memory, "test", sampler_keys(method), 0, NULL, &options));
  const SamplerSetup setup = {.prior = prior,
                              .likelihood = likelihood,
                              .runs = 1,
                              .draws = DRAWS,
                              .seed = FIXTURE_SEED,
                              .options = options};
  CHECK_OK(sampler_create(&memory, method, &setup, &sampler));
  ASSERT(history_create(&memory, data->d, 1, likelihood, &history) == STATUS_OK);
  CHECK_OK(history_reserve(&history, data->n));
  for (int l = 0; l < data->n; l++) {
    history_record(&history, NULL, data->phi[l], &data->y[l]);
    sampler_observe(&sampler, &history, &fallbacks);
  }
  sampler_sample(&sampler, &history, rng, DRAWS, theta, &fallbacks);
  CHECK_OK(spread_measure(&sampler, &history, DRAWS, theta, &spread));
  CU_ASSERT(spread.known);
  const bool complains = spread_complaint(&spread, 256, sentence);
  return complains;
}

/* Computes the Cholesky factor of I + A' Phi' Phi A / sigma^2: the posterior's precision in z, theta = A
 * z. */
static void factorise(const Case *c, const FixtureData *data, long double *l) {
  const int d = c->d;
  for (int i = 0; i < d; i++)
    for (int j = 0; j <= i; j++) {
      long double sum = i == j;
      for (int k = 0; k < data->n; k++) {
        long double a = 0, b = 0;
        for (int m = 0; m < d; m++) {
          a += (long double)data->phi[k][m] * c->root[m * d + i];
          b += (long double)data->phi[k][m] * c->root[m * d + j];
        }
        sum += a * b / data->noise / data->noise;
      }
      for (int k = 0; k < j; k++) sum -= l[i * d + k] * l[j * d + k];
      l[i * d + j] = i == j ? sqrtl(sum) : sum / l[j * d + j];
    }
}

/* Computes the least and the largest standard deviation of the draws divided by that of the posterior, over
 * all directions. */
static void spread(const Case *c, const FixtureData *data, const double *theta, double *least,
                   double *largest) {
  const int d = c->d;
  long double l[MOST * MOST] = {0};
  double *e = fixture_new((size_t)(d * DRAWS), sizeof *e), mean[MOST], covariance[MOST * MOST],
         inverse[MOST * MOST], basis[MOST * MOST], value[MOST];
  factorise(c, data, l);
  fixture_invert(d, c->root, inverse);
  for (int n = 0; n < DRAWS; n++)
    for (int i = 0; i < d; i++) {
      long double sum = 0;
      for (int j = i; j < d; j++)
        for (int k = 0; k < d; k++)
          sum += l[j * d + i] * inverse[j * d + k] * ((long double)theta[k * DRAWS + n] - theta[k * DRAWS]);
      e[i * DRAWS + n] = (double)sum;
    }
  linalg_moments(d, DRAWS, e, mean, covariance);
  CHECK_OK(linalg_eigen(d, covariance, basis, value));
  *least = sqrt(fmax(value[0], 0)), *largest = sqrt(fmax(value[d - 1], 0));
  free(e);
}

/* Tells whether least and largest spread are within 10%, plus 4 standard errors, plus the amount by which the
 * largest of d exceeds 1. */
static bool is_near(const SamplerOps *method, int d, double least, double largest) {
  const double narrow = method->narrow > 0 ? method->narrow : 1, wide = method->wide > 0 ? method->wide : 1;
  const double slack = 4 / sqrt(2.0 * DRAWS) + sqrt((double)d / DRAWS);
  return least >= narrow * 0.9 * (1 - slack) && largest <= wide * 1.1 * (1 + slack);
}

/* Checks the spread. Evidence of 1e16 is more than a double can add to a prior, and then exact methods
 * complain too. Intermediate steps may divide by zero. */
static void test_spread(void) {
  SCRATCH_ARENA(memory);
  char sentence[256];
  double *theta = fixture_new(MOST * DRAWS, sizeof *theta);
  int good = 0, bad = 0;
  fedisableexcept(FE_ALL_EXCEPT);
  for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
    const Case *c = &CASES[k];
    Prior prior = make_prior(&memory, c);
    for (int s = 0; s < 3; s++) {
      const Likelihood likelihood = fixture_likelihood(NOISE[s]);
      const FixtureData data = make_data(c, 1 + (int)(k + (size_t)s) % 3 * 2, NOISE[s]);
      for (int i = 0; sampler_method(i); i++) {
        const SamplerOps *method = sampler_method(i);
        double least, largest;
        if (sampler_misfit(method, &prior, &likelihood, sizeof sentence, sentence)) continue;
        const bool complains = draw(method, &prior, &data, &likelihood, theta, sentence);
        spread(c, &data, theta, &least, &largest);
        const bool near = is_near(method, c->d, least, largest);
        if (!near && !complains)
          printf("\n    %s, %s, noise %g, %d observations: spread %g to %g", method->name, c->name, NOISE[s],
                 data.n, least, largest);
        CU_ASSERT(near || complains);
        const bool replaced = complains && strstr(sentence, "the draws are exact ones");
        if (complains && !replaced)
          CU_ASSERT_PTR_NOT_NULL(strstr(sentence, "the draws cannot have reached the target: "));
        CU_ASSERT(near || !replaced);
        if (method->exact && NOISE[s] > 1e-5) CU_ASSERT_FALSE(complains);
        if (k == 0 && s == 0 && strcmp(method->name, "dps") != 0) CU_ASSERT_FALSE(complains);
        near ? good++ : bad++;
      }
    }
  }
  CU_ASSERT(good > 0 && bad > 0);
  free(theta);
}

/* Checks that chains that are whitened follow every prior, and that the likelihood of tempering keeps its
 * digits: 3 observations at noise 1, and 1 at noise 1e-8. */
static void test_followed(void) {
  SCRATCH_ARENA(memory);
  static const char *const methods[] = {"lmc", "fgts", "vits1", "vits2", "vits2_hf", "mala", "smc_tempered"};
  char sentence[256];
  double *theta = fixture_new(MOST * DRAWS, sizeof *theta), least, largest;
  fedisableexcept(FE_ALL_EXCEPT);
  for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
    const Case *c = &CASES[k];
    Prior prior = make_prior(&memory, c);
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
      const SamplerOps *method = sampler_find(methods[m]);
      const bool tempered = strcmp(methods[m], "smc_tempered") == 0;
      const Likelihood likelihood = fixture_likelihood(tempered ? 1e-8 : 1);
      const FixtureData data = make_data(c, tempered ? 1 : 3, likelihood.noise);
      draw(method, &prior, &data, &likelihood, theta, sentence);
      spread(c, &data, theta, &least, &largest);
      if (tempered && k == 0) continue; /* the evidence itself has lost the information of the prior */
      if (!is_near(method, c->d, least, largest))
        printf("\n    %s, %s: spread %g to %g", methods[m], c->name, least, largest);
      CU_ASSERT(is_near(method, c->d, least, largest));
    }
  }
  free(theta);
}

/* Checks rewards that are not Gaussian: the draws of samplers pass, except those of dps, which diverges; the
 * same draws, three times as wide, do not, and the number says so. */
static void test_other_rewards(void) {
  SCRATCH_ARENA(memory);
  static const char *const families[] = {"logistic", "poisson"};
  char sentence[256];
  double *theta = fixture_new(MOST * DRAWS, sizeof *theta);
  Prior prior = make_prior(&memory, &CASES[0]);
  for (int f = 0; f < 2; f++) {
    const Likelihood likelihood = {.ops = likelihood_find(families[f]), .noise = 1};
    FixtureData data = make_data(&CASES[0], ROWS, 1);
    for (int l = 0; l < data.n; l++) data.y[l] = fixture_reward(&likelihood, data.y[l]);
    History history;
    ASSERT(history_create(&memory, data.d, 1, &likelihood, &history) == STATUS_OK);
    CHECK_OK(history_reserve(&history, data.n));
    for (int l = 0; l < data.n; l++) history_record(&history, NULL, data.phi[l], &data.y[l]);
    for (int i = 0; sampler_method(i); i++) {
      const SamplerOps *method = sampler_method(i);
      Config *options = NULL;
      CHECK_OK(config_options(&memory, "test", sampler_keys(method), 0, NULL, &options));
      const Sampler sampler = {.ops = method,
                               .setup = {.prior = &prior,
                                         .likelihood = &likelihood,
                                         .runs = 1,
                                         .draws = DRAWS,
                                         .options = options},
                               .d = prior.d,
                               .temper = 1};
      /* vits1 and vits2 give all draws the same error of the mean. With counts of 20, steps of the default
       * size are too long for these and for lmc, fgts and vits2_hf: 1.5 times as wide, the mean 1.6 to 2
       * deviations off, while mixts, twisted and smc_tempered agree to 5%. */
      const bool vits = strncmp(method->name, "vits", 4) == 0,
                 known = vits ||
                         (f == 1 && (strcmp(method->name, "lmc") == 0 || strcmp(method->name, "fgts") == 0));
      Spread before, after;
      if (strcmp(method->name, "dps") == 0 || strcmp(method->name, "lints") == 0) continue;
      if (sampler_misfit(method, &prior, &likelihood, sizeof sentence, sentence)) continue;
      const bool complains = draw(method, &prior, &data, &likelihood, theta, sentence);
      CHECK_OK(spread_measure(&sampler, &history, DRAWS, theta, &before));
      if (complains) printf("\n    %s, %s: %s", method->name, families[f], sentence);
      CU_ASSERT_FALSE(complains && !known);
      for (int k = 0; k < prior.d; k++) {
        double mean = 0, *x = theta + k * DRAWS;
        for (int n = 0; n < DRAWS; n++) mean += x[n] / DRAWS;
        for (int n = 0; n < DRAWS; n++) x[n] = mean + 3 * (x[n] - mean);
      }
      CHECK_OK(spread_measure(&sampler, &history, DRAWS, theta, &after));
      CHECK_NEAR(after.widest, 3 * before.widest, 1e-9 * after.widest);
      if (method->wide == 0) CU_ASSERT(spread_complaint(&after, sizeof sentence, sentence));
    }
  }
  free(theta);
}

/* ---- rewards that are not Gaussian, and mixtures */

/* Returns the complaint about draws of `method` with clicks of theta ~ the prior, d = 3; "" for none. */
static void draw_with_clicks(const char *method, const Prior *prior, int n, uint32_t run, char *sentence) {
  SCRATCH_ARENA(memory);
  enum { D = 3, LESS = 400 };
  const SamplerOps *ops = sampler_find(method);
  const Likelihood likelihood = {.ops = likelihood_find("logistic"), .noise = 1};
  const RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .run = run, .draws = LESS, .lanes = LESS};
  RngLanes one = {.key = rng_key(FIXTURE_SEED, RNG_THETA), .run = run, .draws = 1, .lanes = 1};
  Rng numbers = fixture_rng(run, 77);
  double theta[D * LESS], truth[D];
  int64_t fallbacks = 0;
  Config *options;
  Sampler sampler;
  History history;
  Spread found;
  mixture_sample(prior->mixture, &one, truth);
  CHECK_OK(config_options(&memory, "test", sampler_keys(ops), 0, NULL, &options));
  const SamplerSetup setup = {
      .prior = prior, .likelihood = &likelihood, .runs = 1, .draws = LESS, .options = options};
  CHECK_OK(sampler_create(&memory, ops, &setup, &sampler));
  CHECK_OK(history_create(&memory, D, 1, &likelihood, &history));
  CHECK_OK(history_reserve(&history, n));
  for (int l = 0; l < n; l++) {
    double phi[D], uniform, u = 0, y;
    rng_normal(&numbers, D, phi);
    rng_uniform(&numbers, 1, &uniform);
    for (int i = 0; i < D; i++) u += phi[i] * truth[i];
    y = likelihood.ops->sample(&likelihood, u, uniform, 0);
    history_record(&history, NULL, phi, &y);
    sampler_observe(&sampler, &history, &fallbacks);
  }
  sampler_sample(&sampler, &history, rng, LESS, theta, &fallbacks);
  CHECK_OK(spread_measure(&sampler, &history, LESS, theta, &found));
  CU_ASSERT(found.known);
  sentence[0] = '\0';
  spread_complaint(&found, 256, sentence);
}

/* Checks that it is quiet on 60 posteriors that are right, with one component and with three, and that
 * LinTS, which takes clicks for Gaussian rewards, is caught by whichever of its mean and its spread is
 * further off. A prior of standard deviation 2: Laplace is not off by a quarter there. */
static void test_clicks(void) {
  SCRATCH_ARENA(memory);
  char sentence[256];
  PriorFit fit = fixture_fit(2, 0.97, LAST_STAGE_REPAIRED);
  for (int components = 1; components <= 3; components += 2) {
    Mixture mixture = fixture_mixture(&memory, 3, components, 2);
    for (int i = 0; i < 9 * components; i++) mixture.covariance[i] *= 4;
    CHECK_OK(mixture_prepare(&mixture));
    Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    int complaints = 0;
    for (uint32_t run = 0; run < 30; run++) {
      draw_with_clicks("mixts", &prior, run % 2 ? 10 : 60, run, sentence);
      if (sentence[0]) printf("\n    run %u, %d components: %s", run, components, sentence);
      complaints += sentence[0] != '\0';
    }
    CU_ASSERT_EQUAL(complaints, 0);
    if (components > 1) continue;
    draw_with_clicks("lints", &prior, 60, 0, sentence);
    CU_ASSERT_PTR_NOT_NULL(strstr(sentence, "the draws cannot have reached the target: "));
  }
}

/* Checks the public posterior of bernoulli_glm.h, where Laplace's mean is off by a quarter to a half of a
 * deviation in each coordinate, without and with this failure; and LaplaceDPS, whose spread is 0.7 in one
 * direction. */
static void test_public_posterior(void) {
  SCRATCH_ARENA(memory);
  enum { MANY = 4000 };
  const Likelihood likelihood = {.ops = likelihood_find("logistic"), .noise = 1};
  static const struct {
    const char *method, *set;
    bool complains;
  } cases[] = {{"ts", "approximation=ep", false},
               {"ts", "candidates=1", false},
               {"localised", "particles=1", false},
               {"ts", "approximation=laplace", true},
               {"diffts", "temper=1", true}};
  PriorFit fit = fixture_fit(40, 0.93, LAST_STAGE_REPAIRED);
  History history = glm_history(&memory, 1, &likelihood);
  double precision[GLM_D * GLM_D];
  Mixture mixture;
  glm_prior_precision(precision);
  CHECK_OK(mixture_create(&memory, GLM_D, 1, &mixture));
  mixture.weight[0] = 1;
  fixture_invert(GLM_D, precision, mixture.covariance);
  CHECK_OK(mixture_prepare(&mixture));
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    const SamplerOps *method = sampler_find(cases[k].method);
    Config *options = NULL;
    CHECK_OK(config_options(&memory, "test", sampler_keys(method), 1, &cases[k].set, &options));
    const Sampler sampler = {
        .ops = method,
        .setup = {.prior = &prior, .likelihood = &likelihood, .runs = 1, .draws = MANY, .options = options},
        .d = GLM_D,
        .temper = 1};
    char sentence[256] = "";
    Spread found;
    double *theta = fixture_draw(sampler.ops, &prior, &history, 0, MANY, 1, &cases[k].set, NULL);
    CHECK_OK(spread_measure(&sampler, &history, MANY, theta, &found));
    if (spread_complaint(&found, sizeof sentence, sentence) != cases[k].complains)
      printf("\n    %s, %s: %g to %g, %g off; %s", cases[k].method, cases[k].set, found.narrowest,
             found.widest, found.offset, sentence);
    CU_ASSERT_EQUAL(sentence[0] != '\0', cases[k].complains);
    free(theta);
  }
}

int main(void) {
  CU_TestInfo tests[] = {{"spread of the posterior, or a complaint", test_spread},
                         {"priors that chains follow", test_followed},
                         {"rewards that are not Gaussian", test_other_rewards},
                         {"clicks and mixtures", test_clicks},
                         {"a public posterior", test_public_posterior},
                         CU_TEST_INFO_NULL};
  return harness_run("spread", tests);
}
