#include "core/particles.h"

#include "core/real.h"

#include <float.h>
#include <limits.h>

Status particles_check_size(const char *sampler, int64_t particles, int64_t clouds, const char *of) {
  if (clouds <= INT_MAX / particles) return STATUS_OK;
  return status_set(STATUS_INPUT, "sampler %s: %lld particles for each of %lld %s are too many", sampler,
                    (long long)particles, (long long)clouds, of);
}

Rng particles_cloud_stream(RngKey key, uint32_t run, uint32_t round) {
  return (Rng){.key = rng_subkey(key, RNG_RESAMPLING), .run = run, .round = round};
}

/* Returns the log weight, or -infinity if it is not finite. */
static inline double particles_counted_weight(double log_weight) {
  return special_is_beyond(log_weight, DBL_MAX) ? -INFINITY : log_weight;
}

SIMD_CLONES
double particles_largest(int n, const double *log_weight) {
  double largest[VECTOR_LANES], all = -INFINITY;
  int j = 0;
  for (int k = 0; k < VECTOR_LANES; k++) largest[k] = -INFINITY;
  for (; j + VECTOR_LANES <= n; j += VECTOR_LANES)
    for (int k = 0; k < VECTOR_LANES; k++) {
      const double x = particles_counted_weight(log_weight[j + k]);
      largest[k] = x > largest[k] ? x : largest[k];
    }
  for (; j < n; j++)
    all = particles_counted_weight(log_weight[j]) > all ? particles_counted_weight(log_weight[j]) : all;
  for (int k = 0; k < VECTOR_LANES; k++) all = largest[k] > all ? largest[k] : all;
  return all;
}

SIMD_CLONES
static void particles_exponentiate(int n, const double *log_weight, double factor, double largest,
                                   double *weight) {
  for (int j = 0; j < n; j++)
    weight[j] = special_exp(particles_counted_weight(factor * log_weight[j]) - largest);
}

/* Computes the sums of w and of w^2, in eight partial sums, which keep the additions from being one chain of
 * dependent operations. */
SIMD_CLONES
static void particles_weight_sums(int n, const double *weight, double *sum, double *squares) {
  Real first = {0}, second = {0}, w;
  for (RealLanes at = real_begin(n); at.count > 0; real_next(&at)) {
    real_load(at, 1, weight, &w);
    first += w;
    second += w * w;
  }
  *sum = ((first[0] + first[4]) + (first[2] + first[6])) + ((first[1] + first[5]) + (first[3] + first[7]));
  *squares = ((second[0] + second[4]) + (second[2] + second[6])) +
             ((second[1] + second[5]) + (second[3] + second[7]));
}

bool particles_weigh(int n, const double *log_weight, double *weight) {
  const double largest = particles_largest(n, log_weight);
  double sum, squares;
  if (largest == -INFINITY) {
    for (int j = 0; j < n; j++) weight[j] = 1.0 / n;
    return false;
  }
  particles_exponentiate(n, log_weight, 1, largest, weight);
  particles_weight_sums(n, weight, &sum, &squares);
  for (int j = 0; j < n; j++) weight[j] /= sum;
  return true;
}

double particles_ess(int n, const double *weight) {
  double sum, squares;
  particles_weight_sums(n, weight, &sum, &squares);
  return sum * sum / squares;
}

double particles_ess_at(int n, const double *log_weight, double largest, double factor, double *weight) {
  if (largest == -INFINITY) return n;
  particles_exponentiate(n, log_weight, factor, factor * largest, weight);
  return particles_ess(n, weight);
}

/* Computes picks[n], the number of m = 0, 1, .. with m + offset <= reached[n], but at most `most`. Counts up
 * from the rounded difference, which is at most that number and at least two less. */
SIMD_CLONES
static void particles_count_picks(int n, const double *reached, double offset, double most, double *picks) {
  const Real one = real_of(1);
  for (RealLanes at = real_begin(n); at.count > 0; real_next(&at)) {
    Real until;
    real_load(at, 1, reached, &until);
    const Real gap = until - offset - 0.5;
    const Real above = (Real)((Mask)gap & (gap > 0));
    Real count = above + 0x1.8p52 - 0x1.8p52;
    for (int k = 0; k < 2; k++) count += (Real)((Mask)one & (count + offset <= until));
    count = real_choose(count < most, count, real_of(most));
    real_store(at, 1, &count, picks);
  }
}

/* Gives pick m to the first particle for which m + offset <= the sum of picks w up to it, or to the last
 * particle if there is none. Each particle writes its number where its picks begin; a particle without picks
 * is overwritten by the next, and a running maximum carries the numbers on to the other picks. So no branch
 * depends on what the processor cannot predict. */
void particles_resample(int n, const double *weight, double offset, int picks, int *chosen) {
  enum { TOGETHER = 256 };
  double sum = 0, reached[TOGETHER], end[TOGETHER];
  int start = 0, largest = 0;
  memset(chosen, 0, (size_t)picks * sizeof *chosen);
  for (int first = 0; first < n && start < picks; first += TOGETHER) {
    const int count = n - first < TOGETHER ? n - first : TOGETHER;
    for (int j = 0; j < count; j++) reached[j] = sum += picks * weight[first + j];
    particles_count_picks(count, reached, offset, picks, end);
    for (int j = 0; j < count && start < picks; j++) {
      chosen[start] = first + j;
      start = (int)end[j];
    }
  }
  for (int m = 0; m < picks; m++) {
    largest = chosen[m] > largest ? chosen[m] : largest;
    chosen[m] = largest;
  }
}

void particles_pick(int d, int n, const double *x, int picks, const double *uniform, size_t stride,
                    double *to) {
  for (int m = 0; m < picks; m++) {
    const int chosen = (int)(uniform[m] * n);
    for (int i = 0; i < d; i++)
      to[(size_t)i * stride + (size_t)m] = x[(size_t)i * (size_t)n + (size_t)chosen];
  }
}

/* ---- evidence */

Status particles_evidence_create(Arena *memory, int n, ParticleEvidence *out) {
  *out = (ParticleEvidence){.n = n};
  ALLOCATE_ARRAYS(memory, n, &out->ancestor, &out->spare);
  ALLOCATE(memory, out->share, n);
  return STATUS_OK;
}

void particles_evidence_begin(ParticleEvidence *self) {
  self->log_mean = self->variance = 0;
  for (int k = 0; k < self->n; k++) self->ancestor[k] = k;
}

void particles_evidence_weigh(ParticleEvidence *self, const double *log_weight, const double *weight) {
  const double largest = particles_largest(self->n, log_weight);
  double sum = 0;
  for (int k = 0; k < self->n; k++) sum += exp(particles_counted_weight(log_weight[k]) - largest);
  self->log_mean += largest + log(sum / self->n);
  self->variance += 1 / particles_ess(self->n, weight) - 1.0 / self->n;
}

void particles_evidence_resample(ParticleEvidence *self, const int *chosen) {
  for (int k = 0; k < self->n; k++) self->spare[k] = self->ancestor[chosen[k]];
  int *before = self->ancestor;
  self->ancestor = self->spare;
  self->spare = before;
}

double particles_evidence_end(ParticleEvidence *self, const double *weight, double *error) {
  double squares = 0;
  memset(self->share, 0, (size_t)self->n * sizeof *self->share);
  for (int k = 0; k < self->n; k++) self->share[self->ancestor[k]] += weight[k];
  for (int k = 0; k < self->n; k++) squares += self->share[k] * self->share[k];
  *error = sqrt(fmax(fmax(squares - 1.0 / self->n, self->variance), 0));
  return self->log_mean;
}
