// Why a change of a graph, or a call that concerns a stream capture, is refused: what the driver's
// manual tells apart, with the driver's code for each. Thread safety: values.
#pragma once

namespace graphs {

enum class Refusal {
  kNone,  // not refused
  // --- graphs
  kForeignNode,
  kRepeatedDependency,
  kSelfEdge,
  kEdgeExists,
  kNoEdge,
  kCycle,
  // --- conditional nodes
  kBodyCount,
  kForeignCondition,
  kTakenCondition,
  kUnusedCondition,
  kNotInBody,
  kTooDeep,
  kConditionalCopied,
  kInstantiated,
  kBody,
  // --- captures
  kNotCapturing,
  kCapturingAlready,
  kLegacyStream,
  kOtherOrigin,
  kWrongThread,
  kInvalidated,
  kUnjoined,
  kOtherCapture,
  kCaptureEnded,
  kIsolation,
  kImplicit,
  kNotCapturable,
};

// The value of the CUresult, 0 for kNone, and one sentence for the program's log.
int CodeOf(Refusal refusal);
const char* TextOf(Refusal refusal);

}  // namespace graphs
