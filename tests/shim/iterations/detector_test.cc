#include "shim/iterations/detector.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tests/harness/events.h"
#include "tests/shim/iterations/quality.h"

namespace iterations_test {
namespace {

using shim::iterations::Bodies;
using shim::iterations::Decision;
using shim::iterations::Detector;
using shim::iterations::Op;
using shim::iterations::RecordedOp;

Op Work(uint32_t number) {
  Op op;
  op.identity = number * 0x9e3779b9u + 1;
  op.computes = true;
  return op;
}

// Which of `rounds` iterations were announced exactly at their first operation; fails on others.
size_t Found(Detector* detector, size_t rounds,
             const std::function<std::vector<Op>(size_t)>& make) {
  size_t found = 0;
  for (size_t round = 0; round < rounds; ++round) {
    const std::vector<Op> ops = make(round);
    for (size_t i = 0; i < ops.size(); ++i) {
      const bool boundary = detector->Next(ops[i]).boundary;
      EXPECT_TRUE(!boundary || i == 0) << "round " << round << ", operation " << i;
      found += boundary;
    }
  }
  return found;
}

std::vector<Op> Step(bool synced, uint32_t first = 1, uint32_t count = 10) {
  std::vector<Op> ops;
  for (uint32_t i = 0; i < count; ++i) ops.push_back(Work(first + i));
  ops[0].synced = synced;
  return ops;
}

TEST(DetectorTest, LocksOnAfterTwoRoundsBetweenWhichTheHostWaits) {
  Detector detector;
  EXPECT_EQ(Found(&detector, 20, [](size_t) { return Step(true); }), 18u);
}

TEST(DetectorTest, KnowsTheOperationsOfTheIterationThatEndedLast) {
  Detector detector;
  for (uint32_t round = 0; round < 10; ++round) {
    for (const Op& op : Step(true)) {
      if (!detector.Next(op).boundary) continue;
      EXPECT_EQ(detector.last().begin, (round - 1) * 10);
      EXPECT_EQ(detector.last().end, round * 10);
      EXPECT_EQ(detector.history().identity(detector.last().begin), Step(true)[0].identity);
    }
  }
  EXPECT_EQ(detector.boundaries(), 8u);
}

TEST(DetectorTest, AProgramMaySayItselfWhereIterationsBegin) {
  Detector detector;
  for (uint32_t i = 0; i < 10; ++i) detector.Note(Work(i), i == 3 || i == 7);
  EXPECT_EQ(detector.last().begin, 3u);
  EXPECT_EQ(detector.last().end, 7u);
  EXPECT_EQ(detector.history().identity(9), Work(9).identity);
}

TEST(DetectorTest, LocksOnAfterFiveRoundsOfNothingButRepetition) {
  Detector detector;
  EXPECT_EQ(Found(&detector, 20, [](size_t) { return Step(false); }), 15u);
}

TEST(DetectorTest, ShapesMayChange) {
  Detector detector;
  EXPECT_EQ(Found(&detector, 20,
                  [](size_t round) {
                    std::vector<Op> ops = Step(true);
                    for (Op& op : ops) op.shape = static_cast<uint32_t>(round);
                    return ops;
                  }),
            18u);
}

TEST(DetectorTest, ASecondBodyIsKnownWhenItComesAgain) {
  Detector detector;
  size_t missed = 0;
  for (size_t round = 0; round < 100; ++round) {
    const std::vector<Op> ops = round % 7 == 6 ? Step(true, 50, 4) : Step(true);
    for (size_t i = 0; i < ops.size(); ++i) {
      const bool boundary = detector.Next(ops[i]).boundary;
      EXPECT_TRUE(!boundary || i == 0) << round;
      missed += i == 0 && round >= 3 && !boundary;
    }
  }
  EXPECT_LE(missed, 1u);  // the first time it comes, nobody knows it
}

TEST(DetectorTest, MicroBatchesAreNoIterationsOfTheirOwn) {
  Detector detector;
  for (const size_t parts : {2u, 4u}) {
    const size_t found = Found(&detector, 30, [parts](size_t) {
      std::vector<Op> ops;
      for (size_t part = 0; part < parts; ++part) {
        for (const Op& op : Step(part == 0, 100 * static_cast<uint32_t>(parts), 6))
          ops.push_back(op);
      }
      for (uint32_t i = 0; i < 3; ++i) ops.push_back(Work(70 + i));
      return ops;
    });
    EXPECT_GE(found, 24u) << parts;
  }
}

// Steps without a wait of the host, then an evaluation that waits: many steps are no micro-batches.
// A solver launches one kernel over and over, and then the host looks at the residual.
TEST(DetectorTest, SweepsUpToTheNextWaitAreOneIteration) {
  for (const uint32_t sweeps : {6u, 50u, 1000u}) {
    Detector detector;
    const auto iteration = [sweeps](size_t) {
      std::vector<Op> ops(sweeps, Work(1));
      ops[0].synced = true;
      ops.push_back(Work(2));
      ops.back().computes = false;
      return ops;
    };
    for (size_t round = 0; round < 4; ++round) {
      for (const Op& op : iteration(round)) detector.Next(op);
    }
    EXPECT_EQ(Found(&detector, 20, iteration), 20u) << sweeps;
  }
}

TEST(DetectorTest, AnEpochOfManyStepsIsNoIteration) {
  Detector detector;
  for (size_t epoch = 0; epoch < 8; ++epoch) {
    for (size_t step = 0; step < 200; ++step) {
      for (const Op& op : Step(false, 1, 6)) {
        const bool boundary = detector.Next(op).boundary;
        if (step >= 8) EXPECT_EQ(boundary, op.identity == Work(1).identity) << epoch << " " << step;
      }
    }
    for (const Op& op : Step(true, 50, 5)) (void)detector.Next(op);
  }
}

TEST(DetectorTest, NothingIsFoundWhereNothingRepeats) {
  Detector detector;
  std::mt19937 random(1);
  for (int i = 0; i < 100'000; ++i) {
    Op op = Work(static_cast<uint32_t>(random()));
    op.synced = random() % 8 == 0;
    ASSERT_FALSE(detector.Next(op).boundary);
  }
  EXPECT_FALSE(detector.locked());
}

// Preparing many weights looks alike, and memory grows with each.
TEST(DetectorTest, PreparationsAreNoIterations) {
  Detector detector;
  for (uint64_t i = 0; i < 1000; ++i) {
    Op op = Work(5);
    op.live_bytes = (i + 1) << 20;
    ASSERT_FALSE(detector.Next(op).boundary);
  }
}

// --- recorded programs ---------------------------------------------------------------------------

TEST(StreamsTest, PrecisionRecallAndLockOnOfEveryProgram) {
  size_t streams = 0, unseen = 0;
  for (const StreamName& stream : AllStreams()) {
    const Quality quality = Measure(ReadStream(stream.name));
    EXPECT_TRUE(quality.locked) << stream.name;
    EXPECT_GE(quality.precision(), 0.99) << stream.name;
    EXPECT_GE(quality.recall(), 0.99) << stream.name;
    EXPECT_LE(quality.lock_delay, 3) << stream.name;
    ++streams;
    unseen += stream.unseen;
  }
  EXPECT_GE(streams, 10u);
  EXPECT_GE(unseen * 2 + 1, streams);
}

// --- random programs -----------------------------------------------------------------------------

// A program with a few bodies, some rounds of each, and mistakes: operations left out, doubled, or
// of a stranger; waits and memory at random.
std::vector<Op> RandomProgram(std::mt19937_64* random) {
  const auto below = [&](uint64_t n) { return (*random)() % n; };
  std::vector<std::vector<Op>> bodies(1 + below(5));
  for (std::vector<Op>& body : bodies) {
    const uint64_t count = 1 + below(below(10) == 0 ? 3000 : 60), kernels = 1 + below(40);
    for (uint64_t i = 0; i < count; ++i) {
      Op op = Work(static_cast<uint32_t>(below(kernels)));
      op.computes = below(5) != 0;
      op.synced = below(6) == 0;
      op.live_bytes = below(1u << 30);
      body.push_back(op);
    }
  }
  const uint64_t mistakes = below(3) == 0 ? 0 : 20 + below(1000);
  std::vector<Op> ops;
  while (ops.size() < 30'000) {
    const std::vector<Op>& body = bodies[below(bodies.size())];
    for (uint64_t round = 0, rounds = 1 + below(20); round < rounds; ++round) {
      for (const Op& op : body) {
        const uint64_t mistake = mistakes == 0 ? 1 : below(mistakes);
        if (mistake != 0) ops.push_back(op);
        if (mistake == 1 && mistakes != 0) ops.push_back(below(2) == 0 ? op : Work(1000));
      }
    }
  }
  return ops;
}

TEST(PropertyTest, TheSameStreamGivesTheSameBoundariesInBoundedMemory) {
  for (uint64_t seed = 1; seed <= (harness::kSanitized ? 12 : 60); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::vector<Op> ops = RandomProgram(&random);
    Detector detector, again;
    for (const Op& op : ops) {
      const Decision decision = detector.Next(op), same = again.Next(op);
      ASSERT_EQ(decision.boundary, same.boundary);  // pure
      ASSERT_EQ(decision.body, same.body);
    }
    EXPECT_LE(detector.bodies(), Bodies::kMax);
  }
}

// A loop with strangers' operations thrown in: the lock comes back after each of them.
TEST(PropertyTest, OneMistakeCostsAtMostTwoBoundaries) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const uint32_t count = 4 + static_cast<uint32_t>(random() % 200);
    Detector detector;
    size_t mistakes = 0, right = 0, wrong = 0;
    constexpr size_t kRounds = 300;
    for (size_t round = 0; round < kRounds; ++round) {
      std::vector<Op> ops = Step(true, 1, count);
      if (round > 5 && random() % 10 == 0) {
        ++mistakes;
        ops.insert(ops.begin() + 1 + static_cast<long>(random() % (ops.size() - 1)), Work(5000));
      }
      for (size_t i = 0; i < ops.size(); ++i) {
        if (!detector.Next(ops[i]).boundary) continue;
        (i == 0 ? right : wrong) += 1;
      }
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_GE(right + 2 * mistakes + 4, kRounds) << mistakes;
  }
}

}  // namespace
}  // namespace iterations_test
