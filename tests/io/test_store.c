/* NetCDF and text files: what is written is read back, by us and by others; a file is never visible half
 * written. */
#include "classic.h"
#include "core/status.h"
#include "harness.h"
#include "io/store.h"

#include <dirent.h>
#include <limits.h>
#include <netcdf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FORMATS = 2 /* netCDF-4, and classic */, ROWS = 40, COLUMNS = 300 };

static char folder[] = "/tmp/test_store.XXXXXX";

static const char *in_folder(const char *name) {
  static char paths[4][PATH_MAX];
  static int turn;
  turn = (turn + 1) % 4;
  snprintf(paths[turn], PATH_MAX, "%s/%s", folder, name);
  return paths[turn];
}

/* Tells whether the folder holds `name` and nothing else (NULL: nothing at all). */
static bool folder_holds_only(const char *name) {
  int others = 0, found = 0;
  DIR *entries = opendir(folder);
  for (struct dirent *entry; entries && (entry = readdir(entries));)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
      name &&strcmp(entry->d_name, name) == 0 ? found++ : others++;
  if (entries) closedir(entries);
  return others == 0 && found == (name ? 1 : 0);
}

static double value_at(int i, int j) { return sin(i + 0.37 * j) * 1e3; }

/* Labels of the second policy: netCDF-4 stores the first as a string, and a classic file has no strings. */
static const char *const second_label[FORMATS] = {"größer", "larger"};

/* Fills in a file with something of every kind: regret[policy, round] (large enough to be compressed), and
 * small variables. */
static Status fill_sample(StoreFile *file, const char *label) {
  static double regret[ROWS * COLUMNS], round_axis[COLUMNS];
  static float single[ROWS];
  int steps[ROWS], dimensions[2];
  int64_t big = INT64_MAX - 1;
  signed char flags[ROWS];
  char names[ROWS][32];
  const char *labels[ROWS];
  for (int i = 0; i < ROWS; i++) {
    for (int j = 0; j < COLUMNS; j++) regret[i * COLUMNS + j] = value_at(i, j);
    single[i] = (float)value_at(i, 0);
    steps[i] = -i;
    flags[i] = (signed char)(i % 3);
    snprintf(names[i], sizeof names[i], "p%d", i);
    labels[i] = i == 1 ? label : names[i];
  }
  for (int j = 0; j < COLUMNS; j++) round_axis[j] = j + 1;

  TRY(store_dimension(file, "policy", ROWS, &dimensions[0]));
  TRY(store_dimension(file, "round", COLUMNS, &dimensions[1]));
  TRY(store_texts(file, "policy", dimensions[0], ROWS, labels, "policy"));
  TRY(store_variable(file, "regret", STORE_DOUBLE, 2, dimensions, "cumulative regret", "1"));
  TRY(store_write(file, "round", STORE_DOUBLE, 1, dimensions + 1, NULL, NULL, round_axis));
  TRY(store_write(file, "single", STORE_FLOAT, 1, dimensions, NULL, NULL, single));
  TRY(store_write(file, "steps", STORE_INT, 1, dimensions, NULL, NULL, steps));
  TRY(store_write(file, "status", STORE_BYTE, 1, dimensions, NULL, NULL, flags));
  TRY(store_variable(file, "unused", STORE_DOUBLE, 1, dimensions, NULL, NULL));
  TRY(store_text_attribute(file, NULL, "config", "name: a\nseed: 1\n"));
  TRY(store_text_attribute(file, NULL, "nothing", ""));
  TRY(store_real_attribute(file, "noise", 0.1));
  TRY(store_int_attribute(file, "seed", big));
  for (size_t i = 0; i < ROWS; i++)
    TRY(store_put_part(file, "regret", (size_t[]){i, 0}, (size_t[]){1, COLUMNS}, regret + i * COLUMNS));
  return STATUS_OK;
}

static Status write_sample(const char *path, bool classic) {
  StoreFile *file;
  TRY(store_create(path, &file));
  TRY(store_finish(file, fill_sample(file, second_label[classic])));
  return classic ? classic_convert(path) : STATUS_OK;
}

