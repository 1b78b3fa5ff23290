// Graphs of the fake driver: it keeps their edges. Thread safety: any thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "ipc/driver_table.h"

namespace shim_test {

// Fills in what concerns graphs.
void AddGraphs(ipc::DriverTable* table);

class FakeGraphs {
 public:
  using Edge = std::pair<uint32_t, uint32_t>;  // numbers of nodes, in the order of their making

  static FakeGraphs& Process();

  // A node's handle is its number in its graph, counted from 1.
  CUgraphNode AddNode(CUgraph graph) EXCLUDES(mutex_);
  void AddEdges(std::span<const CUgraphNode> from, std::span<const CUgraphNode> to)
      EXCLUDES(mutex_);
  // Of all graphs, since the last call.
  std::vector<Edge> TakeEdges() EXCLUDES(mutex_);

  // The driver's handle of every condition.
  static constexpr uint64_t kHandle = 0xabcdef;
  void AddWord(uint64_t word) EXCLUDES(mutex_);
  // What kernel nodes have as their first parameter, since the last call.
  std::vector<uint64_t> TakeWords() EXCLUDES(mutex_);

 private:
  base::Mutex mutex_;
  std::map<CUgraph, uintptr_t> nodes_ GUARDED_BY(mutex_);  // how many
  std::vector<Edge> edges_ GUARDED_BY(mutex_);
  std::vector<uint64_t> words_ GUARDED_BY(mutex_);
};

}  // namespace shim_test
