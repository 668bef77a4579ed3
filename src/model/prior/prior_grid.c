#include "model/prior/prior_grid.h"

#include "core/special.h"

enum { SIDE = PRIOR_GRID_SIDE, LEVELS = PRIOR_GRID_LEVELS, SAMPLES = PRIOR_GRID_SAMPLES, POINTS = 5 };

/* Returns the number of cells in all levels above `level`, which is where its own begin. */
static size_t prior_grid_level_start(int level) { return (((size_t)1 << 2 * level) - 1) / 3; }

/* Returns the index of cell (column, row) of a level; its quarters are four consecutive cells of the next
 * level. */
static size_t prior_grid_cell_index(int level, uint32_t column, uint32_t row) {
  const size_t whole = ((size_t)(row / 2) << level) / 2 + column / 2;
  return prior_grid_level_start(level) + PRIOR_GRID_QUARTERS * whole + 2 * (row % 2) + column % 2;
}

void prior_grid_find_box(const Prior *prior, double margin, double *theta, double low[2], double size[2]) {
  RngLanes rng = {.key = rng_key(0, RNG_PRIOR_BOX), .draws = SAMPLES, .lanes = SAMPLES};
  prior->ops->sample(prior, &rng, theta);
  for (int i = 0; i < 2; i++) {
    double least = theta[i * SAMPLES], most = least;
    for (int n = 1; n < SAMPLES; n++) {
      least = fmin(least, theta[i * SAMPLES + n]);
      most = fmax(most, theta[i * SAMPLES + n]);
    }
    low[i] = least - margin * (most - least);
    size[i] = (1 + 2 * margin) * (most - least);
  }
}

void prior_grid_fill(const Prior *prior, int side, const double low[2], const double step[2], double *value) {
  double theta[2 * SIDE];
  for (int i = 0; i < side; i++) theta[i] = low[0] + step[0] * (i + 0.5);
  for (int row = 0; row < side; row++) {
    for (int i = 0; i < side; i++) theta[side + i] = low[1] + step[1] * (row + 0.5);
    prior->ops->log_density(prior, side, theta, value + (size_t)row * (size_t)side);
  }
}

/* Returns the entry of a finest cell: `top` is the largest value of the cell and its eight neighbours, the
 * cell itself on ties. */
static PriorGridEntry prior_grid_widen_entry(const double *value, uint32_t column, uint32_t row) {
  const double own = value[row * SIDE + column];
  PriorGridEntry entry = {.top = own, .mean = own, .column = column, .row = row};
  for (uint32_t y = row > 0 ? row - 1 : 0; y <= row + 1 && y < SIDE; y++)
    for (uint32_t x = column > 0 ? column - 1 : 0; x <= column + 1 && x < SIDE; x++)
      if (value[y * SIDE + x] > entry.top) entry.top = value[y * SIDE + x], entry.column = x, entry.row = y;
  return entry;
}

/* Raises the bounds of the finest cells to the density at samples theta[2, SAMPLES] inside them.
 * density[SAMPLES] is scratch. */
static void prior_grid_raise_to_samples(PriorGrid *grid, const double *theta, double *density) {
  grid->prior->ops->log_density(grid->prior, SAMPLES, theta, density);
  for (int n = 0; n < SAMPLES; n++) {
    uint32_t column = (uint32_t)((theta[n] - grid->low[0]) / grid->size[0] * SIDE),
             row = (uint32_t)((theta[SAMPLES + n] - grid->low[1]) / grid->size[1] * SIDE);
    PriorGridEntry *entry = &grid->table[prior_grid_cell_index(LEVELS, column, row)];
    if (density[n] <= entry->top) continue;
    if (density[n] > entry->top + 1) grid->thin[row * SIDE + column] = true;
    entry->top = density[n], entry->column = column, entry->row = row;
  }
}

/* Returns the squared distance between the peak of an entry and the centre of cell (column, row) of a level,
 * in units of finest cells. */
