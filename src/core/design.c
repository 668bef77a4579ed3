#include "core/design.h"

#include "core/status.h"

#include <stddef.h>

enum { DIMENSIONS = 32, DIGITS = 32, MOST_DEGREE = 7 };

/* ---- the sequence of Sobol */

/* The primitive polynomial x^s + a_1 x^(s - 1) + ... + a_(s - 1) x + 1 of each coordinate after the first,
 * with the bits a_1 ... a_(s - 1) as one number, and the first s odd numbers m, from Joe and Kuo's file
 * new-joe-kuo-6. */
static const struct {
  int degree, coefficients;
  uint32_t first[MOST_DEGREE];
} polynomials[DIMENSIONS - 1] = {{1, 0, {1}},
                                 {2, 1, {1, 3}},
                                 {3, 1, {1, 3, 1}},
                                 {3, 2, {1, 1, 1}},
                                 {4, 1, {1, 1, 3, 3}},
                                 {4, 4, {1, 3, 5, 13}},
                                 {5, 2, {1, 1, 5, 5, 17}},
                                 {5, 4, {1, 1, 5, 5, 5}},
                                 {5, 7, {1, 1, 7, 11, 19}},
                                 {5, 11, {1, 1, 5, 1, 1}},
                                 {5, 13, {1, 1, 1, 3, 11}},
                                 {5, 14, {1, 3, 5, 5, 31}},
                                 {6, 1, {1, 3, 3, 9, 7, 49}},
                                 {6, 13, {1, 1, 1, 15, 21, 21}},
                                 {6, 16, {1, 3, 1, 13, 27, 49}},
                                 {6, 19, {1, 1, 1, 15, 7, 5}},
                                 {6, 22, {1, 3, 1, 15, 13, 25}},
                                 {6, 25, {1, 1, 5, 5, 19, 61}},
                                 {7, 1, {1, 3, 7, 11, 23, 15, 103}},
                                 {7, 4, {1, 3, 7, 13, 13, 15, 69}},
                                 {7, 7, {1, 1, 3, 13, 7, 35, 63}},
                                 {7, 8, {1, 3, 5, 9, 1, 25, 53}},
                                 {7, 14, {1, 3, 1, 13, 9, 35, 107}},
                                 {7, 19, {1, 3, 1, 5, 27, 61, 31}},
                                 {7, 21, {1, 1, 5, 11, 19, 41, 61}},
                                 {7, 28, {1, 3, 5, 3, 3, 13, 69}},
                                 {7, 31, {1, 1, 7, 13, 1, 19, 1}},
                                 {7, 32, {1, 3, 7, 5, 13, 19, 59}},
                                 {7, 37, {1, 1, 3, 9, 25, 29, 41}},
                                 {7, 41, {1, 3, 5, 13, 23, 1, 55}},
                                 {7, 42, {1, 3, 7, 3, 13, 59, 17}}};

/* Computes the direction numbers of one coordinate, v[DIGITS], in units of 2^-32. */
static void design_directions(int dimension, uint32_t *v) {
  if (dimension == 0) {
    for (int k = 0; k < DIGITS; k++) v[k] = UINT32_C(1) << (DIGITS - 1 - k);
    return;
  }
  const int degree = polynomials[dimension - 1].degree;
  const int coefficients = polynomials[dimension - 1].coefficients;
  for (int k = 0; k < degree; k++) v[k] = polynomials[dimension - 1].first[k] << (DIGITS - 1 - k);
  for (int k = degree; k < DIGITS; k++) {
    v[k] = v[k - degree] ^ (v[k - degree] >> degree);
    for (int j = 1; j < degree; j++)
      if (coefficients >> (degree - 1 - j) & 1) v[k] ^= v[k - j];
  }
}

/* Adds the direction numbers of the binary digits of `index`. */
static uint32_t design_add_directions(const uint32_t *v, uint32_t index) {
  uint32_t digits = 0;
  for (int k = 0; index >> k; k++)
    if (index >> k & 1) digits ^= v[k];
  return digits;
}

uint32_t design_sobol_digits(int dimension, uint32_t index) {
  uint32_t v[DIGITS];
  ASSERT(dimension >= 0 && dimension < DIMENSIONS && index < INT32_MAX);
  design_directions(dimension, v);
  return design_add_directions(v, index);
}

