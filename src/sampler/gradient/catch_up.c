#include "sampler/gradient/catch_up.h"

void catch_up_history(Sampler *sampler, CatchUp *catch_up, int most, CatchUpBegin begin, CatchUpUpdate update,
                      const History *history, int64_t *fallbacks) {
  if (catch_up->runs != history->runs || catch_up->rounds > history->rounds) {
    begin(sampler, history->runs);
    *catch_up = (CatchUp){.runs = history->runs};
  }
  int missing = history->rounds - catch_up->rounds;
  ASSERT(missing <= 1 || history->each_round == history->runs);
  for (int left = missing < most ? missing : most; left > 0; left--)
    update(sampler, history, history->rounds - left + 1, fallbacks);
  catch_up->rounds = history->rounds;
}
