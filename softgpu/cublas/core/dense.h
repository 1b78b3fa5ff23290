// Matrix arithmetic on plain memory, column-major, by OpenBLAS: the part of cuBLAS that deserves a
// fast library. Nothing here knows streams, handles or devices.
//
// Results depend on the arguments alone. Every call into OpenBLAS is single-threaded; larger
// problems are cut into tiles of the result by their shape, and the tiles are shared among threads
// (pool.h). As in cuBLAS, a result whose beta is zero isn't read, so NaNs in it don't survive.
//
// T is float, double, Complex64 or Complex128 (Gemm also int32_t). REQUIRES: what cuBLAS requires
// of the same arguments, already checked; sizes and leading dimensions within kSizeMax. Thread
// safety: any number of concurrent calls on disjoint results.
#pragma once

#include <cublas_api.h>

#include <cstdint>
#include <limits>

#include "softgpu/cublas/core/types.h"
#include "softgpu/cublas/core/visibility.h"

namespace softgpu::cublas {

// OpenBLAS counts in int.
inline constexpr int64_t kSizeMax = std::numeric_limits<int32_t>::max();

template <class T>
struct ConstMatrix {
  const T* data;
  int64_t ld;
};
template <class T>
struct Matrix {
  T* data;
  int64_t ld;
};

struct GemmShape {
  cublasOperation_t op_a, op_b;
  int64_t m, n, k;
};
struct SymmetricShape {
  cublasSideMode_t side;
  cublasFillMode_t uplo;
  bool hermitian;
  int64_t m, n;
};
struct RankShape {
  cublasFillMode_t uplo;
  cublasOperation_t op;
  bool hermitian;
  int64_t n, k;
};
struct TriangularShape {
  cublasSideMode_t side;
  cublasFillMode_t uplo;
  cublasOperation_t op;
  cublasDiagType_t diag;
  int64_t m, n;
};

namespace dense {

// C = alpha * op_a(A) * op_b(B) + beta * C, where C is m x n and the inner dimension is k.
template <class T>
SOFTGPU_CUBLAS_CORE void Gemm(const GemmShape& shape, T alpha, ConstMatrix<T> a, ConstMatrix<T> b,
                              T beta, Matrix<T> c);

// y = alpha * op(A) * x + beta * y, where A is m x n. Steps may be negative, not zero.
template <class T>
SOFTGPU_CUBLAS_CORE void Gemv(cublasOperation_t op, int64_t m, int64_t n, T alpha, ConstMatrix<T> a,
                              const T* x, int64_t incx, T beta, T* y, int64_t incy);

// C = alpha * A * B + beta * C (side left), B * A (right); A symmetric or Hermitian, C is m x n.
template <class T>
SOFTGPU_CUBLAS_CORE void Symm(const SymmetricShape& shape, T alpha, ConstMatrix<T> a,
                              ConstMatrix<T> b, T beta, Matrix<T> c);

// C = alpha * op(A) * op(A)^T + beta * C on one triangle of the n x n matrix C; with `hermitian`,
// the conjugate transpose, and only the real parts of alpha and beta count.
template <class T>
SOFTGPU_CUBLAS_CORE void Syrk(const RankShape& shape, T alpha, ConstMatrix<T> a, T beta,
                              Matrix<T> c);
// C = alpha * op(A) * op(B)^T + alpha' * op(B) * op(A)^T + beta * C on one triangle.
template <class T>
SOFTGPU_CUBLAS_CORE void Syr2k(const RankShape& shape, T alpha, ConstMatrix<T> a, ConstMatrix<T> b,
                               T beta, Matrix<T> c);

// B = alpha * op(A) * B (side left) or alpha * B * op(A) (right), A triangular, B is m x n.
template <class T>
SOFTGPU_CUBLAS_CORE void Trmm(const TriangularShape& shape, T alpha, ConstMatrix<T> a, Matrix<T> b);
// Solves op(A) * X = alpha * B (left) or X * op(A) = alpha * B (right); X replaces B.
template <class T>
SOFTGPU_CUBLAS_CORE void Trsm(const TriangularShape& shape, T alpha, ConstMatrix<T> a, Matrix<T> b);

}  // namespace dense
}  // namespace softgpu::cublas
