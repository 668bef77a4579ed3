/* Images of digits and their labels in the IDX format of MNIST (LeCun, Cortes and Burges), compressed with
 * gzip or not: a magic number (2051 images, 2049 labels), the length of each axis, one unsigned byte for each
 * element; numbers are 32 bits, most significant byte first. */
#pragma once

#include "io/gzip.h"

enum {
  IDX_LABELS = 10 /* labels are 0 .. 9 */,
  IDX_MAX_PIXELS = 1 << 16 /* of one image */,
  IDX_MAX_COUNT = 1 << 30
};

typedef enum { IDX_IMAGES = 2051, IDX_LABELLED = 2049 } IdxMagic;

/* One file: values[count, rows, columns], for labels with rows = columns = 1. */
typedef struct {
  IdxMagic magic;
  int count, rows, columns;
  unsigned char *values;
} IdxFile;

/* Reads an open file to its end; `name` stands for it in messages. STATUS_INPUT with the place, counted in
 * unpacked bytes from 0, for another magic number, an empty axis, a file that is cut off or too long, a
 * label above 9. Memory follows what is read, not what the header promises. The caller ends with idx_free;
 * after an error there is nothing to free. */
Status idx_read(GzipFile *file, const char *name, IdxFile *out);
void idx_free(IdxFile *file);

/* A labelled set: pixels[count, inputs], label[count]. */
typedef struct {
  int count, inputs;
  unsigned char *pixels, *label;
} Digits;

/* Reads the training and the test set from four files in any order. The magic number distinguishes images
 * from labels; a name that begins with "train", "t10k" or "test" names the set, without one the longer
 * file is for training. STATUS_INPUT when a role is missing or taken twice, images and labels differ in
 * number, or the two sets in the size of their images. The caller ends with digits_free for both, also
 * after a failure. */
Status idx_read_digits(int path_count, const char *const *paths, Digits *training, Digits *test);
void digits_free(Digits *digits);
