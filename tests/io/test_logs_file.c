/* Files of logs of past tasks: texts by RFC 4180, every refusal with its place, NetCDF, and many names. */
#include "bytes.h"
#include "harness.h"

#include "io/io_logs.h"
#include "io/store.h"
#include "model/history/likelihoods.h"
#include "model/logs/logs.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 16, D = 2 };

typedef struct {
  int d, rows, task[MOST];
  double x[MOST][D], y[MOST];
} Rows;

static Status begin(void *context, int d) {
  ((Rows *)context)->d = d;
  return STATUS_OK;
}

static Status take(void *context, int task, const double *x, double y) {
  Rows *rows = context;
  if (rows->d <= D) memcpy(rows->x[rows->rows], x, (size_t)rows->d * sizeof *x);
  rows->y[rows->rows] = y;
  rows->task[rows->rows++] = task;
  return STATUS_OK;
}

static Status parse_bytes(const char *text, size_t size, Rows *rows) {
  const LogsSink sink = {.context = rows, .begin = begin, .row = take};
  SCOPED(GzipFile, file, gzip_close);
  *rows = (Rows){0};
  TRY(bytes_open(size, text, &file));
  return io_logs_read_csv(&file, &sink);
}

static Status parse(const char *text, Rows *rows) { return parse_bytes(text, strlen(text), rows); }

static void test_tasks(void) {
  Rows rows;
  CHECK_OK(parse("\xef\xbb\xbf"
                 "task,x1,x2,y\r\n"
                 "a,1,2,3\r\n"
                 "\"b, \"\"c\"\"\nd\",4,5,6\r\n"
                 "\"a\",7,8,9\r\n"
                 " a, 1 ,2,3\r\n"
                 "\"a \",1,2,3\r\n"
                 "a\t,1,2,3\r\n"
                 "M\xc3\xbcller,0,0,-1e-3\r\n\r\n",
                 &rows));
  const int task[] = {0, 1, 0, 0, 0, 0, 2};
  const double y[] = {3, 6, 9, 3, 3, 3, -1e-3};
  CU_ASSERT_EQUAL_FATAL(rows.rows, 7);
  CU_ASSERT_EQUAL(rows.d, 2);
  for (int r = 0; r < 7; r++) {
    CU_ASSERT_EQUAL(rows.task[r], task[r]);
    CHECK_NEAR(rows.y[r], y[r], 0);
  }
  CHECK_NEAR(rows.x[2][0], 7, 0);
  CHECK_NEAR(rows.x[2][1], 8, 0);
  CHECK_OK(parse("\"task\",\"x1\",\"y\"\nonly,1,2", &rows)); /* quoted headers; no last line end */
  CU_ASSERT_EQUAL(rows.rows, 1);
}

static void refused(const char *text, const char *part) {
  Rows rows;
  CHECK_FAILS(parse(text, &rows), STATUS_INPUT, part);
}

#define HEAD "task,x1,x2,y\n"

static void test_refusals(void) {
  refused("", "line 1, column 1: there is no header; it must read task,x1,...,xd,y");
  refused("x1,x2,y\n", "line 1, column 1: the header has 'x1' where 'task' is expected");
  refused("task,y\n", "line 1, column 2: the header has 'y' where 'x1' is expected");
  refused("task,x1,x3,y\n", "column 3: the header has 'x3' where 'x2' or 'y' is expected");
  refused("task,x1,x2\n", "column 3: the header must end with the column 'y'");
  refused("task,x1,y,x2\n", "column 3: 'y' must be the last column");
  refused(HEAD, "it.csv has a header, but no observations");
  refused(HEAD "a,1,2,3\nb,1,2\n", "it.csv, line 3: 3 values, but the header has 4");
  refused(HEAD "a,1,2,3,4\n", "it.csv, line 2: more values than the 4 in the header");
  refused(HEAD "a\n", "it.csv, line 2: 1 values, but the header has 4");
  refused(HEAD "a,nan,2,3\n", "it.csv, line 2, column 2: 'nan' is not finite");
  refused(HEAD "a,1,,3\n", "it.csv, line 2, column 3: the value is missing");
  refused(HEAD "a,1,2,three\n", "it.csv, line 2, column 4: 'three' is not a number");
  refused(HEAD "a,1,2,1e46\n", "too large");
  refused(HEAD ",1,2,3\n", "it.csv, line 2, column 1: the name of the task is missing");
  refused(HEAD "\"\",1,2,3\n", "the name of the task is missing");
  refused(HEAD "a\"b,1,2,3\n", "line 2, column 1: a quote inside a text");
  refused(HEAD "\"a\"b,1,2,3\n", "a quoted text continues after its closing quote");
  refused(HEAD "\"a\nb\",1,2,3\n\"c,1,2,3\n", "a quoted text has no closing quote");
  refused(HEAD "\"a\nb\",1,2,3\nc,1,2,x\n", "it.csv, line 4, column 4");
  refused(HEAD "a,1,2,3\n\nb,1,2,3\n", "it.csv, line 3 is blank, but more lines follow");
  refused(HEAD "ok,1,2,3\ncaf\xe9,1,2,3\n",
          "it.csv, line 3, column 1: byte 4 of the text, 0xe9, is not UTF-8");
  refused(HEAD "\xed\xa0\x80,1,2,3\n", "byte 1 of the text, 0xed, is not UTF-8");
  refused(HEAD "\xf4\x90\x80\x80,1,2,3\n", "0xf4, is not UTF-8");
  refused(HEAD "\xc0\xaf,1,2,3\n", "0xc0, is not UTF-8");
}

