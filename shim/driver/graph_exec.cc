// Executable graphs: instantiation, launch, update.
#include <memory>

#include "shim/driver/graph_lookup.h"
#include "shim/driver/local.h"
#include "shim/graphs/capture.h"
#include "shim/streams.h"

namespace local {
namespace {

constexpr cuuint64_t kKnownFlags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                   CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                   CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

CUresult Instantiate(CUgraphExec* out, CUgraph program, cuuint64_t flags) {
  std::shared_ptr<Graph> graph;
  shim::Context* context = nullptr;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & ~kKnownFlags) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  CUresult result = FindGraph(program, &graph);
  if (result == CUDA_SUCCESS) result = shim::State::Process().Current(&context);
  if (result != CUDA_SUCCESS) return result;
  std::shared_ptr<Executable> executable;
  result = Executable::Create(*graph, flags, &executable);
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUgraphExec>(executable->value);
  return result;
}

CUresult FindBoth(CUgraphExec program, CUstream stream_program,
                  std::shared_ptr<Executable>* executable, shim::Stream** stream) {
  const CUresult result = FindExecutable(program, executable);
  if (result != CUDA_SUCCESS) return result;
  return shim::Streams::Process().UseCurrent(stream_program, stream);
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
  return local::cuGraphInstantiate_v2(out, graph, error_node, log, log_bytes);
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

CUresult cuGraphExecDestroy(CUgraphExec program) {
  std::shared_ptr<Executable> executable;
  const CUresult result = FindExecutable(program, &executable);
  if (result == CUDA_SUCCESS) Objects::Process().executables.Remove(executable->value);
  return result;
}

CUresult cuGraphExecGetFlags(CUgraphExec program, cuuint64_t* flags) {
  std::shared_ptr<Executable> executable;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindExecutable(program, &executable);
  if (result == CUDA_SUCCESS) *flags = executable->flags();
  return result;
}

CUresult cuGraphUpload(CUgraphExec program, CUstream stream_program) {
  std::shared_ptr<Executable> executable;
  shim::Stream* stream = nullptr;
  return FindBoth(program, stream_program, &executable, &stream);
}

CUresult cuGraphLaunch(CUgraphExec program, CUstream stream_program) {
  std::shared_ptr<Executable> executable;
  shim::Stream* stream = nullptr;
  const CUresult result = FindBoth(program, stream_program, &executable, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (shim::graphs::AnyCapture()) {
    if (const auto captured = shim::graphs::CaptureLaunch(*stream, executable.get()))
      return *captured;
  }
  return executable->Launch(*stream);
}

CUresult cuGraphExecUpdate_v2(CUgraphExec program, CUgraph graph_program,
                              CUgraphExecUpdateResultInfo* info) {
  std::shared_ptr<Executable> executable;
  std::shared_ptr<Graph> graph;
  if (info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = FindExecutable(program, &executable);
  if (result == CUDA_SUCCESS) result = FindGraph(graph_program, &graph);
  return result == CUDA_SUCCESS ? executable->Update(*graph, info) : result;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                           CUgraphExecUpdateResult* update_result) {
  CUgraphExecUpdateResultInfo info = {};
  const CUresult result = local::cuGraphExecUpdate_v2(exec, graph, &info);
  if (error_node != nullptr) *error_node = info.errorNode;
  if (update_result != nullptr) *update_result = info.result;
  return result;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec program, CUgraphNode node, unsigned enabled) {
  std::shared_ptr<Executable> executable;
  const CUresult result = FindExecutable(program, &executable);
  if (result != CUDA_SUCCESS) return result;
  return executable->SetEnabled(node, enabled != 0);
}

CUresult cuGraphNodeGetEnabled(CUgraphExec program, CUgraphNode node, unsigned* enabled) {
  std::shared_ptr<Executable> executable;
  bool value = false;
  if (enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = FindExecutable(program, &executable);
  if (result == CUDA_SUCCESS) result = executable->GetEnabled(node, &value);
  if (result == CUDA_SUCCESS) *enabled = value ? 1 : 0;
  return result;
}

}  // namespace local
