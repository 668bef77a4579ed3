/* LaplaceDPS (DiffTS paper, Algorithm 2): every reverse stage of the chain draws from a product of two
 * Gaussians, its conditional prior and the evidence diffused up to it. In a bandit it is called DiffTS
 * (Section 5).
 *
 * With a conjugate likelihood the evidence is the same at all stages (Theorem 2). With any other it is that
 * of the Laplace approximation, which IRLS computes at the mode of every stage (Theorem 4); the product has
 * the same form.
 *
 * All of this is in the standardised coordinates of the chain. A draw uses d normals of its stream for s_T,
 * then d per stage, as denoiser_chain_sample does: without observations the two agree, up to rounding. */
#include "sampler/diffusion/laplace_dps.h"

#include "core/chunk.h"
#include "core/linalg/linalg.h"
#include "io/config/config_rows.h"
#include "sampler/diffusion/laplace_product.h"
#include "sampler/one_history.h"
#include "sampler/sampler.h"

/* How close to the mode IRLS gets, at least, in standard deviations of the stage. The draw itself moves by
 * one of them and the next stage starts from there, so the tolerance changes the mean and deviation of the
 * last stage by less than 1e-3 of the deviation (tests/sampler/test_glm_chain.c); most stages need only one
 * pass. */
static const double MODE_TOLERANCE = 1e-3;

/* n <= lanes lanes, lane last. */
typedef struct {
  int lanes; /* most of a chunk */
  bool in_run; /* chunks are of one history each */
  LastStage last_stage;
  LaplaceEvidence evidence; /* unless `in_run` */
  OneHistory one; /* if `in_run` */
  double *s, *mu, *z; /* [d, n]: s_t, mu_t(s_t), standard normals */
} LaplaceDps;

Status laplace_dps_evidence_create(Arena *memory, int d, int capacity, int rows, LaplaceEvidence *out) {
  const size_t vector = (size_t)d * (size_t)laplace_product_lanes(capacity), matrix = (size_t)d * vector,
               row_vector = (size_t)d * (size_t)rows, row_matrix = (size_t)d * row_vector;
  *out = (LaplaceEvidence){.d = d};
  ALLOCATE_ARRAYS(memory, matrix, &out->precision, &out->basis);
  ALLOCATE_ARRAYS(memory, vector, &out->vector, &out->eigenvalue, &out->rotated);
  ALLOCATE(memory, out->scratch, 4 * (size_t)d * VECTOR_LANES);
  ALLOCATE_ARRAYS(memory, row_matrix, &out->prior_precision, &out->half, &out->congruent);
  ALLOCATE_ARRAYS(memory, row_vector, &out->prior_vector, &out->mode);
  return irls_create(memory, d, rows, MODE_TOLERANCE, &out->irls);
}

/* ---- stages with a likelihood that is not conjugate */

SIMD_CLONES
void laplace_dps_glm_product(LaplaceEvidence *evidence, const HistoryView *view, const LaplaceStage *stage,
                             double *z, double *s, int64_t *fallbacks) {
  const double v = stage->v, alpha_bar = stage->alpha_bar, *mu = stage->mu;
  const int d = evidence->d, lanes = view->lanes;
  const double root = sqrt(alpha_bar), deviation = sqrt(v), gain = v / alpha_bar;
  const double precision = alpha_bar / v, of_mean = root / v;
  if (!evidence->started) {
    memset(evidence->precision, 0, (size_t)(d * d * lanes) * sizeof *evidence->precision);
    memset(evidence->vector, 0, (size_t)(d * lanes) * sizeof *evidence->vector);
  }
  memset(evidence->prior_precision, 0, (size_t)(d * d * lanes) * sizeof *evidence->prior_precision);
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) {
      evidence->prior_precision[(i * d + i) * lanes + n] = precision;
      evidence->prior_vector[i * lanes + n] = of_mean * mu[i * lanes + n];
    }
  /* IRLS(mu / sqrt(alpha_bar), v / alpha_bar I, h) of Theorem 4 */
  const PriorLanes prior = {.precision = evidence->prior_precision, .vector = evidence->prior_vector};
  const EvidenceLanes own = {.precision = evidence->precision, .vector = evidence->vector};
  irls_solve(&evidence->irls, view, prior, own, evidence->mode, fallbacks);
  if (!evidence->started)
    linalg_factor_eigen(d, lanes, evidence->precision, evidence->basis, evidence->eigenvalue);
  evidence->started = true;
  linalg_lanes_product(d, lanes, evidence->precision, evidence->basis, evidence->half);
  linalg_lanes_product_transposed(d, lanes, evidence->basis, evidence->half, evidence->congruent);
  /* v times the precision of s, in the basis Q */
  for (int k = 0; k < d * d * lanes; k++) evidence->congruent[k] *= gain;
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) evidence->congruent[(i * d + i) * lanes + n] += 1;
  linalg_factor_cholesky(d, lanes, evidence->congruent, NULL);
  linalg_factor_backward(d, lanes, evidence->congruent, z);
  linalg_lanes_multiply(d, lanes, evidence->basis, z, s);
  for (int k = 0; k < d * lanes; k++) s[k] = special_two_products(root, evidence->mode[k], deviation, s[k]);
}

