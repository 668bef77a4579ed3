/* The posterior mean of a density in the plane after observations of the same precision in all directions, by
 * a sum over a grid. */
#pragma once

#include "model/prior/prior.h"

typedef struct {
  const Prior *prior; /* not owned; d = 2, with a log density */
  double low[2], step[2]; /* the box that holds samples of the prior: lower corner, sides of a cell */
  double *density; /* [SIDE, SIDE], at the centres of cells, over the largest value, x fastest */
  double *local; /* the same, around a narrow posterior */
} PlanarMean;

Status study_planar_mean_create(Arena *memory, const Prior *prior, PlanarMean *out);
/* Returns the cost of a call, in operations as for a sampler (sampler.h): the mean over calls k = 1 to n,
 * with precision k / variance. */
double study_planar_mean_cost(double variance, double n);
/* Computes mean[2] of the prior times exp(vector' theta - precision |theta|^2 / 2). */
void study_planar_mean(PlanarMean *self, double precision, const double vector[2], double mean[2]);
