/* Samples and histories that users bring, as CSV and NetCDF. */
#include "bytes.h"
#include "core/status.h"
#include "harness.h"
#include "io/io_dataset.h"
#include "io/store.h"

#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static Arena parsed; /* tables */

static Status parse_bytes(const char *text, size_t size, CsvForm form, Table *table) {
  SCOPED(GzipFile, file, gzip_close);
  TRY(bytes_open(size, text, &file));
  return io_dataset_csv_parse(&parsed, &file, form, table);
}

static Status parse(const char *text, CsvForm form, Table *table) {
  return parse_bytes(text, strlen(text), form, table);
}

/* Checks that the text is refused with a sentence that contains `part`. */
static void refused(const char *text, CsvForm form, const char *part) {
  Table table;
  CHECK_FAILS(parse(text, form, &table), STATUS_INPUT, part);
  arena_free(&parsed);
}

static void check_table(const char *text, CsvForm form, int rows, int columns, const double *values) {
  Table table;
  CHECK_OK(parse(text, form, &table));
  CU_ASSERT_EQUAL(table.rows, rows);
  CU_ASSERT_EQUAL(table.columns, columns);
  for (int i = 0; i < rows * columns && table.rows == rows && table.columns == columns; i++)
    CHECK_NEAR(table.values[i], values[i], 0);
  arena_free(&parsed);
}

static void test_number_forms(void) {
  const double values[] = {1, -2.5, 3, 400, 0.05, -6e-3};
  check_table("1,-2.5,+3\n4e2,5E-02,-6.E-3\n", CSV_NO_HEADER, 2, 3, values);
  check_table("1,-2.5,+3\r\n4e2,.05,-.006\r\n", CSV_NO_HEADER, 2, 3, values);
  check_table(" 1 ,\t-2.5, +3 \n 400.,5e-2 ,-6e-003", CSV_NO_HEADER, 2, 3, values);
  check_table("\xef\xbb\xbf"
              "1,-2.5,3\n4e+2,0.05,-0.006\n\n  \r\n\n",
              CSV_NO_HEADER, 2, 3, values);
}

/* Checks that numbers are rounded correctly: the C library's strtod rounds correctly; the reader must agree
 * to the last bit on numbers of every length. */
static void test_numbers_are_rounded_correctly(void) {
  static const char *const hard[] = {"9007199254740993",
                                     "9007199254740992.999999999999",
                                     "0.1",
                                     "1.00000000000000011102230246251565",
                                     "2.2250738585072014e-308",
                                     "4.9e-324",
                                     "1e-400",
                                     "9.8765432109876543e44",
                                     "-0.0",
                                     "18446744073709551615",
                                     "18446744073709551616",
                                     "9.5367431640625e-07",
                                     "0000000000000000000000001",
                                     "123456789012345678e9",
                                     "8.5e22",
                                     "1e23"};
  for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) {
    double expected = strtod(hard[i], NULL);
    Table table;
    CHECK_OK(parse(hard[i], CSV_NO_HEADER, &table));
    if (table.values) CU_ASSERT_EQUAL(memcmp(table.values, &expected, sizeof expected), 0);
    arena_free(&parsed);
  }
  enum { FILES = 200, NUMBERS = 1000, LONGEST = 64 };
  static char text[NUMBERS][LONGEST];
  char *lines = malloc(NUMBERS * (LONGEST + 1));
  uint64_t state = 1;
  int wrong = 0;
  CU_ASSERT_PTR_NOT_NULL_FATAL(lines);
  for (int file = 0; file < FILES; file++) {
    size_t length = 0;
    for (int i = 0; i < NUMBERS; i++) {
      state = state * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
      snprintf(text[i], LONGEST, "%s%lu.%0*lue%d", i % 2 ? "-" : "", (unsigned long)(state >> 60), 1 + i % 17,
               (unsigned long)(state >> 12) % 10000000000000000u, (int)(state >> 32) % 30);
      length += (size_t)sprintf(lines + length, "%s\n", text[i]);
    }
    Table table;
    CHECK_OK(parse(lines, CSV_NO_HEADER, &table));
    for (int i = 0; i < NUMBERS && table.rows == NUMBERS; i++) {
      const double expected = strtod(text[i], NULL);
      wrong += memcmp(&table.values[i], &expected, sizeof expected) != 0;
    }
    CU_ASSERT_EQUAL(table.rows, NUMBERS);
    arena_free(&parsed);
  }
  free(lines);
  CU_ASSERT_EQUAL(wrong, 0);
}

