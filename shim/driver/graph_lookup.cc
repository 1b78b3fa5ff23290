#include "shim/driver/graph_lookup.h"

#include "shim/client.h"
#include "shim/copy_box.h"
#include "shim/driver/launch_request.h"

namespace local {
namespace {

using shim::graphs::ChildWork;
using shim::graphs::EmptyWork;
using shim::graphs::HostWork;
using shim::graphs::KernelWork;
using shim::graphs::MemoryWork;

template <class T, class Handle>
CUresult Find(const shim::graphs::Registry<T>& registry, Handle program,
              std::shared_ptr<T>* object) {
  if (const CUresult result = shim::Client::Process().Ready(); result != CUDA_SUCCESS)
    return result;
  *object = registry.Find(program);
  return *object != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult RefuseNode() { return CUDA_ERROR_NOT_SUPPORTED; }

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

CUresult FindExec(CUgraphExec program, std::shared_ptr<Executable>* executable) {
  return Find(Objects::Process().executables, program, executable);
}

// --- work ----------------------------------------------------------------------------------------

CUresult ToWork(const CUDA_KERNEL_NODE_PARAMS_v2& params, Work* work) {
  return WorkOf(params, work);
}

CUresult ToWork(const CUDA_MEMCPY3D& params, Work* work) {
  const CUresult result = shim::CheckCopy(params);
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

CUresult ToRecord(CUevent event, Work* work) {
  *work = shim::graphs::EventRecordWork{event};
  return IsEvent(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult ToWait(CUevent event, Work* work) {
  *work = shim::graphs::EventWaitWork{event};
  return IsEvent(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

#include "ipc/calls/graph_params.inc"

}  // namespace local
