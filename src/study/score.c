#include "study/score.h"

#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "metric/metrics.h"
#include "sampler/exact/exact.h"
#include "sampler/methods.h"

enum { SETS = 4 /* of M exact draws, per history */ };

/* What is measured for a history: a distance, in the order of study_score_compare_with_floor; likewise the
 * error of mode weights; and the ranks of theta* among the draws, and then among exact ones, in (0, 1). */
enum {
  DISTANCE,
  FLOOR,
  SPREAD,
  MODE_ERROR,
  MODE_FLOOR,
  MODE_SPREAD,
  RANK,
  RANK_EXACT = RANK + SCORE_RANKS,
  MEASURED = RANK_EXACT + SCORE_RANKS
};

const char *const score_mean_names[SCORE_MEANS] = {[SCORE_DISTANCE] = "distance",
                                                   [SCORE_FLOOR] = "floor",
                                                   [SCORE_RATIO] = "ratio",
                                                   [SCORE_MODE_ERROR] = "mode_weight_error",
                                                   [SCORE_MODE_FLOOR] = "mode_weight_floor"};
const char *const score_rank_names[SCORE_RANKS] = {"rank", "rank_norm", "rank_log_likelihood"};

enum { PROJECTIONS = 64 /* directions of the sliced distance of the frozen problems */ };

/* What is needed to measure a history. */
typedef struct {
  const Pack *pack;
  Measure *distance;
  Cloud draws, exact[SETS];
  double *truth, *direction; /* [d] */
  double *values; /* [M], of the draws */
  Comparison comparison; /* of this history; each metric sets the clouds and the directions */
} Ruler;

static Measure *study_score_choose_distance(const Pack *pack) {
  return pack->problem.d <= 2 ? measure_emd : measure_sliced_wasserstein;
}

const char *score_metric(const Pack *pack) {
  return study_score_choose_distance(pack) == measure_emd ? "emd" : "sliced_wasserstein";
}

const char *score_exact(const Pack *pack) {
  return exact_way_in_words(&pack->prior, &pack->problem.likelihood);
}

/* ---- one history */

/* Returns the rank of the truth among values[n], in (0, 1): uniform if the draws are exact. Values equal to
 * it, which draws of a discrete posterior can have, are counted as above or below at random. */
static double study_score_place_truth(int n, const double *values, double truth, Rng *rng) {
  double place;
  int above = 0;
  const int below = metric_below(n, values, truth);
  for (int i = 0; i < n; i++) above += values[i] > truth;
  rng_uniform(rng, 1, &place);
  return (below + place * (n - below - above + 1)) / (n + 1);
}

/* Computes along[n] = direction' x of x[d, n]. */
static void study_score_project_points(int d, int n, const double *x, const double *direction,
                                       double *along) {
  for (int k = 0; k < n; k++) along[k] = 0;
  for (int i = 0; i < d; i++)
    for (int k = 0; k < n; k++) along[k] += direction[i] * x[(size_t)i * (size_t)n + (size_t)k];
}

/* Finds the ranks of theta* among the draws: in a random direction, by norm, by likelihood. */
static void study_score_find_ranks(Ruler *self, const Cloud *draws, Rng rng, double rank[SCORE_RANKS]) {
  const int d = self->pack->problem.d, n = self->pack->draws;
  double truth, *values = self->values;
  rng_normal(&rng, d, self->direction);
  study_score_project_points(d, n, draws->theta, self->direction, values);
  study_score_project_points(d, 1, self->truth, self->direction, &truth);
  rank[0] = study_score_place_truth(n, values, truth, &rng);
  metric_norms(d, n, draws->theta, values);
  metric_norms(d, 1, self->truth, &truth);
  rank[1] = study_score_place_truth(n, values, truth, &rng);
  metric_log_likelihoods(&self->comparison, draws, values, &truth);
  rank[2] = study_score_place_truth(n, values, truth, &rng);
}

/* Computes the mean of a metric over sets of exact draws; its floor, the mean over pairs of sets; and the
 * mean square, over sets, of how much further a set is from the others than these are from each other. */