static void test_bad_tables(void) {
  refused("", CSV_NO_HEADER, "it.csv is empty");
  refused("\n\n", CSV_NO_HEADER, "it.csv is empty");
  refused("1,2\n3\n", CSV_NO_HEADER, "line 2: fewer values than the 2 in line 1");
  refused("1,2\n3,4\n5,6,7\n", CSV_NO_HEADER, "line 3: more values than the 2 in line 1");
  refused("1,2\n\n3,4\n", CSV_NO_HEADER, "line 2 is blank");
  refused("1,2\n3,\n", CSV_NO_HEADER, "line 2, column 2: the value is missing");
  refused("1,2\n3,abc\n", CSV_NO_HEADER, "line 2, column 2: 'abc' is not a number");
  refused("1,0x10\n", CSV_NO_HEADER, "line 1, column 2: '0x10' is not a number");
  refused("1;2\n", CSV_NO_HEADER, "'1;2' is not a number (values are decimal numbers separated by commas)");
  refused("1 2\n", CSV_NO_HEADER, "'1 2' is not a number");
  refused("1,\"2\"\n", CSV_NO_HEADER, "line 1, column 2: quotes are not allowed");
  refused("1,nan\n", CSV_NO_HEADER, "line 1, column 2: 'nan' is not finite");
  refused("-Inf,1\n", CSV_NO_HEADER, "line 1, column 1: '-Inf' is not finite");
  refused("1e999\n", CSV_NO_HEADER, "'1e999' is too large; values are at most 1e+45 in size");
  refused("x1,x2\n1,2\n", CSV_NO_HEADER, "'x1' is not a number");
  refused("1.2.3\n", CSV_NO_HEADER, "not a number");
  refused("1e\n", CSV_NO_HEADER, "not a number");
  refused("-\n", CSV_NO_HEADER, "not a number");
  refused(".\n", CSV_NO_HEADER, "not a number");
  Table table;
  CHECK_FAILS(parse_bytes("1\0002\n", 4, CSV_NO_HEADER, &table), STATUS_INPUT, "'1?2' is not a number");
  CHECK_FAILS(parse_bytes("x1,y\0z\n", 7, CSV_X_Y_HEADER, &table), STATUS_INPUT, "'y?z'");
  arena_free(&parsed);
}

static void test_header(void) {
  const double values[] = {1, 2, 3, 4, 5, 6};
  check_table("x1,x2,y\n1,2,3\n4,5,6\n", CSV_X_Y_HEADER, 2, 3, values);
  check_table(" x1 , x2,\ty \r\n1,2,3\r\n4,5,6", CSV_X_Y_HEADER, 2, 3, values);
  check_table("x1,y\n", CSV_X_Y_HEADER, 0, 2, values);
  check_table("x1,y", CSV_X_Y_HEADER, 0, 2, values);
  refused("", CSV_X_Y_HEADER, "there is no header; it must read x1,...,xd,y");
  refused("1,2,3\n", CSV_X_Y_HEADER, "line 1, column 1: the header has '1' where 'x1' is expected");
  refused("y\n1\n", CSV_X_Y_HEADER, "the header has 'y' where 'x1' is expected");
  refused("x1,x3,y\n", CSV_X_Y_HEADER, "column 2: the header has 'x3' where 'x2' or 'y' is expected");
  refused("x1,x2\n", CSV_X_Y_HEADER, "must end with the column 'y'");
  refused("x1,y,x2\n", CSV_X_Y_HEADER, "'y' must be the last column");
  refused("x1,Y\n", CSV_X_Y_HEADER, "'Y'");
  refused("x1,y\n1,2,3\n", CSV_X_Y_HEADER, "line 2: more values than the 2 in line 1");
  refused("x1,y\n1\n", CSV_X_Y_HEADER, "line 2: fewer values");
}

/* Checks long lines: one line of 10 000 numbers is longer than any buffer of the reader; so is a field of 100
 * 000 characters, which is not a number. */
