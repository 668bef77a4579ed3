#include "sampler/catch_up.h"

void follow_history(Sampler *sampler, Follow *follow, int most, FollowBegin begin, FollowUpdate update,
                    const History *history, int64_t *fallbacks) {
  if (follow->runs != history->runs || follow->rounds > history->rounds) {
    begin(sampler, history->runs);
    *follow = (Follow){.runs = history->runs};
  }
  int missing = history->rounds - follow->rounds;
  ASSERT(missing <= 1 || history->each_round == history->runs);
  for (int left = missing < most ? missing : most; left > 0; left--)
    update(sampler, history, history->rounds - left + 1, fallbacks);
  follow->rounds = history->rounds;
}

RngLanes follow_streams(const Sampler *sampler, int round, int draws, int first, int lanes) {
  const SamplerSetup *setup = &sampler->setup;
  return (RngLanes){.key = rng_key(setup->seed, RNG_OBSERVE),
                    .run = setup->first_run,
                    .draws = (uint32_t)draws,
                    .round = (uint32_t)round,
                    .first_lane = (uint32_t)first,
                    .lanes = (uint32_t)lanes};
}
