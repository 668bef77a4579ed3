#include "io/io_lock.h"

#include "core/arena.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, TEXT_SIZE = 512 };
enum {
  BEAT = 5, /* seconds between two changes of the text */
  PATIENCE = 20, /* seconds without a change after which a job on another machine counts as dead */
  LINGER = 5 /* seconds that a job may need to die after its launcher was killed */
};

/* Flags that open a lock file without following a link or waiting for a pipe. */
enum { TO_OPEN = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK };

/* The text of a lock file begins with this. */
static const char beginning[] = "host ";

/* A lock. The text of its file is `text`, then the number of the beat; an empty file is held by nobody. */
struct Lock {
  char path[PATH_SIZE], text[TEXT_SIZE];
  int file;
  bool beating;
  atomic_bool lost;
  pthread_t heart;
  int end; /* an event: the heart is to stop */
};

/* Another job's lock file, whose text alone can show whether that job is alive. */
typedef struct {
  char path[PATH_SIZE], text[TEXT_SIZE];
} Suspect;

typedef struct {
  Arena memory;
  Suspect *items;
  int count;
} Suspects;

static void io_lock_free_suspects(Suspects *suspects) { arena_free(&suspects->memory); }

/* Who holds a lock. The boot id identifies the kernel; within one kernel the system's lock can be trusted. */

static void io_lock_read_boot_id(char id[64]) {
  snprintf(id, 64, "unknown");
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
  if (!file) return;
  if (fscanf(file, "%63s", id) != 1) snprintf(id, 64, "unknown");
  fclose(file);
}

static void io_lock_describe_this_job(char text[TEXT_SIZE]) {
  char host[128] = "?", since[32], boot[64], job[64] = "";
  const char *slurm = getenv("SLURM_JOB_ID"), *pbs = getenv("PBS_JOBID");
  gethostname(host, sizeof host - 1);
  time_t now = time(NULL);
  strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S UTC", gmtime(&now));
  io_lock_read_boot_id(boot);
  if (slurm || pbs) snprintf(job, sizeof job, ", job %.50s", slurm ? slurm : pbs);
  snprintf(text, TEXT_SIZE, "%s%s, pid %ld%s, since %s; boot %s", beginning, host, (long)getpid(), job, since,
           boot);
}

/* Reads the text of a lock file; empty when nobody holds it, or when it cannot be read. The file is reopened
 * each time, because only then do network file systems ask the server. */
static void io_lock_read_text(const char *path, char text[TEXT_SIZE]) {
  text[0] = '\0';
  int file = open(path, O_RDONLY | TO_OPEN);
  if (file < 0) return;
  ssize_t length = read(file, text, TEXT_SIZE - 1);
  text[length > 0 ? length : 0] = '\0';
  close(file);
}

static Status io_lock_refuse_other_job(const char *path, const char *text) {
  int folder = (int)(strrchr(path, '/') - path);
  if (text[0] == '\0')
    return status_set(STATUS_FILE, "%.*s: another job is writing to this folder", folder, path);
  return status_set(STATUS_FILE, "%.*s: another job is writing to this folder (%.*s)", folder, path,
                    (int)strcspn(text, ";"), text);
}

/* The heartbeat of a lock that is held. */

static void io_lock_write_beat(Lock *lock, unsigned long number) {
  char text[TEXT_SIZE + 32];
  int length = snprintf(text, sizeof text, "%s, beat %010lu\n", lock->text, number);
  /* A beat that cannot be written (full disk, sleeping server) is just skipped. */
  if (pwrite(lock->file, text, (size_t)length, 0) == length) fsync(lock->file);
}

/* Beats until the lock is to end. It is lost when the file holds the text of another job or is gone; a file
 * that cannot be read for the moment does not count as lost. */