static void test_long_lines(void) {
  enum { D = 10000 };
  char *text;
  size_t size;
  FILE *stream = open_memstream(&text, &size);
  for (int line = 0; line < 3; line++)
    for (int j = 0; j < D; j++) fprintf(stream, "%d.%05d%s", line, j, j + 1 < D ? "," : "\n");
  fclose(stream);
  Table table;
  CHECK_OK(parse(text, CSV_NO_HEADER, &table));
  CU_ASSERT_EQUAL(table.rows, 3);
  CU_ASSERT_EQUAL(table.columns, D);
  for (int i = 0; table.values && i < 3 * D; i += 997)
    CHECK_NEAR(table.values[i], i / D + (i % D) / 1e5, 1e-15);
  arena_free(&parsed);
  free(text);

  text = calloc(100001, 1);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  memset(text, '1', 100000);
  refused(text, CSV_NO_HEADER, "line 1, column 1: more than 1024 characters without a comma");
  free(text);
}

static const char *golden(const char *name) {
  static char path[4096];
  const char *source = getenv("THOMPSON_SOURCE");
  snprintf(path, sizeof path, "%s/tests/golden/%s", source ? source : ".", name);
  return path;
}

/* Writes text to a file in the working directory. */
static const char *file_of(const char *text) {
  static const char name[] = "test_dataset.csv";
  FILE *stream = fopen(name, "wb");
  CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
  fputs(text, stream);
  fclose(stream);
  return name;
}

static void test_samples_of_csv(void) {
  SCRATCH_ARENA(memory);
  Samples samples;
  CHECK_OK(io_dataset_read_samples(&memory, file_of("1,2\n3,4\n5,6\n"), &samples));
  CU_ASSERT_EQUAL(samples.d, 2);
  CU_ASSERT_EQUAL(samples.n, 3);
  for (int i = 0; samples.theta && i < 6; i++) CHECK_NEAR(samples.theta[i % 2 * 3 + i / 2], i + 1, 0);
  CHECK_FAILS(io_dataset_read_samples(&memory, file_of("1,2\n3,x\n"), &samples), STATUS_INPUT,
              "test_dataset.csv, line 2");
  CHECK_FAILS(io_dataset_read_samples(&memory, "no/such/file.csv", &samples), STATUS_FILE, "No such file");
  CHECK_FAILS(io_dataset_read_samples(&memory, ".", &samples), STATUS_FILE, "directory");
  remove("test_dataset.csv");
}

static void test_samples_of_netcdf(void) {
  SCRATCH_ARENA(memory);
  Samples samples;
  CHECK_OK(io_dataset_read_samples(&memory, golden("dataset_float.nc"), &samples));
  CU_ASSERT_EQUAL(samples.d, 3);
  CU_ASSERT_EQUAL(samples.n, 5);
  for (int j = 0; samples.theta && j < 3; j++)
    for (int i = 0; i < 5; i++) CHECK_NEAR(samples.theta[j * 5 + i], i + j / 8.0, 0);
  CHECK_FAILS(io_dataset_read_samples(&memory, golden("dataset_missing.nc"), &samples), STATUS_INPUT,
              "theta[3, 1] is nan");
  CHECK_FAILS(io_dataset_read_samples(&memory, golden("dataset_transposed.nc"), &samples), STATUS_INPUT,
              "is transposed");
  CHECK_FAILS(io_dataset_read_samples(&memory, golden("dataset_packed.nc"), &samples), STATUS_INPUT,
              "is packed");
  CHECK_FAILS(io_dataset_read_samples(&memory, golden("dataset_no_rewards.nc"), &samples), STATUS_INPUT,
              "no variable 'theta'");
  CHECK_FAILS(io_dataset_read_samples(&memory, "no/such/file.nc", &samples), STATUS_FILE, "No such file");
}

