/* IDX files of images and labels: good files, and every way in which they can be cut off, damaged or mixed
 * up. */
#include "core/arena.h"
#include "harness.h"
#include "problem/embedding/embedding_idx.h"

#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { HEADER = 16, IMAGES = 3, PIXELS = 6, SIZE = HEADER + IMAGES * PIXELS, MOST = 512 };

static const char *const file_name = "test_idx.bin";
static Arena kept; /* what is read and trained; freed at the end */

/* Three images of 2 x 3 pixels, written byte by byte as the format says. */
static const unsigned char images[SIZE] = {0, 0,   8, 3,   0,   0,   0,   3,   0,   0,  0, 2,
                                           0, 0,   0, 3,   1,   2,   3,   4,   5,   6,  0, 255,
                                           0, 255, 0, 255, 100, 101, 102, 103, 104, 105};
static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 9};

static void write_bytes(const char *name, const void *bytes, size_t size) {
  FILE *file = fopen(name, "wb");
  CU_ASSERT_PTR_NOT_NULL_FATAL(file);
  CU_ASSERT_EQUAL_FATAL(fwrite(bytes, 1, size, file), size);
  fclose(file);
}

/* Compresses the bytes as gzip data: out[MOST]; returns their number. */
static size_t compress_bytes(const void *bytes, size_t size, unsigned char *out) {
  z_stream stream = {
      .next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)size, .next_out = out, .avail_out = MOST};
  CU_ASSERT_EQUAL_FATAL(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  CU_ASSERT_EQUAL_FATAL(deflate(&stream, Z_FINISH), Z_STREAM_END);
  size_t count = stream.total_out;
  deflateEnd(&stream);
  return count;
}

static Status read_path(const char *path, IdxFile *out) {
  SCOPED(GzipFile, file, gzip_close);
  TRY(gzip_open(path, &file));
  return embedding_idx_read(&kept, &file, path, out);
}

static Status read_bytes(const void *bytes, size_t size, IdxFile *out) {
  write_bytes(file_name, bytes, size);
  return read_path(file_name, out);
}

static void refused(const void *bytes, size_t size, const char *part) {
  IdxFile file;
  CHECK_FAILS(read_bytes(bytes, size, &file), STATUS_INPUT, part);
  CU_ASSERT_PTR_NOT_NULL(strstr(status_message(), file_name));
}

static void check_images(const IdxFile *file) {
  CU_ASSERT_EQUAL(file->magic, IDX_IMAGES);
  CU_ASSERT_EQUAL(file->count, IMAGES);
  CU_ASSERT_EQUAL(file->rows, 2);
  CU_ASSERT_EQUAL(file->columns, 3);
  CU_ASSERT(file->values && !memcmp(file->values, images + HEADER, IMAGES * PIXELS));
}

static void test_good_files(void) {
  IdxFile file;
  unsigned char packed[MOST];
  CHECK_OK(read_bytes(images, sizeof images, &file));
  check_images(&file);
  CHECK_OK(read_bytes(packed, compress_bytes(images, sizeof images, packed), &file));
  check_images(&file);
  CHECK_OK(read_bytes(labels, sizeof labels, &file));
  CU_ASSERT_EQUAL(file.magic, IDX_LABELLED);
  CU_ASSERT_EQUAL(file.count, 3);
  CU_ASSERT(file.values && file.values[0] == 7 && file.values[1] == 0 && file.values[2] == 9);
}

/* Checks a file that is longer than the reader's first block of memory, and not a multiple of it. */
static void test_long_file(void) {
  enum { COUNT = 300001 };
  unsigned char *bytes = calloc(COUNT + 8, 1);
  CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
  memcpy(bytes, (unsigned char[]){0, 0, 8, 1, 0, COUNT >> 16, COUNT >> 8 & 255, COUNT & 255}, 8);
  for (int i = 0; i < COUNT; i++) bytes[8 + i] = (unsigned char)(i % 10);
  IdxFile file;
  CHECK_OK(read_bytes(bytes, COUNT + 8, &file));
  CU_ASSERT_EQUAL(file.count, COUNT);
  CU_ASSERT(file.values && !memcmp(file.values, bytes + 8, COUNT));
  refused(bytes, COUNT + 7, "it ends at byte 300008, after 300000 of the 300001 labels");
  free(bytes);
}

static void test_cut_off_at_every_length(void) {
  unsigned char packed[MOST];
  size_t size = compress_bytes(images, sizeof images, packed);
  for (size_t n = 0; n < sizeof images; n++) {
    char place[64];
    snprintf(place, sizeof place, "is cut off: it ends at byte %zu", n);
    refused(images, n, place);
  }
  for (size_t n = 0; n < sizeof labels; n++) refused(labels, n, "is cut off");
  for (size_t n = 0; n < size; n++) refused(packed, n, "is cut off");
  refused(images, 6, "in the header, before the number of elements");
  refused(images, 25, "it ends at byte 25, after 1 of the 3 images");
}

