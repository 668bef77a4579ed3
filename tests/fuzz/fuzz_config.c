/* Coverage-guided fuzzing of study files: any bytes give either one sentence or a study that survives a round
 * trip.
 *
 * Input: the bytes of a study file, read as from a disk; each byte 0x1E (record separator) starts a --set.
 *
 * Built and run by preset clang, with -max_len=4096 (tests/fuzz/CMakeLists.txt). */
#include "config_toy.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SETS = 4, SEPARATOR = 0x1E };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads everything that one setting offers. */
static void read_setting(const Config *config) {
  const int64_t *integers;
  const char *const *words;
  ASSERT(config_text(config, "name") && config_text(config, "problem.theta"));
  ASSERT(config_int(config, "runs") >= 1 && config_int(config, "problem.arms") >= 2);
  ASSERT(config_real(config, "problem.noise") >= 0 && config_real(config, "problem.noise") <= 1e3);
  ASSERT(config_is(config, "prior.samples", "all") || config_int(config, "prior.samples") >= 1);
  ASSERT(config_ints(config, "problem.sizes", &integers) >= 1 && integers[0] >= 1);
  ASSERT(config_is(config, "prior.hidden", "auto") != (config_ints(config, "prior.hidden", &integers) > 0));
  ASSERT(config_words(config, "metrics", &words) <= 3);
}

static void check_study(const StudyFile *study) {
  char difference[300];
  StudyFile *again;
  ASSERT(study->setting_count >= 1 && strlen(study->sha256) == 64);
  for (int s = 0; s < study->setting_count; s += 1 + study->setting_count / 8)
    read_setting(study->settings[s]);
  Status status = config_study_parse("resolved", study->resolved, &toy_schema, 0, NULL, &again);
  if (status != STATUS_OK) fprintf(stderr, "%s\n%s", status_message(), study->resolved);
  ASSERT(status == STATUS_OK);
  ASSERT(strcmp(again->resolved, study->resolved) == 0);
  ASSERT(again->setting_count == study->setting_count && again->policy_count == study->policy_count);
  ASSERT(!config_first_difference(study->resolved, again->resolved, sizeof difference, difference));
  config_study_free(again);
}

static void check_sentence(Status status) {
  ASSERT(status == STATUS_INPUT && *status_message() && !strchr(status_message(), '\n'));
}

/* Returns the text of a file with these bytes, all of them except a byte order mark; NULL when it is
 * refused. */
static char *read_text(const uint8_t *data, size_t size) {
  static int file = -1;
  char path[40], *text;
  if (file < 0) file = memfd_create("study", 0);
  ASSERT(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size);
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  Status status = config_study_text(path, &text);
  if (status != STATUS_OK) {
    check_sentence(status);
    return NULL;
  }
  size_t length = strlen(text);
  ASSERT(length <= size && memcmp(text, data + size - length, length) == 0);
  ASSERT(length == size || (length == size - 3 && memcmp(data, "\xEF\xBB\xBF", 3) == 0));
  return text;
}

static void check_text(const char *text, int set_count, const char *const *sets) {
  char difference[300];
  StudyFile *study;
  Status status = config_study_parse("fuzz", text, &toy_schema, set_count, sets, &study);
  if (status == STATUS_OK)
    check_study(study);
  else
    check_sentence(status);
  ASSERT((status == STATUS_OK) == (study != NULL));
  config_first_difference(text, set_count > 0 ? sets[0] : "name: x", sizeof difference, difference);
  config_study_free(study);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *sets[SETS];
  int set_count = 0;
  const uint8_t *separator = size > 0 ? memchr(data, SEPARATOR, size) : NULL;
  const size_t length = separator ? (size_t)(separator - data) : size;
  char *options = calloc(1, size - length + 1), *text = read_text(data, length);
  if (text && options) {
    memcpy(options, data + length, size - length);
    for (char *rest = separator ? options + 1 : NULL; rest && set_count < SETS;)
      sets[set_count++] = strsep(&rest, "\x1E");
    check_text(text, set_count, sets);
  }
  free(options);
  free(text);
  return 0;
}
