#include "study/probe/regret_floor.h"

#include "core/special.h"
#include "model/prior/prior_grid.h"
#include "problem/world.h"
#include "study/probes.h"

#define REFUSED STATUS_INPUT, "key 'metrics': regret_floor is a bound for "

Status regret_floor_check(const Problem *problem) {
  const ThetaSource *theta = &problem->theta;
  const bool enumerated = theta->ops->prior && problem->d <= DENOISER_MOST_VERTICES;
  if (!likelihood_is_conjugate(&problem->likelihood)) return status_set(REFUSED "Gaussian rewards only");
  if (problem->quadratic)
    return status_set(REFUSED "rewards that are linear in theta*; problem.reward is quadratic");
  if (problem->drift_every > 0) return status_set(REFUSED "a fixed theta*; with problem.drift it changes");
  if (problem->per_arm) return status_set(REFUSED "one theta* for all arms; problem.unknown is per_arm");
  if (problem->ops->arms_of_theta)
    return status_set(REFUSED "arms that reveal nothing about theta*; those of this problem.family do");
  if (problem->ops->transform ||
      !(theta->set.n > 0 || theta->has_mixture || problem_theta_is_planar(theta->ops) || enumerated))
    return status_set(
        REFUSED "a theta* whose distribution is known: a mixture, a density in the plane, or a finite set");
  return STATUS_OK;
}

/* ---- the posterior mean of a density in the plane, by a sum over a grid */

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

/* Computes the mean over the cells of both axes, x first; `middle` if there is no mass. density[0] is the
 * density at the cell (from, from), and density[stride] is one row further. */
static void study_planar_mean_sum_cells(const Axis axis[2], double precision, const double middle[2],
                                        const double *density, int stride, double mean[2]) {
  double away[2][SIDE], weight[2][SIDE]; /* how far a centre is from `middle`, and its likelihood */
  double total = 0, sum[2] = {0};
  int cells[2];
  for (int a = 0; a < 2; a++) {
    cells[a] = axis[a].to - axis[a].from;
    for (int i = 0; i < cells[a]; i++) {
      const double x = axis[a].low + axis[a].step * (axis[a].from + i + 0.5) - middle[a];
      away[a][i] = x, weight[a][i] = special_exp(-0.5 * precision * x * x);
    }
  }
  for (int j = 0; j < cells[1]; j++) {
    const double *row = density + j * stride;
    double mass = 0, first = 0;
    for (int i = 0; i < cells[0]; i++) {
      const double share = row[i] * weight[0][i];
      mass += share, first += share * away[0][i];
    }
    total += weight[1][j] * mass;
    sum[0] += weight[1][j] * first, sum[1] += weight[1][j] * away[1][j] * mass;
  }
  for (int i = 0; i < 2; i++) mean[i] = middle[i] + (total > 0 ? sum[i] / total : 0);
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
    study_planar_mean_sum_cells(axis, precision, middle, self->local, LOCAL, mean);
    return;
  }
  for (int i = 0; i < 2; i++) {
    const double from = (middle[i] - reach - self->low[i]) / self->step[i],
                 to = (middle[i] + reach - self->low[i]) / self->step[i];
    axis[i] =
        (Axis){self->low[i], self->step[i], (int)fmin(fmax(from, 0), SIDE), (int)fmin(fmax(to + 1, 0), SIDE)};
  }
  study_planar_mean_sum_cells(axis, precision, middle, self->density + axis[1].from * SIDE + axis[0].from,
                              SIDE, mean);
}

/* ---- what the oracle believes */

/* Computes the mean[d] of run b, at stride B, over the members with weights exp(vector' theta - precision
 * |theta|^2 / 2). */
static void regret_floor_mean_of_set(RegretFloor *self, int b) {
  const int n = self->members, runs = self->runs;
  double top = -INFINITY, total = 0;
  for (int m = 0; m < n; m++) self->weight[m] = -0.5 * self->precision[b] * self->square[m];
  for (int i = 0; i < self->d; i++)
    for (int m = 0; m < n; m++)
      self->weight[m] += self->vector[i * runs + b] * self->set[(size_t)i * (size_t)n + (size_t)m];
  for (int m = 0; m < n; m++) top = fmax(top, self->weight[m]);
  for (int m = 0; m < n; m++) total += self->weight[m] = special_exp(self->weight[m] - top);
  for (int i = 0; i < self->d; i++) {
    double sum = 0;
    for (int m = 0; m < n; m++) sum += self->weight[m] * self->set[(size_t)i * (size_t)n + (size_t)m];
    self->mean[i * runs + b] = sum / total;
  }
}

