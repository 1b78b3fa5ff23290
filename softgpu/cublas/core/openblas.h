// OpenBLAS's C interface as a table by element type, so that templates can call it.
//
// OpenBLAS is linked in statically and hidden, with its own threads switched off (OneOpenBlasCall):
// this copy's settings touch no other BLAS of the process. Thread safety: its kernels may run in
// several threads at once, each holding a OneOpenBlasCall; the number of those is bounded because
// OpenBLAS aborts when more threads than it has buffers for call it at once.
#pragma once

#include <cblas.h>

#include "softgpu/cublas/core/types.h"

namespace softgpu::cublas {

class OneOpenBlasCall {
 public:
  OneOpenBlasCall();  // waits for a free place
  ~OneOpenBlasCall();
  OneOpenBlasCall(const OneOpenBlasCall&) = delete;
  OneOpenBlasCall& operator=(const OneOpenBlasCall&) = delete;
};

template <class T>
struct OpenBlas;

#define SOFTGPU_OPENBLAS_TABLE(letter)                   \
  static constexpr auto* gemm = &cblas_##letter##gemm;   \
  static constexpr auto* gemv = &cblas_##letter##gemv;   \
  static constexpr auto* symm = &cblas_##letter##symm;   \
  static constexpr auto* syrk = &cblas_##letter##syrk;   \
  static constexpr auto* syr2k = &cblas_##letter##syr2k; \
  static constexpr auto* trmm = &cblas_##letter##trmm;   \
  static constexpr auto* trsm = &cblas_##letter##trsm;
#define SOFTGPU_OPENBLAS_HERMITIAN(letter)             \
  static constexpr auto* hemm = &cblas_##letter##hemm; \
  static constexpr auto* herk = &cblas_##letter##herk; \
  static constexpr auto* her2k = &cblas_##letter##her2k;

template <>
struct OpenBlas<float> {
  SOFTGPU_OPENBLAS_TABLE(s)
};
template <>
struct OpenBlas<double> {
  SOFTGPU_OPENBLAS_TABLE(d)
};
template <>
struct OpenBlas<Complex64> {
  SOFTGPU_OPENBLAS_TABLE(c)
  SOFTGPU_OPENBLAS_HERMITIAN(c)
};
template <>
struct OpenBlas<Complex128> {
  SOFTGPU_OPENBLAS_TABLE(z)
  SOFTGPU_OPENBLAS_HERMITIAN(z)
};
#undef SOFTGPU_OPENBLAS_TABLE
#undef SOFTGPU_OPENBLAS_HERMITIAN

// CBLAS takes real scalars by value and complex ones by address.
template <class T>
decltype(auto) Pass(const T& scalar) {
  if constexpr (kIsComplex<T>) {
    return static_cast<const void*>(&scalar);
  } else {
    return T(scalar);
  }
}

}  // namespace softgpu::cublas
