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

/* Returns the entry of cell (column, row) of a level, from those of its four quarters; of equal tops it takes
 * the one closest to its centre, in units of finest cells. */
static PriorGridEntry prior_grid_join_quarters(int level, uint32_t column, uint32_t row,
                                               const PriorGridEntry *quarter) {
  const double width = 1 << (LEVELS - level);
  double largest = -INFINITY, sum = 0, nearest = INFINITY;
  PriorGridEntry whole = quarter[0];
  for (int k = 0; k < PRIOR_GRID_QUARTERS; k++) {
    const double x = (column + 0.5) * width - 0.5 - quarter[k].column,
                 y = (row + 0.5) * width - 0.5 - quarter[k].row, near = x * x + y * y;
    if (k == 0 || quarter[k].top > whole.top || (quarter[k].top == whole.top && near < nearest)) {
      whole = quarter[k];
      nearest = near;
    }
    largest = fmax(largest, quarter[k].mean);
  }
  if (largest > -INFINITY)
    for (int k = 0; k < PRIOR_GRID_QUARTERS; k++) sum += special_exp(quarter[k].mean - largest);
  whole.mean = sum > 0 ? largest + log(sum / PRIOR_GRID_QUARTERS) : -INFINITY;
  return whole;
}

Status prior_grid_create(Arena *memory, const Prior *prior, PriorGrid *out) {
  SCRATCH_ARENA(scratch);
  double *theta, *density, *value; /* [2, SAMPLES], [SAMPLES], [SIDE, SIDE] */
  *out = (PriorGrid){.prior = prior};
  ASSERT(prior->d == 2 && prior->ops->log_density);
  ALLOCATE(memory, out->table, prior_grid_level_start(LEVELS + 1));
  ALLOCATE(memory, out->thin, SIDE * SIDE);
  ALLOCATE(&scratch, theta, 2 * SAMPLES);
  ALLOCATE(&scratch, density, SAMPLES);
  ALLOCATE(&scratch, value, SIDE * SIDE);
  prior_grid_find_box(prior, 0.5, theta, out->low, out->size);
  prior_grid_fill(prior, SIDE, out->low, (double[]){out->size[0] / SIDE, out->size[1] / SIDE}, value);
  for (uint32_t row = 0; row < SIDE; row++)
    for (uint32_t column = 0; column < SIDE; column++) {
      const double own = value[row * SIDE + column];
      PriorGridEntry entry = {.top = own, .mean = own, .column = column, .row = row};
      /* `top` is the largest value of the cell and its eight neighbours, the cell itself on ties. */
      for (uint32_t y = row > 0 ? row - 1 : 0; y <= row + 1 && y < SIDE; y++)
        for (uint32_t x = column > 0 ? column - 1 : 0; x <= column + 1 && x < SIDE; x++)
          if (value[y * SIDE + x] > entry.top) {
            entry.top = value[y * SIDE + x];
            entry.column = x;
            entry.row = y;
          }
      out->table[prior_grid_cell_index(LEVELS, column, row)] = entry;
    }
  prior->ops->log_density(prior, SAMPLES, theta, density);
  for (int n = 0; n < SAMPLES; n++) { /* raise the bounds of finest cells to the density at samples inside */
    const uint32_t column = (uint32_t)((theta[n] - out->low[0]) / out->size[0] * SIDE),
                   row = (uint32_t)((theta[SAMPLES + n] - out->low[1]) / out->size[1] * SIDE);
    PriorGridEntry *entry = &out->table[prior_grid_cell_index(LEVELS, column, row)];
    if (density[n] <= entry->top) continue;
    if (density[n] > entry->top + 1) out->thin[row * SIDE + column] = true;
    entry->top = density[n];
    entry->column = column;
    entry->row = row;
  }
  for (int level = LEVELS - 1; level >= 0; level--)
    for (uint32_t row = 0; row < 1u << level; row++)
      for (uint32_t column = 0; column < 1u << level; column++)
        out->table[prior_grid_cell_index(level, column, row)] = prior_grid_join_quarters(
            level, column, row, &out->table[prior_grid_cell_index(level + 1, 2 * column, 2 * row)]);
  return STATUS_OK;
}

/* Locates the point (column, row) of a level in the plane; cells have their centres at the halves. */
static void prior_grid_locate_cell(const PriorGrid *grid, int level, double column, double row, double *x,
                                   double *y) {
  const double side = prior_grid_side(level);
  *x = grid->low[0] + grid->size[0] * column * side;
  *y = grid->low[1] + grid->size[1] * row * side;
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

/* Judges quarter k of a cell by the densities at its centre and corners; returns the index of the centre if
 * the prior has mass there, otherwise of the highest of these points. */
static int prior_grid_judge_quarter(int k, int stride, const double *density, double *top, double *mean) {
  double own[POINTS], sum = 0;
  int best = 0;
  for (int i = 0; i < POINTS; i++) {
    own[i] = density[prior_grid_quarter_point(k, i) * stride];
    if (own[i] > own[best]) best = i;
  }
  *top = own[best];
  *mean = -INFINITY;
  if (*top > -INFINITY) {
    for (int i = 0; i < POINTS; i++) sum += special_exp(own[i] - *top);
    *mean = *top + log(sum / POINTS);
  }
  return prior_grid_quarter_point(k, own[0] > -INFINITY ? 0 : best);
}

void prior_grid_look_up(const PriorGrid *grid, int n, const GridCell *cell, double *top, double *mean,
                        double *point, double *scratch) {
  enum { FOUR = PRIOR_GRID_QUARTERS };
  int families = 0; /* groups of four cells below the levels of the table */
  ASSERT(n % FOUR == 0);
  for (int c = 0; c < n; c += FOUR) families += cell[c].level > LEVELS;
  double *x = scratch, *y = x + FAMILY_POINTS * families, *density = y + FAMILY_POINTS * families;
  for (int c = 0, at = 0; c < n; c += FOUR) {
    if (cell[c].level > LEVELS) {
      prior_grid_locate_family(grid, cell[c], families, x + at, y + at);
      at++;
      continue;
    }
    const PriorGridEntry *entry =
        &grid->table[prior_grid_cell_index(cell[c].level, cell[c].column, cell[c].row)];
    for (int k = c; k < c + FOUR; k++, entry++) {
      top[k] = entry->top;
      mean[k] = entry->mean;
      prior_grid_locate_cell(grid, LEVELS, entry->column + 0.5, entry->row + 0.5, &point[k], &point[n + k]);
    }
  }
  if (families == 0) return;
  grid->prior->ops->log_density(grid->prior, FAMILY_POINTS * families, scratch, density);
  for (int c = 0, at = 0; c < n; c += FOUR)
    if (cell[c].level > LEVELS) {
      for (int k = 0; k < FOUR; k++) {
        const int place = prior_grid_judge_quarter(k, families, density + at, &top[c + k], &mean[c + k]);
        point[c + k] = x[place * families + at];
        point[n + c + k] = y[place * families + at];
      }
      at++;
    }
}
