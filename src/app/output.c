#include "app/output.h"

#include "app/app.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Returns whether output was lost: a network file system may report only at the end that its disk is full.
 * A stdout that was closed before the start is no error when nothing was printed. */
static bool output_lost(void) {
  bool lost = ferror(stdout) || fflush(stdout) != 0;
  return (fclose(stdout) != 0 && errno != EBADF) || lost;
}

/* Checks the output. argp ends the program by itself after --help, so this stands at exit and not at the
 * end of main. */
static void check_output(void) {
  if (!output_lost() || app_has_failed()) return;
  app_report(status_set(STATUS_FILE, "cannot write to standard output (is its disk full, or is it closed?)"));
  _exit(STATUS_FILE);
}

void output_begin(void) {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  setvbuf(stdout, NULL, _IOLBF, 0);
  atexit(check_output);
}
