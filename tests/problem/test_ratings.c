/* Readers of ratings: every form, and the messages about files that are wrong. */
#include "harness.h"

#include "core/status.h"
#include "problem/embedding/ratings.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { PATH_SIZE = 64 };

static Arena kept; /* what is read and trained; freed at the end */

static void temporary(char path[PATH_SIZE]) {
  strcpy(path, "ratings-XXXXXX");
  int file = mkstemp(path);
  if (file < 0) abort();
  close(file);
}

static void write_file(const char *path, const void *bytes, size_t size) {
  FILE *out = fopen(path, "wb");
  if (!out || fwrite(bytes, 1, size, out) != size) abort();
  fclose(out);
}

static void write_gzip(const char *path, const char *text) {
  gzFile out = gzopen(path, "wb");
  if (!out || gzwrite(out, text, (unsigned)strlen(text)) != (int)strlen(text)) abort();
  gzclose(out);
}

static Status read_text(const char *text, size_t size, const char *format, Ratings *out) {
  char path[PATH_SIZE];
  const char *input = path;
  temporary(path);
  write_file(path, text, size);
  Status status = ratings_read(&kept, 1, &input, format, out);
  unlink(path);
  return status;
}

/* Checks that the text is refused with STATUS_INPUT, at ":LINE: ", and that the sentence contains `part`. */
static void refused_as(const char *format, const char *text, int line, const char *part) {
  Ratings ratings;
  char place[32];
  snprintf(place, sizeof place, ":%d: ", line);
  CHECK_FAILS(read_text(text, strlen(text), format, &ratings), STATUS_INPUT, part);
  CU_ASSERT_PTR_NOT_NULL(strstr(status_message(), place));
  CU_ASSERT_PTR_NULL(ratings.rating);
}

static void refused(const char *text, int line, const char *part) { refused_as("auto", text, line, part); }

/* Checks three ratings: user 3 rates 7 with 4.5 and 9 with 1, user 20 rates 7 with -2. */
static void check_three(const Ratings *ratings) {
  CU_ASSERT_EQUAL_FATAL(ratings->count, 3);
  CU_ASSERT_EQUAL(ratings->users, 2);
  CU_ASSERT_EQUAL(ratings->items, 2);
  CU_ASSERT_EQUAL(ratings->user_id[0], 3);
  CU_ASSERT_EQUAL(ratings->user_id[1], 20);
  CU_ASSERT_EQUAL(ratings->item_id[0], 7);
  CU_ASSERT_EQUAL(ratings->item_id[1], 9);
  static const Rating expected[] = {{0, 0, 4.5}, {0, 1, 1}, {1, 0, -2}};
  for (int i = 0; i < 3; i++) {
    CU_ASSERT_EQUAL(ratings->rating[i].user, expected[i].user);
    CU_ASSERT_EQUAL(ratings->rating[i].item, expected[i].item);
    CHECK_NEAR(ratings->rating[i].value, expected[i].value, 0);
  }
  CHECK_NEAR(ratings_mean(ratings), 3.5 / 3, 1e-15);
}

static void test_forms(void) {
  static const char *const texts[] = {
      "3::7::4.5::978300760\n3::9::1::978302109\n20::7::-2::978301968\n",
      "20::7::-2\n3::9::1\n3::7::4.5\n",
      "3::9::1.\r\n20::7::-2e0\r\n3::7::45e-1\r\n\r\n",
      ("\xef\xbb\xbf" /* a byte-order mark, which a digit would lengthen */
       "3::7::4.5\n3::9::+1\n20::7::-2"),
      "3\t7\t4.5\t881250949\n20\t7\t-2\t881250949\n3\t9\t1\t0\n",
      "20\t7\t-2\n3\t9\t1\n3\t7\t4.5\n",
      "userId,movieId,rating,timestamp\n3,7,4.5,1\n3,9,1.0,1\n20,7,-2.0,1\n",
      "Rating,note,USER_ID,item_id\n4.5,x,3,7\n1,,3,9\n-2,a b,20,7\n\n \n",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    Ratings ratings;
    CHECK_OK(read_text(texts[i], strlen(texts[i]), "auto", &ratings));
    check_three(&ratings);
  }
}

