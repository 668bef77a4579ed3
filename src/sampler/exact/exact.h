/* What there is to say about exact draws, besides the methods themselves (sampler/methods.h). */
#pragma once

#include "sampler/sampler.h"

/* Returns how the sampler `exact` draws, in words; NULL if it cannot. */
const char *exact_way_in_words(const Prior *prior, const Likelihood *likelihood);