static Status study_score_compare_with_floor(const Ruler *self, Measure *metric, Rng directions,
                                             double out[3]) {
  const double share = 1.0 / SETS, pairs = 2.0 / (SETS * (SETS - 1));
  double sum = 0, of_set[SETS] = {0}; /* distances of all pairs, and of those with each set */
  double value, pair;
  Comparison comparison = self->comparison;
  comparison.directions = directions;
  out[0] = out[1] = out[2] = 0;
  for (int k = 0; k < SETS; k++) {
    comparison.x = &self->draws;
    comparison.y = &self->exact[k];
    TRY(metric(&comparison, &value));
    out[0] += share * value;
    for (int j = 0; j < k; j++) {
      comparison.x = &self->exact[j];
      TRY(metric(&comparison, &pair));
      out[1] += pairs * pair;
      sum += pair;
      of_set[j] += pair;
      of_set[k] += pair;
    }
  }
  for (int k = 0; k < SETS; k++) {
    const double others = (sum - of_set[k]) / ((SETS - 1) * (SETS - 2) / 2.0),
                 further = of_set[k] / (SETS - 1) - others;
    out[2] += further * further / SETS;
  }
  return STATUS_OK;
}

/* ---- the histories of a group */

/* Measures the histories of a group; theta[histories, M, d] and measured[MEASURED, histories] are of all. */
static Status study_score_measure_group(Ruler *self, const PackGroup *group, const double *theta,
                                        double *measured) {
  const Pack *pack = self->pack;
  const int d = pack->problem.d, m = pack->draws;
  const size_t lanes = (size_t)group->histories * SETS * (size_t)m;
  SCRATCH_ARENA(scratch);
  Sampler sampler;
  int64_t *fallbacks;
  double *exact; /* [d, histories SETS M] */
  const SamplerSetup setup = {.prior = &pack->prior,
                              .likelihood = &pack->problem.likelihood,
                              .runs = group->histories,
                              .draws = SETS * m,
                              .seed = pack->problem.seed,
                              .first_run = group->first};
  const RngLanes rng = rng_lanes(rng_key(pack->problem.seed, RNG_EXACT), group->first, group->histories,
                                 SETS * m, (uint32_t)group->observations);
  ALLOCATE(&scratch, exact, (size_t)d * lanes);
  ALLOCATE(&scratch, fallbacks, group->histories);
  TRY(sampler_create(&scratch, &sampler_exact, &setup, &sampler));
  sampler_sample(&sampler, &group->history, rng, SETS * m, exact, fallbacks);
  for (int h = 0; h < group->histories; h++) {
    const size_t number = (size_t)group->first + (size_t)h;
    double out[MEASURED] = {[MODE_ERROR] = NAN, [MODE_FLOOR] = NAN};
    io_dataset_transpose(m, d, theta + number * (size_t)m * (size_t)d, self->draws.theta);
    for (int k = 0; k < SETS; k++)
      lanes_copy(d, m, exact + (h * SETS + k) * m, (int)lanes, self->exact[k].theta, m);
    lanes_copy(d, 1, group->theta + h, group->histories, self->truth, 1);
    self->comparison.history = &group->history;
    self->comparison.run = h;
    const Rng directions = {.key = rng_key(pack->problem.seed, RNG_DIRECTION),
                            .run = (uint32_t)number,
                            .round = (uint32_t)group->observations};
    study_score_find_ranks(self, &self->draws, directions, out + RANK);
    study_score_find_ranks(self, &self->exact[0], directions, out + RANK_EXACT);
    TRY(study_score_compare_with_floor(self, self->distance, directions, out + DISTANCE));
    if (pack->prior.mixture)
      TRY(study_score_compare_with_floor(self, measure_mode_weight_error, directions, out + MODE_ERROR));
    for (int q = 0; q < MEASURED; q++) measured[q * pack->histories + (int)number] = out[q];
  }
  return STATUS_OK;
}

/* ---- means over histories */

static ScoreMean study_score_mean(int n, const double *x) {
  double sum = 0, squares = 0;
  for (int h = 0; h < n; h++) sum += x[h] / n;
  for (int h = 0; h < n; h++) squares += (x[h] - sum) * (x[h] - sum);
  return (ScoreMean){sum, sqrt(squares / (n - 1) / n)};
}

/* Returns mean(x) / mean(y); its error is that of the mean of x - ratio y, over mean(y). */
static ScoreMean study_score_ratio(int n, const double *x, const double *y) {
  const double below = study_score_mean(n, y).mean, ratio = study_score_mean(n, x).mean / below;
  double squares = 0;
  for (int h = 0; h < n; h++) squares += (x[h] - ratio * y[h]) * (x[h] - ratio * y[h]);
  return (ScoreMean){ratio, sqrt(squares / (n - 1) / n) / below};
}