static void test_several_files_and_gzip(void) {
  char first[PATH_SIZE], second[PATH_SIZE];
  const char *inputs[] = {first, second};
  Ratings ratings;
  temporary(first), temporary(second);
  write_gzip(first, "3::9::1\n20::7::-2\n");
  write_file(second, "3\t7\t4.5\t1\n", 10);
  CHECK_OK(ratings_read(&kept, 2, inputs, "auto", &ratings));
  check_three(&ratings);
  inputs[1] = first;
  CHECK_FAILS(ratings_read(&kept, 2, inputs, "auto", &ratings), STATUS_INPUT, "a second time (first at ");
  unlink(first), unlink(second);
  CHECK_FAILS(ratings_read(&kept, 1, inputs, "auto", &ratings), STATUS_FILE, first);
  CHECK_FAILS(ratings_read(&kept, 1, (const char *[]){"/"}, "auto", &ratings), STATUS_FILE, "directory");
}

static void test_wrong_lines(void) {
  refused("1::2::3\n1::x::3\n", 2, "the item is 'x'");
  refused("0::2::3\n", 1, "the user is '0'");
  refused("-1::2::3\n", 1, "the user is '-1'");
  refused("1::9007199254740993::3\n", 1, "the item is '9007199254740993'");
  refused("1::99999999999999999999999999::3\n", 1, "integer from 1 to 2^53");
  refused("1::2::\n", 1, "the rating is ''");
  refused("1::2::nan\n", 1, "the rating is 'nan'");
  refused("1::2::inf::5\n", 1, "the rating is 'inf'");
  refused("1::2::1e999\n", 1, "from -100 to 100");
  refused("1::2::978300760\n", 1, "the rating is '978300760'");
  refused("1::2::0x3\n", 1, "the rating is '0x3'");
  refused("1::2::3-4\n", 1, "the rating is '3-4'");
  refused("1::2::3::4\n5::6::7\n", 2, "3 fields, expected 4");
  refused("1::2::3\n5::6::1::7\n", 2, "4 fields, expected 3");
  refused("1::2::3::4::5\n", 1, "5 fields");
  refused("1::2::3\n1::", 2, "2 fields, expected 3"); /* cut off in the middle of a line */
  refused("1::2::3\n\n4::5::1\n", 2, "blank line");
  refused("1::2::3\n4::5::1\n1::2::3\n", 3, "user 1 rates item 2 a second time (first at");
  refused("1\t2\t3\t4\n1,3,3\n", 2, "1 field, expected 4");
}

static void test_wrong_files(void) {
  refused("1::F::1::10::48067\n", 1, "5 fields"); /* users.dat */
  refused("1::Toy Story (1995)::Animation\n", 1, "the item is 'Toy Story (1995)'"); /* movies.dat */
  refused("1|24|M|technician|85711\n", 1, "'1|24|M|technician|85711' is not a rating"); /* 100K's u.user */
  refused("userId,movieId,tag,timestamp\n1,2,funny,3\n", 1, "no column 'rating'"); /* tags.csv */
  refused("1,2,3,4\n", 1, "no column 'userId'");
  refused("\x1b[31mhello\n", 1, "'?[31mhello' is not a rating");
  refused_as("1m", "1\t2\t3\t4\n", 1, "1 field, expected 4: user::movie::rating");
  refused_as("100k", "1::2::3\n", 1, "(format 100k)");
  refused_as("csv", "1::2::3\n", 1, "no column 'userId'");
  static char text[6000];
  memset(text, '7', sizeof text - 1);
  refused(text, 1, "more than 4096 characters without a line end");
  Ratings ratings;
  CHECK_FAILS(read_text("", 0, "auto", &ratings), STATUS_INPUT, "no ratings");
  CHECK_FAILS(read_text("\n\n", 2, "auto", &ratings), STATUS_INPUT, "no ratings");
  CHECK_FAILS(read_text("userId,movieId,rating\n", 22, "auto", &ratings), STATUS_INPUT, "no ratings");
  CHECK_FAILS(read_text("PK\3\4\0\0", 6, "auto", &ratings), STATUS_INPUT, "zip archive");
  CHECK_FAILS(read_text("1::2::3\n4::\0::5\n", 16, "auto", &ratings), STATUS_INPUT, ":2: a zero byte");
}

