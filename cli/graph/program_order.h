// The order that a program itself gives its work: by streams, events, the legacy default stream,
// and the waits of its threads. Two operations without a path between them the program
// leaves unordered, whatever memory they touch.
//
// Calls that a thread sends after a wait come after the operations that the wait was for: the
// program may have looked at the result. Pure. Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cli/graph/records.h"
#include "scheduler/streams/dag.h"

namespace graph {

using scheduler::streams::Edge;
using scheduler::streams::NodeId;

class ProgramOrder {
 public:
  // The next operations, in the order in which they were sent.
  void AddWork(NodeId node, const SentCall& call, uint32_t thread);
  void RecordEvent(uint64_t event, const SentCall& call);
  void WaitForEvent(uint64_t event, const SentCall& call);
  void Join();  // all streams wait for each other
  // False: nothing that is known was waited for, or what the thread has waited for last. Then there
  // is no such operation.
  bool AddHostWait(NodeId node, const HostWait& wait, uint32_t thread);

  // In no order; some are implied by others.
  const std::vector<Edge>& edges() const { return edges_; }

 private:
  using Nodes = std::vector<NodeId>;  // ascending
  struct Stream {
    uint32_t device = 0;
    bool keeps_order_with_legacy = false;
    Nodes last;  // what the next operation comes after
  };

  static bool IsLegacy(uint32_t slot);
  Stream& Find(const SentCall& call);
  // The operations that must end before one that is sent to the call's stream now.
  Nodes Before(const SentCall& call);
  Nodes LastOf(const HostWait& wait) const;
  void AddEdges(const Nodes& from, NodeId to);

  std::map<uint32_t, Stream> streams_;  // by slot
  Nodes joined_;                        // what a stream comes after whose first call is yet to come
  std::map<uint64_t, Nodes> events_;
  struct LastWait {
    NodeId node = scheduler::streams::kNoNode;
    Nodes waited_for;
  };
  std::map<uint32_t, LastWait> host_waits_;  // by thread
  std::vector<Edge> edges_;
};

}  // namespace graph
