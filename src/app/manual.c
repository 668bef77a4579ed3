/* Manual pages, in the man(7) format, from the same tables as --help. The build calls `thompson --manual` and
 * `thompson VERB --manual`. */
#include "app/app.h"
#include "io/provenance.h"

#include <ctype.h>
#include <string.h>

/* Prints text literally: escapes backslashes, hyphens, and a dot or quote at the start of a line, which mean
 * something to man. */
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

static void print_head(const char *title, const char *name, const char *summary) {
  printf(".TH %s 1 \"\" \"", title);
  manual_print_text(provenance_source());
  printf("\" \"thompson\"\n.SH NAME\n");
  manual_print_text(name);
  printf(" \\- ");
  manual_print_part(summary, strcspn(summary, ".\v")); /* the first sentence, without its full stop */
  printf("\n.SH SYNOPSIS\n");
}

static void print_exit_status(void) {
  printf(".SH EXIT STATUS\n");
#define PRINT_STATUS(name, code, text) printf(".TP\n%d\n%s\n", code, text);
  STATUS_LIST(PRINT_STATUS)
#undef PRINT_STATUS
}

void manual_program(const AppEntry *verbs) {
  print_head("THOMPSON", "thompson",
             "posterior sampling for contextual bandits with rich priors, at cluster scale");
  printf("\\fBthompson\\fR \\fIVERB\\fR [\\fIOPTION\\fR...]\n.SH DESCRIPTION\n"
         "Runs alone and under mpiexec or srun. Each verb has its own manual page, such as "
         "\\fBthompson\\-run\\fR(1).\n.SH VERBS\n");
  for (; verbs->name; verbs++) {
    printf(".TP\n\\fB%s\\fR\n", verbs->name);
    manual_print_text(verbs->summary);
    printf("\n");
  }
  print_exit_status();
}

void manual_verb(const AppVerb *verb, const char *name) {
  char page[64], title[64];
  size_t length = 0;
  for (; name[length] && length + 1 < sizeof page; length++) {
    page[length] = name[length] == ' ' ? '-' : name[length];
    title[length] = (char)toupper((unsigned char)page[length]);
  }
  page[length] = title[length] = '\0';
  print_head(title, page, verb->help);
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
  print_exit_status();
  printf(".SH SEE ALSO\n\\fBthompson\\fR(1)\n");
}
