/* The end of the cloud: a draw from N(D, C) given y at a particle of stage 1, without C itself.
 *
 * B has q orthonormal rows: the r observed directions, then OTHERS random ones, or as many as there are. From
 * the q products C B' follows G = B C B' = L L', and what they say of C is C B' G^-1 B C. In directions that
 * are orthogonal to all of them the variance is set to the mean over the random ones: these are much narrower
 * than the posterior if the last noise is. With z ~ N(0, I) a draw is
 *
 *   x = D + C B' L^-T z + level (I - B' B) normals,  B x = B D + L z,
 *
 * and, as the observed directions come first, y depends on the first r of z alone: z <- z + F' T^-1 (y - A x
 * - noise) with A x = A D + F z, T = I + F F'. If q = d this is N(D, C) itself. Where rewards are not
 * Gaussian, h = A x is drawn first (cloud_rows.c), and the first r of z are those with A D + F z = h. */
#include "sampler/diffusion/cloud_internal.h"

#include "core/linalg/linalg_factor.h"

#include <string.h>

enum { OTHERS = 32 };
/* A direction whose variance is a smaller share of that of the noise has none: its square root would be
 * rounding, by which z is divided. */
static const double LEAST_SHARE = 1e-12;

int cloud_end_directions(const Cloud *cloud) {
  return cloud->rank + OTHERS < cloud->d ? cloud->rank + OTHERS : cloud->d;
}

Status cloud_end_create(Arena *memory, Cloud *cloud, Rng *choices, CloudEnd *out) {
  const size_t d = (size_t)cloud->d, r = (size_t)cloud->rank, q = (size_t)cloud_end_directions(cloud),
               lanes = (size_t)cloud->lanes;
  *out = (CloudEnd){.cloud = cloud, .count = (int)q};
  ALLOCATE(memory, out->basis, q * d);
  ALLOCATE(memory, out->length, q);
  ALLOCATE_ARRAYS(memory, q * q * lanes, &out->gram, &out->factor);
  ALLOCATE(memory, out->seen, r * r * lanes);
  ALLOCATE_ARRAYS(memory, q * lanes, &out->z, &out->coefficient, &out->along);
  ALLOCATE(memory, out->level, lanes);
  memcpy(out->basis, cloud->target->seen->direction, r * d * sizeof *out->basis);
  for (size_t k = r; k < q; k++) rng_normal(choices, cloud->d, out->basis + k * d);
  linalg_factor_orthonormalise((int)q, cloud->d, 1, out->basis, out->length);
  for (size_t k = 0; k < q; k++) out->length[k] = 1;
  return STATUS_OK;
}

/* Computes G = B C B'. */
static void cloud_end_find_gram(CloudEnd *self, int n) {
  const Cloud *cloud = self->cloud;
  const int d = cloud->d, q = self->count;
  for (int k = 0; k < q; k++)
    for (int j = 0; j < q; j++)
      cloud_project(d, n, self->basis + j * d, cloud->along + k * d * n, self->gram + (j * q + k) * n);
}

/* Replaces `factor` by L of its symmetric part, of which K = V C V' is kept. Returns whether that was a
 * covariance in all lanes. */
static bool cloud_end_find_factor(CloudEnd *self, int n) {
  Cloud *cloud = self->cloud;
  const int q = self->count, r = cloud->rank;
  for (int j = 0; j < q; j++)
    for (int k = 0; k <= j; k++)
      for (int p = 0; p < n; p++) {
        double *low = &self->factor[(j * q + k) * n + p], *high = &self->factor[(k * q + j) * n + p];
        *low = *high = 0.5 * (*low + *high);
      }
  for (int j = 0; j < r; j++)
    memcpy(self->seen + j * r * n, self->factor + j * q * n, (size_t)(r * n) * sizeof *self->seen);
  memset(cloud->jitters, 0, (size_t)n * sizeof *cloud->jitters);
  linalg_factor_cholesky(q, n, self->factor, cloud->jitters);
  return cloud_is_sound(cloud, n);
}

/* Computes G, L and the level; z is 0 where a direction has no variance. */
static void cloud_end_factorise(CloudEnd *self, int n) {
  Cloud *cloud = self->cloud;
  const int d = cloud->d, q = self->count;
  const double most = cloud_noise(cloud->target->chain, 1);
  const size_t bytes = (size_t)(q * q * n) * sizeof *self->factor;
  cloud_end_find_gram(self, n);
  memcpy(self->factor, self->gram, bytes);
  if (!cloud_end_find_factor(self, n)) {
    memcpy(self->factor, self->gram, bytes);
    cloud_repair(cloud, n, q, self->length, self->factor);
    cloud_end_find_factor(self, n);
  }
  for (int j = 0; j < q; j++)
    for (int p = 0; p < n; p++) {
      double *pivot = &self->factor[(j * q + j) * n + p];
      if (*pivot * *pivot > LEAST_SHARE * most) continue;
      for (int k = j; k < q; k++) self->factor[(k * q + j) * n + p] = 0;
      self->z[j * n + p] = 0;
    }
  if (q == d) return; /* there are no others, and the level stays 0 */
  for (int p = 0; p < n; p++) {
    double sum = 0;
    for (int k = cloud->rank; k < q; k++) sum += self->gram[(k * q + k) * n + p];
    self->level[p] = sqrt(fmin(fmax(sum / OTHERS, 0), most));
  }
}

