/* A mixture of Gaussians in a prior file: weight(component), mean(component, dim), covariance(component, dim,
 * dim2). Anyone can write one. */
#pragma once

#include "io/store.h"
#include "model/mixture/mixture.h"

/* Saves a mixture together with its dimensions; *dim is the id of the dimension of theta. */
Status mixture_save(const Mixture *mixture, StoreFile *file, int *dim);
/* Loads a mixture, which is not prepared. Returns STATUS_INPUT, with a message, if a number is out of
 * range. */
Status mixture_load(Arena *memory, StoreFile *file, Mixture *out);
