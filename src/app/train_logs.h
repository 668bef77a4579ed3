/* thompson train --logs. */
#pragma once

#include "app/app.h"
#include "model/prior/prior.h"

typedef struct {
  const char *file, *output;
  const PriorOps *family;
  Likelihood likelihood;
  bool estimate_noise;
  const AppTexts *options; /* --option */
  uint64_t seed;
} TrainLogs;

/* Learns the prior and write it. Collective. */
/* Says on stderr when the prior has fewer than ten tasks for each of its components: it follows single ones.
 */
void train_warn_of_few(const Prior *prior, int tasks);
Status train_logs(const Parallel *parallel, const TrainLogs *job);
