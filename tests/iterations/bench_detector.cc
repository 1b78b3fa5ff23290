// Nanoseconds per operation in the detector, on every recorded stream; the bar is 50 on the average
// of each. Repeated streams stand for long programs: the first pass of each is not timed.
//     bench_detector [--json]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "shim/iterations/detector.h"
#include "tests/iterations/quality.h"

namespace {

constexpr double kBarNs = 50;

double NsPerOp(const std::vector<shim::iterations::RecordedOp>& ops) {
  using Clock = std::chrono::steady_clock;
  shim::iterations::Detector detector;
  double best = 1e9;
  for (int round = 0; round < 6; ++round) {
    const Clock::time_point begin = Clock::now();
    for (const shim::iterations::RecordedOp& recorded : ops) detector.Next(recorded.op);
    const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
    if (round > 0) best = std::min(best, took.count() / static_cast<double>(ops.size()));
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc > 1 && std::strcmp(argv[1], "--json") == 0;
  double worst = 0;
  std::string figures;
  for (const iterations_test::StreamName& stream : iterations_test::AllStreams()) {
    const double ns = NsPerOp(iterations_test::ReadStream(stream.name));
    worst = std::max(worst, ns);
    if (!json) std::printf("%-32s %6.1f ns per operation\n", stream.name.c_str(), ns);
    char text[128];
    std::snprintf(text, sizeof text, "%s\"%s\": %.1f", figures.empty() ? "" : ", ",
                  stream.name.c_str(), ns);
    figures += text;
  }
  const bool met = worst <= kBarNs;
  if (json) {
    std::printf("{\"worst_ns\": %.1f, \"bar_ns\": %.0f, \"met\": %s, \"ns\": {%s}}\n", worst,
                kBarNs, met ? "true" : "false", figures.c_str());
  } else {
    std::printf("worst %.1f ns, bar %.0f ns: %s\n", worst, kBarNs, met ? "met" : "MISSED");
  }
  return met ? 0 : 1;
}
