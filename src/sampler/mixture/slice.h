/* Generalised elliptical slice sampling (Nishihara, Murray and Adams 2014, J. Mach. Learn. Res. 15), about
 * the Gaussian that approximates the target (Fagan, Bhandari and Cunningham 2016, Elliptical slice sampling
 * with expectation propagation): steps that leave the target as it is, and need neither a step size nor a
 * gradient.
 *
 * Let theta = L^-T (w + e), where N(L^-T w, (L L')^-1) is the Gaussian, and let the target be its density
 * times exp(r(theta)). A step draws the scale s^2 of a Student distribution of SLICE_FREEDOM degrees of
 * freedom given e, and a vector v ~ N(0, s^2 I); then e becomes a point of the ellipse e cos a + v sin a, at
 * an angle that is drawn from a bracket, which shrinks towards e until the density of the target over that of
 * the Student distribution is above a level drawn below its value at e. Far from the mean s is large, so that
 * the chain goes as far as the target does, however narrow the Gaussian is. */
#pragma once

#include "core/arena.h"
#include "core/rng.h"

#include <stdbool.h>

enum { SLICE_FREEDOM = 4 };

/* n <= CHUNK_LANES lanes, lane last. */
typedef struct {
  int d;
  double *e, *across, *trial, *point; /* [d, n]: e, v, a new e; its theta */
  double *normal, *uniform; /* [2 d + SLICE_FREEDOM, n], [3, n] */
  double *density, *level, *log_ratio; /* [n]: log of target over Student, at e; what it must exceed; r */
  double *angle, *low, *high; /* [n] */
  int *left, *tried; /* [n]: steps to go; points tried in this step */
} Slice;

/* Computes r(theta) up to a constant: theta[d, lanes], log_ratio[lanes]. */
typedef void SliceRatio(void *context, int lanes, const double *theta, double *log_ratio);

Status slice_create(Arena *memory, int d, Slice *out);
/* Moves theta[d, lanes] by this many steps, in lanes with moves[lanes], under the Gaussian with the factor
 * L[d, d, lanes] and whitened[d, lanes] = w. Lanes begin their next step without waiting for others. */
void slice_move(Slice *self, int lanes, const double *factor, const double *whitened, const bool *moves,
                int steps, RngLanes rng, SliceRatio *ratio, void *context, double *theta);
