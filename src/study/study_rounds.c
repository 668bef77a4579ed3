#include "study/study_rounds.h"

#include <math.h>

enum {
  ROUNDS_ALL = 200, /* auto keeps every round of up to as many ... */
  ROUNDS_AUTO = 50 /* ... and this number of more */
};

static int rounds_of(const Config *setting) { return (int)config_int(setting, "problem.rounds"); }

static bool rounds_keeps_all(const Config *setting) {
  return config_is(setting, "rounds_kept", "all") ||
         (config_is(setting, "rounds_kept", "auto") && rounds_of(setting) <= ROUNDS_ALL);
}

int study_rounds_kept(const Config *setting) {
  const int rounds = rounds_of(setting);
  const int64_t *list;
  const int listed = config_ints(setting, "rounds_kept", &list);
  if (listed == 0) return rounds_keeps_all(setting) ? rounds : ROUNDS_AUTO;
  int count = 0;
  while (count < listed && list[count] <= rounds) count++;
  return count;
}

int study_rounds_kept_at(const Config *setting, int point) {
  const int64_t *list;
  if (config_ints(setting, "rounds_kept", &list) > 0) return (int)list[point];
  if (rounds_keeps_all(setting)) return point + 1;
  /* From 1 to the last round, with steps of the same ratio as soon as that is a whole round. */
  int round = 1;
  for (int i = 1; i <= point; i++) {
    const int next = (int)lround(round * pow((double)rounds_of(setting) / round, 1.0 / (ROUNDS_AUTO - i)));
    round = next > round ? next : round + 1;
  }
  return round;
}

/* Returns the most rounds of the settings up to the first that has `enough`. */
static int rounds_most(const StudyFile *file, int64_t enough) {
  int most = 0;
  for (int s = 0; s < file->setting_count && most < enough; s++)
    if (rounds_of(file->settings[s]) > most) most = rounds_of(file->settings[s]);
  return most;
}

Status study_rounds_check(const StudyFile *file, const Config *setting) {
  const int64_t *list;
  const int listed = config_ints(setting, "rounds_kept", &list);
  for (int i = 1; i < listed; i++)
    if (list[i] <= list[i - 1])
      return status_set(STATUS_INPUT, "key 'rounds_kept': %lld after %lld; they must increase",
                        (long long)list[i], (long long)list[i - 1]);
  if (listed > 0 && list[0] > rounds_of(setting))
    return status_set(STATUS_INPUT, "key 'rounds_kept': the first is %lld, but problem.rounds is %d",
                      (long long)list[0], rounds_of(setting));
  if (listed == 0 || list[listed - 1] <= rounds_of(setting)) return STATUS_OK;
  const int most = rounds_most(file, list[listed - 1]);
  if (list[listed - 1] <= most) return STATUS_OK;
  return status_set(STATUS_INPUT, "key 'rounds_kept': round %lld, but problem.rounds is at most %d",
                    (long long)list[listed - 1], most);
}
