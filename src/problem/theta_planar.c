/* The six priors of Figures 2 and 4 of the DiffTS paper. Except for cross and swirl they are uniform on a
 * part of [-3, 3]^2. */
#include "problem/theta_planar.h"

#include <math.h>

#define PAPER "DiffTS, Section 6.2 and Appendix C.1"

static void sample_where(bool (*inside)(const double *), Rng *rng, double *theta) {
  do {
    rng_uniform(rng, 2, theta);
    for (int i = 0; i < 2; i++) theta[i] = 6 * theta[i] - 3;
  } while (!inside(theta));
}

static bool in_rays(const double *u) {
  double radius = hypot(u[0], u[1]);
  return radius < 3 && fmax(fabs(u[0]), fabs(u[1])) > 0.95 * radius;
}
static bool in_triangles(const double *u) {
  return (u[0] > 0 && fabs(u[1]) < u[0]) || (u[0] < 0 && fabs(u[1]) < fabs(u[0]) / 3);
}
static bool in_h(const double *u) { return fabs(u[0]) > 2.5 || fabs(u[1]) < 0.25; }
static bool in_corners(const double *u) {
  return (fabs(u[0]) > 2.5 && fabs(u[1]) > 1) || (fabs(u[1]) > 2.5 && fabs(u[0]) > 1);
}

static void sample_rays(Rng *rng, double *theta) { sample_where(in_rays, rng, theta); }
static void sample_triangles(Rng *rng, double *theta) { sample_where(in_triangles, rng, theta); }
static void sample_h(Rng *rng, double *theta) { sample_where(in_h, rng, theta); }
static void sample_corners(Rng *rng, double *theta) { sample_where(in_corners, rng, theta); }

static void sample_swirl(Rng *rng, double *theta) {
  double u[2];
  rng_uniform(rng, 2, u);
  double radius = 3.5 * u[0] - u[0] * (u[1] - 0.5);
  theta[0] = sin(2 * M_PI * u[0]) * radius + 1;
  theta[1] = cos(2 * M_PI * u[0]) * radius - 1;
}

static Status mixture_of_cross(int d, const char *file, Mixture *out) {
  (void)file;
  static const double covariance[2][4] = {{1, 0.99, 0.99, 1}, {1, -0.9, -0.9, 1}};
  TRY(mixture_create(d, 2, out));
  for (int c = 0; c < 2; c++) {
    out->weight[c] = 0.5;
    for (int i = 0; i < 4; i++) out->covariance[4 * c + i] = covariance[c][i];
  }
  return mixture_prepare(out);
}

const ThetaOps theta_cross = {.name = "cross",
                              .summary = "two crossed Gaussians",
                              .reference = PAPER,
                              .dimension = 2,
                              .mixture = mixture_of_cross};
const ThetaOps theta_rays = {.name = "rays",
                             .summary = "uniform on four narrow rays along the axes",
                             .reference = PAPER,
                             .dimension = 2,
                             .sample = sample_rays};
const ThetaOps theta_triangles = {.name = "triangles",
                                  .summary = "uniform on a wide and a narrow triangle",
                                  .reference = PAPER,
                                  .dimension = 2,
                                  .sample = sample_triangles};
const ThetaOps theta_swirl = {.name = "swirl",
                              .summary = "a spiral of growing width",
                              .reference = PAPER,
                              .dimension = 2,
                              .sample = sample_swirl};
const ThetaOps theta_h = {.name = "H",
                          .summary = "uniform on the letter H",
                          .reference = PAPER,
                          .dimension = 2,
                          .sample = sample_h};
const ThetaOps theta_corners = {.name = "corners",
                                .summary = "uniform on four corners of a square",
                                .reference = PAPER,
                                .dimension = 2,
                                .sample = sample_corners};