static void check_sample(const char *path) {
  StoreFile *file;
  CHECK_OK(store_open(path, &file));
  if (!file) return;
  CU_ASSERT_STRING_EQUAL(store_path(file), path);
  CU_ASSERT(store_has_variable(file, "regret") && !store_has_variable(file, "Regret"));
  CU_ASSERT(store_has_dimension(file, "round") && !store_has_dimension(file, "regret"));
  CU_ASSERT(store_axis_is(file, "regret", 0, "policy") && store_axis_is(file, "regret", 1, "round"));
  CU_ASSERT(!store_axis_is(file, "regret", 1, "policy") && !store_axis_is(file, "regret", 2, "round"));
  size_t length, shape[2] = {SIZE_MAX, COLUMNS};
  CHECK_OK(store_dimension_length(file, "round", &length));
  CU_ASSERT_EQUAL(length, COLUMNS);
  CHECK_OK(store_shape(file, "regret", 2, shape));
  CU_ASSERT_EQUAL(shape[0], ROWS);

  static double regret[ROWS * COLUMNS], unused[ROWS];
  static float single[ROWS];
  int64_t steps[ROWS];
  signed char flags[ROWS];
  CHECK_OK(store_get_doubles(file, "regret", regret));
  CHECK_OK(store_get_doubles(file, "unused", unused));
  CHECK_OK(store_get_part(file, "single", STORE_FLOAT, NULL, NULL, single));
  CHECK_OK(store_get_int64s(file, "steps", steps));
  CHECK_OK(store_get_part(file, "status", STORE_BYTE, NULL, NULL, flags));
  for (int i = 0; i < ROWS; i++) {
    CHECK_NEAR(regret[i * COLUMNS + 7 * i], value_at(i, 7 * i), 0);
    CHECK_NEAR(single[i], (float)value_at(i, 0), 0);
    CU_ASSERT(steps[i] == -i && flags[i] == i % 3 && isnan(unused[i]));
  }
  SCRATCH_ARENA(memory);
  const char *config = NULL, *nothing = NULL;
  double noise;
  int64_t seed;
  CHECK_OK(store_get_text_attribute(&memory, file, "config", &config));
  CHECK_OK(store_get_text_attribute(&memory, file, "nothing", &nothing));
  CHECK_OK(store_get_real_attribute(file, "noise", &noise));
  CHECK_OK(store_get_int_attribute(file, "seed", &seed));
  CU_ASSERT(config && strcmp(config, "name: a\nseed: 1\n") == 0);
  CU_ASSERT(nothing && strcmp(nothing, "") == 0);
  CHECK_NEAR(noise, 0.1, 0);
  CU_ASSERT_EQUAL(seed, INT64_MAX - 1);
  store_abandon(file);
}

static void test_round_trip(void) {
  for (int f = 0; f < FORMATS; f++) {
    const char *path = in_folder("a b#c:ü.nc");
    CHECK_OK(write_sample(path, f == 1));
    check_sample(path);
    CU_ASSERT(folder_holds_only("a b#c:ü.nc"));
    remove(path);
  }
}

/* Checks what xarray makes of the file, without arguments, and what netCDF4-python makes of its texts. */
static void test_xarray_reads_it(void) {
  static const char script[] =
      "import sys, netCDF4, numpy as np, xarray as xr\n"
      "with netCDF4.Dataset(sys.argv[1]) as file:\n"
      "    assert list(file['policy'][:]) == ['p0', sys.argv[2], *(f'p{i}' for i in range(2, 40))], "
      "file['policy'][:]\n"
      "d = xr.open_dataset(sys.argv[1])\n"
      "assert dict(d.sizes) == {'policy': 40, 'round': 300}, d.sizes\n"
      "r = np.sin(np.arange(40)[:, None] + .37 * np.arange(300)) * 1e3\n"
      "assert np.allclose(d.regret, r, rtol=1e-14), abs(d.regret - r).max()\n"
      "assert float(d.regret.sel(policy=sys.argv[2], round=300)) == d.regret.values[1, 299]\n"
      "assert list(d.policy.values[:3]) == ['p0', sys.argv[2], 'p2']\n"
      "assert np.isnan(d.unused).all() and np.isnan(d.unused.encoding['_FillValue'])\n"
      "assert d.regret.attrs == {'long_name': 'cumulative regret', 'units': '1'}, d.regret.attrs\n"
      "assert '_FillValue' not in d['round'].encoding and '_FillValue' not in d.status.encoding\n"
      "assert d.attrs == {'config': 'name: a\\nseed: 1\\n', 'nothing': '', 'seed': 2**63 - 2, 'noise': .1}, "
      "d.attrs\n"
      "assert d.status.dtype == 'int8' and d.single.dtype == 'f4' and d.steps.dtype == 'i4'\n";
  const char *text = in_folder("read.py");
  CHECK_OK(store_write_text(text, script, true));
  for (int f = 0; f < FORMATS; f++) {
    const char *path = in_folder("it.nc");
    char command[2 * PATH_MAX + 64];
    CHECK_OK(write_sample(path, f == 1));
    snprintf(command, sizeof command, "/usr/bin/python3 '%s' '%s' '%s'", text, path, second_label[f]);
    CU_ASSERT_EQUAL(system(command), 0);
    remove(path);
  }
  remove(text);
}

