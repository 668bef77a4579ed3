/* The priors of Figures 2 and 4 of the DiffTS paper that are no mixtures. Except for swirl they are uniform
 * on a part of [-3, 3]^2. */
#include "problem/distributions.h"

#include <math.h>

#define PAPER "DiffTS, Section 6.2 and Appendix C.1"

static void sample_where(bool (*inside)(const double *), Rng *rng, double *theta) {
  do {
    rng_uniform(rng, 2, theta);
    for (int i = 0; i < 2; i++) theta[i] = 6 * theta[i] - 3;
  } while (!inside(theta));
}

static bool in_rays(const double *u) {
  const double x = fabs(u[0]), y = fabs(u[1]), radius = sqrt(x * x + y * y);
  return (radius < 3) & ((x > y ? x : y) > 0.95 * radius); /* no branch: it could not be foreseen */
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

/* Returns the log density of what is uniform where `inside` holds within [-3, 3]^2, a part of this area. */
static double log_uniform(bool (*inside)(const double *), double area, const double *u) {
  const double value[2] = {-INFINITY, -log(area)};
  return value[(fabs(u[0]) < 3) & (fabs(u[1]) < 3) & inside(u)];
}

/* Covers four sectors of radius 3 and half angle arccos 0.95. */
static double log_density_rays(const double *u) { return log_uniform(in_rays, 36 * acos(0.95), u); }
static double log_density_triangles(const double *u) { return log_uniform(in_triangles, 9 + 3, u); }
/* Covers two strips of 0.5 x 6 and a bar of 5 x 0.5. */
static double log_density_h(const double *u) { return log_uniform(in_h, 6 + 2.5, u); }
/* Covers in each corner two strips of 0.5 x 2 that share a square of 0.5 x 0.5. */
static double log_density_corners(const double *u) { return log_uniform(in_corners, 4 * (1 + 1 - 0.25), u); }

/* Uses that about (1, -1) theta has the angle 2 pi u and the radius r = u (4 - v), uniform on (3 u, 4 u).
 * So (u, r) has the density 1 / u, and the area element is 2 pi r du dr. It is unbounded at the tip. */
static double log_density_swirl(const double *theta) {
  double x = theta[0] - 1, y = theta[1] + 1, radius = hypot(x, y), u;
  if (radius >= 4) return -INFINITY; /* u is at most 1, and needs an arc tangent */
  u = atan2(x, y) / (2 * M_PI);
  if (u < 0) u += 1;
  return 3 * u < radius && radius < 4 * u ? -log(2 * M_PI * u * radius) : -INFINITY;
}

const ThetaOps theta_rays = {.name = "rays",
                             .summary = "uniform on four narrow rays along the axes",
                             .reference = PAPER,
                             .dimension = 2,
                             .sample = sample_rays,
                             .log_density = log_density_rays};
const ThetaOps theta_triangles = {.name = "triangles",
                                  .summary = "uniform on a wide and a narrow triangle",
                                  .reference = PAPER,
                                  .dimension = 2,
                                  .sample = sample_triangles,
                                  .log_density = log_density_triangles};
const ThetaOps theta_swirl = {.name = "swirl",
                              .summary = "a spiral of growing width",
                              .reference = PAPER,
                              .dimension = 2,
                              .sample = sample_swirl,
                              .log_density = log_density_swirl};
const ThetaOps theta_h = {.name = "H",
                          .summary = "uniform on the letter H",
                          .reference = PAPER,
                          .dimension = 2,
                          .sample = sample_h,
                          .log_density = log_density_h};
const ThetaOps theta_corners = {.name = "corners",
                                .summary = "uniform on four corners of a square",
                                .reference = PAPER,
                                .dimension = 2,
                                .sample = sample_corners,
                                .log_density = log_density_corners};
