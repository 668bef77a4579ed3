#include "sampler/exact/envelope.h"

#include "core/particles.h"
#include "core/special.h"

#include <string.h>

/* Cells are split at most DEEPEST times. If the support is thin, a cell in which no density was found is kept
 * for PATIENCE generations, with the bound of its parent. */
enum { BATCH = ENVELOPE_BATCH, CELLS = ENVELOPE_CELLS, DEEPEST = 30, PATIENCE = 4 };

/* A cell is split if its share of the mass of the bound is above SHARE and the bound exceeds its log mean by
 * more than SLACK. A call then needs about 2 proposals per draw (measured in tests/sampler/test_exact.c). */
static const double SHARE = 1.0 / 1024, SLACK = 1;

struct EnvelopeWork {
  /* A batch of n cells: */
  GridCell place[BATCH];
  int kept[BATCH]; /* the cells that join the list */
  double top[BATCH], mean[BATCH], point[2 * BATCH]; /* of the prior */
  double log_likelihood[BATCH], gradient[2 * BATCH];
  double scratch[10 * BATCH];
  /* Indices in the list of the cells to be split, and the cells themselves. */
  int loose[CELLS];
  EnvelopeCell split[CELLS];
};

Status envelope_create(Arena *memory, const Prior *prior, const Likelihood *likelihood, Envelope *out) {
  *out = (Envelope){0};
  TRY(history_density_create(memory, prior->d, 1, likelihood, &out->density));
  ALLOCATE(memory, out->cells, CELLS);
  ALLOCATE_ARRAYS(memory, CELLS, &out->log_mass, &out->slack, &out->cumulative, &out->weight);
  ALLOCATE(memory, out->work, 1);
  return prior_grid_create(memory, prior, &out->grid);
}

void envelope_log_likelihood(Envelope *self, int n, const double *theta, double *log_likelihood,
                             double *gradient) {
  history_density_set_points(&self->density, n);
  history_density(&self->density, theta, log_likelihood, gradient);
}

/* Returns an upper bound on how far l rises above l(w) within a cell. */
static double envelope_most_rise(const PriorGrid *grid, GridCell cell, const double *w,
                                 const double *gradient) {
  const uint32_t place[2] = {cell.column, cell.row};
  double sum = 0;
  for (int i = 0; i < 2; i++) {
    const double side = grid->size[i] * prior_grid_side(cell.level),
                 low = grid->low[i] + side * place[i] - w[i];
    const double at_low = gradient[i] * low, at_high = gradient[i] * (low + side);
    sum += at_low > at_high ? at_low : at_high;
  }
  return sum;
}

/* Appends to the list those of the first n cells of the batch that have a density or, where the prior is
 * thin, an ancestor with one at most PATIENCE levels up; returns how many are kept. A cell in which no
 * density was found takes the bound of its parent. There is no branch, because it is unpredictable which
 * cells are dropped. */
static int envelope_keep_cells(Envelope *self, const EnvelopeCell *parents, int n) {
  struct EnvelopeWork *work = self->work;
  int kept = 0;
  for (int c = 0; c < n; c++) {
    const EnvelopeCell *parent = &parents[c / PRIOR_GRID_QUARTERS];
    const GridCell place = work->place[c];
    const bool found = work->top[c] > -INFINITY;
    const int barren = found ? 0 : parent->barren + 1,
              patience = prior_grid_is_thin(&self->grid, place) * PATIENCE;
    const double top = found ? work->top[c] : parent->top;
    self->cells[self->count + kept] = (EnvelopeCell){place, barren, top};
    work->kept[kept] = c;
    kept += (barren <= patience) & (top > -INFINITY);
  }
  return kept;
}

/* Computes the bounds of the first n cells of the batch, the quarters of these parents, and adds those where
 * the prior has mass to the list. */
