#include "parallel/commit.h"

#include "core/clock.h"
#include "core/memory.h"
#include "parallel/bundle.h"
#include "parallel/task_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  FAN = 8, /* files that are merged into one */
  MOST_GROUPS = FAN * FAN, /* about a minute: a larger file is not merged again */
  MOST_PARTS = 2 * FAN
};
static const double GROUP_SECONDS = 1;

/* A bundle that this rank wrote, and may merge yet. */
typedef struct {
  char name[FOLDER_NAME];
  int groups; /* that were saved together */
  size_t bytes; /* of its tasks in memory */
} Part;

/* Tasks and their results. */
typedef struct {
  BundleEntry *entries; /* [count] of [room] */
  int count, room;
  size_t bytes;
} Group;

struct Commit {
  const char *directory;
  const Study *study;
  CommitNotice notice;
  Group group; /* not saved yet */
  double since; /* when the first of it was begun, by the wall clock */
  Part parts[MOST_PARTS]; /* [part_count], oldest first, and so the largest first */
  int part_count;
};

Status commit_create(const char *directory, const Study *study, CommitNotice notice, Commit **out) {
  NEW(*out, 1);
  **out = (Commit){.directory = directory, .study = study, .notice = notice};
  return STATUS_OK;
}

/* The group takes over what the entry has. */
static Status group_add(const Study *study, BundleEntry entry, Group *group) {
  if (group->count == group->room) {
    const int room = group->room > 0 ? 2 * group->room : 16;
    void *larger = realloc(group->entries, (size_t)room * sizeof *group->entries);
    if (!larger) return status_set(STATUS_INTERNAL, "out of memory for results");
    group->entries = larger;
    group->room = room;
  }
  group->entries[group->count++] = entry;
  group->bytes += bundle_entry_bytes(study, &entry.task);
  return STATUS_OK;
}

static void group_clear(Group *group) {
  for (int i = 0; i < group->count; i++) task_result_destroy(&group->entries[i].result);
  free(group->entries);
  *group = (Group){0};
}

void commit_destroy(Commit *commit) {
  if (!commit) return;
  group_clear(&commit->group);
  free(commit);
}

static double seconds_since_1970(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Saved by itself, at once. */
static Status save_alone(const Commit *commit, const Task *task, const TaskResult *result, double seconds) {
  TRY(task_file_save(commit->directory, commit->study, task, result));
  commit->notice.saved(commit->notice.context, task, result, seconds);
  return STATUS_OK;
}

Status commit_add(Commit *commit, const Task *task, TaskResult *result, double seconds) {
  Group *group = &commit->group;
  const BundleEntry entry = {
      .task = *task, .result = *result, .finished = seconds_since_1970(), .seconds = seconds};
  Status status = STATUS_OK;
  if (!bundle_is_for(commit->study) || result->status != RUN_OK)
    status = save_alone(commit, task, result, seconds);
  else if ((status = group_add(commit->study, entry, group)) == STATUS_OK) {
    if (group->count == 1) commit->since = clock_wall() - seconds;
    *result = (TaskResult){0};
  }
  task_result_destroy(result);
  return status;
}

bool commit_is_due(const Commit *commit, double ahead) {
  const Group *group = &commit->group;
  if (group->count == 0) return false;
  return group->bytes >= COMMIT_BYTES || clock_wall() + ahead - commit->since >= GROUP_SECONDS;
}

/* Write a group as one bundle, which is the newest part. */
static Status write_group(Commit *commit, Group *group, int groups) {
  Part *part = &commit->parts[commit->part_count];
  ASSERT(commit->part_count < MOST_PARTS);
  TRY(bundle_write(commit->directory, commit->study, group->count, group->entries, part->name));
  part->groups = groups;
  part->bytes = group->bytes;
  commit->part_count++;
  return STATUS_OK;
}

static void part_path(const Commit *commit, const Part *part, size_t size, char *path) {
  snprintf(path, size, "%s/tasks/%s", commit->directory, part->name);
}

/* Add what is in a part to a group, each task compared with its checksum. */
static Status read_part(const Commit *commit, const Part *part, Group *group) {
  const Study *study = commit->study;
  char path[4096];
  Bundle *bundle;
  part_path(commit, part, sizeof path, path);
  if (access(path, F_OK) != 0) return status_set(STATUS_INPUT, "%s was set aside", path);
  TRY(bundle_open(path, &bundle));
  Status status = STATUS_OK;
  for (int k = 0; k < bundle_count(bundle) && status == STATUS_OK; k++) {
    BundleEntry entry;
    status = bundle_load_entry(bundle, study, k, &entry);
    if (status != STATUS_OK) break;
    status = group_add(study, entry, group);
    if (status != STATUS_OK) task_result_destroy(&entry.result);
  }
  bundle_close(bundle);
  return status;
}

/* Merge the newest `count` parts. Those that cannot be read stay as they are, for whoever reads them next. */
static Status merge_newest(Commit *commit, int count) {
  Group group = {0};
  Part old[MOST_PARTS];
  int groups = 0;
  Status status = STATUS_OK;
  commit->part_count -= count;
  memcpy(old, commit->parts + commit->part_count, (size_t)count * sizeof *old);
  for (int i = 0; i < count && status == STATUS_OK; i++) {
    groups += old[i].groups;
    status = read_part(commit, &old[i], &group);
  }
  const bool readable = status == STATUS_OK;
  if (readable) status = write_group(commit, &group, groups);
  group_clear(&group);
  if (!readable && status == STATUS_INPUT) return STATUS_OK;
  for (int i = 0; i < count && status == STATUS_OK; i++) {
    char path[4096];
    part_path(commit, &old[i], sizeof path, path);
    unlink(path);
  }
  return status;
}

static size_t bytes_of_newest(const Commit *commit, int count) {
  size_t bytes = 0;
  for (int i = commit->part_count - count; i < commit->part_count; i++) bytes += commit->parts[i].bytes;
  return bytes;
}

/* As long as the newest FAN parts are of one size, merge them. Those that are large enough are done with. */
static Status tidy(Commit *commit) {
  while (commit->part_count >= FAN) {
    const Part *newest = &commit->parts[commit->part_count - 1];
    if (commit->parts[commit->part_count - FAN].groups != newest->groups) break;
    if (bytes_of_newest(commit, FAN) > COMMIT_BYTES)
      commit->part_count -= FAN;
    else
      TRY(merge_newest(commit, FAN));
  }
  if (commit->part_count > 0 && commit->parts[commit->part_count - 1].groups >= MOST_GROUPS)
    commit->part_count = 0;
  return STATUS_OK;
}

Status commit_save(Commit *commit) {
  Group *group = &commit->group;
  if (group->count == 0) return STATUS_OK;
  TRY(write_group(commit, group, 1));
  for (int i = 0; i < group->count; i++) {
    const BundleEntry *entry = &group->entries[i];
    TRY(task_file_forget_failure(commit->directory, commit->study, &entry->task));
    commit->notice.saved(commit->notice.context, &entry->task, &entry->result, entry->seconds);
  }
  group_clear(group);
  return tidy(commit);
}

Status commit_merge(Commit *commit) {
  int count = 0;
  while (count < commit->part_count && bytes_of_newest(commit, count + 1) <= COMMIT_BYTES) count++;
  return count > 1 ? merge_newest(commit, count) : STATUS_OK;
}
