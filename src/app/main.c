/* thompson: posterior sampling for contextual bandits. The verbs, and the one place where errors are
 * printed. */
#include "app/app.h"
#include "core/linalg/linalg.h"
#include "io/config/config.h"
#include "io/provenance.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/* Checks the output. Runs at exit, not at the end of main, because argp itself exits after --help. */
static void check_output(void) {
  bool lost = ferror(stdout) || fflush(stdout) != 0;
  /* A network file system may not report that its disk is full until the file is closed. A stdout that was
   * closed before the start is no error if nothing was printed. */
  lost |= fclose(stdout) != 0 && errno != EBADF;
  if (!lost || app_failed) return;
  app_report(status_set(STATUS_FILE, "cannot write to standard output (is its disk full, or is it closed?)"));
  _exit(STATUS_FILE);
}

/* The list of verbs, which ends with a NULL name. */
static const struct {
  const char *name, *summary;
  const AppVerb *verb;
} verbs[] = {
    {"run", "run a study, alone or under mpiexec or srun", &app_run},
    {"plan", "show settings, tasks and needs of a study; run nothing", &app_plan},
    {"status", "show what is done, failed and left in a results folder", &app_status},
    {"list", "list policies, samplers, rules, priors, likelihoods, problems, studies and keys", &app_list},
    {"train", "fit a prior", &app_train},
    {"sample", "draw from a posterior: a prior file and a history", &app_sample},
    {"prepare", "turn MovieLens or MNIST into an embedding file", &app_prepare},
    {"reduce", "rebuild results.nc from the finished tasks", &app_reduce},
    {"rerun", "run finished tasks again, such as those that failed", &app_rerun},
    {"export", "write the finished runs as a table in CSV", &app_export},
    {"prune", "remove finished tasks that the study no longer has", &app_prune},
    {"score", "score anyone's posterior draws against exact ones, on a frozen pack of problems", &app_score},
    {"verify", "read all finished tasks, run random ones again and compare every byte", &app_verify},
    {"tune", "find the best rule and constants for a prior, horizon, arms and noise", &app_tune},
    {"bench", "measure the speed of every sampler and the peaks of a core", &app_bench},
    {NULL, NULL, NULL}};

static void print_help(void) {
  printf("Usage: thompson VERB [OPTION...]\n\n"
         "Posterior sampling for contextual bandits with rich priors, at cluster scale.\n\n");
  for (int i = 0; verbs[i].name; i++) printf("  %-8s %s\n", verbs[i].name, verbs[i].summary);
  printf("\n`thompson VERB --help` lists the options of a verb, "
         "`thompson --version` prints the version.\n\n"
         "Exit status:\n");
#define PRINT_STATUS(name, code, text) printf("  %2d  %s\n", code, text);
  STATUS_LIST(PRINT_STATUS)
#undef PRINT_STATUS
}

/* ---- manual pages, in the man(7) format, from the same tables as --help; the build calls `thompson
 * --manual` and `thompson VERB --manual` */

