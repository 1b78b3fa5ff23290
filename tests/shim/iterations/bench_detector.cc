// Nanoseconds per operation in the detector, on every recorded stream. Repeated streams stand for
// long programs: the bar is 50 on the average of each when its loops are known. The first pass of
// each, in which they are found and in which a new process touches the detector's memory for the
// first time, is reported beside.
//     bench_detector [--json]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "shim/iterations/detector.h"
#include "tests/shim/iterations/quality.h"

namespace {

using shim::iterations::Detector;
using shim::iterations::RecordedOp;

constexpr double kBarNs = 50;
constexpr int kDetectors = 5, kRounds = 5;

struct NsPerOp {
  double first = 1e9, steady = 1e9;  // the best of the passes
};

double PassNs(Detector* detector, const std::vector<RecordedOp>& ops) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (const RecordedOp& recorded : ops) detector->Next(recorded.op);
  const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
  return took.count() / static_cast<double>(ops.size());
}

NsPerOp Measure(const std::vector<RecordedOp>& ops) {
  NsPerOp best;
  for (int i = 0; i < kDetectors; ++i) {
    Detector detector;
    best.first = std::min(best.first, PassNs(&detector, ops));
    for (int round = 0; round < kRounds; ++round)
      best.steady = std::min(best.steady, PassNs(&detector, ops));
  }
  return best;
}

void Append(std::string* figures, const std::string& name, double ns) {
  char text[128];
  std::snprintf(text, sizeof text, "%s\"%s\": %.1f", figures->empty() ? "" : ", ", name.c_str(),
                ns);
  *figures += text;
}

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc > 1 && std::strcmp(argv[1], "--json") == 0;
  NsPerOp worst = {0, 0};
  std::string steady, first;
  if (!json) std::printf("%-32s %12s %12s\n", "ns per operation", "steady", "first pass");
  for (const iterations_test::StreamName& stream : iterations_test::AllStreams()) {
    const NsPerOp ns = Measure(iterations_test::ReadStream(stream.name));
    worst = {std::max(worst.first, ns.first), std::max(worst.steady, ns.steady)};
    if (!json) std::printf("%-32s %12.1f %12.1f\n", stream.name.c_str(), ns.steady, ns.first);
    Append(&steady, stream.name, ns.steady);
    Append(&first, stream.name, ns.first);
  }
  const bool met = worst.steady <= kBarNs;
  if (json) {
    std::printf(
        "{\"worst_ns\": %.1f, \"bar_ns\": %.0f, \"met\": %s, \"worst_first_pass_ns\": %.1f, "
        "\"ns\": {%s}, \"first_pass_ns\": {%s}}\n",
        worst.steady, kBarNs, met ? "true" : "false", worst.first, steady.c_str(), first.c_str());
  } else {
    std::printf("worst %.1f ns, bar %.0f ns: %s; worst first pass %.1f ns, no bar\n", worst.steady,
                kBarNs, met ? "met" : "MISSED", worst.first);
  }
  return met ? 0 : 1;
}
