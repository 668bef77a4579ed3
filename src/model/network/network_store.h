/* Networks in prior files. */
#pragma once

#include "io/store.h"
#include "model/network/network.h"

enum { NETWORK_MOST_HIDDEN = 6, NETWORK_MOST_UNITS = 1 << 16 /* most units of a layer in a file */ };

/* Saves networks of one shape, parameters[count, network_parameters], as weight_1(COUNT, units_1, units_0),
 * bias_1(COUNT, units_1), .., along the dimension with this id, whose length is `count`. */
Status network_store_save(const NetworkShape *shape, int count, const float *parameters, StoreFile *file,
                          int dimension);
/* Loads the widths of the hidden layers of a file with `count` networks: hidden[NETWORK_MOST_HIDDEN]. Returns
 * STATUS_INPUT if the layers do not lead from this many inputs to this many outputs. */
Status network_store_load_hidden(StoreFile *file, size_t count, size_t inputs, size_t outputs,
                                 int *hidden_count, int *hidden);
/* Loads parameters[count, network_parameters]. Returns STATUS_INPUT if one is not finite. */
Status network_store_load(const NetworkShape *shape, size_t count, StoreFile *file, float *parameters);