double score_uniform_p(int n, const double *u) {
  enum { BINS = 11, LEAST = 5 /* least expected number of histories per bin: Cochran 1954 */ };
  int count[BINS] = {0};
  double statistic = 0, above = 0;
  const double expected = (double)n / BINS;
  if (expected < LEAST) return NAN;
  for (int i = 0; i < n; i++) count[(int)(u[i] * BINS)]++;
  for (int b = 0; b < BINS; b++) statistic += (count[b] - expected) * (count[b] - expected) / expected;
  /* P(chi^2 > x) with 2 k degrees of freedom is exp(-x / 2) sum_{j < k} (x / 2)^j / j!. */
  double term = exp(-statistic / 2);
  for (int j = 0; j < (BINS - 1) / 2; term *= statistic / 2 / ++j) above += term;
  return above;
}

static Status study_score_summarise(Arena *memory, const Pack *pack, const double *measured, Score *out) {
  double spread = 0; /* variance of the ratio of exact draws */
  *out = (Score){0};
  ALLOCATE(memory, out->means, pack->groups);
  for (int g = 0; g < pack->groups; g++) {
    ScoreMean *mean = out->means[g];
    const int n = pack->group[g].histories;
    const double *of[MEASURED];
    for (int q = 0; q < MEASURED; q++) of[q] = measured + q * pack->histories + pack->group[g].first;
    mean[SCORE_DISTANCE] = study_score_mean(n, of[DISTANCE]);
    mean[SCORE_FLOOR] = study_score_mean(n, of[FLOOR]);
    mean[SCORE_RATIO] = study_score_ratio(n, of[DISTANCE], of[FLOOR]);
    mean[SCORE_MODE_ERROR] = study_score_mean(n, of[MODE_ERROR]);
    mean[SCORE_MODE_FLOOR] = study_score_mean(n, of[MODE_FLOOR]);
    out->ratio.mean += mean[SCORE_RATIO].mean / pack->groups;
    spread += study_score_mean(n, of[SPREAD]).mean / n / pow(mean[SCORE_FLOOR].mean * pack->groups, 2);
    out->ratio.se = hypot(out->ratio.se, mean[SCORE_RATIO].se / pack->groups);
  }
  out->even_p = 0.5 * erfc((1 - out->ratio.mean) / sqrt(2 * spread));
  for (int r = 0; r < SCORE_RANKS; r++) {
    out->rank_p[r] = score_uniform_p(pack->histories, measured + (RANK + r) * pack->histories);
    out->rank_p_exact[r] = score_uniform_p(pack->histories, measured + (RANK_EXACT + r) * pack->histories);
  }
  return STATUS_OK;
}

Status score_draws(Arena *memory, const Pack *pack, const double *theta, Score *out) {
  SCRATCH_ARENA(scratch);
  const int d = pack->problem.d, components = pack->prior.mixture ? pack->prior.mixture->components : 0;
  const size_t values = (size_t)d * (size_t)pack->draws;
  double *measured;
  HistoryDensity density;
  Ruler ruler = {
      .pack = pack,
      .distance = study_score_choose_distance(pack),
      .draws.n = pack->draws,
      .comparison = {.d = d, .density = &density, .modes = pack->prior.mixture, .projections = PROJECTIONS}};
  ALLOCATE(&scratch, measured, MEASURED * pack->histories);
  ALLOCATE(&scratch, ruler.draws.theta, values);
  for (int k = 0; k < SETS; k++) {
    ruler.exact[k].n = pack->draws;
    ALLOCATE(&scratch, ruler.exact[k].theta, values);
  }
  ALLOCATE_ARRAYS(&scratch, d, &ruler.truth, &ruler.direction);
  ruler.comparison.truth = ruler.truth;
  TRY(history_density_create(&scratch, d, 1, &pack->problem.likelihood, &density));
  ALLOCATE(&scratch, ruler.values, pack->draws);
  ALLOCATE(&scratch, ruler.comparison.work, metric_work(d, pack->draws, components));
  TRY(wasserstein_create(&scratch, d, pack->draws, &ruler.comparison.wasserstein));
  if (ruler.distance == measure_emd) TRY(emd_create(&scratch, pack->draws, &ruler.comparison.emd));
  for (int g = 0; g < pack->groups; g++)
    TRY(study_score_measure_group(&ruler, &pack->group[g], theta, measured));
  return study_score_summarise(memory, pack, measured, out);
}

/* ---- any draws and reference draws */

enum {
  DIRECTIONS = 300,
  MOST_MATCHED = 1000 /* points for the earth mover's distance, whose cost is cubic */
};

/* The clouds to compare, of `points` points: one of the draws, and two of the reference. */
typedef struct {
  int d, n, m;
  const double *draws, *reference; /* [d, n], [d, m] */
  int *order; /* [max(n, m)] */
  double *x, *y, *z; /* [d, points] */
} Partition;

