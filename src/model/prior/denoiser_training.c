#include "model/prior/denoiser_training.h"

#include "core/core_tick.h"
#include "core/linalg/linalg.h"
#include "core/special.h"
#include "model/network/learning.h"
#include "model/network/network_kernel.h"

#include <string.h>

enum { LANES = DENOISER_LANES, CHECK_TILES = 512 };

/* ---- cases */

/* Shares of the matrices that are multiples of I, and whose eigenvalues have a common floor. */
static const double EQUAL = 0.35, FLOORED = 0.30;

Status denoiser_cases_create(Arena *memory, int d, DenoiserCases *out) {
  const size_t vector = (size_t)d * LANES;
  *out = (DenoiserCases){.d = d};
  TRY(denoiser_evidence_create(memory, d, &out->observed));
  out->observed.lanes = LANES;
  ALLOCATE_ARRAYS(memory, vector, &out->mean, &out->error);
  ALLOCATE(memory, out->uniform, (size_t)(3 + d) * LANES);
  ALLOCATE(memory, out->normal, (size_t)(1 + d) * vector);
  return STATUS_OK;
}

/* Draws eigenvalue[d, LANES] from own[d, LANES], common[LANES] and kind[LANES], all uniform in (0, 1). */
SIMD_CLONES
static void training_case_draw_spectrum(int d, const double *restrict own, const double *restrict common,
                                        const double *restrict kind, double *restrict eigenvalue) {
  const double least = log(DENOISER_LEAST_PRECISION), range = log(DENOISER_MOST_PRECISION) - least;
  for (int i = 0; i < d; i++)
    for (int n = 0; n < LANES; n++) {
      double place = own[i * LANES + n], floor = common[n];
      double raised = kind[n] < EQUAL + FLOORED && place < floor ? floor : place;
      eigenvalue[i * LANES + n] = special_exp_inside(least + range * (kind[n] < EQUAL ? floor : raised));
    }
}

/* Orthonormalises the columns of q[d, d, LANES], which hold normals, by Gram-Schmidt, which gives a uniformly
 * distributed basis. */
SIMD_CLONES
static void training_case_make_basis(int d, double *restrict q) {
  double product[LANES];
  for (int k = 0; k < d; k++) {
    for (int j = 0; j < k; j++) {
      for (int n = 0; n < LANES; n++) product[n] = 0;
      for (int i = 0; i < d; i++)
        for (int n = 0; n < LANES; n++) product[n] += q[(i * d + j) * LANES + n] * q[(i * d + k) * LANES + n];
      for (int i = 0; i < d; i++)
        for (int n = 0; n < LANES; n++) q[(i * d + k) * LANES + n] -= product[n] * q[(i * d + j) * LANES + n];
    }
    for (int n = 0; n < LANES; n++) product[n] = 0;
    for (int i = 0; i < d; i++)
      for (int n = 0; n < LANES; n++) product[n] += q[(i * d + k) * LANES + n] * q[(i * d + k) * LANES + n];
    for (int n = 0; n < LANES; n++) product[n] = 1 / sqrt(product[n]);
    for (int i = 0; i < d; i++)
      for (int n = 0; n < LANES; n++) q[(i * d + k) * LANES + n] *= product[n];
  }
}

/* Computes mean = U' m and error = U' u of z, [d, LANES] each, from normal[d, LANES] = U' eps. */
SIMD_CLONES
static void training_case_observe(int d, const double *restrict basis, const double *restrict eigenvalue,
                                  const double *restrict z, const double *restrict normal,
                                  double *restrict mean, double *restrict error) {
  for (int i = 0; i < d; i++) {
    double rotated[LANES] = {0};
    for (int j = 0; j < d; j++)
      for (int n = 0; n < LANES; n++) rotated[n] += basis[(j * d + i) * LANES + n] * z[j * LANES + n];
    for (int n = 0; n < LANES; n++) {
      const double q = eigenvalue[i * LANES + n], noise = sqrt(q) * normal[i * LANES + n],
                   shrink = 1 / (1 + q);
      mean[i * LANES + n] = shrink * (q * rotated[n] + noise);
      error[i * LANES + n] = sqrt(shrink) * (rotated[n] - noise);
    }
  }
}

