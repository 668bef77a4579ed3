#include "study_text.h"

#include "harness.h"
#include "study/keys.h"
#include "study/study_problem.h"

Study study_text_study(const char *text) {
  StudyFile *file = NULL;
  Study study;
  CHECK_OK(config_study_parse("test", text, &study_schema, 0, NULL, &file));
  CHECK_OK(study_create(file, &study));
  return study;
}

Status study_text_problem(const char *text, Problem *out) {
  StudyFile *file = NULL;
  CHECK_OK(config_study_parse("test", text, &study_schema, 0, NULL, &file));
  const Status status = study_problem_create(file->settings[0], out);
  config_study_free(file);
  return status;
}