static void *io_lock_beat_forever(void *argument) {
  Lock *lock = argument;
  struct pollfd end = {.fd = lock->end, .events = POLLIN};
  for (unsigned long number = 1; poll(&end, 1, 1000 * BEAT) < 1; number++) {
    char text[TEXT_SIZE];
    bool taken = access(lock->path, F_OK) != 0 && errno == ENOENT;
    io_lock_read_text(lock->path, text);
    taken = taken || (text[0] != '\0' && strncmp(text, lock->text, strlen(lock->text)) != 0);
    if (taken)
      lock->lost = true;
    else
      io_lock_write_beat(lock, number);
  }
  return NULL;
}

static Status io_lock_start_heart(Lock *lock) {
  lock->end = eventfd(0, EFD_CLOEXEC);
  if (lock->end < 0) return status_set(STATUS_INTERNAL, "cannot start a thread: %s", strerror(errno));
  sigset_t all, before; /* signals are for the main thread */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&lock->heart, NULL, io_lock_beat_forever, lock);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  lock->beating = error == 0;
  if (lock->beating) return STATUS_OK;
  close(lock->end);
  return status_set(STATUS_INTERNAL, "cannot start a thread: %s", strerror(error));
}

/* Taking a lock. */

/* Takes the system's lock of an open lock file, waits a little for a job that is dying, and checks the text.
 * If the system's lock was free (or does not exist), a job that cannot be seen from this machine becomes a
 * suspect. */
