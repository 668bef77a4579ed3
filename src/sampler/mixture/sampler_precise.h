/* Mixture posteriors for evidence that is so precise that prior and evidence cannot be added in doubles: in
 * square-root form (model/mixture/mixture_evidence.h), lane by lane. In the arrays of
 * mixture_posterior.c it overwrites the parts of a view that need it; the others stay as they are to the last
 * bit. */
#pragma once

#include "model/history/history.h"
#include "model/mixture/mixture.h"

typedef struct Precise Precise;

/* Creates the workspace for views of at most `parts` lanes; the prior must outlive it. */
Status sampler_precise_create(Arena *memory, const Mixture *prior, int parts, Precise **out);
/* Finds the parts of a view of a conjugate history that need it; returns whether there are any. */
bool sampler_precise_find(Precise *self, const HistoryView *view);
/* Returns whether part r is one of them. */
bool sampler_precise_takes(const Precise *self, int r);
/* Computes their log_weight[parts] of component c, as mixture_evidence_weigh does. Without `rewards` it is
 * smaller by half the sum of y^2 / sigma^2, which all components share and next to which they would have no
 * digits. */
void sampler_precise_weigh(Precise *self, int c, bool rewards, double *log_weight);
/* Computes their mean[d, parts] and covariance[d, d, parts] under component c. */
void sampler_precise_component_moments(Precise *self, int c, double *mean, double *covariance);
/* Draws lane n of theta[d, lanes] from component c of part r, using lane n of the normals z[d, lanes]. */
void sampler_precise_draw(Precise *self, int r, int c, int lanes, int n, const double *z, double *theta);

/* Computes by how much the evidence of a run outweighs what it leaves to the prior in some direction, the
 * largest over all components; 1 if it clearly does not. Allocates and frees. */
Status sampler_precise_hidden(const Mixture *prior, const History *history, int run, double *out);
