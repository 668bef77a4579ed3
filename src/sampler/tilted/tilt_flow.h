/* The flow of a quadratic tilt along the Ornstein-Uhlenbeck process (Bruna and Han, Tilted transport,
 * equation 1), in closed form for each eigenvalue of Q.
 *
 * X_s = e^-s X_0 + sqrt(1 - e^-2s) w, so stage t of a chain has alpha_bar_t = e^-2s, and with c = e^2s - 1 =
 * (1 - alpha_bar_t) / alpha_bar_t
 *
 *   q_t = (1 + c) q / (1 - c q),  b_t = sqrt(1 + c) b / (1 - c q):
 *
 * when X_t has the law nu_t ~ p_t(x) exp(b_t' x - x' Q_t x / 2), the reverse process of the prior, with no
 * evidence in it, takes it to the posterior nu_0. The flow ends where c lambda_max(Q) = 1 (the time T* of the
 * paper); the distance to it is measured by the number 1 - c lambda_max. */
#pragma once

#include "model/denoiser/schedule.h"

/* Returns c of a stage, 0 .. T. */
double tilt_flow_reach(const Schedule *schedule, int t);

/* Returns the last stage with c largest <= 1 - margin, at most T; 0 when there is none. */
int tilt_flow_stage(const Schedule *schedule, double largest, double margin);

/* Takes q[n] and b[n], `stride` apart, eigenvalue by eigenvalue, to those at c, in place; c q < 1. Zeros
 * stay zeros. */
void tilt_flow(int n, int stride, double c, double *q, double *b);
