// Executable graphs: instantiation, launch, update.
#include <memory>

#include "shim/driver/graph_lookup.h"
#include "shim/driver/local.h"
#include "shim/graphs/capture.h"
#include "shim/streams.h"

namespace local {
namespace {

CUresult MakeExec(const Graph& graph, cuuint64_t flags, std::shared_ptr<Executable>* exec) {
  shim::Context* context = nullptr;
  const CUresult result = shim::State::Process().Current(&context);
  return result == CUDA_SUCCESS ? Executable::Create(graph, flags, exec) : result;
}

CUgraphExec HandleOf(const Executable& exec) { return reinterpret_cast<CUgraphExec>(exec.value); }

void EndExec(Executable& exec) { Objects::Process().executables.Remove(exec.value); }

CUresult CheckStream(CUstream program) {
  shim::Stream* stream = nullptr;
  return shim::Streams::Process().UseCurrent(program, &stream);
}

CUresult LaunchExec(Executable& exec, CUstream program) {
  shim::Stream* stream = nullptr;
  const CUresult result = shim::Streams::Process().UseCurrent(program, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (shim::graphs::AnyCapture()) {
    if (const auto captured = shim::graphs::CaptureLaunch(*stream, &exec)) return *captured;
  }
  return exec.Launch(*stream);
}

}  // namespace

#include "ipc/calls/graph_execs.inc"

}  // namespace local
