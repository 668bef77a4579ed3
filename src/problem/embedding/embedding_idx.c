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
  for (size_t i = 0; out->magic == IDX_LABELLED && i < size; i++)
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

/* The role of a file. */
typedef enum { TRAINING_IMAGES, TRAINING_LABELS, TEST_IMAGES, TEST_LABELS } Role;
static const char *const roles[ROLES] = {"training images", "training labels", "test images", "test labels"};

/* Returns what the file's name says: 1 for training, 0 for test, -1 for neither. */
static int embedding_digits_named_for_training(const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  if (strncmp(name, "train", 5) == 0) return 1;
  if (strncmp(name, "t10k", 4) == 0 || strncmp(name, "test", 4) == 0) return 0;
  return -1;
}

/* Finds whether file i, whose name does not say so, is for training. The other file of images, or of labels,
 * decides: by its name, or by its length. */
static Status embedding_digits_is_training_file(int i, const char *const *paths, const IdxFile files[ROLES],
                                                bool *training) {
  for (int j = 0; j < ROLES; j++) {
    if (j == i || files[j].magic != files[i].magic) continue;
    int other = embedding_digits_named_for_training(paths[j]);
    *training = other >= 0 ? !other : files[i].count > files[j].count;
    if (other >= 0 || files[i].count != files[j].count) return STATUS_OK;
  }
  return status_set(STATUS_INPUT,
                    "%s holds %d %s; nothing says whether they are for training or testing: its name should "
                    "begin with train- or t10k-",
                    paths[i], files[i].count, embedding_digits_file_kind(&files[i]));
}

/* Sets at[role] to the index of the file that has this role. */
static Status embedding_digits_find_file_roles(const char *const *paths, const IdxFile files[ROLES],
                                               int at[ROLES]) {
  int images = 0;
  for (int role = 0; role < ROLES; role++) at[role] = -1;
  for (int i = 0; i < ROLES; i++) images += files[i].magic == IDX_IMAGES;
  if (images != ROLES / 2)
    return status_set(STATUS_INPUT,
                      "%d of the 4 files hold images and %d labels; two of each are needed: %s, %s, %s, %s",
                      images, ROLES - images, roles[0], roles[1], roles[2], roles[3]);
  for (int i = 0; i < ROLES; i++) {
    int named = embedding_digits_named_for_training(paths[i]);
    bool training = named == 1;
    if (named < 0) TRY(embedding_digits_is_training_file(i, paths, files, &training));
    Role role = files[i].magic == IDX_IMAGES ? (training ? TRAINING_IMAGES : TEST_IMAGES)
                                             : (training ? TRAINING_LABELS : TEST_LABELS);
    if (at[role] >= 0)
      return status_set(STATUS_INPUT, "both %s and %s hold %s according to their names", paths[at[role]],
                        paths[i], roles[role]);
    at[role] = i;
  }
  return STATUS_OK;
}

/* Makes a set of an image file and a label file. */
static Status embedding_digits_pair_labels(const char *const *paths, const IdxFile files[ROLES], int images,
                                           int labels, Digits *out) {
  const IdxFile *image = &files[images], *label = &files[labels];
  *out = (Digits){image->count, image->rows * image->columns, image->values, label->values};
  if (image->count == label->count) return STATUS_OK;
  return status_set(STATUS_INPUT, "%s holds %d images, but %s holds %d labels", paths[images], image->count,
                    paths[labels], label->count);
}

Status embedding_idx_read_digits(Arena *memory, int path_count, const char *const *paths, Digits *training,
                                 Digits *test) {
  IdxFile files[ROLES];
  int at[ROLES];
  if (path_count != ROLES)
    return status_set(STATUS_INPUT, "%d files were given; four are needed, in any order: %s, %s, %s, %s",
                      path_count, roles[0], roles[1], roles[2], roles[3]);
  for (int i = 0; i < ROLES; i++) {
    SCOPED(GzipFile, file, gzip_close);
    TRY(gzip_open(paths[i], &file));
    TRY(embedding_idx_read(memory, &file, paths[i], &files[i]));
  }
  TRY(embedding_digits_find_file_roles(paths, files, at));
  const IdxFile *one = &files[at[TRAINING_IMAGES]], *two = &files[at[TEST_IMAGES]];
  if (one->rows != two->rows || one->columns != two->columns)
    return status_set(STATUS_INPUT, "%s holds images of %d x %d pixels, but %s holds images of %d x %d",
                      paths[at[TRAINING_IMAGES]], one->rows, one->columns, paths[at[TEST_IMAGES]], two->rows,
                      two->columns);
  TRY(embedding_digits_pair_labels(paths, files, at[TRAINING_IMAGES], at[TRAINING_LABELS], training));
  return embedding_digits_pair_labels(paths, files, at[TEST_IMAGES], at[TEST_LABELS], test);
}
