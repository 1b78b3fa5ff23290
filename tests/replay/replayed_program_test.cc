// Random programs of iterations, replayed: what is done equals what was asked for, operation for
// operation and byte for byte, whatever happens to the template meanwhile.
#include <gtest/gtest.h>

#include <random>

#include "replay/op_stream_codec.h"
#include "tests/harness/seed.h"
#include "tests/replay/random_program.h"
#include "tests/replay/replayed_run.h"

namespace replay {
namespace {

using testing::RandomProgram;
using testing::ReplayedRun;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kPrograms = 30;
#else
constexpr uint64_t kPrograms = 400;
#endif
constexpr int kIterations = 40;

Loss RandomLoss(std::mt19937_64* random) {
  Loss loss;
  loss.kind = static_cast<Loss::Kind>((*random)() % 7);
  loss.module = {(*random)() % 10};
  loss.begin = (*random)();
  loss.bytes = (*random)() >> ((*random)() % 16);
  loss.name = static_cast<uint32_t>((*random)() % 3);
  return loss;
}

TEST(ReplayedProgramTest, DoesExactlyWhatWasAskedFor) {
  const uint64_t seed = harness::Seed();
  for (uint64_t i = 0; i < kPrograms; ++i) {
    std::mt19937_64 random(seed + i);
    Callees callees;
    RandomProgram program(random(), &callees);
    Template::Limits limits;
    if (random() % 2 == 0) limits = {1 + random() % 16, 1 + random() % 32, 1000 + random() % 30000};
    Template known(&callees, limits);
    ReplayedRun run(&known);
    const bool loses = random() % 2 == 0;
    for (int n = 0; n < kIterations; ++n) {
      const OpStream ops = program.Iteration(random() % 2 == 0 ? 0 : random() % 20);
      for (size_t k = 0; k < ops.size(); ++k) {
        run.Op(ops.at(k));
        if (random() % 64 == 0) run.Wait();
        if (loses && random() % 64 == 0) known.Invalidate(RandomLoss(&random));
      }
      ASSERT_TRUE(run.End()) << "program " << i << ", iteration " << n;
      ASSERT_LE(known.bodies(), limits.bodies);
      ASSERT_LE(known.bytes(), limits.bytes);
    }
  }
}

// The test above would pass if nothing were ever replayed.
TEST(ReplayedProgramTest, ReplaysMostOfWhatRepeats) {
  const uint64_t seed = harness::Seed();
  size_t all = 0, replayed = 0, messages = 0;
  for (uint64_t i = 0; i < kPrograms / 10; ++i) {
    Callees callees;
    RandomProgram program(seed + i, &callees);
    Template known(&callees);
    ReplayedRun run(&known);
    for (int n = 0; n < 2 * kIterations; ++n) {
      if (n == kIterations) run.ResetCounts();
      const OpStream ops = program.Iteration(0);
      if (n >= kIterations) all += ops.size();
      ASSERT_TRUE(run.Iteration(ops));
    }
    replayed += run.replayed();
    messages += run.messages();
  }
  std::printf("%zu of %zu operations replayed, by %zu messages\n", replayed, all, messages);
  EXPECT_GE(replayed * 10, all * 8);
}

TEST(ReplayedProgramTest, EveryIterationIsEncodedAndDecoded) {
  const uint64_t seed = harness::Seed();
  const Slot slot(ipc::limits::kSlotBase);
  for (uint64_t i = 0; i < kPrograms / 10; ++i) {
    Callees callees;
    RandomProgram program(seed + i, &callees);
    for (int n = 0; n < 3; ++n) {
      const OpStream ops = program.Iteration(5);
      const std::vector<std::byte> bytes = EncodeOps(ops, callees, slot);
      const std::optional<OpStream> again = DecodeOpsUntrusted(bytes, slot, &callees);
      ASSERT_TRUE(again.has_value());
      ASSERT_EQ(*again, ops);
    }
  }
}

}  // namespace
}  // namespace replay
