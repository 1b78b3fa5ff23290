#include "softgpu/cublas/core/stream_work.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "softgpu/cublas/core/operands.h"

namespace softgpu::cublas {
namespace {

using Work = std::function<void()>;

void Run(const Work& work) noexcept {
  try {
    work();
  } catch (const std::bad_alloc&) {
    std::fputs("softgpu cublas: out of host memory for a queued call's converted operands\n",
               stderr);
    std::abort();
  }
}

void CUDA_CB RunAndDelete(void* data) {
  const std::unique_ptr<Work> work(static_cast<Work*>(data));
  Run(*work);
}

void CUDA_CB RunAndKeep(void* data) { Run(*static_cast<const Work*>(data)); }

void CUDA_CB Delete(void* data) { delete static_cast<Work*>(data); }

// Gives `work` to the graph being captured, which deletes it with its last copy.
CUresult GiveToGraph(const Driver& driver, CUstream stream, std::unique_ptr<Work> work) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* dependencies = nullptr;
  size_t dependency_count = 0;
  CUresult result = driver.cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &dependencies,
                                                     &dependency_count);
  if (result != CUDA_SUCCESS) return result;
  CUuserObject owner = nullptr;
  result =
      driver.cuUserObjectCreate(&owner, work.get(), &Delete, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  if (result != CUDA_SUCCESS) return result;
  work.release();
  return driver.cuGraphRetainUserObject(graph, owner, 1, CU_GRAPH_USER_OBJECT_MOVE);
}

// With what the call needs looked for first.
Work WithItsMemory(Work work) {
  const CallRecord* const record = CallScope::Current();
  if (record == nullptr) return work;
  return [record = *record, work = std::move(work)] {
    if (record.RequireMemory()) work();
  };
}

}  // namespace

cublasStatus_t EnqueueOn(CUstream stream, Work work) {
  const Driver* const driver = Driver::Get();
  if (driver == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = driver->cuStreamIsCapturing(stream, &capture);
  // A device that doesn't know capturing isn't capturing.
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_SUPPORTED) return StatusOf(result);

  std::unique_ptr<Work> owned = std::make_unique<Work>(WithItsMemory(std::move(work)));
  Work* const address = owned.get();
  if (capture == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    result = GiveToGraph(*driver, stream, std::move(owned));
    if (result == CUDA_SUCCESS) result = driver->cuLaunchHostFunc(stream, &RunAndKeep, address);
    return StatusOf(result);
  }
  result = driver->cuLaunchHostFunc(stream, &RunAndDelete, address);
  if (result == CUDA_SUCCESS) owned.release();
  return StatusOf(result);
}

}  // namespace softgpu::cublas
