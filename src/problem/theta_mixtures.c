/* The priors in the plane that are mixtures of Gaussians: cross (Figure 2 of the DiffTS paper) and, for
 * studies in which the exact posterior is in closed form (Figure 7), cross, rays and triangles with each
 * piece replaced by the Gaussian of its weight, mean and covariance. Beyond the papers, four modes far
 * apart. */
#include "problem/distributions.h"

#include <math.h>
#include <string.h>

#define PAPER "DiffTS, Section 6.2 and Appendix C.1"
#define VARIANT "DiffTS, Figure 7"

typedef struct {
  double weight, mean[2], covariance[4];
} Component;

static Status make(Arena *memory, int components, const Component *component, Mixture *out) {
  TRY(mixture_create(memory, 2, components, out));
  for (int c = 0; c < components; c++) {
    out->weight[c] = component[c].weight;
    memcpy(out->mean + 2 * c, component[c].mean, sizeof component[c].mean);
    memcpy(out->covariance + 4 * c, component[c].covariance, sizeof component[c].covariance);
  }
  return mixture_prepare(out);
}

static Status cross(Arena *memory, int d, const char *file, Mixture *out) {
  (void)d, (void)file;
  static const Component component[] = {{0.5, {0, 0}, {1, 0.99, 0.99, 1}}, {0.5, {0, 0}, {1, -0.9, -0.9, 1}}};
  return make(memory, 2, component, out);
}

/* Creates the mixture of four rays. Each is uniform on a sector of radius 3 and half angle h: E r = 2, E
 * r^2 = 9/2, E cos a = sin h / h, E cos^2 a = 1/2 + sin 2h / (4 h). */
static Status rays(Arena *memory, int d, const char *file, Mixture *out) {
  (void)d, (void)file;
  const double h = acos(0.95), bend = sin(2 * h) / (4 * h), mean = 2 * sin(h) / h;
  const double along = 4.5 * (0.5 + bend) - mean * mean, across = 4.5 * (0.5 - bend);
  const Component component[] = {{0.25, {mean, 0}, {along, 0, 0, across}},
                                 {0.25, {-mean, 0}, {along, 0, 0, across}},
                                 {0.25, {0, mean}, {across, 0, 0, along}},
                                 {0.25, {0, -mean}, {across, 0, 0, along}}};
  return make(memory, 4, component, out);
}

static Status triangles(Arena *memory, int d, const char *file, Mixture *out) {
  (void)d, (void)file;
  static const Component component[] = {{0.75, {2, 0}, {0.5, 0, 0, 1.5}},
                                        {0.25, {-2, 0}, {0.5, 0, 0, 1.0 / 6}}};
  return make(memory, 2, component, out);
}

/* Creates a tube around a closed curve whose frequencies 1, 2, .. make it leave every plane: no few
 * Gaussians are near it. Coordinates 2 j and 2 j + 1 are cosine and sine of j + 1 times the angle; |mean|
 * = 2 for even d. */
static Status curve(Arena *memory, int d, const char *file, Mixture *out) {
  enum { ALONG = 100 };
  const double variance = 0.05, radius = 2 / sqrt(d > 1 ? 0.5 * d : 1), turn = 2 * acos(-1);
  (void)file;
  TRY(mixture_create(memory, d, ALONG, out));
  for (int c = 0; c < ALONG; c++) {
    out->weight[c] = 1.0 / ALONG;
    for (int i = 0; i < d; i++) {
      const double angle = turn * (c * (i / 2 + 1)) / ALONG;
      out->mean[c * d + i] = radius * (i % 2 ? sin(angle) : cos(angle));
      out->covariance[(c * d + i) * d + i] = variance;
    }
  }
  return mixture_prepare(out);
}

/* Makes modes so far apart that a local method stays in the one where it starts. */
static Status four(Arena *memory, int d, const char *file, Mixture *out) {
  (void)d, (void)file;
  static const Component component[] = {{0.25, {3, 0}, {0.1, 0, 0, 0.1}},
                                        {0.25, {-3, 0}, {0.1, 0, 0, 0.1}},
                                        {0.25, {0, 3}, {0.1, 0, 0, 0.1}},
                                        {0.25, {0, -3}, {0.1, 0, 0, 0.1}}};
  return make(memory, 4, component, out);
}

const ThetaOps theta_cross = {.name = "cross",
                              .summary = "two crossed Gaussians",
                              .reference = PAPER,
                              .dimension = 2,
                              .mixture = cross};
const ThetaOps theta_gm_cross = {.name = "gm_cross",
                                 .summary = "cross, which is a mixture of Gaussians already",
                                 .reference = VARIANT,
                                 .dimension = 2,
                                 .mixture = cross};
const ThetaOps theta_gm_rays = {.name = "gm_rays",
                                .summary = "four Gaussians with the moments of the rays",
                                .reference = VARIANT,
                                .dimension = 2,
                                .mixture = rays};
const ThetaOps theta_gm_triangles = {.name = "gm_triangles",
                                     .summary = "two Gaussians with the moments of the triangles",
                                     .reference = VARIANT,
                                     .dimension = 2,
                                     .mixture = triangles};
const ThetaOps theta_gm_curve = {.name = "gm_curve",
                                 .summary = "a tube of 100 Gaussians along a closed curve, in any dimension",
                                 .reference = "in neither paper",
                                 .mixture = curve};
const ThetaOps theta_gm_four = {.name = "gm_four",
                                .summary = "four narrow Gaussians far apart",
                                .reference = "in neither paper",
                                .dimension = 2,
                                .mixture = four};
