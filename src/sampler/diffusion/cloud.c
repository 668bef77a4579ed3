/* Twisted particles as one cloud (Wu, Trippe, Naesseth, Blei, Cunningham 2023), in the observed subspace.
 *
 * State x at noise sigma_T > ... > sigma_1, x = x_0 + sigma_t e; D(x) = E[x_0 | x] and C(x) = Cov[x_0 | x] =
 * sigma_t^2 J, J = dD / dx. The evidence is r numbers y with noise 1 of A x_0
 * (model/history/history_subspace.h), so that of C only the r products C A' are needed. With T = I + A C A'
 * and e = y - A D:
 *
 *   the twist       psi(x) = N(y; A D, T)
 *   its gradient    g = C A' T^-1 e / sigma_t^2          (without the derivative of C: weights correct it)
 *   a step from     x' ~ N(mu + S g, S),                 a = (sigma_{t-1} / sigma_t)^2,
 *     t to t - 1    mu = (1 - a) D + a x
 *   its weight      psi(x') / psi(x) N(x'; mu, S) / N(x'; mu + S g, S)
 *   resampling      systematic, below N / 2
 *   at the end      a draw from N(D, C) given y (cloud_end.c)
 *
 * Along the observed directions g follows from the twist itself, since the Jacobian of a network need not be
 * symmetric, and where C is no covariance between them it is repaired (cloud_repair.c). Rewards that are not
 * Gaussian have a twist of their own (cloud_rows.c).
 *
 * Given x, x' has the covariance (1 - a) sigma_{t-1}^2 I + (1 - a)^2 C. Of C the products with the observed
 * directions are known, so S is that between these directions V (the first MOST_EXACT of them), and v I in
 * all others, v = (1 - a) ((1 - j) sigma_{t-1}^2 + j sigma_t^2). In place of J these have j = u' J u / |u|^2
 * for one random direction u of the stage that is orthogonal to V, whose mean is that of the eigenvalues of J
 * there: one more product. Without C draws are several percent too narrow at 100 stages.
 *
 * x_T comes from the Gaussian with the prior's moments and the noise. The weights make up for every
 * approximation but this one and that of the end, so that the law is exact for many particles between a wide
 * and a narrow noise.
 *
 * Particle k uses the stream of draw k, and draw m at the end what follows in that of draw m. */
#include "sampler/diffusion/cloud_internal.h"

#include "core/linalg/linalg_factor.h"

#include <string.h>

/* Directions between which steps have the exact covariance. */
enum { MOST_EXACT = 32 };

/* Returns the lanes of a chunk, of `all` at most. */
static int cloud_lanes(const Cloud *self, int all) {
  const size_t d = (size_t)self->d, r = (size_t)self->rank, q = (size_t)self->directions;
  return denoiser_chain_lanes(self->target->chain, 2 * q * (d + q) + 8 * r * r + 12 * d, all);
}

