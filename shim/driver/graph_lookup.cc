#include "shim/driver/graph_lookup.h"

#include "shim/copy_box.h"
#include "shim/driver/launch_request.h"

namespace local {
namespace {

template <class T, class Handle>
CUresult Find(const shim::graphs::Registry<T>& registry, Handle program,
              std::shared_ptr<T>* object) {
  if (const CUresult result = shim::Client::Process().Ready(); result != CUDA_SUCCESS)
    return result;
  *object = registry.Find(program);
  return *object != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool IsEvent(CUevent event) {
  return shim::State::Process().events.Find(reinterpret_cast<uint64_t>(event)) != nullptr;
}

}  // namespace

CUresult FindGraph(CUgraph program, std::shared_ptr<Graph>* graph) {
  return Find(Objects::Process().graphs, program, graph);
}

CUresult FindNode(CUgraphNode program, std::shared_ptr<Node>* node) {
  return Find(Objects::Process().nodes, program, node);
}

CUresult FindExecutable(CUgraphExec program, std::shared_ptr<Executable>* executable) {
  return Find(Objects::Process().executables, program, executable);
}

CUresult FindNodes(const CUgraphNode* programs, size_t count, std::vector<Node*>* nodes) {
  if (programs == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    std::shared_ptr<Node> node;
    if (const CUresult result = FindNode(programs[i], &node); result != CUDA_SUCCESS) return result;
    nodes->push_back(node.get());
  }
  return CUDA_SUCCESS;
}

// --- work ----------------------------------------------------------------------------------------

CUresult ToWork(const CUDA_KERNEL_NODE_PARAMS_v2& params, Work* work) {
  return WorkOf(params, work);
}

// The first version of the structure lacks the last two members.
CUresult ToWork(const CUDA_KERNEL_NODE_PARAMS_v1& params, Work* work) {
  return WorkOf({params.func, params.gridDimX, params.gridDimY, params.gridDimZ, params.blockDimX,
                 params.blockDimY, params.blockDimZ, params.sharedMemBytes, params.kernelParams,
                 params.extra, nullptr, nullptr},
                work);
}

CUresult ToWork(const CUDA_MEMCPY3D& params, Work* work) {
  shim::CopyBox box;
  CUresult result = shim::BoxOf(params, &box);
  if (result == CUDA_SUCCESS) result = shim::CheckBox(box);
  if (result == CUDA_SUCCESS) *work = shim::graphs::MemcpyWork{params};
  return result;
}

CUresult ToWork(const CUDA_MEMSET_NODE_PARAMS_v1& params, Work* work) {
  const unsigned bytes = params.elementSize;
  *work = shim::graphs::MemsetWork{params};
  if (params.width == 0 || params.height == 0) return CUDA_SUCCESS;
  if (bytes != 1 && bytes != 2 && bytes != 4) return CUDA_ERROR_INVALID_VALUE;
  const size_t row = params.width * bytes;
  const bool rows = params.height > 1;
  if (params.dst % bytes != 0 || (rows && params.pitch % bytes != 0))
    return CUDA_ERROR_INVALID_VALUE;
  if (rows && params.pitch < row) return CUDA_ERROR_INVALID_VALUE;
  const size_t span = (params.height - 1) * params.pitch + row;
  return shim::Memory::IsLive(params.dst, span) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult ToWork(const CUDA_HOST_NODE_PARAMS_v1& params, Work* work) {
  if (params.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *work = shim::graphs::HostWork{params.fn, params.userData};
  return CUDA_SUCCESS;
}

CUresult ToWork(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1& params, Work* work) {
  if (params.paramArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *work = shim::graphs::MemoryWork{{params.paramArray, params.paramArray + params.count}};
  return CUDA_SUCCESS;
}

CUresult ToRecord(CUevent event, Work* work) {
  *work = shim::graphs::EventRecordWork{event};
  return IsEvent(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult ToWait(CUevent event, Work* work) {
  *work = shim::graphs::EventWaitWork{event};
  return IsEvent(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult ToChild(CUgraph program, Work* work) {
  std::shared_ptr<Graph> graph;
  const CUresult result = FindGraph(program, &graph);
  if (result == CUDA_SUCCESS) *work = shim::graphs::ChildWork{graph};
  return result;
}

CUresult ToWork(const CUgraphNodeParams& params, Work* work) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS_v3& kernel = params.kernel;
      return WorkOf({kernel.func, kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ,
                     kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ, kernel.sharedMemBytes,
                     kernel.kernelParams, kernel.extra, kernel.kern, kernel.ctx},
                    work);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return ToWork(params.memcpy.copyParams, work);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v2& set = params.memset;
      return ToWork(CUDA_MEMSET_NODE_PARAMS_v1{set.dst, set.pitch, set.value, set.elementSize,
                                               set.width, set.height},
                    work);
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      return ToWork(CUDA_HOST_NODE_PARAMS_v1{params.host.fn, params.host.userData}, work);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      *work = shim::graphs::EmptyWork{};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return ToChild(params.graph.graph, work);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return ToWait(params.eventWait.event, work);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return ToRecord(params.eventRecord.event, work);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return ToWork(CUDA_BATCH_MEM_OP_NODE_PARAMS_v1{params.memOp.ctx, params.memOp.count,
                                                     params.memOp.paramArray, params.memOp.flags},
                    work);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

// --- nodes ---------------------------------------------------------------------------------------

CUresult AddWork(const NodePlace& place, Work work) {
  std::shared_ptr<Graph> graph;
  std::vector<Node*> dependencies;
  if (place.out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = FindGraph(place.graph, &graph);
  if (result == CUDA_SUCCESS) result = FindNodes(place.dependencies, place.count, &dependencies);
  if (result != CUDA_SUCCESS) return result;
  Node* node = nullptr;
  result = graph->Add(std::move(work), std::move(dependencies), &node);
  if (result == CUDA_SUCCESS) *place.out = HandleOf(*node);
  return result;
}

CUresult SetWork(CUgraphNode program, Work work) {
  std::shared_ptr<Node> node;
  if (const CUresult result = FindNode(program, &node); result != CUDA_SUCCESS) return result;
  if (node->work.index() != work.index()) return CUDA_ERROR_INVALID_VALUE;
  node->param_pointers.clear();
  node->work = std::move(work);
  return CUDA_SUCCESS;
}

CUresult SetExecWork(CUgraphExec program, CUgraphNode node, Work work) {
  std::shared_ptr<Executable> executable;
  if (const CUresult result = FindExecutable(program, &executable); result != CUDA_SUCCESS)
    return result;
  return executable->SetWork(node, std::move(work));
}

}  // namespace local
