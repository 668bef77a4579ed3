#include "problem/embedding/ratings.h"
#include "core/numeral.h"

#include "core/rng.h"
#include "io/gzip.h"
#include "io/input.h"

#include <fenv.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* A rating as it stands in a file. */
typedef struct {
  int64_t user_id, item_id;
  double value;
  uint32_t input, line; /* which file, from 0, and where in it, from 1 */
} RatingLine;

enum {
  LINE_SIZE = 4096, /* of the longest line */
  SHOWN_SIZE = 40, /* of a bad value, in a message */
  MOST_FIELDS = 64
};

static const int64_t MOST_ID = INT64_C(1) << 53; /* exact as a double, for those who read ids in Python */
static const double MOST_RATING = 100;

const char RATINGS_FORMATS[] = "auto 1m 100k csv";

typedef struct {
  const char *name, *separator, *form;
  bool header;
} Format;

static const Format formats[] = {
    {"1m", "::", "user::movie::rating or user::movie::rating::timestamp", false},
    {"100k", "\t", "user, item, rating and optionally a timestamp, separated by tabs", false},
    {"csv", ",", "the columns of the header, separated by commas", true}};
enum { FORMATS = sizeof formats / sizeof *formats };

/* Columns that a header must name, and the names that they have in public sets. */
enum { USER, ITEM, RATING, COLUMNS };
static const char *const column_names[COLUMNS][5] = {
    {"userId", "user_id", "user"}, {"movieId", "item_id", "movie_id", "item"}, {"rating"}};

typedef struct {
  GzipFile file;
  const char *path;
  long number; /* of the current line, from 1 */
  const Format *format;
  int column[COLUMNS]; /* which field is the user, the item, the rating */
  int fields; /* of every line; 0: not yet known, the first line decides */
  int field_count; /* of the current line */
  char *field[MOST_FIELDS]; /* NUL-terminated pieces of `line` */
  char line[LINE_SIZE + 2]; /* with its line end */
} Lines;

