#include "study/replay_audit.h"

#include <math.h>

void replay_audit_add_weight(ReplayWeights *of, double w) {
  of->events++;
  of->total += w;
  of->squares += w * w;
  of->largest = fmax(of->largest, w);
}

void replay_audit_range(const ReplayWeights *of, double *se, double *low, double *high) {
  static const double ERRORS = 4, LEAST = 0.02;
  const double mean = of->total / of->events, square = of->squares / of->events;
  /* E[w^2] / number of events. */
  const double one = (mean > 1 ? square / mean : square + (1 - mean) * of->largest) / of->events;
  *se = sqrt(fmax(one - 1 / of->events, 0));
  *low = 1 - fmax(ERRORS * *se, LEAST);
  *high = 1 + fmax(ERRORS * *se + ERRORS * ERRORS / 3 * one, LEAST);
}

/* Returns how many events had an arm. */
static int replay_audit_events(const EventLog *log, int arm) {
  int events = 0;
  if (!log->available) return log->rows;
  for (int e = 0; e < log->rows; e++) events += arms_has(io_dataset_arms(log), e, arm);
  return events;
}

/* Finds the arm whose mean of 1 / p is too far from 1: the largest if it is too large, else the smallest. */
static Status replay_audit_arms(const EventLog *log, bool unlisted, ReplayAudit *out) {
  SCRATCH_ARENA(scratch);
  ReplayWeights *weights;
  double se, low, high;
  bool above = false;
  ALLOCATE(&scratch, weights, log->arms);
  for (int e = 0; e < log->rows; e++) {
    const double w = 1 / log->propensity[e];
    replay_audit_add_weight(&weights[log->arm[e]], w);
  }
  out->arm = out->arm_weight = NAN;
  for (int k = 0; k < log->arms; k++) {
    weights[k].events = replay_audit_events(log, k);
    if (weights[k].events == 0) continue;
    replay_audit_range(&weights[k], &se, &low, &high);
    const double mean = weights[k].total / weights[k].events;
    if (mean > high ? above && mean <= out->arm_weight : above || mean >= low || mean >= out->arm_weight)
      continue;
    above |= mean > high;
    out->arm = k, out->arm_weight = mean;
  }
  out->arm_0_absent = unlisted && !log->has_features && !log->available && !(weights[0].total > 0);
  return STATUS_OK;
}

Status replay_audit_log(const EventLog *log, bool unlisted, ReplayAudit *out) {
  double least = log->reward[0], most = log->reward[0];
  for (int e = 0; e < log->rows; e++) {
    least = fmin(least, log->reward[e]);
    most = fmax(most, log->reward[e]);
  }
  const bool shares = least >= 0 && most <= 1;
  out->least = fmin(least, 0), out->most = shares ? 1 : fmax(most, 0);
  /* One more reward at either end: neither this range nor this variance can be 0. */
  const double n = log->rows + 2;
  double mean = (out->least + out->most) / n, variance = 0;
  for (int e = 0; e < log->rows; e++) mean += log->reward[e] / n;
  for (int e = 0; e < log->rows; e++) variance += pow(log->reward[e] - mean, 2) / n;
  variance += (pow(out->least - mean, 2) + pow(out->most - mean, 2)) / n;
  out->spread = variance / ((mean - out->least) * (out->most - mean));
  out->rewards = moments_of(log->rows, log->reward);
  return replay_audit_arms(log, unlisted, out);
}

double replay_audit_interval(const ReplayAudit *audit, double mean, double size, double *low, double *high) {
  static const double Z = 1.959963984540054; /* of 95% */
  const double range = audit->most - audit->least, events = size / audit->spread;
  const double share = fmin(fmax((mean - audit->least) / range, 0), 1);
  const double middle = (share * events + Z * Z / 2) / (events + Z * Z),
               half = Z * sqrt(share * (1 - share) * events + Z * Z / 4) / (events + Z * Z);
  *low = audit->least + range * fmax(middle - half, 0);
  *high = audit->least + range * fmin(middle + half, 1);
  return events * fmin(share, 1 - share);
}
