/* Embedding files, which `thompson prepare` writes and problem.family = embedding reads. Anybody can write
 * one: NetCDF with theta(item, dim), features(arm, dim) and the global attribute noise; and, if the choice is
 * not left to each study, held_out(item), which is 1 for an item that priors are not learned from. */
#pragma once

#include "io/io_dataset.h"

/* A bandit has to learn the theta of an item, and a row of features is an arm; phi' theta is the mean reward
 * of a linear bandit. */
typedef struct {
  int d;
  Samples theta; /* theta[d, items] */
  int held_out; /* this many items, the first ones, are kept for theta*; 0: each study chooses */
  int arms;
  double *features; /* [arms, d] */
  double noise; /* standard deviation sigma of rewards; NaN if the file does not say */
} Embedding;

/* Reads an embedding file with values of any numeric type. Errors: STATUS_INPUT if a variable is missing,
 * empty, transposed, of another dimension than the other, or holds a value that is not finite, if the noise
 * is not above zero, or if all or none of the items are held out. Items that are held out come first and then
 * the others, each in the order of the file. */
Status embedding_read(Arena *memory, const char *path, Embedding *out);

/* Begins an embedding file: writes provenance, theta, features, noise and held_out (theta has the sample
 * last, as in Embedding). The caller adds anything else there is to record and ends with store_finish;
 * `axes`, if not NULL, gets the ids of the dimensions item, arm and dim. */
Status embedding_create(const char *path, const char *title, const Embedding *embedding, int axes[3],
                        StoreFile **out);
