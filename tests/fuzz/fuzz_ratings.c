/* libFuzzer target for ratings (src/problem/embedding/ratings.c), compressed or not.
 *
 * Ratings that are accepted must be sorted, with each pair once, ids ascending and in range, and values in
 * range, and must come back the same when they are printed as CSV and read again.
 *
 * Built and run by preset clang, with -max_len=4096 (tests/fuzz/CMakeLists.txt). */
#include "core/status.h"
#include "problem/embedding/ratings.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static Arena kept; /* what an input gives */

static Status read_bytes(const void *bytes, size_t size, const char *format, Ratings *ratings) {
  char path[64];
  const char *input = path;
  int file = memfd_create("ratings", 0);
  if (file < 0 || write(file, bytes, size) != (ssize_t)size) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  Status status = ratings_read(&kept, 1, &input, format, ratings);
  close(file);
  return status;
}

static bool ids_are_good(int count, const int64_t *ids) {
  for (int i = 0; i < count; i++)
    if (ids[i] < 1 || ids[i] > INT64_C(1) << 53 || (i > 0 && ids[i] <= ids[i - 1])) return false;
  return count > 0;
}

static bool are_good(const Ratings *ratings) {
  for (int64_t i = 0; i < ratings->count; i++) {
    const Rating *rating = &ratings->rating[i], *last = i ? rating - 1 : NULL;
    if (rating->user < 0 || rating->user >= ratings->users || rating->item < 0 ||
        rating->item >= ratings->items || !(fabs(rating->value) <= 100))
      return false;
    if (last && (last->user > rating->user || (last->user == rating->user && last->item >= rating->item)))
      return false;
  }
  return ratings->count > 0 && ids_are_good(ratings->users, ratings->user_id) &&
         ids_are_good(ratings->items, ratings->item_id);
}

static bool are_equal(const Ratings *a, const Ratings *b) {
  return a->count == b->count && a->users == b->users && a->items == b->items &&
         memcmp(a->rating, b->rating, (size_t)a->count * sizeof *a->rating) == 0 &&
         memcmp(a->user_id, b->user_id, (size_t)a->users * sizeof *a->user_id) == 0 &&
         memcmp(a->item_id, b->item_id, (size_t)a->items * sizeof *a->item_id) == 0;
}

static size_t print(const Ratings *ratings, char **text) {
  size_t size;
  FILE *stream = open_memstream(text, &size);
  if (!stream) abort();
  fprintf(stream, "rating,movieId,userId\n");
  for (int64_t i = ratings->count - 1; i >= 0; i--)
    fprintf(stream, "%.17g,%lld,%lld\n", ratings->rating[i].value,
            (long long)ratings->item_id[ratings->rating[i].item],
            (long long)ratings->user_id[ratings->rating[i].user]);
  fclose(stream);
  return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const formats[] = {"auto", "1m", "100k", "csv"};
  arena_free(&kept);
  for (int f = 0; f < 4; f++) {
    Ratings ratings, again;
    if (read_bytes(data, size, formats[f], &ratings) != STATUS_OK) {
      if (ratings.rating || status_message()[0] == '\0') abort();
      continue;
    }
    if (!are_good(&ratings)) abort();
    char *text;
    size_t length = print(&ratings, &text);
    if (read_bytes(text, length, "auto", &again) != STATUS_OK || !are_equal(&ratings, &again)) abort();
    free(text);
  }
  return 0;
}
