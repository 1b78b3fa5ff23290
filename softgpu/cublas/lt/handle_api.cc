// Handles of cublasLt, versions, statuses, the logger, and the heuristics cache, which holds
// nothing.
#include <atomic>
#include <cstdio>

#include "softgpu/cublas/api/bind.h"
#include "softgpu/cublas/core/status_text.h"
#include "softgpu/cublas/lt/objects.h"

namespace softgpu::cublas {
namespace {

cublasStatus_t Create(cublasLtHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  return Handle::Create(reinterpret_cast<Handle**>(handle));
}

cublasStatus_t Destroy(cublasLtHandle_t handle) {
  Handle* const alive = Handle::From(handle);
  return alive == nullptr ? CUBLAS_STATUS_NOT_INITIALIZED : Handle::Destroy(alive);
}

size_t GetVersion() { return CUBLAS_VERSION; }
size_t GetCudartVersion() { return CUDA_VERSION; }

cublasStatus_t GetProperty(libraryPropertyType type, int* value) {
  if (value == nullptr || type < MAJOR_VERSION || type > PATCH_LEVEL) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  constexpr int kParts[] = {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};
  *value = kParts[type];
  return CUBLAS_STATUS_SUCCESS;
}

std::atomic<size_t> g_heuristics_cache_capacity{0};

cublasStatus_t HeuristicsCacheGetCapacity(size_t* capacity) {
  if (capacity == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *capacity = g_heuristics_cache_capacity.load();
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t HeuristicsCacheSetCapacity(size_t capacity) {
  g_heuristics_cache_capacity.store(capacity);
  return CUBLAS_STATUS_SUCCESS;
}

// Nothing is ever logged.
cublasStatus_t SetCallback(cublasLtLoggerCallback_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t SetFile(FILE*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t OpenFile(const char*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t SetLevelOrMask(int) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t ForceDisable() { return CUBLAS_STATUS_SUCCESS; }

}  // namespace
}  // namespace softgpu::cublas

using namespace softgpu::cublas;  // NOLINT: the exports below are C symbols

SOFTGPU_EXPORT(cublasLtCreate, &Create)
SOFTGPU_EXPORT(cublasLtDestroy, &Destroy)
SOFTGPU_EXPORT(cublasLtGetVersion, &GetVersion)
SOFTGPU_EXPORT(cublasLtGetCudartVersion, &GetCudartVersion)
SOFTGPU_EXPORT(cublasLtGetProperty, &GetProperty)
SOFTGPU_EXPORT(cublasLtGetStatusName, &StatusName)
SOFTGPU_EXPORT(cublasLtGetStatusString, &StatusMeaning)
SOFTGPU_EXPORT(cublasLtHeuristicsCacheGetCapacity, &HeuristicsCacheGetCapacity)
SOFTGPU_EXPORT(cublasLtHeuristicsCacheSetCapacity, &HeuristicsCacheSetCapacity)
SOFTGPU_EXPORT(cublasLtLoggerSetCallback, &SetCallback)
SOFTGPU_EXPORT(cublasLtLoggerSetFile, &SetFile)
SOFTGPU_EXPORT(cublasLtLoggerOpenFile, &OpenFile)
SOFTGPU_EXPORT(cublasLtLoggerSetLevel, &SetLevelOrMask)
SOFTGPU_EXPORT(cublasLtLoggerSetMask, &SetLevelOrMask)
SOFTGPU_EXPORT(cublasLtLoggerForceDisable, &ForceDisable)
