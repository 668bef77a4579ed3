/* The product of two Gaussians at a stage of LaplaceDPS with a conjugate likelihood (laplace_dps.h). Compiled
 * once for each instruction level (core/simd.h). */
#pragma once

#include "sampler/diffusion/laplace_dps.h"

/* Returns how many lanes the arrays of the evidence need memory for: whole vectors of any width. */
int laplace_product_lanes(int lanes);

/* Prepares the evidence, of which basis, eigenvalue and rotated are known: overwrites `precision` with Q, one
 * vector of lanes after the other, since in the layout of the chunk its entries are so far apart that they
 * share few sets of a cache. */
void laplace_product_begin(LaplaceEvidence *evidence);

/* Draws s[d, n], with the standard normals z[d, n], from the product of the conditional prior and the
 * diffused evidence, of precision Lambda / alpha_bar and vector b / sqrt(alpha_bar): Equations 7 and 8 of the
 * DiffTS paper. Without evidence the draw is that of the conditional prior, up to rounding. s may alias mu.
 */
void laplace_product_draw(const LaplaceEvidence *evidence, const LaplaceStage *stage, const double *z,
                          double *s);
