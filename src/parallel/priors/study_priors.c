#include "parallel/priors/study_priors.h"

#include "io/durable.h"
#include "parallel/priors/auto.h"
#include "parallel/priors/fits.h"
#include "study/study_problem.h"

#include <string.h>
#include <unistd.h>

/* A distinct prior of a study, the setting whose data it is learned from, and the prior that has to be fitted
 * before it, if there is one. */
typedef struct {
  Belief belief, base;
  int setting;
  bool has_base;
} Need;

/* Compares needs: those without a base come first, since they may be bases. */
static int study_priors_compare_needs(const void *a, const void *b) {
  const Need *first = a, *second = b;
  if (first->has_base != second->has_base) return first->has_base ? 1 : -1;
  int order = strcmp(first->belief.hash, second->belief.hash);
  return order ? order : first->setting - second->setting;
}

static bool study_priors_need_is_auto(const Need *need) { return need->belief.family == &prior_auto; }

/* Sorts needs and keeps one of each. */
static void study_priors_sort_needs(int *count, Need *needs) {
  int kept = 0;
  qsort(needs, (size_t)*count, sizeof *needs, study_priors_compare_needs);
  for (int i = 0; i < *count; i++)
    if (kept == 0 || strcmp(needs[kept - 1].belief.hash, needs[i].belief.hash) != 0) needs[kept++] = needs[i];
  *count = kept;
}

/* Lists the distinct priors that the tasks use and that were fitted, here or elsewhere. */
static Status study_priors_list_needs(Arena *memory, const Study *study, int *count, Need **out) {
  const StudyFile *file = study->file;
  const int replicates = study->runs.replicates;
  Need *needs;
  ALLOCATE(memory, needs, (size_t)file->setting_count * (size_t)file->policy_count * (size_t)replicates);
  *out = needs;
  *count = 0;
  for (int s = 0; s < file->setting_count; s++) {
    SCOPED(Problem, problem, problem_destroy);
    TRY(study_problem_create(file->settings[s], &problem));
    for (int i = 0; i < file->policy_count * replicates; i++) {
      Need *need = &needs[*count];
      Belief *belief = &need->belief;
      *need = (Need){.setting = s};
      TRY(study_belief_create(file->settings[s], &file->policies[i / replicates], &problem,
                              (uint32_t)(i % replicates), belief));
      if (belief->kind == BELIEF_FITTED)
        TRY(study_belief_prerequisite(file->settings[s], &problem, belief, &need->base));
      else if (belief->kind == BELIEF_FILE)
        TRY(digest_hex(belief->file, strlen(belief->file), belief->hash));
      else
        continue;
      need->has_base = need->base.kind != BELIEF_NONE;
      ++*count;
    }
  }
  study_priors_sort_needs(count, needs);
  return STATUS_OK;
}

/* Reports the first prior that fails its own check, and how many others do. A prior that cannot be read is
 * reported by the tasks. */
static void study_priors_note_doubts(int count, const Need *needs, const char *directory) {
  int doubted = 0;
  char path[4096], doubt[2048], first[8192];
  for (int i = 0; i < count; i++) {
    SCRATCH_ARENA(scratch);
    const Belief *belief = &needs[i].belief;
    Prior prior;
    if (belief->kind == BELIEF_FITTED && !belief->family->doubt && !study_priors_need_is_auto(&needs[i]))
      continue;
    if (belief->kind == BELIEF_FITTED) study_belief_path(belief, directory, sizeof path, path);
    const char *file = belief->kind == BELIEF_FITTED ? path : belief->file;
    if (prior_load(&scratch, file, &belief->fit, &prior) != STATUS_OK) continue;
    const bool doubtful = prior_doubt_under(&prior, &belief->likelihood, sizeof doubt, doubt);
    if (doubtful && doubted++ == 0) snprintf(first, sizeof first, "%s: %s", file, doubt);
  }
  if (doubted > 0) fprintf(stderr, "note: %s", first);
  if (doubted > 1) fprintf(stderr, " (%d more like it in this study)", doubted - 1);
  if (doubted > 0) fputc('\n', stderr);
}