void denoiser_cases_draw(DenoiserCases *cases, const TrainingSamples *samples, bool held_out, Rng *rng) {
  const int d = cases->d;
  const size_t vector = (size_t)d * LANES;
  const LaneEvidence *at = &cases->observed;
  double *pick = cases->uniform, *kind = pick + LANES, *common = kind + LANES, *own = common + LANES;
  double *z = cases->normal + vector; /* free once the basis is made from these normals */
  double *sum = own; /* (1 + q) U' m; free once the spectrum is drawn */
  rng_uniform(rng, (3 + d) * LANES, cases->uniform);
  rng_normal(rng, (d + d * d) * LANES, cases->normal);
  training_case_draw_spectrum(d, own, common, kind, at->eigenvalue);
  memcpy(at->basis, z, (size_t)d * vector * sizeof *z);
  training_case_make_basis(d, at->basis);
  for (int n = 0; n < LANES; n++) {
    const int place = held_out ? samples->training + (int)(pick[n] * samples->held_out)
                               : training_samples_pick(samples, pick[n]);
    cases->sample[n] = place;
    for (int i = 0; i < d; i++) z[i * LANES + n] = (double)samples->z[(size_t)place * (size_t)d + (size_t)i];
  }
  training_case_observe(d, at->basis, at->eigenvalue, z, cases->normal, cases->mean, cases->error);
  for (size_t k = 0; k < vector; k++) sum[k] = (1 + at->eigenvalue[k]) * cases->mean[k];
  linalg_lanes_multiply(d, LANES, at->basis, sum, at->vector); /* b = U (1 + q) U' m */
}

/* ---- training */

/* Decay per step of the running average of the weights, once there have been many steps. */
static const double KEPT = 0.999;

typedef struct {
  const PriorFit *fit;
  const TrainingSamples *samples;
  const DenoiserNetwork *network;
  int d, batch;
  DenoiserCases cases;
  double *error, *start; /* [d, n]: u, v */
  void *inputs; /* scratch for the inputs */
  float *x, *target; /* [inputs, batch], [d, batch] */
} Training;

/* Returns the stream of a step of training. */
static Rng denoiser_training_stream(const PriorFit *fit, int step) {
  return (Rng){
      .key = rng_key(fit->seed, RNG_DENOISER_TRAINING), .run = fit->replicate, .draw = (uint32_t)step};
}

/* Draws the batch of step = 1 .. steps: x and target. */
static void denoiser_training_draw_batch(Training *self, int step) {
  const int d = self->d;
  const size_t row = (size_t)self->batch;
  DenoiserCases *cases = &self->cases;
  Rng rng = denoiser_training_stream(self->fit, step);
  for (int lane = 0; lane < self->batch; lane += LANES) {
    denoiser_cases_draw(cases, self->samples, false, &rng);
    linalg_lanes_multiply(d, LANES, cases->observed.basis, cases->error, self->error);
    denoiser_network_inputs(self->network, &cases->observed, self->x + lane, row, self->start, self->inputs);
    for (int i = 0; i < d; i++)
      for (int n = 0; n < LANES; n++)
        self->target[(size_t)i * row + (size_t)(lane + n)] =
            (float)(self->error[i * LANES + n] - self->start[i * LANES + n]);
  }
}

/* Computes average += share (weights - average). */
SIMD_CLONES
static void training_average_weights(size_t count, float share, const float *restrict weights,
                                     float *restrict average) {
  for (size_t i = 0; i < count; i++) average[i] += share * (weights[i] - average[i]);
}

