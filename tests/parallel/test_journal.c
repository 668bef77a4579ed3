/* Journals of finished tasks: what is written comes back, damage costs the damaged tasks and nothing else,
 * and two jobs never share a file. */
#include "harness.h"
#include "journal_damage.h"

#include "parallel/tasks/folder.h"
#include "study/study_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>

static char folder[] = "/tmp/thompson-journal-XXXXXX", path[PATH_MAX], *whole;
static size_t whole_size;
static Study study;
static Lock *lock;

/* In no particular order. */
static const int some[] = {5, 1, 3, 0};
enum { SOME = sizeof some / sizeof *some };

/* Makes the folder of a study, and keeps the journal of `some` tasks; false when that fails. */
static bool make_journal(void) {
  if (!mkdtemp(folder)) return false;
  journal_fixture_study("5", &study);
  if (folder_open(folder, &study, FOLDER_RESUME, -1, &lock) != STATUS_OK) return false;
  journal_fixture_write(folder, &study, SOME, some, sizeof path, path);
  return store_read_text(path, SIZE_MAX, &whole, &whole_size) == STATUS_OK;
}

/* Puts that journal into the folder, and nothing else. */
static void start_over(void) {
  char command[PATH_MAX + 20];
  snprintf(command, sizeof command, "rm -f %s/tasks/*", folder);
  CU_ASSERT_EQUAL_FATAL(system(command), 0);
  journal_fixture_put(path, whole, whole_size);
}

/* Checks that exactly the tasks of a bit mask can be read, and that no promise is broken. */
static void check_tasks(unsigned tasks) {
  const JournalRead read = journal_damage_read(folder, &study, false);
  CU_ASSERT_PTR_NULL(read.broken);
  for (int i = 0; i < JOURNAL_TASKS; i++) CU_ASSERT_EQUAL(read.loads[i], tasks >> i & 1);
}

static void test_round_trip(void) {
  const TaskName name = study_task_name(&study, 5);
  start_over();
  check_tasks(0x2b);
  CU_ASSERT_PTR_NOT_NULL(memmem(whole, whole_size, &name, sizeof name));
}

static void test_names(void) {
  char name[FOLDER_NAME];
  folder_journal_name(0xabc, name);
  CU_ASSERT_STRING_EQUAL(name, "0000000000000abc.journal");
  CU_ASSERT_TRUE(folder_is_journal_name(name));
  static const char *const others[] = {"",
                                       "abc.journal",
                                       "0000000000000ABC.journal",
                                       "0000000000000abc.journal.bad",
                                       "00000000000000abc.journal",
                                       " 000000000000abc.journal",
                                       "0000000000000abc.nc"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    CU_ASSERT_FALSE(folder_is_journal_name(others[i]));
}

/* Checks that any flipped bit costs one task. */
static void test_flips(void) {
  char *bytes = malloc(whole_size);
  start_over();
  CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
  for (size_t at = 0; at < whole_size; at += 7) {
    memcpy(bytes, whole, whole_size);
    bytes[at] ^= (char)(1 << at % 8);
    journal_fixture_put(path, bytes, whole_size);
    const JournalRead read = journal_damage_read(folder, &study, false);
    int found = 0;
    for (int i = 0; i < JOURNAL_TASKS; i++) found += read.loads[i];
    CU_ASSERT_EQUAL(found, SOME - 1);
    CU_ASSERT_PTR_NULL(journal_damage_check(folder, path, &study, bytes, whole_size));
  }
  free(bytes);
}

/* Checks tails of any length that are zeros, ones or missing. */
static void test_tails(void) {
  char *bytes = malloc(whole_size);
  start_over();
  CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
  for (size_t length = 1; length <= whole_size; length += 11)
    for (int how = 0; how < 3; how++) {
      memcpy(bytes, whole, whole_size);
      memset(bytes + whole_size - length, how == 0 ? 0 : 0xff, length);
      CU_ASSERT_PTR_NULL(
          journal_damage_check(folder, path, &study, bytes, how == 2 ? whole_size - length : whole_size));
    }
  free(bytes);
}

/* Walks the corpus of the fuzz target. */
static void test_corpus(void) {
  char inputs[PATH_MAX / 2], input[PATH_MAX], own[] = "/tmp/thompson-journal-XXXXXX", command[100];
  const char *source = getenv("THOMPSON_SOURCE");
  int seen = 0;
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(own));
  snprintf(inputs, sizeof inputs, "%s/tests/fuzz/corpus_journal", source ? source : ".");
  DIR *files = opendir(inputs);
  CU_ASSERT_PTR_NOT_NULL_FATAL(files);
  for (struct dirent *entry; (entry = readdir(files));) {
    char *script;
    size_t size;
    if (entry->d_name[0] == '.') continue;
    snprintf(input, sizeof input, "%s/%s", inputs, entry->d_name);
    CHECK_OK(store_read_text(input, SIZE_MAX, &script, &size));
    const char *broken = journal_damage_run(own, (const uint8_t *)script, size);
    if (broken) printf("%s: %s\n", input, broken);
    CU_ASSERT_PTR_NULL(broken);
    free(script);
    seen++;
  }
  closedir(files);
  CU_ASSERT(seen >= 12);
  snprintf(command, sizeof command, "rm -r %s", own);
  CU_ASSERT_EQUAL(system(command), 0);
}

