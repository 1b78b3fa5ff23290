// Which calls the log for the next worker keeps, and of which it must know where in the ring they
// are.
#include "shim/rebuild/record.h"

#include <gtest/gtest.h>

#include "ipc/calls.h"

namespace shim {
namespace {

using ipc::Op;

TEST(RecordTest, WhatMakesOrSetsAnObjectNeedsItsPosition) {
  for (const Op op : {Op::LoadModule, Op::GetFunction, Op::StreamCreate, Op::StreamDestroy,
                      Op::PinnedAlloc, Op::PinnedFree, Op::LaneKeep, Op::LaneDrop, Op::LaneReserve,
                      Op::GetGlobal, Op::cublasSetStream_v2, Op::cublasSetMathMode,
                      Op::cuFuncSetAttribute, Op::GraphKernel, Op::GraphSeal, Op::ContextReset}) {
    EXPECT_TRUE(NeedsPosition(op)) << ipc::RowOf(op).name;
  }
}

// The log keeps the bytes that are written into a variable.
TEST(RecordTest, WhatTheHostWritesNeedsItsPosition) {
  for (const Op op : {Op::CopyInline, Op::CopyStagedIn, Op::CopyPitched, Op::CopyPitchedStagedIn}) {
    EXPECT_TRUE(NeedsPosition(op)) << ipc::RowOf(op).name;
  }
}

TEST(RecordTest, FillsAndCopiesWithinTheDeviceMayWait) {
  for (const Op op : {Op::CopyDevice, Op::cuMemcpyDtoDAsync_v2, Op::cuMemsetD8Async,
                      Op::cuMemsetD16Async, Op::cuMemsetD32Async}) {
    EXPECT_TRUE(IsRecorded(op)) << ipc::RowOf(op).name << " may write into a variable";
    EXPECT_FALSE(NeedsPosition(op)) << ipc::RowOf(op).name;
  }
}

TEST(RecordTest, WhatIsNotRecordedMayWait) {
  for (const Op op : {Op::Launch, Op::GraphLaunch, Op::StreamMark, Op::Boundary, Op::FetchAhead,
                      Op::cuEventRecord, Op::cuStreamWaitEvent, Op::Ping}) {
    EXPECT_FALSE(IsRecorded(op)) << ipc::RowOf(op).name;
    EXPECT_FALSE(NeedsPosition(op)) << ipc::RowOf(op).name;
  }
}

}  // namespace
}  // namespace shim
