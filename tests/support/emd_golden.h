/* The pairs of clouds in golden/emd.nc. */
#pragma once

enum { EMD_GOLDEN_MOST_CASES = 64 };

typedef struct {
  int cases;
  double dimension[EMD_GOLDEN_MOST_CASES], n[EMD_GOLDEN_MOST_CASES], m[EMD_GOLDEN_MOST_CASES],
      emd[EMD_GOLDEN_MOST_CASES];
  double *x, *y; /* the clouds one after the other */
} EmdGolden;

typedef struct {
  int d, n, m;
  const double *x, *y; /* [d, n], [d, m] */
  double emd;
} EmdCase;

/* Reads the file; emd_golden_close frees the clouds. */
EmdGolden emd_golden_open(void);
void emd_golden_close(EmdGolden *golden);

/* Returns a pair, whose clouds belong to `golden`. */
EmdCase emd_golden_case(const EmdGolden *golden, int index);