/* Checks that only large variables of netCDF-4 files are compressed. */
static void test_compression(void) {
  const char *path = in_folder("it.nc");
  CHECK_OK(write_sample(path, false));
  int ncid, id, shuffle, deflate, level;
  CU_ASSERT_EQUAL_FATAL(nc_open(path, NC_NOWRITE, &ncid), NC_NOERR);
  CU_ASSERT_EQUAL(nc_inq_varid(ncid, "regret", &id), NC_NOERR);
  CU_ASSERT_EQUAL(nc_inq_var_deflate(ncid, id, &shuffle, &deflate, &level), NC_NOERR);
  CU_ASSERT(shuffle && deflate && level == 1);
  CU_ASSERT_EQUAL(nc_inq_varid(ncid, "steps", &id), NC_NOERR);
  CU_ASSERT_EQUAL(nc_inq_var_deflate(ncid, id, &shuffle, &deflate, &level), NC_NOERR);
  CU_ASSERT(!deflate);
  nc_close(ncid);
  remove(path);
}

static void test_same_content_same_bytes(void) {
  char *first, *second;
  size_t first_size, second_size;
  const char *one = in_folder("one.nc"), *two = in_folder("two.nc");
  CHECK_OK(write_sample(one, false));
  CHECK_OK(write_sample(two, false));
  CHECK_OK(store_read_text(one, SIZE_MAX, &first, &first_size));
  CHECK_OK(store_read_text(two, SIZE_MAX, &second, &second_size));
  CU_ASSERT(first_size == second_size && first_size > 1000 && memcmp(first, second, first_size) == 0);
  free(first);
  free(second);
  remove(one);
  remove(two);
}

/* Checks that until the commit only a hidden file with our process id is there, and that an existing file of
 * that name stays. */
static void test_temporary_name(void) {
  const char *path = in_folder("it.nc");
  char hidden[64], *text;
  size_t size;
  snprintf(hidden, sizeof hidden, ".it.nc.%ld.0.tmp", (long)getpid());
  StoreFile *file;
  CHECK_OK(store_create(path, &file));
  CU_ASSERT(folder_holds_only(hidden));
  store_abandon(file);
  CU_ASSERT(folder_holds_only(NULL));

  CHECK_OK(store_write_text(path, "old", true));
  CHECK_OK(store_create(path, &file));
  CHECK_OK(store_read_text(path, SIZE_MAX, &text, &size));
  CU_ASSERT(size == 3 && strcmp(text, "old") == 0);
  free(text);
  CHECK_OK(store_finish(file, STATUS_OK));
  CU_ASSERT(folder_holds_only("it.nc"));
  CHECK_OK(store_open(path, &file));
  store_abandon(file);
  remove(path);
  store_abandon(NULL);
  CU_ASSERT_EQUAL(store_finish(NULL, STATUS_FILE), STATUS_FILE);
}

/* Checks that the first of several writers of a file wins, and that nothing else is left. */
static void test_first_text(void) {
  const char *path = in_folder("it.txt");
  char *text;
  size_t size;
  CHECK_OK(store_write_text(path, "first", false));
  CHECK_OK(store_write_text(path, "second", false));
  CHECK_OK(store_read_text(path, SIZE_MAX, &text, &size));
  CU_ASSERT_STRING_EQUAL(text, "first");
  free(text);
  CU_ASSERT(folder_holds_only("it.txt"));
  remove(path);
}

