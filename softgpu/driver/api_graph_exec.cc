// Executable graphs: instantiation, launch, update.
#include <memory>

#include "softgpu/driver/api.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/graph_exec.h"
#include "softgpu/driver/graph_handles.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/stream.h"

namespace softgpu::api {
namespace {

constexpr cuuint64_t kKnownFlags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                   CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                   CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

CUresult Instantiate(CUgraphExec* out, CUgraph handle, cuuint64_t flags) {
  std::shared_ptr<Graph> graph;
  std::shared_ptr<Context> context;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & ~kKnownFlags) != 0)
    return Fail(CUDA_ERROR_NOT_SUPPORTED, "graphs can't be launched from kernels");
  CUresult result = FindGraph(handle, &graph);
  if (result == CUDA_SUCCESS) result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  std::shared_ptr<GraphExec> exec;
  result = GraphExec::Create(*graph, context, flags, &exec);
  if (result != CUDA_SUCCESS) return result;
  Driver::Get().graph_execs.Add(exec);
  *out = exec->handle();
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  return Instantiate(out, graph, flags);
}

CUresult cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode* error_node, char* log,
                               size_t log_bytes) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && log_bytes != 0) *log = '\0';
  return Instantiate(out, graph, 0);
}

CUresult cuGraphInstantiate(CUgraphExec* out, CUgraph graph, CUgraphNode* error_node, char* log,
                            size_t log_bytes) {
  return api::cuGraphInstantiate_v2(out, graph, error_node, log, log_bytes);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Instantiate(out, graph, params->flags);
  params->hErrNode_out = nullptr;
  params->result_out =
      result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return result;
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
  const std::shared_ptr<GraphExec> exec = Driver::Get().graph_execs.Remove(handle);
  return exec != nullptr ? CUDA_SUCCESS
                         : Fail(CUDA_ERROR_INVALID_VALUE, "this is no executable graph");
}

CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  std::shared_ptr<GraphExec> exec;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindExec(handle, &exec);
  if (result == CUDA_SUCCESS) *flags = exec->flags();
  return result;
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream stream_handle) {
  std::shared_ptr<GraphExec> exec;
  std::shared_ptr<Stream> stream;
  const CUresult result = FindExec(handle, &exec);
  return result == CUDA_SUCCESS ? FindStream(stream_handle, &stream) : result;
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  std::shared_ptr<GraphExec> exec;
  std::shared_ptr<Stream> stream;
  CUresult result = FindExec(handle, &exec);
  if (result == CUDA_SUCCESS) result = FindStream(stream_handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (IsCapturing(*stream)) {
    const std::shared_ptr<Graph> child = exec->ToGraph();
    result = AddToCapture(*stream, ChildWork{child});
    child->Destroy();  // the node has its own copy
    return result;
  }
  result = CheckLegacyCapture(*stream);
  return result == CUDA_SUCCESS ? exec->Launch(stream) : result;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle,
                              CUgraphExecUpdateResultInfo* info) {
  std::shared_ptr<GraphExec> exec;
  std::shared_ptr<Graph> graph;
  if (info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = FindExec(handle, &exec);
  if (result == CUDA_SUCCESS) result = FindGraph(graph_handle, &graph);
  return result == CUDA_SUCCESS ? exec->Update(*graph, info) : result;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                           CUgraphExecUpdateResult* update_result) {
  CUgraphExecUpdateResultInfo info = {};
  const CUresult result = api::cuGraphExecUpdate_v2(exec, graph, &info);
  if (error_node != nullptr) *error_node = info.errorNode;
  if (update_result != nullptr) *update_result = info.result;
  return result;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode node, unsigned int enabled) {
  std::shared_ptr<GraphExec> exec;
  const CUresult result = FindExec(handle, &exec);
  if (result != CUDA_SUCCESS) return result;
  return exec->SetEnabled(node, enabled != 0);
}

CUresult cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode node, unsigned int* enabled) {
  std::shared_ptr<GraphExec> exec;
  bool value = false;
  if (enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = FindExec(handle, &exec);
  if (result == CUDA_SUCCESS) {
    result = exec->GetEnabled(node, &value);
  }
  if (result == CUDA_SUCCESS) *enabled = value ? 1 : 0;
  return result;
}

}  // namespace softgpu::api
