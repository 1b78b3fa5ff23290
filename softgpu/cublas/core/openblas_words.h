// cuBLAS's enumerations in CBLAS's words. REQUIRES: a value that the caller has checked.
#pragma once

#include <cblas.h>
#include <cublas_api.h>

namespace softgpu::cublas {

inline CBLAS_TRANSPOSE Word(cublasOperation_t op) {
  return op == CUBLAS_OP_N ? CblasNoTrans : op == CUBLAS_OP_T ? CblasTrans : CblasConjTrans;
}
inline CBLAS_UPLO Word(cublasFillMode_t uplo) {
  return uplo == CUBLAS_FILL_MODE_LOWER ? CblasLower : CblasUpper;
}
inline CBLAS_SIDE Word(cublasSideMode_t side) {
  return side == CUBLAS_SIDE_LEFT ? CblasLeft : CblasRight;
}
inline CBLAS_DIAG Word(cublasDiagType_t diag) {
  return diag == CUBLAS_DIAG_UNIT ? CblasUnit : CblasNonUnit;
}

}  // namespace softgpu::cublas
