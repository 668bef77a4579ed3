/* Ratings that users gave to items: the public MovieLens sets, and files of the same form.
 *
 *   1m    user::movie::rating::timestamp, or without the time stamp     (MovieLens 1M and 10M)
 *   100k  user TAB item TAB rating TAB timestamp, or without the time stamp   (MovieLens 100K)
 *   csv   a header that names the columns (userId,movieId,rating,timestamp), then one rating a line
 *
 * with gzip or without. Files are read as a stream; only the ratings themselves are kept. */
#pragma once

#include "core/status.h"

#include <stdint.h>

/* One rating. Users and items are places in the lists of ids, not the ids of the file. */
typedef struct {
  int user, item;
  double value;
} Rating;

/* Sorted by user, then item, so that nothing depends on the order of lines or files. */
typedef struct {
  int64_t count;
  Rating *rating; /* [count] */
  int users, items;
  int64_t *user_id, *item_id; /* [users], [items], ascending */
} Ratings;

/* The words of a format: "auto 1m 100k csv"; auto reads the first line of each file. */
extern const char RATINGS_FORMATS[];

/* Reads all files as one set. Errors, each with file, line and the value that is wrong: STATUS_INPUT for a
 * line that does not have the form, an id that is not an integer in [1, 2^53], a rating that is not a
 * number in [-100, 100], an item that the same user rated before, compressed data that are damaged or cut
 * off, or no ratings at all; STATUS_FILE when a file cannot be read. The caller ends with ratings_free, also
 * after a failure. */
Status ratings_read(int input_count, const char *const *inputs, const char *format, Ratings *out);
void ratings_free(Ratings *ratings);

double ratings_mean(const Ratings *ratings);

/* Divides the users at random (purpose SPLIT): a `fraction` of them, at least one, is held out, and the
 * others are who is learned from. Both parts have the items that the latter rated, and no others; a user
 * who is held out and rated none of these is left out. STATUS_INPUT when a part is empty. The caller ends
 * with ratings_free, of both, also after a failure. */
Status ratings_split(const Ratings *ratings, double fraction, uint64_t seed, Ratings *learned,
                     Ratings *held_out);
