/* The stage networks: every kernel against the plain double-precision reference, the reference against finite
 * differences, v3 against v4. */
#include "harness.h"
#include "levels.h"
#include "model/network/network_plain.h"

#include "core/arena.h"
#include "core/rng.h"
#include "model/network/network_kernel.h"

#include <stdlib.h>
#include <string.h>

DECLARE_LEVELS(network_forward);
DECLARE_LEVELS(network_vjp);
DECLARE_LEVELS(network_loss_gradient);
DECLARE_LEVELS(network_jacobian);
DECLARE_LEVELS(network_gradient);
DECLARE_LEVELS(network_sensitivity);

enum { LEVELS = 3, MOST_LANES = 256 };

typedef struct {
  SimdLevel level;
  void (*forward)(const NetworkShape *, const float *, int, const float *, float *, float *);
  void (*vjp)(const NetworkShape *, const float *, int, const float *, const float *, float *, float *);
  float (*loss_gradient)(const NetworkShape *, const float *, int, const float *, const float *, float *,
                         float *);
  void (*jacobian)(const NetworkShape *, const float *, int, const float *, float *, float *, float *);
  void (*gradient)(const NetworkShape *, const float *, NetworkInputs, NetworkSlope *, void *, float *,
                   float *);
  void (*sensitivity)(const NetworkShape *, const float *, const float *, size_t, float *, float *, float *);
} Kernel;

static const Kernel kernels[LEVELS] = {{SIMD_V1, network_forward_v1, network_vjp_v1, network_loss_gradient_v1,
                                        network_jacobian_v1, network_gradient_v1, network_sensitivity_v1},
                                       {SIMD_V3, network_forward_v3, network_vjp_v3, network_loss_gradient_v3,
                                        network_jacobian_v3, network_gradient_v3, network_sensitivity_v3},
                                       {SIMD_V4, network_forward_v4, network_vjp_v4, network_loss_gradient_v4,
                                        network_jacobian_v4, network_gradient_v4, network_sensitivity_v4}};