/* Checks that rewards outside the support of the likelihood are refused, with their line. */
static void test_rewards(void) {
  char path[64];
  const Likelihood logistic = {.ops = &likelihood_logistic};
  SCRATCH_ARENA(memory);
  Logs logs;
  snprintf(path, sizeof path, "logs-%ld.csv", (long)getpid());
  FILE *out = fopen(path, "w");
  fputs(HEAD "a,1,2,1\na,1,2,0\nb,1,2,2\n", out);
  fclose(out);
  CHECK_FAILS(logs_read(&memory, path, &logistic, false, NULL, &logs), STATUS_INPUT,
              "line 4: the reward is 2");
  unlink(path);
}

static void write_netcdf(const char *path, int rows, const int *task, const double *x, const double *y) {
  StoreFile *file;
  int axes[2];
  CHECK_OK(store_create(path, &file));
  CHECK_OK(store_dimension(file, "observation", (size_t)rows, &axes[0]));
  CHECK_OK(store_dimension(file, "dim", D, &axes[1]));
  CHECK_OK(store_write(file, "task", STORE_INT, 1, axes, NULL, NULL, task));
  CHECK_OK(store_write(file, "x", STORE_DOUBLE, 2, axes, NULL, NULL, x));
  CHECK_OK(store_write(file, "y", STORE_DOUBLE, 1, axes, NULL, NULL, y));
  CHECK_OK(store_finish(file, STATUS_OK));
}

static void test_netcdf(void) {
  const int task[] = {7, -3, 7};
  double x[] = {1, 2, 3, 4, 5, 6}, y[] = {-1, -2, -3};
  char path[64];
  Rows rows = {0};
  const LogsSink sink = {.context = &rows, .begin = begin, .row = take};
  snprintf(path, sizeof path, "logs-%ld.nc", (long)getpid());
  write_netcdf(path, 3, task, x, y);
  CHECK_OK(io_logs_read(path, &sink));
  CU_ASSERT_EQUAL(rows.rows, 3);
  CU_ASSERT_EQUAL(rows.task[0], 0);
  CU_ASSERT_EQUAL(rows.task[1], 1);
  CU_ASSERT_EQUAL(rows.task[2], 0);
  CHECK_NEAR(rows.x[2][1], 6, 0);
  CHECK_NEAR(rows.y[1], -2, 0);
  x[3] = NAN;
  write_netcdf(path, 3, task, x, y);
  CHECK_FAILS(io_logs_read(path, &sink), STATUS_INPUT, "x of observation 1 (counted from 0) is nan");
  unlink(path);
}

static Status ignore(void *context, int d) {
  (void)context;
  return d >= 1 ? STATUS_OK : STATUS_INTERNAL;
}

static Status take_number(void *context, int task, const double *x, double y) {
  *(int *)context += task == (int)x[0] && task == (int)y;
  return STATUS_OK;
}

/* Checks many names, some of which collide in the hash table: each keeps its number. */
static void test_names(void) {
  enum { COUNT = 300000 };
  char *text = NULL;
  size_t size = 0;
  int right = 0;
  const LogsSink sink = {.context = &right, .begin = ignore, .row = take_number};
  FILE *stream = open_memstream(&text, &size);
  fputs("task,x1,y\n", stream);
  for (int i = 0; i < 2 * COUNT; i++) fprintf(stream, "name %d,%d,%d\n", i % COUNT, i % COUNT, i % COUNT);
  fclose(stream);
  SCOPED(GzipFile, file, gzip_close);
  CHECK_OK(bytes_open(size, text, &file));
  CHECK_OK(io_logs_read_csv(&file, &sink));
  CU_ASSERT_EQUAL(right, 2 * COUNT);
  free(text);
}

static Status count(void *context, int task, const double *x, double y) {
  (void)x;
  *(int *)context += task >= 0 && isfinite(y);
  return STATUS_OK;
}

/* Reads the fuzzer's corpus: what is accepted has observations, what is refused has a sentence with the
 * file's name. */
static void test_corpus(void) {
  char folder[4096];
  const char *source = getenv("THOMPSON_SOURCE");
  int seen = 0;
  snprintf(folder, sizeof folder, "%s/tests/fuzz/corpus_logs", source ? source : ".");
  DIR *files = opendir(folder);
  CU_ASSERT_PTR_NOT_NULL_FATAL(files);
  for (struct dirent *entry; (entry = readdir(files)); seen++) {
    char path[8192];
    int rows = 0;
    const LogsSink sink = {.context = &rows, .begin = ignore, .row = count};
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    SCOPED(GzipFile, file, gzip_close);
    CHECK_OK(gzip_open(path, &file));
    const Status status = io_logs_read_csv(&file, &sink);
    CU_ASSERT_TRUE(status == STATUS_OK ? rows > 0 : status == STATUS_INPUT);
    if (status != STATUS_OK) CU_ASSERT_PTR_NOT_NULL(strstr(status_message(), entry->d_name));
  }
  closedir(files);
  CU_ASSERT(seen >= 16);
}

int main(void) {
  CU_TestInfo tests[] = {{"tasks", test_tasks},   {"refusals", test_refusals}, {"rewards", test_rewards},
                         {"netCDF", test_netcdf}, {"names", test_names},       {"corpus", test_corpus},
                         CU_TEST_INFO_NULL};
  return harness_run("logs_file", tests);
}