/* ---- the chain */

/* Draws s from the product of N(mu, v I) and the diffused evidence that all lanes share: in each direction
 * that is seen the draw mu + sqrt(v) z is moved to where laplace_product_draw has it. */
static void laplace_dps_draw_seen(const OneHistory *one, const LaplaceStage *stage, int n, const double *z,
                                  double *s) {
  const Subspace *seen = &one->seen;
  const double deviation = sqrt(stage->v), root = sqrt(stage->alpha_bar);
  history_subspace_project(seen, n, stage->mu, one->along);
  history_subspace_project(seen, n, z, one->other);
  for (int k = 0; k < seen->rank; k++) {
    const double value = seen->value[k] / root, gain = stage->v * value * value, left = 1 / (1 + gain),
                 narrower = deviation * (sqrt(left) - 1);
    for (int p = k * n; p < (k + 1) * n; p++)
      one->along[p] =
          left * (stage->v * value * seen->reward[k] - gain * one->along[p]) + narrower * one->other[p];
  }
  for (int i = 0; i < seen->d * n; i++) s[i] = stage->mu[i] + deviation * z[i];
  history_subspace_add(seen, n, one->along, s);
}

/* Runs line 4: draws s_{t-1} from the product of N(mu_t(s_t), Sigma_t) and the evidence diffused up to stage
 * t - 1. Line 2 is stage T + 1, with N(0, I). */
static void draw_stage(LaplaceDps *self, const Chain *chain, int t, const HistoryView *view, Chunk *chunk,
                       int64_t *fallbacks) {
  const Schedule *schedule = &chain->schedule;
  const bool start = t > schedule->stages;
  const LaplaceStage stage = {.v = start ? 1 : schedule_variance(schedule, t, self->last_stage),
                              .alpha_bar = schedule->alpha_bar[t - 1],
                              .mu = self->mu};
  if (start)
    memset(self->mu, 0, (size_t)(chain->d * chunk->lanes) * sizeof *self->mu);
  else
    denoiser_chain_mean(chain, t, chunk->lanes, self->s, self->mu);
  rng_lanes_normal(&chunk->rng, chain->d, self->z);
  if (self->in_run)
    laplace_dps_draw_seen(&self->one, &stage, chunk->lanes, self->z, self->s);
  else if (self->evidence.whole)
    laplace_product_draw(&self->evidence, &stage, self->z, self->s);
  else if (stage.v == 0)
    memcpy(self->s, self->mu, (size_t)(chain->d * chunk->lanes) * sizeof *self->s);
  else
    laplace_dps_glm_product(&self->evidence, view, &stage, self->z, self->s, fallbacks);
  denoiser_chain_guard(chunk, chain->d, self->s, fallbacks);
}

/* Runs Algorithm 2 for the lanes of a chunk, in the coordinates of the chain. The evidence of a conjugate
 * likelihood is the same for all stages (Theorem 2). With any other likelihood there is none at first; it is
 * computed at the mode of every stage (Theorem 4). Errors: STATUS_INTERNAL. */
