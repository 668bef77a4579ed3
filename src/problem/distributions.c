/* The distributions of theta*: the six of Figures 2 and 4 of the DiffTS paper, and others. */
#include "problem/problem_theta.h"
#include "problem/rotation.h"

#include <math.h>
#include <string.h>

/* ---- densities in the plane that are no mixtures; all but swirl are uniform on a part of [-3, 3]^2 */

static bool theta_star_in_rays(const double *u) {
  const double x = fabs(u[0]), y = fabs(u[1]), radius = sqrt(x * x + y * y);
  return (radius < 3) & ((x > y ? x : y) > 0.95 * radius); /* no branch, which could not be predicted */
}
static bool theta_star_in_triangles(const double *u) {
  return (u[0] > 0 && fabs(u[1]) < u[0]) || (u[0] < 0 && fabs(u[1]) < fabs(u[0]) / 3);
}
static bool theta_star_in_letter_h(const double *u) { return fabs(u[0]) > 2.5 || fabs(u[1]) < 0.25; }
static bool theta_star_in_corners(const double *u) {
  return (fabs(u[0]) > 2.5 && fabs(u[1]) > 1) || (fabs(u[1]) > 2.5 && fabs(u[0]) > 1);
}

static void theta_star_sample_swirl(Rng *rng, double *theta) {
  double u[2];
  rng_uniform(rng, 2, u);
  double radius = 3.5 * u[0] - u[0] * (u[1] - 0.5);
  theta[0] = sin(2 * M_PI * u[0]) * radius + 1;
  theta[1] = cos(2 * M_PI * u[0]) * radius - 1;
}

/* Uses polar coordinates about (1, -1), in which theta has the angle 2 pi u and the radius r = u (4 - v),
 * uniform on (3 u, 4 u). So (u, r) has the density 1 / u, and the area element is 2 pi r du dr. The density
 * is unbounded at the tip. */
static double theta_star_log_density_swirl(const double *theta) {
  double x = theta[0] - 1, y = theta[1] + 1, radius = hypot(x, y), u;
  if (radius >= 4) return -INFINITY; /* u is at most 1, and needs an arc tangent */
  u = atan2(x, y) / (2 * M_PI);
  if (u < 0) u += 1;
  return 3 * u < radius && radius < 4 * u ? -log(2 * M_PI * u * radius) : -INFINITY;
}

/* ---- mixtures in the plane: cross and, for studies with an exact posterior in closed form (Figure 7 of the
 * DiffTS paper), rays and triangles with each piece replaced by the Gaussian of the same weight, mean and
 * covariance */

static const PlanarMode cross_modes[] = {
    {0.5, {0, 0}, {1, 0.99, 0.99, 1}}, {0.5, {0, 0}, {1, -0.9, -0.9, 1}}, {.weight = 0}};

/* Each ray is uniform on a sector of radius 3 and half angle h = arccos 0.95: E r = 2, E r^2 = 9/2, E cos a =
 * sin h / h, E cos^2 a = 1/2 + sin 2h / (4 h). */
#define RAY_MEAN 1.9665542121639696 /* 2 sin h / h */
#define RAY_ALONG 0.48441934487039084 /* 9/2 E cos^2 a - RAY_MEAN^2 */
#define RAY_ACROSS 0.14824518574975729 /* 9/2 (1 - E cos^2 a) */
static const PlanarMode ray_modes[] = {{0.25, {RAY_MEAN, 0}, {RAY_ALONG, 0, 0, RAY_ACROSS}},
                                       {0.25, {-RAY_MEAN, 0}, {RAY_ALONG, 0, 0, RAY_ACROSS}},
                                       {0.25, {0, RAY_MEAN}, {RAY_ACROSS, 0, 0, RAY_ALONG}},
                                       {0.25, {0, -RAY_MEAN}, {RAY_ACROSS, 0, 0, RAY_ALONG}},
                                       {.weight = 0}};

static const PlanarMode triangle_modes[] = {
    {0.75, {2, 0}, {0.5, 0, 0, 1.5}}, {0.25, {-2, 0}, {0.5, 0, 0, 1.0 / 6}}, {.weight = 0}};

/* So far apart that a local method stays in the mode where it starts. */
static const PlanarMode four_modes[] = {{0.25, {3, 0}, {0.1, 0, 0, 0.1}},
                                        {0.25, {-3, 0}, {0.1, 0, 0, 0.1}},
                                        {0.25, {0, 3}, {0.1, 0, 0, 0.1}},
                                        {0.25, {0, -3}, {0.1, 0, 0, 0.1}},
                                        {.weight = 0}};

/* ---- mixtures in any dimension; those for curves, the surface and heavy tails are so fine that the
 * components do not show, and still have an exact posterior */

