#include "problem/embedding/ratings.h"

#include "core/arena.h"
#include "core/memory.h"
#include "problem/embedding/ratings_lines.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Ratings as they come from the files. */
typedef struct {
  RatingLine *line; /* [capacity] */
  int64_t count, capacity;
} Pile;

static Status grow(Pile *pile) {
  RatingLine *larger;
  int64_t capacity = pile->capacity ? 2 * pile->capacity : 4096;
  NEW(larger, capacity);
  if (pile->count) memcpy(larger, pile->line, (size_t)pile->count * sizeof *larger);
  free(pile->line);
  pile->line = larger;
  pile->capacity = capacity;
  return STATUS_OK;
}

static Status take(void *context, const RatingLine *rating) {
  Pile *pile = context;
  if (pile->count == pile->capacity) TRY(grow(pile));
  pile->line[pile->count++] = *rating;
  return STATUS_OK;
}

static int compare_ids(const void *a, const void *b) {
  int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
  return (first > second) - (first < second);
}

static int compare_lines(const void *a, const void *b) {
  const RatingLine *first = a, *second = b;
  if (first->user_id != second->user_id) return first->user_id < second->user_id ? -1 : 1;
  if (first->item_id != second->item_id) return first->item_id < second->item_id ? -1 : 1;
  if (first->input != second->input) return first->input < second->input ? -1 : 1;
  return (first->line > second->line) - (first->line < second->line);
}

/* Sorts ids[n] and keeps each once; returns how many. */
static int64_t unique(int64_t n, int64_t *ids) {
  int64_t kept = 0;
  qsort(ids, (size_t)n, sizeof *ids, compare_ids);
  for (int64_t i = 0; i < n; i++)
    if (kept == 0 || ids[kept - 1] != ids[i]) ids[kept++] = ids[i];
  return kept;
}

/* Lists the different ids of one column, ascending. */
static Status list_ids(const Pile *pile, bool items, int *count, int64_t **out) {
  SCRATCH_ARENA(scratch);
  int64_t *ids;
  ALLOCATE(&scratch, ids, pile->count);
  for (int64_t i = 0; i < pile->count; i++) ids[i] = items ? pile->line[i].item_id : pile->line[i].user_id;
  int64_t n = unique(pile->count, ids);
  Status status = STATUS_OK;
  if (n > INT_MAX)
    status = status_set(STATUS_INPUT, "%lld different %s: too many", (long long)n, items ? "items" : "users");
  else
    status = memory_new((void **)out, (size_t)n, sizeof *ids);
  if (status == STATUS_OK) memcpy(*out, ids, (size_t)n * sizeof *ids), *count = (int)n;
  return status;
}

static int place_of(int count, const int64_t *ids, int64_t id) {
  const int64_t *found = bsearch(&id, ids, (size_t)count, sizeof *ids, compare_ids);
  ASSERT(found);
  return (int)(found - ids);
}

static Status refuse_repeats(const Pile *pile, const char *const *inputs) {
  for (int64_t i = 1; i < pile->count; i++) {
    const RatingLine *first = &pile->line[i - 1], *second = &pile->line[i];
    if (first->user_id == second->user_id && first->item_id == second->item_id)
      return status_set(STATUS_INPUT, "%s:%u: user %lld rates item %lld a second time (first at %s:%u)",
                        inputs[second->input], second->line, (long long)second->user_id,
                        (long long)second->item_id, inputs[first->input], first->line);
  }
  return STATUS_OK;
}

static Status build(Pile *pile, const char *const *inputs, Ratings *out) {
  qsort(pile->line, (size_t)pile->count, sizeof *pile->line, compare_lines);
  TRY(refuse_repeats(pile, inputs));
  TRY(list_ids(pile, false, &out->users, &out->user_id));
  TRY(list_ids(pile, true, &out->items, &out->item_id));
  NEW(out->rating, pile->count);
  out->count = pile->count;
  for (int64_t i = 0; i < pile->count; i++) {
    const RatingLine *line = &pile->line[i];
    out->rating[i] = (Rating){.user = place_of(out->users, out->user_id, line->user_id),
                              .item = place_of(out->items, out->item_id, line->item_id),
                              .value = line->value};
  }
  return STATUS_OK;
}

Status ratings_read(int input_count, const char *const *inputs, const char *format, Ratings *out) {
  Pile pile = {0};
  Status status = STATUS_OK;
  *out = (Ratings){0};
  for (int i = 0; i < input_count && status == STATUS_OK; i++)
    status = ratings_lines(inputs[i], (uint32_t)i, format, take, &pile);
  if (status == STATUS_OK && pile.count == 0)
    status = status_set(STATUS_INPUT, "%s: no ratings", input_count ? inputs[0] : "no file given");
  if (status == STATUS_OK) status = build(&pile, inputs, out);
  free(pile.line);
  if (status != STATUS_OK) ratings_free(out);
  return status;
}

void ratings_free(Ratings *ratings) {
  free(ratings->rating);
  free(ratings->user_id);
  free(ratings->item_id);
  *ratings = (Ratings){0};
}

double ratings_mean(const Ratings *ratings) {
  double sum = 0;
  for (int64_t i = 0; i < ratings->count; i++) sum += ratings->rating[i].value;
  return sum / (double)ratings->count;
}
