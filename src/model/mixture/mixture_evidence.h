/* A mixture of Gaussians given Gaussian evidence (Lambda, b): component c becomes N(P_c^-1 h_c, P_c^-1), P_c
 * = S_c^-1 + Lambda, h_c = S_c^-1 m_c + b, with the weight
 *
 *     w_c |S_c|^-1/2 |P_c|^-1/2 exp(-m_c' S_c^-1 m_c / 2 + h_c' P_c^-1 h_c / 2). */
#pragma once

#include "model/mixture/mixture.h"

/* Computes out[C], the part of the log weight of each component that does not depend on the evidence, up to a
 * constant that depends only on the dimension. */
void mixture_evidence_constants(const Mixture *mixture, double *out);
/* Computes factor[d, d, N] = P_c and vector[d, N] = h_c from precision[d, d, N] = Lambda and b[d, N]. */
void mixture_evidence_add(const Mixture *mixture, int c, int lanes, const double *precision, const double *b,
                          double *factor, double *vector);
/* Computes log_weight[N] = constant + |L^-1 h|^2 / 2 - log |L| with factor[d, d, N] = L, the Cholesky
 * factor of P_c, and whitened[d, N] = L^-1 h_c. */
void mixture_evidence_weigh(int d, int lanes, double constant, const double *factor, const double *whitened,
                            double *log_weight);
/* Computes the same with one factor[d, d] for all lanes. */
void mixture_evidence_weigh_shared(int d, int lanes, double constant, const double *factor,
                                   const double *whitened, double *log_weight);