enum { SPHERE_MODES = 6, CURVE_MODES = 100, SPIRAL_MODES = 320, ROLL_ANGLES = 36, ROLL_HEIGHTS = 10 };
#define SPIRAL_VARIANCE (0.15 * 0.15) /* of the spiral and the surface */

static Status theta_star_load_mixture(Arena *memory, const char *file, Mixture *out) {
  SCRATCH_ARENA(scratch);
  PriorFit chain = {.schedule = {.stages = 1, .alpha = 0.5}};
  Prior prior;
  TRY(prior_load(&scratch, file, &chain, &prior));
  if (!prior.mixture)
    return status_set(STATUS_INPUT,
                      "%s: problem.theta = mixture needs a Gaussian or mixture prior file; this one holds a "
                      "diffusion prior",
                      file);
  return mixture_copy(memory, prior.mixture, out);
}

/* Sets means on a sphere of radius 2, in random directions that are the same for every study. */
static Status theta_star_sphere_means(int d, double *means) {
  Rng rng = {.key = rng_key(0, RNG_DIRECTION), .run = (uint32_t)d};
  rng_normal(&rng, SPHERE_MODES * d, means);
  for (int c = 0; c < SPHERE_MODES; c++) {
    double *mean = means + c * d, square = 0;
    for (int i = 0; i < d; i++) square += mean[i] * mean[i];
    for (int i = 0; i < d; i++) mean[i] *= 2 / sqrt(square);
  }
  return STATUS_OK;
}

/* Sets means along a closed curve whose frequencies 1, 2, .. take it out of every plane, so that no small
 * number of Gaussians is close to it. Coordinates 2 j and 2 j + 1 are cosine and sine of j + 1 times the
 * angle; |mean| = 2 for even d. */
static Status theta_star_curve_means(int d, double *means) {
  const double radius = 2 / sqrt(d > 1 ? 0.5 * d : 1), turn = 2 * acos(-1);
  for (int c = 0; c < CURVE_MODES; c++)
    for (int i = 0; i < d; i++) {
      const double angle = turn * (c * (i / 2 + 1)) / CURVE_MODES;
      means[c * d + i] = radius * (i % 2 ? sin(angle) : cos(angle));
    }
  return STATUS_OK;
}

/* Sets the means at `count` points x[3]. Three directions, the same for every study, place the points in d
 * dimensions; in fewer than three, the last coordinates are left out. */
static Status theta_star_means_along(int d, int count, void (*point)(int k, double *x), double *means) {
  enum { SPACE = 3 };
  const int shown = d < SPACE ? d : SPACE;
  double *direction;
  Rng rng = {.key = rng_key(0, RNG_ROTATION), .run = (uint32_t)d};
  SCRATCH_ARENA(scratch);
  ALLOCATE(&scratch, direction, shown * d);
  rotation_draw(&rng, shown, d, direction);
  for (int k = 0; k < count; k++) {
    double x[SPACE], *mean = means + (size_t)k * (size_t)d;
    point(k, x);
    for (int i = 0; i < d; i++)
      for (int j = 0; j < shown; j++) mean[i] += direction[j * d + i] * x[j];
  }
  return STATUS_OK;
}

/* Puts points along two turns outwards in a plane while the third coordinate rises: a length of 19, so that
 * points are 0.06 apart. */
static void theta_star_spiral_point(int k, double *x) {
  const double u = sqrt((k + 0.5) / SPIRAL_MODES), angle = 4 * M_PI * u;
  x[0] = 3 * u * cos(angle), x[1] = 3 * u * sin(angle), x[2] = 3 * u - 1.5;
}

static Status theta_star_spiral_means(int d, double *means) {
  return theta_star_means_along(d, SPIRAL_MODES, theta_star_spiral_point, means);
}

/* Puts points on one turn of a rolled sheet, 3 high: they are 0.3 apart, two standard deviations. */
static void theta_star_roll_point(int k, double *x) {
  const double u = (k % ROLL_ANGLES + 0.5) / ROLL_ANGLES, angle = 2 * M_PI * u, radius = 1 + u;
  x[0] = radius * cos(angle), x[1] = radius * sin(angle);
  x[2] = 3 * ((k / ROLL_ANGLES + 0.5) / ROLL_HEIGHTS - 0.5);
}

static Status theta_star_roll_means(int d, double *means) {
  return theta_star_means_along(d, ROLL_ANGLES * ROLL_HEIGHTS, theta_star_roll_point, means);
}

/* Creates Student's t with 3 degrees of freedom: a Gaussian whose variance s is inverse gamma, with density
 * s^-5/2 exp(-3 / (2 s)), here at points spaced evenly in log s from 0.1 to 1000. */
