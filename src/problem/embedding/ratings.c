#include "problem/embedding/ratings.h"

#include "core/arena.h"
#include "io/gzip.h"

#include <fenv.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* Lines of text and the ratings in them. */
/* A rating as it stands in a file. */
typedef struct {
  int64_t user_id, item_id;
  double value;
  uint32_t input, line; /* which file, from 0, and where in it, from 1 */
} RatingLine;

enum {
  BUFFER_SIZE = 1 << 16,
  LINE_SIZE = 4096, /* of a longest line */
  SHOWN_SIZE = 40, /* of a bad value, in a message */
  MOST_FIELDS = 64
};

static const int64_t MOST_ID = INT64_C(1) << 53; /* exact as a double, for whoever reads ids in Python */
static const double MOST_RATING = 100;

const char RATINGS_FORMATS[] = "auto 1m 100k csv";

typedef struct {
  const char *name, *separator, *form;
  bool header;
} Format;

static const Format formats[] = {
    {"1m", "::", "user::movie::rating or user::movie::rating::timestamp", false},
    {"100k", "\t", "user, item, rating and perhaps a time stamp between tabs", false},
    {"csv", ",", "the columns of the header between commas", true}};
enum { FORMATS = sizeof formats / sizeof *formats };

/* Columns that a header must name, and how sets name them. */
enum { USER, ITEM, RATING, COLUMNS };
static const char *const column_names[COLUMNS][4] = {
    {"userId", "user_id", "user", NULL}, {"movieId", "item_id", "movie_id", "item"}, {"rating", NULL}};

typedef struct {
  GzipFile *file;
  const char *path;
  size_t position, filled; /* in the buffer */
  long number; /* of the present line, from 1 */
  int length; /* of the present line */
  const Format *format;
  int column[COLUMNS]; /* which field is the user, the item, the rating */
  int fields; /* of every line */
  int field_count; /* of the present line */
  char *field[MOST_FIELDS]; /* NUL-terminated pieces of `line` */
  char line[LINE_SIZE + 1];
  char buffer[BUFFER_SIZE];
} Lines;

