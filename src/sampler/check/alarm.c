#include "sampler/check/alarm.h"

#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "model/history/history_subspace.h"
#include "model/prior/prior.h"
#include "sampler/mixture/mixture_posterior.h"

#include <math.h>

typedef struct AlarmWay AlarmWay;

/* M simulated histories; the first of all S = M + 1 is the one that is tested. Lanes last. */
struct Alarm {
  const Prior *prior;
  const Likelihood *likelihood;
  const AlarmWay *way;
  int d, draws; /* M */
  RngKey key;
  Mixture wide;
  MixturePosterior *under_prior, *under_wide;
  double *theta, *noise; /* [d, M] */
  double *evidence, *surprise; /* [C, S], [S] */
  /* For a conjugate likelihood, where all histories have the same Lambda: */
  double *vector, *whitened; /* [d, S]: b, and scratch */
  double *one, *basis, *eigenvalue; /* [d, d], [d, d], [d]: Lambda, its eigenvectors and eigenvalues */
  double *b; /* [d] */
  const double *noise_of_b; /* [d, d]: its covariance given theta, if that is not Lambda; NULL */
  /* For any other: */
  History histories; /* of S runs */
  int64_t *ignored; /* [S], fallbacks */
  double *phi, *y; /* [d, S], [S]: one observation of each history */
  double *uniform, *normal; /* [M] */
};

static const MixtureOptions NO_DRAWS = {.candidates = 1};

bool alarm_fits(const Prior *prior, const Likelihood *likelihood, int observations) {
  return prior && prior_stand_in(prior) && !likelihood_has_network(likelihood) &&
         likelihood_rows(likelihood, observations) <= ALARM_ROWS;
}

/* Adds (of_noise root(v_k) noise_k + of_theta v_k u_k' theta) u_k to each simulated b, over the eigenvalues
 * v_k and eigenvectors u_k of a matrix[d, d]. */
static void alarm_add_spectrum(Alarm *self, const double *matrix, double of_noise, double of_theta) {
  const int d = self->d, draws = self->draws, runs = draws + 1;
  Status status = linalg_eigen(d, matrix, self->basis, self->eigenvalue);
  ASSERT(status == STATUS_OK);
  for (int s = 1; s < runs; s++)
    for (int k = 0; k < d; k++) {
      /* With fewer observations than dimensions, eigenvalues below this share of the largest are only
       * rounding errors, of directions that were not observed. */
      if (!(self->eigenvalue[k] > 1e-12 * self->eigenvalue[d - 1])) continue;
      const double root = sqrt(self->eigenvalue[k]);
      double whitened = of_noise * self->noise[k * draws + s - 1], along = 0;
      for (int i = 0; i < d; i++) along += root * self->basis[i * d + k] * self->theta[i * draws + s - 1];
      whitened += of_theta * along;
      for (int i = 0; i < d; i++) self->vector[i * runs + s] += root * whitened * self->basis[i * d + k];
    }
}

/* Finds how the given history and simulated ones of the same precision fare under both mixtures: b = Lambda
 * theta + noise of the covariance Lambda, or of another if the evidence has aged. */
static void alarm_weigh_evidence(Alarm *self, const History *history, int run, RngLanes *rng) {
  const int d = self->d, runs = self->draws + 1;
  history_evidence(&(HistoryView){history, 1, run, 1, NULL, NULL}, self->one, self->b);
  lanes_repeat(d, runs, self->b, self->vector);
  rng_lanes_normal(rng, d, self->noise);
  for (int i = 0; i < d; i++)
    for (int s = 1; s < runs; s++) self->vector[i * runs + s] = 0;
  alarm_add_spectrum(self, self->one, self->noise_of_b ? 0 : 1, 1);
  if (self->noise_of_b) alarm_add_spectrum(self, self->noise_of_b, 1, 0);
  mixture_posterior_evidence_shared(self->under_wide, history, run, runs, self->vector, self->whitened,
                                    self->surprise);
  mixture_posterior_evidence_shared(self->under_prior, history, run, runs, self->vector, self->whitened,
                                    self->evidence);
}

void alarm_set_noise(Alarm *self, const double *covariance) { self->noise_of_b = covariance; }

/* Does the same for any other rewards: the given observations, with simulated rewards after the real one. */
static void alarm_weigh_rows(Alarm *self, const History *history, int run, RngLanes *rng) {
  const int d = self->d, draws = self->draws, runs = draws + 1;
  history_clear(&self->histories);
  for (int l = 0; l < history_observations(history, run); l++) {
    self->y[0] = history_observation(history, run, l, (size_t)runs, self->phi);
    rng_lanes_uniform(rng, 1, self->uniform);
    rng_lanes_normal(rng, 1, self->normal);
    for (int i = 0; i < d; i++)
      for (int s = 1; s < runs; s++) self->phi[i * runs + s] = self->phi[i * runs];
    for (int s = 0; s < draws; s++) {
      double u = 0;
      for (int i = 0; i < d; i++) u += self->phi[i * runs] * self->theta[i * draws + s];
      self->y[s + 1] = self->likelihood->ops->sample(self->likelihood, u, self->uniform[s], self->normal[s]);
    }
    history_record(&self->histories, NULL, self->phi, self->y);
  }
  mixture_posterior_evidence(self->under_wide, &self->histories, self->surprise, self->ignored);
  mixture_posterior_evidence(self->under_prior, &self->histories, self->evidence, self->ignored);
}

