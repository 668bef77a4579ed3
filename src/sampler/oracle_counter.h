/* How often a sampler asks the prior: a copy of a prior that counts evaluations of its chain and denoiser. */
#pragma once

#include "model/prior/prior.h"

typedef struct {
  Prior prior; /* to be used in place of the original; refers to this struct and to the original */
  Chain chain;
  Denoiser denoiser;
  const Prior *original;
  int64_t calls; /* so far: one for each point, and one for each product with a Jacobian there */
} OracleCounter;

/* Begins to count. `original` and *out must stay where they are. */
void oracle_counter_begin(const Prior *original, OracleCounter *out);