Status denoiser_train(const PriorFit *fit, const TrainingSamples *samples, const DenoiserNetwork *network,
                      float *parameters) {
  SCRATCH_ARENA(scratch);
  const NetworkShape *shape = &network->shape;
  const size_t count = network_parameters(shape), d = (size_t)samples->d;
  Training self = {.fit = fit, .samples = samples, .network = network, .d = samples->d};
  float *weights, *gradient, *first, *second, *workspace;
  self.batch = (fit->batch + LANES - 1) / LANES * LANES;
  TRY(denoiser_cases_create(&scratch, samples->d, &self.cases));
  ALLOCATE_ARRAYS(&scratch, d * LANES, &self.error, &self.start);
  TRY(denoiser_network_scratch(&scratch, network, &self.inputs));
  ALLOCATE(&scratch, self.x, (size_t)shape->width[0] * (size_t)self.batch);
  ALLOCATE(&scratch, self.target, d * (size_t)self.batch);
  ALLOCATE_ARRAYS(&scratch, count, &weights, &gradient, &first, &second);
  ALLOCATE(&scratch, workspace, network_workspace(shape));
  Rng start = {.key = rng_key(fit->seed, RNG_DENOISER_START), .run = fit->replicate};
  learning_start(shape, &start, weights);
  memcpy(parameters, weights, count * sizeof *parameters);
  for (int step = 1; step <= fit->steps; step++) {
    if (!core_tick_allows((double)step / fit->steps)) break;
    denoiser_training_draw_batch(&self, step);
    network_loss_gradient(shape, weights, self.batch, self.x, self.target, gradient, workspace);
    learning_adam(count, learning_rate(fit->learning_rate, step, fit->steps), gradient, first, second,
                  weights);
    training_average_weights(count, (float)(1 - fmin(KEPT, (1.0 + step) / (10.0 + step))), weights,
                             parameters);
  }
  return core_tick_check(1);
}

/* ---- self-check */

typedef struct {
  int d;
  DenoiserCases cases;
  double *column, *mean, *covariance; /* U' D, D, C */
  int lane_fallbacks[LANES]; /* not reported */
} Check;

static Status training_check_create(Arena *memory, int d, Check *out) {
  const size_t vector = (size_t)d * LANES;
  *out = (Check){.d = d};
  ALLOCATE_ARRAYS(memory, vector, &out->column, &out->mean);
  ALLOCATE(memory, out->covariance, (size_t)d * vector);
  return denoiser_cases_create(memory, d, &out->cases);
}

/* Returns the bin of the case in lane n. */
static int denoiser_training_bin(const DenoiserCases *cases, int n) {
  const int bin = (int)denoiser_network_strength(cases->d, DENOISER_MOST_PRECISION, LANES,
                                                 cases->observed.eigenvalue + n);
  return bin < DENOISER_BINS ? bin : DENOISER_BINS - 1;
}

double denoiser_check_end(int d, int bin) {
  return (bin + 1.0) / DENOISER_BINS * d * log1p(DENOISER_MOST_PRECISION);
}

/* Adds the case in lane n, whose U' D is in column, to its bin. tr K is the sum over eigenvectors of (1 + q)
 * U' C U. */
static void training_check_add_case(const Check *self, int n, DenoiserCheck *out) {
  const int d = self->d;
  const double *basis = self->cases.observed.basis, *eigenvalue = self->cases.observed.eigenvalue,
               *c = self->covariance;
  double error = 0, signal = 0, agreement = 0, trace = 0;
  for (int k = 0; k < d; k++)
    for (int i = 0; i < d; i++)
      for (int j = 0; j < d; j++)
        trace += (1 + eigenvalue[k * LANES + n]) * basis[(i * d + k) * LANES + n] *
                 c[(i * d + j) * LANES + n] * basis[(j * d + k) * LANES + n];
  for (int i = 0; i < d; i++) {
    const int k = i * LANES + n;
    const double q = eigenvalue[k], u = self->cases.error[k];
    const double g = sqrt(1 + q) * (self->column[k] - self->cases.mean[k]);
    error += (u - g) * (u - g), signal += g * g, agreement += u * g;
  }
  const int bin = denoiser_training_bin(&self->cases, n);
  out->count[bin]++;
  out->error[bin] += error / d;
  out->claimed[bin] += trace / d;
  out->signal[bin] += signal / d;
  out->agreement[bin] += agreement / d;
}

