/* The optimal coupling of two sorted lists of n and m points in one dimension: a walk through both at once. A
 * point of the first carries m units of mass and one of the second n, so that all masses are whole; n m units
 * are 1.
 *
 *   for (Coupling at = coupling_begin(n, m); at.mass > 0; coupling_next(&at)) .. */
#pragma once

/* `mass` units go from point i to point j; 0: the end. */
typedef struct {
  int n, m, i, j, mass;
  int left_of_first, left_of_second;
} Coupling;

static inline Coupling coupling_begin(int n, int m) { return (Coupling){n, m, 0, 0, n < m ? n : m, m, n}; }

static inline void coupling_next(Coupling *at) {
  at->left_of_first -= at->mass;
  at->left_of_second -= at->mass;
  if (at->left_of_first == 0) at->i++, at->left_of_first = at->i < at->n ? at->m : 0;
  if (at->left_of_second == 0) at->j++, at->left_of_second = at->n;
  at->mass = at->left_of_first < at->left_of_second ? at->left_of_first : at->left_of_second;
}
