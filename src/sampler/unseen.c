#include "sampler/unseen.h"

#include "core/lanes.h"
#include "core/linalg/linalg.h"

#include <cblas.h>

/* Computes the regression of component c: S axis', then times L^-T L^-1 from the right. */
static void find_regression(const Unseen *self, int c) {
  const int d = self->prior->d, m = self->m;
  const double *factor = self->projected.cholesky + (ptrdiff_t)c * m * m,
               *covariance = self->prior->covariance + (ptrdiff_t)c * d * d;
  double *own = self->regression + (ptrdiff_t)c * d * m;
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, d, m, d, 1, covariance, d, self->axis, d, 0, own, m);
  cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, d, m, 1, factor, m, own, m);
  cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasNoTrans, CblasNonUnit, d, m, 1, factor, m, own, m);
}

Status unseen_create(Arena *memory, const Mixture *prior, int m, const double *axis, int most, Unseen *out) {
  const size_t d = (size_t)prior->d, count = (size_t)prior->components, r = (size_t)m,
               n = (size_t)(most < UNSEEN_LANES ? most : UNSEEN_LANES);
  *out = (Unseen){.prior = prior, .m = m, .axis = axis};
  TRY(mixture_project(memory, prior, m, axis, &out->projected));
  ALLOCATE(memory, out->regression, count * d * r);
  ALLOCATE(memory, out->share, count * n);
  ALLOCATE_ARRAYS(memory, n, &out->top, &out->total, &out->uniform);
  ALLOCATE_ARRAYS(memory, n, &out->component, &out->lane);
  ALLOCATE_ARRAYS(memory, d * n, &out->normal, &out->drawn);
  ALLOCATE(memory, out->rest, r * n);
  for (int c = 0; c < prior->components; c++) find_regression(out, c);
  return STATUS_OK;
}

/* Computes share[C, n], the weights of the components given x, up to a factor of each lane. */
static void find_shares(Unseen *self, int lanes, UnseenRows at) {
  const Mixture *of = &self->projected;
  const int m = self->m;
  for (int c = 0; c < of->components; c++) {
    double *own = self->share + (ptrdiff_t)c * lanes;
    for (int i = 0; i < m; i++)
      for (int n = 0; n < lanes; n++)
        self->rest[i * lanes + n] = at.x[(ptrdiff_t)i * at.x_stride + n] - of->mean[c * m + i];
    linalg_factor_forward_shared(m, lanes, of->cholesky + (ptrdiff_t)c * m * m, self->rest);
    for (int n = 0; n < lanes; n++) own[n] = of->log_norm[c];
    for (int i = 0; i < m; i++)
      for (int n = 0; n < lanes; n++) own[n] -= 0.5 * self->rest[i * lanes + n] * self->rest[i * lanes + n];
  }
  lanes_exponentiate(of->components, lanes, self->share, self->top, self->total);
}

/* Draws those `count` lanes whose component is c. */
static void draw_component(Unseen *self, int c, int lanes, int count, UnseenRows at, double *theta) {
  const Mixture *prior = self->prior;
  const int d = prior->d, m = self->m;
  const double *mean = prior->mean + (ptrdiff_t)c * d, *factor = prior->cholesky + (ptrdiff_t)c * d * d,
               *regression = self->regression + (ptrdiff_t)c * d * m;
  lanes_gather(d, lanes, count, self->lane, self->normal, self->drawn);
  lanes_gather(m, at.x_stride, count, self->lane, at.x, self->rest);
  cblas_dtrmm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, d, count, 1, factor, d,
              self->drawn, count);
  for (int i = 0; i < d; i++)
    for (int n = 0; n < count; n++) self->drawn[i * count + n] += mean[i];
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, count, d, -1, self->axis, d, self->drawn, count,
              1, self->rest, count);
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, d, count, m, 1, regression, m, self->rest, count, 1,
              self->drawn, count);
  lanes_scatter(d, at.theta_stride, count, self->lane, self->drawn, theta);
}

void unseen_draw(Unseen *self, RngLanes rng, UnseenRows at, double *theta) {
  const int lanes = (int)rng.lanes, components = self->prior->components;
  ASSERT(lanes <= UNSEEN_LANES);
  rng_lanes_uniform(&rng, 1, self->uniform);
  rng_lanes_normal(&rng, self->prior->d, self->normal);
  find_shares(self, lanes, at);
  for (int n = 0; n < lanes; n++)
    self->component[n] = lanes_pick(components, lanes, self->share + n, self->uniform[n] * self->total[n]);
  for (int c = 0; c < components; c++) {
    int count = 0;
    for (int n = 0; n < lanes; n++)
      if (self->component[n] == c) self->lane[count++] = n;
    if (count > 0) draw_component(self, c, lanes, count, at, theta);
  }
}
