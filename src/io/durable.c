#include "io/durable.h"

#include "core/arena.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns the length of the folder part of `path`, including its last slash; 0 for a bare name. */
static size_t folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Returns who may do what with a file. */
static mode_t durable_mode(const struct stat *info) { return info->st_mode & (S_IRWXU | S_IRWXG | S_IRWXO); }

Status durable_begin(const char *path, char **temporary) {
  *temporary = NULL;
  size_t folder = folder_length(path);
  if (path[folder] == '\0')
    return status_set(STATUS_FILE, "cannot write '%s': it does not name a file", path);
  struct stat info;
  const bool exists = lstat(path, &info) == 0;
  if (exists && !S_ISREG(info.st_mode))
    return status_set(STATUS_FILE, "cannot write %s: it is %s", path,
                      S_ISDIR(info.st_mode)   ? "a folder"
                      : S_ISLNK(info.st_mode) ? "a symbolic link"
                                              : "something that is not a regular file");

  size_t size = strlen(path) + sizeof "..tmp" + 48; /* 48: any process id and number, with their dots */
  SCOPED(char *, name, memory_free_text);
  NEW(name, size);
  int fd = -1;
  /* A name that exists belongs to a killed process, or to one with the same id on another machine. */
  for (int number = 0; fd < 0 && number < 1000; number++) {
    snprintf(name, size, "%.*s.%s.%ld.%d.tmp", (int)folder, path, path + folder, (long)getpid(), number);
    fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST) break;
  }
  if (fd < 0) return status_set(STATUS_FILE, "cannot write %s: %s", path, strerror(errno));
  if (exists) fchmod(fd, durable_mode(&info) | S_IRUSR | S_IWUSR); /* others must not read it meanwhile */
  close(fd);
  *temporary = name;
  name = NULL;
  return STATUS_OK;
}

Status durable_try(const char *path) {
  SCOPED(char *, temporary, memory_free_text);
  TRY(durable_begin(path, &temporary));
  unlink(temporary);
  return STATUS_OK;
}

/* Returns the length of `name`[length] without the dot and the digits at its end; 0 if it does not end in
 * these. */
static size_t durable_strip_number(const char *name, size_t length) {
  size_t end = length;
  while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') end--;
  return end < length && end > 0 && name[end - 1] == '.' ? end - 1 : 0;
}

bool durable_is_temporary(const char *name, size_t size, char *of) {
  size_t length = strlen(name);
  if (name[0] != '.' || length < 4 || strcmp(name + length - 4, ".tmp") != 0) return false;
  size_t end = durable_strip_number(name, durable_strip_number(name, length - 4));
  if (end <= 1 || end > size) return false;
  snprintf(of, size, "%.*s", (int)(end - 1), name + 1);
  return true;
}

/* Returns the process that a temporary name belongs to. */
static long durable_process_of(const char *name) {
  size_t end = durable_strip_number(name, strlen(name) - 4); /* before the number and ".tmp" */
  return strtol(name + durable_strip_number(name, end) + 1, NULL, 10);
}

void durable_sweep(const char *path) {
  const size_t length = folder_length(path);
  char *folder = length > 0 ? strndup(path, length) : strdup("."), of[NAME_MAX + 1];
  DIR *entries = folder ? opendir(folder) : NULL;
  free(folder);
  if (!entries) return;
  for (struct dirent *entry; (entry = readdir(entries));) {
    if (!durable_is_temporary(entry->d_name, sizeof of, of) || strcmp(of, path + length) != 0) continue;
    const long process = durable_process_of(entry->d_name);
    const bool dead = process == (long)getpid() || (kill((pid_t)process, 0) != 0 && errno == ESRCH);
    if (dead) unlinkat(dirfd(entries), entry->d_name, 0);
  }
  closedir(entries);
}

/* Calls fsync on the file or folder `name` and returns 0 or errno. */
static int sync_path(const char *name, int flags) {
  int fd = open(name, flags | O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  int error = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  return error;
}

Status durable_sync_folder_of(const char *path) {
  const size_t length = folder_length(path);
  char *folder = length > 0 ? strndup(path, length) : strdup(".");
  const int error = folder ? sync_path(folder, O_DIRECTORY) : ENOMEM;
  free(folder);
  /* Some file systems cannot sync a folder, and some folders may be written but not read; the file itself is
   * safe. */
  if (error == 0 || error == EINVAL || error == EACCES) return STATUS_OK;
  return status_set(STATUS_FILE, "cannot sync the folder of %s: %s", path, strerror(error));
}

Status durable_publish(const char *temporary, const char *path, bool replace) {
  int error = sync_path(temporary, 0);
  if (error == 0 && !replace) {
    error = link(temporary, path) == 0 ? 0 : errno;
    /* File systems without hard links (some network file systems) do replace. */
    replace = error == EPERM || error == ENOSYS || error == EOPNOTSUPP;
    if (error == EEXIST || replace) error = 0;
  }
  struct stat info;
  if (error == 0 && replace && lstat(path, &info) == 0) chmod(temporary, durable_mode(&info));
  if (error == 0 && replace) error = rename(temporary, path) == 0 ? 0 : errno;
  if (error != 0 || !replace) unlink(temporary);
  if (error == 0) return durable_sync_folder_of(path);
  return status_set(STATUS_FILE, "cannot write %s: %s", path, strerror(error));
}

Status durable_set_aside(const char *path) {
  SCRATCH_ARENA(scratch);
  const char *renamed;
  struct stat info;
  TRY(arena_print(&scratch, &renamed, "%s.bad", path));
  for (int number = 2; lstat(renamed, &info) == 0; number++)
    TRY(arena_print(&scratch, &renamed, "%s.bad.%d", path, number));
  const int error = rename(path, renamed) == 0 ? 0 : errno;
  if (error == 0 || error == ENOENT) return STATUS_OK;
  return status_set(STATUS_FILE, "%s: cannot set the file aside: %s", path, strerror(error));
}
