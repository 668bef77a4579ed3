/* The Box-Muller transform of many pairs at once, for rng.c only; one version for each instruction level. */
#ifndef CORE_BOX_MULLER_H
#define CORE_BOX_MULLER_H

/* In place, for `pairs` (a multiple of 8) uniforms u, v in (0, 1): u <- sqrt(-2 log u) cos(2 pi v),
 * v <- sqrt(-2 log u) sin(2 pi v). v3 and v4 give the same bits. */
void box_muller_v4(int pairs, double *u, double *v);
void box_muller_v3(int pairs, double *u, double *v);
void box_muller_v1(int pairs, double *u, double *v);

#endif
