// Batched factorisations: getrf, getrs, getri, matinv, geqrf, gels. Pointers to the matrices lie in
// device memory, as in cuBLAS; `info` does too where it tells of each matrix, and is a host integer
// about the arguments otherwise.
#include "softgpu/cublas/api/factor.h"

#include "softgpu/cublas/api/bind.h"
#include "softgpu/cublas/api/check.h"
#include "softgpu/cublas/core/pool.h"

namespace softgpu::cublas {
namespace {

constexpr int64_t kInverseOrderMax = 32;  // of matinvBatched, by its definition

template <class T>
cublasStatus_t Getrf(Handle& handle, int64_t n, T* const* a, int64_t lda, int* pivots, int* info,
                     int64_t batch) {
  if (!AreSizes({n, batch}) || !IsLeading(lda, n) || info == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return handle.Submit([=] {
    ParallelFor(batch, [&](int64_t i) {
      info[i] = FactorLu<T>(n, {a[i], lda}, pivots == nullptr ? nullptr : pivots + i * n);
    });
  });
}

template <class T>
cublasStatus_t Getri(Handle& handle, int64_t n, const T* const* a, int64_t lda, const int* pivots,
                     T* const* inverse, int64_t ldc, int* info, int64_t batch) {
  if (!AreSizes({n, batch}) || !IsLeading(lda, n) || !IsLeading(ldc, n) || info == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return handle.Submit([=] {
    ParallelFor(batch, [&](int64_t i) {
      info[i] = InvertLu<T>(n, {a[i], lda}, pivots == nullptr ? nullptr : pivots + i * n,
                            {inverse[i], ldc});
    });
  });
}

template <class T>
cublasStatus_t Getrs(Handle& handle, cublasOperation_t op, int64_t n, int64_t columns,
                     const T* const* a, int64_t lda, const int* pivots, T* const* b, int64_t ldb,
                     int* info, int64_t batch) {
  if (info == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const bool valid =
      IsValid(op) && AreSizes({n, columns, batch}) && IsLeading(lda, n) && IsLeading(ldb, n);
  *info = valid ? 0 : -1;
  if (!valid) return CUBLAS_STATUS_INVALID_VALUE;
  if (n == 0 || columns == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=] {
    ParallelFor(batch, [&](int64_t i) {
      SolveLu<T>(op, n, {a[i], lda}, pivots == nullptr ? nullptr : pivots + i * n, {b[i], ldb},
                 columns);
    });
  });
}

template <class T>
cublasStatus_t Matinv(Handle& handle, int64_t n, const T* const* a, int64_t lda, T* const* inverse,
                      int64_t ldc, int* info, int64_t batch) {
  if (!AreSizes({n, batch}) || !IsLeading(lda, n) || !IsLeading(ldc, n) || info == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (n > kInverseOrderMax) return CUBLAS_STATUS_INVALID_VALUE;
  return handle.Submit([=] {
    ParallelFor(batch, [&](int64_t i) {
      std::vector<T> lu(n * n);
      std::vector<int> pivots(n);
      for (int64_t j = 0; j < n; ++j) std::copy_n(a[i] + j * lda, n, lu.data() + j * n);
      info[i] = FactorLu<T>(n, {lu.data(), n}, pivots.data());
      if (info[i] == 0) InvertLu<T>(n, {lu.data(), n}, pivots.data(), {inverse[i], ldc});
    });
  });
}

template <class T>
cublasStatus_t Geqrf(Handle& handle, int64_t m, int64_t n, T* const* a, int64_t lda, T* const* tau,
                     int* info, int64_t batch) {
  if (info == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const bool valid = AreSizes({m, n, batch}) && IsLeading(lda, m);
  *info = valid ? 0 : -1;
  if (!valid) return CUBLAS_STATUS_INVALID_VALUE;
  return handle.Submit([=] {
    ParallelFor(batch, [&](int64_t i) { FactorQr<T>(m, n, {a[i], lda}, tau[i]); });
  });
}

template <class T>
cublasStatus_t Gels(Handle& handle, cublasOperation_t op, int64_t m, int64_t n, int64_t columns,
                    T* const* a, int64_t lda, T* const* c, int64_t ldc, int* info, int* device_info,
                    int64_t batch) {
  if (info == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const bool valid = AreSizes({m, n, columns, batch}) && IsLeading(lda, m) && IsLeading(ldc, m);
  *info = valid ? 0 : -1;
  if (!valid) return CUBLAS_STATUS_INVALID_VALUE;
  if (op != CUBLAS_OP_N || m < n) return CUBLAS_STATUS_NOT_SUPPORTED;  // as cuBLAS
  if (n == 0 || columns == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=] {
    ParallelFor(batch, [&](int64_t i) {
      const int result = LeastSquares<T>(m, n, {a[i], lda}, {c[i], ldc}, columns);
      if (device_info != nullptr) device_info[i] = result;
    });
  });
}

}  // namespace
}  // namespace softgpu::cublas

using namespace softgpu::cublas;  // NOLINT: the exports below are C symbols

// These have no 64-bit variants.
#define SOFTGPU_EXPORT_BATCHED(name, implementation)                \
  SOFTGPU_EXPORT(cublasS##name##Batched, implementation<float>)     \
  SOFTGPU_EXPORT(cublasD##name##Batched, implementation<double>)    \
  SOFTGPU_EXPORT(cublasC##name##Batched, implementation<Complex64>) \
  SOFTGPU_EXPORT(cublasZ##name##Batched, implementation<Complex128>)

SOFTGPU_EXPORT_BATCHED(getrf, Getrf)
SOFTGPU_EXPORT_BATCHED(getrs, Getrs)
SOFTGPU_EXPORT_BATCHED(getri, Getri)
SOFTGPU_EXPORT_BATCHED(matinv, Matinv)
SOFTGPU_EXPORT_BATCHED(geqrf, Geqrf)
SOFTGPU_EXPORT_BATCHED(gels, Gels)
