#include "sampler/alarm.h"

#include "core/linalg.h"
#include "sampler/mixture_posterior.h"

#include <float.h>
#include <math.h>

/* M simulated histories; of S = M + 1 the first is the one that is asked about. Lanes last. */
struct Alarm {
  const Prior *prior;
  int d, draws; /* M */
  RngKey key;
  History histories; /* of S runs */
  MixturePosterior *posterior;
  double *theta, *noise; /* [d, M] */
  double *precision, *vector; /* [d, d, S], [d, S] */
  double *one, *basis, *eigenvalue; /* [d, d], [d, d], [d]: Lambda and what it is made of */
  double *b; /* [d] */
  double *evidence, *surprise; /* [C, S], [S] */
  int64_t *ignored; /* [S], fallbacks */
};

bool alarm_fits(const Prior *prior, const Likelihood *likelihood) {
  return prior && prior_stand_in(prior) && likelihood_is_conjugate(likelihood) &&
         !likelihood_has_network(likelihood);
}

Status alarm_create(Arena *memory, const Prior *prior, const Likelihood *likelihood, int draws, uint64_t seed,
                    Alarm **out) {
  const size_t d = (size_t)prior->d, count = (size_t)draws, runs = count + 1;
  const Mixture *mixture = prior_stand_in(prior);
  Alarm *self;
  ALLOCATE(memory, self, 1);
  *out = self;
  self->prior = prior;
  self->d = prior->d, self->draws = draws;
  self->key = rng_key(seed, RNG_ALARM);
  TRY(history_create(memory, prior->d, draws + 1, likelihood, &self->histories));
  TRY(mixture_posterior_create(memory, mixture, likelihood, draws + 1, &self->posterior));
  ALLOCATE(memory, self->theta, d * count);
  ALLOCATE(memory, self->noise, d * count);
  ALLOCATE(memory, self->precision, d * d * runs);
  ALLOCATE(memory, self->vector, d * runs);
  ALLOCATE(memory, self->one, d * d);
  ALLOCATE(memory, self->basis, d * d);
  ALLOCATE(memory, self->eigenvalue, d);
  ALLOCATE(memory, self->b, d);
  ALLOCATE(memory, self->evidence, (size_t)mixture->components * runs);
  ALLOCATE(memory, self->surprise, runs);
  ALLOCATE(memory, self->ignored, runs);
  return STATUS_OK;
}

/* Eigenvalues of Lambda below this share of the largest are rounding: fewer observations than dimensions. */
static bool is_observed(const Alarm *self, int k) {
  return self->eigenvalue[k] > 1e-12 * self->eigenvalue[self->d - 1];
}

/* Of every simulated history: its vector b = Lambda theta + Lambda^1/2 noise, and b' Lambda^+ b. */
static void simulate(Alarm *self) {
  const int d = self->d, runs = self->draws + 1;
  for (int s = 1; s < runs; s++) {
    double square = 0;
    for (int i = 0; i < d; i++) self->vector[i * runs + s] = 0;
    for (int k = 0; k < d; k++) {
      if (!is_observed(self, k)) continue;
      const double root = sqrt(self->eigenvalue[k]);
      double whitened = self->noise[k * self->draws + s - 1];
      for (int i = 0; i < d; i++)
        whitened += root * self->basis[i * d + k] * self->theta[i * self->draws + s - 1];
      square += whitened * whitened;
      for (int i = 0; i < d; i++) self->vector[i * runs + s] += root * whitened * self->basis[i * d + k];
    }
    self->surprise[s] = -0.5 * square;
  }
}

/* The history itself. */
static void take(Alarm *self, const History *history, int run) {
  const int d = self->d, runs = self->draws + 1;
  double square = 0;
  history_evidence(&(HistoryView){history, 1, run, 1, NULL, NULL}, self->one, self->b);
  Status status = linalg_eigen(d, self->one, self->basis, self->eigenvalue);
  ASSERT(status == STATUS_OK);
  for (int k = 0; k < d; k++) {
    double along = 0;
    for (int i = 0; i < d; i++) along += self->basis[i * d + k] * self->b[i];
    if (is_observed(self, k)) square += along * along / self->eigenvalue[k];
  }
  self->surprise[0] = -0.5 * square;
  for (int i = 0; i < d; i++) self->vector[i * runs] = self->b[i];
  for (int i = 0; i < d * d; i++)
    for (int s = 0; s < runs; s++) self->precision[i * runs + s] = self->one[i];
}

static double log_sum(int count, int stride, const double *x) {
  double largest = x[0], sum = 0;
  for (int c = 1; c < count; c++) largest = fmax(largest, x[c * stride]);
  for (int c = 0; c < count; c++) sum += exp(x[c * stride] - largest);
  return largest + log(sum);
}

double alarm_p_value(Alarm *self, const History *history, int run, uint32_t stream_run) {
  const int runs = self->draws + 1;
  RngLanes rng = {.key = self->key,
                  .run = stream_run,
                  .draws = (uint32_t)self->draws,
                  .round = (uint32_t)history->rounds,
                  .lanes = (uint32_t)self->draws};
  take(self, history, run);
  self->prior->ops->sample(self->prior, &rng, self->theta);
  rng_lanes_normal(&rng, self->d, self->noise);
  simulate(self);
  history_set_evidence(&self->histories, history->rounds, 1, self->precision, self->vector);
  mixture_posterior_evidence(self->posterior, &self->histories, self->evidence, self->ignored);
  int as_surprising = 1;
  for (int s = 0; s < runs; s++) {
    self->surprise[s] += log_sum(prior_stand_in(self->prior)->components, runs, self->evidence + s);
    as_surprising += s > 0 && self->surprise[s] <= self->surprise[0];
  }
  return (double)as_surprising / runs;
}