static Status cloud_create(Arena *memory, const CloudTarget *target, int draws, Cloud *out) {
  const size_t d = (size_t)target->chain->d, r = (size_t)target->seen->rank, n = (size_t)target->particles,
               most = draws > target->particles ? (size_t)draws : n, m = r < MOST_EXACT ? r : MOST_EXACT;
  *out = (Cloud){
      .target = target, .d = target->chain->d, .rank = target->seen->rank, .particles = target->particles};
  out->directions = cloud_end_directions(out) > out->rank ? cloud_end_directions(out) : out->rank + 1;
  out->lanes = cloud_lanes(out, (int)most);
  const size_t lanes = (size_t)out->lanes;
  ALLOCATE(memory, out->a, (r + 1) * d);
  out->exact = (int)m;
  ALLOCATE_ARRAYS(memory, d * n, &out->x, &out->mean, &out->pull);
  ALLOCATE(memory, out->root, m * m * n);
  ALLOCATE(memory, out->spare, (m * m > d ? m * m : d) * n);
  ALLOCATE(memory, out->step, m * m * lanes);
  ALLOCATE_ARRAYS(memory, m * lanes, &out->of_pull, &out->of_noise);
  ALLOCATE_ARRAYS(memory, n, &out->log_twist, &out->log_weight, &out->weight, &out->slope);
  ALLOCATE(memory, out->ancestor, most);
  ALLOCATE_ARRAYS(memory, d * lanes, &out->state, &out->denoised, &out->product, &out->noise);
  ALLOCATE_ARRAYS(memory, (size_t)out->directions * d * lanes, &out->along, &out->products);
  ALLOCATE(memory, out->square, r * r * lanes);
  ALLOCATE_ARRAYS(memory, r * lanes, &out->rest, &out->solved, &out->shift);
  ALLOCATE_ARRAYS(memory, lanes, &out->left, &out->right);
  ALLOCATE(memory, out->jitters, lanes);
  TRY(cloud_repair_create(memory, out->directions, &out->repair));
  TRY(particles_evidence_create(memory, out->particles, &out->evidence));
  if (cloud_has_rows(target)) TRY(cloud_rows_create(memory, target, out->lanes, &out->rows));
  for (size_t k = 0; k < r; k++)
    for (size_t i = 0; i < d; i++)
      out->a[k * d + i] = target->seen->value[k] * target->seen->direction[k * d + i];
  return STATUS_OK;
}

void cloud_set_state(Cloud *self, int t, int n, const int *chosen, int first) {
  const double root = sqrt(self->target->chain->schedule.alpha_bar[t]);
  Chunk all = {.lanes = n, .rng = {.draws = UINT32_MAX}};
  if (chosen)
    lanes_gather(self->d, self->particles, n, chosen, self->x, self->state);
  else
    lanes_copy(self->d, n, self->x + first, self->particles, self->state, n);
  for (int k = 0; k < self->d * n; k++) self->state[k] *= root;
  denoiser_chain_guard(&all, self->d, self->state, self->fallbacks);
}

void cloud_denoise(Cloud *self, int t, int n, int count, const double *directions) {
  const Chain *chain = self->target->chain;
  const double variance = cloud_noise(chain, t), gain = sqrt(1 - chain->schedule.alpha_bar[t]);
  const size_t entries = (size_t)self->d * (size_t)n, all = (size_t)count * entries;
  for (int k = 0; k < count; k++)
    lanes_repeat(self->d, n, directions + k * self->d, self->along + (size_t)k * entries);
  if (chain->noise_products) {
    const ChainProducts products = {.count = count, .v = self->along, .out = self->products};
    chain->noise_products(chain, t, n, self->state, self->denoised, &products);
  } else {
    chain->noise(chain, t, n, self->state, self->denoised);
    for (size_t k = 0; k < all; k += entries)
      chain->noise_vjp(chain, t, n, self->state, self->along + k, self->products + k);
  }
  for (size_t i = 0; i < all; i++) self->along[i] = variance * (self->along[i] - gain * self->products[i]);
  denoiser_chain_denoise_mean(chain, t, n, self->state, self->denoised);
}

void cloud_project(int d, int n, const double *a, const double *x, double *out) {
  for (int j = 0; j < n; j++) out[j] = 0;
  for (int i = 0; i < d; i++)
    for (int j = 0; j < n; j++) out[j] += a[i] * x[i * n + j];
}

void cloud_miss(Cloud *self, int n, const double *x) {
  for (int k = 0; k < self->rank; k++) {
    double *rest = self->rest + k * n;
    cloud_project(self->d, n, self->a + k * self->d, x, rest);
    for (int p = 0; p < n; p++) rest[p] = self->target->seen->reward[k] - rest[p];
  }
}

void cloud_factorise(Cloud *self, int n) {
  const int r = self->rank;
  for (int k = 0; k < r; k++)
    for (int j = 0; j <= k; j++)
      for (int p = 0; p < n; p++) {
        double *low = &self->square[(k * r + j) * n + p], *high = &self->square[(j * r + k) * n + p];
        *low = *high = 0.5 * (*low + *high) + (j == k ? 1 : 0);
      }
  linalg_factor_cholesky(r, n, self->square, self->jitters);
}

