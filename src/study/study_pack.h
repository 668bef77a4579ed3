/* Frozen problems for comparing posterior samplers, including those of other programs: a prior, a likelihood,
 * and histories whose exact posterior can be drawn from. Everything follows from the names and seeds here, so
 * nothing is stored; a test pins the digest of every problem's histories, and if any of them changes,
 * PACK_NAME must change too.
 *
 * A problem is a posterior study of one setting (study/posterior.c) whose histories are independent: each has
 * its own theta*, drawn from the prior, and the number of observations of its group. */
#pragma once

#include "model/history/history.h"
#include "problem/problem.h"

#define PACK_NAME "thompson-1"

/* Returns the name of problem number `index`, NULL after the last. */
const char *study_pack_name(int index);

/* Histories with the same number of observations. */
typedef struct {
  int observations, histories;
  uint32_t first; /* history number `first` of the problem is the first of these */
  double *x, *y; /* [histories, longest, d], [histories, longest]: part of those of the pack */
  double *theta; /* theta*[d, histories], hidden from samplers */
  History history; /* the same observations, in the form that samplers read */
} PackGroup;

typedef struct {
  const char *name, *summary;
  StudyFile *file; /* owned: the study whose setting the problem is */
  Problem problem;
  Prior prior; /* the distribution of theta* */
  int draws; /* per history */
  int histories, groups;
  PackGroup *group; /* [groups], by rising number of observations */
  int *observations, longest; /* [histories], and those of the last group */
  double *x, *y; /* of all histories; NaN after the observations of a history */
} Pack;

/* Creates the problem of that name or, if `name` is a Gaussian or mixture prior file, the problem with this
 * prior and Gaussian rewards of noise 1. *out must stay where it is; the caller must call study_pack_destroy,
 * also after an error. Returns STATUS_INPUT if there is no such problem, or if the file cannot be used. */
Status study_pack_create(Arena *memory, const char *name, Pack *out);
void study_pack_destroy(Pack *pack);

/* Computes the digest of all observations in order, as text of seven digits, so that it is the same if the
 * numbers agree up to rounding. */
Status study_pack_digest(const Pack *pack, char out[DIGEST_SIZE]);