static void test_too_long(void) {
  unsigned char longer[SIZE + 1] = {0}, packed[MOST];
  memcpy(longer, images, sizeof images);
  refused(longer, sizeof longer, "continues at byte 34, after the 3 images");
  refused(packed, compress_bytes(longer, sizeof longer, packed), "continues at byte 34");
}

/* Checks that any change of the header makes it disagree with the rest of the file. */
static void test_every_header_byte_damaged(void) {
  unsigned char bytes[SIZE];
  for (int i = 0; i < HEADER; i++)
    for (int change = 1; change < 256; change++) {
      IdxFile file;
      memcpy(bytes, images, sizeof images);
      bytes[i] ^= (unsigned char)change;
      CHECK_FAILS(read_bytes(bytes, sizeof bytes, &file), STATUS_INPUT, file_name);
    }
}

/* Checks that damaged gzip data are refused, or (time stamp, system, flags that mean nothing here) read the
 * same as before. */
static void test_every_packed_byte_damaged(void) {
  unsigned char packed[MOST], bytes[MOST];
  size_t size = compress_bytes(images, sizeof images, packed);
  int wrong = 0;
  for (size_t i = 0; i < size; i++)
    for (int bit = 0; bit < 8; bit++) {
      IdxFile file;
      memcpy(bytes, packed, size);
      bytes[i] ^= (unsigned char)(1 << bit);
      Status status = read_bytes(bytes, size, &file);
      if (status == STATUS_OK)
        check_images(&file);
      else
        wrong++;
      CU_ASSERT(status == STATUS_OK || (status == STATUS_INPUT && strstr(status_message(), file_name)));
    }
  CU_ASSERT(wrong > 6 * (int)(size - 10)); /* all but a few bits of the 10 bytes of gzip's own header */
}

static void test_bad_headers(void) {
  refused("P5 28 28 255 and so on", 20, "is not an IDX file of images or labels: its magic number is");
  refused((unsigned char[]){0, 0, 8, 1, 0, 0, 0, 0}, 8, "the number of elements is 0 at byte 4");
  refused((unsigned char[]){0, 0, 8, 1, 255, 255, 255, 255}, 8,
          "the number of elements is 4294967295 at byte 4");
  refused((unsigned char[]){0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}, 16,
          "the number of rows is 0 at byte 8");
  refused((unsigned char[]){0, 0, 8, 3, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 2}, 16,
          "images of 65536 x 2 pixels");
  /* Promises 70 TB: this must be detected before the memory is requested. */
  refused((unsigned char[]){0, 0, 8, 3, 64, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 42}, 17,
          "after 0 of the 1073741824 images");
  refused((unsigned char[]){0, 0, 8, 1, 0, 0, 0, 3, 1, 10, 2}, 11,
          "label 1, at byte 9, is 10; labels are 0 to 9");
}

static void test_unreadable(void) {
  IdxFile file;
  CHECK_FAILS(read_path("no/such/file.gz", &file), STATUS_FILE, "No such file");
  CHECK_FAILS(read_path(".", &file), STATUS_FILE, "directory");
}

/* Writes a labelled set of `count` digits with labels 0, 1, ..., all pixels of an image equal to its
 * label. */
static void write_set(const char *image_name, const char *label_name, int count, int columns) {
  unsigned char bytes[MOST] = {0, 0, 8, 3, 0, 0, 0, (unsigned char)count,
                               0, 0, 0, 2, 0, 0, 0, (unsigned char)columns};
  size_t one = 2 * (size_t)columns;
  for (int i = 0; i < count; i++) memset(bytes + HEADER + (size_t)i * one, i, one);
  write_bytes(image_name, bytes, HEADER + (size_t)count * one);
  unsigned char numbers[MOST] = {0, 0, 8, 1, 0, 0, 0, (unsigned char)count};
  for (int i = 0; i < count; i++) numbers[8 + i] = (unsigned char)i;
  write_bytes(label_name, numbers, 8 + (size_t)count);
}

static void check_set(const Digits *digits, int count, int inputs) {
  CU_ASSERT_EQUAL(digits->count, count);
  CU_ASSERT_EQUAL(digits->inputs, inputs);
  CU_ASSERT_FATAL(digits->pixels && digits->label);
  for (int i = 0; i < count; i++) {
    CU_ASSERT_EQUAL(digits->label[i], i);
    for (int j = 0; j < inputs; j++) CU_ASSERT_EQUAL(digits->pixels[i * inputs + j], i);
  }
}

static void reads(const char *const *paths, int training_count, int test_count) {
  Digits training, test;
  CHECK_OK(embedding_idx_read_digits(&kept, 4, paths, &training, &test));
  check_set(&training, training_count, 6);
  check_set(&test, test_count, 6);
}

static void mixed_up(int count, const char *const *paths, const char *part) {
  Digits training, test;
  CHECK_FAILS(embedding_idx_read_digits(&kept, count, paths, &training, &test), STATUS_INPUT, part);
}

