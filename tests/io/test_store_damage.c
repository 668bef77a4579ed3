/* Files that are cut off, damaged, or do not fit on the disk. */
#include "classic.h"
#include "core/status.h"
#include "harness.h"
#include "io/store.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  FORMATS = 2 /* netCDF-4, and classic */,
  ROWS = 40,
  COLUMNS = 300,
  SEAL = 72 /* bytes of the checksum behind NetCDF's own */
};

static char folder[] = "/tmp/test_store_damage.XXXXXX";
static char path[PATH_MAX];

/* Fills in regret[policy, round], which the netCDF-4 format compresses, and a few small variables. */
static Status fill_sample(StoreFile *file) {
  static double regret[ROWS * COLUMNS];
  const char *labels[ROWS];
  for (int i = 0; i < ROWS * COLUMNS; i++) regret[i] = sin(i) * 1e3;
  for (int i = 0; i < ROWS; i++) labels[i] = i % 2 ? "odd" : "even";
  int dimensions[2];
  TRY(store_dimension(file, "policy", ROWS, &dimensions[0]));
  TRY(store_dimension(file, "round", COLUMNS, &dimensions[1]));
  TRY(store_text_attribute(file, NULL, "config", "name: a\nseed: 1\n"));
  TRY(store_write(file, "regret", STORE_DOUBLE, 2, dimensions, "cumulative regret", "1", regret));
  return store_texts(file, "policy", dimensions[0], ROWS, labels, "policy");
}

static Status write_sample(const char *name) {
  StoreFile *file;
  TRY(store_create(name, &file));
  return store_finish(file, fill_sample(file));
}

static void write_and_load(bool classic, char **bytes, size_t *size) {
  CHECK_OK(write_sample(path));
  if (classic) CHECK_OK(classic_convert(path));
  CHECK_OK(store_read_text(path, SIZE_MAX, bytes, size));
}

typedef Status Open(const char *path, StoreFile **out);

/* Writes the first `size` bytes, and tries to read all of them. */
static Status read_bytes_by(Open *open, const char *bytes, size_t size) {
  FILE *stream = fopen(path, "wb");
  if (!stream || fwrite(bytes, 1, size, stream) != size || fclose(stream) != 0) return STATUS_INTERNAL;
  StoreFile *file;
  TRY(open(path, &file));
  static double regret[ROWS * COLUMNS];
  size_t shape[2] = {ROWS, COLUMNS};
  Status status = store_shape(file, "regret", 2, shape);
  if (status == STATUS_OK) status = store_get_doubles(file, "regret", regret);
  store_abandon(file);
  return status;
}

static Status read_bytes(const char *bytes, size_t size) { return read_bytes_by(store_open, bytes, size); }

/* Checks that a file cut off anywhere within NetCDF's own bytes (the checksum follows them) is refused. */
static void test_truncated(void) {
  for (int f = 0; f < FORMATS; f++) {
    char *bytes;
    size_t size;
    write_and_load(f == 1, &bytes, &size);
    CHECK_OK(read_bytes(bytes, size));
    CHECK_OK(read_bytes(bytes, size - SEAL));
    int accepted = 0, tried = 0;
    for (size_t length = 0; length < size - SEAL; length += length < 4000 ? 13 : 509, tried++)
      if (read_bytes(bytes, length) != STATUS_INPUT) accepted++;
    if (read_bytes(bytes, size - SEAL - 4) != STATUS_INPUT) accepted++;
    CU_ASSERT_EQUAL(accepted, 0);
    CU_ASSERT(tried > 300);
    free(bytes);
    remove(path);
  }
}

/* Checks that one flipped bit anywhere before the checksum is noticed. */
static void test_flipped_bits(void) {
  for (int f = 0; f < FORMATS; f++) {
    char *bytes;
    size_t size;
    write_and_load(f == 1, &bytes, &size);
    int accepted = 0;
    for (size_t at = 0; at < size - SEAL; at += at < 4000 ? 17 : 401) {
      bytes[at] ^= (char)(1 << at % 8);
      if (read_bytes(bytes, size) != STATUS_INPUT) accepted++;
      bytes[at] ^= (char)(1 << at % 8);
    }
    CU_ASSERT_EQUAL(accepted, 0);
    CHECK_OK(read_bytes(bytes, size));
    free(bytes);
    remove(path);
  }
}

/* Counts accepted files whose last `length` bytes are `filler`: what a power cut leaves of a file whose name
 * reached the disk before its content. */