static Status laplace_dps_sample_chunk(LaplaceDps *self, const Chain *chain, const HistoryView *view,
                                       Chunk *chunk, int64_t *fallbacks) {
  SCRATCH_ARENA(memory);
  LaplaceEvidence *evidence = &self->evidence;
  evidence->lanes = view->lanes;
  evidence->started = false;
  if (self->in_run)
    TRY(one_history_find(&memory, view, &self->one));
  else
    evidence->whole = evidence_decompose_lanes(view, evidence->precision, evidence->vector, evidence->basis,
                                               evidence->eigenvalue, evidence->rotated);
  if (evidence->whole) laplace_product_begin(evidence);
  for (int t = chain->schedule.stages + 1; t >= 1; t--) draw_stage(self, chain, t, view, chunk, fallbacks);
  return STATUS_OK;
}

/* Makes the draws; those for which there was no memory are NAN. */
static void laplace_dps_sample(Sampler *sampler, const History *history, RngLanes rng, int draws,
                               double *theta, int64_t *fallbacks) {
  LaplaceDps *self = sampler->state;
  const Chain *chain = sampler->setup.prior->chain;
  for (Chunk chunk = chunk_begin_wide(rng, self->lanes, self->in_run); chunk.lanes > 0;
       chunk_next(&chunk, rng)) {
    const HistoryView in_theta = history_view(history, draws, chunk.first, chunk.lanes),
                      view = history_view_in(in_theta, chain->shift, chain->scale);
    if (laplace_dps_sample_chunk(self, chain, &view, &chunk, fallbacks) != STATUS_OK) {
      chunk_miss(&chunk, theta);
      continue;
    }
    denoiser_chain_to_theta(chain, chunk.lanes, self->s);
    chunk_store(&chunk, chain->d, self->s, theta);
  }
}

/* Counts the eigenvectors of the evidence (9 d^3: Golub and Van Loan, Matrix Computations, on the symmetric
 * QR algorithm) and two products of Q with a vector at each stage. */
static double laplace_dps_operations(const Sampler *sampler) {
  const double d = sampler->d, stages = sampler->setup.prior->chain->schedule.stages + 1;
  if (!likelihood_is_conjugate(sampler->setup.likelihood)) return NAN;
  return 9 * d * d * d + stages * 4 * d * d;
}

static Status laplace_dps_create(Sampler *sampler, const SamplerSetup *setup) {
  Arena *memory = sampler->memory;
  const size_t d = (size_t)sampler->d;
  LaplaceDps *self;
  ALLOCATE(memory, self, 1);
  sampler->state = self;
  self->in_run = one_history_fits(setup);
  self->lanes = denoiser_chain_lanes(setup->prior->chain, (self->in_run ? 0 : 6 * d * d) + 8 * d,
                                     one_history_lanes(setup));
  const size_t vector = d * (size_t)self->lanes;
  self->last_stage = config_is(setup->options, "last_stage", "prior")
                         ? setup->prior->chain->last_stage
                         : schedule_last_stage(config_text(setup->options, "last_stage"));
  ALLOCATE_ARRAYS(memory, vector, &self->s, &self->mu, &self->z);
  if (self->in_run) return STATUS_OK;
  return laplace_dps_evidence_create(memory, sampler->d, self->lanes,
                                     likelihood_rows(setup->likelihood, self->lanes), &self->evidence);
}

static const ConfigKey KEYS[] = {{WORD("last_stage", "prior",
                                       "covariance of the last stage: repaired (beta_tilde_2), literal (0, "
                                       "as printed), or prior (as the prior specifies)"),
                                  .words = "repaired literal prior"},
                                 {.name = NULL}};

const SamplerOps sampler_diffts = {
    .name = "diffts",
    .summary = "LaplaceDPS: a chain of products of the reverse stages of a diffusion prior and the diffused "
               "evidence",
    .reference = "Kveton et al., DiffTS paper, Algorithm 2 with Theorems 2 and 4",
    .default_prior = "diffusion",
    .narrow = M_SQRT1_2, /* every stage uses the evidence: up to twice in all */
    .needs = NEEDS_CHAIN,
    .keys = KEYS,
    .create = laplace_dps_create,
    .sample = laplace_dps_sample,
    .operations = laplace_dps_operations,
};
