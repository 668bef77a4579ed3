/* thompson score: measure anyone's posterior draws against exact ones, on frozen problems. */
#include "study/score.h"
#include "app/app.h"
#include "app/app_score_files.h"
#include "io/io_dataset.h"

static struct {
  const char *problem, *export, *draws, *reference;
  bool list, json;
} arguments;

static const AppOption options[] = {
    {"list", 0, NULL, "list the problems", .flag = &arguments.list},
    {"export", 0, "DIR",
     "write priors and histories, as NetCDF and CSV, to a new folder, for all problems or for --problem",
     .output = &arguments.export},
    {"problem", 0, "NAME",
     "a problem from the list; or a Gaussian or mixture prior file, for a problem with Gaussian rewards and "
     "noise 1",
     .text = &arguments.problem},
    {"draws", 0, "FILE",
     "draws to score: NetCDF theta(history, draw, dim), histories in the order of the export; with "
     "--reference, theta(draw, dim)",
     .text = &arguments.draws},
    {"reference", 0, "FILE",
     "draws from the same posterior by a method that you trust, to compare with: NetCDF theta(draw, dim) or "
     "CSV without header",
     .text = &arguments.reference},
    {"json", 'j', NULL, "as JSON", .flag = &arguments.json},
    {0}};

static void score_check(struct argp_state *state) {
  if (arguments.list + (arguments.export != NULL) + (arguments.draws != NULL) != 1)
    argp_error(
        state,
        "give one of --list, --export DIR, --problem NAME --draws FILE, or --reference FILE --draws FILE");
  if (arguments.draws && !arguments.problem == !arguments.reference)
    argp_error(state, "--draws needs either --problem NAME or --reference FILE, not both");
  if (arguments.reference && !arguments.draws) argp_error(state, "--reference needs --draws FILE");
  if (arguments.list && arguments.problem)
    argp_error(state, "--list shows all problems; leave out --problem");
  if (arguments.export && arguments.json) argp_error(state, "--json is for --list and --draws");
}

/* ---- problems */

typedef struct {
  int count;
  Pack *packs; /* [count] */
} Packs;

static void app_score_destroy_packs(Packs *packs) {
  for (int i = 0; i < packs->count; i++) study_pack_destroy(&packs->packs[i]);
}

static Status list_json(const Packs *packs) {
  json_auto_t *list = json_array();
  for (int i = 0; i < packs->count; i++) {
    const Pack *pack = &packs->packs[i];
    char digest[DIGEST_SIZE];
    TRY(study_pack_digest(pack, digest));
    json_t *observations = json_array();
    for (int g = 0; g < pack->groups; g++)
      json_array_append_new(observations, json_integer(pack->group[g].observations));
    json_array_append_new(
        list, json_pack("{s:s, s:s, s:s, s:i, s:s, s:f, s:i, s:o, s:i, s:s, s:s, s:s, s:s}", "name",
                        pack->name, "summary", pack->summary, "reference", pack->problem.theta.ops->reference,
                        "dimension", pack->problem.d, "likelihood", pack->problem.likelihood.ops->name,
                        "noise", pack->problem.likelihood.noise, "histories", pack->histories, "observations",
                        observations, "draws", pack->draws, "metric", score_metric(pack), "exact",
                        score_exact(pack), "pack", PACK_NAME, "sha256", digest));
  }
  return app_print_json(json_incref(list), 6);
}

static Status list_text(const Packs *packs) {
  printf("problems of %s\n  %-14s %3s %-10s %9s %6s  %-18s %s\n", PACK_NAME, "name", "d", "likelihood",
         "histories", "draws", "distance", "what it is (exact draws by)");
  for (int i = 0; i < packs->count; i++) {
    const Pack *pack = &packs->packs[i];
    printf("  %-14s %3d %-10s %9d %6d  %-18s %s (%s)\n", pack->name, pack->problem.d,
           pack->problem.likelihood.ops->name, pack->histories, pack->draws, score_metric(pack),
           pack->summary, score_exact(pack));
  }
  return STATUS_OK;
}

/* ---- a score */

static json_t *mean_json(ScoreMean mean) {
  return json_pack("{s:o, s:o}", "mean", app_json_number(mean.mean), "se", app_json_number(mean.se));
}

