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

namespace {

CUresult RefuseNode() {
  return Fail(CUDA_ERROR_NOT_SUPPORTED,
              "semaphore nodes are not supported, conditional and memory nodes can't change");
}

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

#include "ipc/calls/graph_params.inc"

}  // namespace softgpu
