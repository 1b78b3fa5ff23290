// The typed entry points of cuBLAS by element type, so that a test can be a template; and pointers
// to our element types in the vendor's.
#pragma once

#include <cublas_v2.h>
#include <cuda_fp16.h>

#include "softgpu/cublas/core/types.h"

namespace softgpu::cublas {

inline float* V(float* p) { return p; }
inline const float* V(const float* p) { return p; }
inline double* V(double* p) { return p; }
inline const double* V(const double* p) { return p; }
inline cuComplex* V(Complex64* p) { return reinterpret_cast<cuComplex*>(p); }
inline const cuComplex* V(const Complex64* p) { return reinterpret_cast<const cuComplex*>(p); }
inline cuDoubleComplex* V(Complex128* p) { return reinterpret_cast<cuDoubleComplex*>(p); }
inline const cuDoubleComplex* V(const Complex128* p) {
  return reinterpret_cast<const cuDoubleComplex*>(p);
}
inline __half* V(Half* p) { return reinterpret_cast<__half*>(p); }
inline const __half* V(const Half* p) { return reinterpret_cast<const __half*>(p); }

template <class T>
struct Vendor;

#define SOFTGPU_ALL_TYPES(L)                                            \
  static constexpr auto* copy = &cublas##L##copy_v2;                    \
  static constexpr auto* swap = &cublas##L##swap_v2;                    \
  static constexpr auto* scal = &cublas##L##scal_v2;                    \
  static constexpr auto* axpy = &cublas##L##axpy_v2;                    \
  static constexpr auto* gemv = &cublas##L##gemv_v2;                    \
  static constexpr auto* gemv_64 = &cublas##L##gemv_v2_64;              \
  static constexpr auto* gbmv = &cublas##L##gbmv_v2;                    \
  static constexpr auto* gemv_strided = &cublas##L##gemvStridedBatched; \
  static constexpr auto* symv = &cublas##L##symv_v2;                    \
  static constexpr auto* trmv = &cublas##L##trmv_v2;                    \
  static constexpr auto* trsv = &cublas##L##trsv_v2;                    \
  static constexpr auto* tbmv = &cublas##L##tbmv_v2;                    \
  static constexpr auto* tbsv = &cublas##L##tbsv_v2;                    \
  static constexpr auto* tpmv = &cublas##L##tpmv_v2;                    \
  static constexpr auto* tpsv = &cublas##L##tpsv_v2;                    \
  static constexpr auto* syr = &cublas##L##syr_v2;                      \
  static constexpr auto* syr2 = &cublas##L##syr2_v2;                    \
  static constexpr auto* gemm = &cublas##L##gemm_v2;                    \
  static constexpr auto* gemm_64 = &cublas##L##gemm_v2_64;              \
  static constexpr auto* gemm_strided = &cublas##L##gemmStridedBatched; \
  static constexpr auto* gemm_batched = &cublas##L##gemmBatched;        \
  static constexpr auto* symm = &cublas##L##symm_v2;                    \
  static constexpr auto* syrk = &cublas##L##syrk_v2;                    \
  static constexpr auto* syr2k = &cublas##L##syr2k_v2;                  \
  static constexpr auto* syrkx = &cublas##L##syrkx;                     \
  static constexpr auto* trmm = &cublas##L##trmm_v2;                    \
  static constexpr auto* trsm = &cublas##L##trsm_v2;                    \
  static constexpr auto* trsm_batched = &cublas##L##trsmBatched;        \
  static constexpr auto* geam = &cublas##L##geam;                       \
  static constexpr auto* dgmm = &cublas##L##dgmm;
#define SOFTGPU_REAL_TYPES(L)                        \
  static constexpr auto* dot = &cublas##L##dot_v2;   \
  static constexpr auto* ger = &cublas##L##ger_v2;   \
  static constexpr auto* sbmv = &cublas##L##sbmv_v2; \
  static constexpr auto* spmv = &cublas##L##spmv_v2; \
  static constexpr auto* spr = &cublas##L##spr_v2;   \
  static constexpr auto* spr2 = &cublas##L##spr2_v2;
#define SOFTGPU_COMPLEX_TYPES(L)                       \
  static constexpr auto* dot = &cublas##L##dotu_v2;    \
  static constexpr auto* dotc = &cublas##L##dotc_v2;   \
  static constexpr auto* ger = &cublas##L##geru_v2;    \
  static constexpr auto* gerc = &cublas##L##gerc_v2;   \
  static constexpr auto* sbmv = &cublas##L##hbmv_v2;   \
  static constexpr auto* spmv = &cublas##L##hpmv_v2;   \
  static constexpr auto* spr = &cublas##L##hpr_v2;     \
  static constexpr auto* spr2 = &cublas##L##hpr2_v2;   \
  static constexpr auto* hemv = &cublas##L##hemv_v2;   \
  static constexpr auto* her = &cublas##L##her_v2;     \
  static constexpr auto* her2 = &cublas##L##her2_v2;   \
  static constexpr auto* hemm = &cublas##L##hemm_v2;   \
  static constexpr auto* herk = &cublas##L##herk_v2;   \
  static constexpr auto* her2k = &cublas##L##her2k_v2; \
  static constexpr auto* herkx = &cublas##L##herkx;

template <>
struct Vendor<float> {
  SOFTGPU_ALL_TYPES(S)
  static constexpr auto* iamax = &cublasIsamax_v2_64;
  static constexpr auto* iamin = &cublasIsamin_v2_64;
  SOFTGPU_REAL_TYPES(S)
  static constexpr auto* asum = &cublasSasum_v2;
  static constexpr auto* nrm2 = &cublasSnrm2_v2;
};
template <>
struct Vendor<double> {
  SOFTGPU_ALL_TYPES(D)
  static constexpr auto* iamax = &cublasIdamax_v2_64;
  static constexpr auto* iamin = &cublasIdamin_v2_64;
  SOFTGPU_REAL_TYPES(D)
  static constexpr auto* asum = &cublasDasum_v2;
  static constexpr auto* nrm2 = &cublasDnrm2_v2;
};
template <>
struct Vendor<Complex64> {
  SOFTGPU_ALL_TYPES(C)
  static constexpr auto* iamax = &cublasIcamax_v2_64;
  static constexpr auto* iamin = &cublasIcamin_v2_64;
  SOFTGPU_COMPLEX_TYPES(C)
  static constexpr auto* asum = &cublasScasum_v2;
  static constexpr auto* nrm2 = &cublasScnrm2_v2;
};
template <>
struct Vendor<Complex128> {
  SOFTGPU_ALL_TYPES(Z)
  static constexpr auto* iamax = &cublasIzamax_v2_64;
  static constexpr auto* iamin = &cublasIzamin_v2_64;
  SOFTGPU_COMPLEX_TYPES(Z)
  static constexpr auto* asum = &cublasDzasum_v2;
  static constexpr auto* nrm2 = &cublasDznrm2_v2;
};
#undef SOFTGPU_ALL_TYPES
#undef SOFTGPU_REAL_TYPES
#undef SOFTGPU_COMPLEX_TYPES

}  // namespace softgpu::cublas
