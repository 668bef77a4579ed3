/* The distributions that are mixtures of Gaussians. In the plane: cross (Figure 2 of the DiffTS paper) and,
 * for studies in which the exact posterior is in closed form (Figure 7), cross, rays and triangles with each
 * piece replaced by the Gaussian of its weight, mean and covariance; and, beyond the papers, four modes far
 * apart. In any dimension: one or six Gaussians, and shapes that are no few Gaussians, with an exact
 * posterior all the same: curves, a surface and heavy tails, each so fine a mixture that nothing shows of it.
 */
#include "core/arena.h"
#include "problem/distributions.h"
#include "problem/rotation.h"

#include <math.h>
#include <string.h>

#define PAPER "DiffTS, Section 6.2 and Appendix C.1"
#define VARIANT "DiffTS, Figure 7"

/* Creates `count` components of equal weight and of this variance in all directions, with means of zero; to
 * be prepared when the caller has set the means. */
static Status create_equal(Arena *memory, int d, int count, double variance, Mixture *out) {
  TRY(mixture_create(memory, d, count, out));
  for (size_t c = 0; c < (size_t)count; c++) {
    out->weight[c] = 1.0 / count;
    for (size_t i = 0; i < (size_t)d; i++) out->covariance[(c * (size_t)d + i) * (size_t)d + i] = variance;
  }
  return STATUS_OK;
}

/* ---- in the plane */

typedef struct {
  double weight, mean[2], covariance[4];
} Component;

static Status create_planar(Arena *memory, int components, const Component *component, Mixture *out) {
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
  return create_planar(memory, 2, component, out);
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
  return create_planar(memory, 4, component, out);
}

static Status triangles(Arena *memory, int d, const char *file, Mixture *out) {
  (void)d, (void)file;
  static const Component component[] = {{0.75, {2, 0}, {0.5, 0, 0, 1.5}},
                                        {0.25, {-2, 0}, {0.5, 0, 0, 1.0 / 6}}};
  return create_planar(memory, 2, component, out);
}

