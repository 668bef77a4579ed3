/* thompson sample: posterior draws for a prior file and a history. */
#include "app/app.h"
#include "core/linalg/linalg.h"
#include "core/numeral.h"
#include "io/io_dataset.h"
#include "io/provenance.h"
#include "metric/metrics.h"
#include "model/prior/prior_oracle.h"
#include "sampler/check/alarm.h"
#include "sampler/check/spread.h"
#include "sampler/guard.h"
#include "sampler/unknown_noise.h"

#include <float.h>

static struct {
  const char *prior, *data, *recent, *sampler, *likelihood, *output;
  const char *oracle, *sigma_range;
  int dimension;
  int draws;
  double noise; /* 0: not given */
  uint64_t seed;
  AppTexts options;
} arguments = {.likelihood = "gaussian", .output = "draws.nc", .draws = 1000, .seed = 1};

static const AppOption options[] = {
    {"prior", 0, "FILE", "required: prior file, written by `train` or by you", .text = &arguments.prior},
    {"oracle", 0, "MODULE:CALLABLE",
     "in place of --prior: a denoiser in Python, (x[m, d], sigma) -> E[x0 | x0 + sigma z = x][m, d] "
     "(docs/oracles.md)",
     .text = &arguments.oracle},
    {"dimension", 0, "D", "entries of theta, for --oracle", .count = &arguments.dimension, .high = 10000},
    {"sigma-range", 0, "A,B", "smallest and largest noise that the oracle is asked about",
     .text = &arguments.sigma_range},
    {"data", 0, "FILE",
     "required: history, as CSV with header x1,...,xd,y, or NetCDF x(observation, dim), y(observation)",
     .text = &arguments.data},
    {"recent", 0, "FILE",
     "logs of tasks other than those the prior was learned from, in the format of `train --logs`: the weight "
     "of the guard (--option guard=0.2) is learned from them",
     .text = &arguments.recent},
    {"sampler", 0, "NAME", "required: posterior sampler; see `thompson list samplers`",
     .text = &arguments.sampler},
    {"likelihood", 0, "NAME", "likelihood (default: gaussian)", .text = &arguments.likelihood},
    {"number", 'n', "N", "draws (default: 1000)", .count = &arguments.draws, .high = 1e8},
    {"output", 'o', "FILE", "file for the draws (default: draws.nc)", .output = &arguments.output},
    {"noise", 0, "S",
     "standard deviation of Gaussian rewards (default: the one that the prior learned from logs, else 1)",
     .real = &arguments.noise, .low = 1e-12, .high = 1e6},
    {"seed", 0, "N", "seed (default: 1)", .seed = &arguments.seed},
    {"option", 0, "KEY=VALUE", "an option of the sampler", .texts = &arguments.options},
    {0}};

static void sample_check(struct argp_state *state) {
  const bool oracle = arguments.oracle;
  if (!(arguments.prior || oracle) || !arguments.data || !arguments.sampler)
    argp_error(state, "%s is required: give --prior, --data and --sampler",
               !(arguments.prior || oracle) ? "--prior"
               : !arguments.data            ? "--data"
                                            : "--sampler");
  if (oracle && arguments.prior) argp_error(state, "give either --prior or --oracle");
  if (oracle != (arguments.dimension > 0) || oracle != !!arguments.sigma_range)
    argp_error(state, "--oracle, --dimension and --sigma-range belong together");
}

/* Returns what the prior is called in messages. */
static const char *app_sample_prior_name(void) {
  return arguments.oracle ? arguments.oracle : arguments.prior;
}

/* Finds the sampler; `auto` is the one that was chosen with the prior, which is not read for other names. */
static Status app_sample_find_sampler(const Prior *prior, const SamplerOps **out) {
  const Status status = sampler_take_auto(prior, &arguments.sampler);
  if (status != STATUS_OK) return status_prefix(status, "%s: ", arguments.prior);
  *out = sampler_find(arguments.sampler);
  if (*out) return STATUS_OK;
  config_unknown_name(STATUS_INPUT, arguments.sampler, "a sampler", sampler_name);
  return status_prefix(STATUS_INPUT, "--sampler: ");
}

