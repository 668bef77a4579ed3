#include "app/slurm.h"

#include "core/shell.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* Ranks are idle at the end of a job for about a task; with ten tasks each that is little. */
static const double TASKS_PER_RANK = 10;
static const double MARGIN = 1.5; /* of time and memory */
static const double START = 600; /* seconds to start, read data and write results */
enum { MOST_REQUEUES = 100 };

/* Prints the name of a study in letters that Slurm takes as one word. */
static void print_job_name(const char *name) {
  printf("#SBATCH --job-name=");
  for (; *name; name++) putchar(isalnum((unsigned char)*name) || strchr("._-", *name) ? *name : '_');
  putchar('\n');
}

static void print_time(double seconds) {
  long minutes = (long)ceil(seconds / 60);
  printf("#SBATCH --time=%02ld:%02ld:00\n", minutes / 60, minutes % 60);
}

/* Prints the program itself, wherever it is called from. */
static void print_program(void) {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  shell_print(stdout, length > 0 ? path : "thompson");
}

static void print_command(const Study *study, const char *path, const char *directory, const AppTexts *sets) {
  printf(
      "# Where every process of the job believes to be the only rank, srun needs --mpi=pmix or --mpi=pmi2\n"
      "# (`srun --mpi=list` shows what there is).\n"
      "srun --kill-on-bad-exit=1 ");
  print_program();
  printf(" run ");
  shell_print(stdout, path);
  for (int i = 0; i < sets->count; i++) {
    printf(" --set ");
    shell_print(stdout, sets->texts[i]);
  }
  char folder[512];
  snprintf(folder, sizeof folder, "results/%s", study->name);
  printf(" -o ");
  shell_print(stdout, directory ? directory : folder);
  printf(" --resume --progress plain || code=$?\n");
}

void slurm_print(const Study *study, const Estimate *estimate, const char *path, const char *directory,
                 const AppTexts *sets) {
  double hours = estimate->hours + estimate->training_hours,
         ranks = fmax(1, fmin(ceil(hours), floor(study->task_count / TASKS_PER_RANK)));
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  double nodes = ceil(ranks / (double)cores), each = ceil(ranks / nodes);
  printf("#!/bin/bash\n"
         "# Study %s: about %.2g core-hours%s (%.2g of them "
         "training), the longest task %.2g s, by a calibration\n"
         "# of a few seconds on this machine; %d tasks. Submit it in the folder where it was printed;\n"
         "# more nodes and less time do as well, up to about %.0f ranks.\n",
         study->name, hours, study->runs.adaptive ? " at most" : "", estimate->training_hours,
         estimate->longest_task, study->task_count, fmax(1, floor(study->task_count / TASKS_PER_RANK)));
  print_job_name(study->name);
  printf("#SBATCH --nodes=%.0f\n#SBATCH --ntasks-per-node=%.0f\n#SBATCH --cpus-per-task=1\n", nodes, each);
  /* Matrices that are not spread are on one rank, and Slurm gives all the same. */
  const double shared = estimate->large_is_spread ? estimate->large / (nodes * each) : estimate->large;
  printf("#SBATCH --mem-per-cpu=%.0fM\n", ceil(MARGIN * (estimate->memory + shared) / 1048576));
  print_time(START + MARGIN * (hours * 3600 / (nodes * each) + estimate->longest_task));
  printf("##SBATCH --partition=NAME  # where the cluster asks for one: see `sinfo -s`\n"
         "##SBATCH --account=NAME    # see `sacctmgr show associations user=$USER`\n"
         "#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --output=%%x-%%j.log\nset -uo pipefail\n\n"
         "# thompson stops a little before the end of the job, and the job goes back into the queue.\n"
         "export SLURM_JOB_END_TIME=${SLURM_JOB_END_TIME:-$(date -d \"$(squeue -h -j \"$SLURM_JOB_ID\" -o "
         "%%e)\" +%%s 2>/dev/null || true)}\ncode=0\n");
  print_command(study, path, directory, sets);
  printf("if [ \"$code\" -eq 75 ] && [ \"${SLURM_RESTART_COUNT:-0}\" -lt %d ]; then scontrol requeue "
         "\"$SLURM_JOB_ID\"; fi\nexit \"$code\"\n",
         MOST_REQUEUES);
}
