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
#define STATUS(name, meaning) {name, #name, meaning},
#include "ipc/calls/blas_status.inc"
#undef STATUS
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
