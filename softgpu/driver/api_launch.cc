// Kernel launches, host functions and stream callbacks.
#include <memory>
#include <utility>

#include "softgpu/driver/api.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/function.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/host_function.h"
#include "softgpu/driver/launch.h"
#include "softgpu/driver/stream.h"
#include "softgpu/driver/work.h"

namespace softgpu::api {
namespace {

CUresult Enqueue(CUfunction function_handle, CUstream stream_handle, const LaunchRequest& request) {
  std::shared_ptr<Stream> stream;
  std::shared_ptr<Function> function;
  CUresult result = FindFunction(function_handle, &function);
  if (result == CUDA_SUCCESS) result = FindStream(stream_handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  KernelWork work;
  result = PrepareLaunch(function, stream->context(), request, &work);
  if (result != CUDA_SUCCESS) return result;
  if (IsCapturing(*stream)) return AddToCapture(*stream, std::move(work));
  std::unique_ptr<Operation> operation = MakeLaunch(std::move(work));
  operation->SetStream(stream_handle);
  return SubmitChecked(stream, std::move(operation));
}

// Attributes that only hint at placement or scheduling are accepted; clusters need hardware that
// isn't there.
CUresult ReadAttributes(const CUlaunchConfig& config, LaunchRequest* request) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        request->cooperative = attribute.value.cooperative != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        if (uint64_t{attribute.value.clusterDim.x} * attribute.value.clusterDim.y *
                attribute.value.clusterDim.z >
            1) {
          return Fail(CUDA_ERROR_INVALID_CLUSTER_SIZE, "the device has no clusters");
        }
        break;
      default:
        break;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void** kernel_params, void** extra) {
  LaunchRequest request;
  request.grid = {grid_x, grid_y, grid_z};
  request.block = {block_x, block_y, block_z};
  request.dynamic_shared_bytes = shared_bytes;
  request.kernel_params = kernel_params;
  request.extra = extra;
  return Enqueue(function, stream, request);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                   void** kernel_params) {
  LaunchRequest request;
  request.grid = {grid_x, grid_y, grid_z};
  request.block = {block_x, block_y, block_z};
  request.dynamic_shared_bytes = shared_bytes;
  request.cooperative = true;
  request.kernel_params = kernel_params;
  return Enqueue(function, stream, request);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** kernel_params,
                          void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LaunchRequest request;
  request.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
  request.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
  request.dynamic_shared_bytes = config->sharedMemBytes;
  request.kernel_params = kernel_params;
  request.extra = extra;
  const CUresult result = ReadAttributes(*config, &request);
  return result == CUDA_SUCCESS ? Enqueue(function, config->hStream, request) : result;
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  std::shared_ptr<Stream> stream;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindStream(handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (IsCapturing(*stream)) return AddToCapture(*stream, HostWork{function, data});
  std::unique_ptr<Operation> operation = MakeHostFunction(function, data);
  operation->SetStream(handle);
  return SubmitChecked(stream, std::move(operation));
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* data,
                             unsigned int flags) {
  std::shared_ptr<Stream> stream;
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindStream(handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (IsCapturing(*stream)) return RefuseWhileCapturing(*stream);
  return SubmitChecked(stream, MakeCallback(handle, callback, data));
}

}  // namespace softgpu::api
