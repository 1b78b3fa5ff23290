// Names and meanings of statuses, for cuBLAS and cublasLt alike.
#pragma once

#include <cublas_api.h>

namespace softgpu::cublas {

struct StatusText {
  cublasStatus_t status;
  const char* name;
  const char* meaning;
};
inline constexpr StatusText kStatusTexts[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED",
     "the handle is not valid, or no device could be initialized"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "out of memory"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE", "an argument is out of range"},
    {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH", "the device lacks a feature"},
    {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR", "memory could not be mapped"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED", "the device failed"},
    {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED", "not supported"},
    {CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR", "a licence is missing"},
};

inline const char* StatusName(cublasStatus_t status) {
  for (const StatusText& text : kStatusTexts) {
    if (text.status == status) return text.name;
  }
  return "CUBLAS_STATUS_UNKNOWN";
}

inline const char* StatusMeaning(cublasStatus_t status) {
  for (const StatusText& text : kStatusTexts) {
    if (text.status == status) return text.meaning;
  }
  return "unknown status";
}

}  // namespace softgpu::cublas
