/* Frozen problems by which posterior samplers are compared, those of other programs too: a prior, a
 * likelihood, and histories whose exact posterior can be drawn from. Everything follows from the names and
 * seeds here, so nothing is stored; a test pins the digest of every problem's histories, and a change of any
 * is another PACK_NAME.
 *
 * A problem is a posterior study of one setting (study/posterior.c) whose histories are independent: each has
 * a theta* of its own, drawn from the prior, and as many observations as its group. */
#pragma once

#include "io/digest.h"
#include "model/history/history.h"
#include "problem/problem.h"

#define PACK_NAME "thompson-1"

/* Returns the name of problem number `index`, NULL behind the last. */
const char *pack_name(int index);

/* Histories of the same number of observations. */
typedef struct {
  int observations, histories;
  uint32_t first; /* history number `first` of the problem is the first of these */
  double *x, *y; /* [histories, observations, d], [histories, observations] */
  double *theta; /* theta*[d, histories], which nobody is shown */
  History history; /* the same observations, as samplers take them */
} PackGroup;

typedef struct {
  const char *name, *summary;
  Problem problem;
  Prior prior; /* the distribution of theta* */
  int draws; /* of each history */
  int histories, groups;
  PackGroup *group; /* [groups], by rising number of observations */
} Pack;

/* Makes the problem of that name; or, if `name` is a Gaussian or mixture prior file, the problem that has
 * it as prior, with Gaussian rewards of noise 1. *out must stay where it is; the caller ends with
 * pack_destroy, also after an error. STATUS_INPUT when there is no such problem, or the file cannot be
 * used. */
Status pack_create(Arena *memory, const char *name, Pack *out);
void pack_destroy(Pack *pack);

/* Computes the digest of all observations in order, as text of seven digits, so that it is the same
 * wherever the numbers agree up to rounding. */
Status pack_digest(const Pack *pack, char out[DIGEST_SIZE]);
