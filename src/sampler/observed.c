#include "sampler/observed.h"

#include "core/chunk.h"
#include "core/linalg/linalg_lanes.h"
#include "model/history/history_subspace.h"
#include "sampler/mixture/mixture_posterior.h"
#include "sampler/oracle_counter.h"
#include "sampler/unknown_noise.h"
#include "sampler/unseen.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Vectors that are this much shorter than the longest one lie in the span of the others. */
static const double LEAST_LENGTH = 1e-9;
/* Bytes of one matrix for each draw of a chunk, above which a sampler that makes several of them is refused.
 */
static const double MOST_BYTES = 1e9;

/* Returns whether few directions of a mixture with any covariances are seen, and the rest needs no sampler.
 */
static bool observed_is_projection(const SamplerOps *method, const SamplerSetup *setup) {
  if (!method->projects || !setup->prior->mixture || setup->prior->isotropic) return false;
  return setup->prior->d > LINALG_BATCH_DIMENSION && setup->observations > 0 &&
         setup->observations <= setup->prior->d / 2;
}

bool observed_fits(const SamplerOps *method, const SamplerSetup *setup) {
  if (!setup->for_themselves || setup->prior->auto_sampler || likelihood_has_network(setup->likelihood) ||
      likelihood_has_functions(setup->likelihood))
    return false;
  if (!setup->prior->isotropic && !observed_is_projection(method, setup)) return false;
  if (setup->prior->mixture && unknown_noise_asked(setup->options)) return false;
  return !mixture_posterior_forgets(setup->options, setup->likelihood);
}

/* Returns whether the sampler draws without matrices. */
static bool observed_has_vectors(const SamplerOps *method, const SamplerSetup *setup) {
  return setup->prior->isotropic && likelihood_is_conjugate(setup->likelihood) && method->vectors &&
         method->vectors(setup);
}

/* The coordinates that remain, and what is known about them. */
typedef struct {
  int d, m;
  double *axis; /* [room, d], rows: orthonormal; m of them are used: U */
  double *centre; /* [d]: mean of the prior */
  double deviation; /* of what is left out */
  Prior prior; /* of x */
  History history;
  int run; /* whose history it is */
  bool vectors; /* nothing has matrices */
  bool projection; /* the rest is not independent of x, but `unseen` */
  Unseen unseen;
} Frame;

/* Subtracts from v[d] what lies in the span of the axes, twice, against rounding; returns the length left. */
static double observed_reduce(const Frame *self, double *v) {
  const int d = self->d;
  double *along = self->centre + d; /* [d] */
  const int passes = self->m > 0 ? 2 : 0;
  for (int pass = 0; pass < passes; pass++) {
    cblas_dgemv(CblasRowMajor, CblasNoTrans, self->m, d, 1, self->axis, d, v, 1, 0, along, 1);
    cblas_dgemv(CblasRowMajor, CblasTrans, self->m, d, -1, self->axis, d, along, 1, 1, v, 1);
  }
  return cblas_dnrm2(d, v, 1);
}

/* Adds an axis in the direction of v[d], unless less than `least` of it is new. v is overwritten. */
static void observed_add_axis(Frame *self, double least, double *v) {
  const double length = self->m < self->d ? observed_reduce(self, v) : 0;
  if (!(length > least)) return;
  double *axis = self->axis + (size_t)self->m * (size_t)self->d;
  for (int i = 0; i < self->d; i++) axis[i] = v[i] / length;
  self->m++;
}

static bool observed_has_one_variance(const Isotropic *prior) {
  bool same = true;
  for (int c = 1; c < prior->components; c++) same = same && prior->variance[c] == prior->variance[0];
  return same;
}

/* Returns the largest number of coordinates that may remain after so many observations. */
static int observed_most(const Isotropic *prior, int observations) {
  const int most = observations + (prior->components > 1 ? prior->components - 1 : 1);
  return observed_has_one_variance(prior) && most < prior->d ? most : prior->d;
}

