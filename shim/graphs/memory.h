// Memory that a graph allocates: taken from the session when the node is made, because the node
// tells its address then.
//
// From a launch of the allocating node on the memory is the program's, until a free by a node, in a
// stream or at once. After the last graph and executable that know the memory, it goes back to the
// session. If it is the program's then, it becomes an ordinary allocation.
// Thread safety: all functions.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstdint>
#include <memory>

#include "shim/state.h"

namespace shim::graphs {

class GraphMemory {
 public:
  // On the context's device. 2: there is no room for params.bytesize.
  static CUresult Create(const Context& context, uint64_t context_value,
                         const CUDA_MEM_ALLOC_NODE_PARAMS& params,
                         std::shared_ptr<GraphMemory>* made);
  GraphMemory(const CUDA_MEM_ALLOC_NODE_PARAMS& params, const Allocation& allocation);
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;

  const CUDA_MEM_ALLOC_NODE_PARAMS& params() const { return params_; }
  uint64_t address() const { return allocation_.base; }
  // A launch of its node.
  void Allocate();

  // A free of the program, or a launch of a node that frees. False: no graph's memory begins there.
  static bool Free(uint64_t address);
  // True when memory of a graph begins there that is not the program's now.
  static bool IsFree(uint64_t address);
  // Its context is gone, and the memory with it.
  static void Forget(uint64_t address);

 private:
  enum class Holder : uint8_t { kGraph, kProgram, kNone };
  class Table;

  CUDA_MEM_ALLOC_NODE_PARAMS params_;
  const Allocation allocation_;
  Holder holder_ = Holder::kGraph;  // under the table's lock
};

}  // namespace shim::graphs
