// Level 2 on symmetric, Hermitian and triangular matrices, in full, band and packed storage.
//
// An entry point only checks its arguments and names its layout; triangle.h has the arithmetic.
#include "softgpu/cublas/api/bind.h"
#include "softgpu/cublas/api/check.h"
#include "softgpu/cublas/api/strided.h"
#include "softgpu/cublas/api/triangle.h"

namespace softgpu::cublas {
namespace {

bool IsUpper(cublasFillMode_t uplo) { return uplo == CUBLAS_FILL_MODE_UPPER; }

template <class T>
void Scatter(const std::vector<T>& values, T* data, int64_t step) {
  const Strided<T> target(data, static_cast<int64_t>(values.size()), step);
  for (size_t i = 0; i < values.size(); ++i) target[static_cast<int64_t>(i)] = values[i];
}

// --- y = alpha * A * x + beta * y
// -----------------------------------------------------------------

template <class T>
struct VectorsIn {
  const T* alpha;
  const T* x;
  int64_t incx;
  const T* beta;
  T* y;
  int64_t incy;
};

template <class T, class Layout>
cublasStatus_t SymmetricProduct(Handle& handle, bool hermitian, const Layout& a,
                                const VectorsIn<T>& v) {
  if (v.incx == 0 || v.incy == 0 || v.alpha == nullptr || v.beta == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (a.n == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit(
      [=, alpha_of = Scalar<T>(handle, v.alpha), beta_of = Scalar<T>(handle, v.beta)] {
        const std::vector<T> x = Gather<T>(v.x, a.n, v.incx);
        const T beta = beta_of();
        std::vector<T> y(a.n);
        if (beta != T(0)) {
          y = Gather<T>(v.y, a.n, v.incy);
          for (T& value : y) value *= beta;
        }
        SymmetricTimesVector<T>(a, hermitian, alpha_of(), x.data(), y.data());
        Scatter(y, v.y, v.incy);
      });
}

template <class T, bool kHermitian = false>
cublasStatus_t Symv(Handle& handle, cublasFillMode_t uplo, int64_t n, const T* alpha, const T* a,
                    int64_t lda, const T* x, int64_t incx, const T* beta, T* y, int64_t incy) {
  if (!IsValid(uplo) || n < 0 || !IsLeading(lda, n)) return CUBLAS_STATUS_INVALID_VALUE;
  return SymmetricProduct<T>(handle, kHermitian, FullTriangle<const T>{IsUpper(uplo), n, a, lda},
                             {alpha, x, incx, beta, y, incy});
}

template <class T, bool kHermitian = false>
cublasStatus_t Sbmv(Handle& handle, cublasFillMode_t uplo, int64_t n, int64_t k, const T* alpha,
                    const T* a, int64_t lda, const T* x, int64_t incx, const T* beta, T* y,
                    int64_t incy) {
  if (!IsValid(uplo) || !AreSizes({n, k}) || lda < k + 1) return CUBLAS_STATUS_INVALID_VALUE;
  return SymmetricProduct<T>(handle, kHermitian, BandTriangle<const T>{IsUpper(uplo), n, k, a, lda},
                             {alpha, x, incx, beta, y, incy});
}

template <class T, bool kHermitian = false>
cublasStatus_t Spmv(Handle& handle, cublasFillMode_t uplo, int64_t n, const T* alpha, const T* a,
                    const T* x, int64_t incx, const T* beta, T* y, int64_t incy) {
  if (!IsValid(uplo) || n < 0) return CUBLAS_STATUS_INVALID_VALUE;
  return SymmetricProduct<T>(handle, kHermitian, PackedTriangle<const T>{IsUpper(uplo), n, a},
                             {alpha, x, incx, beta, y, incy});
}

// --- x = op(A) * x, and op(A) * x = b
// -------------------------------------------------------------

struct Triangular {
  cublasFillMode_t uplo;
  cublasOperation_t op;
  cublasDiagType_t diag;
  bool valid() const { return IsValid(uplo) && IsValid(op) && IsValid(diag); }
};

template <class T, class Layout>
cublasStatus_t TriangularInPlace(Handle& handle, const Triangular& t, bool solve, const Layout& a,
                                 T* x, int64_t incx) {
  if (incx == 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (a.n == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=] {
    const bool unit = t.diag == CUBLAS_DIAG_UNIT;
    std::vector<T> in = Gather<T>(x, a.n, incx);
    if (solve) {
      TriangularSolve<T>(a, t.op, unit, in.data());
      Scatter(in, x, incx);
    } else {
      std::vector<T> out(a.n);
      TriangularTimesVector<T>(a, t.op, unit, in.data(), out.data());
      Scatter(out, x, incx);
    }
  });
}

template <class T, bool kSolve = false>
cublasStatus_t Trmv(Handle& handle, cublasFillMode_t uplo, cublasOperation_t op,
                    cublasDiagType_t diag, int64_t n, const T* a, int64_t lda, T* x, int64_t incx) {
  const Triangular t{uplo, op, diag};
  if (!t.valid() || n < 0 || !IsLeading(lda, n)) return CUBLAS_STATUS_INVALID_VALUE;
  return TriangularInPlace<T>(handle, t, kSolve, FullTriangle<const T>{IsUpper(uplo), n, a, lda}, x,
                              incx);
}

template <class T, bool kSolve = false>
cublasStatus_t Tbmv(Handle& handle, cublasFillMode_t uplo, cublasOperation_t op,
                    cublasDiagType_t diag, int64_t n, int64_t k, const T* a, int64_t lda, T* x,
                    int64_t incx) {
  const Triangular t{uplo, op, diag};
  if (!t.valid() || !AreSizes({n, k}) || lda < k + 1) return CUBLAS_STATUS_INVALID_VALUE;
  return TriangularInPlace<T>(handle, t, kSolve, BandTriangle<const T>{IsUpper(uplo), n, k, a, lda},
                              x, incx);
}

template <class T, bool kSolve = false>
cublasStatus_t Tpmv(Handle& handle, cublasFillMode_t uplo, cublasOperation_t op,
                    cublasDiagType_t diag, int64_t n, const T* a, T* x, int64_t incx) {
  const Triangular t{uplo, op, diag};
  if (!t.valid() || n < 0) return CUBLAS_STATUS_INVALID_VALUE;
  return TriangularInPlace<T>(handle, t, kSolve, PackedTriangle<const T>{IsUpper(uplo), n, a}, x,
                              incx);
}

// --- A += alpha * x * x', and alpha * x * y' + alpha' * y * x'
// ------------------------------------

// S is T, or its real type for the Hermitian update of rank 1.
template <class T, class S, class Layout>
cublasStatus_t RankOne(Handle& handle, bool hermitian, const Layout& a, const S* alpha, const T* x,
                       int64_t incx) {
  if (incx == 0 || alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (a.n == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=, alpha_of = Scalar<S>(handle, alpha)] {
    const T value = T(alpha_of());
    if (value == T(0)) return;
    const std::vector<T> in = Gather(x, a.n, incx);
    RankUpdate<T>(a, hermitian, value, in.data(), in.data());
    if (hermitian) MakeDiagonalReal<T>(a);
  });
}

template <class T>
struct TwoVectors {
  const T* x;
  int64_t incx;
  const T* y;
  int64_t incy;
};

template <class T, class Layout>
cublasStatus_t RankTwo(Handle& handle, bool hermitian, const Layout& a, const T* alpha,
                       const TwoVectors<T>& v) {
  if (v.incx == 0 || v.incy == 0 || alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (a.n == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=, alpha_of = Scalar<T>(handle, alpha)] {
    const T value = alpha_of();
    if (value == T(0)) return;
    const std::vector<T> x = Gather(v.x, a.n, v.incx), y = Gather(v.y, a.n, v.incy);
    RankUpdate<T>(a, hermitian, value, x.data(), y.data());
    RankUpdate<T>(a, hermitian, ConjIf(hermitian, value), y.data(), x.data());
    if (hermitian) MakeDiagonalReal<T>(a);
  });
}

template <class T, bool kHermitian = false, class S = T>
cublasStatus_t Syr(Handle& handle, cublasFillMode_t uplo, int64_t n, const S* alpha, const T* x,
                   int64_t incx, T* a, int64_t lda) {
  if (!IsValid(uplo) || n < 0 || !IsLeading(lda, n)) return CUBLAS_STATUS_INVALID_VALUE;
  return RankOne<T, S>(handle, kHermitian, FullTriangle<T>{IsUpper(uplo), n, a, lda}, alpha, x,
                       incx);
}

template <class T, bool kHermitian = false, class S = T>
cublasStatus_t Spr(Handle& handle, cublasFillMode_t uplo, int64_t n, const S* alpha, const T* x,
                   int64_t incx, T* a) {
  if (!IsValid(uplo) || n < 0) return CUBLAS_STATUS_INVALID_VALUE;
  return RankOne<T, S>(handle, kHermitian, PackedTriangle<T>{IsUpper(uplo), n, a}, alpha, x, incx);
}

template <class T, bool kHermitian = false>
cublasStatus_t Syr2(Handle& handle, cublasFillMode_t uplo, int64_t n, const T* alpha, const T* x,
                    int64_t incx, const T* y, int64_t incy, T* a, int64_t lda) {
  if (!IsValid(uplo) || n < 0 || !IsLeading(lda, n)) return CUBLAS_STATUS_INVALID_VALUE;
  return RankTwo<T>(handle, kHermitian, FullTriangle<T>{IsUpper(uplo), n, a, lda}, alpha,
                    {x, incx, y, incy});
}

template <class T, bool kHermitian = false>
cublasStatus_t Spr2(Handle& handle, cublasFillMode_t uplo, int64_t n, const T* alpha, const T* x,
                    int64_t incx, const T* y, int64_t incy, T* a) {
  if (!IsValid(uplo) || n < 0) return CUBLAS_STATUS_INVALID_VALUE;
  return RankTwo<T>(handle, kHermitian, PackedTriangle<T>{IsUpper(uplo), n, a}, alpha,
                    {x, incx, y, incy});
}

}  // namespace
}  // namespace softgpu::cublas

using namespace softgpu::cublas;  // NOLINT: the exports below are C symbols

SOFTGPU_EXPORT_SDCZ(symv_v2, Symv)
SOFTGPU_EXPORT_BOTH(cublasChemv_v2, Symv<Complex64, true>)
SOFTGPU_EXPORT_BOTH(cublasZhemv_v2, Symv<Complex128, true>)
SOFTGPU_EXPORT_SD(sbmv_v2, Sbmv)
SOFTGPU_EXPORT_BOTH(cublasChbmv_v2, Sbmv<Complex64, true>)
SOFTGPU_EXPORT_BOTH(cublasZhbmv_v2, Sbmv<Complex128, true>)
SOFTGPU_EXPORT_SD(spmv_v2, Spmv)
SOFTGPU_EXPORT_BOTH(cublasChpmv_v2, Spmv<Complex64, true>)
SOFTGPU_EXPORT_BOTH(cublasZhpmv_v2, Spmv<Complex128, true>)
SOFTGPU_EXPORT_SDCZ(trmv_v2, Trmv)
SOFTGPU_EXPORT_SDCZ(tbmv_v2, Tbmv)
SOFTGPU_EXPORT_SDCZ(tpmv_v2, Tpmv)
SOFTGPU_EXPORT_BOTH(cublasStrsv_v2, Trmv<float, true>)
SOFTGPU_EXPORT_BOTH(cublasDtrsv_v2, Trmv<double, true>)
SOFTGPU_EXPORT_BOTH(cublasCtrsv_v2, Trmv<Complex64, true>)
SOFTGPU_EXPORT_BOTH(cublasZtrsv_v2, Trmv<Complex128, true>)
SOFTGPU_EXPORT_BOTH(cublasStbsv_v2, Tbmv<float, true>)
SOFTGPU_EXPORT_BOTH(cublasDtbsv_v2, Tbmv<double, true>)
SOFTGPU_EXPORT_BOTH(cublasCtbsv_v2, Tbmv<Complex64, true>)
SOFTGPU_EXPORT_BOTH(cublasZtbsv_v2, Tbmv<Complex128, true>)
SOFTGPU_EXPORT_BOTH(cublasStpsv_v2, Tpmv<float, true>)
SOFTGPU_EXPORT_BOTH(cublasDtpsv_v2, Tpmv<double, true>)
SOFTGPU_EXPORT_BOTH(cublasCtpsv_v2, Tpmv<Complex64, true>)
SOFTGPU_EXPORT_BOTH(cublasZtpsv_v2, Tpmv<Complex128, true>)
SOFTGPU_EXPORT_SDCZ(syr_v2, Syr)
SOFTGPU_EXPORT_BOTH(cublasCher_v2, Syr<Complex64, true, float>)
SOFTGPU_EXPORT_BOTH(cublasZher_v2, Syr<Complex128, true, double>)
SOFTGPU_EXPORT_SD(spr_v2, Spr)
SOFTGPU_EXPORT_BOTH(cublasChpr_v2, Spr<Complex64, true, float>)
SOFTGPU_EXPORT_BOTH(cublasZhpr_v2, Spr<Complex128, true, double>)
SOFTGPU_EXPORT_SDCZ(syr2_v2, Syr2)
SOFTGPU_EXPORT_BOTH(cublasCher2_v2, Syr2<Complex64, true>)
SOFTGPU_EXPORT_BOTH(cublasZher2_v2, Syr2<Complex128, true>)
SOFTGPU_EXPORT_SD(spr2_v2, Spr2)
SOFTGPU_EXPORT_BOTH(cublasChpr2_v2, Spr2<Complex64, true>)
SOFTGPU_EXPORT_BOTH(cublasZhpr2_v2, Spr2<Complex128, true>)
