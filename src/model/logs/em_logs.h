/* Tasks of logs as items of EM: each item gives only evidence about its z (em.h).
 *
 * With a conjugate likelihood the E-step has a closed form (model/mixture/mixture_evidence.h): with P_c =
 * S_c^-1 + Lambda and h_c = S_c^-1 m_c + b, z is N(P_c^-1 h_c, P_c^-1) with probability r_c. With any other
 * likelihood the evidence depends on the component and is found by expectation propagation
 * (model/history/ep.h) and points (logs_points.h), in every E-step or only when asked for. If the standard
 * deviation of Gaussian rewards is unknown, the same EM learns it: sigma^2 = sum[y'y - 2 E(z)' X'y + tr(X'X
 * E(z z'))] / sum n.
 *
 * Tasks are summed in at most EM_LOGS_SLICES contiguous slices, which are then added in order, so that ranks
 * can share them and the bytes do not depend on how. */
#pragma once

#include "model/logs/logs.h"
#include "model/mixture/em.h"

enum { EM_LOGS_SLICES = 64 };

/* Returns the first block of slice s, which has the blocks em_logs_slice(s, blocks) .. em_logs_slice(s + 1,
 * blocks) - 1 and is summed by rank em_logs_owner(s, ranks). */
static inline int em_logs_slice(int slice, int blocks) {
  return (int)((int64_t)slice * blocks / EM_LOGS_SLICES);
}
static inline int em_logs_owner(int slice, int ranks) { return slice * ranks / EM_LOGS_SLICES; }

/* Ranks that share the slices. `combine` gives all values[count] to all ranks; each value is zero on all
 * ranks but one. Collective. */
typedef struct {
  int rank, size;
  const void *context;
  void (*combine)(const void *context, size_t count, double *values);
} EmRanks;

/* Coordinates in which the Gaussian that fits the logs best has mean 0 and variances 1, and that Gaussian. */
typedef struct {
  double *shift, *scale; /* [d]: theta = shift + scale z */
  Mixture common; /* of z, one component, prepared */
  double variance, least_variance; /* of the noise: with `common`, and the least that can be learned */
} LogsFrame;

typedef struct EmLogs EmLogs;
struct EmLogs {
  EmData data;
  const Logs *logs;
  int first; /* item k is task (first + k) % tasks */
  const LogsFrame *frame; /* starts are drawn from its Gaussian, which is close to all items */
  double variance; /* current sigma^2 of Gaussian rewards; `expect` updates it if it is learned */
  const EmRanks *ranks; /* NULL: this rank has all slices */
  const EmLogs *sample; /* `seed` and `place` use its items; NULL: those of this one */
  struct EmLogsScratch *scratch;
};

/* Makes items of `items` tasks of `logs`: first, first + 1, .., continuing from task 0 after the last one.
 * The logs and the frame must outlive it. Mixtures have at most `components` components. */
Status em_logs_create(Arena *memory, const Logs *logs, const LogsFrame *frame, int first, int items,
                      int components, EmLogs *out);
/* Finds the evidence of all items under each component of a prepared mixture, likelihoods that are not
 * conjugate only, and keeps it: from then on `expect` and `density` take it for the evidence under any
 * mixture of as many components or, if it is that of one, of any number. Returns STATUS_STOPPED if the
 * thread's tick says so. The first call allocates in the memory of the items. */
Status em_logs_approximate(EmLogs *self, const Mixture *mixture);
/* Computes density[items], the log marginal likelihood of each task under a prepared mixture; for a
 * likelihood that is not Gaussian, up to a constant per task. */
void em_logs_density(EmLogs *self, const Mixture *mixture, double *density);
/* Counts the tasks with rows whose posterior under a prepared mixture is, for the larger part, only
 * expectation propagation's, because too few weighted points have weight (logs_points.h). */
int em_logs_count_few(EmLogs *self, const Mixture *mixture);
/* Draws `draws` times from each task's posterior: z[d, items draws], the draws of a task side by side.
 * Stream: (key, run, round = item, draw). */
void em_logs_draw(EmLogs *self, const Mixture *mixture, int draws, RngKey key, uint32_t run, double *z);
/* Computes z[d, items], the mean of each task's posterior under a prepared Gaussian. */
void em_logs_means(EmLogs *self, const Mixture *gaussian, double *z);
