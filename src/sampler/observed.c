#include "sampler/observed.h"

#include "core/chunk.h"
#include "model/history/history_subspace.h"

#include <math.h>
#include <string.h>

/* Vectors that are this much shorter than the longest one lie in the span of the others. */
static const double LEAST_LENGTH = 1e-9;

bool observed_fits(const SamplerOps *method, const Prior *prior, const Likelihood *likelihood,
                   const Config *options) {
  if (!prior->isotropic || !method->diagonal || !history_subspace_exists(likelihood)) return false;
  if (!method->diagonal->check || !options) return true;
  return method->diagonal->check(options) == STATUS_OK;
}

/* The coordinates that remain, x = axis z. */
typedef struct {
  int d, m;
  double *axis; /* [d, d], rows: orthonormal; m of them are used */
  double *q, *b; /* [m]: the evidence of x */
  double *centre; /* [d]: mean of the prior of z */
  Isotropic prior; /* of x */
  Chain chain; /* of `prior` */
} ObservedFrame;

/* Subtracts from v[d] what lies in the span of the axes, twice, against rounding; returns the length left. */
static double observed_reduce(const ObservedFrame *self, double *v) {
  const size_t d = (size_t)self->d;
  double square = 0;
  for (int k = 0; k < 2 * self->m; k++) {
    const double *axis = self->axis + (size_t)(k % self->m) * d;
    double along = 0;
    for (size_t i = 0; i < d; i++) along += axis[i] * v[i];
    for (size_t i = 0; i < d; i++) v[i] -= along * axis[i];
  }
  for (size_t i = 0; i < d; i++) square += v[i] * v[i];
  return sqrt(square);
}

/* Adds an axis in the direction of v[d], unless less than `least` of it is new. v is overwritten. */
static void observed_add_axis(ObservedFrame *self, double least, double *v) {
  const double length = self->m < self->d ? observed_reduce(self, v) : 0;
  if (!(length > least)) return;
  double *axis = self->axis + (size_t)self->m * (size_t)self->d;
  for (int i = 0; i < self->d; i++) axis[i] = v[i] / length;
  self->m++;
}

/* Finds the axes: what is seen, then where the means differ, then all others if the variances do. */
static Status observed_find_axes(ObservedFrame *self, const Isotropic *prior, const Subspace *seen) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)self->d;
  double *v, longest = 0;
  bool same = true;
  ALLOCATE(&scratch, v, d);
  memcpy(self->axis, seen->direction, (size_t)seen->rank * d * sizeof *v);
  self->m = seen->rank;
  for (int pass = 0; pass < 2; pass++) /* the first finds how long they are */
    for (size_t c = 0; c < (size_t)prior->components; c++) {
      double square = 0;
      for (size_t i = 0; i < d; i++) {
        v[i] = prior->mean[c * d + i] - self->centre[i];
        square += v[i] * v[i];
      }
      if (pass == 0) longest = fmax(longest, sqrt(square));
      if (pass == 1) observed_add_axis(self, LEAST_LENGTH * longest, v);
      same = same && prior->variance[c] == prior->variance[0];
    }
  /* All of them are needed if variances differ, and one for samplers if there is one Gaussian, unobserved. */
  const size_t needed = !same ? d : self->m == 0 ? 1 : 0;
  for (size_t i = 0; i < needed; i++) {
    memset(v, 0, d * sizeof *v);
    v[i] = 1;
    observed_add_axis(self, LEAST_LENGTH, v);
  }
  return STATUS_OK;
}