void cloud_solve(Cloud *self, int n) {
  const int r = self->rank;
  memcpy(self->solved, self->rest, (size_t)(r * n) * sizeof *self->rest);
  linalg_factor_solve(r, n, self->square, self->solved);
}

/* Computes j of the particles of a chunk. */
static void cloud_find_slope(Cloud *self, int t, const Chunk *chunk) {
  const int d = self->d;
  const double *u = self->a + self->rank * d;
  double *slope = self->slope + chunk->first, square = 0;
  for (int i = 0; i < d; i++) square += u[i] * u[i];
  cloud_project(d, chunk->lanes, u, self->along + self->rank * d * chunk->lanes, slope);
  for (int p = 0; p < chunk->lanes; p++)
    slope[p] = fmin(fmax(slope[p] / (square * cloud_noise(self->target->chain, t)), 0), 1);
}

/* Keeps the Cholesky factor of S between the first directions, for the step from stage t > 1 on, of the
 * particles of a chunk: from square = A C A'. */
static void cloud_keep_root(Cloud *self, int t, const Chunk *chunk) {
  const int m = self->exact, r = self->rank, n = chunk->lanes;
  const double from = cloud_noise(self->target->chain, t), to = cloud_noise(self->target->chain, t - 1),
               rest = 1 - to / from, *value = self->target->seen->value;
  for (int k = 0; k < m; k++)
    for (int j = 0; j < m; j++) {
      const double scale = rest * rest / (value[k] * value[j]);
      for (int p = 0; p < n; p++)
        self->step[(k * m + j) * n + p] =
            0.5 * scale * (self->square[(k * r + j) * n + p] + self->square[(j * r + k) * n + p]) +
            (j == k ? rest * to : 0);
    }
  linalg_factor_cholesky(m, n, self->step, self->jitters);
  chunk_store(chunk, m * m, self->step, self->root);
}

/* Computes square = A C A'. */
static void cloud_find_square(Cloud *self, int n) {
  const int d = self->d, r = self->rank;
  for (int k = 0; k < r; k++)
    for (int j = 0; j < r; j++)
      cloud_project(d, n, self->a + j * d, self->along + k * d * n, self->square + (k * r + j) * n);
}

/* Factorises what the step and the twist need of `square`; adds to jitters where it is no covariance. */
static void cloud_find_factors(Cloud *self, int t, const Chunk *chunk) {
  memset(self->jitters, 0, (size_t)chunk->lanes * sizeof *self->jitters);
  if (t > 1) cloud_keep_root(self, t, chunk);
  if (cloud_has_rows(self->target))
    cloud_rows_invert(self, chunk->lanes, cloud_noise(self->target->chain, t));
  else
    cloud_factorise(self, chunk->lanes);
}

/* Replaces sigma^2 g along the observed directions V, which are orthogonal, by `shift`. If C is symmetric
 * they agree; the Jacobian of a network need not be. */
static void cloud_set_shift(Cloud *self, int n, double *pull) {
  const int d = self->d;
  double *off = self->left;
  for (int k = 0; k < self->rank; k++) {
    const double *direction = self->target->seen->direction + k * d;
    cloud_project(d, n, direction, pull, off);
    for (int p = 0; p < n; p++) off[p] = self->shift[k * n + p] - off[p];
    for (int i = 0; i < d; i++)
      for (int p = 0; p < n; p++) pull[i * n + p] += direction[i] * off[p];
  }
}

/* Computes log psi of Gaussian evidence, solved, and the shift: A C A' T^-1 e = e - T^-1 e. */
static void cloud_twist_gaussian(Cloud *self, int n, double *log_twist) {
  const int r = self->rank;
  cloud_miss(self, n, self->denoised);
  cloud_solve(self, n);
  for (int p = 0; p < n; p++) log_twist[p] = 0;
  for (int k = 0; k < r; k++)
    for (int p = 0; p < n; p++)
      log_twist[p] -=
          0.5 * self->rest[k * n + p] * self->solved[k * n + p] + log(self->square[(k * r + k) * n + p]);
  for (int k = 0; k < r; k++)
    for (int p = k * n; p < (k + 1) * n; p++)
      self->shift[p] = (self->rest[p] - self->solved[p]) / self->target->seen->value[k];
}

