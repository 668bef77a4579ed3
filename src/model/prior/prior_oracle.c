#include "model/prior/prior_oracle.h"

#include "core/linalg/linalg.h"
#include "core/special.h"

#include <math.h>
#include <string.h>

static const double WIDE = 0.1; /* of the largest noise: the scale of the first draws */

enum { TILE = 64 /* rows and columns of a transposition that stays in cache */ };

typedef struct {
  Chain chain;
  Oracle oracle;
  double sigma_min, sigma_max; /* between which it is asked */
  int width; /* most lanes of unconditional draws at a time */
  double *theta, *scratch; /* [d, width], [2, d, width] */
} OraclePrior;

/* Lanes first .. first + count - 1 of a state s[d, lanes] of stage t, and the factors of that stage. */
typedef struct {
  int t;
  size_t lanes, first, count;
  const double *s;
  double signal, noise; /* sqrt(alpha_bar), sqrt(1 - alpha_bar) */
  double sigma; /* of x, in theta's units; not outside of the range by rounding */
} OracleLanes;

static OracleLanes prior_oracle_lanes(const OraclePrior *self, int t, int lanes, const double *s) {
  const double alpha_bar = self->chain.schedule.alpha_bar[t];
  OracleLanes at = {.t = t, .lanes = (size_t)lanes, .s = s};
  at.signal = sqrt(alpha_bar);
  at.noise = sqrt(1 - alpha_bar);
  at.sigma = fmin(fmax(self->chain.scale[0] * at.noise / at.signal, self->sigma_min), self->sigma_max);
  return at;
}

/* Writes the lanes to rows of x: x = shift + scale s / sqrt(alpha_bar). */
static void prior_oracle_place_points(const OraclePrior *self, const OracleLanes *at, double *x) {
  const size_t d = (size_t)self->chain.d;
  const double factor = self->chain.scale[0] / at->signal, *shift = self->chain.shift;
  for (size_t from = 0; from < d; from += TILE) {
    const size_t to = from + TILE < d ? from + TILE : d;
    for (size_t k = 0; k < at->count; k++)
      for (size_t i = from; i < to; i++)
        x[k * d + i] = special_two_products(factor, at->s[i * at->lanes + at->first + k], 1, shift[i]);
  }
}

/* Computes eps = (s - sqrt(alpha_bar) (D - shift) / scale) / sqrt(1 - alpha_bar) from rows of D. */
static void prior_oracle_take_noise(const OraclePrior *self, const OracleLanes *at, const double *mean,
                                    double *eps) {
  const size_t d = (size_t)self->chain.d;
  const double factor = at->signal / self->chain.scale[0], *shift = self->chain.shift;
  for (size_t from = 0; from < d; from += TILE) {
    const size_t to = from + TILE < d ? from + TILE : d;
    for (size_t k = 0; k < at->count; k++)
      for (size_t i = from; i < to; i++) {
        const size_t lane = i * at->lanes + at->first + k;
        eps[lane] = (at->s[lane] - factor * (mean[k * d + i] - shift[i])) / at->noise;
      }
  }
}

/* Asks for the means, or the products, of m rows; they are NaN if that fails. */
static void prior_oracle_ask(const Oracle *oracle, bool product, size_t m, const OracleLanes *at) {
  const size_t values = m * (size_t)oracle->d;
  if ((product ? oracle->product : oracle->mean)(oracle, (int)m, at->t, at->sigma) == 0) return;
  for (size_t k = 0; k < values; k++) oracle->answer[k] = NAN;
}

static void prior_oracle_noise(const Chain *chain, int t, int lanes, const double *s, double *eps) {
  const OraclePrior *self = chain->state;
  const Oracle *oracle = &self->oracle;
  OracleLanes at = prior_oracle_lanes(self, t, lanes, s);
  for (at.first = 0; at.first < at.lanes; at.first += at.count) {
    at.count = at.lanes - at.first < (size_t)oracle->batch ? at.lanes - at.first : (size_t)oracle->batch;
    prior_oracle_place_points(self, &at, oracle->x);
    prior_oracle_ask(oracle, false, at.count, &at);
    prior_oracle_take_noise(self, &at, oracle->answer, eps);
  }
}

/* ---- products with the Jacobian of the noise, (v - J v) / sqrt(1 - alpha_bar) */

/* One of the vectors v[count, d, lanes] in one lane; without vectors they are the unit vectors. */
typedef struct {
  const double *v; /* entries `stride` apart; NULL: unit vector k */
  size_t stride, k;
  double *out; /* its product, likewise */
} OracleVector;