static Status alarm_create_evidence(Arena *memory, Alarm *self, int observations) {
  const size_t d = (size_t)self->d, runs = (size_t)self->draws + 1;
  (void)observations;
  ALLOCATE_ARRAYS(memory, d * runs, &self->vector, &self->whitened);
  ALLOCATE_ARRAYS(memory, d * d, &self->one, &self->basis);
  ALLOCATE_ARRAYS(memory, d, &self->eigenvalue, &self->b);
  return STATUS_OK;
}

static Status alarm_create_rows(Arena *memory, Alarm *self, int observations) {
  const size_t runs = (size_t)self->draws + 1;
  ALLOCATE(memory, self->phi, (size_t)self->d * runs);
  ALLOCATE_ARRAYS(memory, runs, &self->y, &self->uniform, &self->normal);
  ALLOCATE(memory, self->ignored, runs);
  TRY(history_create(memory, self->d, (int)runs, self->likelihood, &self->histories));
  return history_reserve(&self->histories, observations);
}

/* How histories are simulated and weighed: as evidence, or row by row. */
struct AlarmWay {
  int histories; /* behind the p-values that are shown to users */
  bool shared; /* all histories have one precision, so that their posteriors share matrices */
  Status (*create)(Arena *memory, Alarm *self, int observations);
  void (*weigh)(Alarm *self, const History *history, int run, RngLanes *rng);
};

static const AlarmWay *alarm_way(const Likelihood *likelihood) {
  static const AlarmWay evidence = {.histories = 999,
                                    .shared = true,
                                    .create = alarm_create_evidence,
                                    .weigh = alarm_weigh_evidence},
                        rows = {.histories = 199, .create = alarm_create_rows, .weigh = alarm_weigh_rows};
  return likelihood_is_conjugate(likelihood) ? &evidence : &rows;
}

int alarm_histories(const Likelihood *likelihood) { return alarm_way(likelihood)->histories; }

bool alarm_shares_precision(const Likelihood *likelihood) { return alarm_way(likelihood)->shared; }

Status alarm_create(Arena *memory, const Prior *prior, const Likelihood *likelihood, int observations,
                    int draws, uint64_t seed, Alarm **out) {
  const size_t d = (size_t)prior->d, count = (size_t)draws, runs = count + 1;
  const Mixture *mixture = prior_stand_in(prior);
  const AlarmWay *way = alarm_way(likelihood);
  const int posteriors = way->shared ? 1 : draws + 1;
  Alarm *self;
  ALLOCATE(memory, self, 1);
  *out = self;
  self->prior = prior;
  self->likelihood = likelihood;
  self->way = way;
  self->d = prior->d;
  self->draws = draws;
  self->key = rng_key(seed, RNG_ALARM);
  TRY(prior_wide_create(memory, mixture, WIDE_WIDTH, &self->wide));
  TRY(mixture_posterior_create(memory, mixture, likelihood, posteriors, NO_DRAWS, &self->under_prior));
  TRY(mixture_posterior_create(memory, &self->wide, likelihood, posteriors, NO_DRAWS, &self->under_wide));
  ALLOCATE_ARRAYS(memory, d * count, &self->theta, &self->noise);
  ALLOCATE(memory, self->evidence, (size_t)mixture->components * runs);
  ALLOCATE(memory, self->surprise, runs);
  return way->create(memory, self, observations);
}

double alarm_p_value(Alarm *self, const History *history, int run, uint32_t stream_run) {
  const int runs = self->draws + 1, components = prior_stand_in(self->prior)->components;
  RngLanes rng = rng_lanes(self->key, stream_run, 1, self->draws, (uint32_t)history->rounds);
  self->prior->ops->sample(self->prior, &rng, self->theta);
  self->way->weigh(self, history, run, &rng);
  int as_surprising = 1;
  for (int s = 0; s < runs; s++) {
    self->surprise[s] = mixture_posterior_log_sum(components, runs, self->evidence + s) - self->surprise[s];
    as_surprising += s > 0 && self->surprise[s] <= self->surprise[0];
  }
  return (double)as_surprising / runs;
}

/* Judges a history of one run in its own coordinates. */
static Status judge_all(const Prior *prior, const History *history, uint64_t seed, double *p_value) {
  SCRATCH_ARENA(scratch);
  const Likelihood *likelihood = history->likelihood;
  Alarm *alarm;
  TRY(alarm_create(&scratch, prior, likelihood, history->rounds, alarm_histories(likelihood), seed, &alarm));
  *p_value = alarm_p_value(alarm, history, 0, 0);
  return STATUS_OK;
}

Status alarm_judge(const Prior *prior, const History *history, uint64_t seed, double *p_value) {
  SCRATCH_ARENA(scratch);
  const HistoryView view = history_view(history, 1, 0, 1);
  const PriorFit closed = {.schedule = {.stages = 1, .alpha = 0.5}, .closed_only = true};
  Subspace seen;
  Mixture projected;
  Prior of_seen;
  History own;
  if (!prior->mixture || prior->d <= LINALG_BATCH_DIMENSION || history->rounds > prior->d / 2)
    return judge_all(prior, history, seed, p_value);
  TRY(history_subspace_find(&scratch, &view, &seen));
  if (seen.rank == 0) return judge_all(prior, history, seed, p_value);
  TRY(mixture_project(&scratch, prior->mixture, seen.rank, seen.direction, &projected));
  TRY(prior_from_mixture(&scratch, &projected, &closed, &of_seen));
  const SeenAxes axes = {.seen = &seen, .m = seen.rank, .axis = seen.direction};
  TRY(history_project(&scratch, &view, axes, false, &own));
  return judge_all(&of_seen, &own, seed, p_value);
}
