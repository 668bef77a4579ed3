#include "study/planar_mean.h"

#include "core/special.h"

enum {
  SIDE = PLANAR_SIDE,
  SAMPLES = 1 << 15,
  REACH = 7, /* a sum covers this many standard deviations of the evidence to each side */
  FINE = 4, /* cells per standard deviation around a narrow posterior */
  LOCAL = 2 * REACH * FINE
};

/* Cells from .. to - 1 of one axis: their centres are low + step (i + 0.5). */
typedef struct {
  double low, step;
  int from, to;
} Axis;

/* Finds the box that holds SAMPLES samples of the prior, with a margin of a sixteenth on each side; theta[2,
 * SAMPLES] is scratch. */
static void planar_mean_find_box(PlanarMean *self, double *theta) {
  RngLanes rng = {.key = rng_key(0, RNG_PRIOR_BOX), .draws = SAMPLES, .lanes = SAMPLES};
  self->prior->ops->sample(self->prior, &rng, theta);
  for (int i = 0; i < 2; i++) {
    double low = theta[i * SAMPLES], high = low;
    for (int n = 1; n < SAMPLES; n++) {
      low = fmin(low, theta[i * SAMPLES + n]);
      high = fmax(high, theta[i * SAMPLES + n]);
    }
    self->low[i] = low - (high - low) / 16;
    self->step[i] = 1.125 * (high - low) / SIDE;
  }
}

/* Fills density[rows, columns] with the prior's density, divided by its largest value there. */
static void study_planar_fill_density(const Prior *prior, const Axis *x, const Axis *y, double *density) {
  const int columns = x->to - x->from, rows = y->to - y->from;
  double theta[2 * SIDE], top = -INFINITY;
  for (int i = 0; i < columns; i++) theta[i] = x->low + x->step * (x->from + i + 0.5);
  for (int j = 0; j < rows; j++) {
    for (int i = 0; i < columns; i++) theta[columns + i] = y->low + y->step * (y->from + j + 0.5);
    prior->ops->log_density(prior, columns, theta, density + j * columns);
  }
  for (int k = 0; k < rows * columns; k++) top = fmax(top, density[k]);
  for (int k = 0; k < rows * columns; k++)
    density[k] = density[k] > -INFINITY ? special_exp(density[k] - top) : 0;
}

Status planar_mean_create(Arena *memory, const Prior *prior, PlanarMean *out) {
  SCRATCH_ARENA(scratch);
  double *theta;
  *out = (PlanarMean){.prior = prior};
  ASSERT(prior->d == 2 && prior->ops->log_density);
  ALLOCATE(&scratch, theta, 2 * SAMPLES);
  ALLOCATE(memory, out->density, SIDE * SIDE);
  ALLOCATE(memory, out->local, LOCAL * LOCAL);
  planar_mean_find_box(out, theta);
  study_planar_fill_density(prior, &(Axis){out->low[0], out->step[0], 0, SIDE},
                            &(Axis){out->low[1], out->step[1], 0, SIDE}, out->density);
  return STATUS_OK;
}

/* Computes the centres relative to `middle`, away[to - from], and weight[to - from] = exp(-precision away^2 /
 * 2). */
static void planar_mean_weigh_axis(const Axis *axis, double precision, double middle, double *away,
                                   double *weight) {
  for (int i = axis->from; i < axis->to; i++) {
    const double x = axis->low + axis->step * (i + 0.5) - middle;
    away[i - axis->from] = x, weight[i - axis->from] = special_exp(-0.5 * precision * x * x);
  }
}

/* Computes the mean over the cells of x and y; `middle` if there is no mass. density[0] is the density at the
 * cell (from, from), and density[stride] is one row further. */
static void sum_cells(const Axis *x, const Axis *y, double precision, const double middle[2],
                      const double *density, int stride, double mean[2]) {
  double away[2][SIDE], weight[2][SIDE], total = 0, sum[2] = {0};
  planar_mean_weigh_axis(x, precision, middle[0], away[0], weight[0]);
  planar_mean_weigh_axis(y, precision, middle[1], away[1], weight[1]);
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

double planar_mean_cost(double variance, double n) {
  /* Measured with the priors of Figures 2 and 4 (boxes 6 to 8 wide): a sum goes over the whole table up to
   * call 4 variance, then over fewer cells, and from call 330 variance on it evaluates the density itself. */
  const double whole = fmin(n, 4 * variance), last = fmin(n, 330 * variance);
  return (26.0 * SIDE * SIDE * whole * (1 + log(last / whole)) + 1.3e6 * (n - last)) / n;
}

void planar_mean(PlanarMean *self, double precision, const double vector[2], double mean[2]) {
  const double reach = precision > 0 ? REACH / sqrt(precision) : INFINITY;
  double middle[2];
  Axis axis[2];
  for (int i = 0; i < 2; i++) middle[i] = precision > 0 ? vector[i] / precision : 0;
  if (reach < REACH * FINE * fmax(self->step[0], self->step[1])) {
    for (int i = 0; i < 2; i++) axis[i] = (Axis){middle[i] - reach, 2 * reach / LOCAL, 0, LOCAL};
    study_planar_fill_density(self->prior, &axis[0], &axis[1], self->local);
    sum_cells(&axis[0], &axis[1], precision, middle, self->local, LOCAL, mean);
    return;
  }
  for (int i = 0; i < 2; i++) {
    const double from = (middle[i] - reach - self->low[i]) / self->step[i],
                 to = (middle[i] + reach - self->low[i]) / self->step[i];
    axis[i] =
        (Axis){self->low[i], self->step[i], (int)fmin(fmax(from, 0), SIDE), (int)fmin(fmax(to + 1, 0), SIDE)};
  }
  sum_cells(&axis[0], &axis[1], precision, middle, self->density + axis[1].from * SIDE + axis[0].from, SIDE,
            mean);
}
