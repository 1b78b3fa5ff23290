// Checks of arguments that many entry points share. Each says whether the value is acceptable.
#pragma once

#include <cublas_api.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "softgpu/cublas/core/dense.h"

namespace softgpu::cublas {

inline bool IsValid(cublasOperation_t op) {
  return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}
inline bool IsValid(cublasFillMode_t uplo) {
  return uplo == CUBLAS_FILL_MODE_LOWER || uplo == CUBLAS_FILL_MODE_UPPER;
}
inline bool IsValid(cublasDiagType_t diag) {
  return diag == CUBLAS_DIAG_NON_UNIT || diag == CUBLAS_DIAG_UNIT;
}
inline bool IsValid(cublasSideMode_t side) {
  return side == CUBLAS_SIDE_LEFT || side == CUBLAS_SIDE_RIGHT;
}

inline bool AreSizes(std::initializer_list<int64_t> sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size >= 0; });
}

// A leading dimension must hold a column.
inline bool IsLeading(int64_t ld, int64_t rows) { return ld >= std::max<int64_t>(1, rows); }

// Sizes and leading dimensions that OpenBLAS can count.
inline bool Countable(std::initializer_list<int64_t> sizes) {
  return std::all_of(sizes.begin(), sizes.end(),
                     [](int64_t size) { return size >= -kSizeMax && size <= kSizeMax; });
}

}  // namespace softgpu::cublas
