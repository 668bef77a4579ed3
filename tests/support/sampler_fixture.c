#include "sampler_fixture.h"

Rng fixture_rng(uint32_t run, uint32_t round) {
  return (Rng){.key = rng_key(FIXTURE_SEED, RNG_TEST), .run = run, .round = round};
}

void *fixture_new(size_t count, size_t size) {
  void *block = calloc(count ? count : 1, size);
  ASSERT(block);
  return block;
}

/* ---- dense algebra */

double fixture_invert(int n, const double *a, double *inverse) {
  double *m = (double *)fixture_new((size_t)(n * n), sizeof(double)), log_determinant = 0;
  memcpy(m, a, (size_t)(n * n) * sizeof(double));
  for (int i = 0; i < n * n; i++) inverse[i] = i % (n + 1) == 0;
  for (int k = 0; k < n; k++) {
    int pivot = k;
    for (int i = k + 1; i < n; i++)
      if (fabs(m[i * n + k]) > fabs(m[pivot * n + k])) pivot = i;
    for (int j = 0; j < n; j++) {
      double swap = m[k * n + j];
      m[k * n + j] = m[pivot * n + j], m[pivot * n + j] = swap;
      swap = inverse[k * n + j];
      inverse[k * n + j] = inverse[pivot * n + j], inverse[pivot * n + j] = swap;
    }
    double scale = m[k * n + k];
    log_determinant += log(fabs(scale));
    for (int j = 0; j < n; j++) m[k * n + j] /= scale, inverse[k * n + j] /= scale;
    for (int i = 0; i < n; i++) {
      double factor = m[i * n + k];
      if (i == k || factor == 0) continue;
      for (int j = 0; j < n; j++) {
        m[i * n + j] -= factor * m[k * n + j];
        inverse[i * n + j] -= factor * inverse[k * n + j];
      }
    }
  }
  free(m);
  return log_determinant;
}

/* ---- data */

FixtureData fixture_data(int d, int n, double noise, uint32_t run) {
  FixtureData data = {.d = d, .n = n, .noise = noise};
  Rng rng = fixture_rng(run, 1000);
  double theta[FIXTURE_DIMENSION], error;
  ASSERT(d <= FIXTURE_DIMENSION && n <= FIXTURE_OBSERVATIONS);
  rng_normal(&rng, d, theta);
  for (int l = 0; l < n; l++) {
    rng_normal(&rng, d, data.phi[l]);
    rng_normal(&rng, 1, &error);
    data.y[l] = noise * error;
    for (int i = 0; i < d; i++) data.y[l] += data.phi[l][i] * theta[i];
  }
  return data;
}

Likelihood fixture_likelihood(double noise) {
  return (Likelihood){.ops = likelihood_find("gaussian"), .noise = noise};
}

double fixture_reward(const Likelihood *likelihood, double y) {
  return likelihood->ops->admits(y) ? y : likelihood->ops->sample(likelihood, fmin(y, 3), 0.5, 0);
}

History fixture_history(Arena *memory, int d, int runs, uint32_t first_run, int n,
                        const Likelihood *likelihood) {
  History history;
  double phi[FIXTURE_DIMENSION * 16], y[16];
  ASSERT(runs <= 16 && history_create(memory, d, runs, likelihood, &history) == STATUS_OK);
  ASSERT(history_reserve(&history, n) == STATUS_OK);
  for (int l = 0; l < n; l++) {
    for (int run = 0; run < runs; run++) {
      FixtureData data = fixture_data(d, n, likelihood->noise, first_run + (uint32_t)run);
      for (int i = 0; i < d; i++) phi[i * runs + run] = data.phi[l][i];
      y[run] = fixture_reward(likelihood, data.y[l]);
    }
    history_record(&history, NULL, phi, y);
  }
  return history;
}

/* ---- priors */

PriorFit fixture_fit(int stages, double alpha, LastStage last_stage) {
  return (PriorFit){.components = 2,
                    .starts = 2,
                    .schedule = {.stages = stages, .alpha = alpha, .first_snr = 200, .last_snr = 0.05},
                    .standardise = true,
                    .hidden_count = 2,
                    .hidden = {16, 16},
                    .last_stage = last_stage,
                    .steps = 40,
                    .batch = 64,
                    .patience = 1000,
                    .learning_rate = 0.01,
                    .seed = FIXTURE_SEED};
}

