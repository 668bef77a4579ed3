/* An upper bound of the posterior density in the plane, constant on the cells of a quadtree, that draws can
 * be made from: the proposal of the exact sampler's rejection (von Neumann 1951).
 *
 * Let l be the log likelihood of one run. It is concave in theta, so with a point w, the value l(w) and the
 * gradient g there, every x of a cell has l(x) <= l(w) + sum_i max(g_i (low_i - w_i), g_i (high_i - w_i)). To
 * this the bound of the log prior density over the cell (prior_grid.h) is added. Beginning with the whole
 * box, cells that hold a visible share of the bound's mass are split until the bound fits; no cell is ever
 * dropped, unless the prior was zero wherever it was looked up in it. So where modes lie, how many there are
 * and how narrow they are does not matter: a bound that is far too high only costs splits. */
#pragma once

#include "model/history/history.h"
#include "sampler/exact/prior_grid.h"

/* Cells whose prior and likelihood are looked up together; most cells of an envelope. When they run out the
 * bound stays coarser: still a bound, with more rejections. */
enum { ENVELOPE_BATCH = 256, ENVELOPE_CELLS = 1 << 15 };

/* What one call wants to know of points theta[2, n] of one run. */
typedef struct {
  const History *history;
  int run;
  double precision[4], vector[2]; /* evidence of a conjugate likelihood */
} EnvelopeData;

EnvelopeData envelope_data_of_run(const History *history, int run);
/* Computes log_likelihood[n] at theta[2, n], up to a constant of the run; gradient[2, n], or NULL. n <= 5
 * ENVELOPE_BATCH. */
void envelope_log_likelihood(const EnvelopeData *data, int n, const double *theta, double *log_likelihood,
                             double *gradient);

typedef struct {
  GridCell place;
  int barren; /* generations since the prior's density was found above zero */
  double top; /* bound of the log prior density */
} EnvelopeCell;

typedef struct {
  PriorGrid grid;
  int count;
  EnvelopeCell *cells; /* [count] */
  double *log_mass; /* [count]: bound times area, the box being 1 */
  double *slack; /* [count]: by how much the bound exceeds the log mean, roughly; 0 of the smallest cells */
  double *cumulative; /* [count]: sums of the masses, after envelope_build */
  double best_value, best[2]; /* the highest posterior density met, and where */
  double *weight; /* [ENVELOPE_CELLS] */
  struct EnvelopeWork *work;
} Envelope;

Status envelope_create(Arena *memory, const Prior *prior, Envelope *out);
/* Fits to the data of a run. False when no cell is left, so that nothing can be drawn. */
bool envelope_build(Envelope *envelope, const EnvelopeData *data);
/* Draws a point x[2] of density proportional to the bound, and the log of the bound there, from three
 * uniforms. */
void envelope_draw(const Envelope *self, const double *uniform, double *x, double *log_bound);