static OracleVector prior_oracle_vector(const ChainProducts *products, size_t d, size_t lanes, size_t k,
                                        size_t lane) {
  const size_t from = k * d * lanes + lane;
  return (OracleVector){
      .v = products->v ? products->v + from : NULL, .stride = lanes, .k = k, .out = products->out + from};
}

static double prior_oracle_entry(const OracleVector *vector, size_t i) {
  return vector->v ? vector->v[i * vector->stride] : i == vector->k;
}

static double prior_oracle_length(const OracleVector *vector, size_t d) {
  double square = 0;
  for (size_t i = 0; i < d; i++) square += prior_oracle_entry(vector, i) * prior_oracle_entry(vector, i);
  return sqrt(square);
}

/* Computes the products by the oracle's own: a row for each vector of each lane. */
static void prior_oracle_multiply(const OraclePrior *self, OracleLanes at, const ChainProducts *products) {
  const Oracle *oracle = &self->oracle;
  const size_t d = (size_t)oracle->d, batch = (size_t)oracle->batch,
               rows = (size_t)products->count * at.lanes;
  at.count = 1;
  for (size_t first = 0, m; first < rows; first += m) {
    m = rows - first < batch ? rows - first : batch;
    for (size_t q = 0; q < m; q++) {
      at.first = (first + q) % at.lanes;
      const OracleVector v = prior_oracle_vector(products, d, at.lanes, (first + q) / at.lanes, at.first);
      prior_oracle_place_points(self, &at, oracle->x + q * d);
      for (size_t i = 0; i < d; i++) oracle->v[q * d + i] = prior_oracle_entry(&v, i);
    }
    prior_oracle_ask(oracle, true, m, &at);
    for (size_t q = 0; q < m; q++) {
      const OracleVector v =
          prior_oracle_vector(products, d, at.lanes, (first + q) / at.lanes, (first + q) % at.lanes);
      for (size_t i = 0; i < d; i++)
        v.out[i * v.stride] = (prior_oracle_entry(&v, i) - oracle->answer[q * d + i]) / at.noise;
    }
  }
}

/* Moves a row of x along a vector by `step`. */
static void prior_oracle_move(const OracleVector *v, size_t d, double step, double *x) {
  const double length = prior_oracle_length(v, d), factor = length > 0 ? step / length : 0;
  for (size_t i = 0; i < d; i++) x[i] += factor * prior_oracle_entry(v, i);
}

/* Computes the product from the means at the points moved forwards and backwards. */
static void prior_oracle_take_difference(const OracleVector *v, size_t d, double step, const double *forwards,
                                         const double *backwards, double noise) {
  const double factor = 0.5 * prior_oracle_length(v, d) / step;
  for (size_t i = 0; i < d; i++)
    v->out[i * v->stride] = (prior_oracle_entry(v, i) - factor * (forwards[i] - backwards[i])) / noise;
}

/* Computes the products by central differences: for one vector after the other, rows are the points of some
 * lanes, moved forwards and then backwards. */
static void prior_oracle_difference(const OraclePrior *self, OracleLanes at, const ChainProducts *products) {
  static const double SHARE = 0.003; /* of the noise: in single precision three digits are left */
  const Oracle *oracle = &self->oracle;
  const size_t d = (size_t)oracle->d, half = (size_t)oracle->batch / 2, count = (size_t)products->count,
               most = half > count ? half / count : 1;
  const double step = SHARE * at.sigma;
  for (at.first = 0; at.first < at.lanes; at.first += at.count) {
    at.count = at.lanes - at.first < most ? at.lanes - at.first : most;
    const size_t together = half / at.count; /* vectors of a call */
    for (size_t k = 0, n; k < count; k += n) {
      n = count - k < together ? count - k : together;
      const size_t rows = n * at.count;
      double *forwards = oracle->x, *backwards = forwards + rows * d;
      for (size_t q = 0; q < rows; q += at.count) prior_oracle_place_points(self, &at, forwards + q * d);
      memcpy(backwards, forwards, rows * d * sizeof *forwards);
      for (size_t q = 0; q < rows; q++) {
        const OracleVector v =
            prior_oracle_vector(products, d, at.lanes, k + q / at.count, at.first + q % at.count);
        prior_oracle_move(&v, d, step, forwards + q * d);
        prior_oracle_move(&v, d, -step, backwards + q * d);
      }
      prior_oracle_ask(oracle, false, 2 * rows, &at);
      for (size_t q = 0; q < rows; q++) {
        const OracleVector v =
            prior_oracle_vector(products, d, at.lanes, k + q / at.count, at.first + q % at.count);
        prior_oracle_take_difference(&v, d, step, oracle->answer + q * d, oracle->answer + (rows + q) * d,
                                     at.noise);
      }
    }
  }
}

