/* An upper bound on the posterior density in the plane, constant on the cells of a quadtree and easy to draw
 * from: the proposal density of the exact sampler's rejection (von Neumann 1951).
 *
 * Let l be the log likelihood of one run. It is concave in theta, so for a point w with value l(w) and
 * gradient g, every x in a cell has l(x) <= l(w) + sum_i max(g_i (low_i - w_i), g_i (high_i - w_i)). The
 * bound on the log prior density over the cell (prior_grid.h) is added to this. Starting with the whole box,
 * cells that hold a noticeable share of the bound's mass are split until the bound fits; no cell is ever
 * dropped, unless the prior was zero wherever it was looked up in it. So it does not matter where the modes
 * are, how many there are and how narrow they are: a bound that is far too high only costs splits. */
#pragma once

#include "model/history/history_density.h"
#include "model/prior/prior_grid.h"

/* Cells whose prior and likelihood are looked up together; the largest number of cells in an envelope. When
 * they run out the bound stays coarser: still a bound, but with more rejections. */
enum { ENVELOPE_BATCH = 256, ENVELOPE_CELLS = 1 << 15 };

typedef struct {
  GridCell place;
  int barren; /* generations since the prior's density was found above zero */
  double top; /* bound on the log prior density */
} EnvelopeCell;

typedef struct {
  PriorGrid grid;
  HistoryDensity density; /* of the run that it was built for */
  int count;
  EnvelopeCell *cells; /* [count] */
  double *log_mass; /* [count]: bound times area, where the box has area 1 */
  double *slack; /* [count]: roughly how much the bound exceeds the log mean; 0 for the smallest cells */
  double *cumulative; /* [count]: cumulative masses, after envelope_build */
  double best_value, best[2]; /* the highest log posterior density that was seen, and where */
  double *weight; /* [ENVELOPE_CELLS] */
  struct EnvelopeWork *work;
} Envelope;

Status envelope_create(Arena *memory, const Prior *prior, const Likelihood *likelihood, Envelope *out);
/* Fits the envelope to the data of a run. Returns false if no cell is left, so that nothing can be drawn.
 * Numerical fallbacks are added to fallbacks[B]. */
bool envelope_build(Envelope *self, const History *history, int run, int64_t *fallbacks);
/* Computes log_likelihood[n] of the run at theta[2, n], up to a constant, and gradient[2, n] unless it is
 * NULL. */
void envelope_log_likelihood(Envelope *self, int n, const double *theta, double *log_likelihood,
                             double *gradient);
/* Draws a point x[2] with density proportional to the bound, from three uniforms, and computes the log of the
 * bound there. */
void envelope_draw(const Envelope *self, const double *uniform, double *x, double *log_bound);
