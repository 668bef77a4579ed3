#define REAL_WIDTH SIMD_DOUBLES
#include "sampler/diffusion/laplace_product.h"

#include "core/linalg/linalg_real.h"
#include "core/real.h"

int laplace_product_lanes(int lanes) { return (lanes + VECTOR_LANES - 1) / VECTOR_LANES * VECTOR_LANES; }

void laplace_product_begin(LaplaceEvidence *evidence) {
  const size_t square = (size_t)evidence->d * (size_t)evidence->d;
  Real *q = (Real *)evidence->precision;
  for (RealLanes at = real_begin(evidence->lanes); at.count > 0; real_next(&at), q += square)
    real_load(at, (int)square, evidence->basis, q);
}

/* The factors that a stage applies to draws, eigenvalues and rotated vectors. */
typedef struct {
  double sd, of_precision, of_vector; /* sqrt(v), v / alpha_bar, v / sqrt(alpha_bar) */
} Diffused;

/* Draws from the product in its eigenbasis, where the coordinates are independent: replaces z by the draw,
 * given the mean u of the conditional prior, of variance v. The mean moves towards the evidence by the share
 * gain / (1 + gain); without evidence the draw is u + sqrt(v) z. */
INLINE void product_in_basis(Diffused stage, int d, const Real *l, const Real *c, const Real *u, Real *z) {
  for (int i = 0; i < d; i++) {
    const Real gain = stage.of_precision * l[i], root = real_inverse_root(1 + gain);
    const Real mean = u[i] + (stage.of_vector * c[i] - gain * u[i]) * (root * root);
    z[i] = mean + stage.sd * root * z[i];
  }
}

/* Computes s = Q z, where z is the draw about u = Q' mu. */
INLINE void product_vectors(const LaplaceEvidence *evidence, Diffused stage, const double *mu,
                            const double *z, double *s, const int d, Real *scratch) {
  const Real *q = (const Real *)evidence->precision;
  Real *l = scratch, *c = l + d, *u = c + d, *draw = u + d;
  for (RealLanes at = real_begin(evidence->lanes); at.count > 0; real_next(&at), q += d * d) {
    real_load(at, d, evidence->eigenvalue, l);
    real_load(at, d, evidence->rotated, c);
    real_load(at, d, mu, draw);
    linalg_real_multiply_transposed(d, q, draw, u);
    real_load(at, d, z, draw);
    product_in_basis(stage, d, l, c, u, draw);
    linalg_real_multiply(d, q, draw, u);
    real_store(at, d, u, s);
  }
}

void laplace_product_draw(const LaplaceEvidence *evidence, const LaplaceStage *stage, const double *z,
                          double *s) {
  const double v = stage->v, alpha_bar = stage->alpha_bar;
  const Diffused diffused = {.sd = sqrt(v), .of_precision = v / alpha_bar, .of_vector = v / sqrt(alpha_bar)};
  if (evidence->d == 2) {
    Real registers[4 * 2];
    product_vectors(evidence, diffused, stage->mu, z, s, 2, registers);
  } else {
    product_vectors(evidence, diffused, stage->mu, z, s, evidence->d, (Real *)evidence->scratch);
  }
}
