/* A mixture of Gaussians in a prior file: weight(component), mean(component, dim), covariance(component, dim,
 * dim2). Anyone can write one. */
#pragma once

#include "io/store.h"
#include "model/mixture/mixture.h"

/* Adds the dimensions too; *dim is the id of that of theta. */
Status mixture_save(const Mixture *mixture, StoreFile *file, int *dim);
/* Returns STATUS_INPUT, with a sentence, where a number is out of range; the mixture is not prepared. */
Status mixture_load(Arena *memory, StoreFile *file, Mixture *out);