static void test_observations(void) {
  SCRATCH_ARENA(memory);
  Observations seen;
  CHECK_OK(io_dataset_read_observations(&memory, golden("dataset_history_records.nc"), &seen));
  CU_ASSERT_EQUAL(seen.rows, 4);
  CU_ASSERT_EQUAL(seen.d, 3);
  for (int i = 0; seen.rewards && i < 4; i++) {
    CHECK_NEAR(seen.rewards[i], 3 * i, 0);
    for (int j = 0; j < 3; j++) CHECK_NEAR(seen.features[i * 3 + j], i - j / 4.0, 0);
  }
  CHECK_OK(io_dataset_read_observations(&memory, golden("dataset_history_empty.nc"), &seen));
  CU_ASSERT_EQUAL(seen.rows, 0);
  CU_ASSERT_EQUAL(seen.d, 3);
  CHECK_FAILS(io_dataset_read_observations(&memory, golden("dataset_no_rewards.nc"), &seen), STATUS_INPUT,
              "no variable 'y'");

  CHECK_OK(io_dataset_read_observations(&memory, file_of("x1,x2,y\n1,2,3\n4,5,6\n"), &seen));
  CU_ASSERT_EQUAL(seen.rows, 2);
  CU_ASSERT_EQUAL(seen.d, 2);
  for (int i = 0; seen.rewards && i < 2; i++) {
    CHECK_NEAR(seen.rewards[i], 3 * i + 3, 0);
    for (int j = 0; j < 2; j++) CHECK_NEAR(seen.features[i * 2 + j], 3 * i + j + 1, 0);
  }
  CHECK_OK(io_dataset_read_observations(&memory, file_of("x1,x2,y\n"), &seen));
  CU_ASSERT_EQUAL(seen.rows, 0);
  CU_ASSERT_EQUAL(seen.d, 2);
  CHECK_FAILS(io_dataset_read_observations(&memory, file_of("a,b\n1,2\n"), &seen), STATUS_INPUT,
              "where 'x1' is expected");
  remove("test_dataset.csv");
}

/* Reads the fuzzer's corpus in all forms: whatever is accepted is finite, whatever is refused has a
 * sentence. */
static void test_corpus(void) {
  char folder[4096];
  snprintf(folder, sizeof folder, "%s", golden("../fuzz/corpus_dataset"));
  DIR *files = opendir(folder);
  CU_ASSERT_PTR_NOT_NULL_FATAL(files);
  int seen = 0;
  for (struct dirent *entry; (entry = readdir(files));) {
    char path[8192];
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    const CsvForm forms[] = {CSV_NO_HEADER, CSV_X_Y_HEADER, CSV_EVENT_HEADER};
    for (int form = 0; form < 3; form++) {
      SCOPED(GzipFile, file, gzip_close);
      CHECK_OK(gzip_open(path, &file));
      Table table;
      Status status = io_dataset_csv_parse(&parsed, &file, forms[form], &table);
      CU_ASSERT_TRUE(status == STATUS_OK || status == STATUS_INPUT);
      if (status != STATUS_OK) CU_ASSERT_PTR_NOT_NULL(strstr(status_message(), entry->d_name));
      for (int i = 0; status == STATUS_OK && i < table.rows * table.columns; i++)
        CU_ASSERT(isfinite(table.values[i]));
      arena_free(&parsed);
    }
    seen++;
  }
  closedir(files);
  CU_ASSERT(seen >= 10);
}

/* Rewards in the wrong order are named with the dimensions that they should have. */
static void test_transposed_rewards(void) {
  SCRATCH_ARENA(memory);
  static const char *const path = "test_dataset_rewards.nc";
  const double values[6] = {0};
  int event, arm, dim;
  StoreFile *file;
  EventLog log;
  CHECK_OK(store_create(path, &file));
  CHECK_OK(store_dimension(file, "event", 3, &event));
  CHECK_OK(store_dimension(file, "arm", 2, &arm));
  CHECK_OK(store_dimension(file, "dim", 2, &dim));
  const int context[] = {event, dim}, reward[] = {arm, event};
  CHECK_OK(store_write(file, "context", STORE_DOUBLE, 2, context, NULL, NULL, values));
  CHECK_OK(store_write(file, "reward", STORE_DOUBLE, 2, reward, NULL, NULL, values));
  CHECK_OK(store_finish(file, STATUS_OK));
  CHECK_FAILS(io_dataset_read_table(&memory, path, &log), STATUS_INPUT,
              "'reward' is transposed; its dimensions must be (event, arm)");
  remove(path);
}

int main(void) {
  CU_TestInfo tests[] = {{"transposed rewards", test_transposed_rewards},
                         {"number forms", test_number_forms},
                         {"numbers are rounded correctly", test_numbers_are_rounded_correctly},
                         {"bad tables", test_bad_tables},
                         {"header", test_header},
                         {"long lines", test_long_lines},
                         {"samples of CSV", test_samples_of_csv},
                         {"samples of NetCDF", test_samples_of_netcdf},
                         {"observations", test_observations},
                         {"corpus of the fuzzer", test_corpus},
                         CU_TEST_INFO_NULL};
  return harness_run("dataset", tests);
}
