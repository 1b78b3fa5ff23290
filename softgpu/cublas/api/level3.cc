// Level 3 except gemm: symm, syrk, syr2k, syrkx, their Hermitian kin, trmm, trsm, and trsm in
// batches.
#include "softgpu/cublas/api/bind.h"
#include "softgpu/cublas/api/check.h"
#include "softgpu/cublas/core/mixed.h"

namespace softgpu::cublas {
namespace {

template <class T, bool kHermitian = false>
cublasStatus_t Symm(Handle& handle, cublasSideMode_t side, cublasFillMode_t uplo, int64_t m,
                    int64_t n, const T* alpha, const T* a, int64_t lda, const T* b, int64_t ldb,
                    const T* beta, T* c, int64_t ldc) {
  if (!IsValid(side) || !IsValid(uplo) || !AreSizes({m, n}) || alpha == nullptr ||
      beta == nullptr || !IsLeading(lda, side == CUBLAS_SIDE_LEFT ? m : n) || !IsLeading(ldb, m) ||
      !IsLeading(ldc, m)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!Countable({m, n, lda, ldb, ldc})) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  const SymmetricShape shape{side, uplo, kHermitian, m, n};
  return handle.Submit([=, alpha_of = Scalar<T>(handle, alpha), beta_of = Scalar<T>(handle, beta)] {
    dense::Symm<T>(shape, alpha_of(), {a, lda}, {b, ldb}, beta_of(), {c, ldc});
  });
}

// Hermitian updates have no plain transpose.
template <class T>
bool IsRankOperation(cublasOperation_t op, bool hermitian) {
  if (!IsValid(op)) return false;
  return !hermitian || op != CUBLAS_OP_T;
}

template <class T>
cublasStatus_t CheckRank(const RankShape& shape, std::initializer_list<int64_t> input_leads,
                         int64_t ldc) {
  if (!IsValid(shape.uplo) || !IsRankOperation<T>(shape.op, shape.hermitian) ||
      !AreSizes({shape.n, shape.k}) || !IsLeading(ldc, shape.n)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (kIsComplex<T> && !shape.hermitian && shape.op == CUBLAS_OP_C) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  for (const int64_t ld : input_leads) {
    if (!IsLeading(ld, shape.op == CUBLAS_OP_N ? shape.n : shape.k)) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (!Countable({ld})) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return Countable({shape.n, shape.k, ldc}) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

// S is T, or its real type for herk.
template <class T, bool kHermitian = false, class S = T>
cublasStatus_t Syrk(Handle& handle, cublasFillMode_t uplo, cublasOperation_t op, int64_t n,
                    int64_t k, const S* alpha, const T* a, int64_t lda, const S* beta, T* c,
                    int64_t ldc) {
  const RankShape shape{uplo, op, kHermitian, n, k};
  const cublasStatus_t status = CheckRank<T>(shape, {lda}, ldc);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (alpha == nullptr || beta == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (n == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=, alpha_of = Scalar<S>(handle, alpha), beta_of = Scalar<S>(handle, beta)] {
    dense::Syrk<T>(shape, T(alpha_of()), {a, lda}, T(beta_of()), {c, ldc});
  });
}

// B is T, or its real type for her2k.
template <class T, bool kHermitian = false, class B = T>
cublasStatus_t Syr2k(Handle& handle, cublasFillMode_t uplo, cublasOperation_t op, int64_t n,
                     int64_t k, const T* alpha, const T* a, int64_t lda, const T* b, int64_t ldb,
                     const B* beta, T* c, int64_t ldc) {
  const RankShape shape{uplo, op, kHermitian, n, k};
  const cublasStatus_t status = CheckRank<T>(shape, {lda, ldb}, ldc);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (alpha == nullptr || beta == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (n == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=, alpha_of = Scalar<T>(handle, alpha), beta_of = Scalar<B>(handle, beta)] {
    dense::Syr2k<T>(shape, alpha_of(), {a, lda}, {b, ldb}, T(beta_of()), {c, ldc});
  });
}

// Copies one triangle of the n x n matrix `from` into `to`: alpha * A * B' is computed in full, and
// the caller vouches that it is symmetric.
template <class T>
void AddTriangle(const RankShape& shape, const T* from, T beta, Matrix<T> to) {
  for (int64_t j = 0; j < shape.n; ++j) {
    const bool upper = shape.uplo == CUBLAS_FILL_MODE_UPPER;
    T* const column = to.data + j * to.ld;
    for (int64_t i = upper ? 0 : j; i < (upper ? j + 1 : shape.n); ++i) {
      column[i] = from[i + j * shape.n] + (beta == T(0) ? T(0) : beta * column[i]);
    }
    if (shape.hermitian) column[j] = T(RealPart(column[j]));
  }
}

template <class T, bool kHermitian = false, class B = T>
cublasStatus_t Syrkx(Handle& handle, cublasFillMode_t uplo, cublasOperation_t op, int64_t n,
                     int64_t k, const T* alpha, const T* a, int64_t lda, const T* b, int64_t ldb,
                     const B* beta, T* c, int64_t ldc) {
  const RankShape shape{uplo, op, kHermitian, n, k};
  const cublasStatus_t status = CheckRank<T>(shape, {lda, ldb}, ldc);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (alpha == nullptr || beta == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (n == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=, alpha_of = Scalar<T>(handle, alpha), beta_of = Scalar<B>(handle, beta)] {
    const cublasOperation_t other = kHermitian ? CUBLAS_OP_C : CUBLAS_OP_T;
    const bool normal = op == CUBLAS_OP_N;
    const GemmShape product{normal ? CUBLAS_OP_N : other, normal ? other : CUBLAS_OP_N, n, n, k};
    const std::unique_ptr<T[]> full = std::make_unique_for_overwrite<T[]>(n * n);
    dense::Gemm<T>(product, alpha_of(), {a, lda}, {b, ldb}, T(0), {full.get(), n});
    AddTriangle<T>(shape, full.get(), T(beta_of()), {c, ldc});
  });
}

bool IsValid(const TriangularShape& shape, int64_t lda, int64_t ldb) {
  return cublas::IsValid(shape.side) && cublas::IsValid(shape.uplo) && cublas::IsValid(shape.op) &&
         cublas::IsValid(shape.diag) && AreSizes({shape.m, shape.n}) &&
         IsLeading(lda, shape.side == CUBLAS_SIDE_LEFT ? shape.m : shape.n) &&
         IsLeading(ldb, shape.m);
}

// Out of place: C = alpha * op(A) * B. C may be B itself.
template <class T>
cublasStatus_t Trmm(Handle& handle, cublasSideMode_t side, cublasFillMode_t uplo,
                    cublasOperation_t op, cublasDiagType_t diag, int64_t m, int64_t n,
                    const T* alpha, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
                    int64_t ldc) {
  const TriangularShape shape{side, uplo, op, diag, m, n};
  if (!IsValid(shape, lda, ldb) || !IsLeading(ldc, m) || alpha == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!Countable({m, n, lda, ldc})) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=, alpha_of = Scalar<T>(handle, alpha)] {
    for (int64_t j = 0; j < n && b != c; ++j) std::copy_n(b + j * ldb, m, c + j * ldc);
    dense::Trmm<T>(shape, alpha_of(), {a, lda}, {c, ldc});
  });
}

template <class T>
cublasStatus_t Trsm(Handle& handle, cublasSideMode_t side, cublasFillMode_t uplo,
                    cublasOperation_t op, cublasDiagType_t diag, int64_t m, int64_t n,
                    const T* alpha, const T* a, int64_t lda, T* b, int64_t ldb) {
  const TriangularShape shape{side, uplo, op, diag, m, n};
  if (!IsValid(shape, lda, ldb) || alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (!Countable({m, n, lda, ldb})) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=, alpha_of = Scalar<T>(handle, alpha)] {
    dense::Trsm<T>(shape, alpha_of(), {a, lda}, {b, ldb});
  });
}

template <class T>
cublasStatus_t TrsmBatched(Handle& handle, cublasSideMode_t side, cublasFillMode_t uplo,
                           cublasOperation_t op, cublasDiagType_t diag, int64_t m, int64_t n,
                           const T* alpha, const T* const* a, int64_t lda, T* const* b, int64_t ldb,
                           int64_t batch) {
  const TriangularShape shape{side, uplo, op, diag, m, n};
  if (!IsValid(shape, lda, ldb) || alpha == nullptr || batch < 0) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!Countable({m, n, lda, ldb})) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (m == 0 || n == 0 || batch == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=, alpha_of = Scalar<T>(handle, alpha)] {
    ParallelFor(batch, [&](int64_t i) {
      dense::Trsm<T>(shape, alpha_of(), {a[i], lda}, {b[i], ldb});
    });
  });
}

}  // namespace
}  // namespace softgpu::cublas