static double prior_grid_peak_distance(int level, uint32_t column, uint32_t row,
                                       const PriorGridEntry *entry) {
  double width = 1 << (LEVELS - level);
  double x = (column + 0.5) * width - 0.5 - entry->column, y = (row + 0.5) * width - 0.5 - entry->row;
  return x * x + y * y;
}

/* Returns the entry of cell (column, row) of a level, from those of its four quarters. */
static PriorGridEntry prior_grid_join_quarters(int level, uint32_t column, uint32_t row,
                                               const PriorGridEntry *quarter) {
  double largest = -INFINITY, sum = 0, nearest = INFINITY;
  PriorGridEntry whole = quarter[0];
  for (int k = 0; k < PRIOR_GRID_QUARTERS; k++) {
    const double near = prior_grid_peak_distance(level, column, row, &quarter[k]);
    if (k == 0 || quarter[k].top > whole.top || (quarter[k].top == whole.top && near < nearest)) {
      whole = quarter[k];
      nearest = near;
    }
    largest = fmax(largest, quarter[k].mean);
  }
  for (int k = 0; k < PRIOR_GRID_QUARTERS && largest > -INFINITY; k++)
    sum += special_exp(quarter[k].mean - largest);
  whole.mean = sum > 0 ? largest + log(sum / PRIOR_GRID_QUARTERS) : -INFINITY;
  return whole;
}

/* Builds the table. Scratch: theta[2, SAMPLES], density[SAMPLES], value[SIDE, SIDE]. */
static void prior_grid_build(PriorGrid *grid, double *theta, double *density, double *value) {
  prior_grid_find_box(grid->prior, 0.5, theta, grid->low, grid->size);
  prior_grid_fill(grid->prior, SIDE, grid->low, (double[]){grid->size[0] / SIDE, grid->size[1] / SIDE},
                  value);
  for (uint32_t row = 0; row < SIDE; row++)
    for (uint32_t column = 0; column < SIDE; column++)
      grid->table[prior_grid_cell_index(LEVELS, column, row)] = prior_grid_widen_entry(value, column, row);
  prior_grid_raise_to_samples(grid, theta, density);
  for (int level = LEVELS - 1; level >= 0; level--)
    for (uint32_t row = 0; row < 1u << level; row++)
      for (uint32_t column = 0; column < 1u << level; column++)
        grid->table[prior_grid_cell_index(level, column, row)] = prior_grid_join_quarters(
            level, column, row, &grid->table[prior_grid_cell_index(level + 1, 2 * column, 2 * row)]);
}

Status prior_grid_create(Arena *memory, const Prior *prior, PriorGrid *out) {
  SCRATCH_ARENA(scratch);
  *out = (PriorGrid){.prior = prior};
  ASSERT(prior->d == 2 && prior->ops->log_density);
  ALLOCATE(memory, out->table, prior_grid_level_start(LEVELS + 1));
  ALLOCATE(memory, out->thin, SIDE * SIDE);
  double *samples, *value; /* [2, SAMPLES], and their densities; [SIDE, SIDE] */
  ALLOCATE(&scratch, samples, 3 * SAMPLES);
  ALLOCATE(&scratch, value, SIDE * SIDE);
  prior_grid_build(out, samples, samples + 2 * SAMPLES, value);
  return STATUS_OK;
}

/* Locates the point (column, row) of a level in the plane; cells have their centres at the halves. */
static void prior_grid_locate_cell(const PriorGrid *grid, int level, double column, double row, double *x,
                                   double *y) {
  const double side = prior_grid_side(level);
  *x = grid->low[0] + grid->size[0] * column * side;
  *y = grid->low[1] + grid->size[1] * row * side;
}

/* Looks up the four quarters of one cell, given the first of them, in the table. */
static void prior_grid_look_up_family(const PriorGrid *grid, GridCell first, double *top, double *mean,
                                      double *x, double *y) {
  const PriorGridEntry *entry = &grid->table[prior_grid_cell_index(first.level, first.column, first.row)];
  for (int k = 0; k < PRIOR_GRID_QUARTERS; k++) {
    top[k] = entry[k].top;
    mean[k] = entry[k].mean;
    prior_grid_locate_cell(grid, LEVELS, entry[k].column + 0.5, entry[k].row + 0.5, &x[k], &y[k]);
  }
}

