/* Internal to io/ratings: lines of text and the ratings in them. */
#pragma once

#include "core/status.h"

#include <stdint.h>

/* A rating as it stands in a file. */
typedef struct {
  int64_t user_id, item_id;
  double value;
  uint32_t input, line; /* which file, from 0, and where in it, from 1 */
} RatingLine;

/* Calls take(context, rating) for each line of a file, in order, until it fails. */
Status ratings_lines(const char *path, uint32_t input, const char *format,
                     Status (*take)(void *context, const RatingLine *rating), void *context);
