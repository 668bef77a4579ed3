/* thompson prune: remove finished tasks that the study in a folder no longer has. */
#include "parallel/tasks/prune.h"
#include "app/app.h"

static struct { const char *directory; } arguments;

static const AppOption options[] = {{0}};

static Status app_prune_directory(void) {
  SCOPED(Study, study, study_destroy);
  PruneCounts counts;
  TRY(app_study_of_folder(arguments.directory, &study));
  TRY(prune_folder(arguments.directory, &study, &counts));
  printf("%lld unused tasks removed, %.3g MB\n", (long long)counts.records, (double)counts.bytes / 1e6);
  return STATUS_OK;
}

const AppVerb app_prune = {
    .options = options,
    .argument = &arguments.directory,
    .what = "results folder",
    .usage = "DIR",
    .help = "Remove the finished tasks that the study in the folder does not have, because it was edited "
            "(`thompson run --resume`). Until then an edit can be taken back without running them again.",
    .on_first = app_prune_directory};
