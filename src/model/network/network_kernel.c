/* Forward and backward passes of a ReLU network on 64 lanes at a time. Compiled once for each instruction
 * level (core/simd.h). network_plain.c has the same in plain loops.
 *
 * Everything is one product C = A B whose columns are contiguous: a tile of up to 6 rows x SUM_VECTORS
 * vectors of C stays in registers while the elements of A are broadcast. Each element of C is one chain of
 * fused multiply-adds in the order of the depth index, whatever the tile, so v3 and v4 agree in every bit.
 * Chunks of 64 lanes keep the activations in the nearest caches. */
#include "model/network/network_kernel.h"

#include "core/simd.h"
#include "core/status.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* Steps of the depth at a time: where the sums leave registers for only one step, gcc would keep sums of two
 * in memory. */
enum { SUM_ROWS = 6, SUM_VECTORS = SIMD_FLOATS == 16 ? 4 : 2, STEPS = SIMD_FLOATS == 16 ? 2 : 1 };
enum { LANES = NETWORK_LANES };

typedef float Vector __attribute__((vector_size(4 * SIMD_FLOATS), aligned(4), may_alias));
typedef int Mask __attribute__((vector_size(4 * SIMD_FLOATS), aligned(4), may_alias));
typedef float Quad __attribute__((vector_size(16), aligned(4), may_alias));

static inline Vector network_load_vector(const float *from) { return *(const Vector *)from; }
/* Keeps the lanes of `value` for which `switch_` is above zero, and sets the others to zero. */
static inline Vector relu_mask_vector(Vector value, Vector switch_) {
  return (Vector)((Mask)value & (Mask)(switch_ > (Vector){0}));
}
/* Returns max(0, value), which turns NaN into 0. */
static inline Vector relu_vector(Vector value) {
#if defined(__AVX512F__)
  return (Vector)_mm512_max_ps((__m512)value, _mm512_setzero_ps());
#elif defined(__AVX2__) && defined(__FMA__)
  return (Vector)_mm256_max_ps((__m256)value, _mm256_setzero_ps());
#else
  return relu_mask_vector(value, value);
#endif
}

/* C[rows, columns] = A[rows, depth] B[depth, columns] with a choice of how each tile starts and ends. */
typedef struct {
  int rows, columns, depth; /* columns: a multiple of 16 */
  const float *a; /* element (i, k) at a[i * a_row + k * a_depth] */
  size_t a_row, a_depth;
  const float *b;
  size_t b_row;
  float *c;
  size_t c_row;
  const float *bias; /* [rows], the start of each row; NULL: zero */
  bool add; /* start from what C holds */
  bool relu; /* end: max(0, C) */
  const float *active; /* end: C where active[rows, columns] > 0, else 0 (row stride LANES); NULL: all */
} NetworkProduct;

/* Each kind of start and end of a tile has its own loop, so that nothing is tested again for every vector. */
#define TILE_EACH(statement)                                                                                 \
  SIMD_UNROLL(6) for (int i = 0; i < rows; i++) {                                                            \
    SIMD_UNROLL(4) for (int v = 0; v < vectors; v++) statement;                                              \
  }

INLINE void network_tile(const int rows, const NetworkProduct *p, int row, int column, const int vectors) {
  Vector sum[SUM_ROWS][SUM_VECTORS];
  float *c = p->c + (size_t)row * p->c_row + column;
  if (p->add)
    TILE_EACH(sum[i][v] = network_load_vector(c + i * p->c_row + v * SIMD_FLOATS))
  else if (p->bias)
    TILE_EACH(sum[i][v] = p->bias[row + i] - (Vector){0})
  else
    TILE_EACH(sum[i][v] = (Vector){0})
  const float *a = p->a + (size_t)row * p->a_row, *b = p->b + column;
  const size_t a_row = p->a_row, a_depth = p->a_depth, b_row = p->b_row;
  const float *next = a + rows * a_row; /* prefetched: the networks of a chain do not fit in the caches */
  SIMD_UNROLL(STEPS)
  for (int k = 0; k < p->depth; k++, a += a_depth, b += b_row, next += rows) {
    Vector right[SUM_VECTORS];
    __builtin_prefetch(next);
    SIMD_UNROLL(4)
    for (int v = 0; v < vectors; v++) right[v] = network_load_vector(b + v * SIMD_FLOATS);
    SIMD_UNROLL(6)
    for (int i = 0; i < rows; i++) {
      Vector left = a[i * a_row] - (Vector){0};
      SIMD_UNROLL(4)
      for (int v = 0; v < vectors; v++) sum[i][v] += left * right[v];
    }
  }
  if (p->relu) TILE_EACH(sum[i][v] = relu_vector(sum[i][v]))
  if (p->active) {
    const float *active = p->active + (size_t)row * LANES + column;
    TILE_EACH(sum[i][v] =
                  relu_mask_vector(sum[i][v], network_load_vector(active + i * LANES + v * SIMD_FLOATS)))
  }
  TILE_EACH(*(Vector *)(c + i * p->c_row + v * SIMD_FLOATS) = sum[i][v])
}

