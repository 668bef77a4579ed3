#include "core/arena.h"
#include "core/rng.h"
#include "problem/embedding/ratings.h"

#include <math.h>
#include <stdbool.h>

/* Chooses held[users], a random subset of `count`, by the first places of a random order. */
static Status ratings_split_choose(int users, int count, uint64_t seed, bool *held) {
  SCRATCH_ARENA(scratch);
  Rng rng = {.key = rng_key(seed, RNG_SPLIT)};
  int *order;
  ALLOCATE(&scratch, order, users);
  for (int u = 0; u < users; u++) order[u] = u;
  for (int place = 0; place < count; place++) {
    const int other = place + (int)rng_index(&rng, (uint64_t)(users - place)), user = order[other];
    order[other] = order[place];
    held[user] = true;
  }
  return STATUS_OK;
}

/* Keeps the ids that are wanted, in order; place[n]: where each has gone, -1 where it is not wanted. */
static Status keep_ids(int n, const int64_t *from, const bool *wanted, int *place, int *count,
                       int64_t **ids) {
  NEW(*ids, n);
  *count = 0;
  for (int i = 0; i < n; i++) {
    place[i] = wanted[i] ? *count : -1;
    if (wanted[i]) (*ids)[(*count)++] = from[i];
  }
  return STATUS_OK;
}

/* Takes the ratings whose user and item are wanted. */
static Status ratings_split_take(const Ratings *from, const bool *user, const bool *item, Ratings *out) {
  SCRATCH_ARENA(scratch);
  int *user_place, *item_place;
  *out = (Ratings){0};
  ALLOCATE(&scratch, user_place, from->users);
  ALLOCATE(&scratch, item_place, from->items);
  TRY(keep_ids(from->users, from->user_id, user, user_place, &out->users, &out->user_id));
  TRY(keep_ids(from->items, from->item_id, item, item_place, &out->items, &out->item_id));
  NEW(out->rating, from->count);
  for (int64_t r = 0; r < from->count; r++) {
    const Rating *rating = &from->rating[r];
    if (!user[rating->user] || !item[rating->item]) continue;
    out->rating[out->count++] =
        (Rating){.user = user_place[rating->user], .item = item_place[rating->item], .value = rating->value};
  }
  return STATUS_OK;
}

static Status split(const Ratings *ratings, int count, uint64_t seed, Ratings *learned, Ratings *held_out) {
  SCRATCH_ARENA(scratch);
  bool *held, *rest, *seen, *known;
  ALLOCATE_ARRAYS(&scratch, ratings->users, held, rest, seen);
  ALLOCATE(&scratch, known, ratings->items);
  TRY(ratings_split_choose(ratings->users, count, seed, held));
  for (int u = 0; u < ratings->users; u++) rest[u] = !held[u];
  for (int64_t r = 0; r < ratings->count; r++)
    if (!held[ratings->rating[r].user]) known[ratings->rating[r].item] = true;
  for (int64_t r = 0; r < ratings->count; r++)
    if (held[ratings->rating[r].user] && known[ratings->rating[r].item]) seen[ratings->rating[r].user] = true;
  TRY(ratings_split_take(ratings, rest, known, learned));
  TRY(ratings_split_take(ratings, seen, known, held_out));
  if (held_out->count > 0) return STATUS_OK;
  return status_set(STATUS_INPUT, "none of the %d users held out rated what others did", count);
}

Status ratings_split(const Ratings *ratings, double fraction, uint64_t seed, Ratings *learned,
                     Ratings *held_out) {
  const int count = (int)fmax(1, round(fraction * ratings->users));
  *learned = *held_out = (Ratings){0};
  if (count >= ratings->users)
    return status_set(STATUS_INPUT, "%d of %d users held out: nobody is left to learn from", count,
                      ratings->users);
  Status status = split(ratings, count, seed, learned, held_out);
  if (status == STATUS_OK) return STATUS_OK;
  ratings_free(learned);
  ratings_free(held_out);
  return status;
}