Mixture fixture_mixture(Arena *memory, int d, int components, double spread) {
  Mixture mixture;
  Rng rng = fixture_rng(0, 2000);
  ASSERT(mixture_create(memory, d, components, &mixture) == STATUS_OK);
  for (int c = 0; c < components; c++) {
    double root[FIXTURE_DIMENSION * FIXTURE_DIMENSION];
    mixture.weight[c] = (c + 1.0) / (0.5 * components * (components + 1));
    rng_normal(&rng, d, mixture.mean + c * d);
    rng_normal(&rng, d * d, root);
    for (int i = 0; i < d; i++) {
      mixture.mean[c * d + i] *= spread;
      for (int j = 0; j < d; j++) {
        double sum = i == j ? 0.3 : 0;
        for (int k = 0; k < d; k++) sum += 0.4 * root[i * d + k] * root[j * d + k] / d;
        mixture.covariance[(c * d + i) * d + j] = sum;
      }
    }
  }
  ASSERT(mixture_prepare(&mixture) == STATUS_OK);
  return mixture;
}

Mixture fixture_cross(Arena *memory) {
  const double covariance[8] = {1, 0.99, 0.99, 1, 1, -0.9, -0.9, 1};
  Mixture mixture;
  ASSERT(mixture_create(memory, 2, 2, &mixture) == STATUS_OK);
  mixture.weight[0] = mixture.weight[1] = 0.5;
  memcpy(mixture.covariance, covariance, sizeof covariance);
  ASSERT(mixture_prepare(&mixture) == STATUS_OK);
  return mixture;
}

Mixture fixture_noised(Arena *memory, const Mixture *mixture, const Chain *chain, int t) {
  const int d = mixture->d;
  const double signal = chain->schedule.alpha_bar[t];
  Mixture out;
  CHECK_OK(mixture_create(memory, d, mixture->components, &out));
  for (int c = 0; c < mixture->components; c++) {
    out.weight[c] = mixture->weight[c];
    for (int i = 0; i < d; i++) {
      out.mean[c * d + i] = sqrt(signal) * (mixture->mean[c * d + i] - chain->shift[i]) / chain->scale[i];
      for (int j = 0; j < d; j++)
        out.covariance[(c * d + i) * d + j] =
            signal * mixture->covariance[(c * d + i) * d + j] / (chain->scale[i] * chain->scale[j]) +
            (i == j ? 1 - signal : 0);
    }
  }
  CHECK_OK(mixture_prepare(&out));
  return out;
}

Prior fixture_fitted_prior(Arena *memory, const PriorOps *family, int d, bool log_snr) {
  enum { SAMPLES = 400 };
  PriorFit fit = fixture_fit(10, 0.8, LAST_STAGE_REPAIRED);
  fit.schedule.log_snr = log_snr;
  Mixture mixture = fixture_mixture(memory, d, 2, 1.5);
  Samples samples = {.d = d, .n = SAMPLES};
  Prior prior;
  RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = 1, .lanes = SAMPLES, .round = 3000};
  samples.theta = fixture_new((size_t)(d * SAMPLES), sizeof(double));
  mixture_sample(&mixture, &rng, samples.theta);
  prior_settle(family, &fit, d);
  const Status status = prior_fit(memory, family, &fit, &samples, &prior);
  CHECK_OK(status);
  ASSERT(status == STATUS_OK);
  free(samples.theta);
  return prior;
}

Prior fixture_exact_prior(Arena *memory, const Mixture *mixture, const PriorFit *fit) {
  Prior prior;
  Status status = prior_from_mixture(memory, mixture, fit, &prior);
  if (status != STATUS_OK) printf("%s\n", status_message());
  ASSERT(status == STATUS_OK);
  return prior;
}

/* ---- exact posterior of a mixture prior */

