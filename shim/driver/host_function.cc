// Host functions in streams.
#include "shim/host_functions.h"

#include "shim/driver/local.h"

namespace local {

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  shim::Stream* found = nullptr;
  if (const CUresult result = shim::State::Process().CurrentStream(stream, &found);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return shim::HostFunctions::Process().Launch(*found, function, data);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data,
                             unsigned flags) {
  shim::Stream* found = nullptr;
  if (const CUresult result = shim::State::Process().CurrentStream(stream, &found);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return shim::HostFunctions::Process().AddCallback(*found, stream, callback, data);
}

}  // namespace local