/* What is computed in addition to the draws. */
typedef struct {
  double noise; /* in use */
  bool learned; /* the prior learned it */
  bool marginal; /* the sampler can compute the log marginal likelihood of the history */
  double constant; /* sum over observations of the largest log p(y | u), which sampler_marginal leaves out */
  double rounding; /* rounding error of its sums of squares, which cancel if evidence is precise */
  double log_marginal, error;
  bool guarded; /* there is a guard in addition to the prior */
  double guard_weight; /* in the posterior */
  bool judged; /* the prior was tested by the history */
  double p_value; /* of that test (alarm.h) */
  double distinct; /* share of the draws */
  char complaint[256]; /* about their spread; empty: none */
  int64_t fallbacks;
} Findings;

/* Reads the observations, all of them before the sampler spends its time on the first. */
static Status app_sample_read(Arena *memory, int d, const Likelihood *likelihood, Observations *out) {
  TRY(io_dataset_read_observations(memory, arguments.data, out));
  if (out->rows > 0 && out->d != d)
    return status_set(STATUS_INPUT, "%s: features in %d dimensions, but the prior %s has %d", arguments.data,
                      out->d, app_sample_prior_name(), d);
  for (int row = 0; row < out->rows; row++)
    if (!likelihood->ops->admits(out->rewards[row]))
      return status_set(
          STATUS_INPUT, "%s: the reward of observation %d is %g; allowed with likelihood %s: %s",
          arguments.data, row + 1, out->rewards[row], likelihood->ops->name, likelihood->ops->rewards);
  return STATUS_OK;
}

/* Gives the observations to the sampler. */
static Status app_sample_observe(const Observations *observations, History *history, Sampler *sampler,
                                 Findings *findings) {
  const Likelihood *likelihood = history->likelihood;
  TRY(history_reserve(history, observations->rows));
  for (int row = 0; row < observations->rows; row++) {
    const double *reward = observations->rewards + row, u = 0;
    double deviance;
    history_record(history, NULL, observations->features + (size_t)row * (size_t)history->d, reward);
    sampler_observe(sampler, history, &findings->fallbacks);
    likelihood->ops->deviance(likelihood, 1, reward, &u, &deviance);
    findings->constant += likelihood_best(likelihood, *reward);
    findings->rounding += DBL_EPSILON * deviance;
  }
  return STATUS_OK;
}

/* Writes theta[d, draws] as theta(draw, dim), with all that the draws depend on. rows[draws, d] is scratch.
 */
static Status app_sample_write_draws(StoreFile *file, int d, double *theta, double *rows,
                                     const Findings *findings) {
  const struct {
    const char *name, *path;
  } inputs[] = {{"prior_sha256", arguments.prior},
                {"data_sha256", arguments.data},
                {"recent_sha256", arguments.recent}};
  int dimension[2];
  char hash[DIGEST_SIZE];
  io_dataset_transpose(d, arguments.draws, theta, rows);
  TRY(provenance_write(file, "posterior draws", sampler_find(arguments.sampler)->reference));
  TRY(store_text_attribute(file, NULL, "sampler", arguments.sampler));
  TRY(store_text_attribute(file, NULL, "likelihood", arguments.likelihood));
  for (int i = 0; i < 3; i++) {
    if (!inputs[i].path) continue;
    TRY(digest_file(inputs[i].path, hash));
    TRY(store_text_attribute(file, NULL, inputs[i].name, hash));
  }
  if (arguments.oracle) {
    TRY(store_text_attribute(file, NULL, "oracle", arguments.oracle));
    TRY(store_text_attribute(file, NULL, "sigma_range", arguments.sigma_range));
  }
  TRY(store_real_attribute(file, "noise", findings->noise));
  TRY(store_int_attribute(file, "seed", (int64_t)arguments.seed));
  TRY(store_int_attribute(file, "fallbacks", findings->fallbacks));
  if (findings->marginal) {
    TRY(store_real_attribute(file, "log_marginal_likelihood", findings->log_marginal));
    TRY(store_real_attribute(file, "log_marginal_likelihood_error", findings->error));
  }
  if (findings->guarded) TRY(store_real_attribute(file, "guard_weight", findings->guard_weight));
  if (findings->judged) TRY(store_real_attribute(file, "prior_p_value", findings->p_value));
  TRY(store_dimension(file, "draw", (size_t)arguments.draws, &dimension[0]));
  TRY(store_dimension(file, "dim", (size_t)d, &dimension[1]));
  return store_write(file, "theta", STORE_DOUBLE, 2, dimension, "draw from the posterior of theta", "1",
                     rows);
}