static Status theta_star_mix_student(Arena *memory, int d, Mixture *out) {
  enum { TAIL_SCALES = 24 };
  double total = 0;
  TRY(mixture_create(memory, d, TAIL_SCALES, out));
  for (int c = 0; c < TAIL_SCALES; c++) {
    const double s = 0.1 * pow(1e4, c / (TAIL_SCALES - 1.0));
    out->weight[c] = pow(s, -1.5) * exp(-1.5 / s); /* the density of log s: that of s, times s */
    total += out->weight[c];
    for (int i = 0; i < d; i++)
      out->covariance[((size_t)c * (size_t)d + (size_t)i) * (size_t)d + (size_t)i] = s;
  }
  for (int c = 0; c < TAIL_SCALES; c++) out->weight[c] /= total;
  return mixture_prepare(out);
}

/* ---- the list */

#define PAPER "DiffTS, Section 6.2 and Appendix C.1"
#define VARIANT "DiffTS, Figure 7"
#define BRUNA_HAN "Bruna and Han (2024), Tilted transport"
#define NEITHER "in neither paper"

/* Areas: four sectors of radius 3 and half angle arccos 0.95; two triangles; two strips of 0.5 x 6 and a bar
 * of 5 x 0.5; in each corner two strips of 0.5 x 2 that share a square of 0.5 x 0.5. */
#define RAYS_AREA (36 * 0.31756042929152151)
#define TRIANGLES_AREA (9 + 3)
#define LETTER_H_AREA (6 + 2.5)
#define CORNERS_AREA (4 * (1 + 1 - 0.25))

const ThetaOps theta_distributions[] = {
    {"cross", "two crossed Gaussians", PAPER, .dimension = 2, .planar = cross_modes},
    {"rays", "uniform on four narrow rays along the axes", PAPER, .dimension = 2,
     .inside = theta_star_in_rays, .area = RAYS_AREA},
    {"triangles", "uniform on a wide and a narrow triangle", PAPER, .dimension = 2,
     .inside = theta_star_in_triangles, .area = TRIANGLES_AREA},
    {"swirl", "a spiral of growing width", PAPER, .dimension = 2, .sample = theta_star_sample_swirl,
     .log_density = theta_star_log_density_swirl},
    {"H", "uniform on the letter H", PAPER, .dimension = 2, .inside = theta_star_in_letter_h,
     .area = LETTER_H_AREA},
    {"corners", "uniform on four corners of a square", PAPER, .dimension = 2, .inside = theta_star_in_corners,
     .area = CORNERS_AREA},
    {"gm_cross", "cross, which is already a mixture of Gaussians", VARIANT, .dimension = 2,
     .planar = cross_modes},
    {"gm_rays", "four Gaussians with the moments of the rays", VARIANT, .dimension = 2, .planar = ray_modes},
    {"gm_triangles", "two Gaussians with the moments of the triangles", VARIANT, .dimension = 2,
     .planar = triangle_modes},
    {"gm_four", "four narrow Gaussians far apart", NEITHER, .dimension = 2, .planar = four_modes},
    {"gm_curve", "a tube of 100 Gaussians along a closed curve, in any dimension", NEITHER,
     .modes = CURVE_MODES, .variance = 0.05, .means = theta_star_curve_means},
    {"mixture", "a mixture of Gaussians from a prior file (problem.file)", "DiffTS, Section 6.2",
     .load = theta_star_load_mixture},
    {"gaussian", "standard Gaussian in any dimension", "DiffTS, Section 2.1", .modes = 1, .variance = 1},
    {"gm_sphere", "six narrow Gaussians on a sphere, in any dimension", BRUNA_HAN, .modes = SPHERE_MODES,
     .variance = 0.1, .means = theta_star_sphere_means},
    {"spiral", "near a curve, two turns of a rising spiral, in any dimension", NEITHER, .modes = SPIRAL_MODES,
     .variance = SPIRAL_VARIANCE, .means = theta_star_spiral_means},
    {"roll", "near a surface, a rolled sheet, in any dimension", NEITHER, .modes = ROLL_ANGLES * ROLL_HEIGHTS,
     .variance = SPIRAL_VARIANCE, .means = theta_star_roll_means},
    {"student", "Student's t with 3 degrees of freedom, in any dimension", NEITHER,
     .mixture = theta_star_mix_student},
    {"ising", "uniform on the corners of the hypercube, in any dimension", BRUNA_HAN, .prior = prior_ising},
    {"file", "drawn from the user's own samples (problem.file)", "DiffTS, Section 6.3",
     .set = io_dataset_read_samples},
    {.name = NULL}};
