/* Coordinates of theta*, one in each observation, in rising order: given ones, or as many as the share
 * problem.observed of d, chosen at random in each run (inpainting). */
#include "problem/operator.h"

#include <math.h>
#include <string.h>

typedef struct {
  double *observed; /* [d], 1 for the given coordinates; NULL: they are drawn */
} Mask;

/* Takes the coordinates of a list. */
static Status operator_mask_take_list(Operator *self, Arena *memory, int count, const int64_t *list) {
  Mask *state = self->state;
  ALLOCATE(memory, state->observed, self->d);
  for (int i = 0; i < count; i++) {
    if (list[i] < 0 || list[i] >= self->d)
      return status_set(STATUS_INPUT,
                        "problem.observed: coordinate %lld; with %d dimensions they are 0 to %d",
                        (long long)list[i], self->d, self->d - 1);
    if (state->observed[list[i]] > 0)
      return status_set(STATUS_INPUT, "problem.observed: coordinate %lld is listed twice",
                        (long long)list[i]);
    state->observed[list[i]] = 1;
  }
  self->rows = count;
  return STATUS_OK;
}

static Status operator_mask_create(Operator *self, Problem *problem, const Config *config) {
  const int64_t *list;
  const int count = config_ints(config, "problem.observed", &list);
  self->drawn = (size_t)self->d;
  if (count > 0) return operator_mask_take_list(self, &problem->memory, count, list);
  self->rows = (int)fmax(1, round(config_real(config, "problem.observed") * self->d));
  return STATUS_OK;
}

/* Sets observed[d], 1 for each observed coordinate, else 0. All sets of m coordinates are equally likely:
 * each is taken with the probability that m of the remaining ones need (Knuth, Algorithm S). */
static void operator_mask_draw(const Operator *self, uint32_t run, uint32_t round, double *observed) {
  const Mask *state = self->state;
  Rng rng = {.key = rng_key(self->seed, RNG_ARMS), .run = run, .round = round};
  int needed = self->rows;
  if (state->observed) {
    memcpy(observed, state->observed, (size_t)self->d * sizeof *observed);
    return;
  }
  rng_uniform(&rng, self->d, observed);
  for (int i = 0; i < self->d; i++) {
    const bool taken = observed[i] * (self->d - i) < needed;
    observed[i] = taken;
    needed -= taken;
  }
}

static void operator_mask_apply(const Operator *self, const double *observed, const double *x, double *y) {
  for (int i = 0; i < self->d; i++)
    if (observed[i] > 0) *y++ = x[i];
}

const OperatorOps operator_mask = {.name = "mask",
                                   .summary = "some coordinates of theta* (inpainting)",
                                   .state_size = sizeof(Mask),
                                   .create = operator_mask_create,
                                   .draw = operator_mask_draw,
                                   .apply = operator_mask_apply};
