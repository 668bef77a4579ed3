/* Tasks of logs as the items of EM: of each, only the evidence about its z is known (em.h).
 *
 * Given a mixture the E-step has a closed form with a conjugate likelihood
 * (model/mixture/mixture_evidence.h): with P_c = S_c^-1 + Lambda and h_c = S_c^-1 m_c + b, z is N(P_c^-1 h_c,
 * P_c^-1) with probability r_c. With any other likelihood each component has evidence of its own, by
 * expectation propagation (model/history/ep.h). Standard deviations of Gaussian rewards that
 * are not known are learned in the same EM: sigma^2 = sum[y'y - 2 E(z)' X'y + tr(X'X E(z z'))] / sum n.
 *
 * Tasks are summed in at most EM_LOGS_SLICES contiguous slices, and these in their order, so that ranks can
 * share them and the bytes do not depend on how. */
#pragma once

#include "model/logs/logs.h"
#include "model/mixture/em.h"

enum { EM_LOGS_SLICES = 64 };

/* Returns where slice s begins: it has the blocks em_logs_slice(s, blocks) .. em_logs_slice(s + 1, blocks)
 * - 1, and is summed by rank em_logs_owner(s, ranks). */
static inline int em_logs_slice(int slice, int blocks) {
  return (int)((int64_t)slice * blocks / EM_LOGS_SLICES);
}
static inline int em_logs_owner(int slice, int ranks) { return slice * ranks / EM_LOGS_SLICES; }

/* Ranks that share the slices: `combine` brings all values[count] to all ranks, where all but one rank have
 * zeros. Collective. */
typedef struct {
  int rank, size;
  const void *context;
  void (*combine)(const void *context, size_t count, double *values);
} EmRanks;

/* Coordinates: theta = shift + scale z, [d] each; not owned. */
typedef struct {
  const double *shift, *scale;
} EmFrame;

typedef struct EmLogs EmLogs;
struct EmLogs {
  EmData data;
  const Logs *logs;
  int first; /* item k is task (first + k) % tasks */
  EmFrame frame;
  double variance; /* sigma^2 of Gaussian rewards, now; `expect` replaces it where it is to be learned */
  double least_variance; /* that it can be learned to be */
  const Mixture *common; /* a prepared Gaussian near all items, which starts are drawn from */
  const EmRanks *ranks; /* NULL: none to share with */
  const EmLogs *sample; /* whose items `seed` and `place` take; NULL: its own */
  struct EmLogsScratch *scratch;
};

/* Takes the tasks first, first + 1, .. of `logs`, `items` of them, after the last one from the start
 * again. The logs and the frame must outlive it. Mixtures have at most `components`. */
Status em_logs_create(Arena *memory, const Logs *logs, int first, int items, EmFrame frame, int components,
                      EmLogs *out);
/* Computes density[items], the log marginal likelihood of each task under a prepared mixture; for a
 * likelihood other than Gaussian up to a constant of the task. */
void em_logs_density(EmLogs *self, const Mixture *mixture, double *density);
/* Draws z[d, items draws] from each task's posterior, its draws side by side. Stream: (key, run, round =
 * item, draw). */
void em_logs_draw(EmLogs *self, const Mixture *mixture, int draws, RngKey key, uint32_t run, double *z);
/* Computes z[d, items], the mean of each task's posterior under a prepared Gaussian. */
void em_logs_means(EmLogs *self, const Mixture *gaussian, double *z);
