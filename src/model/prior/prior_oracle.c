#include "model/prior/prior_oracle.h"

#include "core/linalg/linalg.h"
#include "core/simd.h"
#include "core/special.h"

#include <math.h>
#include <string.h>

static const double WIDE = 0.1; /* of the largest noise: the scale of the first draws */

typedef struct {
  Chain chain;
  Oracle oracle;
  double sigma_min, sigma_max; /* between which it is asked */
  int width; /* most lanes of unconditional draws at a time */
  double *theta, *scratch; /* [d, width], [2, d, width] */
  double *length; /* [batch]: of vectors */
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

/* Lanes become rows, and rows lanes, VECTOR_LANES at a time, which lie side by side in memory. Runs a
 * statement for each such block of lanes q .. q + n - 1 of `count`; in whole ones n is a constant. */
#define FOR_BLOCKS(count, statement)                                                                         \
  do {                                                                                                       \
    const size_t whole = (count) / VECTOR_LANES * VECTOR_LANES, rest = (count)-whole;                        \
    for (size_t q = 0; q < whole; q += VECTOR_LANES) {                                                       \
      enum { n = VECTOR_LANES };                                                                             \
      statement;                                                                                             \
    }                                                                                                        \
    if (rest > 0) {                                                                                          \
      const size_t q = whole, n = rest;                                                                      \
      statement;                                                                                             \
    }                                                                                                        \
  } while (0)

/* Writes lanes to rows of x: x = shift + scale s / sqrt(alpha_bar). */
INLINE void place_points(const OraclePrior *self, const OracleLanes *at, size_t q, size_t n, double *x) {
  const size_t d = (size_t)self->chain.d;
  const double factor = self->chain.scale[0] / at->signal, *shift = self->chain.shift;
  for (size_t i = 0; i < d; i++) {
    const double *s = at->s + i * at->lanes + at->first + q;
    for (size_t j = 0; j < n; j++) x[(q + j) * d + i] = special_two_products(factor, s[j], 1, shift[i]);
  }
}

/* Computes eps = (s - sqrt(alpha_bar) (D - shift) / scale) / sqrt(1 - alpha_bar) from rows of D. */
INLINE void take_noise(const OraclePrior *self, const OracleLanes *at, size_t q, size_t n, double *eps) {
  const size_t d = (size_t)self->chain.d;
  const double factor = at->signal / self->chain.scale[0], over = 1 / at->noise, *shift = self->chain.shift,
               *mean = self->oracle.answer;
  for (size_t i = 0; i < d; i++) {
    const size_t lane = i * at->lanes + at->first + q;
    for (size_t j = 0; j < n; j++)
      eps[lane + j] = (at->s[lane + j] - factor * (mean[(q + j) * d + i] - shift[i])) * over;
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
    FOR_BLOCKS(at.count, place_points(self, &at, q, n, oracle->x));
    prior_oracle_ask(oracle, false, at.count, &at);
    FOR_BLOCKS(at.count, take_noise(self, &at, q, n, eps));
  }
}

/* ---- products with the Jacobian of the noise, (v - J v) / sqrt(1 - alpha_bar) */

/* One of the vectors v[count, d, lanes], in the lanes of `at`; without vectors they are the unit vectors. */
typedef struct {
  const OracleLanes *at;
  size_t d, k;
  const double *v; /* [d, lanes]; NULL: unit vector k */
  double *out; /* [d, lanes]: its product */
} OracleVector;

static OracleVector prior_oracle_vector(const ChainProducts *products, const OracleLanes *at, size_t d,
                                        size_t k) {
  const size_t from = k * d * at->lanes + at->first;
  return (OracleVector){
      .at = at, .d = d, .k = k, .v = products->v ? products->v + from : NULL, .out = products->out + from};
}

/* Returns entry i in VECTOR_LANES lanes from lane q on. */
static const double *prior_oracle_entries(const OracleVector *vector, size_t i, size_t q) {
  static const double zeros[VECTOR_LANES], ones[] = {1, 1, 1, 1, 1, 1, 1, 1};
  if (vector->v) return vector->v + i * vector->at->lanes + q;
  return i == vector->k ? ones : zeros;
}

/* Computes length[count], which is 1 in place of 0. */
static void prior_oracle_measure(const OracleVector *vector, double *length) {
  const size_t count = vector->at->count;
  for (size_t n = 0; n < count; n++) length[n] = vector->v ? 0 : 1;
  if (!vector->v) return;
  for (size_t i = 0; i < vector->d; i++)
    for (size_t n = 0; n < count; n++) {
      const double v = vector->v[i * vector->at->lanes + n];
      length[n] += v * v;
    }
  for (size_t n = 0; n < count; n++) length[n] = length[n] > 0 ? sqrt(length[n]) : 1;
}

/* Writes the vector to rows v[count, d]. */
INLINE void place_vector(const OracleVector *vector, size_t q, size_t n, double *rows) {
  const size_t d = vector->d;
  for (size_t i = 0; i < d; i++) {
    const double *v = prior_oracle_entries(vector, i, q);
    for (size_t j = 0; j < n; j++) rows[(q + j) * d + i] = v[j];
  }
}

/* Takes the vector's product from rows J v[count, d]. */
INLINE void take_product(const OracleVector *vector, size_t q, size_t n, const double *rows) {
  const size_t d = vector->d, lanes = vector->at->lanes;
  const double over = 1 / vector->at->noise;
  for (size_t i = 0; i < d; i++) {
    const double *v = prior_oracle_entries(vector, i, q);
    double *out = vector->out + i * lanes + q;
    for (size_t j = 0; j < n; j++) out[j] = (v[j] - rows[(q + j) * d + i]) * over;
  }
}

/* Points moved along a vector in each lane, or D there. */
typedef struct {
  const double *points, *length; /* [count, d], [count]: before; of the vector */
  double *forwards, *backwards; /* [count, d] */
  double step;
} OracleMoved;

INLINE void move_points(const OracleVector *vector, size_t q, size_t n, const OracleMoved *moved) {
  const size_t d = vector->d;
  double factor[VECTOR_LANES];
  for (size_t j = 0; j < n; j++) factor[j] = moved->step / moved->length[q + j];
  for (size_t i = 0; i < d; i++) {
    const double *v = prior_oracle_entries(vector, i, q);
    for (size_t j = 0; j < n; j++) {
      const size_t at = (q + j) * d + i;
      const double along = factor[j] * v[j];
      moved->forwards[at] = moved->points[at] + along;
      moved->backwards[at] = moved->points[at] - along;
    }
  }
}

/* Takes the vector's product from D at these points. */
INLINE void take_difference(const OracleVector *vector, size_t q, size_t n, const OracleMoved *moved) {
  const size_t d = vector->d, lanes = vector->at->lanes;
  const double over = 1 / vector->at->noise, *forwards = moved->forwards, *backwards = moved->backwards;
  double factor[VECTOR_LANES];
  for (size_t j = 0; j < n; j++) factor[j] = 0.5 * moved->length[q + j] / moved->step;
  for (size_t i = 0; i < d; i++) {
    const double *v = prior_oracle_entries(vector, i, q);
    double *out = vector->out + i * lanes + q;
    for (size_t j = 0; j < n; j++) {
      const size_t at = (q + j) * d + i;
      out[j] = (v[j] - factor[j] * (forwards[at] - backwards[at])) * over;
    }
  }
}

/* Vectors first .. first + count - 1 of those whose products are wanted, in one call. */
typedef struct {
  const ChainProducts *products;
  size_t first, count;
} OracleCall;

/* Computes the products by the oracle's own: a row for each vector of each lane. */
static void prior_oracle_multiply(const OraclePrior *self, const OracleLanes *at, OracleCall call) {
  const Oracle *oracle = &self->oracle;
  const size_t d = (size_t)oracle->d, entries = at->count * d;
  FOR_BLOCKS(at->count, place_points(self, at, q, n, oracle->x));
  for (size_t k = 0; k < call.count; k++) {
    const OracleVector vector = prior_oracle_vector(call.products, at, d, call.first + k);
    if (k > 0) memcpy(oracle->x + k * entries, oracle->x, entries * sizeof *oracle->x);
    FOR_BLOCKS(at->count, place_vector(&vector, q, n, oracle->v + k * entries));
  }
  prior_oracle_ask(oracle, true, call.count * at->count, at);
  for (size_t k = 0; k < call.count; k++) {
    const OracleVector vector = prior_oracle_vector(call.products, at, d, call.first + k);
    FOR_BLOCKS(at->count, take_product(&vector, q, n, oracle->answer + k * entries));
  }
}

/* Computes the products by central differences: rows are the points of the lanes moved forwards along one
 * vector after the other, and then backwards. */
static void prior_oracle_difference(const OraclePrior *self, const OracleLanes *at, OracleCall call) {
  static const double SHARE = 0.003; /* of the noise: in single precision three digits are left */
  const Oracle *oracle = &self->oracle;
  const size_t d = (size_t)oracle->d, entries = at->count * d;
  OracleMoved moved = {.points = oracle->v, .step = SHARE * at->sigma};
  FOR_BLOCKS(at->count, place_points(self, at, q, n, oracle->v));
  for (size_t k = 0; k < call.count; k++) {
    const OracleVector vector = prior_oracle_vector(call.products, at, d, call.first + k);
    double *length = self->length + k * at->count;
    prior_oracle_measure(&vector, length);
    moved.length = length;
    moved.forwards = oracle->x + k * entries;
    moved.backwards = moved.forwards + call.count * entries;
    FOR_BLOCKS(at->count, move_points(&vector, q, n, &moved));
  }
  prior_oracle_ask(oracle, false, 2 * call.count * at->count, at);
  for (size_t k = 0; k < call.count; k++) {
    const OracleVector vector = prior_oracle_vector(call.products, at, d, call.first + k);
    moved.length = self->length + k * at->count;
    moved.forwards = oracle->answer + k * entries;
    moved.backwards = moved.forwards + call.count * entries;
    FOR_BLOCKS(at->count, take_difference(&vector, q, n, &moved));
  }
}

static void prior_oracle_noise_products(const Chain *chain, int t, int lanes, const double *s, double *eps,
                                        const ChainProducts *products) {
  const OraclePrior *self = chain->state;
  const size_t count = (size_t)products->count,
               room = (size_t)self->oracle.batch / (self->oracle.product ? 1 : 2), /* of a call */
      most = room > count ? room / count : 1;
  OracleLanes at = prior_oracle_lanes(self, t, lanes, s);
  if (eps) prior_oracle_noise(chain, t, lanes, s, eps);
  for (at.first = 0; at.first < at.lanes; at.first += at.count) {
    at.count = at.lanes - at.first < most ? at.lanes - at.first : most;
    const size_t together = room / at.count; /* vectors of a call */
    for (size_t k = 0; k < count; k += together) {
      const OracleCall call = {products, k, count - k < together ? count - k : together};
      if (self->oracle.product)
        prior_oracle_multiply(self, &at, call);
      else
        prior_oracle_difference(self, &at, call);
    }
  }
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
  OraclePrior *self;
  ALLOCATE(memory, self, 1);
  *out = (Prior){.memory = memory, .ops = ops, .d = oracle->d, .state = self, .chain = &self->chain};
  self->oracle = *oracle;
  self->sigma_max = INFINITY;
  self->width = oracle->batch;
  TRY(denoiser_chain_create(memory, &self->chain, oracle->d, rule, LAST_STAGE_REPAIRED));
  self->chain.lanes = oracle->batch;
  const size_t vector = (size_t)oracle->d * (size_t)self->width;
  ALLOCATE(memory, self->theta, vector);
  ALLOCATE(memory, self->scratch, 2 * vector);
  ALLOCATE(memory, self->length, oracle->batch);
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
