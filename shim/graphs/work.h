// What a graph node does, as data: made by an explicit node or by capture, changed by updates, read
// by the executable graph that is made of it. Handles in it are the program's values.
// Thread safety: values.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "graphs/conditional.h"

namespace shim::graphs {

struct GraphUse;  // graph.h
using Graph = ::graphs::Graph<GraphUse>;
using Node = ::graphs::Node<GraphUse>;
class Piece;
class GraphMemory;  // memory.h

struct KernelWork {
  bool operator==(const KernelWork&) const = default;

  uint64_t function = 0;  // the loaded one, where the program named a CUkernel
  CUcontext context = nullptr;
  unsigned grid[3] = {};
  unsigned block[3] = {};
  unsigned shared_bytes = 0;
  bool cooperative = false;
  std::vector<std::byte> params;  // packed
};
struct MemcpyWork {
  CUDA_MEMCPY3D params;
};
struct MemsetWork {
  CUDA_MEMSET_NODE_PARAMS_v1 params;
};
struct HostWork {
  CUhostFn function;
  void* data;
};
struct ChildWork {
  std::shared_ptr<Graph> graph;  // the node's own copy
};
struct EmptyWork {};
struct EventWaitWork {
  CUevent event;
};
struct EventRecordWork {
  CUevent event;
};
struct MemoryWork {
  std::vector<CUstreamBatchMemOpParams> items;
};
struct LibraryWork {
  std::shared_ptr<const Piece> piece;  // the worker has it (library.h)
};

struct AllocateWork {
  std::shared_ptr<GraphMemory> memory;
};
struct FreeWork {
  CUdeviceptr address;
};
struct ConditionalWork {
  std::shared_ptr<::graphs::Conditional<GraphUse>> node;
  std::shared_ptr<std::vector<CUgraph>> handles;  // of the bodies; the program reads the array
};

using Work =
    std::variant<KernelWork, MemcpyWork, MemsetWork, HostWork, ChildWork, EmptyWork, EventWaitWork,
                 EventRecordWork, MemoryWork, LibraryWork, AllocateWork, FreeWork, ConditionalWork>;

CUgraphNodeType TypeOf(const Work& work);

}  // namespace shim::graphs