/* Computes D, g, j and log psi at x of the particles of a chunk. */
static void cloud_twist(Cloud *self, int t, const Chunk *chunk) {
  const int d = self->d, r = self->rank, n = chunk->lanes;
  const double variance = cloud_noise(self->target->chain, t);
  const size_t entries = (size_t)d * (size_t)n;
  double *log_twist = self->log_twist + chunk->first, *pull = self->product;
  cloud_set_state(self, t, n, NULL, chunk->first);
  cloud_denoise(self, t, n, r + 1, self->a);
  cloud_find_slope(self, t, chunk);
  cloud_find_square(self, n);
  cloud_find_factors(self, t, chunk);
  if (!cloud_is_sound(self, n)) {
    cloud_find_square(self, n);
    cloud_repair(self, n, r, self->target->seen->value, self->square);
    cloud_find_factors(self, t, chunk);
  }
  if (cloud_has_rows(self->target))
    cloud_rows_twist(self, n, log_twist);
  else
    cloud_twist_gaussian(self, n, log_twist);
  memset(pull, 0, entries * sizeof *pull);
  for (int k = 0; k < r; k++) {
    const double *along = self->along + (size_t)k * entries, *solved = self->solved + k * n;
    for (int i = 0; i < d; i++)
      for (int p = 0; p < n; p++) pull[i * n + p] += along[i * n + p] * solved[p];
  }
  cloud_set_shift(self, n, pull);
  for (size_t i = 0; i < entries; i++) pull[i] /= variance;
  chunk_store(chunk, d, self->denoised, self->mean);
  chunk_store(chunk, d, pull, self->pull);
}

/* Computes, for the first directions V of the particles of a chunk, of_pull = (S - v I) V g and of_noise = (L
 * - sqrt(v) I) V z, L L' = S. */
static void cloud_turn(Cloud *self, const Chunk *chunk, const double *v, const double *root_v) {
  const int m = self->exact, n = chunk->lanes, d = self->d;
  const double *direction = self->target->seen->direction, *l = self->step;
  double *g = self->of_pull, *z = self->of_noise;
  lanes_copy(m * m, n, self->root + chunk->first, self->particles, self->step, n);
  lanes_copy(d, n, self->pull + chunk->first, self->particles, self->product, n);
  for (int k = 0; k < m; k++) {
    cloud_project(d, n, direction + k * d, self->product, g + k * n);
    cloud_project(d, n, direction + k * d, self->noise, z + k * n);
  }
  double *turned = self->solved; /* [m, n]: L' V g */
  for (int k = 0; k < m; k++)
    for (int p = 0; p < n; p++) {
      double sum = 0;
      for (int j = k; j < m; j++) sum += l[(j * m + k) * n + p] * g[j * n + p];
      turned[k * n + p] = sum;
    }
  for (int k = m - 1; k >= 0; k--) /* row k needs those before it */
    for (int p = 0; p < n; p++) {
      double of_pull = -v[p] * g[k * n + p], of_noise = -root_v[p] * z[k * n + p];
      for (int j = 0; j <= k; j++) {
        of_pull += l[(k * m + j) * n + p] * turned[j * n + p];
        of_noise += l[(k * m + j) * n + p] * z[j * n + p];
      }
      g[k * n + p] = of_pull;
      z[k * n + p] = of_noise;
    }
}