/* Finds the axes: what is seen, then where the means differ, then all others if the variances do. */
static Status observed_find_axes(Frame *self, const Isotropic *prior, const Subspace *seen) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)self->d;
  double *v, longest = 0;
  ALLOCATE(&scratch, v, d);
  if (seen->rank > 0) memcpy(self->axis, seen->direction, (size_t)seen->rank * d * sizeof *v);
  self->m = seen->rank;
  for (int pass = 0; pass < 2; pass++) /* the first finds how long they are */
    for (size_t c = 0; c < (size_t)prior->components; c++) {
      for (size_t i = 0; i < d; i++) v[i] = prior->mean[c * d + i] - self->centre[i];
      if (pass == 0) longest = fmax(longest, cblas_dnrm2(self->d, v, 1));
      if (pass == 1) observed_add_axis(self, LEAST_LENGTH * longest, v);
    }
  /* All of them are needed if variances differ, and one for samplers if there is one Gaussian, unobserved. */
  const size_t needed = !observed_has_one_variance(prior) ? d : self->m == 0 ? 1 : 0;
  for (size_t i = 0; i < needed; i++) {
    memset(v, 0, d * sizeof *v);
    v[i] = 1;
    observed_add_axis(self, LEAST_LENGTH, v);
  }
  return STATUS_OK;
}

/* ---- the problem in x */

/* Creates the prior of x, with the chain's stages and its one scale. */
static Status observed_create_prior(Arena *memory, const Isotropic *from, const Chain *chain, Frame *self) {
  SCRATCH_ARENA(scratch);
  const int d = self->d, m = self->m;
  Isotropic mixture;
  double *shift;
  TRY(denoiser_isotropic_create(&scratch, m, from->components, &mixture));
  ALLOCATE(&scratch, shift, m);
  memcpy(mixture.weight, from->weight, sizeof mixture.weight);
  memcpy(mixture.variance, from->variance, sizeof mixture.variance);
  for (int c = 0; c < from->components; c++)
    cblas_dgemv(CblasRowMajor, CblasNoTrans, m, d, 1, self->axis, d, from->mean + (ptrdiff_t)c * d, 1, 0,
                mixture.mean + (ptrdiff_t)c * m, 1);
  cblas_dgemv(CblasRowMajor, CblasNoTrans, m, d, 1, self->axis, d, chain->shift, 1, 0, shift, 1);
  return prior_isotropic_like(memory, &mixture, chain, shift, !self->vectors, &self->prior);
}

/* Creates the problem of a run in the coordinates that it has seen, one at least. */
static Status observed_project(Arena *memory, const SamplerSetup *setup, const HistoryView *view,
                               Frame *out) {
  const PriorFit closed = {.schedule = {.stages = 1, .alpha = 0.5}, .closed_only = true};
  const size_t d = (size_t)out->d;
  Subspace seen;
  TRY(history_subspace_find(memory, view, &seen));
  ALLOCATE(memory, out->axis, (size_t)(seen.rank + 1) * d);
  if (seen.rank > 0) memcpy(out->axis, seen.direction, (size_t)seen.rank * d * sizeof *out->axis);
  if (seen.rank == 0) out->axis[0] = 1;
  out->m = seen.rank > 0 ? seen.rank : 1;
  out->projection = true;
  TRY(unseen_create(memory, setup->prior->mixture, out->m, out->axis, setup->draws, &out->unseen));
  TRY(prior_from_mixture(memory, &out->unseen.projected, &closed, &out->prior));
  const SeenAxes axes = {.seen = &seen, .m = out->m, .axis = out->axis};
  return history_project(memory, view, axes, false, &out->history);
}

