// Which combinations of compute type and element types a matrix product supports, and the C++ type
// it computes in. The reduced-precision modes (TF32, half accumulation) compute in float, which is
// what their contracts allow: at least the precision asked for.
#pragma once

#include <cublas_api.h>

#include <optional>

#include "softgpu/cublas/core/types.h"

namespace softgpu::cublas {

enum class Arithmetic { kFloat, kDouble, kComplex64, kComplex128, kInt32 };

struct ProductPlan {
  Arithmetic arithmetic;
  cudaDataType scale_type;  // of alpha and beta
};

// nullopt when the combination isn't supported. `a` is the type of both factors.
inline std::optional<ProductPlan> PlanProduct(cublasComputeType_t compute, cudaDataType a,
                                              cudaDataType c) {
  const auto half_like = [](cudaDataType type) {
    return type == CUDA_R_16F || type == CUDA_R_16BF;
  };
  switch (compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      if (a == CUDA_R_16F && c == CUDA_R_16F) return ProductPlan{Arithmetic::kFloat, CUDA_R_16F};
      return std::nullopt;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      if (a == CUDA_R_8I && c == CUDA_R_32I) return ProductPlan{Arithmetic::kInt32, CUDA_R_32I};
      return std::nullopt;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
    case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT:
      if (a == CUDA_R_64F && c == a) return ProductPlan{Arithmetic::kDouble, CUDA_R_64F};
      if (a == CUDA_C_64F && c == a) return ProductPlan{Arithmetic::kComplex128, CUDA_C_64F};
      return std::nullopt;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
    case CUBLAS_COMPUTE_32F_EMULATED_16BFX9:
      if ((half_like(a) && (c == a || c == CUDA_R_32F)) ||
          ((a == CUDA_R_32F || a == CUDA_R_8I) && c == CUDA_R_32F)) {
        return ProductPlan{Arithmetic::kFloat, CUDA_R_32F};
      }
      if ((a == CUDA_C_32F || a == CUDA_C_8I) && c == CUDA_C_32F) {
        return ProductPlan{Arithmetic::kComplex64, CUDA_C_32F};
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// Calls visit with a typed null pointer that stands for the compute type.
template <class Visitor>
auto VisitArithmetic(Arithmetic arithmetic, const Visitor& visit) {
  switch (arithmetic) {
    case Arithmetic::kDouble:
      return visit(static_cast<double*>(nullptr));
    case Arithmetic::kComplex64:
      return visit(static_cast<Complex64*>(nullptr));
    case Arithmetic::kComplex128:
      return visit(static_cast<Complex128*>(nullptr));
    case Arithmetic::kInt32:
      return visit(static_cast<int32_t*>(nullptr));
    case Arithmetic::kFloat:
      break;
  }
  return visit(static_cast<float*>(nullptr));
}

}  // namespace softgpu::cublas