double fixture_condition(const FixtureData *data, const double *mu, const double *sigma, double *mean,
                         double *covariance) {
  const int d = data->d, n = data->n;
  double cross[FIXTURE_OBSERVATIONS][FIXTURE_DIMENSION], error[FIXTURE_OBSERVATIONS];
  double s[FIXTURE_OBSERVATIONS * FIXTURE_OBSERVATIONS], inverse[FIXTURE_OBSERVATIONS * FIXTURE_OBSERVATIONS];
  for (int l = 0; l < n; l++) {
    error[l] = data->y[l];
    for (int i = 0; i < d; i++) {
      error[l] -= data->phi[l][i] * mu[i];
      cross[l][i] = 0;
      for (int j = 0; j < d; j++) cross[l][i] += data->phi[l][j] * sigma[j * d + i];
    }
  }
  for (int l = 0; l < n; l++)
    for (int k = 0; k < n; k++) {
      s[l * n + k] = l == k ? data->noise * data->noise : 0;
      for (int i = 0; i < d; i++) s[l * n + k] += cross[l][i] * data->phi[k][i];
    }
  double log_density = n > 0 ? -0.5 * fixture_invert(n, s, inverse) : 0;
  memcpy(mean, mu, (size_t)d * sizeof *mu);
  memcpy(covariance, sigma, (size_t)(d * d) * sizeof *sigma);
  for (int l = 0; l < n; l++)
    for (int k = 0; k < n; k++) {
      log_density -= 0.5 * error[l] * inverse[l * n + k] * error[k];
      for (int i = 0; i < d; i++) {
        mean[i] += cross[l][i] * inverse[l * n + k] * error[k];
        for (int j = 0; j < d; j++) covariance[i * d + j] -= cross[l][i] * inverse[l * n + k] * cross[k][j];
      }
    }
  return log_density;
}

FixturePosterior fixture_posterior(const Mixture *prior, const FixtureData *data) {
  FixturePosterior out;
  const int d = prior->d;
  double largest = -1e300, total = 0;
  memset(&out, 0, sizeof out);
  ASSERT(prior->components <= 4);
  for (int c = 0; c < prior->components; c++) {
    out.weight[c] =
        log(prior->weight[c]) + fixture_condition(data, prior->mean + c * d, prior->covariance + c * d * d,
                                                  out.mean[c], out.covariance[c]);
    largest = fmax(largest, out.weight[c]);
  }
  for (int c = 0; c < prior->components; c++) total += out.weight[c] = exp(out.weight[c] - largest);
  for (int c = 0; c < prior->components; c++) {
    out.weight[c] /= total;
    for (int i = 0; i < d; i++) out.total_mean[i] += out.weight[c] * out.mean[c][i];
  }
  for (int c = 0; c < prior->components; c++)
    for (int i = 0; i < d; i++)
      for (int j = 0; j < d; j++)
        out.total_covariance[i * d + j] +=
            out.weight[c] * (out.covariance[c][i * d + j] +
                             (out.mean[c][i] - out.total_mean[i]) * (out.mean[c][j] - out.total_mean[j]));
  return out;
}

/* Computes the lower triangle L of a = L L'. */
static void cholesky_lower(int d, const double *a, double *l) {
  for (int i = 0; i < d; i++)
    for (int j = 0; j <= i; j++) {
      double sum = a[i * d + j];
      for (int k = 0; k < j; k++) sum -= l[i * d + k] * l[j * d + k];
      l[i * d + j] = i == j ? sqrt(sum) : sum / l[j * d + j];
    }
}

int fixture_component_draw(int d, int components, const FixturePosterior *posterior, Rng rng, double *theta) {
  enum { MOST = FIXTURE_DIMENSION };
  double u, z[MOST], precision[MOST * MOST], l[MOST * MOST];
  int c = 0;
  rng_uniform(&rng, 1, &u);
  rng_normal(&rng, d, z);
  for (; c < components - 1; c++) {
    if (fabs(u - posterior->weight[c]) < 1e-6) return -1;
    if (u < posterior->weight[c]) break;
    u -= posterior->weight[c];
  }
  fixture_invert(d, posterior->covariance[c], precision);
  cholesky_lower(d, precision, l);
  for (int i = d - 1; i >= 0; i--) {
    for (int j = i + 1; j < d; j++) z[i] -= l[j * d + i] * z[j];
    z[i] /= l[i * d + i];
  }
  for (int i = 0; i < d; i++) theta[i] = posterior->mean[c][i] + z[i];
  return c;
}

/* ---- draws */

double *fixture_draw(const SamplerOps *method, const Prior *prior, const History *history, uint32_t first_run,
                     int draws, int set_count, const char *const *sets, int64_t *fallbacks) {
  SCRATCH_ARENA(memory);
  int lanes = history->runs * draws;
  int64_t *counted = (int64_t *)fixture_new((size_t)history->runs, sizeof *counted);
  double *theta = (double *)fixture_new((size_t)(prior->d * lanes), sizeof *theta);
  RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .run = first_run, .round = 7};
  SamplerSetup setup = {.prior = prior,
                        .likelihood = history->likelihood,
                        .runs = history->runs,
                        .draws = draws,
                        .first_run = first_run};
  Config *options = NULL;
  Sampler sampler;
  rng.draws = (uint32_t)draws, rng.lanes = (uint32_t)lanes;
  CHECK_OK(config_options(&memory, "test", sampler_keys(method), set_count, sets, &options));
  setup.options = options;
  CHECK_OK(sampler_create(&memory, method, &setup, &sampler));
  sampler_sample(&sampler, history, rng, draws, theta, counted);
  if (fallbacks) memcpy(fallbacks, counted, (size_t)history->runs * sizeof *counted);
  free(counted);
  return theta;
}