/* Returns whether DIR/priors has what is needed; a damaged prior there is set aside, to be fitted again. */
static bool study_priors_is_present(const char *directory, const Need *need) {
  SCOPED(StoreFile *, file, store_close);
  char path[4096];
  if (need->belief.kind == BELIEF_FILE) return true;
  study_belief_path(&need->belief, directory, sizeof path, path);
  if (access(path, R_OK) != 0) return false;
  /* Other faults than damage are reported when it is loaded. */
  if (store_open_own(path, &file) != STATUS_INPUT) return true;
  fprintf(stderr, "%s; the file is set aside and its prior learned again\n", status_message());
  return durable_set_aside(path) != STATUS_OK;
}

/* Drops the needs that DIR/priors has already. Rank 0 checks, so that all ranks agree. */
static Status study_priors_drop_present(const char *directory, int *count, Need *needs) {
  SCRATCH_ARENA(scratch);
  char *present;
  ALLOCATE_ON_RANKS(&scratch, present, *count);
  if (parallel_rank() == 0)
    for (int i = 0; i < *count; i++) present[i] = study_priors_is_present(directory, &needs[i]);
  parallel_broadcast(present, (size_t)*count);
  int kept = 0;
  for (int i = 0; i < *count; i++)
    if (!present[i]) needs[kept++] = needs[i];
  *count = kept;
  return STATUS_OK;
}

/* Creates the data of a need; *seconds gets the CPU seconds of its base. */
static Status study_priors_need_data(Arena *memory, const Study *study, const Need *need,
                                     const char *directory, FitSource *out, double *seconds) {
  SCRATCH_ARENA(scratch);
  SCOPED(Problem, problem, problem_destroy);
  Prior base = {0};
  TRY(study_problem_create(study->file->settings[need->setting], &problem));
  if (need->has_base) TRY(study_belief_prior(&scratch, &need->base, &problem, directory, &base));
  *seconds = base.seconds_fit;
  return study_fit_data_create(memory, &need->belief, &problem, need->has_base ? &base : NULL, out);
}

/* How far the priors of a study are: `done` of all, and a wave of them that is being fitted. */
typedef struct {
  Progress progress;
  bool (*stop)(void); /* may be NULL */
  int done, wave, all;
} Waves;

/* Shows that this fraction of the wave is done; returns whether to go on. */
static bool study_priors_tick(void *context, double fraction) {
  Waves *self = context;
  const double done = self->done + self->wave * fraction;
  progress_update(&self->progress, (long)done, self->all, done / self->all);
  return !(self->stop && self->stop());
}

/* Fits a wave of priors together; each that is complete is assembled and written by one rank, also after a
 * stop. Collective. */
static Status study_priors_fit_wave(const Study *study, const char *directory, int count, const Need *needs,
                                    Waves *waves) {
  SCRATCH_ARENA(scratch);
  Fit *fits;
  ALLOCATE_ON_RANKS(&scratch, fits, count);
  Status status = STATUS_OK;
  for (int i = 0; i < count && status == STATUS_OK; i++) {
    double base_seconds = 0;
    fits[i] = (Fit){.family = needs[i].belief.family, .fit = &needs[i].belief.fit};
    status = study_priors_need_data(&scratch, study, &needs[i], directory, &fits[i].source, &base_seconds);
    if (parallel_rank() == 0) fits[i].seconds = base_seconds;
  }
  TRY(parallel_agree(status));
  const Status fitted = fits_run(&scratch, count, fits, (Tick){study_priors_tick, waves});
  if (fitted != STATUS_OK && fitted != STATUS_STOPPED) return fitted;
  for (int i = parallel_rank(); i < count && status == STATUS_OK; i += parallel_size()) {
    SCRATCH_ARENA(assembled);
    char path[4096];
    Prior prior;
    if (fits[i].done < fits[i].parts) continue; /* stopped before */
    study_belief_path(&needs[i].belief, directory, sizeof path, path);
    status = fits_assemble(&assembled, &fits[i], &prior);
    if (status == STATUS_OK) status = prior_save(&prior, path);
  }
  TRY(parallel_agree(status));
  return fitted;
}

