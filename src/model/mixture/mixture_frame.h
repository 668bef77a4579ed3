/* Coordinates in which a mixture is fitted to samples of theta: theta = shift + map z, where map[d, k] is
 * lower triangular in the k <= d coordinates that vary.
 *
 * A coordinate of theta becomes one of z, of variance 1, so that floors on variances mean the same at any
 * scale. If less than a thousandth of its variance remains after regression on the coordinates before it, z
 * has the remainder in its place: samples near a line or a plane keep their small width. If nothing but
 * rounding remains (a constant, or an exact linear combination of others), z has no such coordinate, and
 * nothing is fitted to it: theta gets a width there that is 0 up to rounding, and still has a covariance with
 * an inverse. */
#pragma once

#include "model/mixture/mixture.h"

typedef struct {
  int d, k, n; /* coordinates of theta, of z; samples */
  bool plain; /* k = d, and map is diagonal */
  int *varying; /* [k]: the coordinate of theta that z_j belongs to, in rising order */
  double *shift, *map; /* [d], [d, d]: row i is theta_i in terms of z; columns from k on are zero */
  double *scale, *width; /* [d]: standard deviation; width of coordinates without z, 0 for the others */
  double *local; /* [k]: variance of z within narrow clusters, 1 unless much of z lies in such */
  double *z; /* [k, n] */
} MixtureFrame;

/* Finds the coordinates of the samples theta[d, n]. z has sample order[j] at position j (NULL: in their own
 * order). */
Status mixture_frame_create(Arena *memory, int d, int n, const double *theta, const int *order,
                            MixtureFrame *out);
/* Returns the width that a constant gets: relative to its value or, if that is 0, to `least`, the least
 * deviation of the coordinates that vary (infinity: none does). */
double mixture_frame_constant_width(double value, double least);
/* Returns the logarithm of the factor by which densities of theta exceed those of z, in the coordinates that
 * vary. */
double mixture_frame_log_factor(const MixtureFrame *frame);
/* Replaces a mixture of z by that of theta, prepared, in `memory`. */
Status mixture_frame_apply(Arena *memory, const MixtureFrame *frame, Mixture *mixture);
/* Creates *out, sentences that name the coordinates of theta that are constant under the mixture, or linear
 * combinations of others, up to rounding; NULL if there are none. */
Status mixture_frame_describe(Arena *memory, const Mixture *mixture, const char **out);
/* Creates *out, a sentence about the components of a fit that are as narrow as a fit can be, and may belong
 * to samples that are closer together; NULL if there are none. */
Status mixture_frame_describe_widened(Arena *memory, const Mixture *mixture, const char **out);