static Status score_json(const Pack *pack, const Score *score) {
  json_t *rows = json_array();
  for (int g = 0; g < pack->groups; g++) {
    json_t *object = json_pack("{s:i, s:i}", "observations", pack->group[g].observations, "histories",
                               pack->group[g].histories);
    for (int m = 0; m < SCORE_MEANS; m++)
      json_object_set_new(object, score_mean_names[m], mean_json(score->means[g][m]));
    json_array_append_new(rows, object);
  }
  json_t *root = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:o}", "pack", PACK_NAME, "problem", pack->name,
                           "draws", arguments.draws, "metric", score_metric(pack), "histories",
                           pack->histories, "draws_scored", pack->draws, "ratio", mean_json(score->ratio));
  for (int r = 0; r < SCORE_RANKS; r++) {
    char name[64];
    snprintf(name, sizeof name, "%s_p_value", score_rank_names[r]);
    json_object_set_new(root, name, app_json_number(score->rank_p[r]));
    snprintf(name, sizeof name, "%s_p_value_exact", score_rank_names[r]);
    json_object_set_new(root, name, app_json_number(score->rank_p_exact[r]));
  }
  json_object_set_new(root, "even_p_value", app_json_number(score->even_p));
  json_object_set_new(root, "too_even", json_boolean(score->even_p < SCORE_TOO_EVEN));
  json_object_set_new(root, "by_observations", rows);
  return app_print_json(root, 6);
}

static Status score_text(const Pack *pack, const Score *score) {
  printf("%s: %s\n%s: %d draws of each of %d histories; %s to exact draws (%s)\n\n", pack->name,
         pack->summary, arguments.draws, pack->draws, pack->histories, score_metric(pack), score_exact(pack));
  printf("%12s %9s  %9s %8s  %9s %8s  %9s %8s  %9s %8s  %9s %8s\n", "observations", "histories", "distance",
         "se", "floor", "se", "ratio", "se", "modes", "se", "floor", "se");
  for (int g = 0; g < pack->groups; g++) {
    const ScoreMean *mean = score->means[g];
    printf("%12d %9d", pack->group[g].observations, pack->group[g].histories);
    for (int m = 0; m < SCORE_MEANS; m++)
      if (isfinite(mean[m].mean))
        printf("  %9.4f %8.4f", mean[m].mean, mean[m].se);
      else
        printf("  %9s %8s", "-", "-");
    printf("\n");
  }
  printf("\ndistance over floor, mean of the rows: %.3f, se %.3f (exact draws: 1)\n", score->ratio.mean,
         score->ratio.se);
  if (score->even_p < SCORE_TOO_EVEN)
    printf("these draws are more even than independent draws (p = %.2g that exact draws have so low a "
           "ratio): quasi-random or balanced, so the ratio does not say how close they are\n",
           score->even_p);
  static const char *const ranks[SCORE_RANKS] = {"theta* in a random direction", "|theta*|",
                                                 "the likelihood of theta*"};
  for (int r = 0; r < SCORE_RANKS; r++)
    printf("ranks of %s among the draws: p = %.3g that they are uniform (exact draws: %.3g)\n", ranks[r],
           score->rank_p[r], score->rank_p_exact[r]);
  printf("floor: the same for other exact draws; modes: total variation of the mode weights; se: over "
         "histories\n");
  return STATUS_OK;
}

/* ---- draws against a reference */

static json_t *distance_json(const ScoreDistance *distance) {
  return json_pack("{s:i, s:o, s:o, s:o}", "points", distance->points, "distance",
                   app_json_number(distance->distance), "floor", app_json_number(distance->floor), "ratio",
                   app_json_number(distance->distance / distance->floor));
}

static Status reference_json(int d, int n, int m, const ScoreReference *score) {
  return app_print_json(
      json_pack("{s:s, s:s, s:i, s:i, s:i, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o}", "draws", arguments.draws,
                "reference", arguments.reference, "dimension", d, "draws_count", n, "reference_count", m,
                "sliced_wasserstein", distance_json(&score->sliced), "emd", distance_json(&score->emd),
                "mean_error", app_json_number(score->mean_error), "mean_error_dimension",
                score->mean_error_at + 1, "sd_ratio_low", app_json_number(score->sd_low), "sd_ratio_high",
                app_json_number(score->sd_high), "distinct", app_json_number(score->distinct),
                "reference_distinct", app_json_number(score->reference_distinct)),
      6);
}

