/* Which files are this program's: by the seal at the end or a text inside, never through a link. */
#include "core/status.h"
#include "harness.h"
#include "io/durable.h"
#include "io/ownership.h"
#include "io/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/test_ownership.XXXXXX";

static const char *in_folder(const char *name) {
  static char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static Status write_ours(const char *name) {
  StoreFile *file;
  TRY(store_create(in_folder(name), &file));
  TRY(store_text_attribute(file, NULL, "config", "name: a\n"));
  return store_finish(file, STATUS_OK);
}

static Ownership owner(const char *name) { return io_ownership_of(AT_FDCWD, in_folder(name)); }

static void test_kinds(void) {
  char target[PATH_MAX];
  CU_ASSERT_EQUAL(owner("nothing.nc"), OWNERSHIP_NOTHING);
  CHECK_OK(write_ours("ours.nc"));
  CU_ASSERT_EQUAL(owner("ours.nc"), OWNERSHIP_OURS);
  CHECK_OK(store_write_text(in_folder("theirs"), "mine", true));
  CU_ASSERT_EQUAL(owner("theirs"), OWNERSHIP_UNKNOWN);
  CHECK_OK(store_write_text(in_folder("empty"), "", true));
  CU_ASSERT_EQUAL(owner("empty"), OWNERSHIP_NOTHING);
  strcpy(target, in_folder("ours.nc"));
  CU_ASSERT_EQUAL(symlink(target, in_folder("link")), 0);
  CU_ASSERT_EQUAL(owner("link"), OWNERSHIP_OTHER);
  CU_ASSERT_FALSE(io_ownership_carries(AT_FDCWD, in_folder("link"), "name: a"));
  CU_ASSERT_EQUAL(mkfifo(in_folder("pipe"), 0600), 0);
  CU_ASSERT_EQUAL(owner("pipe"), OWNERSHIP_OTHER);
  CU_ASSERT_FALSE(io_ownership_carries(AT_FDCWD, in_folder("pipe"), "name: a"));
  CU_ASSERT_EQUAL(owner("."), OWNERSHIP_OTHER);
}

/* Checks that one of our files whose last byte is missing is not provably ours any more, but still contains
 * its text. */
static void test_damaged(void) {
  struct stat info;
  CHECK_OK(write_ours("damaged.nc"));
  CU_ASSERT_EQUAL(stat(in_folder("damaged.nc"), &info), 0);
  CU_ASSERT_EQUAL(truncate(in_folder("damaged.nc"), info.st_size - 1), 0);
  CU_ASSERT_EQUAL(owner("damaged.nc"), OWNERSHIP_UNKNOWN);
  CU_ASSERT_TRUE(io_ownership_carries(AT_FDCWD, in_folder("damaged.nc"), "name: a"));
  CU_ASSERT_FALSE(io_ownership_carries(AT_FDCWD, in_folder("damaged.nc"), "name: b"));
}

/* Checks every place around the end of a block of 64 KiB. */
static void test_text_across_blocks(void) {
  enum { BLOCK = 1 << 16 };
  static char text[2 * BLOCK];
  for (int place = BLOCK - 12; place < BLOCK + 2; place++) {
    memset(text, '.', sizeof text - 1);
    memcpy(text + place, "0123456789", 10);
    CHECK_OK(store_write_text(in_folder("long"), text, true));
    CU_ASSERT_TRUE(io_ownership_carries(AT_FDCWD, in_folder("long"), "0123456789"));
    CU_ASSERT_FALSE(io_ownership_carries(AT_FDCWD, in_folder("long"), "01234567890"));
  }
}

static void test_output(void) {
  CHECK_OK(write_ours("output.nc"));
  CHECK_OK(io_ownership_check_output(in_folder("output.nc"), NULL));
  CHECK_OK(io_ownership_check_output(in_folder("new.nc"), NULL));
  static const OwnershipKind own = {"studies", .has = "config"}, other = {"draws", .has = "sampler"},
                             lacking = {"priors", .has = "config", .lacks = "config"};
  CHECK_OK(io_ownership_check_output(in_folder("output.nc"), &own));
  CHECK_OK(io_ownership_check_output(in_folder("new.nc"), &other));
  CHECK_FAILS(io_ownership_check_output(in_folder("output.nc"), &other), STATUS_FILE,
              "holds something other than draws");
  CHECK_FAILS(io_ownership_check_output(in_folder("output.nc"), &lacking), STATUS_FILE, "other than priors");
  CHECK_OK(store_write_text(in_folder("output.nc"), "mine", true));
  CHECK_FAILS(io_ownership_check_output(in_folder("output.nc"), NULL), STATUS_FILE, "did not write");
  CHECK_FAILS(io_ownership_check_output(folder, NULL), STATUS_FILE, "not a regular file");
}

static void test_temporary_names(void) {
  static const char *const others[] = {".a.nc.tmp", ".a.nc.1.tmp",  "a.nc.1.2.tmp", "..1.2.tmp",
                                       ".1.2.tmp",  ".a.nc.1.2.tm", ".a.nc.1..tmp", ".tmp",
                                       "",          ".a.nc.x.2.tmp"};
  char of[NAME_MAX + 1], *temporary;
  CHECK_OK(durable_begin(in_folder("a.nc"), &temporary));
  CU_ASSERT_TRUE(durable_is_temporary(strrchr(temporary, '/') + 1, sizeof of, of));
  CU_ASSERT_STRING_EQUAL(of, "a.nc");
  unlink(temporary);
  free(temporary);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    CU_ASSERT_FALSE(durable_is_temporary(others[i], sizeof of, of));
}

static void test_set_aside(void) {
  char *text;
  size_t size;
  for (int i = 0; i < 3; i++) {
    CHECK_OK(store_write_text(in_folder("torn"), i == 0 ? "first" : "later", true));
    CHECK_OK(durable_set_aside(in_folder("torn")));
  }
  CHECK_OK(durable_set_aside(in_folder("torn")));
  CHECK_OK(store_read_text(in_folder("torn.bad"), SIZE_MAX, &text, &size));
  CU_ASSERT_STRING_EQUAL(text, "first");
  free(text);
  CU_ASSERT_EQUAL(access(in_folder("torn.bad.2"), F_OK), 0);
  CU_ASSERT_EQUAL(access(in_folder("torn.bad.3"), F_OK), 0);
}

static void test_link_is_not_replaced(void) {
  char *temporary;
  CU_ASSERT_EQUAL(symlink("nowhere", in_folder("dangling")), 0);
  CHECK_FAILS(durable_begin(in_folder("dangling"), &temporary), STATUS_FILE, "it is a symbolic link");
}

static void clean_up(void) {
  DIR *stream = opendir(folder);
  for (struct dirent *entry; stream && (entry = readdir(stream));) unlinkat(dirfd(stream), entry->d_name, 0);
  if (stream) closedir(stream);
  rmdir(folder);
}

int main(void) {
  CU_TestInfo tests[] = {{"kinds", test_kinds},
                         {"damaged", test_damaged},
                         {"text across blocks", test_text_across_blocks},
                         {"output", test_output},
                         {"temporary names", test_temporary_names},
                         {"set aside", test_set_aside},
                         {"link is not replaced", test_link_is_not_replaced},
                         CU_TEST_INFO_NULL};
  if (!mkdtemp(folder)) return EXIT_FAILURE;
  int result = harness_run("ownership", tests);
  clean_up();
  return result;
}
