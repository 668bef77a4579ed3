#include "sampler/guard_seen.h"

#include "core/lanes.h"
#include "core/linalg/linalg_lanes.h"
#include "model/history/history_subspace.h"
#include "sampler/mixture/mixture_posterior.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

Status guard_seen_create(Arena *memory, const SamplerSetup *setup, GuardChoice choice, GuardSeen *out) {
  const Prior *prior = setup->prior;
  const size_t d = (size_t)prior->d;
  *out = (GuardSeen){.setup = *setup, .choice = choice};
  ALLOCATE_ARRAYS(memory, d, &out->mean, &out->variance);
  if (prior->isotropic) {
    TRY(denoiser_isotropic_copy(memory, prior->isotropic, &out->isotropic));
    denoiser_isotropic_transform(prior->chain->shift, prior->chain->scale[0], &out->isotropic);
    denoiser_isotropic_moments(&out->isotropic, out->mean, out->variance);
    out->components = out->isotropic.components;
  } else {
    mixture_spread(prior->mixture, out->mean, out->variance);
    for (size_t i = 0; i < d; i++) out->variance[i] *= out->variance[i];
    out->components = prior->mixture->components;
  }
  for (size_t i = 0; i < d; i++) out->variance[i] *= choice.width * choice.width;
  return STATUS_OK;
}

/* ---- the posterior of x */

/* What is seen in one run. */
typedef struct {
  int m; /* r, or 1 if nothing is seen */
  double *axis; /* [m, d], rows: V' */
  Mixture mixture; /* of x, with the wide Gaussian last */
  History history;
  MixturePosterior *posterior;
} SeenRun;

/* Computes the law of x under the components of the prior. */
static Status guard_seen_project(const GuardSeen *self, const SeenRun *run, Mixture *out) {
  SCRATCH_ARENA(scratch);
  const int d = self->setup.prior->d, m = run->m;
  Mixture projected;
  const double keep = 1 - self->choice.weight;
  if (self->isotropic.d == 0) {
    TRY(mixture_project(&scratch, self->setup.prior->mixture, m, run->axis, &projected));
    memcpy(out->mean, projected.mean, (size_t)(self->components * m) * sizeof *out->mean);
    memcpy(out->covariance, projected.covariance,
           (size_t)(self->components * m * m) * sizeof *out->covariance);
    for (int c = 0; c < self->components; c++) out->weight[c] = keep * projected.weight[c];
    return STATUS_OK;
  }
  for (int c = 0; c < self->components; c++) {
    out->weight[c] = keep * self->isotropic.weight[c];
    cblas_dgemv(CblasRowMajor, CblasNoTrans, m, d, 1, run->axis, d, self->isotropic.mean + (ptrdiff_t)c * d,
                1, 0, out->mean + (ptrdiff_t)c * m, 1);
    for (int i = 0; i < m; i++)
      out->covariance[(ptrdiff_t)c * m * m + i * (m + 1)] = self->isotropic.variance[c];
  }
  return STATUS_OK;
}

/* Computes the law of x under the wide Gaussian: V' m and V' D V. */
static Status guard_seen_project_wide(const GuardSeen *self, const SeenRun *run, double *mean,
                                      double *covariance) {
  SCRATCH_ARENA(scratch);
  const int d = self->setup.prior->d, m = run->m;
  double *scaled; /* [m, d]: V' D^(1/2) */
  ALLOCATE(&scratch, scaled, (size_t)m * (size_t)d);
  for (int k = 0; k < m; k++)
    for (int i = 0; i < d; i++) {
      const size_t at = (size_t)k * (size_t)d + (size_t)i;
      scaled[at] = sqrt(self->variance[i]) * run->axis[at];
    }
  cblas_dgemv(CblasRowMajor, CblasNoTrans, m, d, 1, run->axis, d, self->mean, 1, 0, mean, 1);
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, m, d, 1, scaled, d, scaled, d, 0, covariance, m);
  linalg_lanes_symmetrise(m, 1, covariance);
  return STATUS_OK;
}

static Status guard_seen_begin(Arena *memory, const GuardSeen *self, const History *history, int run,
                               SeenRun *out) {
  const HistoryView view = history_view(history, 1, run, 1);
  const size_t d = (size_t)self->setup.prior->d, wide = (size_t)self->components;
  MixtureOptions options = mixture_posterior_options(self->setup.options);
  Subspace seen;
  options.alone = self->setup.alone;
  TRY(history_subspace_find(memory, &view, &seen));
  *out = (SeenRun){.m = seen.rank > 0 ? seen.rank : 1};
  const size_t m = (size_t)out->m;
  ALLOCATE(memory, out->axis, m * d);
  if (seen.rank > 0) memcpy(out->axis, seen.direction, m * d * sizeof *out->axis);
  if (seen.rank == 0) out->axis[0] = 1;
  TRY(mixture_create(memory, out->m, self->components + 1, &out->mixture));
  TRY(guard_seen_project(self, out, &out->mixture));
  out->mixture.weight[wide] = self->choice.weight;
  TRY(guard_seen_project_wide(self, out, out->mixture.mean + wide * m,
                              out->mixture.covariance + wide * m * m));
  TRY(mixture_prepare(&out->mixture));
  const SeenAxes axes = {.seen = &seen, .m = out->m, .axis = out->axis};
  TRY(history_project(memory, &view, axes, false, &out->history));
  TRY(mixture_posterior_create(memory, &out->mixture, history->likelihood, 1, options, &out->posterior));
  mixture_posterior_scale_component(out->posterior, self->components, self->choice.shrink);
  return STATUS_OK;
}

