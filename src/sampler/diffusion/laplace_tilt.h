/* LaplaceDPS with evidence_c = -1, tilted transport, for a chunk of lanes: the evidence enters once, at the
 * largest stage t with (1 - abar_t) l < abar_t for every eigenvalue l of its precision. There it has the
 * variance abar_t / l - (1 - abar_t), and s_t is drawn from its product with N(0, I), which stands for the
 * noised prior. What follows is the unconditional reverse process; what comes before is skipped. */
#ifndef SAMPLER_DIFFUSION_LAPLACE_TILT_H
#define SAMPLER_DIFFUSION_LAPLACE_TILT_H

#include "core/arena.h"
#include "model/schedule.h"
#include "sampler/chunk.h"
#include "sampler/diffusion/laplace_dps.h"

/* n <= CHUNK_LANES lanes, lane last. */
typedef struct {
  double *held; /* [d, n]: where the lanes start */
  int start[CHUNK_LANES], first; /* at which stages; the largest of those */
} LaplaceTilt;

Status laplace_tilt_create(Arena *memory, int d, LaplaceTilt *out);

/* Find the stages, and make the evidence that of its product with N(0, I) there: for laplace_dps_product with
 * v = alpha_bar = 1. */
void laplace_tilt_begin(LaplaceTilt *tilt, const Schedule *schedule, LaplaceEvidence *evidence);
/* s[d, n] is that product. The evidence becomes 0. */
void laplace_tilt_started(LaplaceTilt *tilt, const double *s, LaplaceEvidence *evidence);
/* After stage t: lanes that start below it are put back to where they start. */
void laplace_tilt_hold(const LaplaceTilt *tilt, int t, int d, int lanes, double *s);

#endif