/* Creates the problem of a run of a history that already includes `temper`. */
static Status observed_frame_create(Arena *memory, const SamplerSetup *setup, const History *history, int run,
                                    bool vectors, Frame *out) {
  SCRATCH_ARENA(scratch);
  const Prior *prior = setup->prior;
  const Isotropic *standardised = prior->isotropic;
  const Chain *chain = prior->chain;
  const size_t d = (size_t)prior->d;
  const HistoryView view = history_view(history, 1, run, 1);
  Isotropic mixture; /* of theta */
  Subspace seen;
  double *variance;
  *out = (Frame){.d = prior->d, .run = run, .vectors = vectors};
  if (!standardised) return observed_project(memory, setup, &view, out);
  ALLOCATE(memory, out->centre, 2 * d);
  ALLOCATE(&scratch, variance, d);
  TRY(denoiser_isotropic_copy(&scratch, standardised, &mixture));
  denoiser_isotropic_transform(chain->shift, chain->scale[0], &mixture);
  denoiser_isotropic_moments(&mixture, out->centre, variance);
  out->deviation = sqrt(mixture.variance[0]);
  TRY(history_subspace_find(&scratch, &view, &seen));
  ALLOCATE(memory, out->axis, (size_t)observed_most(standardised, seen.rank) * d);
  TRY(observed_find_axes(out, &mixture, &seen));
  TRY(observed_create_prior(memory, &mixture, chain, out));
  const SeenAxes axes = {.seen = &seen, .m = out->m, .axis = out->axis};
  return history_project(memory, &view, axes, vectors, &out->history);
}

/* Creates the sampler of x. */
static Status observed_create_sampler(Arena *memory, const SamplerOps *method, const SamplerSetup *setup,
                                      const Frame *frame, const Prior *prior, Sampler *out) {
  SamplerSetup own = *setup;
  own.prior = prior;
  own.runs = 1;
  own.first_run += (uint32_t)frame->run;
  own.diagonal = frame->vectors;
  return sampler_create_plain(memory, method, &own, out);
}

/* Returns the largest number of coordinates that a setup leaves. */
static int observed_most_of(const SamplerSetup *setup) {
  const Isotropic *prior = setup->prior->isotropic;
  if (!prior) return setup->observations;
  return setup->observations > 0 ? observed_most(prior, setup->observations) : prior->d;
}

/* Returns the bytes of a matrix in m dimensions for each draw of a chunk. */
static double observed_bytes(double m) { return m * m * CHUNK_LANES * sizeof(double); }

/* Refuses a sampler that makes matrices in `most` dimensions. */
static Status observed_refuse(const SamplerOps *method, double most, double bytes) {
  char able[128] = "";
  size_t used = 0;
  const SamplerOps *other;
  for (int i = 0; (other = sampler_method(i)); i++)
    if (other->vectors && used < sizeof able)
      used += (size_t)snprintf(able + used, sizeof able - used, "%s%s", used ? ", " : "", other->name);
  return status_set(
      STATUS_INPUT,
      "sampler %s makes matrices of %.0f x %.0f for each of %d draws at a time, %.1f GB for one "
      "of several; with Gaussian rewards none are made by %s",
      method->name, most, most, CHUNK_LANES, bytes / 1e9, able);
}

Status observed_check_size(const SamplerOps *method, const SamplerSetup *setup) {
  if (!observed_fits(method, setup) || observed_has_vectors(method, setup)) return STATUS_OK;
  const double most = observed_most_of(setup), bytes = observed_bytes(most);
  return bytes > MOST_BYTES ? observed_refuse(method, most, bytes) : STATUS_OK;
}

Status observed_check(const SamplerOps *method, const SamplerSetup *setup) {
  SCRATCH_ARENA(scratch);
  double *zeros;
  History none;
  Frame frame;
  Sampler sampler;
  if (unknown_noise_asked(setup->options))
    return status_set(STATUS_INPUT,
                      "noise: unknown: draws of one history, of which few directions are observed, "
                      "need a known noise");
  TRY(observed_check_size(method, setup));
  if (!setup->prior->isotropic) return STATUS_OK; /* any prior of x will do */
  ALLOCATE(&scratch, zeros, setup->prior->d);
  const DiagonalEvidence nothing = {.d = setup->prior->d, .q = zeros, .b = zeros};
  TRY(history_create_diagonal(&scratch, &nothing, setup->likelihood, &none));
  TRY(observed_frame_create(&scratch, setup, &none, 0, observed_has_vectors(method, setup), &frame));
  return observed_create_sampler(&scratch, method, setup, &frame, &frame.prior, &sampler);
}

/* ---- draws */