/* Computes a tile of full width. The call of its own keeps what the loops around it need out of the registers
 * of the sums. */
static void network_full_tile(const NetworkProduct *p, int row, int column, int rows) {
  SIMD_CALL(rows, SUM_ROWS, network_tile, p, row, column, SUM_VECTORS);
}

#if defined(__AVX512F__)
/* Computes the rest of a width that is not a multiple of 64. */
static void network_narrow_tile(const NetworkProduct *p, int row, int column, int rows, int vectors) {
  switch (vectors) {
  case 1: SIMD_CALL(rows, SUM_ROWS, network_tile, p, row, column, 1); break;
  case 2: SIMD_CALL(rows, SUM_ROWS, network_tile, p, row, column, 2); break;
  default: SIMD_CALL(rows, SUM_ROWS, network_tile, p, row, column, 3); break;
  }
}
#endif

/* Computes all columns of a tile's rows before the next rows: A is read once, and B, the smaller one, stays
 * in the first-level cache. */
static void network_product(const NetworkProduct *p) {
  const int tiles = (p->rows + SUM_ROWS - 1) / SUM_ROWS, width = SUM_VECTORS * SIMD_FLOATS;
  const int height = p->rows / tiles, higher = p->rows % tiles; /* 100 rows: 15 tiles of 6, 2 of 5 */
  for (int i = 0, row = 0; i < tiles; i++) {
    const int rows = height + (i < higher);
    for (int column = 0; column < p->columns; column += width) {
#if defined(__AVX512F__)
      if (p->columns - column < width)
        network_narrow_tile(p, row, column, rows, (p->columns - column) / SIMD_FLOATS);
      else
#endif
        network_full_tile(p, row, column, rows);
    }
    row += rows;
  }
}

/* Where the weights of each layer and the arrays of the workspace begin. */
typedef struct {
  const float *weight[NETWORK_MAX_LAYERS];
  float *active[NETWORK_MAX_LAYERS]; /* [width, 64] after the ReLU of hidden layer l, at l */
  float
      *delta[2]; /* [widest, 64]: derivatives of the loss with respect to a layer's outputs, used in turns */
  /* For the loss gradient, for layer l with columns = network_kernel_columns(inputs): */
  float *transposed[NETWORK_MAX_LAYERS]; /* [64, columns]: inputs, a one, zeros */
  float *gradient[NETWORK_MAX_LAYERS]; /* [out, columns]: weights, bias, zeros */
  const NetworkShape *shape;
} Layout;

static Layout layout_of(const NetworkShape *shape, const float *parameters, float *workspace) {
  Layout at = {.shape = shape};
  int widest = 0;
  for (int l = 0; l < shape->layers; l++) {
    int in = shape->width[l], out = shape->width[l + 1];
    at.weight[l] = parameters;
    parameters += (size_t)out * in + out;
    at.active[l] = workspace;
    workspace += (size_t)out * LANES;
    if (in > widest) widest = in;
    if (out > widest) widest = out;
  }
  for (int i = 0; i < 2; i++, workspace += (size_t)widest * LANES) at.delta[i] = workspace;
  for (int l = 0; l < shape->layers; l++) {
    size_t columns = (size_t)network_kernel_columns(shape->width[l]);
    at.transposed[l] = workspace;
    at.gradient[l] = workspace + columns * LANES;
    workspace = at.gradient[l] + columns * (size_t)shape->width[l + 1];
  }
  return at;
}

/* Runs `columns` lanes, 64 or what is left of them, through all layers; the last one writes y with row stride
 * y_row. */
