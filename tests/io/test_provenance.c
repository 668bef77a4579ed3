/* Digests and the attributes that tell where a file came from. */
#include "core/status.h"
#include "harness.h"
#include "io/digest.h"
#include "io/provenance.h"
#include "io/store.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Checks FIPS 180-2, appendix B, and the digest of nothing. */
static void test_digest(void) {
  char hex[DIGEST_SIZE];
  CHECK_OK(digest_hex("", 0, hex));
  CU_ASSERT_STRING_EQUAL(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK_OK(digest_hex("abc", 3, hex));
  CU_ASSERT_STRING_EQUAL(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Digest digest;
  digest_begin(&digest);
  digest_add(&digest, NULL, 0);
  for (int i = 0; i < 100000; i++) digest_add(&digest, "aaaaaaaaaa", 10);
  CHECK_OK(digest_end(&digest, hex));
  CU_ASSERT_STRING_EQUAL(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Checks that the digest does not depend on how the text is cut. */
static void test_digest_in_parts(void) {
  enum { SIZE = 1000 };
  unsigned char data[SIZE];
  char hex[DIGEST_SIZE], bytes[DIGEST_SIZE];
  for (int i = 0; i < SIZE; i++) data[i] = (unsigned char)(i * i + 7 * i);
  for (int size = 0; size <= SIZE; size += 37) {
    Digest digest;
    digest_begin(&digest);
    for (int i = 0; i < size; i++) digest_add(&digest, data + i, 1);
    CHECK_OK(digest_end(&digest, bytes));
    for (int cut = 0; cut <= size; cut += 61) {
      digest_begin(&digest);
      digest_add(&digest, data, (size_t)cut);
      digest_add(&digest, data + cut, (size_t)(size - cut));
      CHECK_OK(digest_end(&digest, hex));
      CU_ASSERT_STRING_EQUAL(hex, bytes);
    }
  }
}

static char *attribute(StoreFile *file, const char *name) {
  SCRATCH_ARENA(memory);
  const char *text = "";
  CHECK_OK(store_get_text_attribute(&memory, file, name, &text));
  return strdup(text);
}

static void check_attribute(StoreFile *file, const char *name, const char *expected) {
  char *text = attribute(file, name);
  CU_ASSERT_STRING_EQUAL(text, expected);
  free(text);
}

/* Checks that the attribute is there and contains `part`. */
static void check_contains(StoreFile *file, const char *name, const char *part) {
  char *text = attribute(file, name);
  CU_ASSERT(strlen(text) > 3 && strstr(text, part));
  free(text);
}

static void test_attributes(void) {
  static char *const command[] = {"thompson", "run", "my study.yaml", "--set", "a=[b,c]", "it's", ""};
  const char *path = "test_provenance.nc";
  provenance_set_command(7, command);
  provenance_set_mpi(3, "Open MPI v4.1.4,\nident");
  double begun = provenance_elapsed();
  CU_ASSERT_TRUE(begun >= 0 && begun < 60);
  StoreFile *file;
  CHECK_OK(store_create(path, &file));
  CHECK_OK(provenance_write(file, "a title", "mala: VITS paper"));
  CHECK_OK(store_finish(file, STATUS_OK));
  CHECK_OK(store_open(path, &file));
  check_attribute(file, "Conventions", "CF-1.10");
  check_attribute(file, "title", "a title");
  check_attribute(file, "source", provenance_source());
  check_attribute(file, "mpi_library", "Open MPI v4.1.4, ident");
  check_contains(file, "references", "mala: VITS paper; Clavier");
  char *references = attribute(file, "references");
  CU_ASSERT_PTR_NULL(strstr(references, "Diffusion Prior")); /* a paper that is not named */
  free(references);
  check_contains(file, "blas", "OpenBLAS");
  check_contains(file, "compiler", "");
  check_contains(file, "compiler_flags", "-O");
  check_contains(file, "source", "thompson ");
  check_contains(file, "source", "(commit ");
  int64_t ranks;
  CHECK_OK(store_get_int_attribute(file, "mpi_ranks", &ranks));
  CU_ASSERT_EQUAL(ranks, 3);
  CU_ASSERT_TRUE(provenance_elapsed() > begun);

  char *history = attribute(file, "history");
  struct tm when = {0};
  const char *rest = strptime(history, "%Y-%m-%dT%H:%M:%SZ", &when);
  CU_ASSERT_PTR_NOT_NULL_FATAL(rest);
  CHECK_NEAR(difftime(timegm(&when), time(NULL)), 0, 60);
  CU_ASSERT_STRING_EQUAL(rest, ": thompson run 'my study.yaml' --set 'a=[b,c]' 'it'\\''s' ''");
  free(history);
  store_abandon(file);
  remove(path);
}

int main(void) {
  CU_TestInfo tests[] = {{"digest", test_digest},
                         {"digests in parts", test_digest_in_parts},
                         {"attributes", test_attributes},
                         CU_TEST_INFO_NULL};
  return harness_run("provenance", tests);
}
