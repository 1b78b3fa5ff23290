#include "graphs/refusal.h"

#include <cassert>
#include <cstddef>
#include <iterator>

namespace graphs {
namespace {

struct Row {
  Refusal refusal;
  int code;  // the tests compare it with cuda.h
  const char* text;
};

constexpr Row kRows[] = {
    {Refusal::kNone, 0, ""},
    {Refusal::kForeignNode, 1, "the node is no node of this graph"},
    {Refusal::kRepeatedDependency, 1, "a dependency is named twice"},
    {Refusal::kSelfEdge, 1, "an edge joins two nodes of one graph"},
    {Refusal::kEdgeExists, 1, "the edge exists already"},
    {Refusal::kNoEdge, 1, "there is no such edge"},
    {Refusal::kCycle, 1, "the graph has a cycle"},
    {Refusal::kBodyCount, 1,
     "a while has one body, an if one or two, a switch at least one and at most 4096"},
    {Refusal::kForeignCondition, 1,
     "the conditional handle is of no graph that the node is in, or of another context"},
    {Refusal::kTakenCondition, 1, "another conditional node has this handle"},
    {Refusal::kUnusedCondition, 1, "a conditional handle of the graph has no conditional node"},
    {Refusal::kNotInBody, 801,
     "a body of a conditional node may hold kernels, copies, memsets, empty nodes, child graphs "
     "and conditional nodes alone"},
    {Refusal::kTooDeep, 801, "conditional nodes lie in each other's bodies more than 64 deep"},
    {Refusal::kConditionalCopied, 801,
     "a graph with conditional nodes can't be cloned and can't be a child graph"},
    {Refusal::kInstantiated, 801,
     "a graph with conditional nodes has one executable graph at a time: destroy that first"},
    {Refusal::kBody, 1, "the graph is a body of a conditional node, which owns it"},
    {Refusal::kNotCapturing, 401, "the stream is not capturing"},
    {Refusal::kCapturingAlready, 401, "the stream is capturing already"},
    {Refusal::kLegacyStream, 900, "the legacy default stream can't be captured"},
    {Refusal::kOtherOrigin, 903, "the capture began in another stream"},
    {Refusal::kWrongThread, 908, "the capture began in another thread"},
    {Refusal::kInvalidated, 901, "an earlier error ended the capture"},
    {Refusal::kUnjoined, 904, "work of another stream was not joined back"},
    {Refusal::kOtherCapture, 902, "the stream and the event belong to different captures"},
    {Refusal::kCaptureEnded, 907, "the event was recorded in a capture that has ended"},
    {Refusal::kIsolation, 905, "the event was recorded outside the capture"},
    {Refusal::kImplicit, 906,
     "work in the legacy stream would wait for a blocking stream that captures"},
    {Refusal::kNotCapturable, 900, "this call can't be captured"},
};

constexpr bool IsInOrder() {
  for (size_t i = 0; i < std::size(kRows); ++i) {
    if (kRows[i].refusal != static_cast<Refusal>(i)) return false;
  }
  return true;
}
static_assert(IsInOrder());

const Row& RowOf(Refusal refusal) {
  const size_t index = static_cast<size_t>(refusal);
  assert(index < std::size(kRows));
  return kRows[index];
}

}  // namespace

int CodeOf(Refusal refusal) { return RowOf(refusal).code; }
const char* TextOf(Refusal refusal) { return RowOf(refusal).text; }

}  // namespace graphs