Status denoiser_check(const PriorFit *fit, const TrainingSamples *samples, const Denoiser *denoiser,
                      DenoiserCheck *out) {
  SCRATCH_ARENA(scratch);
  Check check;
  void *work;
  memset(out, 0, sizeof *out);
  TRY(training_check_create(&scratch, denoiser->d, &check));
  TRY(denoiser->scratch(denoiser, &scratch, &work));
  Rng rng = denoiser_training_stream(fit, 0); /* which is free, as training steps count from 1 */
  for (int tile = 0; tile < CHECK_TILES; tile++) {
    const LaneEvidence *at = &check.cases.observed;
    denoiser_cases_draw(&check.cases, samples, true, &rng);
    denoiser->moments(denoiser, at, check.mean, check.covariance, check.lane_fallbacks, work);
    linalg_lanes_multiply_transposed(check.d, LANES, at->basis, check.mean, check.column);
    for (int n = 0; n < LANES; n++) training_check_add_case(&check, n, out);
  }
  return STATUS_OK;
}

/* ---- how much of the network is kept */

Status denoiser_choose_shares(const PriorFit *fit, const TrainingSamples *samples, DenoiserNetwork *network) {
  SCRATCH_ARENA(scratch);
  const Denoiser *start = network->start;
  const int d = network->d, held_out = samples->held_out;
  Check check;
  /* Sums over the cases of each bin, with r the error that the mixture leaves and h the network's correction:
   * agreement[bin, j] = h' r, for each held-out sample j; square[bin] = h' h. */
  double *mixture, *agreement, square[DENOISER_BINS] = {0}; /* mixture[d, n]: U' D_0 */
  void *start_work, *work;
  TRY(training_check_create(&scratch, d, &check));
  TRY(start->scratch(start, &scratch, &start_work));
  TRY(denoiser_network_scratch(&scratch, network, &work));
  ALLOCATE(&scratch, mixture, d * LANES);
  ALLOCATE(&scratch, agreement, DENOISER_BINS * held_out);
  for (int k = 0; k < DENOISER_BINS; k++) network->share[k] = 1;
  Rng rng = denoiser_training_stream(fit, fit->steps + 1); /* after the last step; the check has 0 */
  for (int tile = 0; tile < CHECK_TILES; tile++) {
    const DenoiserCases *cases = &check.cases;
    const LaneEvidence *at = &cases->observed;
    denoiser_cases_draw(&check.cases, samples, true, &rng);
    start->moments(start, at, check.mean, NULL, check.lane_fallbacks, start_work);
    linalg_lanes_multiply_transposed(d, LANES, at->basis, check.mean, mixture);
    denoiser_network_moments(network, false, at, check.mean, check.covariance, check.lane_fallbacks, work);
    linalg_lanes_multiply_transposed(d, LANES, at->basis, check.mean, check.column);
    for (int n = 0; n < LANES; n++) {
      const int bin = denoiser_training_bin(cases, n);
      double *own = agreement + bin * held_out + cases->sample[n] - samples->training;
      for (int i = 0; i < d; i++) {
        const int k = i * LANES + n;
        const double unit = sqrt(1 + at->eigenvalue[k]), h = unit * (check.column[k] - mixture[k]);
        *own += h * (cases->error[k] - unit * (mixture[k] - cases->mean[k]));
        square[bin] += h * h;
      }
    }
  }
  for (int k = 0; k < DENOISER_BINS; k++) {
    const double *own = agreement + k * held_out;
    double sum = 0, squares = 0;
    for (int j = 0; j < held_out; j++) {
      sum += own[j];
      squares += own[j] * own[j];
    }
    network->share[k] = square[k] > 0 ? fmin(fmax((sum - sqrt(squares)) / square[k], 0), 1) : 0;
  }
  return STATUS_OK;
}
