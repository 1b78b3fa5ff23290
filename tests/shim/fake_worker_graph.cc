// What the pretended worker makes of graphs: it keeps their edges.
#include <utility>

#include "tests/shim/fake_worker.h"

namespace shim_test {

CUresult FakeWorker::GraphBegin(CUgraphExec*) { return CUDA_SUCCESS; }
CUresult FakeWorker::GraphKernel(CUgraphExec, unsigned, CUfunction, unsigned, unsigned, unsigned,
                                 unsigned, unsigned, unsigned, unsigned, unsigned, const void*,
                                 unsigned) {
  return CUDA_SUCCESS;
}
CUresult FakeWorker::GraphFill(CUgraphExec, unsigned, CUdeviceptr, size_t, unsigned, unsigned,
                               size_t, size_t) {
  return CUDA_SUCCESS;
}
CUresult FakeWorker::GraphCopy(CUgraphExec, unsigned, CUdeviceptr, size_t, CUdeviceptr, size_t,
                               size_t, size_t) {
  return CUDA_SUCCESS;
}
CUresult FakeWorker::GraphEmpty(CUgraphExec, unsigned) { return CUDA_SUCCESS; }
CUresult FakeWorker::GraphEdges(CUgraphExec, unsigned, const uint32_t* edges, unsigned count) {
  for (unsigned i = 0; i < count; i += 2) edges_.emplace_back(edges[i], edges[i + 1]);
  return CUDA_SUCCESS;
}
CUresult FakeWorker::GraphChild(CUgraphExec, unsigned, CUgraphExec) { return CUDA_SUCCESS; }
CUresult FakeWorker::GraphSeal(CUgraphExec) { return Fault("GraphSeal"); }
CUresult FakeWorker::GraphSetKernel(CUgraphExec, unsigned, CUfunction, unsigned, unsigned, unsigned,
                                    unsigned, unsigned, unsigned, unsigned, const void*, unsigned) {
  return CUDA_SUCCESS;
}
CUresult FakeWorker::GraphLaunch(CUgraphExec, CUstream) { return CUDA_SUCCESS; }
CUresult FakeWorker::GraphEnd(CUgraphExec) { return CUDA_SUCCESS; }
CUresult FakeWorker::GraphCapture(CUgraphExec*) { return CUDA_SUCCESS; }
CUresult FakeWorker::GraphCaptured(CUgraphExec) { return CUDA_SUCCESS; }

std::vector<std::pair<uint32_t, uint32_t>> FakeWorker::TakeEdges() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(edges_, {});
}

}  // namespace shim_test
