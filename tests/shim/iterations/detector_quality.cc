// Prints how well the detector does on every recorded stream, the unseen ones apart.
//     detector_quality [seen|unseen]
#include <cstdio>
#include <cstring>

#include "tests/shim/iterations/quality.h"

namespace iterations_test {
namespace {

void Report(bool unseen) {
  std::printf("%s streams\n%-32s %7s %7s %6s %6s %9s %9s %7s %9s %6s\n", unseen ? "unseen" : "seen",
              "", "ops", "labels", "found", "exact", "precision", "recall", "lock-on", "overall",
              "bodies");
  for (const StreamName& stream : AllStreams()) {
    if (stream.unseen != unseen) continue;
    const Quality quality = Measure(ReadStream(stream.name));
    std::printf("%-32s %7zu %7zu %6zu %6zu %9.4f %9.4f %7ld %9.4f %6zu\n", stream.name.c_str(),
                quality.ops, quality.labels, quality.right, quality.exact, quality.precision(),
                quality.recall(), quality.lock_delay, quality.overall_precision(), quality.bodies);
  }
}

}  // namespace
}  // namespace iterations_test

int main(int argc, char** argv) {
  const char* const half = argc > 1 ? argv[1] : "";
  if (std::strcmp(half, "unseen") != 0) iterations_test::Report(false);
  if (std::strcmp(half, "seen") != 0) iterations_test::Report(true);
  return 0;
}
