#include "study/study_problem.h"

const ProblemOps *study_problem_family(const Config *setting) {
  const StudyOps *kind = study_kind_of(setting);
  return kind->problem ? kind->problem : problem_named(setting);
}

/* Returns whether the matrices of the problem can be spread over ranks. */
static bool study_problem_has_matrices(const Config *setting) {
  return study_kind_of(setting)->run_spread && study_problem_family(setting)->matrix;
}

bool study_problem_is_distributed(const Config *setting) {
  return study_problem_has_matrices(setting) && problem_is_distributed(setting);
}

/* Returns the name of the study for rewards that come from there. */
static const char *study_problem_kind_with_rewards(ProblemRewards rewards_of) {
  int i = 0;
  while (study_kind(i)->rewards_of != rewards_of) i++;
  return study_kind_name(i);
}

/* Returns the name of the study in which theta* may change. */
static const char *study_problem_kind_that_drifts(void) {
  int i = 0;
  while (!study_kind(i)->drifts) i++;
  return study_kind_name(i);
}

static Status study_problem_check(const Config *setting) {
  const StudyOps *kind = study_kind_of(setting);
  const ProblemOps *family = study_problem_family(setting);
  const bool drifts = config_is(setting, "problem.drift.kind", "switch"),
             spread = !config_is(setting, "linear_algebra.distributed_from", "auto");
  if (family->rewards_of != REWARDS_OF_THETA && family->rewards_of != kind->rewards_of)
    return status_set(STATUS_INPUT, "problem.family: %s is for study %s; this is study %s", family->name,
                      study_problem_kind_with_rewards(family->rewards_of), kind->name);
  if (drifts && (family->arms_of_theta || family->rewards || !kind->drifts))
    return status_set(STATUS_INPUT,
                      "problem.drift: kind switch is for study %s, with arms that do not depend on theta*; "
                      "this is study %s, problem.family %s",
                      study_problem_kind_that_drifts(), kind->name, family->name);
  if (spread && problem_is_distributed(setting) && !study_problem_has_matrices(setting))
    return status_set(STATUS_INPUT,
                      "linear_algebra.distributed_from: %lld, but only posterior studies of problem.family = "
                      "inverse have matrices to spread over ranks",
                      (long long)config_int(setting, "linear_algebra.distributed_from"));
  return STATUS_OK;
}

Status study_problem_create(const Config *setting, Problem *out) {
  *out = (Problem){0};
  TRY(study_problem_check(setting));
  const ProblemUse use = study_problem_is_distributed(setting)    ? PROBLEM_DISTRIBUTED
                         : study_kind_of(setting)->draws_together ? PROBLEM_TOGETHER
                                                                  : PROBLEM_APART;
  return problem_create(setting, study_problem_family(setting), use, out);
}