static void prior_oracle_noise_products(const Chain *chain, int t, int lanes, const double *s, double *eps,
                                        const ChainProducts *products) {
  const OraclePrior *self = chain->state;
  const OracleLanes at = prior_oracle_lanes(self, t, lanes, s);
  if (eps) prior_oracle_noise(chain, t, lanes, s, eps);
  if (self->oracle.product)
    prior_oracle_multiply(self, at, products);
  else
    prior_oracle_difference(self, at, products);
}

static void prior_oracle_noise_vjp(const Chain *chain, int t, int lanes, const double *s, const double *v,
                                   double *out) {
  prior_oracle_noise_products(chain, t, lanes, s, NULL, &(ChainProducts){.count = 1, .v = v, .out = out});
}

static void prior_oracle_noise_jacobian(const Chain *chain, int t, int lanes, const double *s, double *eps,
                                        double *jacobian) {
  prior_oracle_noise_products(chain, t, lanes, s, eps, &(ChainProducts){.count = chain->d, .out = jacobian});
}

/* ---- creation */

static void prior_oracle_sample(const Prior *prior, RngLanes *rng, double *theta) {
  const OraclePrior *self = prior->state;
  denoiser_chain_sample_parts(&self->chain, self->width, rng, self->theta, self->scratch, theta);
}

static const PriorOps oracle_ops = {.name = "oracle", .able = PRIOR_CHAIN, .sample = prior_oracle_sample};
static const PriorOps score_ops = {.name = "score_network", .sample = prior_oracle_sample};

const PriorOps *prior_oracle_family(void) { return &oracle_ops; }

/* Creates the prior with a chain that still lacks its coordinates. */
static Status prior_oracle_create(Arena *memory, const PriorOps *ops, const Oracle *oracle,
                                  const ScheduleRule *rule, Prior *out) {
  enum { WIDTH = 1024 };
  OraclePrior *self;
  ALLOCATE(memory, self, 1);
  *out = (Prior){.memory = memory, .ops = ops, .d = oracle->d, .state = self, .chain = &self->chain};
  self->oracle = *oracle;
  self->sigma_max = INFINITY;
  self->width = oracle->batch < WIDTH ? oracle->batch : WIDTH;
  TRY(denoiser_chain_create(memory, &self->chain, oracle->d, rule, LAST_STAGE_REPAIRED));
  const size_t vector = (size_t)oracle->d * (size_t)self->width;
  ALLOCATE(memory, self->theta, vector);
  ALLOCATE(memory, self->scratch, 2 * vector);
  self->chain.state = self;
  self->chain.noise = prior_oracle_noise;
  self->chain.noise_vjp = prior_oracle_noise_vjp;
  self->chain.noise_jacobian = prior_oracle_noise_jacobian;
  self->chain.noise_products = prior_oracle_noise_products;
  return STATUS_OK;
}

/* Returns the rule of a chain whose coordinates have this scale. */
static ScheduleRule prior_oracle_rule(const OracleRange *range, double scale) {
  const double first = scale / range->sigma_min, last = scale / range->sigma_max;
  return (ScheduleRule){
      .stages = range->stages, .log_snr = true, .first_snr = first * first, .last_snr = last * last};
}

/* Sets shift and scale to mean and standard deviation of draws, whose first coordinates are wide enough for
 * any prior that the largest noise drowns. The scale is the same for all coordinates, as the noise is. */
static Status prior_oracle_find_coordinates(Arena *memory, OraclePrior *self, const OracleRange *range) {
  enum { DRAWS = 256 };
  SCRATCH_ARENA(scratch);
  Chain *chain = &self->chain;
  const int d = chain->d;
  RngLanes rng = {.key = rng_key(0, RNG_PRIOR_MOMENTS), .draws = 1, .lanes = DRAWS};
  double *theta, square = 0;
  ALLOCATE(&scratch, theta, (size_t)d * DRAWS);
  for (int i = 0; i < d; i++) chain->scale[i] = WIDE * range->sigma_max;
  denoiser_chain_sample_parts(chain, self->width, &rng, self->theta, self->scratch, theta);
  for (int i = 0; i < d; i++) {
    double mean, variance;
    linalg_moments(1, DRAWS, theta + (size_t)i * DRAWS, &mean, &variance);
    chain->shift[i] = mean;
    square += variance / d;
  }
  if (!isfinite(square))
    return status_set(STATUS_INPUT, "the oracle failed, or gave values that are not finite");
  const double scale = fmin(fmax(sqrt(square), range->sigma_min), range->sigma_max);
  const ScheduleRule rule = prior_oracle_rule(range, scale);
  for (int i = 0; i < d; i++) chain->scale[i] = scale;
  return schedule_create(memory, &rule, &chain->schedule);
}