/* Moves the particles of a chunk from stage t to t - 1, and adds log p / q to their log weights. */
static void cloud_move(Cloud *self, int t, Chunk *chunk) {
  const int n = chunk->lanes, d = self->d;
  const double from = cloud_noise(self->target->chain, t), to = cloud_noise(self->target->chain, t - 1),
               a = to / from;
  double *log_weight = self->log_weight + chunk->first, *v = self->left, *root = self->right;
  for (int p = 0; p < n; p++) {
    v[p] = (1 - a) * (to + (from - to) * self->slope[chunk->first + p]);
    root[p] = sqrt(v[p]);
  }
  rng_lanes_normal(&chunk->rng, d, self->noise);
  cloud_turn(self, chunk, v, root);
  for (int i = 0; i < d; i++) {
    const size_t row = (size_t)i * (size_t)self->particles + (size_t)chunk->first;
    for (int p = 0; p < n; p++) {
      const double g = self->product[i * n + p];
      double pulled = v[p] * g, step = root[p] * self->noise[i * n + p];
      for (int k = 0; k < self->exact; k++) {
        pulled += self->target->seen->direction[k * d + i] * self->of_pull[k * n + p];
        step += self->target->seen->direction[k * d + i] * self->of_noise[k * n + p];
      }
      double *x = &self->x[row + (size_t)p];
      *x = (1 - a) * self->mean[row + (size_t)p] + a * *x + pulled + step;
      log_weight[p] -= g * (0.5 * pulled + step);
    }
  }
}

/* Draws x_T. */
static void cloud_start(Cloud *self, Chunk *chunk) {
  const CloudTarget *target = self->target;
  const double variance = cloud_noise(target->chain, target->chain->schedule.stages);
  rng_lanes_normal(&chunk->rng, self->d, self->noise);
  for (int i = 0; i < self->d; i++) {
    const double deviation = sqrt(target->variance[i] + variance);
    for (int p = 0; p < chunk->lanes; p++)
      self->x[(size_t)i * (size_t)self->particles + (size_t)(chunk->first + p)] =
          target->mean[i] + deviation * self->noise[i * chunk->lanes + p];
  }
}

/* Computes the weights from their logarithms; returns the effective sample size. */
static double cloud_weigh(Cloud *self) {
  if (!particles_weigh(self->particles, self->log_weight, self->weight)) ++*self->fallbacks;
  return particles_ess(self->particles, self->weight);
}

/* Copies lane from[k] of x[rows, N] to lane k. */
static void cloud_permute(const Cloud *self, const int *from, int rows, double *x) {
  const int n = self->particles;
  lanes_gather(rows, n, n, from, x, self->spare);
  memcpy(x, self->spare, (size_t)rows * (size_t)n * sizeof *x);
}

/* Resamples the particles, whose weights are then equal. */
static void cloud_resample(Cloud *self, Rng *choices) {
  double offset;
  rng_uniform(choices, 1, &offset);
  particles_resample(self->particles, self->weight, offset, self->particles, self->ancestor);
  particles_evidence_resample(&self->evidence, self->ancestor);
  cloud_permute(self, self->ancestor, self->d, self->x);
  cloud_permute(self, self->ancestor, self->d, self->mean);
  cloud_permute(self, self->ancestor, self->d, self->pull);
  cloud_permute(self, self->ancestor, self->exact * self->exact, self->root);
  cloud_permute(self, self->ancestor, 1, self->log_twist);
  cloud_permute(self, self->ancestor, 1, self->slope);
  memset(self->log_weight, 0, (size_t)self->particles * sizeof *self->log_weight);
}

/* Replaces log psi in the weights of a chunk at stage 1 by an estimate of what it stands for. */
static void cloud_correct(Cloud *self, Chunk *chunk) {
  cloud_rows_draw(self, chunk, self->rest, self->left);
  lanes_add((size_t)chunk->lanes, 1, self->left, self->log_weight + chunk->first);
}

/* Draws u, orthogonal to the first directions if there are others. */
static void cloud_choose_direction(Cloud *self, Rng *choices) {
  const int d = self->d;
  double *u = self->a + self->rank * d;
  rng_normal(choices, d, u);
  for (int k = 0; k < self->exact && self->exact < d; k++) {
    const double *direction = self->target->seen->direction + k * d;
    double along = 0;
    for (int i = 0; i < d; i++) along += direction[i] * u[i];
    for (int i = 0; i < d; i++) u[i] -= along * direction[i];
  }
}