/* Copies to[d, points] <- the columns order[first ..] of from[d, n]. */
static void study_score_take_points(const Partition *self, int points, int first, int n, const double *from,
                                    double *to) {
  for (size_t i = 0; i < (size_t)self->d; i++)
    for (int k = 0; k < points; k++)
      to[i * (size_t)points + (size_t)k] = from[i * (size_t)n + (size_t)self->order[first + k]];
}

/* Makes partition number `round`: x of the draws, y and z of the reference. */
static void study_score_make_partition(Partition *self, int points, int round) {
  Rng rng = {.key = rng_subkey(rng_key(0, RNG_DIRECTION), RNG_SPLIT), .round = (uint32_t)round};
  rng_permutation(&rng, self->n, self->order);
  study_score_take_points(self, points, 0, self->n, self->draws, self->x);
  rng_permutation(&rng, self->m, self->order);
  study_score_take_points(self, points, 0, self->m, self->reference, self->y);
  study_score_take_points(self, points, points, self->m, self->reference, self->z);
}

/* Compares means and standard deviations, coordinate by coordinate. */
static Status study_score_compare_moments(const Partition *self, ScoreReference *out) {
  out->sd_low = INFINITY;
  for (int i = 0; i < self->d; i++) {
    double mean[2], variance[2];
    linalg_moments(1, self->n, self->draws + (size_t)i * (size_t)self->n, &mean[0], &variance[0]);
    linalg_moments(1, self->m, self->reference + (size_t)i * (size_t)self->m, &mean[1], &variance[1]);
    if (!(variance[1] > 0))
      return status_set(STATUS_INPUT, "theta[%d] is the same in all draws of the reference", i);
    const double error = fabs(mean[0] - mean[1]) / sqrt(variance[1]), ratio = sqrt(variance[0] / variance[1]);
    if (error > out->mean_error) {
      out->mean_error = error;
      out->mean_error_at = i;
    }
    out->sd_low = fmin(out->sd_low, ratio);
    out->sd_high = fmax(out->sd_high, ratio);
  }
  return STATUS_OK;
}

Status score_reference(int d, int n, const double *draws, int m, const double *reference,
                       ScoreReference *out) {
  SCRATCH_ARENA(scratch);
  Partition self = {.d = d, .n = n, .m = m, .draws = draws, .reference = reference};
  const int points = n < m / 2 ? n : m / 2, matched = points < MOST_MATCHED ? points : MOST_MATCHED;
  Wasserstein *wasserstein;
  Emd *emd;
  *out = (ScoreReference){.sliced.points = points, .emd.points = matched};
  TRY(study_score_compare_moments(&self, out));
  TRY(metric_distinct(d, n, draws, &out->distinct));
  TRY(metric_distinct(d, m, reference, &out->reference_distinct));
  ALLOCATE(&scratch, self.order, n > m ? n : m);
  ALLOCATE_ARRAYS(&scratch, (size_t)d * (size_t)points, &self.x, &self.y, &self.z);
  TRY(wasserstein_create(&scratch, d, points, &wasserstein));
  TRY(emd_create(&scratch, matched, &emd));
  for (int round = 0; round < SCORE_PARTITIONS; round++) {
    const Rng rng = {.key = rng_key(0, RNG_DIRECTION), .round = (uint32_t)round};
    Clouds draws_to_exact = {.d = d, .n = points, .m = points, .x = self.x, .y = self.y};
    Clouds exact_to_exact = {.d = d, .n = points, .m = points, .x = self.z, .y = self.y};
    double distance, floor;
    study_score_make_partition(&self, points, round);
    distance = wasserstein_sliced(wasserstein, &draws_to_exact, DIRECTIONS, rng);
    floor = wasserstein_sliced(wasserstein, &exact_to_exact, DIRECTIONS, rng);
    out->sliced.distance += distance / SCORE_PARTITIONS;
    out->sliced.floor += floor / SCORE_PARTITIONS;
    study_score_make_partition(&self, matched, round);
    draws_to_exact.n = draws_to_exact.m = matched;
    exact_to_exact.n = exact_to_exact.m = matched;
    TRY(emd_distance(emd, &draws_to_exact, &distance));
    TRY(emd_distance(emd, &exact_to_exact, &floor));
    out->emd.distance += distance / SCORE_PARTITIONS;
    out->emd.floor += floor / SCORE_PARTITIONS;
  }
  return STATUS_OK;
}
