// Host functions in streams.
#include "shim/host_functions.h"

#include "shim/driver/local.h"
#include "shim/graphs/capture.h"
#include "shim/streams.h"

namespace local {

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  shim::Stream* found = nullptr;
  if (const CUresult result = shim::Streams::Process().UseCurrent(stream, &found);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (shim::graphs::AnyCapture()) {
    if (const auto captured =
            shim::graphs::CaptureWork(*found, shim::graphs::HostWork{function, data})) {
      return *captured;
    }
  }
  return shim::HostFunctions::Process().Launch(*found, function, data);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data,
                             unsigned flags) {
  shim::Stream* found = nullptr;
  if (const CUresult result = shim::Streams::Process().UseCurrent(stream, &found);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const auto refused = shim::graphs::RefuseWork(*found)) return *refused;
  return shim::HostFunctions::Process().AddCallback(*found, stream, callback, data);
}

}  // namespace local
