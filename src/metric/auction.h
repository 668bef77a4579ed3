/* Good dual variables for an assignment problem, soon: an auction with epsilon scaling (Bertsekas, Annals of
 * Operations Research 14, 1988) among whole numbers of 16 bits. */
#pragma once

#include "core/arena.h"

typedef struct Auction Auction;

/* Creates room for problems of up to `most` rows: 2 most^2 bytes. */
Status auction_create(Arena *memory, int most, Auction **out);

/* Computes v[stride]: the columns' dual variables and 0 beyond them, of a matching that is nearly the best
 * of cost[n, stride]. Costs are finite, rows padded and aligned as in metric/reduced.h. Any v is a valid
 * start; the better it is, the shorter are the paths that are still to be found. */
void auction_duals(Auction *auction, int n, int stride, const double *cost, double *v);
