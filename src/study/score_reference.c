#include "study/score_reference.h"

#include "core/linalg.h"
#include "metric/draws.h"
#include "metric/emd.h"
#include "metric/wasserstein.h"

#include <math.h>

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

static Status study_score_compare_parts(Partition *self, Wasserstein *wasserstein, Emd *emd,
                                        ScoreReference *out) {
  const int d = self->d;
  for (int round = 0; round < SCORE_PARTITIONS; round++) {
    const Rng rng = {.key = rng_key(0, RNG_DIRECTION), .round = (uint32_t)round};
    const int points = out->sliced.points, matched = out->emd.points;
    double distance, floor;
    study_score_make_partition(self, points, round);
    out->sliced.distance +=
        wasserstein_sliced(wasserstein, d, points, self->x, points, self->y, DIRECTIONS, rng) /
        SCORE_PARTITIONS;
    out->sliced.floor +=
        wasserstein_sliced(wasserstein, d, points, self->z, points, self->y, DIRECTIONS, rng) /
        SCORE_PARTITIONS;
    study_score_make_partition(self, matched, round);
    TRY(emd_distance(emd, d, matched, self->x, matched, self->y, &distance));
    TRY(emd_distance(emd, d, matched, self->z, matched, self->y, &floor));
    out->emd.distance += distance / SCORE_PARTITIONS, out->emd.floor += floor / SCORE_PARTITIONS;
  }
  return STATUS_OK;
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
    if (error > out->mean_error) out->mean_error = error, out->mean_error_at = i;
    out->sd_low = fmin(out->sd_low, ratio), out->sd_high = fmax(out->sd_high, ratio);
  }
  return STATUS_OK;
}

Status score_reference(int d, int n, const double *draws, int m, const double *reference,
                       ScoreReference *out) {
  SCRATCH_ARENA(scratch);
  Partition partition = {.d = d, .n = n, .m = m, .draws = draws, .reference = reference};
  const int points = n < m / 2 ? n : m / 2, matched = points < MOST_MATCHED ? points : MOST_MATCHED;
  const size_t values = (size_t)d * (size_t)points;
  Wasserstein *wasserstein;
  Emd *emd;
  *out = (ScoreReference){.sliced.points = points, .emd.points = matched};
  TRY(study_score_compare_moments(&partition, out));
  TRY(metric_distinct(d, n, draws, &out->distinct));
  TRY(metric_distinct(d, m, reference, &out->reference_distinct));
  ALLOCATE(&scratch, partition.order, n > m ? n : m);
  ALLOCATE_ARRAYS(&scratch, values, partition.x, partition.y, partition.z);
  TRY(wasserstein_create(&scratch, d, points, &wasserstein));
  TRY(emd_create(&scratch, matched, &emd));
  return study_score_compare_parts(&partition, wasserstein, emd, out);
}
