// Runs worlds: a seed gives many episodes, each a world of its own with a trace of words, one a
// step. A failing episode is run again with fewer steps, until none can be left out. Thread safety:
// one thread; a world runs in a child process, so that an assertion ends that alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/protocol/scene.h"

namespace protocol {

inline constexpr size_t kEpisodeSteps = 2'000;
// In which worlds keep their promises today: delay, the ends of programs, lost workers and pauses.
inline constexpr Disturbances kTested = {.workers = true, .pauses = true};
// The same with lost keepers.
inline constexpr Disturbances kKeepers = {.workers = true, .keepers = true, .pauses = true};
// Also upgrades: a session may leave a worker that is lost before it hears of the next decision.
inline constexpr Disturbances kUpgraded = {.workers = true, .upgrades = true, .pauses = true};
// Lost daemons, whose heirs adopt sessions and what was said meanwhile.
inline constexpr Disturbances kDaemons = {.daemons = true, .workers = true, .pauses = true};
// Programs in-process, which go on without lanewayd and allocate what others were promised.
inline constexpr Disturbances kInProcess = {
    .daemons = true, .workers = true, .pauses = true, .in_process = true};

// All at once.
inline constexpr Disturbances kAll = {.daemons = true,
                                      .workers = true,
                                      .keepers = true,
                                      .upgrades = true,
                                      .pauses = true,
                                      .in_process = true};

// "daemons", "workers", "keepers", "upgrades", "pauses", "in-process", in any order; other words
// mean nothing.
Disturbances DisturbancesIn(const std::string& names);

// As DisturbancesIn() reads them; "none" when there are none.
std::string NamesOf(const Disturbances& disturbances);

struct Trace {
  Disturbances disturbances;
  uint64_t seed = 0;  // of the world
  std::vector<uint64_t> words;
};

// The episode of this number.
Trace EpisodeOf(const Disturbances& disturbances, uint64_t seed, uint64_t number);
// Runs it in this process; empty: every promise was kept.
std::string RunHere(const Trace& trace, bool verbose);
// The same in a child process: also the text of a failed assertion.
std::string RunApart(const Trace& trace, bool verbose = false);
// Fewer words that break the same promise.
Trace Shrink(Trace trace, const std::string& failure);

struct Finding {
  uint64_t steps = 0;    // that were run
  uint64_t episode = 0;  // that failed
  std::string failure;   // empty: none did
};
// Until `steps` are run or an episode fails. Several episodes share a child process.
Finding Explore(const Disturbances& disturbances, uint64_t seed, uint64_t steps);

}  // namespace protocol