/* Points of the quarters of a cell: 3 x 3 corners, row by row, and 4 centres. */
enum { CORNERS = 3, FAMILY_POINTS = CORNERS * CORNERS + PRIOR_GRID_QUARTERS };

/* Returns the index of the centre of quarter k among these points (i = 0), or of one of its corners (i = 1 ..
 * 4). */
static int prior_grid_quarter_point(int k, int i) {
  return i == 0 ? CORNERS * CORNERS + k : (k / 2 + (i - 1) / 2) * CORNERS + k % 2 + (i - 1) % 2;
}

/* Locates all of these points, `stride` apart, given the first quarter. */
static void prior_grid_locate_family(const PriorGrid *grid, GridCell first, int stride, double *x,
                                     double *y) {
  for (int p = 0; p < FAMILY_POINTS; p++) {
    const int k = p - CORNERS * CORNERS;
    const double column = k < 0 ? p % CORNERS : k % 2 + 0.5, row = k < 0 ? p / CORNERS : k / 2 + 0.5;
    prior_grid_locate_cell(grid, first.level, first.column + column, first.row + row, &x[p * stride],
                           &y[p * stride]);
  }
}

/* Judges a cell by the densities at its centre and corners; `place` is the centre if the prior has mass
 * there, otherwise the highest of the points. */
static void prior_grid_judge_cell(const double *density, double *top, double *mean, int *place) {
  double sum = 0;
  int best = 0;
  for (int k = 1; k < POINTS; k++)
    if (density[k] > density[best]) best = k;
  *top = density[best];
  *place = density[0] > -INFINITY ? 0 : best;
  for (int k = 0; k<POINTS && * top> - INFINITY; k++) sum += special_exp(density[k] - *top);
  *mean = *top > -INFINITY ? *top + log(sum / POINTS) : -INFINITY;
}

/* Judges the four quarters of one cell by the densities at their points. */
static void prior_grid_judge_family(int stride, const double *x, const double *y, const double *density,
                                    double *top, double *mean, double *point_x, double *point_y) {
  for (int k = 0, place; k < PRIOR_GRID_QUARTERS; k++) {
    double own[POINTS];
    for (int i = 0; i < POINTS; i++) own[i] = density[prior_grid_quarter_point(k, i) * stride];
    prior_grid_judge_cell(own, &top[k], &mean[k], &place);
    point_x[k] = x[prior_grid_quarter_point(k, place) * stride];
    point_y[k] = y[prior_grid_quarter_point(k, place) * stride];
  }
}

void prior_grid_look_up(const PriorGrid *grid, int n, const GridCell *cell, double *top, double *mean,
                        double *point, double *scratch) {
  enum { FOUR = PRIOR_GRID_QUARTERS };
  int families = 0; /* groups of four cells below the levels of the table */
  ASSERT(n % FOUR == 0);
  for (int c = 0; c < n; c += FOUR) families += cell[c].level > LEVELS;
  double *x = scratch, *y = x + FAMILY_POINTS * families, *density = y + FAMILY_POINTS * families;
  for (int c = 0, at = 0; c < n; c += FOUR)
    if (cell[c].level <= LEVELS)
      prior_grid_look_up_family(grid, cell[c], &top[c], &mean[c], &point[c], &point[n + c]);
    else
      prior_grid_locate_family(grid, cell[c], families, x + at, y + at), at++;
  if (families == 0) return;
  grid->prior->ops->log_density(grid->prior, FAMILY_POINTS * families, scratch, density);
  for (int c = 0, at = 0; c < n; c += FOUR)
    if (cell[c].level > LEVELS) {
      prior_grid_judge_family(families, x + at, y + at, density + at, &top[c], &mean[c], &point[c],
                              &point[n + c]);
      at++;
    }
}