static void print_distance(const char *name, const ScoreDistance *distance) {
  printf("%-20s %8d %10.4f %10.4f %8.3f\n", name, distance->points, distance->distance, distance->floor,
         distance->distance / distance->floor);
}

static Status reference_text(int d, int n, int m, const ScoreReference *score) {
  printf("%s: %d draws in %d dimensions; %s: %d\n\n%-20s %8s %10s %10s %8s\n", arguments.draws, n, d,
         arguments.reference, m, "distance", "points", "distance", "floor", "ratio");
  print_distance("sliced Wasserstein", &score->sliced);
  print_distance("earth mover's", &score->emd);
  printf("\nfloor: between disjoint parts of the reference; ratio: 1 for draws like those of the reference\n"
         "largest error of a mean: %.3g of its standard deviation (theta %d; by chance up to about %.2g)\n"
         "standard deviations over those of the reference: %.3f to %.3f\n"
         "distinct draws: %.3g%%; of the reference: %.3g%%\n",
         score->mean_error, score->mean_error_at + 1, 3 * sqrt(1.0 / n + 1.0 / m), score->sd_low,
         score->sd_high, 100 * score->distinct, 100 * score->reference_distinct);
  return STATUS_OK;
}

static Status app_score_against_reference(void) {
  SCRATCH_ARENA(scratch);
  Samples draws, reference;
  ScoreReference score;
  TRY(io_dataset_read_samples(&scratch, arguments.draws, &draws));
  TRY(io_dataset_read_samples(&scratch, arguments.reference, &reference));
  if (draws.d != reference.d)
    return status_set(STATUS_INPUT, "%s: theta in %d dimensions, but %s has %d", arguments.draws, draws.d,
                      arguments.reference, reference.d);
  if (draws.n < 2 || reference.n < 4)
    return status_set(STATUS_INPUT, "%d draws and a reference of %d; at least 2 and 4 are needed", draws.n,
                      reference.n);
  TRY(score_reference(draws.d, draws.n, draws.theta, reference.n, reference.theta, &score));
  return (arguments.json ? reference_json : reference_text)(draws.d, draws.n, reference.n, &score);
}

/* ---- the verb */

/* Works on all problems of the list, on one, or on none. */
static Status score_work(void) {
  SCRATCH_ARENA(memory);
  SCOPED(Packs, packs, app_score_destroy_packs);
  double *theta;
  Score score;
  if (arguments.reference) return app_score_against_reference();
  int count = 1;
  while (!arguments.problem && study_pack_name(count)) count++;
  ALLOCATE(&memory, packs.packs, count);
  while (packs.count < count) {
    const int i = packs.count++;
    TRY(study_pack_create(&memory, arguments.problem ? arguments.problem : study_pack_name(i),
                          &packs.packs[i]));
  }
  if (arguments.export) {
    TRY(app_score_files_begin(arguments.export, packs.count, packs.packs));
    for (int i = 0; i < packs.count; i++) {
      TRY(app_score_files_export(&packs.packs[i], arguments.export));
      printf("%s/%s: %d histories\n", arguments.export, packs.packs[i].name, packs.packs[i].histories);
    }
    printf("%s/README.md says what to draw\n", arguments.export);
    return STATUS_OK;
  }
  if (arguments.draws) {
    TRY(app_score_files_read_draws(&memory, packs.packs, arguments.draws, &theta));
    TRY(score_draws(&memory, packs.packs, theta, &score));
    return (arguments.json ? score_json : score_text)(packs.packs, &score);
  }
  return (arguments.json ? list_json : list_text)(&packs);
}

const AppVerb app_score = {
    .options = options,
    .take = app_refuse_argument,
    .check = score_check,
    .usage = "--list | --export DIR | --problem NAME --draws FILE | --reference FILE --draws FILE",
    .help = "Score posterior draws, whatever made them: their distance to exact draws over the Monte-Carlo "
            "floor, mode weights and calibration, on a frozen pack of problems whose exact posteriors can "
            "be drawn from. The true parameters are not exported. With --reference you provide the exact "
            "draws. Under mpiexec the first rank does all the work.",
    .on_first = score_work};
