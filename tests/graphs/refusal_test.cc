// The codes are the driver's.
#include "graphs/refusal.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstring>

namespace {

using graphs::Refusal;

TEST(Refusal, HasTheDriversCode) {
  const auto code = [](Refusal refusal) { return static_cast<CUresult>(graphs::CodeOf(refusal)); };
  EXPECT_EQ(code(Refusal::kNone), CUDA_SUCCESS);
  for (const Refusal refusal :
       {Refusal::kForeignNode, Refusal::kRepeatedDependency, Refusal::kSelfEdge,
        Refusal::kEdgeExists, Refusal::kNoEdge, Refusal::kCycle, Refusal::kBodyCount,
        Refusal::kForeignCondition, Refusal::kTakenCondition, Refusal::kUnusedCondition,
        Refusal::kBody}) {
    EXPECT_EQ(code(refusal), CUDA_ERROR_INVALID_VALUE);
  }
  for (const Refusal refusal : {Refusal::kNotInBody, Refusal::kTooDeep, Refusal::kConditionalCopied,
                                Refusal::kInstantiated}) {
    EXPECT_EQ(code(refusal), CUDA_ERROR_NOT_SUPPORTED);
  }
  EXPECT_EQ(code(Refusal::kNotCapturing), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(code(Refusal::kCapturingAlready), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(code(Refusal::kLegacyStream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(code(Refusal::kOtherOrigin), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(code(Refusal::kWrongThread), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  EXPECT_EQ(code(Refusal::kInvalidated), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(code(Refusal::kUnjoined), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(code(Refusal::kOtherCapture), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  EXPECT_EQ(code(Refusal::kCaptureEnded), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(code(Refusal::kIsolation), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  EXPECT_EQ(code(Refusal::kImplicit), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(code(Refusal::kNotCapturable), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_NE(std::strlen(graphs::TextOf(Refusal::kImplicit)), 0u);
}

}  // namespace