#define LINE_ERROR(lines, format, ...)                                                                       \
  status_set(STATUS_INPUT, "%s:%ld: " format, (lines)->path, (lines)->number, ##__VA_ARGS__)

/* Returns the beginning of `text` as it can be shown in a message. */
static const char *shown(const char *text, char out[SHOWN_SIZE + 4]) {
  int n = 0;
  for (; text[n] && n < SHOWN_SIZE; n++) {
    unsigned char c = (unsigned char)text[n];
    out[n] = (char)(c < ' ' || c > '~' ? '?' : c);
  }
  strcpy(out + n, text[n] ? "..." : "");
  return out;
}

/* Reads the next line, its end taken off; *end when there is none. */
static Status next_line(Lines *lines, bool *end) {
  size_t length = 0;
  *end = false;
  lines->number++;
  for (bool complete = false; !complete;) {
    if (lines->position == lines->filled) {
      lines->position = 0;
      TRY(gzip_read(lines->file, lines->buffer, BUFFER_SIZE, &lines->filled));
      if (lines->filled == 0) {
        *end = length == 0;
        break;
      }
    }
    const char *from = lines->buffer + lines->position;
    const char *stop = memchr(from, '\n', lines->filled - lines->position);
    size_t n = stop ? (size_t)(stop - from) : lines->filled - lines->position;
    complete = stop != NULL;
    if (length + n > LINE_SIZE)
      return LINE_ERROR(lines, "more than %d characters without a line end; is this a file of ratings?",
                        LINE_SIZE);
    memcpy(lines->line + length, from, n);
    length += n;
    lines->position += n + complete;
  }
  if (length > 0 && lines->line[length - 1] == '\r') length--;
  lines->line[length] = '\0';
  lines->length = (int)length;
  if (lines->number == 1 && strncmp(lines->line, "PK\3\4", 4) == 0)
    return status_set(STATUS_INPUT, "%s is a zip archive; unpack it and give the file of ratings in it",
                      lines->path);
  if (memchr(lines->line, '\0', length))
    return LINE_ERROR(lines, "a byte of value 0; is this a file of ratings?");
  return STATUS_OK;
}

/* Cuts the line into fields. */
static Status split_line(Lines *lines) {
  const char *separator = lines->format->separator;
  char *from = lines->line, *next;
  lines->field_count = 0;
  for (; from; from = next) {
    if (lines->field_count == MOST_FIELDS) return LINE_ERROR(lines, "more than %d fields", MOST_FIELDS);
    next = strstr(from, separator);
    if (next) {
      *next = '\0';
      next += strlen(separator);
    }
    lines->field[lines->field_count++] = from;
  }
  return STATUS_OK;
}

static Status parse_id(const Lines *lines, int column, const char *what, int64_t *id) {
  const char *text = lines->field[lines->column[column]];
  char value[SHOWN_SIZE + 4];
  *id = 0;
  const char *c = text;
  for (; *c >= '0' && *c <= '9' && *id <= MOST_ID; c++) *id = 10 * *id + (*c - '0');
  if (*c || c == text || *id < 1 || *id > MOST_ID)
    return LINE_ERROR(lines, "the %s is '%s'; an id is an integer from 1 to 2^53", what, shown(text, value));
  return STATUS_OK;
}

static Status parse_value(const Lines *lines, double *rating) {
  const char *text = lines->field[lines->column[RATING]];
  char value[SHOWN_SIZE + 4], *end;
  bool plain = text[0] && text[strspn(text, "+-.0123456789eE")] == '\0';
  *rating = plain ? strtod(text, &end) : NAN;
  if (!plain || *end || !(fabs(*rating) <= MOST_RATING))
    return LINE_ERROR(lines, "the rating is '%s'; a rating is a number from %g to %g", shown(text, value),
                      -MOST_RATING, MOST_RATING);
  return STATUS_OK;
}

static Status wrong_form(const Lines *lines) {
  return LINE_ERROR(lines, "%d field%s, expected %d: %s (format %s)", lines->field_count,
                    lines->field_count == 1 ? "" : "s", lines->fields, lines->format->form,
                    lines->format->name);
}

static Status parse_line(Lines *lines, RatingLine *out) {
  TRY(split_line(lines));
  if (lines->field_count != lines->fields) return wrong_form(lines);
  TRY(parse_id(lines, USER, "user", &out->user_id));
  TRY(parse_id(lines, ITEM, "item", &out->item_id));
  return parse_value(lines, &out->value);
}

static bool is_column(const char *field, int column) {
  for (int i = 0; i < 4 && column_names[column][i]; i++)
    if (strcasecmp(field, column_names[column][i]) == 0) return true;
  return false;
}

/* Finds the columns in the header of a CSV file. */
static Status ratings_read_header(Lines *lines) {
  TRY(split_line(lines));
  lines->fields = lines->field_count;
  for (int column = 0; column < COLUMNS; column++) {
    lines->column[column] = -1;
    for (int f = 0; f < lines->field_count; f++)
      if (is_column(lines->field[f], column)) lines->column[column] = f;
    if (lines->column[column] < 0)
      return LINE_ERROR(lines,
                        "no column '%s'; the header of a CSV file must name userId, movieId and rating",
                        column_names[column][0]);
  }
  return STATUS_OK;
}

static const Format *recognise(const char *line) {
  for (int f = 0; f < FORMATS; f++)
    if (strstr(line, formats[f].separator)) return &formats[f];
  return NULL;
}

/* Chooses the format by its name, or by what separates the fields of the first line. */
static Status choose_format(Lines *lines, const char *format) {
  char text[SHOWN_SIZE + 4];
  for (int f = 0; f < FORMATS; f++)
    if (strcmp(format, formats[f].name) == 0) lines->format = &formats[f];
  if (!lines->format) lines->format = recognise(lines->line);
  if (lines->format) return STATUS_OK;
  return LINE_ERROR(lines,
                    "'%s' is no rating; known forms are user::movie::rating::timestamp (with or without the "
                    "time stamp), the same between tabs, and CSV with a header",
                    shown(lines->line, text));
}

static int count_fields(const char *line, const char *separator) {
  int count = 1;
  while ((line = strstr(line, separator))) {
    line += strlen(separator);
    count++;
  }
  return count;
}

/* Looks at the first line: format, columns, number of fields. *header: it holds no rating. */
static Status ratings_begin(Lines *lines, const char *format, bool *header) {
  TRY(choose_format(lines, format));
  *header = lines->format->header;
  if (*header) return ratings_read_header(lines);
  for (int column = 0; column < COLUMNS; column++) lines->column[column] = column;
  bool timed = count_fields(lines->line, lines->format->separator) != COLUMNS;
  lines->fields = COLUMNS + timed;
  return STATUS_OK;
}

static bool is_blank(const char *line) { return line[strspn(line, " \t")] == '\0'; }

static void drop_byte_order_mark(Lines *lines) {
  if (strncmp(lines->line, "\xef\xbb\xbf", 3) != 0) return;
  lines->length -= 3;
  memmove(lines->line, lines->line + 3, (size_t)lines->length + 1);
}

static Status read_inputs(Lines *lines, uint32_t input, const char *format,
                          Status (*take)(void *context, const RatingLine *rating), void *context) {
  long blank = 0;
  for (;;) {
    bool end, header = false;
    TRY(next_line(lines, &end));
    if (end) break;
    if (lines->number == 1) drop_byte_order_mark(lines);
    if (is_blank(lines->line)) {
      if (!blank) blank = lines->number;
      continue;
    }
    if (blank) return status_set(STATUS_INPUT, "%s:%ld: a blank line before the end", lines->path, blank);
    if (lines->number == 1) TRY(ratings_begin(lines, format, &header));
    if (header) continue;
    if (lines->number > UINT32_MAX) return LINE_ERROR(lines, "too many lines");
    RatingLine rating = {.input = input, .line = (uint32_t)lines->number};
    TRY(parse_line(lines, &rating));
    TRY(take(context, &rating));
  }
  return STATUS_OK;
}

/* Calls take_rating(context, rating) for each line of a file, in order, until it fails. */
static Status ratings_lines(const char *path, uint32_t input, const char *format,
                            Status (*take)(void *context, const RatingLine *rating), void *context) {
  SCRATCH_ARENA(scratch);
  Lines *lines;
  ALLOCATE(&scratch, lines, 1);
  lines->path = path;
  /* A rating that is too large is the user's error, to be reported, not to be trapped. */
  fenv_t environment;
  feholdexcept(&environment);
  Status status = gzip_open(path, &lines->file);
  if (status == STATUS_OK) status = read_inputs(lines, input, format, take, context);
  fesetenv(&environment);
  gzip_close(lines->file);
  return status;
}

/* Ratings as they come from the files. */
typedef struct {
  RatingLine *line; /* [capacity] */
  int64_t count, capacity;
} Pile;

static Status grow_pile(Pile *pile) {
  RatingLine *larger;
  int64_t capacity = pile->capacity ? 2 * pile->capacity : 4096;
  NEW(larger, capacity);
  if (pile->count) memcpy(larger, pile->line, (size_t)pile->count * sizeof *larger);
  free(pile->line);
  pile->line = larger;
  pile->capacity = capacity;
  return STATUS_OK;
}

static Status take_rating(void *context, const RatingLine *rating) {
  Pile *pile = context;
  if (pile->count == pile->capacity) TRY(grow_pile(pile));
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

static int ratings_place_of(int count, const int64_t *ids, int64_t id) {
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
    out->rating[i] = (Rating){.user = ratings_place_of(out->users, out->user_id, line->user_id),
                              .item = ratings_place_of(out->items, out->item_id, line->item_id),
                              .value = line->value};
  }
  return STATUS_OK;
}

Status ratings_read(int input_count, const char *const *inputs, const char *format, Ratings *out) {
  Pile pile = {0};
  Status status = STATUS_OK;
  *out = (Ratings){0};
  for (int i = 0; i < input_count && status == STATUS_OK; i++)
    status = ratings_lines(inputs[i], (uint32_t)i, format, take_rating, &pile);
  if (status == STATUS_OK && pile.count == 0)
    status = status_set(STATUS_INPUT, "%s: no ratings", input_count ? inputs[0] : "no input file given");
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