/* Tries all 24 orders of four files. */
static void in_every_order(const char *const *names, int training_count, int test_count) {
  for (int code = 0; code < 256; code++) {
    const char *paths[4];
    int seen = 0;
    for (int i = 0; i < 4; i++) {
      int which = code >> (2 * i) & 3;
      paths[i] = names[which];
      seen |= 1 << which;
    }
    if (seen == 15) reads(paths, training_count, test_count);
  }
}

static void test_sets(void) {
  static const char *const named[4] = {"train-i", "train-l", "t10k-i", "test-l"};
  static const char *const unnamed[4] = {"idx-a", "idx-b", "idx-c", "idx-d"};
  static const char *const half[4] = {"idx-a", "train-l", "./t10k-i", "idx-d"};
  write_set("train-i", "train-l", 4, 3); /* the name decides, even when the training set is the smaller one */
  write_set("t10k-i", "test-l", 7, 3);
  in_every_order(named, 4, 7);
  write_set("idx-a", "idx-b", 9, 3);
  write_set("idx-c", "idx-d", 7, 3);
  in_every_order(unnamed, 9, 7);
  write_set("idx-a", "idx-b", 4, 3);
  in_every_order(half, 4, 7);
}

static void test_mixed_up_sets(void) {
  static const char *const good[4] = {"train-i", "train-l", "t10k-i", "test-l"};
  static const char *const three[4] = {"train-i", "train-l", "t10k-i", "train-i"};
  static const char *const twice[4] = {"train-i", "train-l", "./train-i", "test-l"};
  static const char *const equal[4] = {"idx-a", "idx-b", "idx-c", "idx-d"};
  write_set("train-i", "train-l", 4, 3);
  write_set("t10k-i", "test-l", 7, 3);
  write_set("idx-a", "idx-b", 5, 3);
  write_set("idx-c", "idx-d", 5, 3);
  mixed_up(3, good, "3 files were given; four are needed, in any order: training images");
  mixed_up(4, three, "3 of the 4 files hold images and 1 labels");
  mixed_up(4, twice, "both train-i and ./train-i hold training images");
  mixed_up(4, equal, "idx-a holds 5 images; nothing says whether they are for training or testing");
  write_set("t10k-i", "idx-b", 6, 3);
  mixed_up(4, good, "t10k-i holds 6 images, but test-l holds 7 labels");
  write_set("t10k-i", "test-l", 7, 2);
  mixed_up(4, good, "train-i holds images of 2 x 3 pixels, but t10k-i holds images of 2 x 2");
  write_bytes("test-l", labels, sizeof labels - 1);
  mixed_up(4, good, "test-l is cut off");
  Digits training, test;
  remove("train-l");
  CHECK_FAILS(embedding_idx_read_digits(&kept, 4, good, &training, &test), STATUS_FILE, "train-l");
}

/* Reads the fuzzer's corpus: whatever is accepted agrees with its header, whatever is refused has a
 * sentence. */
static void test_corpus(void) {
  char folder[4096];
  const char *source = getenv("THOMPSON_SOURCE");
  snprintf(folder, sizeof folder, "%s/tests/fuzz/corpus_idx", source ? source : ".");
  DIR *files = opendir(folder);
  CU_ASSERT_PTR_NOT_NULL_FATAL(files);
  int seen = 0, accepted = 0;
  for (struct dirent *entry; (entry = readdir(files)); seen++) {
    char path[8192];
    IdxFile file;
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    Status status = read_path(path, &file);
    CU_ASSERT(status == STATUS_OK || (status == STATUS_INPUT && strstr(status_message(), entry->d_name)));
    CU_ASSERT(status != STATUS_OK || (file.count > 0 && file.rows > 0 && file.columns > 0 && file.values));
    accepted += status == STATUS_OK;
  }
  closedir(files);
  CU_ASSERT(seen >= 10 && accepted >= 3);
}

static void remove_files(void) {
  static const char *const names[] = {"test_idx.bin", "train-i", "train-l", "t10k-i", "test-l",
                                      "idx-a",        "idx-b",   "idx-c",   "idx-d"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) remove(names[i]);
}

int main(void) {
  CU_TestInfo tests[] = {{"good files", test_good_files},
                         {"long file", test_long_file},
                         {"cut off at every length", test_cut_off_at_every_length},
                         {"too long", test_too_long},
                         {"every header byte damaged", test_every_header_byte_damaged},
                         {"every packed byte damaged", test_every_packed_byte_damaged},
                         {"bad headers", test_bad_headers},
                         {"unreadable", test_unreadable},
                         {"sets", test_sets},
                         {"mixed up sets", test_mixed_up_sets},
                         {"corpus of the fuzzer", test_corpus},
                         CU_TEST_INFO_NULL};
  int status = harness_run("idx", tests);
  remove_files();
  arena_free(&kept);
  return status;
}