static void forward_layers(const Layout *at, int columns, const float *x, size_t x_row, float *y,
                           size_t y_row) {
  const NetworkShape *shape = at->shape;
  for (int l = 0; l < shape->layers; l++) {
    int in = shape->width[l], out = shape->width[l + 1];
    bool last = l == shape->layers - 1;
    network_product(&(NetworkProduct){.rows = out,
                                      .columns = columns,
                                      .depth = in,
                                      .a = at->weight[l],
                                      .a_row = (size_t)in,
                                      .a_depth = 1,
                                      .b = l ? at->active[l - 1] : x,
                                      .b_row = l ? LANES : x_row,
                                      .c = last ? y : at->active[l],
                                      .c_row = last ? y_row : LANES,
                                      .bias = at->weight[l] + (size_t)out * in,
                                      .relu = !last});
  }
}

/* Propagates the lanes back through layer l: from delta, the slope with respect to its output, to W' delta,
 * the slope with respect to its input, which is zero where the preceding ReLU was off. */
static void network_backward(const Layout *at, int l, int columns, const float *delta, size_t delta_row,
                             float *out, size_t out_row) {
  const NetworkShape *shape = at->shape;
  network_product(&(NetworkProduct){.rows = shape->width[l],
                                    .columns = columns,
                                    .depth = shape->width[l + 1],
                                    .a = at->weight[l],
                                    .a_row = 1,
                                    .a_depth = (size_t)shape->width[l],
                                    .b = delta,
                                    .b_row = delta_row,
                                    .c = out,
                                    .c_row = out_row,
                                    .active = l ? at->active[l - 1] : NULL});
}

/* Computes to[64, n] = the transpose of x[n, 64], in rows of `columns`. */
static void network_transpose(int n, const float *x, size_t x_row, int columns, float *to) {
  int quads = n / 4 * 4;
  for (int i = 0; i < quads; i += 4) {
    const float *from = x + (size_t)i * x_row;
    for (int lane = 0; lane < LANES; lane += 4) {
      Quad r0 = *(const Quad *)(from + lane), r1 = *(const Quad *)(from + x_row + lane);
      Quad r2 = *(const Quad *)(from + 2 * x_row + lane), r3 = *(const Quad *)(from + 3 * x_row + lane);
      Quad low01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5),
           high01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
      Quad low23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5),
           high23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
      float *out = to + (size_t)lane * columns + i;
      *(Quad *)out = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
      *(Quad *)(out + columns) = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
      *(Quad *)(out + 2 * columns) = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
      *(Quad *)(out + 3 * columns) = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
    }
  }
  for (int lane = 0; lane < LANES; lane++)
    for (int i = quads; i < n; i++) to[(size_t)lane * columns + i] = x[(size_t)i * x_row + lane];
}

static int network_lanes_left(int lanes, int first) { return lanes - first < LANES ? lanes - first : LANES; }

void network_forward(const NetworkShape *shape, const float *parameters, int lanes, const float *x, float *y,
                     float *workspace) {
  Layout at = layout_of(shape, parameters, workspace);
  ASSERT(lanes % NETWORK_GRAIN == 0);
  for (int lane = 0; lane < lanes; lane += LANES)
    forward_layers(&at, network_lanes_left(lanes, lane), x + lane, (size_t)lanes, y + lane, (size_t)lanes);
}

void network_vjp(const NetworkShape *shape, const float *parameters, int lanes, const float *x,
                 const float *v, float *out, float *workspace) {
  Layout at = layout_of(shape, parameters, workspace);
  int last = shape->layers - 1;
  ASSERT(lanes % NETWORK_GRAIN == 0);
  for (int lane = 0; lane < lanes; lane += LANES) {
    const int columns = network_lanes_left(lanes, lane);
    forward_layers(&at, columns, x + lane, (size_t)lanes, at.active[last], LANES);
    const float *delta = v + lane;
    size_t delta_row = (size_t)lanes;
    for (int l = last; l > 0; l--) {
      float *next = at.delta[l % 2];
      network_backward(&at, l, columns, delta, delta_row, next, LANES);
      delta = next;
      delta_row = LANES;
    }
    network_backward(&at, 0, columns, delta, delta_row, out + lane, (size_t)lanes);
  }
}

