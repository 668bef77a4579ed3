/* Shapes that are no few Gaussians, in any dimension, with an exact posterior all the same: a curve, a
 * surface and heavy tails, each so fine a mixture of Gaussians that nothing shows of it. Not in the
 * papers. */
#include "core/arena.h"
#include "problem/distributions.h"
#include "problem/rotation.h"

#include <math.h>

enum { CURVE_PIECES = 320, ROLL_ANGLES = 36, ROLL_HEIGHTS = 10, TAIL_SCALES = 24 };
static const double THICKNESS = 0.15; /* of curve and surface: standard deviation */

/* Creates `count` equal pieces of variance THICKNESS^2 about the points x[3]. Three directions, the same
 * for every study, place them in d dimensions; in fewer dimensions the last coordinates are left out. */
static Status pieces(Arena *memory, int d, int count, void (*point)(int k, double *x), Mixture *out) {
  enum { SPACE = 3 };
  const int shown = d < SPACE ? d : SPACE;
  double *direction;
  Rng rng = {.key = rng_key(0, RNG_ROTATION), .run = (uint32_t)d};
  SCRATCH_ARENA(scratch);
  TRY(mixture_create(memory, d, count, out));
  ALLOCATE(&scratch, direction, shown * d);
  rotation_draw(&rng, shown, d, direction);
  for (int k = 0; k < count; k++) {
    double x[SPACE], *mean = out->mean + (size_t)k * (size_t)d;
    point(k, x);
    out->weight[k] = 1.0 / count;
    for (int i = 0; i < d; i++) {
      for (int j = 0; j < shown; j++) mean[i] += direction[j * d + i] * x[j];
      out->covariance[((size_t)k * (size_t)d + (size_t)i) * (size_t)d + (size_t)i] = THICKNESS * THICKNESS;
    }
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
  return pieces(memory, d, CURVE_PIECES, spiral_point, out);
}

static Status roll(Arena *memory, int d, const char *file, Mixture *out) {
  (void)file;
  return pieces(memory, d, ROLL_ANGLES * ROLL_HEIGHTS, roll_point, out);
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