/* Adds to x[m, M] what was not seen: theta[d, M], whose rows are `stride` apart. */
static void observed_add_unseen(Frame *self, RngLanes rng, const double *x, size_t stride, double *theta) {
  rng.key = rng_subkey(rng.key, RNG_UNSEEN);
  for (Chunk chunk = chunk_begin_narrow(rng, UNSEEN_LANES); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const UnseenRows at = {.x_stride = (int)rng.lanes, .theta_stride = (int)stride, .x = x + chunk.first};
    unseen_draw(&self->unseen, chunk.rng, at, theta + chunk.first);
  }
}

/* Turns x[m, M] into theta[d, M], whose rows are `stride` apart: z = centre + deviation normals, but with x
 * along the axes. */
static Status observed_return(const Frame *self, RngLanes rng, const double *x, size_t stride,
                              double *theta) {
  SCRATCH_ARENA(scratch);
  const int d = self->d, m = self->m, draws = (int)rng.lanes;
  double *z, *along;
  ALLOCATE(&scratch, z, d * CHUNK_LANES);
  ALLOCATE(&scratch, along, m * CHUNK_LANES);
  rng.key = rng_subkey(rng.key, RNG_UNSEEN);
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const int n = chunk.lanes;
    if (m < d) rng_lanes_normal(&chunk.rng, d, z);
    for (int i = 0; i < d; i++)
      for (int p = 0; p < n; p++) z[i * n + p] = m < d ? self->centre[i] + self->deviation * z[i * n + p] : 0;
    lanes_copy(m, n, x + chunk.first, draws, along, n);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, d, -1, self->axis, d, z, n, 1, along, n);
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, d, n, m, 1, self->axis, d, along, n, 1, z, n);
    lanes_copy(d, n, z, n, theta + chunk.first, (int)stride);
  }
  return STATUS_OK;
}

/* Makes the draws of one run: theta[d, M], rows `stride` apart. */
static Status observed_draw_run(Sampler *sampler, const History *history, int run, RngLanes rng,
                                size_t stride, double *theta, int64_t *fallbacks) {
  SCRATCH_ARENA(scratch);
  const SamplerSetup *setup = &sampler->setup;
  const int draws = (int)rng.lanes;
  Frame frame;
  OracleCounter counter;
  Sampler own;
  double *x;
  TRY(observed_frame_create(&scratch, setup, history, run, observed_has_vectors(sampler->ops, setup),
                            &frame));
  oracle_counter_begin(&frame.prior, &counter);
  TRY(observed_create_sampler(&scratch, sampler->ops, setup, &frame, &counter.prior, &own));
  ALLOCATE(&scratch, x, (size_t)frame.m * rng.lanes);
  counter.calls = 0;
  sampler_sample_plain(&own, &frame.history, rng, draws, x, &fallbacks[run]);
  sampler->notes[run] = own.notes[0];
  if (isnan(own.notes[0].calls)) sampler->notes[run].calls = (double)counter.calls / draws;
  if (!frame.projection) return observed_return(&frame, rng, x, stride, theta);
  observed_add_unseen(&frame, rng, x, stride, theta);
  return STATUS_OK;
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

/* ---- the marginal likelihood */

/* Finds that of a run, which is the marginal likelihood of the observations of x. */
static Status observed_marginal_of_run(const Sampler *sampler, const History *history, int run, RngLanes rng,
                                       double *value, double *error, int64_t *fallbacks) {
  SCRATCH_ARENA(scratch);
  Frame frame;
  Sampler own;
  TRY(observed_frame_create(&scratch, &sampler->setup, history, run, false, &frame));
  TRY(observed_create_sampler(&scratch, sampler->ops, &sampler->setup, &frame, &frame.prior, &own));
  rng.first_lane += (uint32_t)run * rng.draws;
  rng.lanes = rng.draws;
  own.ops->marginal(&own, &frame.history, rng, value, error, fallbacks);
  return STATUS_OK;
}

bool observed_marginal(Sampler *sampler, const History *history, RngLanes rng, double *value, double *error,
                       int64_t *fallbacks) {
  if (observed_bytes(observed_most_of(&sampler->setup)) > MOST_BYTES) return false;
  for (int run = 0; run < history->runs; run++)
    if (observed_marginal_of_run(sampler, history, run, rng, value + run, error + run, fallbacks + run) !=
        STATUS_OK)
      return false;
  return true;
}