static void test_cannot_create(void) {
  StoreFile *file;
  CHECK_FAILS(store_create(in_folder("a\\b.nc"), &file), STATUS_INPUT,
              "a\\b.nc' contains a backslash, which NetCDF treats as a slash");
  CHECK_FAILS(store_open(in_folder("a\\b.nc"), &file), STATUS_INPUT, "a\\b.nc' contains a backslash");
  CHECK_FAILS(store_create(in_folder("no/such/it.nc"), &file), STATUS_FILE, "No such file");
  CHECK_FAILS(store_create(in_folder(""), &file), STATUS_FILE, "does not name a file");
  CHECK_FAILS(store_create(folder, &file), STATUS_FILE, "it is a folder");
  CHECK_FAILS(store_create("/dev/null", &file), STATUS_FILE, "not a regular file");
  CHECK_FAILS(store_write_text(in_folder("no/such/it.txt"), "x", true), STATUS_FILE, "No such file");
  CU_ASSERT_PTR_NULL(file);
  CU_ASSERT(folder_holds_only(NULL));
}

static void test_cannot_open(void) {
  StoreFile *file;
  const char *path = in_folder("it.nc");
  CHECK_FAILS(store_open(path, &file), STATUS_FILE, "No such file");
  CHECK_FAILS(store_open(folder, &file), STATUS_FILE, "Is a directory");
  CU_ASSERT_EQUAL(mkfifo(path, 0600), 0);
  CHECK_FAILS(store_open(path, &file), STATUS_FILE, "not a regular file");
  remove(path);
  CHECK_OK(store_write_text(path, "", true));
  CHECK_FAILS(store_open(path, &file), STATUS_INPUT, "is not a NetCDF file");
  CHECK_OK(store_write_text(path, "x1,x2,y\n", true));
  CHECK_FAILS(store_open(path, &file), STATUS_INPUT, "is not a NetCDF file");
  CHECK_OK(store_write_text(path, "\211HDF\r\n\032\nand no more", true));
  CHECK_FAILS(store_open(path, &file), STATUS_INPUT, "damaged or cut off");
  CU_ASSERT_PTR_NULL(file);
  remove(path);
}

static void test_wrong_content(void) {
  const char *path = in_folder("it.nc");
  CHECK_OK(write_sample(path, true));
  StoreFile *file;
  CHECK_OK(store_open(path, &file));
  size_t shape[3] = {SIZE_MAX, 299, 1};
  double real, reals[ROWS];
  int64_t ints[ROWS];
  int64_t integer;
  SCRATCH_ARENA(memory);
  const char *text;
  CHECK_FAILS(store_shape(file, "regret", 2, shape), STATUS_INPUT,
              "the variable 'regret' has shape (40, 300), expected (any, 299)");
  CU_ASSERT_EQUAL(shape[0], SIZE_MAX);
  CHECK_FAILS(store_shape(file, "regret", 3, shape), STATUS_INPUT,
              "has shape (40, 300), expected 3 dimensions");
  CHECK_FAILS(store_shape(file, "theta", 2, shape), STATUS_INPUT, "it.nc has no variable 'theta'");
  CHECK_FAILS(store_dimension_length(file, "dim", shape), STATUS_INPUT, "has no dimension 'dim'");
  CHECK_FAILS(store_get_doubles(file, "theta", reals), STATUS_INPUT, "has no variable 'theta'");
  CHECK_FAILS(store_get_doubles(file, "policy", reals), STATUS_INPUT, "'policy' does not hold numbers");
  CHECK_FAILS(store_get_int64s(file, "single", ints), STATUS_INPUT, "'single' does not hold integers");
  CHECK_FAILS(store_get_text_attribute(&memory, file, "title", &text), STATUS_INPUT,
              "has no attribute 'title'");
  CHECK_FAILS(store_get_text_attribute(&memory, file, "seed", &text), STATUS_INPUT, "'seed' is not text");
  CHECK_FAILS(store_get_real_attribute(file, "config", &real), STATUS_INPUT,
              "'config' is not a single number");
  CHECK_FAILS(store_get_int_attribute(file, "noise", &integer), STATUS_INPUT, "is not a single integer");
  store_abandon(file);
  remove(path);
}

