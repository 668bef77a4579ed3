/* A blurred picture: theta* has side x side pixels, row by row, and A is the circular convolution with a
 * Gaussian of standard deviation problem.blur_width, whose pixels sum to 1.
 *
 * A is B (x) B with a symmetric circulant B[side, side], so that A x takes two products of side x side
 * matrices, B X B. */
#include "problem/operator.h"

#include <math.h>
#include <string.h>

enum { MOST_SIDE = 1000 };

typedef struct {
  int side;
  double *kernel; /* [2 side], the first row of B, twice, so that row r begins at side - r */
} Blur;

/* Fills the kernel: at each distance the Gaussian is summed over all turns around the circle. */
static void operator_blur_fill(Blur *state, double width) {
  const int side = state->side, turns = 1 + (int)(9 * width / side); /* e^-40 of the Gaussian lies beyond */
  double sum = 0;
  for (int i = 0; i < side; i++) {
    for (int turn = -turns; turn <= turns; turn++) {
      const double distance = (i + (double)turn * side) / width;
      state->kernel[i] += exp(-0.5 * distance * distance);
    }
    sum += state->kernel[i];
  }
  for (int i = 0; i < side; i++) state->kernel[i] = state->kernel[side + i] = state->kernel[i] / sum;
}

static Status operator_blur_create(Operator *self, Problem *problem, const Config *config) {
  Blur *state = self->state;
  state->side = (int)round(sqrt(self->d));
  if (state->side * state->side != self->d || state->side > MOST_SIDE)
    return status_set(
        STATUS_INPUT,
        "problem.operator: blur is for square pictures of at most %d x %d pixels; theta* has %d "
        "dimensions",
        MOST_SIDE, MOST_SIDE, self->d);
  self->rows = self->d;
  ALLOCATE(&problem->memory, state->kernel, 2 * state->side);
  operator_blur_fill(state, config_real(config, "problem.blur_width"));
  return STATUS_OK;
}

/* Computes out[side] = B in, where in[0], in[stride], ... */
static void operator_blur_line(const Blur *state, int stride, const double *in, double *out) {
  const int side = state->side;
  memset(out, 0, (size_t)side * sizeof *out);
  for (int r = 0; r < side; r++) {
    const double *row = state->kernel + side - r;
    for (int c = 0; c < side; c++) out[c] += in[r * stride] * row[c];
  }
}

/* Computes out = B in B: first the rows, then the columns. */
static void operator_blur_apply(const Operator *self, const double *drawn, const double *in, double *out) {
  const Blur *state = self->state;
  const int side = state->side;
  double column[MOST_SIDE];
  (void)drawn;
  for (int r = 0; r < side; r++) operator_blur_line(state, 1, in + r * side, out + r * side);
  for (int c = 0; c < side; c++) {
    operator_blur_line(state, side, out + c, column);
    for (int r = 0; r < side; r++) out[r * side + c] = column[r];
  }
}

const OperatorOps operator_blur = {.name = "blur",
                                   .summary = "a square picture, blurred by a circular Gaussian",
                                   .state_size = sizeof(Blur),
                                   .create = operator_blur_create,
                                   .apply = operator_blur_apply};
