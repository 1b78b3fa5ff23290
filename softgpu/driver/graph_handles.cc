#include "softgpu/driver/graph_handles.h"

#include "softgpu/driver/context.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/event.h"
#include "softgpu/driver/function.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/module.h"

namespace softgpu {

CUresult FindGraph(CUgraph handle, std::shared_ptr<Graph>* graph) {
  *graph = Driver::Get().graphs.Find(handle);
  return *graph != nullptr ? CUDA_SUCCESS : Fail(CUDA_ERROR_INVALID_VALUE, "this is no graph");
}

CUresult FindNode(CUgraphNode handle, std::shared_ptr<GraphNode>* node) {
  *node = Driver::Get().graph_nodes.Find(handle);
  return *node != nullptr ? CUDA_SUCCESS : Fail(CUDA_ERROR_INVALID_VALUE, "this is no graph node");
}

CUresult FindNodes(const CUgraphNode* handles, size_t count, std::vector<GraphNode*>* nodes) {
  if (handles == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    std::shared_ptr<GraphNode> node;
    const CUresult result = FindNode(handles[i], &node);
    if (result != CUDA_SUCCESS) return result;
    nodes->push_back(node.get());
  }
  return CUDA_SUCCESS;
}

CUresult FindExec(CUgraphExec handle, std::shared_ptr<GraphExec>* exec) {
  *exec = Driver::Get().graph_execs.Find(handle);
  return *exec != nullptr ? CUDA_SUCCESS
                          : Fail(CUDA_ERROR_INVALID_VALUE, "this is no executable graph");
}

CUresult ToWork(const CUDA_KERNEL_NODE_PARAMS_v2& params, Work* work) {
  std::shared_ptr<Function> function;
  const CUfunction handle =
      params.func != nullptr ? params.func : reinterpret_cast<CUfunction>(params.kern);
  CUresult result = FindFunction(handle, &function);
  if (result != CUDA_SUCCESS) return result;
  std::shared_ptr<Context> context;
  result = FindContext(params.ctx, &context);
  if (result != CUDA_SUCCESS) return result;
  LaunchRequest request;
  request.grid = {params.gridDimX, params.gridDimY, params.gridDimZ};
  request.block = {params.blockDimX, params.blockDimY, params.blockDimZ};
  request.dynamic_shared_bytes = params.sharedMemBytes;
  request.kernel_params = params.kernelParams;
  request.extra = params.extra;
  KernelWork kernel;
  result = PrepareLaunch(function, context, request, &kernel);
  if (result == CUDA_SUCCESS) *work = std::move(kernel);
  return result;
}

// The first version of the structure lacks the last two members.
CUresult ToWork(const CUDA_KERNEL_NODE_PARAMS_v1& params, Work* work) {
  return ToWork(CUDA_KERNEL_NODE_PARAMS_v2{params.func, params.gridDimX, params.gridDimY,
                                           params.gridDimZ, params.blockDimX, params.blockDimY,
                                           params.blockDimZ, params.sharedMemBytes,
                                           params.kernelParams, params.extra, nullptr, nullptr},
                work);
}

CUresult ToWork(const CUDA_MEMCPY3D& params, Work* work) {
  CopyBox box;
  CUresult result = BoxOf(params, &box);
  if (result == CUDA_SUCCESS) result = CheckCopy(box);
  if (result == CUDA_SUCCESS) *work = MemcpyWork{params};
  return result;
}

CUresult ToWork(const CUDA_MEMSET_NODE_PARAMS_v1& params, Work* work) {
  const Fill fill = {params.dst,    params.pitch, params.width,
                     params.height, params.value, params.elementSize};
  const CUresult result = CheckFill(fill);
  if (result == CUDA_SUCCESS) *work = MemsetWork{fill};
  return result;
}

CUresult ToWork(const CUDA_HOST_NODE_PARAMS_v1& params, Work* work) {
  if (params.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *work = HostWork{params.fn, params.userData};
  return CUDA_SUCCESS;
}

CUresult ToWork(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1& params, Work* work) {
  if (params.paramArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *work = MemoryWork{{params.paramArray, params.paramArray + params.count}};
  return CUDA_SUCCESS;
}

namespace {

template <class EventWork>
CUresult EventToWork(CUevent handle, Work* work) {
  std::shared_ptr<Event> event;
  const CUresult result = FindEvent(handle, &event);
  if (result == CUDA_SUCCESS) *work = EventWork{event};
  return result;
}

}  // namespace

CUresult ToRecord(CUevent event, Work* work) { return EventToWork<EventRecordWork>(event, work); }

CUresult ToWait(CUevent event, Work* work) { return EventToWork<EventWaitWork>(event, work); }

CUresult ToChild(CUgraph handle, Work* work) {
  std::shared_ptr<Graph> graph;
  const CUresult result = FindGraph(handle, &graph);
  if (result == CUDA_SUCCESS) *work = ChildWork{graph};
  return result;
}

CUresult ToWork(const CUgraphNodeParams& params, Work* work) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS_v3& kernel = params.kernel;
      return ToWork(
          CUDA_KERNEL_NODE_PARAMS_v2{kernel.func, kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ,
                                     kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ,
                                     kernel.sharedMemBytes, kernel.kernelParams, kernel.extra,
                                     kernel.kern, kernel.ctx},
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
      *work = EmptyWork{};
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
      return Fail(CUDA_ERROR_NOT_SUPPORTED,
                  "conditional and semaphore nodes are not supported, memory nodes can't change");
  }
}

}  // namespace softgpu
