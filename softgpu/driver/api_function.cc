// Kernels of modules: attributes, parameter layout, occupancy.
#include <algorithm>
#include <memory>

#include "softgpu/driver/api.h"
#include "softgpu/driver/device.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/function.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/launch.h"
#include "softgpu/driver/module.h"

namespace softgpu::api {
namespace {

constexpr int kBlockThreadsMax = 1024, kWarpThreads = 32;
constexpr size_t kSharedBytesPerMultiprocessor = 163 << 10;

CUresult FindLoaded(CUfunction handle, std::shared_ptr<Function>* function,
                    std::shared_ptr<Module>* module) {
  const CUresult result = FindFunction(handle, function);
  if (result != CUDA_SUCCESS) return result;
  *module = (*function)->module();
  return *module != nullptr ? CUDA_SUCCESS
                            : Fail(CUDA_ERROR_INVALID_HANDLE, "the module is unloaded");
}

}  // namespace

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  std::shared_ptr<Function> function;
  std::shared_ptr<Module> module;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindLoaded(handle, &function, &module);
  if (result != CUDA_SUCCESS) return result;
  return function->attributes().Get(function->kernel(), module->ptx(), Driver::Get().config(),
                                    attribute, value);
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  std::shared_ptr<Function> function;
  const CUresult result = FindFunction(handle, &function);
  if (result != CUDA_SUCCESS) return result;
  return function->attributes().Set(function->kernel(), attribute, value);
}

CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache) {
  std::shared_ptr<Function> function;
  return FindFunction(handle, &function);
}

CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig) {
  std::shared_ptr<Function> function;
  return FindFunction(handle, &function);
}

CUresult cuFuncGetModule(CUmodule* out, CUfunction handle) {
  std::shared_ptr<Function> function;
  std::shared_ptr<Module> module;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindLoaded(handle, &function, &module);
  if (result == CUDA_SUCCESS) *out = module->handle();
  return result;
}

CUresult cuFuncGetName(const char** name, CUfunction handle) {
  std::shared_ptr<Function> function;
  std::shared_ptr<Module> module;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindLoaded(handle, &function, &module);
  if (result == CUDA_SUCCESS) *name = function->kernel().name().c_str();
  return result;
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* bytes) {
  std::shared_ptr<Function> function;
  std::shared_ptr<Module> module;
  if (offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindLoaded(handle, &function, &module);
  if (result != CUDA_SUCCESS) return result;
  if (index >= function->kernel().params().size()) return CUDA_ERROR_INVALID_VALUE;
  const ParamInfo& param = function->kernel().params()[index];
  *offset = param.offset;
  if (bytes != nullptr) *bytes = param.bytes;
  return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  std::shared_ptr<Function> function;
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return FindFunction(handle, &function);
}

CUresult cuFuncLoad(CUfunction handle) {
  std::shared_ptr<Function> function;
  return FindFunction(handle, &function);
}

// --- occupancy

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction handle,
                                                              int block_threads,
                                                              size_t dynamic_shared_bytes,
                                                              unsigned int) {
  std::shared_ptr<Function> function;
  if (blocks == nullptr || block_threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindFunction(handle, &function);
  if (result != CUDA_SUCCESS) return result;
  *blocks = BlocksPerMultiprocessor(*function, static_cast<uint64_t>(block_threads),
                                    dynamic_shared_bytes);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle,
                                                     int block_threads,
                                                     size_t dynamic_shared_bytes) {
  return api::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, block_threads,
                                                                   dynamic_shared_bytes, 0);
}

// The block size with the most resident threads; the largest one among equals.
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction handle,
                                                   CUoccupancyB2DSize shared_of_block,
                                                   size_t dynamic_shared_bytes, int limit,
                                                   unsigned int) {
  std::shared_ptr<Function> function;
  if (grid == nullptr || block == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindFunction(handle, &function);
  if (result != CUDA_SUCCESS) return result;
  int most = std::min<int>(kBlockThreadsMax, static_cast<int>(function->kernel().threads_max()));
  if (limit > 0) most = std::min(most, limit);
  int best_threads = 0;
  for (int threads = most; threads > 0; threads = (threads - 1) / kWarpThreads * kWarpThreads) {
    const size_t shared_bytes =
        shared_of_block != nullptr ? shared_of_block(threads) : dynamic_shared_bytes;
    const int blocks =
        BlocksPerMultiprocessor(*function, static_cast<uint64_t>(threads), shared_bytes);
    if (blocks * threads <= best_threads) continue;
    best_threads = blocks * threads;
    *block = threads;
    *grid = blocks * static_cast<int>(Driver::Get().config().sms);
  }
  return best_threads > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction handle,
                                          CUoccupancyB2DSize shared_of_block,
                                          size_t dynamic_shared_bytes, int limit) {
  return api::cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, handle, shared_of_block,
                                                        dynamic_shared_bytes, limit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction handle, int blocks,
                                                 int) {
  std::shared_ptr<Function> function;
  if (bytes == nullptr || blocks <= 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindFunction(handle, &function);
  if (result != CUDA_SUCCESS) return result;
  const size_t share = kSharedBytesPerMultiprocessor / static_cast<size_t>(blocks);
  const size_t used = function->kernel().static_shared_bytes();
  *bytes = share > used ? share - used : 0;
  return CUDA_SUCCESS;
}

// A cluster here is one block.
CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction handle,
                                      const CUlaunchConfig* config) {
  std::shared_ptr<Function> function;
  if (clusters == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindFunction(handle, &function);
  if (result != CUDA_SUCCESS) return result;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config->attrs[i];
    if (attribute.id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& size = attribute.value.clusterDim;
    if (uint64_t{size.x} * size.y * size.z > 1) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  const uint64_t threads = uint64_t{config->blockDimX} * config->blockDimY * config->blockDimZ;
  *clusters = BlocksPerMultiprocessor(*function, threads, config->sharedMemBytes) *
              static_cast<int>(Driver::Get().config().sms);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction, const CUlaunchConfig*) {
  if (size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *size = 1;
  return CUDA_SUCCESS;
}

}  // namespace softgpu::api