/* Scrambles one coordinate: whether a digit is flipped depends at random on all digits before it. */
static uint32_t design_scramble(uint32_t digits, RngKey key, int dimension) {
  uint32_t scrambled = 0;
  for (int level = 0; level < DIGITS; level++) {
    const uint32_t before = level > 0 ? digits >> (DIGITS - level) : 0;
    Rng stream = {.key = key, .run = (uint32_t)dimension, .round = (uint32_t)level, .draw = before};
    const uint32_t digit = digits >> (DIGITS - 1 - level) & 1, flip = (uint32_t)rng_index(&stream, 2);
    scrambled = scrambled << 1 | (digit ^ flip);
  }
  return scrambled;
}

/* Computes coordinate `dimension` of n scrambled points, x[n], which are `stride` numbers apart. */
static void design_fill_coordinate(const Design *design, int dimension, int stride, double *x) {
  uint32_t v[DIGITS];
  design_directions(dimension, v);
  for (int i = 0; i < design->points; i++) {
    const uint32_t digits = design_add_directions(v, (uint32_t)i);
    x[(int64_t)i * stride] = (design_scramble(digits, design->key, dimension) + 0.5) / 4294967296.0;
  }
}

/* ---- designs */

static void design_fill_sobol(const Design *design, double *x) {
  const int d = design->dimensions;
  for (int j = 0; j < d; j++) design_fill_coordinate(design, j, d, x + j);
}

/* Computes A_i and B_i, the first and the last of each group of D + 2 points, and then those between. */
static void design_fill_saltelli(const Design *design, double *x) {
  const int d = design->dimensions, group = (d + 2) * d, last = (d + 1) * d;
  for (int j = 0; j < d; j++) {
    design_fill_coordinate(design, j, group, x + j);
    design_fill_coordinate(design, d + j, group, x + last + j);
  }
  for (int i = 0; i < design->points; i++, x += group)
    for (int k = 0; k < d; k++)
      for (int j = 0; j < d; j++) x[(k + 1) * d + j] = x[(j == k ? last : 0) + j];
}

/* Draws, for each coordinate, the order of the intervals and a place in each. */
static void design_fill_latin(const Design *design, double *x) {
  const int n = design->points, d = design->dimensions;
  for (int j = 0; j < d; j++) {
    for (int i = 0; i < n; i++) {
      const int interval = rng_permuted(n, design->key, (uint32_t)j, i);
      /* rng_permuted draws in rounds before 4. */
      Rng stream = {.key = design->key, .run = (uint32_t)j, .round = 4, .draw = (uint32_t)i};
      double place;
      rng_uniform(&stream, 1, &place);
      x[(int64_t)i * d + j] = (interval + place) / n;
    }
  }
}

static const struct {
  const char *name, *meaning;
  int dimensions; /* the most that it has */
  bool power; /* its number of points must be a power of two */
  void (*fill)(const Design *design, double *x);
} kinds[DESIGN_KINDS] = {
    [DESIGN_SALTELLI] = {"saltelli", "N (D + 2) settings for D keys, for first-order and total indices",
                         DIMENSIONS / 2, true, design_fill_saltelli},
    [DESIGN_SOBOL] = {"sobol", "N points of a scrambled Sobol sequence", DIMENSIONS, true, design_fill_sobol},
    [DESIGN_LATIN] = {"latin", "N points of a Latin hypercube", INT32_MAX, false, design_fill_latin}};

const char *design_kind_name(int index) { return index < DESIGN_KINDS ? kinds[index].name : NULL; }
const char *design_kind_meaning(int index) { return index < DESIGN_KINDS ? kinds[index].meaning : NULL; }
int design_most_dimensions(DesignKind kind) { return kinds[kind].dimensions; }
bool design_needs_power(DesignKind kind) { return kinds[kind].power; }

int64_t design_count(const Design *design) {
  const int64_t points = design->points;
  return design->kind == DESIGN_SALTELLI ? points * (design->dimensions + 2) : points;
}

void design_points(const Design *design, double *x) {
  ASSERT(design->dimensions > 0 && design->dimensions <= kinds[design->kind].dimensions);
  ASSERT(design->points > 0 && design->points <= DESIGN_MOST_POINTS);
  kinds[design->kind].fill(design, x);
}
