/* Internal to src/model: the prior families, listed by prior.c. */
#ifndef MODEL_FAMILIES_H
#define MODEL_FAMILIES_H

#include "model/prior.h"

extern const PriorOps prior_gaussian, prior_mixture, prior_diffusion, prior_denoiser;

#endif