static void app_sample_print_summary(int d, const double *theta, const Findings *findings) {
  printf("%s: %d draws of %s\n  %-6s %12s %12s\n", arguments.output, arguments.draws, arguments.sampler,
         "theta", "mean", "sd");
  for (int i = 0; i < d; i++) {
    double mean, variance;
    linalg_moments(1, arguments.draws, theta + (size_t)i * (size_t)arguments.draws, &mean, &variance);
    printf("  %-6d %12.5g %12.5g\n", i + 1, mean, sqrt(variance));
  }
  if (findings->learned)
    printf("noise %.6g, learned from logs with the prior; --noise S sets another\n", findings->noise);
  if (findings->marginal)
    printf("log marginal likelihood of the history %.6g, error about %.2g\n", findings->log_marginal,
           findings->error);
  if (findings->guarded)
    printf("posterior weight of the guard %.3g: that share of the draws is not from the prior\n",
           findings->guard_weight);
  if (findings->judged)
    printf("p-value of the history under the prior %.3g, exact where features did not depend on rewards%s\n",
           findings->p_value,
           findings->p_value < 0.01 ? ": the prior may be wrong (--option guard=0.1 allows for that)" : "");
  if (findings->distinct < 1)
    printf("%.3g%% of the draws are distinct, the others are copies\n", 100 * findings->distinct);
  if (findings->fallbacks > 0)
    printf("%lld numerical fallbacks: check the draws before you trust them\n",
           (long long)findings->fallbacks);
  if (findings->complaint[0]) printf("%s\n", findings->complaint);
}

/* Computes what is wanted besides the draws: the marginal likelihood, from separate draws if it needs any,
 * the posterior weight of the guard, and the p-value of the history among those that the prior predicts. */
static Status app_sample_find(Sampler *sampler, const Prior *prior, const History *history,
                              Findings *findings) {
  enum { MARGINAL_DRAWS = 1024 };
  const Likelihood *likelihood = history->likelihood;
  const RngLanes rng = {
      .key = rng_key(arguments.seed, RNG_MARGINAL), .draws = MARGINAL_DRAWS, .lanes = MARGINAL_DRAWS};
  findings->marginal = sampler_marginal(sampler, history, rng, &findings->log_marginal, &findings->error,
                                        &findings->fallbacks);
  /* It came with the draws, but is that of the prior alone. */
  if (!findings->marginal && !sampler->guard && !isnan(sampler->notes[0].log_evidence)) {
    findings->marginal = true;
    findings->log_marginal = sampler->notes[0].log_evidence;
    findings->error = sampler->notes[0].log_evidence_error;
  }
  findings->log_marginal += sampler->temper * findings->constant;
  findings->error += findings->rounding;
  findings->guarded = sampler_guard_weight(sampler, history, &findings->guard_weight, &findings->fallbacks);
  findings->judged = history->rounds > 0 && !history_is_filtered(history) &&
                     !unknown_noise_asked(sampler->setup.options) &&
                     alarm_fits(prior, likelihood, history->rounds);
  if (!findings->judged) return STATUS_OK;
  return alarm_judge(prior, history, arguments.seed, &findings->p_value);
}