/* Checks that every prefix of a compressed file is refused as cut off, and every flipped byte of its data as
 * damaged. */
static void test_damaged_gzip(void) {
  char path[PATH_SIZE], *text;
  const char *input = path;
  size_t length;
  FILE *out = open_memstream(&text, &length);
  for (int i = 1; i <= 300; i++) fprintf(out, "%d::%d::%d\n", i, 1 + i * i % 97, 1 + i % 5);
  fclose(out);
  temporary(path);
  write_gzip(path, text);
  free(text);
  unsigned char bytes[4096];
  FILE *in = fopen(path, "rb");
  size_t size = fread(bytes, 1, sizeof bytes, in);
  fclose(in);
  CU_ASSERT_FATAL(size > 500 && size < sizeof bytes);
  Ratings ratings;
  int wrong = 0;
  for (size_t cut = 20; cut < size; cut += 7) { /* below 18 bytes there is no whole header */
    write_file(path, bytes, cut);
    wrong += ratings_read(&kept, 1, &input, "auto", &ratings) != STATUS_INPUT ||
             !strstr(status_message(), "is cut off: its gzip data end too early");
  }
  CU_ASSERT_EQUAL(wrong, 0);
  for (size_t at = 10; at < size - 4; at += 11) { /* the last four bytes are the length */
    bytes[at] ^= 0x10;
    write_file(path, bytes, size);
    wrong += ratings_read(&kept, 1, &input, "auto", &ratings) != STATUS_INPUT;
    bytes[at] ^= 0x10;
  }
  CU_ASSERT_EQUAL(wrong, 0);
  unlink(path);
}

/* Checks that the made samples hold the same ratings in four forms. */
static void test_samples(void) {
  static const char *const names[] = {"ratings_1m.dat", "ratings_1m_no_timestamp.dat.gz", "ratings_100k.data",
                                      "ratings.csv"};
  const char *root = getenv("THOMPSON_SOURCE");
  Ratings first = {0};
  for (int i = 0; i < 4; i++) {
    char path[4096];
    const char *input = path;
    Ratings ratings;
    snprintf(path, sizeof path, "%s/data/samples/%s", root ? root : "..", names[i]);
    CHECK_OK(ratings_read(&kept, 1, &input, "auto", &ratings));
    if (i == 0) {
      first = ratings;
      CU_ASSERT_EQUAL(first.count, 433); /* wc -l */
      continue;
    }
    CU_ASSERT_EQUAL_FATAL(ratings.count, first.count);
    CU_ASSERT_EQUAL(memcmp(ratings.rating, first.rating, (size_t)first.count * sizeof *first.rating), 0);
    CU_ASSERT_EQUAL(memcmp(ratings.user_id, first.user_id, (size_t)first.users * sizeof(int64_t)), 0);
    CU_ASSERT_EQUAL(memcmp(ratings.item_id, first.item_id, (size_t)first.items * sizeof(int64_t)), 0);
  }
}

/* Reads the fuzzer's corpus in every format: whatever is accepted is in range, whatever is refused has a
 * sentence. */
static void test_corpus(void) {
  static const char *const formats[] = {"auto", "1m", "100k", "csv"};
  const char *root = getenv("THOMPSON_SOURCE");
  char folder[4096];
  int seen = 0;
  snprintf(folder, sizeof folder, "%s/tests/fuzz/corpus_ratings", root ? root : "..");
  DIR *files = opendir(folder);
  CU_ASSERT_PTR_NOT_NULL_FATAL(files);
  for (struct dirent *entry; (entry = readdir(files));) {
    char path[8192];
    const char *input = path;
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    for (int f = 0; f < 4; f++) {
      Ratings ratings;
      Status status = ratings_read(&kept, 1, &input, formats[f], &ratings);
      CU_ASSERT_TRUE(status == STATUS_OK || status == STATUS_INPUT);
      if (status != STATUS_OK) CU_ASSERT_PTR_NOT_NULL(strstr(status_message(), entry->d_name));
      for (int64_t i = 0; i < ratings.count; i++) CU_ASSERT_TRUE(fabs(ratings.rating[i].value) <= 100);
    }
    seen++;
  }
  closedir(files);
  CU_ASSERT_TRUE(seen >= 10);
}