static Status io_lock_probe(int file, const char *path, Suspects *suspects) {
  char text[TEXT_SIZE], boot[64];
  int error; /* EWOULDBLOCK: held by another job; others: this file system has no such lock */
  for (int tries = 0;; tries++) {
    error = flock(file, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    if (error != EWOULDBLOCK || tries == 10 * LINGER) break;
    usleep(100000);
  }
  io_lock_read_text(path, text);
  if (error == EWOULDBLOCK) return io_lock_refuse_other_job(path, text);
  io_lock_read_boot_id(boot);
  if (text[0] == '\0' || (error == 0 && strstr(text, boot))) return STATUS_OK;
  GROW(&suspects->memory, suspects->items, suspects->count);
  Suspect *suspect = &suspects->items[suspects->count++];
  snprintf(suspect->path, sizeof suspect->path, "%s", path);
  snprintf(suspect->text, sizeof suspect->text, "%s", text);
  return STATUS_OK;
}

/* Returns whether an open file is a lock of this program, or an empty file that can become one. */
static bool io_lock_file_is_lock(int file) {
  struct stat info;
  char text[sizeof beginning];
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  const ssize_t length = pread(file, text, strlen(beginning), 0);
  return length == 0 ||
         (length == (ssize_t)strlen(beginning) && memcmp(text, beginning, strlen(beginning)) == 0);
}

/* Returns whether a name is that of a shard's lock, such as "lock.3". */
static bool io_lock_is_of_shard(const char *name) {
  return strncmp(name, "lock.", 5) == 0 && name[5] != '\0' &&
         name[5 + strspn(name + 5, "0123456789")] == '\0';
}

/* Checks the locks that exclude this one, without keeping them: for a shard's lock the lock of the whole
 * study, for the whole study every shard's lock. */
static Status io_lock_check_rivals(const char *directory, int shard, Suspects *suspects) {
  char path[PATH_SIZE + 300];
  DIR *folder = opendir(directory);
  if (!folder) return status_set(STATUS_FILE, "%s: cannot read the folder: %s", directory, strerror(errno));
  Status status = STATUS_OK;
  struct dirent *entry;
  while (status == STATUS_OK && (entry = readdir(folder))) {
    const char *name = entry->d_name;
    if (shard < 0 ? !io_lock_is_of_shard(name) : strcmp(name, "lock") != 0) continue;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    const int file = open(path, O_RDWR | TO_OPEN);
    if (file < 0) continue;
    if (io_lock_file_is_lock(file)) status = io_lock_probe(file, path, suspects);
    close(file);
  }
  closedir(folder);
  return status;
}

/* Watches the texts of suspects: a text that changes belongs to a job that is alive. */
static Status io_lock_watch_suspects(const Suspects *suspects) {
  if (suspects->count == 0) return STATUS_OK;
  fprintf(
      stderr,
      "%s: left by a job on another machine (%.*s); watching for %d s to see whether it is still running\n",
      suspects->items[0].path, (int)strcspn(suspects->items[0].text, ";"), suspects->items[0].text, PATIENCE);
  for (int second = 0; second < PATIENCE; second++) {
    sleep(1);
    for (int i = 0; i < suspects->count; i++) {
      char text[TEXT_SIZE];
      io_lock_read_text(suspects->items[i].path, text);
      if (text[0] != '\0' && strcmp(text, suspects->items[i].text) != 0)
        return io_lock_refuse_other_job(suspects->items[i].path, text);
    }
  }
  return STATUS_OK;
}

void io_lock_release(Lock *lock) {
  if (!lock) return;
  if (lock->beating) {
    eventfd_write(lock->end, 1);
    pthread_join(lock->heart, NULL);
    close(lock->end);
    /* An empty text: nobody holds the lock. */
    if (!lock->lost && ftruncate(lock->file, 0) != 0) lock->lost = true;
  }
  if (lock->file >= 0) close(lock->file);
  free(lock);
}

static void io_lock_drop(Lock **lock) { io_lock_release(*lock); }

Status io_lock_take(const char *directory, int shard, Lock **out) {
  SCOPED(Suspects, suspects, io_lock_free_suspects);
  SCOPED(Lock *, lock, io_lock_drop);
  char name[32] = "lock";
  *out = NULL;
  if (shard >= 0) snprintf(name, sizeof name, "lock.%d", shard);
  NEW(lock, 1);
  snprintf(lock->path, sizeof lock->path, "%s/%s", directory, name);
  lock->file = open(lock->path, O_CREAT | O_RDWR | TO_OPEN, 0666);
  if (lock->file < 0 && errno != ELOOP)
    return status_set(STATUS_FILE, "%s: cannot write: %s", lock->path, strerror(errno));
  if (lock->file < 0 || !io_lock_file_is_lock(lock->file))
    return status_set(
        STATUS_FILE, "%s is not a lock file of this program; move it away or use another folder", lock->path);
  TRY(io_lock_probe(lock->file, lock->path, &suspects));
  TRY(io_lock_check_rivals(directory, shard, &suspects));
  TRY(io_lock_watch_suspects(&suspects));
  io_lock_describe_this_job(lock->text);
  if (ftruncate(lock->file, 0) != 0)
    return status_set(STATUS_FILE, "%s: cannot write: %s", lock->path, strerror(errno));
  io_lock_write_beat(lock, 0);
  TRY(io_lock_start_heart(lock));
  *out = lock;
  lock = NULL;
  return STATUS_OK;
}

/* Describes the job that holds a lock file as io_lock_holder does. */
static bool io_lock_file_holder(const char *path, size_t size, char *text) {
  char found[TEXT_SIZE], boot[64];
  text[0] = '\0';
  const int file = open(path, O_RDONLY | TO_OPEN);
  if (file < 0) return false;
  const bool held = io_lock_file_is_lock(file) && flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(file);
  io_lock_read_text(path, found);
  io_lock_read_boot_id(boot);
  if (held || !strstr(found, boot)) snprintf(text, size, "%.*s", (int)strcspn(found, ";"), found);
  return held;
}

bool io_lock_holder(const char *directory, size_t size, char *text) {
  DIR *folder = opendir(directory);
  bool held = false;
  text[0] = '\0';
  struct dirent *entry;
  while (folder && !held && (entry = readdir(folder))) {
    char path[PATH_SIZE], other[TEXT_SIZE];
    const char *name = entry->d_name;
    if (strcmp(name, "lock") != 0 && !io_lock_is_of_shard(name)) continue;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    held = io_lock_file_holder(path, sizeof other, other);
    if (held || !*text) snprintf(text, size, "%s", other);
  }
  if (folder) closedir(folder);
  return held;
}

bool io_lock_lost(const Lock *lock) { return lock && lock->lost; }