void network_jacobian(const NetworkShape *shape, const float *parameters, int lanes, const float *x, float *y,
                      float *jacobian, float *workspace) {
  Layout at = layout_of(shape, parameters, workspace);
  const int last = shape->layers - 1;
  float ones[LANES];
  ASSERT(lanes % NETWORK_GRAIN == 0);
  for (int lane = 0; lane < LANES; lane++) ones[lane] = 1;
  for (int lane = 0; lane < lanes; lane += LANES) {
    const int columns = network_lanes_left(lanes, lane);
    forward_layers(&at, columns, x + lane, (size_t)lanes, y + lane, (size_t)lanes);
    for (int i = 0; i < shape->width[last + 1]; i++) {
      float *row = jacobian + (size_t)i * (size_t)shape->width[0] * (size_t)lanes + lane;
      float *delta = last > 0 ? at.delta[last % 2] : row;
      /* Back through the last layer with a slope of 1 at output i and 0 elsewhere. */
      network_product(&(NetworkProduct){.rows = shape->width[last],
                                        .columns = columns,
                                        .depth = 1,
                                        .a = at.weight[last] + (size_t)i * (size_t)shape->width[last],
                                        .a_row = 1,
                                        .b = ones,
                                        .c = delta,
                                        .c_row = last > 0 ? LANES : (size_t)lanes,
                                        .active = last ? at.active[last - 1] : NULL});
      for (int l = last - 1; l >= 0; l--) {
        float *next = l > 0 ? at.delta[l % 2] : row;
        network_backward(&at, l, columns, delta, LANES, next, l > 0 ? LANES : (size_t)lanes);
        delta = next;
      }
    }
  }
}

/* A loss to minimise: what its slopes are computed from, and the sum of its terms in each lane. */
typedef struct {
  int out;
  const float *target; /* [out, lanes] */
  size_t target_row;
  float scale; /* of the slopes */
  float sum[LANES];
} Loss;

static void network_squared_loss(void *context, int first, const float *y, float *slope) {
  Loss *loss = context;
  for (int j = 0; j < loss->out; j++) {
    const float *target = loss->target + (size_t)j * loss->target_row + first;
    for (int lane = 0; lane < LANES; lane++) {
      float difference = y[j * LANES + lane] - target[lane];
      slope[j * LANES + lane] = 2 * loss->scale * difference;
      loss->sum[lane] += difference * difference;
    }
  }
}

/* Computes -sum_j target_j log p_j, p = softmax(y), where the targets of a lane sum to 1; its slope is p -
 * target. */
static void network_entropy_loss(void *context, int first, const float *y, float *slope) {
  Loss *loss = context;
  const int out = loss->out;
  for (int lane = 0; lane < LANES; lane++) {
    float largest = y[lane], sum = 0;
    for (int j = 1; j < out; j++)
      if (y[j * LANES + lane] > largest) largest = y[j * LANES + lane];
    for (int j = 0; j < out; j++) sum += slope[j * LANES + lane] = expf(y[j * LANES + lane] - largest);
    float log_sum = largest + logf(sum);
    for (int j = 0; j < out; j++) {
      float wanted = loss->target[(size_t)j * loss->target_row + (size_t)(first + lane)];
      loss->sum[lane] += wanted * (log_sum - y[j * LANES + lane]);
      slope[j * LANES + lane] = loss->scale * (slope[j * LANES + lane] / sum - wanted);
    }
  }
}

/* Adds what 64 lanes contribute to the gradient of layer l, delta [x', 1]. */
static void network_add_gradient(const Layout *at, int l, const float *x, size_t x_row, const float *delta) {
  const NetworkShape *shape = at->shape;
  int columns = network_kernel_columns(shape->width[l]);
  network_transpose(shape->width[l], x, x_row, columns, at->transposed[l]);
  network_product(&(NetworkProduct){.rows = shape->width[l + 1],
                                    .columns = columns,
                                    .depth = LANES,
                                    .a = delta,
                                    .a_row = LANES,
                                    .a_depth = 1,
                                    .b = at->transposed[l],
                                    .b_row = (size_t)columns,
                                    .c = at->gradient[l],
                                    .c_row = (size_t)columns,
                                    .add = true});
}

