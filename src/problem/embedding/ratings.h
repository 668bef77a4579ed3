/* Ratings that users gave to items: the public MovieLens sets, and files of the same form.
 *
 *   1m    user::movie::rating::timestamp, or without the time stamp     (MovieLens 1M and 10M)
 *   100k  user TAB item TAB rating TAB timestamp, or without the time stamp   (MovieLens 100K)
 *   csv   a header that names the columns (userId,movieId,rating,timestamp), then one rating per line
 *
 * with gzip or without. Files are read as a stream; only the ratings themselves are kept. */
#pragma once

#include "core/arena.h"

#include <stdint.h>

/* One rating. Users and items are places in the lists of ids, not ids of the file. */
typedef struct {
  int user, item;
  double value;
} Rating;

/* Ratings sorted by user, then item, so that nothing depends on the order of lines or files. */
typedef struct {
  int64_t count;
  Rating *rating; /* [count] */
  int users, items;
  int64_t *user_id, *item_id; /* [users], [items], ascending */
} Ratings;

/* The names of formats: "auto 1m 100k csv"; auto tells the format from the first line of each file. */
extern const char RATINGS_FORMATS[];

/* Reads all files as one set. Errors, each with the file, the line and the wrong value: STATUS_INPUT for a
 * line of another form, an id that is not an integer in [1, 2^53], a rating that is not a number in [-100,
 * 100], an item that the same user has already rated, compressed data that are damaged or cut off, or no
 * ratings at all; STATUS_FILE if a file cannot be read. */
Status ratings_read(Arena *memory, int input_count, const char *const *inputs, const char *format,
                    Ratings *out);

double ratings_mean(const Ratings *ratings);

/* Divides the users at random (purpose SPLIT): a `fraction` of them, but at least one user, is held out, and
 * the others are learned from. Both parts contain only items that the latter rated; a user who is held out
 * and rated none of these is left out. STATUS_INPUT if a part is empty. */
Status ratings_split(Arena *memory, const Ratings *ratings, double fraction, uint64_t seed, Ratings *learned,
                     Ratings *held_out);
