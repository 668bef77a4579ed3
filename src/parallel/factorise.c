#include "parallel/factorise.h"

#include "core/memory.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>

/* One side of the matrix and how its rows are spread: rank p updates [cut[p], cut[p + 1]). */
typedef struct {
  SparseRows sparse;
  int *cut, *share; /* [ranks + 1], [ranks] rows */
} Side;

/* First row of each rank's share: as many ratings for each as rows allow. */
static Status cut_rows(const Parallel *parallel, Side *side) {
  const SparseRows *sparse = &side->sparse;
  NEW(side->cut, parallel->size + 1);
  NEW(side->share, parallel->size);
  int64_t total = sparse->start[sparse->rows];
  for (int p = 0, row = 0; p < parallel->size; p++) {
    int64_t wanted = (int64_t)((__int128)total * p / parallel->size);
    while (sparse->start[row] < wanted) row++;
    side->cut[p] = row;
  }
  side->cut[parallel->size] = sparse->rows;
  for (int p = 0; p < parallel->size; p++) side->share[p] = side->cut[p + 1] - side->cut[p];
  return STATUS_OK;
}

static Status side_create(const Parallel *parallel, const Ratings *ratings, double mean, bool items,
                          Side *out) {
  *out = (Side){0};
  TRY(sparse_rows_create(ratings, mean, items, &out->sparse));
  return cut_rows(parallel, out);
}

static void side_destroy(Side *side) {
  sparse_rows_free(&side->sparse);
  free(side->cut);
  free(side->share);
}

/* Every rank's share of values[rows, width] to all. A row is one element, so that counts fit an int. */
static void gather_rows(const Side *side, int width, double *values) {
  MPI_Datatype row;
  MPI_Type_contiguous(width, MPI_DOUBLE, &row);
  MPI_Type_commit(&row);
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values, side->share, side->cut, row, MPI_COMM_WORLD);
  MPI_Type_free(&row);
}

/* What one run of the algorithm works on. */
typedef struct {
  const Parallel *parallel;
  const FactorisationSetup *setup;
  Side users, items;
  double *workspace; /* [d, d] */
  double *residual; /* [users], sums of squares */
} Work;

static Status work_create(const Ratings *ratings, double mean, Work *work) {
  TRY(side_create(work->parallel, ratings, mean, false, &work->users));
  TRY(side_create(work->parallel, ratings, mean, true, &work->items));
  NEW(work->workspace, (size_t)work->setup->d * (size_t)work->setup->d);
  NEW(work->residual, ratings->users);
  return STATUS_OK;
}

static void work_destroy(Work *work) {
  side_destroy(&work->users);
  side_destroy(&work->items);
  free(work->workspace);
  free(work->residual);
}

static void half_sweep(const Work *work, const Side *side, const double *other, double *own) {
  int rank = work->parallel->rank;
  factorisation_update(&side->sparse, work->setup, side->cut[rank], side->cut[rank + 1], other, own,
                       work->workspace);
  gather_rows(side, work->setup->d, own);
}

/* Root mean squared residual, summed in the order of users whatever the number of ranks. */
static double rmse(const Work *work, const double *item, const double *user) {
  const Side *side = &work->users;
  int rank = work->parallel->rank;
  double sum = 0;
  factorisation_residuals(&side->sparse, work->setup->d, side->cut[rank], side->cut[rank + 1], item, user,
                          work->residual);
  gather_rows(side, 1, work->residual);
  for (int r = 0; r < side->sparse.rows; r++) sum += work->residual[r];
  return sqrt(sum / (double)side->sparse.start[side->sparse.rows]);
}

static void sweep_all(const Work *work, void (*report)(int sweep, double rmse), Factorisation *out) {
  factorisation_start(work->setup, work->items.sparse.rows, out->item);
  for (int s = 0; s < work->setup->sweeps; s++) {
    half_sweep(work, &work->users, out->item, out->user);
    half_sweep(work, &work->items, out->user, out->item);
    out->rmse[s] = rmse(work, out->item, out->user);
    if (report) report(s + 1, out->rmse[s]);
  }
}

static Status result_create(const Ratings *ratings, const FactorisationSetup *setup, Factorisation *out) {
  *out = (Factorisation){.d = setup->d, .sweeps = setup->sweeps, .mean = ratings_mean(ratings)};
  NEW(out->user, (size_t)ratings->users * (size_t)setup->d);
  NEW(out->item, (size_t)ratings->items * (size_t)setup->d);
  NEW(out->rmse, setup->sweeps);
  return STATUS_OK;
}

Status factorise(const Parallel *parallel, const Ratings *ratings, const FactorisationSetup *setup,
                 void (*report)(int sweep, double rmse), Factorisation *out) {
  Work work = {.parallel = parallel, .setup = setup};
  Status status = result_create(ratings, setup, out);
  if (status == STATUS_OK) status = work_create(ratings, out->mean, &work);
  status = parallel_agree(parallel, status);
  if (status == STATUS_OK)
    sweep_all(&work, report, out);
  else
    factorise_free(out);
  work_destroy(&work);
  return status;
}

void factorise_free(Factorisation *factorisation) {
  free(factorisation->user);
  free(factorisation->item);
  free(factorisation->rmse);
  *factorisation = (Factorisation){0};
}

static Status allocate_ratings(Ratings *ratings) {
  NEW(ratings->rating, ratings->count);
  NEW(ratings->user_id, ratings->users);
  NEW(ratings->item_id, ratings->items);
  return STATUS_OK;
}

Status factorise_share(const Parallel *parallel, Ratings *ratings) {
  if (parallel->size == 1) return STATUS_OK;
  Ratings shape = *ratings;
  parallel_broadcast(&shape, sizeof shape);
  Status status = STATUS_OK;
  if (parallel->rank != 0) {
    *ratings = (Ratings){.count = shape.count, .users = shape.users, .items = shape.items};
    status = allocate_ratings(ratings);
  }
  TRY(parallel_agree(parallel, status));
  parallel_broadcast(ratings->rating, (size_t)ratings->count * sizeof *ratings->rating);
  parallel_broadcast(ratings->user_id, (size_t)ratings->users * sizeof *ratings->user_id);
  parallel_broadcast(ratings->item_id, (size_t)ratings->items * sizeof *ratings->item_id);
  return STATUS_OK;
}