static const struct {
  int d, hidden_count, hidden[6];
} shapes[] = {{2, 2, {20, 20}},   {2, 2, {100, 100}},  {1, 1, {1}},
              {3, 0, {0}},        {5, 1, {7}},         {16, 2, {16, 31}},
              {100, 1, {13}},     {7, 3, {64, 33, 5}}, {2, 6, {8, 9, 10, 11, 12, 17}},
              {15, 2, {130, 47}}, {2, 2, {32, 32}},    {1, 1, {300}}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* One network with inputs, targets and results, in float and in double. */
typedef struct {
  NetworkShape shape;
  int lanes;
  size_t parameters, block; /* block = d * lanes */
  float *p, *x, *v, *out, *gradient, *workspace;
  double *p_exact, *x_exact, *v_exact, *expected, *gradient_exact;
} Example;

static double *normals(Rng *rng, size_t n, double scale, float *single) {
  double *out;
  CU_ASSERT_FATAL(memory_new((void **)&out, n, sizeof *out) == STATUS_OK);
  rng_normal(rng, (int)n, out);
  for (size_t i = 0; i < n; i++) {
    single[i] = (float)(scale * out[i]);
    out[i] = single[i]; /* both precisions hold the same number */
  }
  return out;
}

static float *floats(size_t n) {
  float *out;
  CU_ASSERT_FATAL(memory_new((void **)&out, n, sizeof *out) == STATUS_OK);
  return out;
}

static double *doubles(size_t n) {
  double *out;
  CU_ASSERT_FATAL(memory_new((void **)&out, n, sizeof *out) == STATUS_OK);
  return out;
}

static Example example(int index, int lanes) {
  Example e = {.lanes = lanes,
               .shape = network_shape(shapes[index].d, shapes[index].hidden_count, shapes[index].hidden,
                                      shapes[index].d)};
  Rng rng = {.key = rng_key(1, RNG_TEST), .run = (uint32_t)index};
  e.parameters = network_parameters(&e.shape);
  e.block = (size_t)shapes[index].d * (size_t)lanes;
  e.p = floats(e.parameters), e.x = floats(e.block), e.v = floats(e.block);
  e.out = floats(e.block), e.gradient = floats(e.parameters),
  e.workspace = floats(network_workspace(&e.shape));
  e.p_exact = normals(&rng, e.parameters, 0.3, e.p);
  e.x_exact = normals(&rng, e.block, 1, e.x);
  e.v_exact = normals(&rng, e.block, 1, e.v);
  e.expected = doubles(e.block), e.gradient_exact = doubles(e.parameters);
  return e;
}

static void example_free(Example *e) {
  void *blocks[] = {e->p,       e->x,       e->v,       e->out,      e->gradient,      e->workspace,
                    e->p_exact, e->x_exact, e->v_exact, e->expected, e->gradient_exact};
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

/* Copies column `lane` of x[d, lanes]. */
static void column(const Example *e, const double *x, int lane, double *out) {
  for (int i = 0; i < e->shape.width[0]; i++) out[i] = x[i * e->lanes + lane];
}

typedef enum { FORWARD, VJP } Pass;

static void expect(Example *e, Pass pass) {
  double x[128], v[128], y[128];
  for (int lane = 0; lane < e->lanes; lane++) {
    column(e, e->x_exact, lane, x);
    column(e, e->v_exact, lane, v);
    if (pass == FORWARD) network_plain_forward(&e->shape, e->p_exact, x, y);
    if (pass == VJP) network_plain_vjp(&e->shape, e->p_exact, x, v, y);
    for (int i = 0; i < e->shape.width[0]; i++) e->expected[i * e->lanes + lane] = y[i];
  }
}

/* Checks the largest difference divided by the largest expected size. float32 keeps 6e-8; sums of a few
 * hundred terms through a few layers lose a factor of 100 at most, unless a ReLU switches within rounding:
 * none does in these examples. */
static void check_close(size_t n, const float *actual, const double *expected) {
  double error = 0, size = 0;
  for (size_t i = 0; i < n; i++) {
    error = fmax(error, fabs(actual[i] - expected[i]));
    size = fmax(size, fabs(expected[i]));
  }
  CU_ASSERT(size > 0);
  CHECK_NEAR(error / size, 0, 5e-6);
}

static void test_forward(void) {
  for (int i = 0; i < SHAPES; i++)
    for (int lanes = 64; lanes <= MOST_LANES; lanes += 64) {
      Example e = example(i, lanes);
      expect(&e, FORWARD);
      for (int k = 0; k < LEVELS && kernels[k].level <= simd_level(); k++) {
        kernels[k].forward(&e.shape, e.p, lanes, e.x, e.out, e.workspace);
        check_close(e.block, e.out, e.expected);
      }
      example_free(&e);
    }
}

static void test_vjp(void) {
  for (int i = 0; i < SHAPES; i++)
    for (int lanes = 64; lanes <= MOST_LANES; lanes += 192) {
      Example e = example(i, lanes);
      expect(&e, VJP);
      for (int k = 0; k < LEVELS && kernels[k].level <= simd_level(); k++) {
        kernels[k].vjp(&e.shape, e.p, lanes, e.x, e.v, e.out, e.workspace);
        check_close(e.block, e.out, e.expected);
      }
      example_free(&e);
    }
}

/* Checks that the Jacobian is to the bit what `forward`, and `vjp` for unit vectors, give. */
static void test_jacobian(void) {
  for (int i = 0; i < SHAPES; i++) {
    enum { LANES = 128 };
    Example e = example(i, LANES);
    const size_t d = (size_t)e.shape.width[0], bytes = e.block * sizeof(float);
    float *jacobian = floats(d * e.block), *y = floats(e.block);
    for (int k = 0; k < LEVELS && kernels[k].level <= simd_level(); k++) {
      kernels[k].jacobian(&e.shape, e.p, LANES, e.x, y, jacobian, e.workspace);
      kernels[k].forward(&e.shape, e.p, LANES, e.x, e.out, e.workspace);
      CU_ASSERT(memcmp(y, e.out, bytes) == 0);
      for (size_t row = 0; row < d; row++) {
        for (size_t n = 0; n < e.block; n++) e.v[n] = n / LANES == row;
        kernels[k].vjp(&e.shape, e.p, LANES, e.x, e.v, e.out, e.workspace);
        for (size_t n = 0; n < e.block; n++) CU_ASSERT_FATAL(jacobian[row * e.block + n] == e.out[n]);
      }
    }
    free(jacobian);
    free(y);
    example_free(&e);
  }
}

static void test_loss_gradient(void) {
  for (int i = 0; i < SHAPES; i++)
    for (int lanes = 64; lanes <= MOST_LANES; lanes += 192) {
      Example e = example(i, lanes);
      double expected =
          network_plain_loss_gradient(&e.shape, e.p_exact, lanes, e.x_exact, e.v_exact, e.gradient_exact);
      for (int k = 0; k < LEVELS && kernels[k].level <= simd_level(); k++) {
        float loss;
        loss = kernels[k].loss_gradient(&e.shape, e.p, lanes, e.x, e.v, e.gradient, e.workspace);
        CHECK_NEAR(loss, expected, 2e-6 * expected);
        check_close(e.parameters, e.gradient, e.gradient_exact);
      }
      example_free(&e);
    }
}

/* Uses v as the slopes: those of sum_n v_n y_n. */
static void take_slopes(void *context, int first, const float *y, float *slope) {
  const Example *e = context;
  (void)y;
  for (int n = 0; n < NETWORK_LANES; n++) slope[n] = e->v[first + n];
}

/* Checks derivatives by the parameters with one output: those of lane n are the gradient of (y - t)^2 with t
 * = y - 1/2, and the gradient of sum_n v_n y_n is their sum. Inputs are in rows wider than the lanes that are
 * used. */
static void test_parameter_derivatives(void) {
  enum { LANES = 128, WIDE = 192 };
  for (int i = 0; i < SHAPES; i++) {
    Example e = example(i, WIDE);
    e.shape.width[e.shape.layers] = 1;
    const size_t p = network_parameters(&e.shape);
    float *jacobian = floats(p * NETWORK_LANES), y[NETWORK_LANES];
    double *sum = doubles(p), *expected = doubles(p * LANES), *one = doubles(p), x[128], output;
    for (int n = 0; n < LANES; n++) {
      column(&e, e.x_exact, n, x);
      network_plain_forward(&e.shape, e.p_exact, x, &output);
      double target = output - 0.5;
      network_plain_loss_gradient(&e.shape, e.p_exact, 1, x, &target, one);
      for (size_t k = 0; k < p; k++) {
        expected[((size_t)(n / NETWORK_LANES) * p + k) * NETWORK_LANES + (size_t)(n % NETWORK_LANES)] =
            one[k];
        sum[k] += e.v_exact[n] * one[k];
      }
    }
    for (int k = 0; k < LEVELS && kernels[k].level <= simd_level(); k++) {
      const NetworkInputs inputs = {.lanes = LANES, .x = e.x, .row = WIDE};
      kernels[k].gradient(&e.shape, e.p, inputs, take_slopes, &e, e.gradient, e.workspace);
      check_close(p, e.gradient, sum);
      for (int first = 0; first < LANES; first += NETWORK_LANES) {
        kernels[k].sensitivity(&e.shape, e.p, e.x + first, WIDE, y, jacobian, e.workspace);
        check_close(p * NETWORK_LANES, jacobian, expected + (size_t)first * p);
      }
    }
    void *blocks[] = {jacobian, sum, expected, one};
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) free(blocks[k]);
    example_free(&e);
  }
}

static void test_same_bits(void) {
  if (simd_level() < SIMD_V4) return;
  const Kernel *v3 = &kernels[1], *v4 = &kernels[2];
  for (int i = 0; i < SHAPES; i++) {
    Example e = example(i, 128), f = example(i, 128);
    float loss_e, loss_f;
    v3->forward(&e.shape, e.p, e.lanes, e.x, e.out, e.workspace);
    v4->forward(&f.shape, f.p, f.lanes, f.x, f.out, f.workspace);
    CU_ASSERT(!memcmp(e.out, f.out, e.block * sizeof *e.out));
    v3->vjp(&e.shape, e.p, e.lanes, e.x, e.v, e.out, e.workspace);
    v4->vjp(&f.shape, f.p, f.lanes, f.x, f.v, f.out, f.workspace);
    CU_ASSERT(!memcmp(e.out, f.out, e.block * sizeof *e.out));
    loss_e = v3->loss_gradient(&e.shape, e.p, e.lanes, e.x, e.v, e.gradient, e.workspace);
    loss_f = v4->loss_gradient(&f.shape, f.p, f.lanes, f.x, f.v, f.gradient, f.workspace);
    CU_ASSERT(!memcmp(&loss_e, &loss_f, sizeof loss_e));
    CU_ASSERT(!memcmp(e.gradient, f.gradient, e.parameters * sizeof *e.gradient));
    example_free(&e), example_free(&f);
  }
}

/* Checks that a lane does not depend on the lanes next to it. */
static void test_lanes_are_independent(void) {
  Example e = example(0, 128);
  float *shifted = floats(e.block), *out = floats(e.block);
  for (int i = 0; i < 2; i++)
    for (int lane = 0; lane < 128; lane++) shifted[i * 128 + lane] = e.x[i * 128 + (lane + 37) % 128];
  network_forward(&e.shape, e.p, 128, e.x, e.out, e.workspace);
  network_forward(&e.shape, e.p, 128, shifted, out, e.workspace);
  for (int i = 0; i < 2; i++)
    for (int lane = 0; lane < 128; lane++)
      CU_ASSERT(out[i * 128 + lane] == e.out[i * 128 + (lane + 37) % 128]);
  free(shifted), free(out);
  example_free(&e);
}

/* Checks that a lane does not depend on how many there are, in whole grains: of 64 and 16, 32 and 48 more. */
static void test_few_lanes(void) {
  for (int lanes = 64 + NETWORK_GRAIN; lanes < 128; lanes += NETWORK_GRAIN)
    for (int i = 0; i < SHAPES; i++) {
      Example e = example(i, 128);
      const int d = e.shape.width[0];
      const size_t row = (size_t)d * (size_t)d;
      float *few = floats(e.block), *out = floats(e.block), *jacobian = floats(row * 128),
            *all = floats(row * 128);
      for (int k = 0; k < d; k++)
        memcpy(few + k * lanes, e.x + k * 128, (size_t)lanes * sizeof *few); /* the first lanes */
      network_jacobian(&e.shape, e.p, 128, e.x, e.out, all, e.workspace);
      network_forward(&e.shape, e.p, lanes, few, out, e.workspace);
      for (int k = 0; k < d; k++)
        CU_ASSERT(memcmp(out + k * lanes, e.out + k * 128, (size_t)lanes * sizeof *out) == 0);
      network_jacobian(&e.shape, e.p, lanes, few, out, jacobian, e.workspace);
      network_vjp(&e.shape, e.p, 128, e.x, e.x, e.out, e.workspace);
      network_vjp(&e.shape, e.p, lanes, few, few, out, e.workspace);
      for (int k = 0; k < d; k++)
        CU_ASSERT(memcmp(out + k * lanes, e.out + k * 128, (size_t)lanes * sizeof *out) == 0);
      for (size_t k = 0; k < row; k++)
        CU_ASSERT(!memcmp(jacobian + k * (size_t)lanes, all + k * 128, (size_t)lanes * sizeof *out));
      free(few), free(out), free(jacobian), free(all);
      example_free(&e);
    }
}

/* Checks the gradient by central differences of the reference; the loss is piecewise quadratic, so their
 * error is rounding, 1e-16 / h. */
static void test_reference_gradient(void) {
  const double h = 1e-6;
  for (int i = 0; i < 6; i++) {
    Example e = example(i, 64);
    double *scratch = doubles(e.parameters);
    network_plain_loss_gradient(&e.shape, e.p_exact, 64, e.x_exact, e.v_exact, e.gradient_exact);
    for (size_t j = 0; j < e.parameters; j += 1 + e.parameters / 97) {
      double keep = e.p_exact[j], up, down;
      e.p_exact[j] = keep + h;
      up = network_plain_loss_gradient(&e.shape, e.p_exact, 64, e.x_exact, e.v_exact, scratch);
      e.p_exact[j] = keep - h;
      down = network_plain_loss_gradient(&e.shape, e.p_exact, 64, e.x_exact, e.v_exact, scratch);
      e.p_exact[j] = keep;
      CHECK_NEAR(e.gradient_exact[j], (up - down) / (2 * h), 1e-6);
    }
    free(scratch);
    example_free(&e);
  }
}

static void test_reference_vjp(void) {
  const double h = 1e-6;
  for (int i = 0; i < SHAPES; i++) {
    Example e = example(i, 64);
    int d = e.shape.width[0];
    double x[128], v[128], found[128], up[128], down[128];
    column(&e, e.x_exact, 5, x);
    column(&e, e.v_exact, 5, v);
    network_plain_vjp(&e.shape, e.p_exact, x, v, found);
    for (int j = 0; j < d; j++) {
      double keep = x[j], slope = 0;
      x[j] = keep + h;
      network_plain_forward(&e.shape, e.p_exact, x, up);
      x[j] = keep - h;
      network_plain_forward(&e.shape, e.p_exact, x, down);
      x[j] = keep;
      for (int k = 0; k < d; k++) slope += v[k] * (up[k] - down[k]) / (2 * h);
      CHECK_NEAR(found[j], slope, 1e-6 * (1 + fabs(slope)));
    }
    example_free(&e);
  }
}

static void test_shape(void) {
  NetworkShape shape = network_shape(2, 2, (int[]){20, 30}, 2);
  CU_ASSERT_EQUAL(shape.layers, 3);
  CU_ASSERT_EQUAL(network_parameters(&shape), 2 * 20 + 20 + 20 * 30 + 30 + 30 * 2 + 2);
}

int main(void) {
  CU_TestInfo tests[] = {{"shape", test_shape},
                         {"forward against the reference", test_forward},
                         {"vjp against the reference", test_vjp},
                         {"Jacobian", test_jacobian},
                         {"loss gradient against the reference", test_loss_gradient},
                         {"derivatives by the parameters against the reference", test_parameter_derivatives},
                         {"v3 and v4 give the same bits", test_same_bits},
                         {"lanes are independent", test_lanes_are_independent},
                         {"few lanes", test_few_lanes},
                         {"reference gradient against differences", test_reference_gradient},
                         {"reference vjp against differences", test_reference_vjp},
                         CU_TEST_INFO_NULL};
  return harness_run("network", tests);
}