#define LINE_ERROR(lines, format, ...)                                                                       \
  status_set(STATUS_INPUT, "%s:%ld: " format, (lines)->path, (lines)->number, ##__VA_ARGS__)

/* Returns the beginning of `text` in a form that can be shown in a message. */
static const char *ratings_shown_text(const char *text, char out[SHOWN_SIZE + 4]) {
  int n = 0;
  for (; text[n] && n < SHOWN_SIZE; n++) {
    unsigned char c = (unsigned char)text[n];
    out[n] = (char)(c < ' ' || c > '~' ? '?' : c);
  }
  strcpy(out + n, text[n] ? "..." : "");
  return out;
}

/* Reads the next line and removes its line end; *end is set if there is none. */
static Status ratings_next_line(Lines *lines, bool *end) {
  size_t length;
  lines->number++;
  TRY(gzip_read_line(&lines->file, lines->line, sizeof lines->line, &length));
  *end = length == 0;
  if (length > 0 && lines->line[length - 1] == '\n') length--;
  if (length > LINE_SIZE)
    return LINE_ERROR(lines, "more than %d characters without a line end; is this a ratings file?",
                      LINE_SIZE);
  if (length > 0 && lines->line[length - 1] == '\r') length--;
  lines->line[length] = '\0';
  const char *kind = lines->number == 1 ? input_kind(length, lines->line) : NULL;
  if (kind) return status_set(STATUS_INPUT, "%s: this is %s; ratings are text in UTF-8", lines->path, kind);
  if (memchr(lines->line, '\0', length)) return LINE_ERROR(lines, "a zero byte; is this a ratings file?");
  if (lines->number == 1 && strncmp(lines->line, "\xef\xbb\xbf", 3) == 0) /* a byte order mark */
    memmove(lines->line, lines->line + 3, length - 2);
  return STATUS_OK;
}

/* Removes in place the quotes of the field that begins at `from` with one; "" in it is a quote. Returns what
 * follows it, or NULL if it has no closing quote. */
static char *ratings_unquote(char *from) {
  char *to = from, *c = from + 1;
  for (; *c; c++) {
    if (*c == '"' && *++c != '"') {
      *to = '\0';
      return c;
    }
    *to++ = *c;
  }
  return NULL;
}

/* Cuts the line into fields. Those of CSV may be quoted. */
static Status ratings_split_line(Lines *lines) {
  const char *separator = lines->format->separator;
  char *from = lines->line, *next;
  lines->field_count = 0;
  for (; from; from = next) {
    if (lines->field_count == MOST_FIELDS) return LINE_ERROR(lines, "more than %d fields", MOST_FIELDS);
    char *rest = lines->format->header && *from == '"' ? ratings_unquote(from) : from;
    if (!rest || (rest != from && *rest && strncmp(rest, separator, strlen(separator)) != 0))
      return LINE_ERROR(lines, "field %d %s its closing quote", lines->field_count + 1,
                        rest ? "continues after" : "lacks");
    next = strstr(rest, separator);
    if (next) {
      *next = '\0';
      next += strlen(separator);
    }
    lines->field[lines->field_count++] = from;
  }
  return STATUS_OK;
}

static Status ratings_parse_id(const Lines *lines, int column, const char *what, int64_t *id) {
  const char *text = lines->field[lines->column[column]];
  char value[SHOWN_SIZE + 4];
  *id = 0;
  const char *c = text;
  for (; *c >= '0' && *c <= '9' && *id <= MOST_ID; c++) *id = 10 * *id + (*c - '0');
  if (*c || c == text || *id < 1 || *id > MOST_ID)
    return LINE_ERROR(lines, "the %s is '%s'; an id is an integer from 1 to 2^53", what,
                      ratings_shown_text(text, value));
  return STATUS_OK;
}

static Status ratings_parse_line(Lines *lines, RatingLine *out) {
  TRY(ratings_split_line(lines));
  if (lines->fields == 0) lines->fields = lines->field_count == COLUMNS ? COLUMNS : COLUMNS + 1;
  if (lines->field_count != lines->fields)
    return LINE_ERROR(lines, "%s, expected %d: %s (format %s)",
                      numeral_count(lines->field_count, "field").text, lines->fields, lines->format->form,
                      lines->format->name);
  TRY(ratings_parse_id(lines, USER, "user", &out->user_id));
  TRY(ratings_parse_id(lines, ITEM, "item", &out->item_id));
  const char *text = lines->field[lines->column[RATING]];
  char value[SHOWN_SIZE + 4], *end;
  const bool plain = text[0] && text[strspn(text, "+-.0123456789eE")] == '\0';
  out->value = plain ? strtod(text, &end) : NAN;
  if (!plain || *end || !(fabs(out->value) <= MOST_RATING))
    return LINE_ERROR(lines, "the rating is '%s'; a rating is a number from %g to %g",
                      ratings_shown_text(text, value), -MOST_RATING, MOST_RATING);
  return STATUS_OK;
}

/* Finds the columns in the header of a CSV file. */
static Status ratings_read_header(Lines *lines) {
  TRY(ratings_split_line(lines));
  lines->fields = lines->field_count;
  for (int column = 0; column < COLUMNS; column++) {
    lines->column[column] = -1;
    for (int f = 0; f < lines->field_count; f++)
      for (const char *const *name = column_names[column]; *name; name++)
        if (strcasecmp(lines->field[f], *name) == 0) lines->column[column] = f;
    if (lines->column[column] < 0)
      return LINE_ERROR(lines,
                        "no column '%s'; the header of a CSV file must name userId, movieId and rating",
                        column_names[column][0]);
  }
  return STATUS_OK;
}

/* Ratings as they come from the files. */
typedef struct {
  Arena memory; /* of `line` */
  RatingLine *line; /* [capacity] */
  int64_t count, capacity;
} Pile;

/* Adds the ratings of an open file. The first line shows the format, and may be a header; blank lines are
 * allowed only at the end. */
static Status ratings_read_lines(Lines *lines, uint32_t input, const char *format, Pile *pile) {
  long blank = 0;
  for (;;) {
    bool end;
    TRY(ratings_next_line(lines, &end));
    if (end) return STATUS_OK;
    if (lines->line[strspn(lines->line, " \t")] == '\0') {
      if (!blank) blank = lines->number;
      continue;
    }
    if (blank) return status_set(STATUS_INPUT, "%s:%ld: a blank line before the end", lines->path, blank);
    if (lines->number == 1) { /* the format is given by its name, or by what separates the fields */
      char text[SHOWN_SIZE + 4];
      for (int f = 0; f < FORMATS; f++)
        if (strcmp(format, formats[f].name) == 0) lines->format = &formats[f];
      for (int f = 0; f < FORMATS && !lines->format; f++)
        if (strstr(lines->line, formats[f].separator)) lines->format = &formats[f];
      if (!lines->format)
        return LINE_ERROR(lines,
                          "'%s' is not a rating; known forms are user::movie::rating::timestamp (with or "
                          "without the timestamp), the same with tabs, and CSV with a header",
                          ratings_shown_text(lines->line, text));
      for (int column = 0; column < COLUMNS; column++) lines->column[column] = column;
      if (lines->format->header) {
        TRY(ratings_read_header(lines));
        continue;
      }
    }
    if (lines->number > UINT32_MAX) return LINE_ERROR(lines, "too many lines");
    RatingLine rating = {.input = input, .line = (uint32_t)lines->number};
    TRY(ratings_parse_line(lines, &rating));
    if (pile->count == pile->capacity) {
      const int64_t capacity = pile->capacity ? 2 * pile->capacity : 4096;
      RESIZE(&pile->memory, pile->line, pile->count, capacity);
      pile->capacity = capacity;
    }
    pile->line[pile->count++] = rating;
  }
}

static Status ratings_read_file(const char *path, uint32_t input, const char *format, Pile *pile) {
  SCRATCH_ARENA(scratch);
  Lines *lines;
  ALLOCATE(&scratch, lines, 1);
  lines->path = path;
  /* A rating that is too large is an error of the user, to be reported and not trapped. */
  fenv_t environment;
  feholdexcept(&environment);
  Status status = gzip_open(path, &lines->file);
  if (status == STATUS_OK) status = ratings_read_lines(lines, input, format, pile);
  fesetenv(&environment);
  gzip_close(&lines->file);
  return status;
}

static int ratings_compare_ids(const void *a, const void *b) {
  int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
  return (first > second) - (first < second);
}

static int ratings_compare_lines(const void *a, const void *b) {
  const RatingLine *first = a, *second = b;
  if (first->user_id != second->user_id) return first->user_id < second->user_id ? -1 : 1;
  if (first->item_id != second->item_id) return first->item_id < second->item_id ? -1 : 1;
  if (first->input != second->input) return first->input < second->input ? -1 : 1;
  return (first->line > second->line) - (first->line < second->line);
}

/* Lists the distinct ids of one column in ascending order. */
static Status ratings_list_ids(Arena *memory, const Pile *pile, bool items, int *count, int64_t **out) {
  SCRATCH_ARENA(scratch);
  int64_t *ids;
  ALLOCATE(&scratch, ids, pile->count);
  for (int64_t i = 0; i < pile->count; i++) ids[i] = items ? pile->line[i].item_id : pile->line[i].user_id;
  qsort(ids, (size_t)pile->count, sizeof *ids, ratings_compare_ids);
  int64_t n = 0;
  for (int64_t i = 0; i < pile->count; i++)
    if (n == 0 || ids[n - 1] != ids[i]) ids[n++] = ids[i];
  if (n > INT_MAX)
    return status_set(STATUS_INPUT, "%lld different %s: too many", (long long)n, items ? "items" : "users");
  ALLOCATE(memory, *out, n);
  memcpy(*out, ids, (size_t)n * sizeof *ids);
  *count = (int)n;
  return STATUS_OK;
}

static int ratings_place_of(int count, const int64_t *ids, int64_t id) {
  const int64_t *found = bsearch(&id, ids, (size_t)count, sizeof *ids, ratings_compare_ids);
  ASSERT(found);
  return (int)(found - ids);
}

/* Sorts the pile and turns it into ratings, with places in the lists of ids instead of ids. */
static Status sort_ratings(Arena *memory, Pile *pile, const char *const *inputs, Ratings *out) {
  qsort(pile->line, (size_t)pile->count, sizeof *pile->line, ratings_compare_lines);
  for (int64_t i = 1; i < pile->count; i++) {
    const RatingLine *first = &pile->line[i - 1], *second = &pile->line[i];
    if (first->user_id == second->user_id && first->item_id == second->item_id)
      return status_set(STATUS_INPUT, "%s:%u: user %lld rates item %lld a second time (first at %s:%u)",
                        inputs[second->input], second->line, (long long)second->user_id,
                        (long long)second->item_id, inputs[first->input], first->line);
  }
  TRY(ratings_list_ids(memory, pile, false, &out->users, &out->user_id));
  TRY(ratings_list_ids(memory, pile, true, &out->items, &out->item_id));
  ALLOCATE(memory, out->rating, pile->count);
  out->count = pile->count;
  for (int64_t i = 0; i < pile->count; i++) {
    const RatingLine *line = &pile->line[i];
    out->rating[i] = (Rating){.user = ratings_place_of(out->users, out->user_id, line->user_id),
                              .item = ratings_place_of(out->items, out->item_id, line->item_id),
                              .value = line->value};
  }
  return STATUS_OK;
}

static void ratings_pile_free(Pile *pile) { arena_free(&pile->memory); }

Status ratings_read(Arena *memory, int input_count, const char *const *inputs, const char *format,
                    Ratings *out) {
  SCOPED(Pile, pile, ratings_pile_free);
  *out = (Ratings){0};
  for (int i = 0; i < input_count; i++) TRY(ratings_read_file(inputs[i], (uint32_t)i, format, &pile));
  if (pile.count == 0)
    return status_set(STATUS_INPUT, "%s: no ratings", input_count ? inputs[0] : "no input file given");
  return sort_ratings(memory, &pile, inputs, out);
}

double ratings_mean(const Ratings *ratings) {
  double sum = 0;
  for (int64_t i = 0; i < ratings->count; i++) sum += ratings->rating[i].value;
  return sum / (double)ratings->count;
}

/* ---- users who are held out */

/* Keeps the wanted ids, in order; place[n] is the new place of each, or -1 if it is not wanted. */
static Status ratings_keep_ids(Arena *memory, int n, const int64_t *from, const bool *wanted, int *place,
                               int *count, int64_t **ids) {
  ALLOCATE(memory, *ids, n);
  *count = 0;
  for (int i = 0; i < n; i++) {
    place[i] = wanted[i] ? *count : -1;
    if (wanted[i]) (*ids)[(*count)++] = from[i];
  }
  return STATUS_OK;
}

/* Copies the ratings whose user and item are both wanted. */
static Status take_ratings(Arena *memory, const Ratings *from, const bool *user, const bool *item,
                           Ratings *out) {
  SCRATCH_ARENA(scratch);
  int *user_place, *item_place;
  *out = (Ratings){0};
  ALLOCATE(&scratch, user_place, from->users);
  ALLOCATE(&scratch, item_place, from->items);
  TRY(ratings_keep_ids(memory, from->users, from->user_id, user, user_place, &out->users, &out->user_id));
  TRY(ratings_keep_ids(memory, from->items, from->item_id, item, item_place, &out->items, &out->item_id));
  ALLOCATE(memory, out->rating, from->count);
  for (int64_t r = 0; r < from->count; r++) {
    const Rating *rating = &from->rating[r];
    if (!user[rating->user] || !item[rating->item]) continue;
    out->rating[out->count++] =
        (Rating){.user = user_place[rating->user], .item = item_place[rating->item], .value = rating->value};
  }
  return STATUS_OK;
}

Status ratings_split(Arena *memory, const Ratings *ratings, double fraction, uint64_t seed, Ratings *learned,
                     Ratings *held_out) {
  SCRATCH_ARENA(scratch);
  const int count = (int)fmax(1, round(fraction * ratings->users));
  Rng rng = {.key = rng_key(seed, RNG_SPLIT)};
  bool *held, *rest, *seen, *known;
  int *order;
  *learned = *held_out = (Ratings){0};
  if (count >= ratings->users)
    return status_set(STATUS_INPUT, "%d of %d users held out: no users are left to learn from", count,
                      ratings->users);
  ALLOCATE_ARRAYS(&scratch, ratings->users, &held, &rest, &seen);
  ALLOCATE(&scratch, order, ratings->users);
  ALLOCATE(&scratch, known, ratings->items);
  for (int u = 0; u < ratings->users; u++) order[u] = u;
  for (int place = 0; place < count; place++) { /* hold out the first users of a random order */
    const int other = place + (int)rng_index(&rng, (uint64_t)(ratings->users - place)), user = order[other];
    order[other] = order[place];
    held[user] = true;
  }
  for (int u = 0; u < ratings->users; u++) rest[u] = !held[u];
  for (int64_t r = 0; r < ratings->count; r++)
    if (!held[ratings->rating[r].user]) known[ratings->rating[r].item] = true;
  for (int64_t r = 0; r < ratings->count; r++)
    if (held[ratings->rating[r].user] && known[ratings->rating[r].item]) seen[ratings->rating[r].user] = true;
  TRY(take_ratings(memory, ratings, rest, known, learned));
  TRY(take_ratings(memory, ratings, seen, known, held_out));
  if (held_out->count > 0) return STATUS_OK;
  return status_set(STATUS_INPUT, "the %d held-out users rated no item that other users rated", count);
}