static Status app_sample_draw(const SamplerOps *method, const Likelihood *likelihood, const Prior *prior,
                              const Config *config) {
  SCRATCH_ARENA(memory);
  History history;
  Sampler sampler;
  StoreFile *file;
  Spread spread;
  double *theta, *rows;
  bool forgets;
  Findings findings = {.noise = likelihood->noise,
                       .learned = likelihood->ops->quadratic && arguments.noise == 0 && prior->noise > 0};
  const int d = prior->d;
  Observations observations;
  TRY(app_sample_read(&memory, d, likelihood, &observations));
  const SamplerSetup setup = {.prior = prior,
                              .likelihood = likelihood,
                              .runs = 1,
                              .draws = arguments.draws,
                              .for_themselves = true,
                              .observations = observations.rows,
                              .seed = arguments.seed,
                              .options = config};
  const RngLanes rng = rng_lanes(rng_key(arguments.seed, RNG_AGENT), 0, 1, arguments.draws, 0);
  ALLOCATE_ARRAYS(&memory, (size_t)d * (size_t)arguments.draws, &theta, &rows);
  TRY(sampler_create(&memory, method, &setup, &sampler));
  TRY(sampler_history(&memory, &setup, 1, &forgets, &history));
  if (!forgets) TRY(history_create(&memory, d, 1, likelihood, &history));
  TRY(app_sample_observe(&observations, &history, &sampler, &findings));
  sampler_sample(&sampler, &history, rng, arguments.draws, theta, &findings.fallbacks);
  TRY(prior_check(prior));
  TRY(app_sample_find(&sampler, prior, &history, &findings));
  TRY(metric_distinct(d, arguments.draws, theta, &findings.distinct));
  findings.distinct = fmin(findings.distinct, sampler.notes[0].distinct); /* NAN: not known */
  TRY(spread_measure(&sampler, &history, arguments.draws, theta, &spread));
  /* Draws that cannot have reached their target count as a fallback, unless the sampler has counted them. */
  const bool complains = spread_complaint(&spread, sizeof findings.complaint, findings.complaint);
  findings.fallbacks += complains && spread.from == DRAWN_AS_PROMISED;
  TRY(store_create(arguments.output, &file));
  TRY(store_finish(file, app_sample_write_draws(file, d, theta, rows, &findings)));
  app_sample_print_summary(d, theta, &findings);
  return STATUS_OK;
}

/* Learns the guard's weight from the logs of other tasks (--recent). */
static Status app_sample_learn_guard(const Likelihood *likelihood, const Config *config, Prior *prior) {
  enum { MOST_TASKS = 10000 };
  SCRATCH_ARENA(scratch);
  Logs all, tasks;
  if (config_is(config, "guard", "study") || !(guard_asked(config) > 0))
    return status_set(
        STATUS_INPUT,
        "--recent learns the weight of a guard and needs a weight to start from: --option guard=0.2");
  TRY(prior_check_guard(prior));
  TRY(logs_read(&scratch, arguments.recent, likelihood, false, NULL, &all));
  if (all.d != prior->d)
    return status_set(STATUS_INPUT, "%s: features in %d dimensions, but the prior %s has %d",
                      arguments.recent, all.d, arguments.prior, prior->d);
  TRY(logs_sample(&scratch, &all, MOST_TASKS, arguments.seed, &tasks));
  const double before = guard_asked(config);
  prior->guard = (PriorGuard){.weight = before, .width = WIDE_WIDTH, .shrink = 1, .tasks = tasks.tasks};
  TRY(prior_wide_learn(prior_stand_in(prior), prior->guard.width, &tasks, &prior->guard.weight));
  printf("%s: %s change%s the weight of the guard from %.3g to %.3g\n", arguments.recent,
         numeral_count(tasks.tasks, "task").text, tasks.tasks == 1 ? "s" : "", before, prior->guard.weight);
  return STATUS_OK;
}