/* Reads ratings in which twelve users rate items 1 to 6 by (user + item) % 3 == 0, and user u alone rates
 * item 100 + u. */
static Status read_square(Ratings *out) {
  char text[4096] = "";
  for (int u = 1; u <= 12; u++)
    for (int i = 1; i <= 100 + u; i++)
      if (i <= 6 ? (u + i) % 3 == 0 : i == 100 + u)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d::%d::%d\n", u, i, u % 5);
  return read_text(text, strlen(text), "1m", out);
}

static bool has_id(int count, const int64_t *ids, int64_t id) {
  for (int i = 0; i < count; i++)
    if (ids[i] == id) return true;
  return false;
}

/* Checks that each rating of an item that was rated by the users learned from is in one part, under its own
 * ids. */
static void test_split(void) {
  Ratings all, learned, held_out, again, other;
  CHECK_OK(read_square(&all));
  CHECK_OK(ratings_split(&kept, &all, 0.25, 1, &learned, &held_out));
  CU_ASSERT_EQUAL(learned.users, 9);
  CU_ASSERT_EQUAL(held_out.users, 3);
  CU_ASSERT_EQUAL(learned.items, 6 + 9); /* no items that were rated only by held-out users */
  CU_ASSERT_EQUAL(held_out.items, learned.items);
  CU_ASSERT_EQUAL(learned.count + held_out.count, all.count - 3);
  const Ratings *parts[] = {&learned, &held_out};
  for (int p = 0; p < 2; p++)
    for (int64_t r = 0; r < parts[p]->count; r++) {
      const Rating *rating = &parts[p]->rating[r];
      const int64_t user = parts[p]->user_id[rating->user], item = parts[p]->item_id[rating->item];
      CU_ASSERT(item <= 6 ? (user + item) % 3 == 0 : item == 100 + user);
      CU_ASSERT_EQUAL(rating->value, (double)(user % 5));
    }
  for (int u = 0; u < 3; u++) CU_ASSERT_FALSE(has_id(learned.users, learned.user_id, held_out.user_id[u]));
  CHECK_OK(ratings_split(&kept, &all, 0.25, 1, &other, &again));
  CU_ASSERT_EQUAL(memcmp(again.user_id, held_out.user_id, 3 * sizeof *again.user_id), 0);
  int different = 0;
  for (uint64_t seed = 2; seed < 12; seed++) {
    CHECK_OK(ratings_split(&kept, &all, 0.25, seed, &other, &again));
    different += memcmp(again.user_id, held_out.user_id, 3 * sizeof *again.user_id) != 0;
  }
  CU_ASSERT(different >= 5); /* of 10; each is the same with probability 1 / 220 */
  CHECK_FAILS(ratings_split(&kept, &all, 0.99, 1, &other, &again), STATUS_INPUT,
              "no users are left to learn from");
  CHECK_OK(read_text("1::1::1\n2::2::2\n", 16, "1m", &all));
  CHECK_FAILS(ratings_split(&kept, &all, 0.1, 1, &other, &again), STATUS_INPUT,
              "held-out users rated no item that other users rated");
}

int main(void) {
  CU_TestInfo tests[] = {{"every form of a rating", test_forms},
                         {"several files, compressed or not", test_several_files_and_gzip},
                         {"lines that are wrong", test_wrong_lines},
                         {"files that are no ratings", test_wrong_files},
                         {"compressed files that are cut off or damaged", test_damaged_gzip},
                         {"the made samples are the same in all forms", test_samples},
                         {"users held out", test_split},
                         {"corpus of the fuzzer", test_corpus},
                         CU_TEST_INFO_NULL};
  const int status = harness_run("ratings", tests);
  arena_free(&kept);
  return status;
}
