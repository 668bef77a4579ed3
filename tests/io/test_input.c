/* Files that a user gives: regular ones are read, everything else is refused at once by every reader. */
#include "harness.h"
#include "io/digest.h"
#include "io/gzip.h"
#include "io/input.h"
#include "io/io_dataset.h"
#include "io/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/test_input_XXXXXX";

static const char *in_folder(const char *name) {
  static char path[64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void regular_files_are_read(void) {
  const char *path = in_folder("it.txt");
  FILE *stream;
  char text[8] = "";
  int fd;
  CHECK_OK(store_write_text(path, "hello", true));
  CHECK_OK(input_open(path, &fd));
  CU_ASSERT_EQUAL(read(fd, text, sizeof text), 5);
  CU_ASSERT_STRING_EQUAL(text, "hello");
  close(fd);
  CHECK_OK(input_stream(path, &stream));
  CU_ASSERT_EQUAL(fgetc(stream), 'h');
  fclose(stream);
  unlink(path);
  CHECK_FAILS(input_stream(path, &stream), STATUS_FILE, strerror(ENOENT));
  CU_ASSERT_PTR_NULL(stream);
}

/* Checks a file of several blocks: the digest of its parts is that of the whole. */
static void files_are_hashed(void) {
  enum { SIZE = 200001 };
  const char *path = in_folder("long.txt");
  char whole[DIGEST_SIZE], parts[DIGEST_SIZE], *text = malloc(SIZE + 1);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  for (int i = 0; i < SIZE; i++) text[i] = (char)('a' + i % 23);
  text[SIZE] = '\0';
  CHECK_OK(store_write_text(path, text, true));
  CHECK_OK(digest_file(path, parts));
  CHECK_OK(digest_hex(text, SIZE, whole));
  CU_ASSERT_STRING_EQUAL(parts, whole);
  free(text);
  unlink(path);
  CHECK_FAILS(digest_file(path, parts), STATUS_FILE, strerror(ENOENT));
}

/* Checks that a file which has not changed is hashed once, and one of equal length that has, again. */
static void known_files_are_not_read_again(void) {
  const char *path = in_folder("known.txt");
  char one[DIGEST_SIZE], other[DIGEST_SIZE], *text = malloc(100001);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  memset(text, 'x', 100000);
  text[100000] = '\0';
  CHECK_OK(store_write_text(path, text, true));
  CHECK_OK(digest_file(path, one));
  const long before = harness_bytes_read();
  for (int i = 0; i < 10; i++) CHECK_OK(digest_file(path, other));
  CU_ASSERT_TRUE(harness_bytes_read() - before < 10000);
  CU_ASSERT_STRING_EQUAL(one, other);
  text[99999] = 'y';
  CHECK_OK(store_write_text(path, text, true));
  CHECK_OK(digest_file(path, other));
  CU_ASSERT_STRING_NOT_EQUAL(one, other);
  free(text);
  unlink(path);
}

/* Checks that every reader of a user's file refuses `path` with `part`. */
static void check_refused(const char *path, const char *part) {
  SCRATCH_ARENA(memory);
  Samples samples;
  Observations observations;
  GzipFile file;
  StoreFile *store;
  char hash[DIGEST_SIZE], *text;
  size_t size;
  int fd;
  CHECK_FAILS(input_open(path, &fd), STATUS_FILE, part);
  CU_ASSERT_EQUAL(fd, -1);
  CHECK_FAILS(io_dataset_read_samples(&memory, path, &samples), STATUS_FILE, part);
  CHECK_FAILS(io_dataset_read_observations(&memory, path, &observations), STATUS_FILE, part);
  CHECK_FAILS(gzip_open(path, &file), STATUS_FILE, part);
  CHECK_FAILS(store_open(path, &store), STATUS_FILE, part);
  CHECK_FAILS(store_read_text(path, SIZE_MAX, &text, &size), STATUS_FILE, part);
  CHECK_FAILS(digest_file(path, hash), STATUS_FILE, part);
}

/* Checks that a FIFO without a writer is not waited for: the alarm would end this test. */
static void everything_else_is_refused(void) {
  const char *fifo = in_folder("fifo");
  CU_ASSERT_EQUAL_FATAL(mkfifo(fifo, 0600), 0);
  alarm(30);
  check_refused(fifo, "not a regular file");
  alarm(0);
  unlink(fifo);
  check_refused("/dev/zero", "not a regular file");
  check_refused(folder, strerror(EISDIR));
}

int main(void) {
  if (!mkdtemp(folder)) return EXIT_FAILURE;
  CU_TestInfo tests[] = {{"regular files are read", regular_files_are_read},
                         {"files are hashed", files_are_hashed},
                         {"known files are not read again", known_files_are_not_read_again},
                         {"everything else is refused", everything_else_is_refused},
                         CU_TEST_INFO_NULL};
  int outcome = harness_run("input", tests);
  rmdir(folder);
  return outcome;
}