static int count_accepted_tails(Open *open, const char *bytes, size_t size, int filler) {
  char *damaged = malloc(size);
  int accepted = 0;
  CU_ASSERT_PTR_NOT_NULL_FATAL(damaged);
  for (size_t length = 1; length < size; length += length < 100 ? 1 : length < 5000 ? 131 : 3777) {
    memcpy(damaged, bytes, size - length);
    memset(damaged + size - length, filler, length);
    accepted += read_bytes_by(open, damaged, size) != STATUS_INPUT;
  }
  free(damaged);
  return accepted;
}

/* Counts accepted files in which `cut` bytes of the checksum are missing and one byte of the data is
 * flipped. */
static int count_accepted_flips(Open *open, char *bytes, size_t size, size_t cut) {
  int accepted = 0;
  for (size_t at = 0; at < size - SEAL; at += size / 20) {
    bytes[at] ^= 0x55;
    accepted += read_bytes_by(open, bytes, size - cut) != STATUS_INPUT;
    bytes[at] ^= 0x55;
  }
  return accepted;
}

/* Checks that both readers treat bytes behind the data that are not a checksum as the remains of one. */
static void test_damaged_tails(void) {
  static Open *const readers[] = {store_open, store_open_own};
  for (int f = 0; f < FORMATS; f++) {
    char *bytes;
    size_t size;
    write_and_load(f == 1, &bytes, &size);
    for (int r = 0; r < 2; r++) {
      CHECK_OK(read_bytes_by(readers[r], bytes, size));
      CU_ASSERT_EQUAL(count_accepted_tails(readers[r], bytes, size, 0), 0);
      CU_ASSERT_EQUAL(count_accepted_tails(readers[r], bytes, size, 0xff), 0);
      for (size_t cut = 1; cut < SEAL; cut += 5)
        CU_ASSERT_EQUAL(count_accepted_flips(readers[r], bytes, size, cut), 0);
    }
    CHECK_FAILS(read_bytes(bytes, size - 1), STATUS_INPUT, "the last 71 bytes, after its data, are not a");
    free(bytes);
    remove(path);
  }
}

/* Writes the bytes of a classic file with n numbers, without its checksum. */
static void write_numbers(size_t n, char **bytes, size_t *size) {
  StoreFile *file;
  int axis;
  CHECK_OK(store_create(path, &file));
  CHECK_OK(store_dimension(file, "n", n, &axis));
  CHECK_OK(store_variable(file, "x", STORE_DOUBLE, 1, &axis, NULL, NULL));
  CHECK_OK(store_finish(file, STATUS_OK));
  CHECK_OK(classic_convert(path));
  CHECK_OK(store_read_text(path, SIZE_MAX, bytes, size));
  *size -= SEAL;
}

/* Checks that a padded file of another program is not taken for one that lost its checksum: the netCDF
 * library pads classic files that are written without fill values to a page. */
static void test_padding(void) {
  enum { PAGE = 4096 };
  char *bytes, padded[PAGE] = {0};
  size_t size, header;
  StoreFile *file;
  write_numbers(1, &bytes, &header);
  free(bytes);
  write_numbers((PAGE - header) / 8 - 2, &bytes, &size); /* less than a checksum short of a page */
  CU_ASSERT_FATAL(size < PAGE && size + SEAL >= PAGE);
  memcpy(padded, bytes, size);
  Open *const open[] = {store_open, store_open_own};
  for (int p = 0; p < 3; p++) {
    const size_t length = p == 1 ? PAGE - 1 : PAGE;
    if (p == 2) padded[PAGE - 1] = 1;
    for (int o = 0; o < 2; o++) {
      FILE *stream = fopen(path, "wb");
      CU_ASSERT_FATAL(stream && fwrite(padded, 1, length, stream) == length && fclose(stream) == 0);
      Status status = open[o](path, &file);
      CU_ASSERT_EQUAL(status, p == 0 && o == 0 ? STATUS_OK : STATUS_INPUT);
      if (status == STATUS_OK) store_abandon(file);
    }
  }
  free(bytes);
  remove(path);
}

/* Checks that a file without any checksum is taken for another program's, unless it is at a place where only
 * this program writes. */
