/* Images of digits and their labels in the IDX format of MNIST (LeCun, Cortes and Burges), compressed with
 * gzip or not: a magic number (2051 images, 2049 labels), the length of each axis, and one unsigned byte per
 * element. Numbers have 32 bits, most significant byte first. */
#pragma once

#include "core/arena.h"
#include "io/gzip.h"

enum {
  IDX_LABELS = 10 /* labels are 0 .. 9 */,
  IDX_MAX_PIXELS = 1 << 16 /* of one image */,
  IDX_MAX_COUNT = 1 << 30
};

typedef enum { IDX_IMAGES = 2051, IDX_LABELLED = 2049 } IdxMagic;

/* One file: values[count, rows, columns]; for labels rows = columns = 1. */
typedef struct {
  IdxMagic magic;
  int count, rows, columns;
  unsigned char *values;
} IdxFile;

/* Reads an open file to its end; `name` names it in messages. STATUS_INPUT, with the place in unpacked bytes
 * counted from 0, for an unknown magic number, an empty axis, a file that is cut off or too long, or a label
 * above 9. Memory grows with what is read, not with what the header promises. */
Status embedding_idx_read(Arena *memory, GzipFile *file, const char *name, IdxFile *out);

/* A labelled set: pixels[count, inputs], label[count]. */
typedef struct {
  int count, inputs;
  unsigned char *pixels, *label;
} Digits;

/* Reads the training and the test set from four files in any order. The magic number distinguishes images
 * from labels; a name that begins with "train", "t10k" or "test" says which set it is, and otherwise the
 * longer file is for training. STATUS_INPUT if a role is missing or taken twice, if images and labels differ
 * in number, or if the two sets differ in the size of their images. */
Status embedding_idx_read_digits(Arena *memory, int path_count, const char *const *paths, Digits *training,
                                 Digits *test);
