// Kernels as objects: look-up, attributes, parameters, occupancy.
#include "runtime/function.h"

#include "runtime/api.h"
#include "runtime/driver.h"
#include "runtime/library.h"
#include "runtime/registration.h"

namespace runtime {
namespace {

// Attributes are passed by number: a launch attribute of either interface is the same 72 bytes.
static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));

int Attribute(CUfunction function, CUfunction_attribute attribute, cudaError_t* error) {
  int value = 0;
  if (*error == cudaSuccess) *error = Driver().cuFuncGetAttribute(&value, attribute, function);
  return value;
}

// Attributes that came after compute capability 8: a driver that does not know one reads 0.
int NewAttribute(CUfunction function, CUfunction_attribute attribute) {
  int value = 0;
  Driver().cuFuncGetAttribute(&value, attribute, function);
  return value;
}

}  // namespace

cudaError_t FindFunction(const void* func, CUfunction* function) {
  if (Kernel* const kernel = FindKernel(func)) return kernel->Function(function);
  if (IsKernelHandle(func)) {
    return static_cast<Kernel*>(const_cast<void*>(func))->Function(function);
  }
  return FindLibraryFunction(func, function);
}

CUlaunchConfig ToDriver(const cudaLaunchConfig_t& config) {
  CUlaunchConfig driver = {};
  driver.gridDimX = config.gridDim.x;
  driver.gridDimY = config.gridDim.y;
  driver.gridDimZ = config.gridDim.z;
  driver.blockDimX = config.blockDim.x;
  driver.blockDimY = config.blockDim.y;
  driver.blockDimZ = config.blockDim.z;
  driver.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
  driver.hStream = config.stream;
  driver.attrs = reinterpret_cast<CUlaunchAttribute*>(config.attrs);
  driver.numAttrs = config.numAttrs;
  return driver;
}

namespace api {

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* func) {
  if (attributes == nullptr) return cudaErrorInvalidValue;
  CUfunction f = nullptr;
  cudaError_t error = FindFunction(func, &f);
  if (error != cudaSuccess) return error;
  cudaFuncAttributes a = {};
  a.sharedSizeBytes = Attribute(f, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &error);
  a.constSizeBytes = Attribute(f, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &error);
  a.localSizeBytes = Attribute(f, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &error);
  a.maxThreadsPerBlock = Attribute(f, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &error);
  a.numRegs = Attribute(f, CU_FUNC_ATTRIBUTE_NUM_REGS, &error);
  a.ptxVersion = Attribute(f, CU_FUNC_ATTRIBUTE_PTX_VERSION, &error);
  a.binaryVersion = Attribute(f, CU_FUNC_ATTRIBUTE_BINARY_VERSION, &error);
  a.cacheModeCA = Attribute(f, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &error);
  a.maxDynamicSharedSizeBytes =
      Attribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &error);
  a.preferredShmemCarveout =
      Attribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &error);
  a.clusterDimMustBeSet = NewAttribute(f, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
  a.requiredClusterWidth = NewAttribute(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
  a.requiredClusterHeight = NewAttribute(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
  a.requiredClusterDepth = NewAttribute(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
  a.clusterSchedulingPolicyPreference =
      NewAttribute(f, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
  a.nonPortableClusterSizeAllowed =
      NewAttribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
  if (error == cudaSuccess) *attributes = a;
  return error;
}

cudaError_t cudaFuncSetAttribute(const void* func, cudaFuncAttribute attribute, int value) {
  CUfunction function = nullptr;
  const cudaError_t error = FindFunction(func, &function);
  if (error != cudaSuccess) return error;
  return Driver().cuFuncSetAttribute(function, static_cast<CUfunction_attribute>(attribute), value);
}

cudaError_t cudaFuncSetCacheConfig(const void* func, cudaFuncCache config) {
  CUfunction function = nullptr;
  const cudaError_t error = FindFunction(func, &function);
  if (error != cudaSuccess) return error;
  return Driver().cuFuncSetCacheConfig(function, static_cast<CUfunc_cache>(config));
}

// Banks have had one width since compute capability 5: there is nothing to set.
cudaError_t cudaFuncSetSharedMemConfig(const void* func, cudaSharedMemConfig) {
  CUfunction function = nullptr;
  return FindFunction(func, &function);
}

cudaError_t cudaFuncGetName(const char** name, const void* func) {
  CUfunction function = nullptr;
  const cudaError_t error = FindFunction(func, &function);
  if (error != cudaSuccess) return error;
  return Driver().cuFuncGetName(name, function);
}

cudaError_t cudaFuncGetParamInfo(const void* func, size_t index, size_t* offset, size_t* bytes) {
  CUfunction function = nullptr;
  const cudaError_t error = FindFunction(func, &function);
  if (error != cudaSuccess) return error;
  return Driver().cuFuncGetParamInfo(function, index, offset, bytes);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  if (function == nullptr) return cudaErrorInvalidValue;
  return FindFunction(symbol, function);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* func,
                                                                   int block_size,
                                                                   size_t shared_bytes,
                                                                   unsigned flags) {
  CUfunction function = nullptr;
  const cudaError_t error = FindFunction(func, &function);
  if (error != cudaSuccess) return error;
  return Driver().cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size,
                                                                       shared_bytes, flags);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* func,
                                                          int block_size, size_t shared_bytes) {
  return api::cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      blocks, func, block_size, shared_bytes, cudaOccupancyDefault);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* shared_bytes, const void* func,
                                                      int blocks, int block_size) {
  CUfunction function = nullptr;
  const cudaError_t error = FindFunction(func, &function);
  if (error != cudaSuccess) return error;
  return Driver().cuOccupancyAvailableDynamicSMemPerBlock(shared_bytes, function, blocks,
                                                          block_size);
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* func,
                                                 const cudaLaunchConfig_t* config) {
  if (config == nullptr) return cudaErrorInvalidValue;
  CUfunction function = nullptr;
  const cudaError_t error = FindFunction(func, &function);
  if (error != cudaSuccess) return error;
  const CUlaunchConfig launch = ToDriver(*config);
  return Driver().cuOccupancyMaxPotentialClusterSize(size, function, &launch);
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* func,
                                           const cudaLaunchConfig_t* config) {
  if (config == nullptr) return cudaErrorInvalidValue;
  CUfunction function = nullptr;
  const cudaError_t error = FindFunction(func, &function);
  if (error != cudaSuccess) return error;
  const CUlaunchConfig launch = ToDriver(*config);
  return Driver().cuOccupancyMaxActiveClusters(clusters, function, &launch);
}

}  // namespace api
}  // namespace runtime