/* Chooses and fits a prior whose family is auto. Collective. */
static Status study_priors_fit_auto(const Study *study, const char *directory, const Need *need,
                                    Waves *waves) {
  SCRATCH_ARENA(scratch);
  SCOPED(Problem, problem, problem_destroy);
  const Config *setting = study->file->settings[need->setting];
  char path[4096];
  double base_seconds;
  Prior prior;
  AutoChoice choice;
  AutoJob job = {.fit = &need->belief.fit,
                 .likelihood = &need->belief.likelihood,
                 .mode = PROGRESS_NONE,
                 .tick = {study_priors_tick, waves}};
  TRY(parallel_agree(study_problem_create(setting, &problem)));
  TRY(parallel_agree(study_priors_need_data(&scratch, study, need, directory, &job.source, &base_seconds)));
  job.sizes = study_candidates_sizes(setting, &problem, job.size);
  TRY(auto_fit(&scratch, &job, &choice, &prior));
  prior.seconds_fit += parallel_rank() == 0 ? base_seconds : 0;
  study_belief_path(&need->belief, directory, sizeof path, path);
  return parallel_agree(parallel_rank() == 0 ? auto_save(&choice, &prior, path) : STATUS_OK);
}

static int study_priors_count_parts(const Need *need) {
  return prior_parts(need->belief.family, &need->belief.fit);
}

/* Compares by the number of parts. A fit of one part cannot be shared, so it comes first: many small parts
 * then fill the end of the wave. */
static int study_priors_fewest_parts_first(const void *a, const void *b) {
  const int first = study_priors_count_parts(a), second = study_priors_count_parts(b);
  return first != second ? first - second : study_priors_compare_needs(a, b);
}

/* Adds the bases of needs[count] after them, and sorts. */
static void study_priors_add_bases(int *count, Need *needs) {
  for (int i = 0, own = *count; i < own; i++)
    if (needs[i].has_base) needs[(*count)++] = (Need){.belief = needs[i].base, .setting = needs[i].setting};
  study_priors_sort_needs(count, needs);
}

Status study_priors_count(const Study *study, const char *directory, int *present, int *needed) {
  SCRATCH_ARENA(scratch);
  Need *own, *needs;
  int count;
  TRY(study_priors_list_needs(&scratch, study, &count, &own));
  ALLOCATE(&scratch, needs, 2 * count);
  memcpy(needs, own, (size_t)count * sizeof *needs);
  study_priors_add_bases(&count, needs);
  *present = *needed = 0;
  for (int i = 0; i < count; i++) {
    char path[4096];
    if (needs[i].belief.kind != BELIEF_FITTED) continue;
    study_belief_path(&needs[i].belief, directory, sizeof path, path);
    *present += access(path, F_OK) == 0;
    ++*needed;
  }
  return STATUS_OK;
}

Status study_priors_fit(const Study *study, const char *directory, ProgressMode mode, bool (*stop)(void)) {
  SCRATCH_ARENA(scratch);
  Need *needs = NULL, *absent;
  int count, left;
  TRY(parallel_agree(study_priors_list_needs(&scratch, study, &count, &needs)));
  ALLOCATE_ON_RANKS(&scratch, absent, 2 * count);
  memcpy(absent, needs, (size_t)count * sizeof *absent);
  left = count;
  TRY(study_priors_drop_present(directory, &left, absent));
  study_priors_add_bases(&left, absent);
  TRY(study_priors_drop_present(directory, &left, absent)); /* bases may be there already */
  /* A wave has enough priors to keep every rank busy until its end, and few enough that a kill loses
   * little. */
  const int most = parallel_size() > 1 ? 8 * parallel_size() : 1;
  Waves waves = {.progress = progress_begin(mode, "learning priors"), .stop = stop, .all = left};
  for (int first = 0, end = 0, parts = 0; first < left; first = end, parts = 0) {
    /* Bases end before the priors that need them begin. */
    while (end < left && absent[end].has_base == absent[first].has_base &&
           !study_priors_need_is_auto(&absent[end]) && parts < most)
      parts += study_priors_count_parts(&absent[end++]);
    qsort(absent + first, (size_t)(end - first), sizeof *absent, study_priors_fewest_parts_first);
    waves.done = first;
    waves.wave = end - first;
    TRY(end > first ? study_priors_fit_wave(study, directory, end - first, absent + first, &waves)
                    : study_priors_fit_auto(study, directory, &absent[end++], &waves));
  }
  if (left > 0) progress_end(&waves.progress, left, left);
  if (parallel_rank() == 0) study_priors_note_doubts(count, needs, directory);
  return STATUS_OK;
}