static void envelope_add_batch(Envelope *self, const EnvelopeCell *parents, int n) {
  struct EnvelopeWork *work = self->work;
  prior_grid_look_up(&self->grid, n, work->place, work->top, work->mean, work->point, work->scratch);
  envelope_log_likelihood(self, n, work->point, work->log_likelihood, work->gradient);
  for (int k = 0, kept = envelope_keep_cells(self, parents, n); k < kept; k++) {
    const int c = work->kept[k];
    const EnvelopeCell *cell = &self->cells[self->count];
    const double w[2] = {work->point[c], work->point[n + c]},
                 gradient[2] = {work->gradient[c], work->gradient[n + c]}, l = work->log_likelihood[c];
    const double most =
        fmin(l + envelope_most_rise(&self->grid, cell->place, w, gradient), self->density.most);
    self->slack[self->count] = cell->place.level < DEEPEST ? cell->top - work->mean[c] + most - l : 0;
    self->log_mass[self->count++] = cell->top + most - cell->place.level * (2 * M_LN2);
    if (work->mean[c] + l <= self->best_value) continue;
    self->best_value = work->mean[c] + l;
    memcpy(self->best, w, sizeof w);
  }
}

/* Moves the cells that are to be split from the list to the split list; returns how many: none if their
 * quarters would not fit. Computes weight[count] relative to the largest. */
SIMD_CLONES
static int envelope_take_loose_cells(Envelope *self) {
  struct EnvelopeWork *work = self->work;
  double total = 0;
  int loose = 0;
  const double top = particles_largest(self->count, self->log_mass);
  for (int c = 0; c < self->count; c++) self->weight[c] = special_exp(self->log_mass[c] - top);
  for (int c = 0; c < self->count; c++) total += self->weight[c];
  for (int c = 0; c < self->count; c++) {
    work->loose[loose] = c;
    loose += (self->slack[c] > SLACK) & (self->weight[c] > SHARE * total);
  }
  if (loose == 0 || self->count + 3 * loose > CELLS) return 0;
  int kept = work->loose[0];
  for (int s = 0; s < loose; s++) {
    const int end = s + 1 < loose ? work->loose[s + 1] : self->count;
    work->split[s] = self->cells[work->loose[s]];
    for (int c = work->loose[s] + 1; c < end; c++, kept++) {
      self->cells[kept] = self->cells[c];
      self->log_mass[kept] = self->log_mass[c];
      self->slack[kept] = self->slack[c];
    }
  }
  self->count = kept;
  return loose;
}

/* Builds the envelope: adds the quarters of the cells in the split list to the list, at first those of the
 * box, until no cell is to be split. */
bool envelope_build(Envelope *self, const History *history, int run, int64_t *fallbacks) {
  struct EnvelopeWork *work = self->work;
  const HistoryView view = history_points(history, run, BATCH);
  history_density_at(&self->density, &view, fallbacks);
  self->count = 0;
  self->best_value = -INFINITY;
  for (int i = 0; i < 2; i++) self->best[i] = self->grid.low[i] + 0.5 * self->grid.size[i];
  work->split[0] = (EnvelopeCell){.top = -INFINITY};
  for (int loose = 1; loose > 0; loose = envelope_take_loose_cells(self))
    for (int first = 0; first < loose; first += BATCH / PRIOR_GRID_QUARTERS) {
      const EnvelopeCell *parents = &work->split[first];
      const int left = loose - first,
                together = left < BATCH / PRIOR_GRID_QUARTERS ? left : BATCH / PRIOR_GRID_QUARTERS;
      int filled = 0;
      for (int s = 0; s < together; s++)
        for (uint32_t k = 0; k < PRIOR_GRID_QUARTERS; k++) {
          const GridCell whole = parents[s].place;
          work->place[filled++] =
              (GridCell){whole.level + 1, 2 * whole.column + k % 2, 2 * whole.row + k / 2};
        }
      envelope_add_batch(self, parents, filled);
    }
  double sum = 0;
  for (int c = 0; c < self->count; c++) {
    sum += self->weight[c];
    self->cumulative[c] = sum;
  }
  return sum > 0;
}

void envelope_draw(const Envelope *self, const double *uniform, double *x, double *log_bound) {
  int low = 0, high = self->count - 1;
  const double target = uniform[0] * self->cumulative[high];
  while (low < high) {
    int middle = (low + high) / 2;
    if (self->cumulative[middle] > target)
      high = middle;
    else
      low = middle + 1;
  }
  const GridCell cell = self->cells[low].place;
  const double side = prior_grid_side(cell.level);
  x[0] = self->grid.low[0] + self->grid.size[0] * (cell.column + uniform[1]) * side;
  x[1] = self->grid.low[1] + self->grid.size[1] * (cell.row + uniform[2]) * side;
  *log_bound = self->log_mass[low] + cell.level * (2 * M_LN2);
}
