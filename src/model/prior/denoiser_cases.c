#include "model/prior/denoiser_cases.h"

#include "core/special.h"

#include <string.h>

enum { LANES = DENOISER_LANES };

/* Shares of the matrices that are multiples of I, and whose eigenvalues have a common floor. */
static const double EQUAL = 0.35, FLOORED = 0.30;

Status denoiser_cases_create(Arena *memory, int d, DenoiserCases *out) {
  const size_t vector = (size_t)d * LANES, matrix = (size_t)d * vector;
  *out = (DenoiserCases){.d = d};
  ALLOCATE(memory, out->basis, matrix);
  ALLOCATE_ARRAYS(memory, vector, out->eigenvalue, out->mean, out->error);
  ALLOCATE(memory, out->uniform, (size_t)(3 + d) * LANES);
  ALLOCATE(memory, out->normal, vector + matrix);
  return STATUS_OK;
}

/* Draws eigenvalue[d, LANES] from own[d, LANES], common[LANES] and kind[LANES], all uniform in (0, 1). */
SIMD_CLONES
static void training_case_draw_spectrum(int d, const double *restrict own, const double *restrict common,
                                        const double *restrict kind, double *restrict eigenvalue) {
  const double least = log(DENOISER_LEAST_PRECISION), range = log(DENOISER_MOST_PRECISION) - least;
  for (int i = 0; i < d; i++)
    for (int n = 0; n < LANES; n++) {
      double place = own[i * LANES + n], floor = common[n];
      double raised = kind[n] < EQUAL + FLOORED && place < floor ? floor : place;
      eigenvalue[i * LANES + n] = special_exp_inside(least + range * (kind[n] < EQUAL ? floor : raised));
    }
}

/* Orthonormalises the columns of q[d, d, LANES], which hold normals, by Gram-Schmidt, which gives a uniformly
 * distributed basis. */
SIMD_CLONES
static void training_case_make_basis(int d, double *restrict q) {
  double product[LANES];
  for (int k = 0; k < d; k++) {
    for (int j = 0; j < k; j++) {
      for (int n = 0; n < LANES; n++) product[n] = 0;
      for (int i = 0; i < d; i++)
        for (int n = 0; n < LANES; n++) product[n] += q[(i * d + j) * LANES + n] * q[(i * d + k) * LANES + n];
      for (int i = 0; i < d; i++)
        for (int n = 0; n < LANES; n++) q[(i * d + k) * LANES + n] -= product[n] * q[(i * d + j) * LANES + n];
    }
    for (int n = 0; n < LANES; n++) product[n] = 0;
    for (int i = 0; i < d; i++)
      for (int n = 0; n < LANES; n++) product[n] += q[(i * d + k) * LANES + n] * q[(i * d + k) * LANES + n];
    for (int n = 0; n < LANES; n++) product[n] = 1 / sqrt(product[n]);
    for (int i = 0; i < d; i++)
      for (int n = 0; n < LANES; n++) q[(i * d + k) * LANES + n] *= product[n];
  }
}

/* Computes mean = U' m and error = U' u of z, [d, LANES] each, from normal[d, LANES] = U' eps. */
SIMD_CLONES
static void training_case_observe(int d, const double *restrict basis, const double *restrict eigenvalue,
                                  const double *restrict z, const double *restrict normal,
                                  double *restrict mean, double *restrict error) {
  for (int i = 0; i < d; i++) {
    double rotated[LANES] = {0};
    for (int j = 0; j < d; j++)
      for (int n = 0; n < LANES; n++) rotated[n] += basis[(j * d + i) * LANES + n] * z[j * LANES + n];
    for (int n = 0; n < LANES; n++) {
      const double q = eigenvalue[i * LANES + n], noise = sqrt(q) * normal[i * LANES + n],
                   shrink = 1 / (1 + q);
      mean[i * LANES + n] = shrink * (q * rotated[n] + noise);
      error[i * LANES + n] = sqrt(shrink) * (rotated[n] - noise);
    }
  }
}

void denoiser_cases_draw(DenoiserCases *cases, const TrainingSamples *samples, bool held_out, Rng *rng) {
  const int d = cases->d;
  const size_t vector = (size_t)d * LANES;
  double *pick = cases->uniform, *kind = pick + LANES, *common = kind + LANES, *own = common + LANES;
  double *z = cases->normal + vector; /* free once the basis is made from these normals */
  rng_uniform(rng, (3 + d) * LANES, cases->uniform);
  rng_normal(rng, (d + d * d) * LANES, cases->normal);
  training_case_draw_spectrum(d, own, common, kind, cases->eigenvalue);
  memcpy(cases->basis, z, (size_t)d * vector * sizeof *z);
  training_case_make_basis(d, cases->basis);
  for (int n = 0; n < LANES; n++) {
    const int place = held_out ? samples->training + (int)(pick[n] * samples->held_out)
                               : training_samples_pick(samples, pick[n]);
    cases->sample[n] = place;
    for (int i = 0; i < d; i++) z[i * LANES + n] = (double)samples->z[(size_t)place * (size_t)d + (size_t)i];
  }
  training_case_observe(d, cases->basis, cases->eigenvalue, z, cases->normal, cases->mean, cases->error);
}