void fixture_moments(const SamplerOps *method, const Prior *prior, const History *history, int draws,
                     int set_count, const char *const *sets, double *mean, double *covariance,
                     int64_t *fallbacks) {
  SCRATCH_ARENA(memory);
  const int lanes = history->runs * draws;
  double *theta = (double *)fixture_new((size_t)(prior->d * lanes), sizeof *theta);
  const RngLanes rng = {
      .key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = (uint32_t)draws, .lanes = (uint32_t)lanes, .round = 7};
  Config *options = NULL;
  Sampler sampler;
  CHECK_OK(config_options(&memory, "test", sampler_keys(method), set_count, sets, &options));
  const SamplerSetup setup = {.prior = prior,
                              .likelihood = history->likelihood,
                              .runs = history->runs,
                              .draws = draws,
                              .options = options};
  CHECK_OK(sampler_create(&memory, method, &setup, &sampler));
  sampler_moments(&sampler, history, rng, theta, mean, covariance, fallbacks);
  free(theta);
}

void fixture_refused(const char *method, const Prior *prior, const Likelihood *likelihood, int runs,
                     int draws, const char *set, const char *part) {
  SCRATCH_ARENA(memory);
  const SamplerOps *ops = sampler_find(method);
  Config *options;
  Sampler sampler;
  CHECK_OK(config_options(&memory, "test", sampler_keys(ops), 1, &set, &options));
  const SamplerSetup setup = {
      .prior = prior, .likelihood = likelihood, .runs = runs, .draws = draws, .options = options};
  CHECK_FAILS(sampler_create(&memory, ops, &setup, &sampler), STATUS_INPUT, part);
}

void fixture_check_moments(int d, int runs, int draws, int run, const double *theta, const double *mean,
                           const double *covariance, double deviations) {
  const double *x = theta + run * draws;
  const int stride = runs * draws;
  for (int i = 0; i < d; i++)
    for (int j = i; j < d; j++) {
      double sum = 0, square = 0, first = 0;
      for (int m = 0; m < draws; m++) {
        double product = (x[i * stride + m] - mean[i]) * (x[j * stride + m] - mean[j]);
        sum += product, square += product * product, first += x[i * stride + m];
      }
      sum /= draws, square /= draws, first /= draws;
      CHECK_NEAR(sum, covariance[i * d + j], deviations * sqrt((square - sum * sum) / draws));
      if (i == j) CHECK_NEAR(first, mean[i], deviations * sqrt(covariance[i * d + i] / draws));
    }
}

void fixture_check_gaussian_prior(const SamplerOps *method, int draws, int set_count, const char *const *sets,
                                  int count, const int *observations) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 2 };
  const int stages[] = {1, 5, 100}, dimensions[] = {1, 2, 5};
  const Likelihood likelihood = fixture_likelihood(0.8);
  for (int a = 0; a < 18; a++) {
    const int d = dimensions[a / 6], t = stages[a / 2 % 3];
    const bool log_snr = a % 2;
    if (t == 100 && (d != 2 || log_snr)) continue; /* like the others, and slow */
    PriorFit fit = fixture_fit(t, 0.97, LAST_STAGE_LITERAL);
    fit.schedule.log_snr = log_snr;
    Mixture mixture = fixture_mixture(&memory, d, 1, 1.5);
    Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    for (int k = 0; k < count; k++) {
      const int n = observations[k];
      History history = fixture_history(&memory, d, RUNS, 0, n, &likelihood);
      double *theta = fixture_draw(method, &prior, &history, 0, draws, set_count, sets, NULL);
      for (int run = 0; run < RUNS; run++) {
        FixtureData data = fixture_data(d, n, likelihood.noise, (uint32_t)run);
        FixturePosterior exact = fixture_posterior(&mixture, &data);
        fixture_check_moments(d, RUNS, draws, run, theta, exact.total_mean, exact.total_covariance, 5);
      }
      free(theta);
    }
  }
}