using namespace softgpu::cublas;  // NOLINT: the exports below are C symbols

SOFTGPU_EXPORT_SDCZ(symm_v2, Symm)
SOFTGPU_EXPORT_BOTH(cublasChemm_v2, Symm<Complex64, true>)
SOFTGPU_EXPORT_BOTH(cublasZhemm_v2, Symm<Complex128, true>)
SOFTGPU_EXPORT_SDCZ(syrk_v2, Syrk)
SOFTGPU_EXPORT_BOTH(cublasCherk_v2, Syrk<Complex64, true, float>)
SOFTGPU_EXPORT_BOTH(cublasZherk_v2, Syrk<Complex128, true, double>)
SOFTGPU_EXPORT_SDCZ(syr2k_v2, Syr2k)
SOFTGPU_EXPORT_BOTH(cublasCher2k_v2, Syr2k<Complex64, true, float>)
SOFTGPU_EXPORT_BOTH(cublasZher2k_v2, Syr2k<Complex128, true, double>)
SOFTGPU_EXPORT_SDCZ(syrkx, Syrkx)
SOFTGPU_EXPORT_BOTH(cublasCherkx, Syrkx<Complex64, true, float>)
SOFTGPU_EXPORT_BOTH(cublasZherkx, Syrkx<Complex128, true, double>)
SOFTGPU_EXPORT_SDCZ(trmm_v2, Trmm)
SOFTGPU_EXPORT_SDCZ(trsm_v2, Trsm)
SOFTGPU_EXPORT_SDCZ(trsmBatched, TrsmBatched)