static void test_missing_checksum(void) {
  for (int f = 0; f < FORMATS; f++) {
    char *bytes;
    size_t size;
    write_and_load(f == 1, &bytes, &size);
    CHECK_OK(read_bytes(bytes, size - SEAL));
    CHECK_FAILS(read_bytes_by(store_open_own, bytes, size - SEAL), STATUS_INPUT,
                "does not end with the checksum");
    CU_ASSERT_EQUAL(count_accepted_flips(store_open_own, bytes, size, SEAL), 0);
    free(bytes);
    remove(path);
  }
}

/* Checks flipped bits in a classic file of another program, which has no checksum: flips may go unnoticed,
 * but must not crash or overrun (sanitizers). */
static void test_flipped_bits_without_checksum(void) {
  char *bytes;
  size_t size;
  write_and_load(true, &bytes, &size);
  int refused = 0;
  for (size_t at = 0; at < 600; at++) { /* the header */
    bytes[at] ^= (char)(1 << at * 5 % 8);
    Status status = read_bytes(bytes, size - SEAL);
    CU_ASSERT(status == STATUS_OK || status == STATUS_INPUT);
    refused += status == STATUS_INPUT;
    bytes[at] ^= (char)(1 << at * 5 % 8);
  }
  CU_ASSERT(refused > 60);
  free(bytes);
  remove(path);
}

/* Returns the number of files in a folder, hidden ones included. */
static int count_files(const char *name) {
  int count = 0;
  DIR *entries = opendir(name);
  for (struct dirent *entry; entries && (entry = readdir(entries));) count += entry->d_type != DT_DIR;
  if (entries) closedir(entries);
  return count;
}

/* Checks that writing fails with `reason`, twice, and leaves what was there and nothing else. */
static void check_no_room(const char *name, const char *reason) {
  char *text;
  size_t size;
  for (int i = 0; i < 2; i++) {
    CHECK_FAILS(write_sample(name), STATUS_FILE, reason);
    CHECK_OK(store_read_text(name, SIZE_MAX, &text, &size));
    CU_ASSERT(size == 3 && strcmp(text, "old") == 0);
    free(text);
  }
}

/* Checks a limit on the size of files, in place of a full disk where no file system can be mounted. */
static void test_file_size_limit(void) {
  struct rlimit saved, small;
  CHECK_OK(store_write_text(path, "old", true));
  getrlimit(RLIMIT_FSIZE, &saved);
  small = (struct rlimit){.rlim_cur = 1 << 14, .rlim_max = saved.rlim_max};
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  fflush(NULL);
  setrlimit(RLIMIT_FSIZE, &small);
  check_no_room(path, "File too large");
  setrlimit(RLIMIT_FSIZE, &saved);
  signal(SIGXFSZ, handler);
  CU_ASSERT_EQUAL(count_files(folder), 1);
  CHECK_OK(write_sample(path));
  remove(path);
}

static void test_full_disk(void) {
  char disk[PATH_MAX], name[PATH_MAX + 16];
  snprintf(disk, sizeof disk, "%s/disk", folder);
  mkdir(disk, 0700);
  if (mount("tmpfs", disk, "tmpfs", 0, "size=32k") != 0) {
    printf("(skipped: only root may mount a small file system) ");
    rmdir(disk);
    return;
  }
  snprintf(name, sizeof name, "%s/it.nc", disk);
  CHECK_OK(store_write_text(name, "old", true));
  check_no_room(name, "No space left on device");
  char *large = calloc(100001, 1);
  CU_ASSERT_PTR_NOT_NULL_FATAL(large);
  memset(large, 'a', 100000);
  CHECK_FAILS(store_write_text(name, large, true), STATUS_FILE, "it.nc: No space left on device");
  CU_ASSERT_EQUAL(count_files(disk), 1);
  CHECK_OK(store_write_text(name, "fits", true));
  free(large);
  umount2(disk, MNT_DETACH);
  rmdir(disk);
}

int main(void) {
  CU_TestInfo tests[] = {{"truncated", test_truncated},
                         {"flipped bits", test_flipped_bits},
                         {"damaged tails", test_damaged_tails},
                         {"missing checksum", test_missing_checksum},
                         {"padding", test_padding},
                         {"flipped bits without checksum", test_flipped_bits_without_checksum},
                         {"limit on the size of files", test_file_size_limit},
                         {"full disk", test_full_disk},
                         CU_TEST_INFO_NULL};
  if (!mkdtemp(folder)) return EXIT_FAILURE;
  snprintf(path, sizeof path, "%s/it.nc", folder);
  int result = harness_run("store_damage", tests);
  remove(path);
  rmdir(folder);
  return result;
}
