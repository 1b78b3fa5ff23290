// BLAS-like extensions: geam, dgmm, packed from and to full triangles, and the rank updates of
// mixed types (syrkEx, herkEx).
#include "softgpu/cublas/api/bind.h"
#include "softgpu/cublas/api/check.h"
#include "softgpu/cublas/api/strided.h"
#include "softgpu/cublas/api/triangle.h"
#include "softgpu/cublas/core/mixed.h"

namespace softgpu::cublas {
namespace {

template <class T>
T ElementOf(ConstMatrix<T> matrix, cublasOperation_t op, int64_t i, int64_t j) {
  if (op == CUBLAS_OP_N) return matrix.data[i + j * matrix.ld];
  return ConjIf(op == CUBLAS_OP_C, matrix.data[j + i * matrix.ld]);
}

// C = alpha * op(A) + beta * op(B). A factor that is zero keeps its matrix from being read. C may
// be A or B where that one isn't transposed.
template <class T>
cublasStatus_t Geam(Handle& handle, cublasOperation_t op_a, cublasOperation_t op_b, int64_t m,
                    int64_t n, const T* alpha, const T* a, int64_t lda, const T* beta, const T* b,
                    int64_t ldb, T* c, int64_t ldc) {
  if (!IsValid(op_a) || !IsValid(op_b) || !AreSizes({m, n}) || alpha == nullptr ||
      beta == nullptr || !IsLeading(lda, StoredExtent(op_a, m, n).rows) ||
      !IsLeading(ldb, StoredExtent(op_b, m, n).rows) || !IsLeading(ldc, m)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool a_in_place = c == a && (op_a != CUBLAS_OP_N || lda != ldc);
  const bool b_in_place = c == b && (op_b != CUBLAS_OP_N || ldb != ldc);
  if (a_in_place || b_in_place) return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=, alpha_of = Scalar<T>(handle, alpha), beta_of = Scalar<T>(handle, beta)] {
    const T alpha_value = alpha_of(), beta_value = beta_of();
    ForColumnRanges(m, n, [&](int64_t first, int64_t last) {
      for (int64_t j = first; j < last; ++j) {
        for (int64_t i = 0; i < m; ++i) {
          T sum{};
          if (alpha_value != T(0)) sum += alpha_value * ElementOf<T>({a, lda}, op_a, i, j);
          if (beta_value != T(0)) sum += beta_value * ElementOf<T>({b, ldb}, op_b, i, j);
          c[i + j * ldc] = sum;
        }
      }
    });
  });
}

// C = A * diag(x) (side right) or diag(x) * A (left). C may be A.
template <class T>
cublasStatus_t Dgmm(Handle& handle, cublasSideMode_t side, int64_t m, int64_t n, const T* a,
                    int64_t lda, const T* x, int64_t incx, T* c, int64_t ldc) {
  if (!IsValid(side) || !AreSizes({m, n}) || !IsLeading(lda, m) || !IsLeading(ldc, m)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=] {
    const bool left = side == CUBLAS_SIDE_LEFT;
    const Strided<const T> diagonal(x, left ? m : n, incx);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < m; ++i) {
        c[i + j * ldc] = a[i + j * lda] * diagonal[left ? i : j];
      }
    }
  });
}

template <class T>
cublasStatus_t Tpttr(Handle& handle, cublasFillMode_t uplo, int64_t n, const T* packed, T* a,
                     int64_t lda) {
  if (!IsValid(uplo) || n < 0 || !IsLeading(lda, n)) return CUBLAS_STATUS_INVALID_VALUE;
  if (n == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit(
      [=, from = PackedTriangle<const T>{uplo == CUBLAS_FILL_MODE_UPPER, n, packed}] {
        for (int64_t j = 0; j < n; ++j) {
          const Rows rows = from.Stored(j);
          for (int64_t i = rows.first; i < rows.last; ++i) a[i + j * lda] = from.Column(j)[i];
        }
      });
}

template <class T>
cublasStatus_t Trttp(Handle& handle, cublasFillMode_t uplo, int64_t n, const T* a, int64_t lda,
                     T* packed) {
  if (!IsValid(uplo) || n < 0 || !IsLeading(lda, n)) return CUBLAS_STATUS_INVALID_VALUE;
  if (n == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=, to = PackedTriangle<T>{uplo == CUBLAS_FILL_MODE_UPPER, n, packed}] {
    for (int64_t j = 0; j < n; ++j) {
      const Rows rows = to.Stored(j);
      for (int64_t i = rows.first; i < rows.last; ++i) to.Column(j)[i] = a[i + j * lda];
    }
  });
}

// A of Complex64 or complex int8, C of Complex64. S is the type of the scalars.
template <bool kHermitian, class S>
cublasStatus_t RankKEx(Handle& handle, cublasFillMode_t uplo, cublasOperation_t op, int64_t n,
                       int64_t k, const S* alpha, const void* a, cudaDataType type_a, int64_t lda,
                       const S* beta, void* c, cudaDataType type_c, int64_t ldc) {
  const bool transposes = op == (kHermitian ? CUBLAS_OP_C : CUBLAS_OP_T);
  if (!IsValid(uplo) || (op != CUBLAS_OP_N && !transposes) || !AreSizes({n, k}) ||
      alpha == nullptr || beta == nullptr || !IsLeading(lda, transposes ? k : n) ||
      !IsLeading(ldc, n)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (type_c != CUDA_C_32F || (type_a != CUDA_C_32F && type_a != CUDA_C_8I) ||
      !Countable({n, k, lda, ldc})) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (n == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=, alpha_of = Scalar<S>(handle, alpha), beta_of = Scalar<S>(handle, beta)] {
    const Extent extent = StoredExtent(op, n, k);
    const AsElements<Complex64> elements({a, type_a, lda}, extent.rows, extent.columns);
    dense::Syrk<Complex64>({uplo, op, kHermitian, n, k}, Complex64(alpha_of()), elements.view(),
                           Complex64(beta_of()), {static_cast<Complex64*>(c), ldc});
  });
}

}  // namespace
}  // namespace softgpu::cublas

using namespace softgpu::cublas;  // NOLINT: the exports below are C symbols

// The library has no 64-bit variants of the packed copies.
#define SOFTGPU_EXPORT_ONE_WIDTH(name, implementation)     \
  SOFTGPU_EXPORT(cublasS##name, implementation<float>)     \
  SOFTGPU_EXPORT(cublasD##name, implementation<double>)    \
  SOFTGPU_EXPORT(cublasC##name, implementation<Complex64>) \
  SOFTGPU_EXPORT(cublasZ##name, implementation<Complex128>)

SOFTGPU_EXPORT_SDCZ(geam, Geam)
SOFTGPU_EXPORT_SDCZ(dgmm, Dgmm)
SOFTGPU_EXPORT_ONE_WIDTH(tpttr, Tpttr)
SOFTGPU_EXPORT_ONE_WIDTH(trttp, Trttp)
SOFTGPU_EXPORT_BOTH(cublasCsyrkEx, RankKEx<false, Complex64>)
SOFTGPU_EXPORT_BOTH(cublasCsyrk3mEx, RankKEx<false, Complex64>)
SOFTGPU_EXPORT_BOTH(cublasCherkEx, RankKEx<true, float>)
SOFTGPU_EXPORT_BOTH(cublasCherk3mEx, RankKEx<true, float>)
