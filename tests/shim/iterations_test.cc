// Boundaries as the worker gets them, and what the client notes about memory.
#include "shim/iterations/iterations.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "ipc/codec_client.h"
#include "shim/handle_table.h"
#include "shim/iterations/stream.h"
#include "shim/iterations/tokens.h"
#include "tests/ipc/testing.h"
#include "tests/shim/fixture.h"

namespace {

using shim::iterations::From;
using shim::iterations::Op;

using Boundaries = shim_test::InContext;

TEST_F(Boundaries, OneIsSentBeforeTheNextWorkWhenTheProgramSaysSo) {
  CUdeviceptr address = 0;
  ASSERT_EQ(local::cuMemAlloc_v2(&address, 4096), CUDA_SUCCESS);
  shim::iterations::Iterations& iterations = shim::iterations::Iterations::Process();
  const uint64_t ordinal = iterations.ordinal();
  const int before = CountOf("Boundary");
  iterations.Mark(ipc::BoundarySource::kHeader);
  EXPECT_EQ(CountOf("Boundary"), before);  // a question is no work
  ASSERT_EQ(local::cuMemsetD8_v2(address, 1, 4096), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("Boundary"), before + 1);
  EXPECT_EQ(iterations.ordinal(), ordinal + 1);
  ASSERT_EQ(local::cuMemsetD8_v2(address, 1, 4096), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("Boundary"), before + 1);
  ASSERT_EQ(local::cuMemFree_v2(address), CUDA_SUCCESS);
}

TEST(IterationsTest, EphemeralIsWhatLivedAtOnceAndIsGone) {
  shim::iterations::Iterations iterations(From::kHeader, nullptr);
  iterations.NoteAllocated(1000);
  ipc::BoundaryInfo info;
  EXPECT_FALSE(iterations.Before(Op(), &info));
  iterations.NoteAllocated(300);
  iterations.NoteAllocated(200);
  iterations.NoteFreed(300);
  iterations.NoteFreed(200);
  iterations.Mark(ipc::BoundarySource::kHeader);
  ASSERT_TRUE(iterations.Before(Op(), &info));
  EXPECT_EQ(info.iteration, 1u);
  EXPECT_EQ(info.source, ipc::BoundarySource::kHeader);
  EXPECT_EQ(info.persistent_bytes, 1000u);
  EXPECT_EQ(info.ephemeral_bytes, 500u);
  EXPECT_FALSE(iterations.Before(Op(), &info));
}

TEST(IterationsTest, OnlyTheChosenSourceIsHeard) {
  ipc::BoundaryInfo info;
  for (const From from : {From::kAuto, From::kHeader, From::kNvtx, From::kNone}) {
    shim::iterations::Iterations iterations(from, nullptr);
    iterations.Mark(ipc::BoundarySource::kHeader);
    EXPECT_EQ(iterations.Before(Op(), &info), from == From::kAuto || from == From::kHeader);
    iterations.Mark(ipc::BoundarySource::kNvtx);
    EXPECT_EQ(iterations.Before(Op(), &info), from == From::kNvtx);
  }
}

// A graph's launch is one operation; one that is made anew each time has a new value of the old
// name.
TEST(IterationsTest, EachLaunchOfAGraphIsAnIterationWhereThereIsNothingElse) {
  for (const bool anew : {false, true}) {
    shim::iterations::Iterations iterations(From::kAuto, nullptr);
    int boundaries = 0;
    for (uint64_t launch = 0; launch < 20; ++launch) {
      const uint64_t generation = anew ? 2 * launch + 1 : 1;
      const CUgraphExec piece =
          reinterpret_cast<CUgraphExec>(generation << shim::kGenerationShift | 5);
      const ipc::Arguments<ipc::Op::GraphLaunch> arguments(piece, CUstream{nullptr});
      const std::optional<Op> token =
          shim::iterations::TokenOf(ipc::Op::GraphLaunch, arguments.values());
      ASSERT_TRUE(token.has_value() && token->computes);
      ipc::BoundaryInfo info;
      boundaries += iterations.Before(*token, &info);
      iterations.NoteSynchronised();
    }
    EXPECT_EQ(boundaries, 15) << "made anew: " << anew;  // the first five are no pattern yet
  }
}

TEST(IterationsTest, ARecordedStreamReadsBack) {
  const ipc::TemporaryDir directory;  // the same test of another build may run beside this one
  const std::string path = directory.path() + "/ops";
  Op op;
  op.identity = 7;
  op.computes = true;
  {
    shim::iterations::Iterations iterations(From::kNone, path.c_str());
    ipc::BoundaryInfo info;
    iterations.Mark(ipc::BoundarySource::kHeader);
    iterations.Before(op, &info);
    iterations.NoteSynchronised();
    iterations.Before(op, &info);
    std::fflush(nullptr);
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto ops = shim::iterations::DecodeStreamUntrusted(std::as_bytes(std::span(text)));
  ASSERT_TRUE(ops.has_value());
  ASSERT_EQ(ops->size(), 2u);
  EXPECT_TRUE((*ops)[0].marked && (*ops)[0].op.computes && !(*ops)[0].op.synced);
  EXPECT_TRUE(!(*ops)[1].marked && (*ops)[1].op.synced);
  EXPECT_EQ((*ops)[1].op.identity, 7u);
}

}  // namespace
