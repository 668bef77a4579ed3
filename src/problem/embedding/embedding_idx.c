#include "problem/embedding/embedding_idx.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_BYTES = 1 << 16, ROLES = 4 };

static const char *embedding_digits_file_kind(const IdxFile *file) {
  return file->magic == IDX_IMAGES ? "images" : "labels";
}

/* Reads the next 32-bit number of the header, at byte `*at`, and advances `*at`. */
static Status embedding_digits_read_number(GzipFile *file, const char *name, const char *what, int *at,
                                           uint32_t *number) {
  unsigned char bytes[4];
  size_t count;
  TRY(gzip_read(file, bytes, sizeof bytes, &count));
  if (count < sizeof bytes)
    return status_set(STATUS_INPUT, "%s is cut off: it ends at byte %d, in the header, before %s", name,
                      *at + (int)count, what);
  *number =
      (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | (uint32_t)bytes[3];
  *at += 4;
  return STATUS_OK;
}

/* Reads the magic number and lengths; *at is where the elements begin. */
static Status embedding_digits_read_idx_header(GzipFile *file, const char *name, int *at, IdxFile *out) {
  static const char *const axes[] = {"elements", "rows", "columns"};
  uint32_t magic = 0, length = 0;
  int *const lengths[] = {&out->count, &out->rows, &out->columns};
  TRY(embedding_digits_read_number(file, name, "the magic number", at, &magic));
  if (magic != IDX_IMAGES && magic != IDX_LABELLED)
    return status_set(STATUS_INPUT,
                      "%s is not an IDX file of images or labels: its magic number is %u, not %d or %d", name,
                      magic, IDX_IMAGES, IDX_LABELLED);
  out->magic = (IdxMagic)magic;
  out->rows = out->columns = 1;
  for (int axis = 0; axis < (magic == IDX_IMAGES ? 3 : 1); axis++) {
    char what[32];
    snprintf(what, sizeof what, "the number of %s", axes[axis]);
    TRY(embedding_digits_read_number(file, name, what, at, &length));
    if (length < 1 || length > IDX_MAX_COUNT)
      return status_set(STATUS_INPUT, "%s: %s is %u at byte %d; it must be between 1 and %d", name, what,
                        length, *at - 4, IDX_MAX_COUNT);
    *lengths[axis] = (int)length;
  }
  if ((int64_t)out->rows * out->columns > IDX_MAX_PIXELS)
    return status_set(
        STATUS_INPUT,
        "%s: images of %d x %d pixels, according to bytes 8 to 15; at most %d pixels are supported", name,
        out->rows, out->columns, IDX_MAX_PIXELS);
  return STATUS_OK;
}

/* Reads the elements and checks that nothing follows; reading to the end also makes zlib compare its
 * checksum. */
static Status embedding_digits_read_values(Arena *memory, GzipFile *file, const char *name, int at,
                                           IdxFile *out) {
  const size_t one = (size_t)out->rows * (size_t)out->columns, size = (size_t)out->count * one;
  size_t held = 0, done = 0, more;
  unsigned char next;
  while (done == held && held < size) { /* the array grows as it is filled */
    const unsigned char *before = out->values;
    held = held == 0 ? FIRST_BYTES : 2 * held;
    if (held > size) held = size;
    ALLOCATE(memory, out->values, held);
    if (done > 0) memcpy(out->values, before, done);
    TRY(gzip_read(file, out->values + done, held - done, &more));
    done += more;
  }
  if (done < size)
    return status_set(STATUS_INPUT,
                      "%s is cut off: it ends at byte %zu, after %zu of the %d %s that its header promises",
                      name, (size_t)at + done, done / one, out->count, embedding_digits_file_kind(out));
  TRY(gzip_read(file, &next, 1, &more));
  if (more)
    return status_set(STATUS_INPUT, "%s continues at byte %zu, after the %d %s that its header promises",
                      name, (size_t)at + size, out->count, embedding_digits_file_kind(out));
  if (out->magic != IDX_LABELLED) return STATUS_OK;
  for (size_t i = 0; i < size; i++)
    if (out->values[i] >= IDX_LABELS)
      return status_set(STATUS_INPUT, "%s: label %zu, at byte %zu, is %d; labels are 0 to %d", name, i,
                        (size_t)at + i, out->values[i], IDX_LABELS - 1);
  return STATUS_OK;
}

Status embedding_idx_read(Arena *memory, GzipFile *file, const char *name, IdxFile *out) {
  int at = 0;
  *out = (IdxFile){0};
  TRY(embedding_digits_read_idx_header(file, name, &at, out));
  return embedding_digits_read_values(memory, file, name, at, out);
}

/* The role of a file: its kind, images or labels, and that plus TEST in the test set. */
enum { IMAGES, LABELS, TEST };
static const char *const roles[ROLES] = {"training images", "training labels", "test images", "test labels"};

/* Returns what the file's name says: 1 for training, 0 for test, -1 for neither. */
static int embedding_digits_named_for_training(const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  if (strncmp(name, "train", 5) == 0) return 1;
  if (strncmp(name, "t10k", 4) == 0 || strncmp(name, "test", 4) == 0) return 0;
  return -1;
}

/* Sets at[role] to the index of the file, for both roles of a kind. The names of the two files say which one
 * is for training, or else their lengths do. */
static Status embedding_digits_find_roles(const char *const *paths, const IdxFile files[ROLES], int kind,
                                          int at[ROLES]) {
  int own[ROLES], count = 0;
  for (int i = 0; i < ROLES; i++)
    if ((files[i].magic == IDX_LABELLED) == (kind == LABELS)) own[count++] = i;
  const int first = own[0], second = own[1], longer = files[first].count - files[second].count;
  const int named = embedding_digits_named_for_training(paths[first]),
            other = embedding_digits_named_for_training(paths[second]);
  if (named >= 0 && named == other)
    return status_set(STATUS_INPUT, "both %s and %s hold %s according to their names", paths[first],
                      paths[second], roles[named ? kind : kind + TEST]);
  if (named < 0 && other < 0 && longer == 0)
    return status_set(STATUS_INPUT,
                      "%s holds %d %s; nothing says whether they are for training or testing: its name "
                      "should begin with train- or t10k-",
                      paths[first], files[first].count, embedding_digits_file_kind(&files[first]));
  const bool in_order = named >= 0 ? named : other >= 0 ? !other : longer > 0;
  at[kind] = in_order ? first : second;
  at[kind + TEST] = in_order ? second : first;
  return STATUS_OK;
}

/* Makes the training set, or the test set, of a file of images and a file of labels. */
static Status embedding_digits_pair_labels(const char *const *paths, const IdxFile files[ROLES],
                                           const int at[2], Digits *out) {
  const IdxFile *image = &files[at[IMAGES]], *label = &files[at[LABELS]];
  *out = (Digits){image->count, image->rows * image->columns, image->values, label->values};
  if (image->count == label->count) return STATUS_OK;
  return status_set(STATUS_INPUT, "%s holds %d images, but %s holds %d labels", paths[at[IMAGES]],
                    image->count, paths[at[LABELS]], label->count);
}

Status embedding_idx_read_digits(Arena *memory, int path_count, const char *const *paths, Digits *training,
                                 Digits *test) {
  IdxFile files[ROLES];
  int at[ROLES], images = 0;
  if (path_count != ROLES)
    return status_set(STATUS_INPUT, "%d files were given; four are needed, in any order: %s, %s, %s, %s",
                      path_count, roles[0], roles[1], roles[2], roles[3]);
  for (int i = 0; i < ROLES; i++) {
    SCOPED(GzipFile, file, gzip_close);
    TRY(gzip_open(paths[i], &file));
    TRY(embedding_idx_read(memory, &file, paths[i], &files[i]));
    images += files[i].magic == IDX_IMAGES;
  }
  if (images != ROLES / 2)
    return status_set(STATUS_INPUT,
                      "%d of the 4 files hold images and %d labels; two of each are needed: %s, %s, %s, %s",
                      images, ROLES - images, roles[0], roles[1], roles[2], roles[3]);
  const int kind =
      files[0].magic == IDX_IMAGES ? IMAGES : LABELS; /* the first file comes first in messages */
  TRY(embedding_digits_find_roles(paths, files, kind, at));
  TRY(embedding_digits_find_roles(paths, files, LABELS - kind, at));
  const IdxFile *one = &files[at[IMAGES]], *two = &files[at[IMAGES + TEST]];
  if (one->rows != two->rows || one->columns != two->columns)
    return status_set(STATUS_INPUT, "%s holds images of %d x %d pixels, but %s holds images of %d x %d",
                      paths[at[IMAGES]], one->rows, one->columns, paths[at[IMAGES + TEST]], two->rows,
                      two->columns);
  TRY(embedding_digits_pair_labels(paths, files, at, training));
  return embedding_digits_pair_labels(paths, files, at + TEST, test);
}
