#include "parallel/progress.h"

#include "core/clock.h"
#include "parallel/parallel.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

Progress progress_begin(ProgressMode mode, const char *what) {
  const double now = clock_wall();
  return (Progress){.what = what,
                    .shown = parallel_rank() == 0 && mode != PROGRESS_NONE,
                    .terminal = mode == PROGRESS_AUTO && isatty(STDERR_FILENO),
                    .start = now,
                    .last = now};
}

/* Prints a duration: 42 s, 7 min 05 s, 3 h 12 min. */
static void progress_print_duration(double seconds) {
  long whole = (long)(seconds + 0.5);
  if (whole < 60)
    fprintf(stderr, "%ld s", whole);
  else if (whole < 3600)
    fprintf(stderr, "%ld min %02ld s", whole / 60, whole % 60);
  else
    fprintf(stderr, "%ld h %02ld min", whole / 3600, whole / 60 % 60);
}

bool progress_is_due(const Progress *progress) {
  const double now = clock_wall(), elapsed = now - progress->start;
  const double interval = progress->terminal ? 0.2 : fmin(300, fmax(5, elapsed / 10));
  return progress->shown && now - progress->last >= interval;
}

double progress_left(double elapsed, double whole) {
  return whole >= 0.1 || (whole > 0 && elapsed >= 60) ? elapsed * (1 - whole) / whole : NAN;
}

void progress_update(Progress *progress, long done, long total, double fraction) {
  const double now = clock_wall(), elapsed = now - progress->start, left = progress_left(elapsed, fraction);
  if (!progress_is_due(progress)) return;
  progress->last = now;
  if (progress->terminal) {
    enum { WIDTH = 30 };
    int filled = (int)(WIDTH * fraction);
    fprintf(stderr, "\r%s [", progress->what);
    for (int i = 0; i < WIDTH; i++) fputc(i < filled ? '=' : ' ', stderr);
    fprintf(stderr, "] ");
  } else {
    fprintf(stderr, "%s: ", progress->what);
  }
  fprintf(stderr, "%ld/%ld, %.1f%%", done, total, 100 * fraction);
  if (done > 0 && elapsed > 0) fprintf(stderr, ", %.3g/s", (double)done / elapsed);
  if (!isnan(left)) {
    fputs(", ", stderr);
    progress_print_duration(left);
    fputs(" left", stderr);
  }
  fputs(progress->terminal ? "   " : "\n", stderr);
  fflush(stderr);
}

void progress_count(Progress *progress, long done, const char *unit) {
  if (!progress_is_due(progress)) return;
  progress->last = clock_wall();
  fprintf(stderr, "%s%s: %ld %s, ", progress->terminal ? "\r" : "", progress->what, done, unit);
  progress_print_duration(progress->last - progress->start);
  fputs(progress->terminal ? "   " : "\n", stderr);
  fflush(stderr);
}

void progress_end(Progress *progress, long done, long total) {
  if (!progress->shown) return;
  fprintf(stderr, "%s%s: %ld/%ld in ", progress->terminal ? "\r\033[K" : "", progress->what, done, total);
  progress_print_duration(clock_wall() - progress->start);
  fputc('\n', stderr);
}
