/* thompson prepare movielens --option tasks=users: what somebody has who recommends movies to new users. The
 * movies' vectors, factorised from the ratings of some users, are the features of arms; a user who was held
 * out is a task, whose theta* is the vector that fits the user's ratings of these movies; and the ratings of
 * the others are the logs that a prior is learned from (`thompson train --logs`). */
#pragma once

#include "core/arena.h"
#include "io/dataset.h"
#include "io/store.h"
#include "problem/embedding/factorisation.h"

/* Samples of theta and the id of each in the input files. */
typedef struct {
  Samples samples;
  int64_t *id; /* [samples.n] */
} NamedTheta;

/* Makes samples of rows[n, d], in `memory`. */
Status theta_of_rows(Arena *memory, int n, const int64_t *id, int d, const double *rows, NamedTheta *out);

/* Computes first the users who are held out, by a ridge regression of their ratings on the movies'
 * vectors, then the factorisation's vectors of the others. */
Status users_theta(Arena *memory, const Ratings *ratings, const Ratings *held_out,
                   const FactorisationSetup *setup, const Factorisation *result, NamedTheta *out);

/* Writes logs into an embedding file, whose dimension of theta is `dim`: task(observation), the user;
 * x(observation, dim), the movie's vector; and y(observation), the rating less the mean. */
Status users_write_logs(StoreFile *file, int dim, const Ratings *ratings, const Factorisation *result);
