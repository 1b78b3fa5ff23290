// Where one iteration of the session ends and the next begins.
#include "daemon/worker/session_impl.h"
#include "ipc/futex.h"
#include "ipc/iteration_times.h"

namespace worker {

CUresult SessionImpl::Boundary(const ipc::BoundaryInfo*) {
  const uint64_t now_us = static_cast<uint64_t>(ipc::MonotonicNs() / 1000);
  // The first one ends whatever came before the iterations: there is no time to count it by.
  ipc::CountIteration(&file_.page()->iteration_times, now_us,
                      last_boundary_us_ == 0 ? 0 : now_us - last_boundary_us_);
  last_boundary_us_ = now_us;
  return CUDA_SUCCESS;
}

}  // namespace worker