/* Checks that a double that no float can hold is an error, although the tests trap overflow. */
static void test_value_out_of_range(void) {
  for (int f = 0; f < FORMATS; f++) {
    const char *path = in_folder("it.nc");
    StoreFile *file;
    int dimension;
    float single[2];
    CHECK_OK(store_create(path, &file));
    CHECK_OK(store_dimension(file, "i", 2, &dimension));
    CHECK_OK(store_write(file, "v", STORE_DOUBLE, 1, &dimension, NULL, NULL, (double[]){1, 1e300}));
    CHECK_OK(store_finish(file, STATUS_OK));
    if (f == 1) CHECK_OK(classic_convert(path));
    CHECK_OK(store_open(path, &file));
    CHECK_FAILS(store_get_part(file, "v", STORE_FLOAT, NULL, NULL, single), STATUS_INPUT,
                "cannot read the variable 'v'");
    store_abandon(file);
    remove(path);
  }
}

static void test_texts(void) {
  const char *path = in_folder("it.txt");
  char *text;
  size_t size;
  char *large = calloc(300001, 1);
  CU_ASSERT_PTR_NOT_NULL_FATAL(large);
  for (int i = 0; i < 300000; i++) large[i] = (char)('a' + i % 26);
  const char *const texts[] = {"", "one line\n", large};
  for (int i = 0; i < 3; i++) {
    CHECK_OK(store_write_text(path, texts[i], true));
    CU_ASSERT(folder_holds_only("it.txt"));
    CHECK_OK(store_read_text(path, SIZE_MAX, &text, &size));
    CU_ASSERT(size == strlen(texts[i]) && strcmp(text, texts[i]) == 0);
    free(text);
  }
  free(large);
  remove(path);
  CHECK_FAILS(store_read_text(path, SIZE_MAX, &text, &size), STATUS_FILE, "it.txt: No such file");
  CHECK_FAILS(store_read_text(folder, SIZE_MAX, &text, &size), STATUS_FILE, "Is a directory");
  CHECK_FAILS(store_read_text("/dev/zero", SIZE_MAX, &text, &size), STATUS_FILE, "not a regular file");
  CHECK_FAILS(store_read_text("/proc/self/status", 20, &text, &size), STATUS_INPUT, "more than 20 bytes");
  CU_ASSERT_PTR_NULL(text);
  CHECK_OK(
      store_read_text("/proc/self/status", SIZE_MAX, &text, &size)); /* its length is not known beforehand */
  CU_ASSERT(strncmp(text, "Name:", 5) == 0 && size == strlen(text));
  free(text);
}

/* Checks files of other programs: float with another missing value, text as netCDF-4 string, record
 * variables. */
static void test_foreign_files(void) {
  char path[PATH_MAX];
  const char *source = getenv("THOMPSON_SOURCE");
  StoreFile *file;
  SCRATCH_ARENA(memory);
  const char *note;
  double theta[15], x[12];
  int64_t y[4];
  signed char tag[4];
  snprintf(path, sizeof path, "%s/tests/golden/dataset_float.nc", source ? source : ".");
  CHECK_OK(store_open(path, &file));
  CHECK_OK(store_get_text_attribute(&memory, file, "note", &note));
  CU_ASSERT_STRING_EQUAL(note, "größer");
  CHECK_OK(store_get_doubles(file, "theta", theta));
  CHECK_NEAR(theta[14], 4.25, 0);
  store_abandon(file);

  snprintf(path, sizeof path, "%s/tests/golden/dataset_history_records.nc", source ? source : ".");
  CHECK_OK(store_open(path, &file));
  CHECK_OK(store_get_doubles(file, "x", x));
  CHECK_OK(store_get_int64s(file, "y", y));
  CHECK_OK(store_get_part(file, "tag", STORE_BYTE, NULL, NULL, tag));
  CU_ASSERT(x[11] == 2.5 && y[3] == 9 && tag[3] == 3);
  store_abandon(file);
}

int main(void) {
  CU_TestInfo tests[] = {{"round trip", test_round_trip},
                         {"xarray reads it", test_xarray_reads_it},
                         {"compression", test_compression},
                         {"same content, same bytes", test_same_content_same_bytes},
                         {"temporary name", test_temporary_name},
                         {"first text", test_first_text},
                         {"cannot create", test_cannot_create},
                         {"cannot open", test_cannot_open},
                         {"wrong content", test_wrong_content},
                         {"value out of range", test_value_out_of_range},
                         {"texts", test_texts},
                         {"foreign files", test_foreign_files},
                         CU_TEST_INFO_NULL};
  if (!mkdtemp(folder)) return EXIT_FAILURE;
  int result = harness_run("store", tests);
  rmdir(folder);
  return result;
}
