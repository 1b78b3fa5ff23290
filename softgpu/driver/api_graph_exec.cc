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

CUresult MakeExec(const Graph& graph, cuuint64_t flags, std::shared_ptr<GraphExec>* exec) {
  std::shared_ptr<Context> context;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  result = GraphExec::Create(graph, context, flags, exec);
  if (result == CUDA_SUCCESS) Driver::Get().graph_execs.Add(*exec);
  return result;
}

CUgraphExec HandleOf(GraphExec& exec) { return exec.handle(); }

void EndExec(GraphExec& exec) { Driver::Get().graph_execs.Remove(exec.handle()); }

CUresult CheckStream(CUstream handle) {
  std::shared_ptr<Stream> stream;
  return FindStream(handle, &stream);
}

CUresult LaunchExec(GraphExec& exec, CUstream handle) {
  std::shared_ptr<Stream> stream;
  CUresult result = FindStream(handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (IsCapturing(*stream)) {
    if (exec.HasConditional()) {
      AllCaptures().Invalidate(CaptureStreamOf(*stream));
      return ResultOf(graphs::Refusal::kConditionalCopied);
    }
    const std::shared_ptr<Graph> child = exec.ToGraph();
    result = AddToCapture(*stream, ChildWork{child});
    child->Destroy();  // the node has its own copy
    return result;
  }
  result = CheckLegacyCapture(*stream);
  return result == CUDA_SUCCESS ? exec.Launch(stream) : result;
}

}  // namespace

#include "ipc/calls/graph_execs.inc"

}  // namespace softgpu::api
