#include "model/mixture/mixture_choice.h"

#include <math.h>

void mixture_choice_make(int n, int count, const int *components, const double *const *density,
                         MixtureChoice *out) {
  *out = (MixtureChoice){.count = count, .most = components[count - 1]};
  int best = 0;
  for (int k = 0; k < count; k++) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += density[k][i];
    out->components[k] = components[k];
    out->held_out[k] = sum / n;
    if (out->held_out[k] > out->held_out[best]) best = k;
  }
  for (int k = count - 1; k >= 0; k--) {
    const double below = out->held_out[best] - out->held_out[k];
    double square = 0;
    for (int i = 0; i < n; i++) {
      const double off = density[k][i] - density[best][i] + below;
      square += off * off;
    }
    out->error[k] = n > 1 ? sqrt(square / (n - 1) / n) : INFINITY;
    if (below <= out->error[k]) out->chosen = k;
  }
}

Status mixture_choice_save(const MixtureChoice *choice, StoreFile *file) {
  int axis;
  if (choice->count == 0) return STATUS_OK;
  TRY(store_dimension(file, "candidate", (size_t)choice->count, &axis));
  TRY(store_int_attribute(file, "candidate_chosen", choice->chosen));
  TRY(store_int_attribute(file, "candidate_most", choice->most));
  TRY(store_write(file, "candidate_components", STORE_INT, 1, &axis, "number of components tried", "1",
                  choice->components));
  TRY(store_write(file, "held_out_log_likelihood", STORE_DOUBLE, 1, &axis,
                  "mean log density of held-out samples", "1", choice->held_out));
  TRY(store_write(file, "held_out_error", STORE_DOUBLE, 1, &axis,
                  "standard error of its difference from the highest", "1", choice->error));
  return store_write(file, "candidate_shared_samples", STORE_DOUBLE, 1, &axis,
                     "weight, in samples, of the variances common to all components in each covariance", "1",
                     choice->shared);
}

Status mixture_choice_load(StoreFile *file, MixtureChoice *out) {
  size_t count = SIZE_MAX;
  int64_t chosen, most, components[MIXTURE_MOST_CANDIDATES];
  *out = (MixtureChoice){.count = 0};
  if (!store_has_variable(file, "held_out_log_likelihood")) return STATUS_OK;
  TRY(store_shape(file, "held_out_log_likelihood", 1, &count));
  if (count > MIXTURE_MOST_CANDIDATES)
    return status_set(STATUS_INPUT, "%s: %zu candidate numbers of components; at most %d are allowed",
                      store_path(file), count, MIXTURE_MOST_CANDIDATES);
  TRY(store_shape(file, "candidate_components", 1, &count));
  TRY(store_shape(file, "held_out_error", 1, &count));
  TRY(store_get_int64s(file, "candidate_components", components));
  for (size_t k = 0; k < count; k++) {
    if (components[k] < 1 || components[k] > INT32_MAX)
      return status_set(STATUS_INPUT,
                        "%s: candidate_components[%zu] is %lld; it must be from 1 to 2147483647",
                        store_path(file), k, (long long)components[k]);
    out->components[k] = (int)components[k];
  }
  TRY(store_get_doubles(file, "held_out_log_likelihood", out->held_out));
  TRY(store_get_doubles(file, "held_out_error", out->error));
  TRY(store_get_int_attribute(file, "candidate_chosen", &chosen));
  if (chosen < 0 || chosen >= (int64_t)count)
    return status_set(STATUS_INPUT, "%s: candidate_chosen is %lld, but there are %zu candidates",
                      store_path(file), (long long)chosen, count);
  out->chosen = (int)chosen;
  out->count = (int)count;
  /* Files from before variances were shared have neither of these: nothing was shared, and the candidates are
   * all that was tried. */
  out->most = out->components[count - 1];
  if (!store_has_variable(file, "candidate_shared_samples")) return STATUS_OK;
  TRY(store_shape(file, "candidate_shared_samples", 1, &count));
  TRY(store_get_doubles(file, "candidate_shared_samples", out->shared));
  TRY(store_get_int_attribute(file, "candidate_most", &most));
  if (most < 1 || most > INT32_MAX)
    return status_set(STATUS_INPUT, "%s: candidate_most is %lld; it must be from 1 to 2147483647",
                      store_path(file), (long long)most);
  out->most = (int)most;
  return STATUS_OK;
}

void mixture_choice_report(const MixtureChoice *choice, FILE *out) {
  fprintf(out,
          "%d components, the fewest within one standard error of the best\n"
          "  components  mean log density of held-out samples (standard error of the difference from the "
          "best); samples of shared variances\n",
          choice->components[choice->chosen]);
  for (int k = 0; k < choice->count; k++)
    fprintf(out, "  %10d  %10.4f (%.4f)  %5.0f%s\n", choice->components[k], choice->held_out[k],
            choice->error[k], choice->shared[k], k == choice->chosen ? "  chosen" : "");
}