/* Starts the oracle of the arguments. */
static Status app_sample_start_oracle(Arena *memory, int stages, Prior *out) {
  enum { BATCH = 4096, SECONDS = 600 };
  OracleProcess process = {
      .d = arguments.dimension, .batch = BATCH, .limit = SECONDS, .range.stages = stages};
  OracleRange *range = &process.range;
  const char *colon = strchr(arguments.oracle, ':');
  int end = 0; /* set if both numbers are there */
  if (!colon || colon == arguments.oracle || !colon[1])
    return status_set(STATUS_USAGE, "--oracle: '%s' is not MODULE:CALLABLE", arguments.oracle);
  sscanf(arguments.sigma_range, "%lf,%lf%n", &range->sigma_min, &range->sigma_max, &end);
  if (end == 0 || arguments.sigma_range[end] ||
      !(range->sigma_min > 0 && range->sigma_max > range->sigma_min && isfinite(range->sigma_max)))
    return status_set(STATUS_USAGE, "--sigma-range: '%s' is not A,B with 0 < A < B", arguments.sigma_range);
  TRY(arena_print(memory, &process.module, "%.*s", (int)(colon - arguments.oracle), arguments.oracle));
  process.callable = colon + 1;
  return prior_oracle_process(memory, &process, out);
}

static Status sample_posterior(void) {
  static const OwnershipKind kind = {"draws", .has = "sampler", .lacks = "prior"};
  const SamplerOps *method = NULL;
  Likelihood likelihood = {.ops = likelihood_find(arguments.likelihood)};
  SCRATCH_ARENA(memory);
  Config *config;
  PriorFit fit;
  Prior prior;
  TRY(io_ownership_check_output(arguments.output, &kind));
  if (!likelihood.ops) {
    config_unknown_name(STATUS_INPUT, arguments.likelihood, "a likelihood", likelihood_name);
    return status_prefix(STATUS_INPUT, "--likelihood: ");
  }
  if (arguments.noise > 0 && !likelihood.ops->quadratic)
    return status_set(STATUS_USAGE, "--noise is for Gaussian rewards; --likelihood %s has no noise",
                      likelihood.ops->name);
  TRY(fit_of_options("defaults", 0, NULL, arguments.seed, &fit));
  const bool chosen_with_prior = strcmp(arguments.sampler, "auto") == 0;
  if (!chosen_with_prior) TRY(app_sample_find_sampler(NULL, &method));
  fit.closed_only = !chosen_with_prior && !(method->needs & (NEEDS_CHAIN | NEEDS_DENOISER));
  TRY(arguments.oracle ? app_sample_start_oracle(&memory, fit.schedule.stages, &prior)
                       : prior_load(&memory, arguments.prior, &fit, &prior));
  if (chosen_with_prior) TRY(app_sample_find_sampler(&prior, &method));
  TRY(config_options(&memory, "--option", sampler_keys(method), arguments.options.count,
                     arguments.options.texts, &config));
  char doubt[2048];
  if (prior_doubt_under(&prior, &likelihood, sizeof doubt, doubt))
    fprintf(stderr, "note: %s: %s\n", arguments.prior, doubt);
  likelihood.noise = prior_noise(&prior, arguments.noise);
  if (arguments.recent) TRY(app_sample_learn_guard(&likelihood, config, &prior));
  return app_sample_draw(method, &likelihood, &prior, config);
}

const AppVerb app_sample = {.options = options,
                            .take = app_refuse_argument,
                            .check = sample_check,
                            .help =
                                "Draw theta from the posterior: any prior file, any history, any sampler.",
                            .run = sample_posterior};