Status prior_oracle(Arena *memory, const Oracle *oracle, const OracleRange *range, Prior *out) {
  *out = (Prior){0};
  if (!(range->sigma_min > 0 && range->sigma_max > range->sigma_min && isfinite(range->sigma_max)))
    return status_set(STATUS_INPUT, "sigma_min %g, sigma_max %g; 0 < sigma_min < sigma_max is needed",
                      range->sigma_min, range->sigma_max);
  const ScheduleRule rule = prior_oracle_rule(range, WIDE * range->sigma_max);
  TRY(prior_oracle_create(memory, &oracle_ops, oracle, &rule, out));
  OraclePrior *self = out->state;
  self->sigma_min = range->sigma_min;
  self->sigma_max = range->sigma_max;
  return prior_oracle_find_coordinates(memory, self, range);
}

Status prior_oracle_buffers(Arena *memory, Oracle *oracle) {
  const size_t size = (size_t)oracle->d * (size_t)oracle->batch;
  ALLOCATE_ARRAYS(memory, size, &oracle->x, &oracle->v, &oracle->answer);
  return STATUS_OK;
}

/* ---- functions of the caller's */

enum { GIVEN_BATCH = 1024 };

static int prior_oracle_given_mean(const Oracle *self, int m, int t, double sigma) {
  const OracleFunctions *functions = self->context;
  (void)t;
  return functions->mean(functions->context, m, self->d, self->x, sigma, self->answer);
}

static int prior_oracle_given_product(const Oracle *self, int m, int t, double sigma) {
  const OracleFunctions *functions = self->context;
  (void)t;
  return functions->product(functions->context, m, self->d, self->x, sigma, self->v, self->answer);
}

Status prior_oracle_given(Arena *memory, int d, const OracleFunctions *functions, const OracleRange *range,
                          Prior *out) {
  OracleFunctions *copy;
  ALLOCATE(memory, copy, 1);
  *copy = *functions;
  Oracle oracle = {.d = d,
                   .batch = GIVEN_BATCH,
                   .context = copy,
                   .mean = prior_oracle_given_mean,
                   .product = functions->product ? prior_oracle_given_product : NULL};
  TRY(prior_oracle_buffers(memory, &oracle));
  return prior_oracle(memory, &oracle, range, out);
}

/* ---- a diffusion model with stages of its own */

enum { SCORE_BATCH = 128 };

typedef struct {
  GivenMean *function;
  void *context;
  const Schedule *schedule;
} Score;

static int prior_oracle_score_mean(const Oracle *self, int m, int t, double sigma) {
  const Score *score = self->context;
  const double signal = sqrt(score->schedule->alpha_bar[t]);
  (void)sigma;
  for (int k = 0; k < m * self->d; k++) self->x[k] *= signal;
  return score->function(score->context, m, self->d, self->x, t, self->answer);
}

Status prior_score(Arena *memory, int d, int stages, const double *alpha_bar, GivenMean *function,
                   void *context, Prior *out) {
  const ScheduleRule rule = {.stages = stages, .alpha = 0.5}; /* replaced below */
  Score *score;
  ALLOCATE(memory, score, 1);
  Oracle oracle = {.d = d, .batch = SCORE_BATCH, .context = score, .mean = prior_oracle_score_mean};
  TRY(prior_oracle_buffers(memory, &oracle));
  TRY(prior_oracle_create(memory, &score_ops, &oracle, &rule, out));
  Schedule *schedule = &((OraclePrior *)out->state)->chain.schedule;
  *score = (Score){.function = function, .context = context, .schedule = schedule};
  for (int t = 1; t <= stages; t++) schedule->alpha[t] = alpha_bar[t - 1] / (t > 1 ? alpha_bar[t - 2] : 1);
  const Status status = schedule_derive(schedule);
  return status == STATUS_OK ? status
                             : status_prefix(status, "alpha_bar must fall from below 1 to above 0: ");
}
