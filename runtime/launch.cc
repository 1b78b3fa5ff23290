// Launching kernels and host functions.
#include <cstring>

#include "runtime/api.h"
#include "runtime/driver.h"
#include "runtime/function.h"
#include "runtime/registration.h"
#include "runtime/thread_state.h"

namespace runtime {
namespace {

constexpr unsigned kBlockThreadsMax = 1024;
constexpr unsigned kGridYZMax = 65535;

// The driver calls a bad shape an invalid value; the runtime has an error of its own for it.
cudaError_t NameLaunchError(cudaError_t error, dim3 grid, dim3 block) {
  if (error != cudaErrorInvalidValue) return error;
  const bool empty =
      grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const bool large = threads > kBlockThreadsMax || grid.x > 0x7fffffffu || grid.y > kGridYZMax ||
                     grid.z > kGridYZMax;
  return empty || large ? cudaErrorInvalidConfiguration : error;
}

cudaError_t Launch(CUfunction function, const LaunchConfiguration& shape, void** args) {
  const dim3 grid = shape.grid, block = shape.block;
  const cudaError_t error = Driver().cuLaunchKernel(
      function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
      static_cast<unsigned>(shape.shared_bytes), shape.stream, args, nullptr);
  return error == cudaSuccess ? error : NameLaunchError(error, grid, block);
}

}  // namespace

namespace api {

cudaError_t __cudaLaunchKernel(cudaKernel_t handle, dim3 grid, dim3 block, void** args,
                               size_t shared_bytes, cudaStream_t stream) {
  if (handle == nullptr) return cudaErrorInvalidDeviceFunction;
  CUfunction function = nullptr;
  const cudaError_t error = reinterpret_cast<Kernel*>(handle)->Function(&function);
  if (error != cudaSuccess) return error;
  return Launch(function, {grid, block, shared_bytes, stream}, args);
}

cudaError_t cudaLaunchKernel(const void* func, dim3 grid, dim3 block, void** args,
                             size_t shared_bytes, cudaStream_t stream) {
  CUfunction function = nullptr;
  const cudaError_t error = FindFunction(func, &function);
  if (error != cudaSuccess) return error;
  return Launch(function, {grid, block, shared_bytes, stream}, args);
}

cudaError_t cudaLaunchCooperativeKernel(const void* func, dim3 grid, dim3 block, void** args,
                                        size_t shared_bytes, cudaStream_t stream) {
  CUfunction function = nullptr;
  cudaError_t error = FindFunction(func, &function);
  if (error != cudaSuccess) return error;
  error = Driver().cuLaunchCooperativeKernel(function, grid.x, grid.y, grid.z, block.x, block.y,
                                             block.z, static_cast<unsigned>(shared_bytes), stream,
                                             args);
  return error == cudaSuccess ? error : NameLaunchError(error, grid, block);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* func, void** args) {
  if (config == nullptr) return cudaErrorInvalidValue;
  CUfunction function = nullptr;
  cudaError_t error = FindFunction(func, &function);
  if (error != cudaSuccess) return error;
  if (config->numAttrs == 0) {
    return Launch(function,
                  {config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream},
                  args);
  }
  const CUlaunchConfig launch = ToDriver(*config);
  error = Driver().cuLaunchKernelEx(&launch, function, args, nullptr);
  return error == cudaSuccess ? error : NameLaunchError(error, config->gridDim, config->blockDim);
}

}  // namespace api
}  // namespace runtime