/* ---- draws */

/* Draws theta[d], whose entries are `stride` apart, of the wide Gaussian given x[m], which is overwritten;
 * z[d] is scratch. With `shrink` the rest of a draw is closer to its mean too. */
static void guard_seen_draw(const GuardSeen *self, const SeenRun *run, Rng rng, double *x, double *z,
                            size_t stride, double *theta) {
  const int d = self->setup.prior->d, m = run->m;
  const size_t wide = (size_t)self->components;
  const double *factor = run->mixture.cholesky + wide * (size_t)(m * m),
               *mean = run->mixture.mean + wide * (size_t)m, shrink = self->choice.shrink;
  rng_normal(&rng, d, z);
  for (int i = 0; i < d; i++) z[i] *= sqrt(self->variance[i]);
  for (int k = 0; k < m; k++) x[k] -= mean[k];
  cblas_dgemv(CblasRowMajor, CblasNoTrans, m, d, -shrink, run->axis, d, z, 1, 1, x, 1);
  cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, m, factor, m, x, 1);
  cblas_dtrsv(CblasRowMajor, CblasLower, CblasTrans, CblasNonUnit, m, factor, m, x, 1);
  for (int i = 0; i < d; i++) {
    const double pull = cblas_ddot(m, run->axis + i, d, x, 1);
    theta[(size_t)i * stride] = self->mean[i] + shrink * z[i] + self->variance[i] * pull;
  }
}

/* Replaces the draws theta[d, M] of one run, whose rows are `stride` apart. */
static Status guard_seen_replace_run(const GuardSeen *self, const History *history, int b, RngLanes rng,
                                     size_t stride, double *theta, int64_t *fallbacks) {
  SCRATCH_ARENA(scratch);
  const size_t draws = rng.lanes;
  RngLanes rest = rng;
  SeenRun run;
  double *x, *own, *z; /* [m, M], [m], [d] */
  int *component;
  TRY(guard_seen_begin(&scratch, self, history, b, &run));
  ALLOCATE(&scratch, x, (size_t)run.m * draws);
  ALLOCATE(&scratch, component, draws);
  ALLOCATE(&scratch, own, run.m);
  ALLOCATE(&scratch, z, self->setup.prior->d);
  mixture_posterior_sample(run.posterior, &run.history, rng, (int)draws, x, component, &fallbacks[b]);
  rest.key = rng_subkey(rng.key, RNG_UNSEEN);
  for (size_t n = 0; n < draws; n++) {
    if (component[n] != self->components) continue;
    lanes_copy(run.m, 1, x + n, (int)draws, own, 1);
    guard_seen_draw(self, &run, rng_of_lane(&rest, (uint32_t)n), own, z, stride, theta + n);
  }
  return STATUS_OK;
}

void guard_seen_replace(const GuardSeen *self, const History *history, RngLanes rng, int draws, double *theta,
                        int64_t *fallbacks) {
  const size_t stride = rng.lanes;
  for (int b = 0; b < history->runs; b++) {
    RngLanes own = rng;
    double *first = theta + (size_t)b * (size_t)draws;
    own.first_lane += (uint32_t)(b * draws);
    own.lanes = (uint32_t)draws;
    if (guard_seen_replace_run(self, history, b, own, stride, first, fallbacks) == STATUS_OK) continue;
    for (int n = 0; n < draws; n++) first[n] = NAN;
  }
}

/* ---- evidence */

static Status guard_seen_evidence_of_run(const GuardSeen *self, const History *history, int b,
                                         double *evidence, int64_t *fallbacks) {
  SCRATCH_ARENA(scratch);
  SeenRun run;
  double *own;
  ALLOCATE(&scratch, own, self->components + 1);
  TRY(guard_seen_begin(&scratch, self, history, b, &run));
  mixture_posterior_evidence(run.posterior, &run.history, own, &fallbacks[b]);
  for (int c = 0; c <= self->components; c++) evidence[(ptrdiff_t)c * history->runs] = own[c];
  return STATUS_OK;
}

void guard_seen_evidence(const GuardSeen *self, const History *history, double *evidence,
                         int64_t *fallbacks) {
  for (int b = 0; b < history->runs; b++) {
    if (guard_seen_evidence_of_run(self, history, b, evidence + b, fallbacks) == STATUS_OK) continue;
    for (int c = 0; c <= self->components; c++) evidence[(ptrdiff_t)c * history->runs + b] = NAN;
  }
}
