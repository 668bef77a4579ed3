/* Designs: points that fill the unit cube evenly, for studies that vary many keys at once.
 *
 * sobol: the sequence of Sobol (1967) with the direction numbers of Joe and Kuo (2008), each coordinate with
 * a nested uniform scramble (Owen 1995). A design of more points begins with those of one of fewer. latin: a
 * Latin hypercube (McKay, Beckman and Conover 1979): every coordinate has one point in each of n equal
 * intervals. saltelli: points for variance-based indices (Saltelli et al. 2010). Point i of a Sobol sequence
 * in 2 D dimensions is cut into A_i and B_i, which give D + 2 points: A_i; for each coordinate j, A_i with
 * coordinate j of B_i; B_i. */
#pragma once

#include "core/rng.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum { DESIGN_SALTELLI, DESIGN_SOBOL, DESIGN_LATIN, DESIGN_KINDS } DesignKind;
enum { DESIGN_MOST_POINTS = 65536 };

typedef struct {
  DesignKind kind;
  int points; /* n: base points of saltelli */
  int dimensions; /* D */
  RngKey key;
} Design;

/* Returns the name of a kind, and what it means; NULL after the last. */
const char *design_kind_name(int index);
const char *design_kind_meaning(int index);
/* Returns the largest D of a kind. */
int design_most_dimensions(DesignKind kind);
/* Returns whether n must be a power of two. */
bool design_needs_power(DesignKind kind);

/* Returns the number of points of a design, n or n (D + 2). */
int64_t design_count(const Design *design);
/* Computes all points in (0, 1): x[design_count, D]. */
void design_points(const Design *design, double *x);

/* Returns coordinate `dimension` < 32 of point `index` of the sequence of Sobol before it is scrambled, in
 * units of 2^-32. */
uint32_t design_sobol_digits(int dimension, uint32_t index);
