// What a graph node does, as data: made by an explicit node, by capture, or changed by an update;
// turned into an Operation when a graph is instantiated.
#pragma once

#include <cuda.h>

#include <memory>
#include <variant>
#include <vector>

#include "softgpu/driver/copy.h"
#include "softgpu/driver/graph_types.h"
#include "softgpu/driver/launch.h"
#include "softgpu/driver/operation.h"

namespace softgpu {

class Context;
class Event;
class GraphMemory;

struct MemcpyWork {
  CUDA_MEMCPY3D params;
};
struct MemsetWork {
  Fill fill;
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
  std::shared_ptr<Event> event;
};
struct EventRecordWork {
  std::shared_ptr<Event> event;
};
struct MemoryWork {
  std::vector<CUstreamBatchMemOpParams> items;
};
struct AllocateWork {
  std::shared_ptr<GraphMemory> memory;
};
struct FreeWork {
  CUdeviceptr address;
};
struct ConditionalWork {
  std::shared_ptr<GraphConditional> node;
  std::shared_ptr<std::vector<CUgraph>> handles;  // of the bodies; the program reads the array
};

using Work =
    std::variant<KernelWork, MemcpyWork, MemsetWork, HostWork, ChildWork, EmptyWork, EventWaitWork,
                 EventRecordWork, MemoryWork, AllocateWork, FreeWork, ConditionalWork>;

CUgraphNodeType TypeOf(const Work& work);

// The operation of one node, which may be run many times but never twice at once. Child graphs,
// conditional nodes and event nodes are GraphExec's own; for them, and for empty nodes, the result
// is null.
CUresult MakeOperationOf(const Work& work, const std::shared_ptr<Context>& context,
                         std::unique_ptr<Operation>* operation);

}  // namespace softgpu