void network_gradient(const NetworkShape *shape, const float *parameters, NetworkInputs inputs,
                      NetworkSlope *slope_of, void *context, float *gradient, float *workspace) {
  const float *x = inputs.x;
  const size_t x_row = inputs.row;
  Layout at = layout_of(shape, parameters, workspace);
  int last = shape->layers - 1;
  ASSERT(inputs.lanes % NETWORK_LANES == 0);
  for (int l = 0; l < shape->layers; l++) {
    const int in = shape->width[l], out = shape->width[l + 1], columns = network_kernel_columns(in);
    memset(at.transposed[l], 0,
           (size_t)(LANES + out) * (size_t)columns * sizeof(float)); /* and the gradient behind it */
    /* A column of ones after the inputs makes the bias one more weight. */
    for (int lane = 0; lane < LANES; lane++) at.transposed[l][(size_t)lane * columns + in] = 1.0f;
  }
  for (int lane = 0; lane < inputs.lanes; lane += LANES) {
    forward_layers(&at, LANES, x + lane, x_row, at.active[last], LANES);
    slope_of(context, lane, at.active[last], at.delta[last % 2]);
    for (int l = last; l > 0; l--) {
      network_add_gradient(&at, l, at.active[l - 1], LANES, at.delta[l % 2]);
      network_backward(&at, l, LANES, at.delta[l % 2], LANES, at.delta[(l - 1) % 2], LANES);
    }
    network_add_gradient(&at, 0, x + lane, x_row, at.delta[0]);
  }
  for (int l = 0; l < shape->layers; l++) { /* pack in the order of the parameters */
    const int in = shape->width[l], out = shape->width[l + 1], columns = network_kernel_columns(in);
    float *bias = gradient + (size_t)out * in;
    for (int j = 0; j < out; j++) {
      const float *row = at.gradient[l] + (size_t)j * columns;
      memcpy(gradient + (size_t)j * in, row, (size_t)in * sizeof(float));
      bias[j] = row[in];
    }
    gradient = bias + out;
  }
}

/* Returns a loss that is a mean over `count` terms, with target[width_L, lanes]. */
static Loss network_loss_of(const NetworkShape *shape, int lanes, const float *target, double count) {
  return (Loss){.out = shape->width[shape->layers],
                .target = target,
                .target_row = (size_t)lanes,
                .scale = (float)(1 / count)};
}

/* Returns the mean over `count` terms whose sums are those of the lanes. */
static float network_mean_loss(const Loss *loss, double count) {
  double sum = 0;
  for (int lane = 0; lane < LANES; lane++) sum += loss->sum[lane];
  return (float)(sum / count);
}

float network_loss_gradient(const NetworkShape *shape, const float *parameters, int lanes, const float *x,
                            const float *target, float *gradient, float *workspace) {
  const double count = (double)lanes * shape->width[shape->layers];
  const NetworkInputs inputs = {.lanes = lanes, .x = x, .row = (size_t)lanes};
  Loss loss = network_loss_of(shape, lanes, target, count);
  network_gradient(shape, parameters, inputs, network_squared_loss, &loss, gradient, workspace);
  return network_mean_loss(&loss, count);
}

float network_entropy_gradient(const NetworkShape *shape, const float *parameters, int lanes, const float *x,
                               const float *target, float *gradient, float *workspace) {
  const NetworkInputs inputs = {.lanes = lanes, .x = x, .row = (size_t)lanes};
  Loss loss = network_loss_of(shape, lanes, target, lanes);
  network_gradient(shape, parameters, inputs, network_entropy_loss, &loss, gradient, workspace);
  return network_mean_loss(&loss, lanes);
}

/* Computes delta [x', 1] for each lane separately: to[out in + out, 64]. */
static void network_weight_slopes(int in, int out, const float *x, size_t x_row, const float *delta,
                                  float *to) {
  for (int j = 0; j < out; j++)
    for (int k = 0; k < in; k++)
      for (int lane = 0; lane < LANES; lane++)
        to[(j * in + k) * LANES + lane] = delta[j * LANES + lane] * x[(size_t)k * x_row + (size_t)lane];
  memcpy(to + out * in * LANES, delta, (size_t)(out * LANES) * sizeof(float));
}

void network_sensitivity(const NetworkShape *shape, const float *parameters, const float *x, size_t x_row,
                         float *y, float *jacobian, float *workspace) {
  Layout at = layout_of(shape, parameters, workspace);
  const int last = shape->layers - 1;
  ASSERT(shape->width[shape->layers] == 1);
  forward_layers(&at, LANES, x, x_row, y, LANES);
  for (int lane = 0; lane < LANES; lane++) at.delta[last % 2][lane] = 1;
  for (int l = last; l > 0; l--) {
    network_weight_slopes(shape->width[l], shape->width[l + 1], at.active[l - 1], LANES, at.delta[l % 2],
                          jacobian + (at.weight[l] - parameters) * LANES);
    network_backward(&at, l, LANES, at.delta[l % 2], LANES, at.delta[(l - 1) % 2], LANES);
  }
  network_weight_slopes(shape->width[0], shape->width[1], x, x_row, at.delta[0], jacobian);
}
