#include "parallel/results/leaderboard.h"

#include "parallel/tasks/adaptive.h"
#include "sampler/check/draws_check.h"

Status leaderboard_create(const Study *study, Leaderboard *out) {
  const size_t cells = (size_t)study->file->setting_count * (size_t)study->file->policy_count;
  *out = (Leaderboard){0};
  ALLOCATE(&out->memory, out->cells, cells);
  if (study->ops->estimates) {
    ALLOCATE(&out->memory, out->estimates, cells * (size_t)study->curve_count);
    return STATUS_OK;
  }
  out->shown = study->points <= BOARD_POINTS ? study->points : 1;
  ALLOCATE(&out->memory, out->points, cells * (size_t)out->shown);
  for (size_t i = 0; i < cells * (size_t)out->shown; i++)
    out->points[i] = (BoardPoint){.mean = NAN, .se = NAN, .difference = NAN, .difference_se = NAN};
  return STATUS_OK;
}

void leaderboard_destroy(Leaderboard *board) { arena_free(&board->memory); }

/* Adds one run, in which the number is x; NaN: it has none. */
static void leaderboard_add_draws(double x, double least, double most, double beyond, BoardDraws *out) {
  if (isnan(x)) return;
  out->far += fabs(x) > beyond;
  out->moments = moments_join(out->moments, (Moments){.n = 1, .mean = fmin(fmax(x, least), most)});
}

static BoardCell leaderboard_count_runs(const Cell *cell) {
  BoardCell out = {0};
  for (int64_t r = 0; r < cell->runs; r++) {
    out.runs += cell->status[r] != RUN_NOT_RUN;
    out.fallbacks += cell->columns.fallbacks[r];
    out.runs_with_fallbacks += cell->columns.fallbacks[r] > 0;
    leaderboard_add_draws(cell->columns.draws_offset[r], -DRAWS_CHECK_MOST, DRAWS_CHECK_MOST,
                          DRAWS_CHECK_BEYOND, &out.offset);
    leaderboard_add_draws(cell->columns.draws_spread[r], 0, DRAWS_CHECK_MOST * DRAWS_CHECK_MOST,
                          DRAWS_CHECK_BEYOND * DRAWS_CHECK_BEYOND, &out.spread);
  }
  return out;
}

/* Returns the statistics of the first curve at one place of the axis. */
static BoardPoint leaderboard_point(const Study *study, double *summary, int place) {
  double at[PART_DIFF_REPLICATE_SE + 1];
  for (int part = PART_MEAN; part <= PART_DIFF_REPLICATE_SE; part++)
    at[part] = reduce_cell_summary_part(study, summary, 0, part)[place];
  return (BoardPoint){.mean = at[PART_MEAN],
                      .se = fmax(at[PART_SE], at[PART_REPLICATE_SE]),
                      .difference = at[PART_DIFF_MEAN],
                      .difference_se = fmax(at[PART_DIFF_SE], at[PART_DIFF_REPLICATE_SE]),
                      .runs = at[PART_COUNT]};
}

void leaderboard_enter(const Study *study, int setting, int policy, const Cell *cell, double *summary,
                       Leaderboard *board) {
  const int at = setting * study->file->policy_count + policy;
  board->cells[at] = leaderboard_count_runs(cell);
  if (study->ops->estimates) {
    for (int c = 0; c < study->curve_count; c++)
      reduce_cell_estimate(cell, c, &board->estimates[at * study->curve_count + c]);
    return;
  }
  const int points = study->ops->points(study->file->settings[setting]);
  for (int i = 0; i < board->shown && i < points; i++) {
    const int point = board->shown > 1 ? i : points - 1;
    board->points[at * board->shown + i] =
        leaderboard_point(study, summary, study_place(study, setting, point));
  }
}

Status leaderboard_read(Finished *finished, Leaderboard *out) {
  SCRATCH_ARENA(scratch);
  const Study *study = finished->study;
  ReduceCounts counts = {0};
  Cell cells[2]; /* of the first policy, and of another one */
  double *summary;
  int *blocks;
  int64_t runs;
  TRY(leaderboard_create(study, out));
  ALLOCATE(&scratch, blocks, study->file->setting_count);
  TRY(adaptive_count_blocks(finished, blocks, &runs));
  for (int i = 0; i < 2; i++) TRY(reduce_cell_create(&scratch, study, runs, &cells[i]));
  ALLOCATE(&scratch, summary, SUMMARY_ROWS * study->places);
  for (int s = 0; s < study->file->setting_count; s++)
    for (int p = 0; p < study->file->policy_count; p++) {
      Cell *cell = &cells[p > 0];
      TRY(reduce_cell_load(finished, s, p, blocks[s], cell, &counts));
      if (study->published > 0) TRY(reduce_cell_summarise(study, cell, &cells[0], 1, summary));
      leaderboard_enter(study, s, p, cell, summary, out);
    }
  return STATUS_OK;
}
