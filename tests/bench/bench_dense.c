/* Times the dense algebra of a large inverse problem by LAPACK on one rank and by ScaLAPACK on all ranks:
 * seconds of each step, largest differences between the two, and the most memory that any rank held.
 *
 *   mpiexec -n 4 bench_dense 2000          both, and their differences
 *   mpiexec -n 4 bench_dense 2000 grid     ScaLAPACK alone, for its memory
 */
#include "core/arena.h"
#include "core/clock.h"
#include "core/linalg/dense.h"
#include "parallel/grid.h"
#include "parallel/parallel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { DRAWS = 100 };

/* The results of one implementation; matrices are whole, and NULL where they are not compared. */
typedef struct {
  double *q, *gram, *basis, *product; /* [d], [d, d], [d, d], [d, d] */
  double *draws; /* [d, DRAWS] */
} Outcome;

static int rank;

static void must(Status status) {
  if (status == STATUS_OK) return;
  fprintf(stderr, "bench_dense: %s\n", status_message());
  exit(EXIT_FAILURE);
}

static double *new_array(size_t count) {
  double *out;
  must(memory_new((void **)&out, count, sizeof *out));
  return out;
}

static double report(const char *what, double start) {
  if (rank == 0) printf("  %-26s %8.2f s\n", what, clock_wall() - start);
  return clock_wall();
}

static double *whole(const Dense *dense, bool wanted, const DenseMatrix *matrix) {
  if (!wanted) return NULL;
  double *out = new_array((size_t)matrix->rows * (size_t)matrix->columns);
  dense_gather(dense, matrix, out);
  return out;
}

/* Uses singular values from 0.1 to 1, as in jobs/papers/tilted_large.yaml. */
static void run(const Dense *dense, int d, bool compared, Outcome *out) {
  DenseMatrix left, right, a, q;
  Rng rng = {.key = rng_key(1, RNG_TEST)};
  double *values = new_array((size_t)d), *x = new_array((size_t)d * DRAWS);
  if (rank == 0) printf("%s, d = %d\n", dense->ops->name, d);
  double time = clock_wall();
  must(dense_matrix_create(dense, d, d, &left));
  dense_fill_normal(dense, rng, &left);
  rng.run = 1;
  must(dense_matrix_create(dense, d, d, &right));
  dense_fill_normal(dense, rng, &right);
  time = report("normals", time);
  must(dense_orthogonal(dense, &left));
  must(dense_orthogonal(dense, &right));
  time = report("two orthogonal factors", time);
  for (int k = 0; k < d; k++) values[k] = pow(10, -(double)k / (d - 1));
  dense_scale_columns(dense, values, &left);
  must(dense_matrix_create(dense, d, d, &a));
  dense_multiply(dense, 1, false, &left, true, &right, &a);
  dense_matrix_destroy(&left);
  dense_matrix_destroy(&right);
  time = report("A, a product", time);
  must(dense_matrix_create(dense, d, d, &q));
  dense_gram(dense, 1, &a, &q);
  time = report("Q = A' A", time);
  out->gram = whole(dense, compared, &q);
  dense_matrix_destroy(&a);
  time = clock_wall();
  out->q = new_array((size_t)d);
  must(dense_eigen(dense, &q, out->q));
  time = report("eigenvectors of Q", time);
  Rng noise = {.key = rng_key(2, RNG_TEST)};
  rng_normal(&noise, d * DRAWS, x);
  out->draws = new_array((size_t)d * DRAWS);
  must(dense_apply(dense, false, &q, DRAWS, x, out->draws));
  time = report("100 draws rotated", time);
  out->basis = whole(dense, compared, &q);
  if (compared) { /* U diag(q) U', which should equal Q */
    DenseMatrix scaled, product;
    must(dense_matrix_create(dense, d, d, &scaled));
    must(dense_matrix_create(dense, d, d, &product));
    dense_scatter(dense, out->basis, &scaled);
    dense_scale_columns(dense, out->q, &scaled);
    dense_multiply(dense, 1, false, &scaled, true, &q, &product);
    out->product = whole(dense, true, &product);
    dense_matrix_destroy(&scaled);
    dense_matrix_destroy(&product);
  }
  dense_matrix_destroy(&q);
  free(values);
  free(x);
}

static double difference(size_t n, const double *a, const double *b) {
  double most = 0;
  for (size_t i = 0; i < n; i++) most = fmax(most, fabs(a[i] - b[i]));
  return most;
}

/* Compares the lower triangles, since a Gram matrix has no other. */
static double triangle(int d, const double *a, const double *b) {
  double most = 0;
  for (int i = 0; i < d; i++)
    most = fmax(most, difference((size_t)i + 1, a + (size_t)i * (size_t)d, b + (size_t)i * (size_t)d));
  return most;
}

int main(int argc, char **argv) {
  parallel_begin();
  rank = parallel_rank();
  const int d = argc > 1 ? atoi(argv[1]) : 500;
  const bool both = argc <= 2;
  const Dense lapack = dense_lapack(parallel_rank(), parallel_size(), parallel_sum_all);
  Dense grid = grid_create(GRID_BLOCK);
  Outcome one = {0}, all = {0};
  if (d < 2) must(status_set(STATUS_USAGE, "the dimension must be at least 2"));
  if (both) run(&lapack, d, true, &one);
  run(&grid, d, both, &all);
  const size_t square = (size_t)d * (size_t)d;
  if (both && rank == 0) {
    printf("largest differences\n");
    printf("  %-26s %.1e\n  %-26s %.1e\n  %-26s %.1e\n", "Q", triangle(d, one.gram, all.gram), "eigenvalues",
           difference((size_t)d, one.q, all.q), "eigenvectors", difference(square, one.basis, all.basis));
    printf("  %-26s %.1e\n  %-26s %.1e\n", "U diag(q) U' - Q", triangle(d, all.product, all.gram),
           "rotated draws", difference((size_t)d * DRAWS, one.draws, all.draws));
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const double memory = parallel_sum((double)usage.ru_maxrss * 1024) / parallel_size();
  if (rank == 0)
    printf("grid %d x %d; peak memory of a rank, on average: %.3f GB\n", grid.grid_rows, grid.grid_columns,
           memory / 1e9);
  grid_destroy(&grid);
  parallel_end(STATUS_OK);
  return EXIT_SUCCESS;
}