/* Checks several jobs: of two records of a task either will do, and a success is preferred to a failure. */
static void test_two_journals(void) {
  SCRATCH_ARENA(memory);
  Journal *journal;
  Finished finished;
  const int more[] = {1, 2};
  char second[PATH_MAX], *bytes;
  start_over();
  journal_fixture_write(folder, &study, 2, more, sizeof second, second);
  bytes = malloc(whole_size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
  memcpy(bytes, whole, whole_size);
  for (size_t at = 100; at < whole_size; at += 150) bytes[at] ^= 1; /* every record */
  journal_fixture_put(path, bytes, whole_size);
  check_tasks(0x06);
  journal_fixture_put(path, whole, whole_size);
  check_tasks(0x2f);
  CHECK_OK(journal_create(&memory, folder, &study, &journal));
  journal_fixture_append(&study, journal, 4, true);
  CHECK_OK(finished_open(&memory, folder, &study, false, &finished));
  CU_ASSERT_EQUAL(finished.state[4], RUN_FAILED);
  journal_fixture_append(&study, journal, 4, false);
  CHECK_OK(finished_look(&finished));
  CU_ASSERT_EQUAL(finished.state[4], RUN_OK);
  journal_fixture_append(&study, journal, 4, true);
  CHECK_OK(finished_look(&finished));
  CU_ASSERT_EQUAL(finished.state[4], RUN_OK);
  finished_close(&finished);
  journal_close(journal);
  check_tasks(0x3f);
  free(bytes);
}

/* Checks that a record that is being written is not taken for damage: a later look finds it. */
static void test_growing(void) {
  SCRATCH_ARENA(memory);
  Finished finished;
  start_over();
  journal_fixture_put(path, whole, 0);
  CHECK_OK(finished_open(&memory, folder, &study, false, &finished));
  for (size_t size = 0; size <= whole_size; size += 7) {
    journal_fixture_put(path, whole, size);
    CHECK_OK(finished_look(&finished));
    CU_ASSERT_EQUAL(finished.journal[0].damaged, 0);
  }
  journal_fixture_put(path, whole, whole_size);
  CHECK_OK(finished_look(&finished));
  for (int k = 0; k < SOME; k++) CU_ASSERT_EQUAL(finished.state[some[k]], RUN_OK);
  CU_ASSERT_EQUAL(finished.journal[0].rest, 0);
  finished_close(&finished);
}

/* Checks that a record that does not fit on the disk is removed, and that what follows is whole. */
static void test_full_disk(void) {
  SCRATCH_ARENA(memory);
  Journal *journal;
  Task task;
  TaskResult result;
  struct rlimit limit, before;
  start_over();
  remove(path);
  CHECK_OK(journal_create(&memory, folder, &study, &journal));
  journal_fixture_append(&study, journal, 0, false);
  signal(SIGXFSZ, SIG_IGN);
  CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &before), 0);
  limit = before;
  limit.rlim_cur = 400;
  CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
  journal_fixture_result(&study, 1, false, &task, &result);
  CHECK_FAILS(journal_append(journal, &task, &result), STATUS_FILE, "cannot write");
  CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &before), 0);
  check_tasks(0x01);
  CU_ASSERT_EQUAL(journal_damage_read(folder, &study, false).damage, 0);
  study_result_destroy(&result);
  journal_close(journal);
}

static void test_another_study(void) {
  SCRATCH_ARENA(memory);
  Study other;
  Finished finished;
  start_over();
  journal_fixture_study("6", &other);
  CHECK_OK(finished_open(&memory, folder, &other, false, &finished));
  CU_ASSERT_EQUAL(finished.unused, SOME);
  for (int i = 0; i < JOURNAL_TASKS; i++) CU_ASSERT_EQUAL(finished.state[i], RUN_NOT_RUN);
  finished_close(&finished);
  study_destroy(&other);
}

int main(void) {
  CU_TestInfo tests[] = {{"round trip", test_round_trip},
                         {"names", test_names},
                         {"flipped bits", test_flips},
                         {"tails", test_tails},
                         {"corpus", test_corpus},
                         {"two journals", test_two_journals},
                         {"a journal that grows", test_growing},
                         {"full disk", test_full_disk},
                         {"another study", test_another_study},
                         CU_TEST_INFO_NULL};
  if (!make_journal()) {
    printf("%s\n", status_message());
    return EXIT_FAILURE;
  }
  const int failed = harness_run("journal", tests);
  io_lock_release(lock);
  study_destroy(&study);
  free(whole);
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command) == 0 ? failed : EXIT_FAILURE;
}
