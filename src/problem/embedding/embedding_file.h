/* Embedding files: what `thompson prepare` writes and problem.family = embedding reads. Anybody can write
 * one: NetCDF with theta(item, dim), features(arm, dim) and the global attribute noise; and, where it is not
 * for each study to choose, held_out(item), 1 for an item that priors are not learned from. */
#pragma once

#include "io/dataset.h"

/* theta of the items is what a bandit has to learn, a row of features is an arm; phi' theta is the mean
 * reward of a linear bandit. */
typedef struct {
  int d;
  Samples theta; /* theta[d, items] */
  int held_out; /* the first so many items are kept for theta*; 0: whichever a study chooses */
  int arms;
  double *features; /* [arms, d] */
  double noise; /* reward standard deviation sigma; NaN when the file does not say */
} Embedding;

/* Reads an embedding file with values of any numeric type. Errors: STATUS_INPUT when a variable is
 * missing, empty, transposed, of another dimension than the other, or holds a value that is not finite,
 * when the noise is not above zero, or when all or none of the items are held out. Those that are come
 * first, in the order of the file, and then the others. */
Status embedding_read(Arena *memory, const char *path, Embedding *out);

/* Begins an embedding file: provenance, theta, features, noise, held_out (theta sample last, as in
 * Embedding). The caller adds what else there is to record and ends with store_commit or store_abandon;
 * `axes`, if not NULL, gets the ids of the dimensions item, arm and dim. */
Status embedding_create(const char *path, const char *title, const Embedding *embedding, int axes[3],
                        StoreFile **out);