/* Prints text literally: escapes what means something to man, also a dot or quote at the start of a line. */
static void manual_print_part(const char *text, size_t length) {
  if (length > 0 && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
  for (const char *end = text + length; text < end; text++) {
    if (*text == '\\') {
      fputs("\\e", stdout);
      continue;
    }
    if (*text == '-') fputc('\\', stdout);
    fputc(*text, stdout);
  }
}

static void manual_print_text(const char *text) { manual_print_part(text, strlen(text)); }

static void manual_print_head(const char *title, const char *name, const char *summary) {
  printf(".TH %s 1 \"\" \"", title);
  manual_print_text(provenance_source());
  printf("\" \"thompson\"\n.SH NAME\n");
  manual_print_text(name);
  printf(" \\- ");
  manual_print_part(summary, strcspn(summary, ".\v")); /* the first sentence, without its full stop */
  printf("\n.SH SYNOPSIS\n");
}

static void manual_print_exit_status(void) {
  printf(".SH EXIT STATUS\n");
#define PRINT_STATUS(name, code, text) printf(".TP\n%d\n%s\n", code, text);
  STATUS_LIST(PRINT_STATUS)
#undef PRINT_STATUS
}

static void manual_program(void) {
  manual_print_head("THOMPSON", "thompson",
                    "posterior sampling for contextual bandits with rich priors, at cluster scale");
  printf("\\fBthompson\\fR \\fIVERB\\fR [\\fIOPTION\\fR...]\n.SH DESCRIPTION\n"
         "Runs alone and under mpiexec or srun. Each verb has its own manual page, such as "
         "\\fBthompson\\-run\\fR(1).\n.SH VERBS\n");
  for (int i = 0; verbs[i].name; i++) {
    printf(".TP\n\\fB%s\\fR\n", verbs[i].name);
    manual_print_text(verbs[i].summary);
    printf("\n");
  }
  manual_print_exit_status();
}

static void manual_verb(const AppVerb *verb, const char *name) {
  char page[64], title[64];
  size_t length = 0;
  for (; name[length] && length + 1 < sizeof page; length++) {
    page[length] = name[length] == ' ' ? '-' : name[length];
    title[length] = (char)toupper((unsigned char)page[length]);
  }
  page[length] = title[length] = '\0';
  manual_print_head(title, page, verb->help);
  printf("\\fB%s\\fR [\\fIOPTION\\fR...] ", name);
  if (verb->usage) manual_print_text(verb->usage);
  printf("\n.SH DESCRIPTION\n");
  const char *more = strchr(verb->help, '\v'); /* begins another paragraph */
  manual_print_part(verb->help, strcspn(verb->help, "\v"));
  if (more) {
    printf("\n.PP\n");
    manual_print_text(more + 1);
  }
  printf("\n.SH OPTIONS\n");
  for (const AppOption *option = verb->options; option->name; option++) {
    printf(".TP\n");
    if (option->letter) printf("\\fB\\-%c\\fR, ", option->letter);
    printf("\\fB\\-\\-");
    manual_print_text(option->name);
    printf("\\fR");
    if (option->value) printf("=\\fI%s\\fR", option->value);
    printf("\n");
    manual_print_text(option->help);
    printf("\n");
  }
  manual_print_exit_status();
  printf(".SH SEE ALSO\n\\fBthompson\\fR(1)\n");
}

/* ---- the program */

static const char *verb_name(int index) { return verbs[index].name; }

static Status call_verb(int argc, char **argv) {
  char name[64];
  int v = 0;
  if (argc < 2) return status_set(STATUS_USAGE, "no verb given; see thompson --help");
  while (verbs[v].name && strcmp(argv[1], verbs[v].name) != 0) v++;
  if (!verbs[v].name) return config_unknown_name(STATUS_USAGE, argv[1], "a verb", verb_name);
  const AppVerb *verb = verbs[v].verb;
  snprintf(name, sizeof name, "thompson %s", verbs[v].name);
  if (argc == 3 && strcmp(argv[2], "--manual") == 0) {
    manual_verb(verb, name);
    return STATUS_OK;
  }
  argv[1] = name;
  app_parse(verb, argc - 1, argv + 1);
  if (verb->run) return verb->run();
  app_begin_parallel();
  if (verb->collective) return app_end_parallel(verb->collective());
  const Status status = parallel_rank() == 0 ? verb->on_first() : STATUS_OK;
  return app_end_parallel(parallel_agree(status));
}

/* Refuses resource limits so low that libraries would hang, crash, or end the process without a message of
 * ours. */
static Status main_check_ulimits(void) {
  static const struct {
    int which;
    rlim_t least;
    const char *what, *option;
    rlim_t unit;
  } needs[] = {{RLIMIT_AS, 512 << 20, "KiB of address space", "v", 1024},
               {RLIMIT_STACK, 1 << 20, "KiB of stack", "s", 1024},
               {RLIMIT_NOFILE, 32, "open files", "n", 1}};
  for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
    struct rlimit limit;
    if (getrlimit(needs[i].which, &limit) != 0 || limit.rlim_cur >= needs[i].least) continue;
    return status_set(STATUS_FILE, "the limit of %llu %s is too low; at least %llu are needed (ulimit -%s)",
                      (unsigned long long)(limit.rlim_cur / needs[i].unit), needs[i].what,
                      (unsigned long long)(needs[i].least / needs[i].unit), needs[i].option);
  }
  return STATUS_OK;
}

int main(int argc, char **argv) {
  /* Streams that the caller closed are opened, so that no file of ours takes their place. */
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  setvbuf(stdout, NULL, _IOLBF, 0);
  /* From here on the program, whichever verb it runs, ends with STATUS_FILE and a message if something could
   * not be written to stdout and nothing else has failed. */
  atexit(check_output);
  Status limits = main_check_ulimits();
  if (limits != STATUS_OK) {
    app_report(limits);
    _exit(limits); /* the exit handlers of libraries might never return */
  }
  linalg_one_thread();
  store_prepare_library();
  provenance_set_command(argc, argv);
  const char *first = argc > 1 ? argv[1] : "";
  if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
    print_help();
    return EXIT_SUCCESS;
  }
  if (argc == 2 && strcmp(first, "--manual") == 0) {
    manual_program();
    return EXIT_SUCCESS;
  }
  if (strcmp(first, "--version") == 0) {
    printf("%s\n", provenance_source());
    return EXIT_SUCCESS;
  }
  Status status = call_verb(argc, argv);
  app_report(status);
  return status;
}