/* Makes modes so far apart that a local method stays in the one where it starts. */
static Status four(Arena *memory, int d, const char *file, Mixture *out) {
  (void)d, (void)file;
  static const Component component[] = {{0.25, {3, 0}, {0.1, 0, 0, 0.1}},
                                        {0.25, {-3, 0}, {0.1, 0, 0, 0.1}},
                                        {0.25, {0, 3}, {0.1, 0, 0, 0.1}},
                                        {0.25, {0, -3}, {0.1, 0, 0, 0.1}}};
  return create_planar(memory, 4, component, out);
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
const ThetaOps theta_gm_four = {.name = "gm_four",
                                .summary = "four narrow Gaussians far apart",
                                .reference = "in neither paper",
                                .dimension = 2,
                                .mixture = four};

/* ---- in any dimension */

static Status gaussian(Arena *memory, int d, const char *file, Mixture *out) {
  (void)file;
  TRY(create_equal(memory, d, 1, 1, out));
  return mixture_prepare(out);
}

static Status isotropic_gaussian(Arena *memory, int d, Isotropic *out) {
  TRY(isotropic_create(memory, d, 1, out));
  out->weight[0] = out->variance[0] = 1;
  return STATUS_OK;
}

static Status mixture_from_file(Arena *memory, int d, const char *file, Mixture *out) {
  (void)d;
  SCRATCH_ARENA(scratch);
  PriorFit chain = {.schedule = {.stages = 1, .alpha = 0.5}};
  Prior prior;
  TRY(prior_load(&scratch, file, &chain, &prior));
  if (!prior.mixture)
    return status_set(STATUS_INPUT,
                      "%s: problem.theta = mixture needs a Gaussian or mixture prior file, this one holds a "
                      "diffusion prior",
                      file);
  return mixture_copy(memory, prior.mixture, out);
}

/* Six Gaussians of variance 0.1 with means on a sphere of radius 2, in random directions that are the same
 * for every study. */
enum { SPHERE_COMPONENTS = 6 };
static const double SPHERE_VARIANCE = 0.1, SPHERE_RADIUS = 2;

static void sphere_means(int d, double *means) {
  Rng rng = {.key = rng_key(0, RNG_DIRECTION), .run = (uint32_t)d};
  rng_normal(&rng, SPHERE_COMPONENTS * d, means);
  for (int c = 0; c < SPHERE_COMPONENTS; c++) {
    double *mean = means + c * d, square = 0;
    for (int i = 0; i < d; i++) square += mean[i] * mean[i];
    for (int i = 0; i < d; i++) mean[i] *= SPHERE_RADIUS / sqrt(square);
  }
}

static Status sphere(Arena *memory, int d, const char *file, Mixture *out) {
  (void)file;
  TRY(create_equal(memory, d, SPHERE_COMPONENTS, SPHERE_VARIANCE, out));
  sphere_means(d, out->mean);
  return mixture_prepare(out);
}

static Status isotropic_sphere(Arena *memory, int d, Isotropic *out) {
  TRY(isotropic_create(memory, d, SPHERE_COMPONENTS, out));
  sphere_means(d, out->mean);
  for (int c = 0; c < SPHERE_COMPONENTS; c++)
    out->weight[c] = 1.0 / SPHERE_COMPONENTS, out->variance[c] = SPHERE_VARIANCE;
  return STATUS_OK;
}

/* Creates a tube around a closed curve whose frequencies 1, 2, .. make it leave every plane: no few
 * Gaussians are near it. Coordinates 2 j and 2 j + 1 are cosine and sine of j + 1 times the angle; |mean|
 * = 2 for even d. */
static Status curve(Arena *memory, int d, const char *file, Mixture *out) {
  enum { ALONG = 100 };
  const double variance = 0.05, radius = 2 / sqrt(d > 1 ? 0.5 * d : 1), turn = 2 * acos(-1);
  (void)file;
  TRY(create_equal(memory, d, ALONG, variance, out));
  for (int c = 0; c < ALONG; c++)
    for (int i = 0; i < d; i++) {
      const double angle = turn * (c * (i / 2 + 1)) / ALONG;
      out->mean[c * d + i] = radius * (i % 2 ? sin(angle) : cos(angle));
    }
  return mixture_prepare(out);
}

enum { CURVE_PIECES = 320, ROLL_ANGLES = 36, ROLL_HEIGHTS = 10, TAIL_SCALES = 24 };
static const double THICKNESS = 0.15; /* of curve and surface: standard deviation */

/* Creates `count` equal pieces of variance THICKNESS^2 about the points x[3]. Three directions, the same
 * for every study, place them in d dimensions; in fewer dimensions the last coordinates are left out. */
static Status create_pieces(Arena *memory, int d, int count, void (*point)(int k, double *x), Mixture *out) {
  enum { SPACE = 3 };
  const int shown = d < SPACE ? d : SPACE;
  double *direction;
  Rng rng = {.key = rng_key(0, RNG_ROTATION), .run = (uint32_t)d};
  SCRATCH_ARENA(scratch);
  TRY(create_equal(memory, d, count, THICKNESS * THICKNESS, out));
  ALLOCATE(&scratch, direction, shown * d);
  rotation_draw(&rng, shown, d, direction);
  for (int k = 0; k < count; k++) {
    double x[SPACE], *mean = out->mean + (size_t)k * (size_t)d;
    point(k, x);
    for (int i = 0; i < d; i++)
      for (int j = 0; j < shown; j++) mean[i] += direction[j * d + i] * x[j];
  }
  return mixture_prepare(out);
}

/* Makes two turns outwards in a plane while the third coordinate rises: 19 long, so that pieces are 0.06
 * apart. */
static void spiral_point(int k, double *x) {
  const double u = sqrt((k + 0.5) / CURVE_PIECES), angle = 4 * M_PI * u;
  x[0] = 3 * u * cos(angle), x[1] = 3 * u * sin(angle), x[2] = 3 * u - 1.5;
}

/* Makes one turn of a rolled sheet, 3 high: pieces are 0.3 apart, two standard deviations. */
static void roll_point(int k, double *x) {
  const double u = (k % ROLL_ANGLES + 0.5) / ROLL_ANGLES, angle = 2 * M_PI * u, radius = 1 + u;
  x[0] = radius * cos(angle), x[1] = radius * sin(angle);
  x[2] = 3 * ((k / ROLL_ANGLES + 0.5) / ROLL_HEIGHTS - 0.5);
}

static Status spiral(Arena *memory, int d, const char *file, Mixture *out) {
  (void)file;
  return create_pieces(memory, d, CURVE_PIECES, spiral_point, out);
}

static Status roll(Arena *memory, int d, const char *file, Mixture *out) {
  (void)file;
  return create_pieces(memory, d, ROLL_ANGLES * ROLL_HEIGHTS, roll_point, out);
}

/* Creates Student's t with 3 degrees of freedom: a Gaussian whose variance s is inverse gamma, with
 * density s^-5/2 exp(-3 / (2 s)), here at points even in log s from 0.1 to 1000. */
static Status student(Arena *memory, int d, const char *file, Mixture *out) {
  (void)file;
  double total = 0;
  TRY(mixture_create(memory, d, TAIL_SCALES, out));
  for (int c = 0; c < TAIL_SCALES; c++) {
    const double s = 0.1 * pow(1e4, c / (TAIL_SCALES - 1.0));
    out->weight[c] = pow(s, -1.5) * exp(-1.5 / s); /* the density times s, for log s */
    total += out->weight[c];
    for (int i = 0; i < d; i++)
      out->covariance[((size_t)c * (size_t)d + (size_t)i) * (size_t)d + (size_t)i] = s;
  }
  for (int c = 0; c < TAIL_SCALES; c++) out->weight[c] /= total;
  return mixture_prepare(out);
}

const ThetaOps theta_mixture = {.name = "mixture",
                                .summary = "a mixture of Gaussians from a prior file (problem.file)",
                                .reference = "DiffTS, Section 6.2",
                                .needs_file = true,
                                .mixture = mixture_from_file};
const ThetaOps theta_gaussian = {.name = "gaussian",
                                 .summary = "standard Gaussian in any dimension",
                                 .reference = "DiffTS, Section 2.1",
                                 .mixture = gaussian,
                                 .isotropic = isotropic_gaussian};
const ThetaOps theta_gm_sphere = {.name = "gm_sphere",
                                  .summary = "six narrow Gaussians on a sphere, in any dimension",
                                  .reference = "Bruna and Han (2024), Tilted transport",
                                  .mixture = sphere,
                                  .isotropic = isotropic_sphere};
const ThetaOps theta_gm_curve = {.name = "gm_curve",
                                 .summary = "a tube of 100 Gaussians along a closed curve, in any dimension",
                                 .reference = "in neither paper",
                                 .mixture = curve};
const ThetaOps theta_spiral = {.name = "spiral",
                               .summary = "about a curve, two turns of a rising spiral, in any dimension",
                               .reference = "in neither paper",
                               .mixture = spiral};
const ThetaOps theta_roll = {.name = "roll",
                             .summary = "about a surface, a rolled sheet, in any dimension",
                             .reference = "in neither paper",
                             .mixture = roll};
const ThetaOps theta_student = {.name = "student",
                                .summary = "Student's t with 3 degrees of freedom, in any dimension",
                                .reference = "in neither paper",
                                .mixture = student};
