#include "study/study_planar_mean.h"

#include "core/special.h"
#include "model/prior/prior_grid.h"

enum {
  SIDE = PRIOR_GRID_SIDE,
  REACH = 7, /* a sum covers this many standard deviations of the evidence to each side */
  FINE = 4, /* cells per standard deviation around a narrow posterior */
  LOCAL = 2 * REACH * FINE
};

/* Cells from .. to - 1 of one axis: their centres are low + step (i + 0.5). */
typedef struct {
  double low, step;
  int from, to;
} Axis;

/* Fills density[side, side] with the prior's density at the centres of cells, divided by the largest value
 * there. */
static void study_planar_mean_fill_density(const Prior *prior, int side, const double low[2],
                                           const double step[2], double *density) {
  double top = -INFINITY;
  prior_grid_fill(prior, side, low, step, density);
  for (int k = 0; k < side * side; k++) top = fmax(top, density[k]);
  for (int k = 0; k < side * side; k++)
    density[k] = density[k] > -INFINITY ? special_exp(density[k] - top) : 0;
}

Status study_planar_mean_create(Arena *memory, const Prior *prior, PlanarMean *out) {
  SCRATCH_ARENA(scratch);
  double *theta;
  *out = (PlanarMean){.prior = prior};
  ASSERT(prior->d == 2 && prior->ops->log_density);
  ALLOCATE(&scratch, theta, 2 * PRIOR_GRID_SAMPLES);
  ALLOCATE(memory, out->density, SIDE * SIDE);
  ALLOCATE(memory, out->local, LOCAL * LOCAL);
  prior_grid_find_box(prior, 1.0 / 16, theta, out->low, out->step);
  for (int i = 0; i < 2; i++) out->step[i] /= SIDE;
  study_planar_mean_fill_density(prior, SIDE, out->low, out->step, out->density);
  return STATUS_OK;
}

/* Computes the centres relative to `middle`, away[to - from], and weight[to - from] = exp(-precision away^2 /
 * 2). */
static void study_planar_mean_weigh_axis(const Axis *axis, double precision, double middle, double *away,
                                         double *weight) {
  for (int i = axis->from; i < axis->to; i++) {
    const double x = axis->low + axis->step * (i + 0.5) - middle;
    away[i - axis->from] = x, weight[i - axis->from] = special_exp(-0.5 * precision * x * x);
  }
}

/* Computes the mean over the cells of x and y; `middle` if there is no mass. density[0] is the density at the
 * cell (from, from), and density[stride] is one row further. */
static void study_planar_mean_sum_cells(const Axis *x, const Axis *y, double precision,
                                        const double middle[2], const double *density, int stride,
                                        double mean[2]) {
  double away[2][SIDE], weight[2][SIDE], total = 0, sum[2] = {0};
  study_planar_mean_weigh_axis(x, precision, middle[0], away[0], weight[0]);
  study_planar_mean_weigh_axis(y, precision, middle[1], away[1], weight[1]);
  for (int j = 0; j < y->to - y->from; j++) {
    const double *row = density + j * stride;
    double mass = 0, first = 0;
    for (int i = 0; i < x->to - x->from; i++) {
      const double share = row[i] * weight[0][i];
      mass += share, first += share * away[0][i];
    }
    total += weight[1][j] * mass;
    sum[0] += weight[1][j] * first, sum[1] += weight[1][j] * away[1][j] * mass;
  }
  for (int i = 0; i < 2; i++) mean[i] = middle[i] + (total > 0 ? sum[i] / total : 0);
}

double study_planar_mean_cost(double variance, double n) {
  /* Measured with the priors of Figures 2 and 4 (boxes 6 to 8 wide): a sum goes over the whole table up to
   * call 4 variance, then over fewer cells, and from call 330 variance on it evaluates the density itself. */
  const double whole = fmin(n, 4 * variance), last = fmin(n, 330 * variance);
  return (26.0 * SIDE * SIDE * whole * (1 + log(last / whole)) + 1.3e6 * (n - last)) / n;
}

void study_planar_mean(PlanarMean *self, double precision, const double vector[2], double mean[2]) {
  const double reach = precision > 0 ? REACH / sqrt(precision) : INFINITY;
  double middle[2];
  Axis axis[2];
  for (int i = 0; i < 2; i++) middle[i] = precision > 0 ? vector[i] / precision : 0;
  if (reach < REACH * FINE * fmax(self->step[0], self->step[1])) {
    const double low[2] = {middle[0] - reach, middle[1] - reach}, step = 2 * reach / LOCAL;
    for (int i = 0; i < 2; i++) axis[i] = (Axis){low[i], step, 0, LOCAL};
    study_planar_mean_fill_density(self->prior, LOCAL, low, (double[]){step, step}, self->local);
    study_planar_mean_sum_cells(&axis[0], &axis[1], precision, middle, self->local, LOCAL, mean);
    return;
  }
  for (int i = 0; i < 2; i++) {
    const double from = (middle[i] - reach - self->low[i]) / self->step[i],
                 to = (middle[i] + reach - self->low[i]) / self->step[i];
    axis[i] =
        (Axis){self->low[i], self->step[i], (int)fmin(fmax(from, 0), SIDE), (int)fmin(fmax(to + 1, 0), SIDE)};
  }
  study_planar_mean_sum_cells(&axis[0], &axis[1], precision, middle,
                              self->density + axis[1].from * SIDE + axis[0].from, SIDE, mean);
}
