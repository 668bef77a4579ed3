/* Coverage-guided fuzzing of study files: whatever the bytes, one sentence or a study that survives a round
 * trip.
 *
 * Input: a study file; each NUL byte starts a --set. Build and run:
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Isrc -Itests tests/fuzz/fuzz_config.c \
 *       src/io/config*.c src/core/status.c src/core/memory.c -lyaml -lmd -lm -o fuzz_config
 *   ./fuzz_config -max_total_time=300 new_corpus tests/fuzz/corpus_config */
#include "config_toy.h"

#include <stdlib.h>

enum { SETS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Everything that one setting can be asked for. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *sets[SETS];
  int set_count = 0;
  char difference[300];
  char *text = calloc(1, size + 1);
  if (!text) return 0;
  memcpy(text, data, size);
  for (size_t end = strlen(text); end < size && set_count < SETS; end += 1 + strlen(text + end + 1))
    sets[set_count++] = text + end + 1;
  StudyFile *study;
  Status status = config_study_parse("fuzz", text, &toy_schema, set_count, sets, &study);
  ASSERT(status == STATUS_OK ||
         (status == STATUS_INPUT && *status_message() && !strchr(status_message(), '\n') && !study));
  if (status == STATUS_OK) check_study(study);
  config_first_difference(text, set_count > 0 ? sets[0] : "name: x", sizeof difference, difference);
  config_study_free(study);
  free(text);
  return 0;
}
