/* Internal to src/parallel: what is used of ScaLAPACK and BLACS, which come without a header. Fortran: all by
 * reference, matrices column-major, indices from 1. A descriptor is {1, context, rows, columns, row block,
 * column block, first row, first column, local rows}. */
#pragma once

#include <mpi.h>

int Csys2blacs_handle(MPI_Comm communicator);
void Cfree_blacs_system_handle(int handle);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cblacs_gridinfo(int context, int *rows, int *columns, int *row, int *column);
void Cblacs_gridexit(int context);

void pdgemm_(const char *transpose_a, const char *transpose_b, const int *m, const int *n, const int *k,
             const double *alpha, const double *a, const int *ia, const int *ja, const int *desc_a,
             const double *b, const int *ib, const int *jb, const int *desc_b, const double *beta, double *c,
             const int *ic, const int *jc, const int *desc_c);
void pdsyrk_(const char *triangle, const char *transpose, const int *n, const int *k, const double *alpha,
             const double *a, const int *ia, const int *ja, const int *desc_a, const double *beta, double *c,
             const int *ic, const int *jc, const int *desc_c);
void pdgeqrf_(const int *m, const int *n, double *a, const int *ia, const int *ja, const int *desc_a,
              double *tau, double *work, const int *lwork, int *info);
void pdorgqr_(const int *m, const int *n, const int *k, double *a, const int *ia, const int *ja,
              const int *desc_a, const double *tau, double *work, const int *lwork, int *info);
void pdsyevd_(const char *vectors, const char *triangle, const int *n, double *a, const int *ia,
              const int *ja, const int *desc_a, double *w, double *z, const int *iz, const int *jz,
              const int *desc_z, double *work, const int *lwork, int *iwork, const int *liwork, int *info);
