// Handles and their settings, versions, statuses, the logger.
//
// Math modes, atomics modes, workspaces, emulation settings and the logger are kept and returned
// but change nothing: results here have full precision, are deterministic, and need no device
// memory.
#include "softgpu/cublas/api/bind.h"
#include "softgpu/cublas/core/status_text.h"

namespace softgpu::cublas {
namespace {

cublasStatus_t Create(cublasHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  return Handle::Create(reinterpret_cast<Handle**>(handle));
}

cublasStatus_t Destroy(Handle& handle) { return Handle::Destroy(&handle); }

// Programs ask before they have a handle: the vendor's looks at none.
cublasStatus_t GetVersion(cublasHandle_t, int* version) {
  if (version == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t GetProperty(libraryPropertyType type, int* value) {
  if (value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (type) {
    case MAJOR_VERSION:
      *value = CUBLAS_VER_MAJOR;
      return CUBLAS_STATUS_SUCCESS;
    case MINOR_VERSION:
      *value = CUBLAS_VER_MINOR;
      return CUBLAS_STATUS_SUCCESS;
    case PATCH_LEVEL:
      *value = CUBLAS_VER_PATCH;
      return CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

size_t GetCudartVersion() { return CUDA_VERSION; }

cublasStatus_t SetWorkspace(Handle&, void* workspace, size_t bytes) {
  const bool aligned = reinterpret_cast<uintptr_t>(workspace) % 256 == 0;
  if (!aligned || (workspace == nullptr && bytes != 0)) return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t SetStream(Handle& handle, cudaStream_t stream) {
  handle.stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t GetStream(Handle& handle, cudaStream_t* stream) {
  if (stream == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *stream = handle.stream;
  return CUBLAS_STATUS_SUCCESS;
}

// A setting that is one member of Handle.
template <auto kMember, class T>
cublasStatus_t Get(Handle& handle, T* value) {
  if (value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *value = handle.*kMember;
  return CUBLAS_STATUS_SUCCESS;
}
template <auto kMember, class T>
cublasStatus_t Set(Handle& handle, T value) {
  handle.*kMember = static_cast<std::remove_reference_t<decltype(handle.*kMember)>>(value);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t SetPointerMode(Handle& handle, cublasPointerMode_t mode) {
  if (mode != CUBLAS_POINTER_MODE_HOST && mode != CUBLAS_POINTER_MODE_DEVICE) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  handle.pointer_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t SetAtomicsMode(Handle& handle, cublasAtomicsMode_t mode) {
  if (mode != CUBLAS_ATOMICS_NOT_ALLOWED && mode != CUBLAS_ATOMICS_ALLOWED) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  handle.atomics_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t SetMathMode(Handle& handle, cublasMath_t mode) {
  const int base = mode & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
  const bool known = (base >= CUBLAS_DEFAULT_MATH && base <= CUBLAS_FP32_EMULATED_BF16X9_MATH) ||
                     base == CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH;
  if (!known) return CUBLAS_STATUS_INVALID_VALUE;
  handle.math_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t SetSmCountTarget(Handle& handle, int64_t count) {
  if (count < 0) return CUBLAS_STATUS_INVALID_VALUE;
  handle.sm_count_target = static_cast<int>(count);
  return CUBLAS_STATUS_SUCCESS;
}

// Nothing is ever logged, so there is only the callback to remember.
cublasLogCallback g_log_callback = nullptr;

cublasStatus_t LoggerConfigure(int, int, int, const char*) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t SetLoggerCallback(cublasLogCallback callback) {
  g_log_callback = callback;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t GetLoggerCallback(cublasLogCallback* callback) {
  if (callback == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *callback = g_log_callback;
  return CUBLAS_STATUS_SUCCESS;
}

void Xerbla(const char*, int) {}

}  // namespace
}  // namespace softgpu::cublas

using namespace softgpu::cublas;  // NOLINT: the exports below are C symbols

SOFTGPU_EXPORT(cublasCreate_v2, &Create)
SOFTGPU_EXPORT(cublasDestroy_v2, Destroy)
SOFTGPU_EXPORT(cublasGetVersion_v2, &GetVersion)
SOFTGPU_EXPORT(cublasGetProperty, &GetProperty)
SOFTGPU_EXPORT(cublasGetCudartVersion, &GetCudartVersion)
SOFTGPU_EXPORT(cublasSetWorkspace_v2, SetWorkspace)
SOFTGPU_EXPORT(cublasSetStream_v2, SetStream)
SOFTGPU_EXPORT(cublasGetStream_v2, GetStream)
SOFTGPU_EXPORT(cublasGetPointerMode_v2, Get<&Handle::pointer_mode, cublasPointerMode_t>)
SOFTGPU_EXPORT(cublasSetPointerMode_v2, SetPointerMode)
SOFTGPU_EXPORT(cublasGetAtomicsMode, Get<&Handle::atomics_mode, cublasAtomicsMode_t>)
SOFTGPU_EXPORT(cublasSetAtomicsMode, SetAtomicsMode)
SOFTGPU_EXPORT(cublasGetMathMode, Get<&Handle::math_mode, cublasMath_t>)
SOFTGPU_EXPORT(cublasSetMathMode, SetMathMode)
SOFTGPU_EXPORT(cublasGetSmCountTarget, Get<&Handle::sm_count_target, int>)
SOFTGPU_EXPORT(cublasSetSmCountTarget, SetSmCountTarget)
SOFTGPU_EXPORT(cublasGetEmulationStrategy,
               Get<&Handle::emulation_strategy, cublasEmulationStrategy_t>)
SOFTGPU_EXPORT(cublasSetEmulationStrategy,
               Set<&Handle::emulation_strategy, cublasEmulationStrategy_t>)
SOFTGPU_EXPORT(cublasGetEmulationSpecialValuesSupport,
               Get<&Handle::emulation_special_values, cudaEmulationSpecialValuesSupport>)
SOFTGPU_EXPORT(cublasSetEmulationSpecialValuesSupport,
               Set<&Handle::emulation_special_values, cudaEmulationSpecialValuesSupport>)
SOFTGPU_EXPORT(cublasGetFixedPointEmulationMantissaControl,
               Get<&Handle::emulation_mantissa_control, cudaEmulationMantissaControl>)
SOFTGPU_EXPORT(cublasSetFixedPointEmulationMantissaControl,
               Set<&Handle::emulation_mantissa_control, cudaEmulationMantissaControl>)
SOFTGPU_EXPORT(cublasGetFixedPointEmulationMaxMantissaBitCount,
               Get<&Handle::emulation_mantissa_bits_max, int>)
SOFTGPU_EXPORT(cublasSetFixedPointEmulationMaxMantissaBitCount,
               Set<&Handle::emulation_mantissa_bits_max, int64_t>)
SOFTGPU_EXPORT(cublasGetFixedPointEmulationMantissaBitOffset,
               Get<&Handle::emulation_mantissa_bit_offset, int>)
SOFTGPU_EXPORT(cublasSetFixedPointEmulationMantissaBitOffset,
               Set<&Handle::emulation_mantissa_bit_offset, int64_t>)
SOFTGPU_EXPORT(cublasGetFixedPointEmulationMantissaBitCountPointer,
               Get<&Handle::emulation_mantissa_bit_count, int*>)
SOFTGPU_EXPORT(cublasSetFixedPointEmulationMantissaBitCountPointer,
               Set<&Handle::emulation_mantissa_bit_count, int*>)
SOFTGPU_EXPORT(cublasGetStatusName, &StatusName)
SOFTGPU_EXPORT(cublasGetStatusString, &StatusMeaning)
SOFTGPU_EXPORT(cublasLoggerConfigure, &LoggerConfigure)
SOFTGPU_EXPORT(cublasSetLoggerCallback, &SetLoggerCallback)
SOFTGPU_EXPORT(cublasGetLoggerCallback, &GetLoggerCallback)
SOFTGPU_EXPORT(cublasXerbla, &Xerbla)