/* Sets the first r of z, those of the observed directions, from a draw of A x given y. */
static void cloud_end_condition_rows(CloudEnd *self, Chunk *chunk) {
  Cloud *cloud = self->cloud;
  const int r = cloud->rank, q = self->count, n = chunk->lanes;
  double *h = cloud->rest, *ignored = cloud->left;
  memcpy(cloud->square, self->seen, (size_t)(r * r * n) * sizeof *h);
  cloud_rows_invert(cloud, n, cloud_noise(cloud->target->chain, 1));
  cloud_rows_twist(cloud, n, ignored);
  cloud_rows_draw(cloud, chunk, h, ignored);
  for (int k = 0; k < r; k++)
    for (int p = 0; p < n; p++) {
      const double pivot = self->factor[(k * q + k) * n + p];
      double off = h[k * n + p] - cloud->rows.mean[k * n + p];
      for (int j = 0; j < k; j++) off -= self->factor[(k * q + j) * n + p] * self->z[j * n + p];
      self->z[k * n + p] = pivot > 0 ? off / pivot : 0;
    }
}

/* Moves z to what it is given y. */
static void cloud_end_condition(CloudEnd *self, Chunk *chunk) {
  Cloud *cloud = self->cloud;
  const int r = cloud->rank, q = self->count, n = chunk->lanes;
  memset(cloud->square, 0, (size_t)(r * r * n) * sizeof *cloud->square);
  cloud_miss(cloud, n, cloud->denoised);
  rng_lanes_normal(&chunk->rng, r, cloud->solved);
  for (int k = 0; k < r; k++)
    for (int j = 0; j < r; j++)
      for (int p = 0; p < n; p++)
        self->seen[(k * r + j) * n + p] =
            j > k ? 0 : cloud->target->seen->value[k] * self->factor[(k * q + j) * n + p];
  for (int k = 0; k < r; k++)
    for (int p = 0; p < n; p++) {
      cloud->rest[k * n + p] -= cloud->solved[k * n + p];
      for (int j = 0; j < r; j++)
        cloud->rest[k * n + p] -= self->seen[(k * r + j) * n + p] * self->z[j * n + p];
    }
  for (int k = 0; k < r; k++)
    for (int l = 0; l < r; l++)
      for (int j = 0; j < r; j++)
        for (int p = 0; p < n; p++)
          cloud->square[(k * r + l) * n + p] +=
              self->seen[(k * r + j) * n + p] * self->seen[(l * r + j) * n + p];
  cloud_factorise(cloud, n);
  cloud_solve(cloud, n);
  for (int k = 0; k < r; k++)
    for (int j = 0; j < r; j++)
      for (int p = 0; p < n; p++)
        self->z[j * n + p] += self->seen[(k * r + j) * n + p] * cloud->solved[k * n + p];
}

/* Computes along = L^-T z, and coefficient = L z - G along - level B normals[d, n]. */
static void cloud_end_combine(CloudEnd *self, int n, const double *normals) {
  const int d = self->cloud->d, q = self->count;
  double *sum = self->cloud->left;
  for (int j = 0; j < q; j++) {
    cloud_project(d, n, self->basis + j * d, normals, sum);
    for (int p = 0; p < n; p++) self->coefficient[j * n + p] = -self->level[p] * sum[p];
    for (int k = 0; k <= j; k++)
      for (int p = 0; p < n; p++)
        self->coefficient[j * n + p] += self->factor[(j * q + k) * n + p] * self->z[k * n + p];
  }
  for (int j = 0; j < q; j++)
    for (int p = 0; p < n; p++) {
      double *pivot = &self->factor[(j * q + j) * n + p];
      if (*pivot == 0) *pivot = 1; /* z is 0 there, and so is L^-T z */
    }
  memcpy(self->along, self->z, (size_t)(q * n) * sizeof *self->z);
  linalg_factor_backward(q, n, self->factor, self->along);
  for (int j = 0; j < q; j++)
    for (int k = 0; k < q; k++)
      for (int p = 0; p < n; p++)
        self->coefficient[j * n + p] -= self->gram[(j * q + k) * n + p] * self->along[k * n + p];
}

void cloud_end_draw(CloudEnd *self, const int *chosen, Chunk *chunk, double *z) {
  Cloud *cloud = self->cloud;
  const int d = cloud->d, q = self->count, n = chunk->lanes;
  const size_t entries = (size_t)d * (size_t)n;
  double *x = cloud->denoised, *normals = cloud->noise;
  cloud_set_state(cloud, 1, n, chosen, 0);
  cloud_denoise(cloud, 1, n, q, self->basis);
  rng_lanes_normal(&chunk->rng, q, self->z);
  cloud_end_factorise(self, n);
  if (cloud_has_rows(cloud->target))
    cloud_end_condition_rows(self, chunk);
  else
    cloud_end_condition(self, chunk);
  memset(normals, 0, entries * sizeof *normals);
  if (q < d) rng_lanes_normal(&chunk->rng, d, normals);
  cloud_end_combine(self, n, normals);
  for (int i = 0; i < d; i++)
    for (int p = 0; p < n; p++) x[i * n + p] += self->level[p] * normals[i * n + p];
  for (int k = 0; k < q; k++) {
    const double *products = cloud->along + (size_t)k * entries, *direction = self->basis + k * d;
    for (int i = 0; i < d; i++)
      for (int p = 0; p < n; p++)
        x[i * n + p] +=
            products[i * n + p] * self->along[k * n + p] + direction[i] * self->coefficient[k * n + p];
  }
  chunk_store(chunk, d, x, z);
}
