/* A prior whose networks are counted: what a sampler asks of a learned reverse chain, in multiply-adds of the
 * networks' matrix products and in bytes of their weights. */
#pragma once

#include "model/network/network.h"
#include "model/prior/prior.h"

typedef struct {
  Prior prior; /* to be used in place of the one that was given */
  /* Since they were last set to 0: two floating-point operations for each weight and lane that an evaluation
   * takes, as many again for a product with the Jacobian; weights once for each call. */
  double flops, bytes;
  /* Private. */
  Chain chain;
  const Chain *inner;
  double forward, jacobian, weights; /* flops of a lane, of all rows of its Jacobian, bytes */
} Counted;

/* Begins to count the networks of `prior`, which have this shape; NULL: it has none, and nothing is
 * counted. It is not owned, and *out must stay where it is. */
void counted_begin(const Prior *prior, const NetworkShape *shape, Counted *out);
