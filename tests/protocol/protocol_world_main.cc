// protocol_world --seed S [--steps N]: runs the simulated world from a seed, and prints the trace
// of a failure, with all steps left out that it does not need.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/protocol/episodes.h"

namespace {

int Usage() {
  std::fprintf(
      stderr,
      "usage: protocol_world --seed S [--steps N] [--disturb LIST] [--whole]\n"
      "  LIST   of daemons, workers, keepers, upgrades, pauses, in-process; e.g. workers,pauses\n"
      "  --whole  does not shorten the trace of a failure\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t seed = 1, steps = 2'000'000;
  bool whole = false;
  protocol::Disturbances disturbances = protocol::kTested;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--whole") == 0) {
      whole = true;
    } else if (i + 1 < argc && std::strcmp(argv[i], "--seed") == 0) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (i + 1 < argc && std::strcmp(argv[i], "--steps") == 0) {
      steps = std::strtoull(argv[++i], nullptr, 10);
    } else if (i + 1 < argc && std::strcmp(argv[i], "--disturb") == 0) {
      disturbances = protocol::DisturbancesIn(argv[++i]);
    } else {
      return Usage();
    }
  }
  const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  const protocol::Finding finding = protocol::Explore(disturbances, seed, steps);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("seed %lu: %lu steps in %.1f s\n", seed, finding.steps, seconds);
  if (finding.failure.empty()) return 0;
  std::printf("episode %lu fails: %s\n", finding.episode, finding.failure.c_str());
  if (whole) return 1;
  const protocol::Trace trace =
      protocol::Shrink(protocol::EpisodeOf(disturbances, seed, finding.episode), finding.failure);
  std::printf("%zu steps are needed:\n", trace.words.size());
  (void)protocol::RunApart(trace, true);
  return 1;
}
