/* Errors that a user can cause: bad input, files, memory.
 *
 * A function that can fail returns a Status; STATUS_OK is zero. The message that says what was wrong is
 * kept separately for each thread until `main` prints it, once. Bugs in our own code are not a Status:
 * ASSERT names the place and aborts, in every build. Nor are numerical events: samplers count them (see
 * sampler.h). */
#pragma once

/* One list of codes: name, exit status of the program, what the exit status means. */
#define STATUS_LIST(ENTRY)                                                                                   \
  ENTRY(OK, 0, "all done")                                                                                   \
  ENTRY(INTERNAL, 1, "internal error or out of memory")                                                      \
  ENTRY(USAGE, 2, "bad command line")                                                                        \
  ENTRY(INPUT, 3, "bad configuration or input")                                                              \
  ENTRY(FILE, 4, "file or disk error")                                                                       \
  ENTRY(TASKS_FAILED, 5, "some tasks failed; results written")                                               \
  ENTRY(RESUME, 6, "resume refused")                                                                         \
  ENTRY(DIFFERENT, 7, "verify found a difference")                                                           \
  ENTRY(STOPPED, 75, "stopped early; run again with --resume")

typedef enum {
#define STATUS_ENUM(name, code, text) STATUS_##name = code,
  STATUS_LIST(STATUS_ENUM)
#undef STATUS_ENUM
} Status;

/* Stores a printf-style message as the current error and returns `code`. */
Status status_set(Status code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts printf-style context in front of the current message ("figure2.yaml: ...") and returns `code`. */
Status status_prefix(Status code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns the current message; empty when none was set. Valid until the next status_set or status_prefix. */
const char *status_message(void);

/* Prints "file:line: function: assertion failed: text" on stderr and aborts. */
void status_assert_failed(const char *file, int line, const char *function, const char *text)
    __attribute__((noreturn));

/* Returns a failure to the caller. What must be closed again is opened by one function and filled by another:
 * the first calls the second, and closes it whatever the outcome. */
#define TRY(call)                                                                                            \
  do {                                                                                                       \
    Status try_status_ = (call);                                                                             \
    if (try_status_ != STATUS_OK) return try_status_;                                                        \
  } while (0)

#define ASSERT(condition)                                                                                    \
  do {                                                                                                       \
    if (!(condition)) status_assert_failed(__FILE__, __LINE__, __func__, #condition);                        \
  } while (0)