/* Computes the means of runs first .. first + DENOISER_LANES - 1; lanes beyond the last run repeat it. */
static void regret_floor_denoised_means(RegretFloor *self, int first) {
  enum { LANES = DENOISER_LANES };
  const Denoiser *denoiser = self->prior.denoiser;
  const int d = self->d, runs = self->runs;
  double *covariance = self->denoised + d * LANES;
  int fallbacks[LANES] = {0};
  for (int i = 0; i < d; i++)
    for (int n = 0; n < LANES; n++) {
      const int b = first + n < runs ? first + n : runs - 1;
      const double scale = denoiser->scale[i], precision = self->precision[b];
      self->evidence.eigenvalue[i * LANES + n] = scale * scale * precision;
      self->evidence.vector[i * LANES + n] =
          scale * (self->vector[i * runs + b] - precision * denoiser->shift[i]);
    }
  denoiser->moments(denoiser, &self->evidence, self->denoised, self->prior.mixture ? NULL : covariance,
                    fallbacks, self->scratch);
  const int filled = runs - first < LANES ? runs - first : LANES;
  for (int i = 0; i < d; i++)
    for (int n = 0; n < filled; n++)
      self->mean[i * runs + first + n] =
          denoiser->shift[i] + denoiser->scale[i] * self->denoised[i * LANES + n];
}

/* ---- the oracle */

Status regret_floor_create(Arena *memory, const Problem *problem, const Task *task, RegretFloor *out) {
  const size_t d = (size_t)problem->d, runs = (size_t)task->runs, lanes = DENOISER_LANES;
  const PriorFit chain = {.schedule = {.stages = 1, .alpha = 0.5}};
  *out = (RegretFloor){.d = problem->d, .runs = task->runs};
  ALLOCATE_ARRAYS(memory, runs, &out->precision, &out->longest);
  ALLOCATE(memory, out->arm, runs);
  ALLOCATE_ARRAYS(memory, d * runs, &out->vector, &out->mean, &out->noise);
  if (problem->theta.set.n > 0) {
    const size_t members = (size_t)problem_theta_test_size(&problem->theta);
    out->members = (int)members;
    ALLOCATE(memory, out->set, d * members);
    ALLOCATE_ARRAYS(memory, members, &out->square, &out->weight);
    problem_theta_test_part(&problem->theta, task->replicate, out->set);
    for (size_t at = 0; at < d * members; at++) out->square[at % members] += out->set[at] * out->set[at];
    return STATUS_OK;
  }
  TRY(problem_exact_prior(memory, problem, &chain, &out->prior));
  if (!out->prior.denoiser) return study_planar_mean_create(memory, &out->prior, &out->plane);
  ALLOCATE(memory, out->denoised, (1 + d) * d * lanes);
  TRY(denoiser_evidence_create(memory, problem->d, &out->evidence));
  denoiser_evidence_clear(problem->d, DENOISER_LANES, &out->evidence);
  return out->prior.denoiser->scratch(out->prior.denoiser, memory, &out->scratch);
}

void regret_floor_play(RegretFloor *self, const World *world, double *regret) {
  const int runs = self->runs;
  const double sigma = world->problem->likelihood.noise;
  RngLanes rng = world_streams(world, RNG_REGRET_FLOOR);
  if (world->round == 1 || world->problem->resample_arms) world_longest_squares(world, self->longest);
  for (int b = 0; b < runs; b++) {
    double mean[2];
    if (self->prior.denoiser) {
      if (b % DENOISER_LANES == 0) regret_floor_denoised_means(self, b);
    } else if (self->members > 0) {
      regret_floor_mean_of_set(self, b);
    } else {
      study_planar_mean(&self->plane, self->precision[b], (double[]){self->vector[b], self->vector[runs + b]},
                        mean);
      self->mean[b] = mean[0];
      self->mean[runs + b] = mean[1];
    }
  }
  world_greedy(world, self->mean, NULL, self->arm);
  for (int b = 0; b < runs; b++)
    regret[b] = world->mean[world->best[b] * runs + b] - world->mean[self->arm[b] * runs + b];
  /* Whatever was played, the oracle observes theta* + sigma / r N(0, I). */
  rng_lanes_normal(&rng, self->d, self->noise);
  for (int b = 0; b < runs; b++) {
    const double root = sqrt(self->longest[b]) / sigma;
    self->precision[b] += root * root;
    for (int i = 0; i < self->d; i++)
      self->vector[i * runs + b] +=
          root * root * world->theta[i * runs + b] + root * self->noise[i * runs + b];
  }
}

/* ---- the metric of bandits */

typedef struct {
  RegretFloor floor;
  double *regret; /* [B], in the current round */
} FloorProbe;

static Status probe_floor_check(const Study *study, const Config *setting, const Problem *problem) {
  (void)study;
  (void)setting;
  return regret_floor_check(problem);
}

static Status probe_floor_create(Arena *memory, const Simulation *simulation, void **state) {
  const TaskRun *run = simulation->run;
  FloorProbe *self;
  ALLOCATE(memory, self, 1);
  ALLOCATE(memory, self->regret, run->task->runs);
  *state = self;
  return regret_floor_create(memory, run->problem, run->task, &self->floor);
}

static Status probe_floor_measure(const Probe *probe, int k) {
  FloorProbe *self = probe->state;
  (void)k;
  regret_floor_play(&self->floor, &probe->simulation->world, self->regret);
  probe_accumulate(probe, self->regret);
  return STATUS_OK;
}

const ProbeOps probe_regret_floor = {
    .create = probe_floor_create,
    .measure = {[BEFORE_CHOICE] = probe_floor_measure},
    .check = probe_floor_check,
};
