/* The log density of a prior in the plane on a grid, with an upper bound and the mean in every cell of the
 * quadtree over it: this tells the exact sampler where the prior has mass, without a visit to all cells.
 *
 * Level l has 2^l x 2^l cells over the box, cell (column, row). The finest level holds the density at the
 * centres of its cells, and at samples of the prior that fall into them. So a feature of the prior is not
 * missed if it is wider than a cell, box / 512, or holds more than about 1e-4 of the mass. */
#pragma once

#include "model/prior/prior.h"

#include <stdint.h>

enum { PRIOR_GRID_LEVELS = 9, PRIOR_GRID_SIDE = 1 << PRIOR_GRID_LEVELS, PRIOR_GRID_QUARTERS = 4 };

typedef struct {
  int level;
  uint32_t column, row;
} GridCell;

/* Returns 2^-level, the side of a cell; faster than ldexp. */
static inline double prior_grid_side(int level) { return 1.0 / (1u << level); }

typedef struct {
  /* An upper bound on the log density: the largest value of all finest cells inside and next to it, and of
   * samples inside. */
  double top;
  double mean; /* log of the mean density; at the finest level the log density at the centre */
  uint32_t column, row; /* finest cell of `top` or next to it; on ties the closest to the centre */
} PriorGridEntry;

typedef struct {
  const Prior *prior; /* not owned; d = 2, with a log density */
  double low[2], size[2]; /* the box: lower corner and sides */
  PriorGridEntry *table; /* [cells of all levels], level by level; the quarters of a cell are adjacent */
  /* [SIDE, SIDE]: a sample had a far higher density than the centres of the finest cells around it, so the
   * support may be thinner than a cell. */
  bool *thin;
} PriorGrid;

enum { PRIOR_GRID_SAMPLES = 1 << 15 };

/* Draws theta[2, PRIOR_GRID_SAMPLES] from a prior in the plane, from separate streams, always the same, and
 * finds the box that spans them and `margin` times their range more on each side. */
void prior_grid_find_box(const Prior *prior, double margin, double *theta, double low[2], double size[2]);
/* Computes value[side, side], the log density at the centres of cells of size step[2], x fastest; side <=
 * PRIOR_GRID_SIDE. */
void prior_grid_fill(const Prior *prior, int side, const double low[2], const double step[2], double *value);

/* Creates the grid. Its box has half the samples' range more on each side: for a Gaussian about 8 standard
 * deviations. Mass outside of it is neglected. */
Status prior_grid_create(Arena *memory, const Prior *prior, PriorGrid *out);

/* Looks up `top` and `mean` of cell[n], and point[2, n], a place in the cell or next to it where the density
 * is high. A `top` of -infinity means that no density was found. The cells come in fours, the quarters of one
 * cell, row by row. Below the finest level both are computed from the density at the centre and the four
 * corners of the cell, 13 points for 4 cells; scratch[10, n]. */
void prior_grid_look_up(const PriorGrid *grid, int n, const GridCell *cell, double *top, double *mean,
                        double *point, double *scratch);

/* Returns whether the cell, of any level, lies in a thin finest cell. */
static inline bool prior_grid_is_thin(const PriorGrid *grid, GridCell cell) {
  const int below = cell.level - PRIOR_GRID_LEVELS;
  return below >= 0 && grid->thin[(cell.row >> below) * PRIOR_GRID_SIDE + (cell.column >> below)];
}