/* Carries the cloud from stage T to stage 1, and leaves the weights there; returns their effective sample
 * size. `particles` has the streams of all particles, which are used up to particles->position. */
static double cloud_descend(Cloud *self, RngLanes *particles, Rng *choices) {
  const int stages = self->target->chain->schedule.stages;
  double ess = self->particles;
  particles_evidence_begin(&self->evidence);
  for (int t = stages; t >= 1; t--) {
    uint32_t position = particles->position;
    cloud_choose_direction(self, choices);
    for (Chunk chunk = chunk_begin_narrow(*particles, self->lanes); chunk.lanes > 0;
         chunk_next(&chunk, *particles)) {
      if (t == stages)
        cloud_start(self, &chunk);
      else
        cloud_move(self, t + 1, &chunk);
      lanes_add((size_t)chunk.lanes, t < stages ? -1 : 0, self->log_twist + chunk.first,
                self->log_weight + chunk.first);
      cloud_twist(self, t, &chunk);
      lanes_add((size_t)chunk.lanes, 1, self->log_twist + chunk.first, self->log_weight + chunk.first);
      if (t == 1 && cloud_has_rows(self->target)) cloud_correct(self, &chunk);
      position = chunk.rng.position;
    }
    particles->position = position;
    ess = cloud_weigh(self);
    if (t == 1 || ess >= 0.5 * self->particles) continue;
    particles_evidence_weigh(&self->evidence, self->log_weight, self->weight);
    cloud_resample(self, choices);
  }
  particles_evidence_weigh(&self->evidence, self->log_weight, self->weight);
  return ess;
}

/* Picks the particles of the draws in random order: chosen[draws]. Returns the share of distinct ones. */
static double cloud_pick(Cloud *self, Rng *choices, int draws, int *order, int *chosen) {
  double offset;
  int distinct = 0;
  rng_uniform(choices, 1, &offset);
  particles_resample(self->particles, self->weight, offset, draws, self->ancestor);
  for (int m = 0; m < draws; m++) distinct += m == 0 || self->ancestor[m] != self->ancestor[m - 1];
  rng_permutation(choices, draws, order);
  for (int m = 0; m < draws; m++) chosen[m] = self->ancestor[order[m]];
  return (double)distinct / draws;
}

Status cloud_draw(const CloudTarget *target, RngLanes rng, double *z, DrawNotes *notes, int64_t *fallbacks) {
  SCRATCH_ARENA(memory);
  const int draws = (int)rng.lanes, n = target->particles;
  Cloud cloud;
  CloudEnd end;
  int *order, *chosen; /* [M] */
  TRY(cloud_create(&memory, target, draws, &cloud));
  ALLOCATE_ARRAYS(&memory, draws, &order, &chosen);
  cloud.fallbacks = fallbacks;
  RngLanes particles = rng;
  particles.first_lane = rng.first_lane / rng.draws * (uint32_t)n;
  particles.draws = particles.lanes = (uint32_t)n;
  Rng choices = rng_of_lane(&particles, 0);
  choices.key = rng_subkey(choices.key, RNG_RESAMPLING);
  notes->ess = cloud_descend(&cloud, &particles, &choices);
  notes->distinct = cloud_pick(&cloud, &choices, draws, order, chosen);
  notes->log_evidence = particles_evidence_end(&cloud.evidence, cloud.weight, &notes->log_evidence_error) -
                        0.5 * target->seen->residual;
  TRY(cloud_end_create(&memory, &cloud, &choices, &end));
  notes->calls = (double)target->chain->schedule.stages * n / draws * (2 + cloud.rank) + 1 +
                 cloud_end_directions(&cloud);
  rng.position = particles.position;
  for (Chunk chunk = chunk_begin_narrow(rng, cloud.lanes); chunk.lanes > 0; chunk_next(&chunk, rng))
    cloud_end_draw(&end, chosen + chunk.first, &chunk, z);
  return STATUS_OK;
}