static Status observed_frame_create(Arena *memory, const Prior *prior, const Subspace *seen,
                                    ObservedFrame *out) {
  SCRATCH_ARENA(scratch);
  const Isotropic *from = prior->isotropic;
  const size_t d = (size_t)from->d, count = (size_t)from->components;
  double *variance;
  *out = (ObservedFrame){.d = from->d};
  ALLOCATE(memory, out->axis, d * d);
  ALLOCATE(memory, out->centre, d);
  ALLOCATE(&scratch, variance, d);
  denoiser_isotropic_moments(from, out->centre, variance);
  TRY(observed_find_axes(out, from, seen));
  const size_t m = (size_t)out->m;
  ALLOCATE_ARRAYS(memory, m, &out->q, &out->b);
  for (size_t k = 0; k < (size_t)seen->rank; k++) {
    out->q[k] = seen->value[k] * seen->value[k];
    out->b[k] = seen->value[k] * seen->reward[k];
  }
  TRY(denoiser_isotropic_create(memory, out->m, from->components, &out->prior));
  memcpy(out->prior.weight, from->weight, sizeof out->prior.weight);
  memcpy(out->prior.variance, from->variance, sizeof out->prior.variance);
  for (size_t c = 0; c < count; c++)
    for (size_t k = 0; k < m; k++)
      for (size_t i = 0; i < d; i++)
        out->prior.mean[c * m + k] += out->axis[k * d + i] * from->mean[c * d + i];
  out->chain = denoiser_isotropic_chain_like(prior->chain, &out->prior);
  return STATUS_OK;
}

/* Turns x[m, M] into theta[d, M], whose rows are `stride` apart: z = centre + sqrt(v) normals, but with x
 * along the axes. */
static Status observed_return(const ObservedFrame *self, const Chain *chain, RngLanes rng, const double *x,
                              size_t stride, double *theta) {
  SCRATCH_ARENA(scratch);
  const int d = self->d, m = self->m, draws = (int)rng.lanes;
  const double deviation = sqrt(self->prior.variance[0]);
  double *z, along[CHUNK_LANES];
  ALLOCATE(&scratch, z, d * CHUNK_LANES);
  rng.key = rng_subkey(rng.key, RNG_UNSEEN);
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const int n = chunk.lanes;
    if (m < d) rng_lanes_normal(&chunk.rng, d, z);
    for (int i = 0; i < d; i++)
      for (int p = 0; p < n; p++) z[i * n + p] = self->centre[i] + deviation * z[i * n + p];
    for (int k = 0; k < m; k++) {
      const double *axis = self->axis + (size_t)k * (size_t)d;
      for (int p = 0; p < n; p++) along[p] = x[k * draws + chunk.first + p];
      for (int i = 0; i < d; i++)
        for (int p = 0; p < n; p++) along[p] -= axis[i] * z[i * n + p];
      for (int i = 0; i < d; i++)
        for (int p = 0; p < n; p++) z[i * n + p] += axis[i] * along[p];
    }
    for (int i = 0; i < d; i++)
      for (int p = 0; p < n; p++)
        theta[(size_t)i * stride + (size_t)(chunk.first + p)] =
            chain->shift[i] + chain->scale[i] * z[i * n + p];
  }
  return STATUS_OK;
}

/* Makes the draws of one run: theta[d, M], rows `stride` apart. */
static Status observed_draw_run(Sampler *sampler, const History *history, int run, RngLanes rng,
                                size_t stride, double *theta, int64_t *fallbacks) {
  SCRATCH_ARENA(scratch);
  const Prior *prior = sampler->setup.prior;
  const HistoryView view =
      history_view_in(history_view(history, 1, run, 1), prior->chain->shift, prior->chain->scale);
  Subspace seen;
  ObservedFrame frame;
  double *x;
  TRY(history_subspace_find(&scratch, &view, &seen));
  TRY(observed_frame_create(&scratch, prior, &seen, &frame));
  ALLOCATE(&scratch, x, (size_t)frame.m * rng.lanes);
  const Diagonal posterior = {.q = frame.q,
                              .b = frame.b,
                              .residual = seen.residual,
                              .prior = &frame.prior,
                              .chain = &frame.chain,
                              .options = sampler->setup.options};
  TRY(sampler->ops->diagonal->draw(&posterior, rng, x, &sampler->notes[run], &fallbacks[run]));
  return observed_return(&frame, prior->chain, rng, x, stride, theta);
}

void observed_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                     int64_t *fallbacks) {
  const size_t stride = rng.lanes;
  for (int run = 0; run < history->runs; run++) {
    RngLanes own = rng;
    own.first_lane += (uint32_t)(run * draws);
    own.lanes = (uint32_t)draws;
    double *first = theta + (size_t)run * (size_t)draws;
    sampler->notes[run] = DRAW_NOTES_NONE;
    if (observed_draw_run(sampler, history, run, own, stride, first, fallbacks) == STATUS_OK) continue;
    for (int n = 0; n < draws; n++) first[n] = NAN;
  }
}
