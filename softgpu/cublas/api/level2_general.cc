// Level 2 on general matrices: gemv, gbmv, ger, and gemv in batches.
#include "softgpu/cublas/api/bind.h"
#include "softgpu/cublas/api/check.h"
#include "softgpu/cublas/api/strided.h"
#include "softgpu/cublas/core/dense.h"
#include "softgpu/cublas/core/pool.h"

namespace softgpu::cublas {
namespace {

template <class T>
cublasStatus_t Gemv(Handle& handle, cublasOperation_t op, int64_t m, int64_t n, const T* alpha,
                    const T* a, int64_t lda, const T* x, int64_t incx, const T* beta, T* y,
                    int64_t incy) {
  if (!IsValid(op) || !AreSizes({m, n}) || !IsLeading(lda, m) || incx == 0 || incy == 0 ||
      alpha == nullptr || beta == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!Countable({m, n, lda, incx, incy})) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=, alpha_of = Scalar<T>(handle, alpha), beta_of = Scalar<T>(handle, beta)] {
    dense::Gemv<T>(op, m, n, alpha_of(), {a, lda}, x, incx, beta_of(), y, incy);
  });
}

template <class T>
cublasStatus_t Gbmv(Handle& handle, cublasOperation_t op, int64_t m, int64_t n, int64_t kl,
                    int64_t ku, const T* alpha, const T* a, int64_t lda, const T* x, int64_t incx,
                    const T* beta, T* y, int64_t incy) {
  if (!IsValid(op) || !AreSizes({m, n, kl, ku}) || lda < kl + ku + 1 || incx == 0 || incy == 0 ||
      alpha == nullptr || beta == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=, alpha_of = Scalar<T>(handle, alpha), beta_of = Scalar<T>(handle, beta)] {
    const bool transposed = op != CUBLAS_OP_N, conjugate = op == CUBLAS_OP_C;
    const int64_t size_x = transposed ? m : n, size_y = transposed ? n : m;
    const std::vector<T> in = Gather(x, size_x, incx);
    std::vector<T> sums(size_y);
    for (int64_t j = 0; j < n; ++j) {
      const T* const column = a + j * lda + ku - j;  // column[i] is element (i, j)
      const int64_t first = std::max<int64_t>(0, j - ku), last = std::min(m, j + kl + 1);
      for (int64_t i = first; i < last; ++i) {
        if (transposed) {
          sums[j] += ConjIf(conjugate, column[i]) * in[i];
        } else {
          sums[i] += column[i] * in[j];
        }
      }
    }
    const Strided<T> out(y, size_y, incy);
    const T alpha_value = alpha_of(), beta_value = beta_of();
    for (int64_t i = 0; i < size_y; ++i) {
      out[i] = alpha_value * sums[i] + (beta_value == T(0) ? T(0) : beta_value * out[i]);
    }
  });
}

template <class T, bool kConjugate = false>
cublasStatus_t Ger(Handle& handle, int64_t m, int64_t n, const T* alpha, const T* x, int64_t incx,
                   const T* y, int64_t incy, T* a, int64_t lda) {
  if (!AreSizes({m, n}) || !IsLeading(lda, m) || incx == 0 || incy == 0 || alpha == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=, alpha_of = Scalar<T>(handle, alpha)] {
    const T value = alpha_of();
    if (value == T(0)) return;
    const std::vector<T> column_factor = Gather(x, m, incx);
    const Strided<const T> row_factor(y, n, incy);
    for (int64_t j = 0; j < n; ++j) {
      const T factor = value * ConjIf(kConjugate, row_factor[j]);
      T* const column = a + j * lda;
      for (int64_t i = 0; i < m; ++i) column[i] += column_factor[i] * factor;
    }
  });
}

template <class T>
cublasStatus_t Gerc(Handle& handle, int64_t m, int64_t n, const T* alpha, const T* x, int64_t incx,
                    const T* y, int64_t incy, T* a, int64_t lda) {
  return Ger<T, true>(handle, m, n, alpha, x, incx, y, incy, a, lda);
}

// What one element of a batch of gemv needs, whatever the types: In for A and x, Out for y, S for
// the scalars and the arithmetic.
template <class S>
struct GemvShape {
  cublasOperation_t op;
  int64_t m, n, lda, incx, incy;
};

template <class S>
cublasStatus_t CheckBatch(const GemvShape<S>& shape, const void* alpha, const void* beta,
                          int64_t batch) {
  if (!IsValid(shape.op) || !AreSizes({shape.m, shape.n, batch}) ||
      !IsLeading(shape.lda, shape.m) || shape.incx == 0 || shape.incy == 0 || alpha == nullptr ||
      beta == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool countable = Countable({shape.m, shape.n, shape.lda, shape.incx, shape.incy});
  return countable ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

template <class S, class In, class Out>
void BatchElement(const GemvShape<S>& shape, S alpha, const In* a, const In* x, S beta, Out* y) {
  if constexpr (std::is_same_v<S, In> && std::is_same_v<S, Out>) {
    dense::Gemv<S>(shape.op, shape.m, shape.n, alpha, {a, shape.lda}, x, shape.incx, beta, y,
                   shape.incy);
  } else {
    const bool transposed = shape.op != CUBLAS_OP_N;
    const int64_t size_x = transposed ? shape.m : shape.n, size_y = transposed ? shape.n : shape.m;
    std::vector<S> wide_a(shape.m * shape.n), wide_x(size_x), wide_y(size_y);
    for (int64_t j = 0; j < shape.n; ++j) {
      Load(wide_a.data() + j * shape.m, a + j * shape.lda, kDataType<In>, shape.m);
    }
    Load(wide_x.data(), Strided<const In>(x, size_x, shape.incx).first(), kDataType<In>, size_x,
         shape.incx);
    Out* const first_y = Strided<Out>(y, size_y, shape.incy).first();
    if (beta != S(0)) Load(wide_y.data(), first_y, kDataType<Out>, size_y, shape.incy);
    dense::Gemv<S>(shape.op, shape.m, shape.n, alpha, {wide_a.data(), shape.m}, wide_x.data(), 1,
                   beta, wide_y.data(), 1);
    Store(first_y, kDataType<Out>, wide_y.data(), size_y, shape.incy);
  }
}

template <class S, class In = S, class Out = S>
cublasStatus_t GemvBatched(Handle& handle, cublasOperation_t op, int64_t m, int64_t n,
                           const S* alpha, const In* const* a, int64_t lda, const In* const* x,
                           int64_t incx, const S* beta, Out* const* y, int64_t incy,
                           int64_t batch) {
  const GemvShape<S> shape{op, m, n, lda, incx, incy};
  const cublasStatus_t status = CheckBatch(shape, alpha, beta, batch);
  if (status != CUBLAS_STATUS_SUCCESS || m == 0 || n == 0 || batch == 0) return status;
  return handle.Submit([=, alpha_of = Scalar<S>(handle, alpha), beta_of = Scalar<S>(handle, beta)] {
    ParallelFor(batch, [&](int64_t i) {
      BatchElement<S, In, Out>(shape, alpha_of(), a[i], x[i], beta_of(), y[i]);
    });
  });
}

template <class S, class In = S, class Out = S>
cublasStatus_t GemvStridedBatched(Handle& handle, cublasOperation_t op, int64_t m, int64_t n,
                                  const S* alpha, const In* a, int64_t lda, int64_t stride_a,
                                  const In* x, int64_t incx, int64_t stride_x, const S* beta,
                                  Out* y, int64_t incy, int64_t stride_y, int64_t batch) {
  const GemvShape<S> shape{op, m, n, lda, incx, incy};
  const cublasStatus_t status = CheckBatch(shape, alpha, beta, batch);
  if (status != CUBLAS_STATUS_SUCCESS || m == 0 || n == 0 || batch == 0) return status;
  return handle.Submit([=, alpha_of = Scalar<S>(handle, alpha), beta_of = Scalar<S>(handle, beta)] {
    ParallelFor(batch, [&](int64_t i) {
      BatchElement<S, In, Out>(shape, alpha_of(), a + i * stride_a, x + i * stride_x, beta_of(),
                               y + i * stride_y);
    });
  });
}

}  // namespace
}  // namespace softgpu::cublas

using namespace softgpu::cublas;  // NOLINT: the exports below are C symbols

SOFTGPU_EXPORT_SDCZ(gemv_v2, Gemv)
SOFTGPU_EXPORT_SDCZ(gbmv_v2, Gbmv)
SOFTGPU_EXPORT_SD(ger_v2, Ger)
SOFTGPU_EXPORT_CZ(geru_v2, Ger)
SOFTGPU_EXPORT_CZ(gerc_v2, Gerc)
SOFTGPU_EXPORT_SDCZ(gemvBatched, GemvBatched)
SOFTGPU_EXPORT_SDCZ(gemvStridedBatched, GemvStridedBatched)
SOFTGPU_EXPORT_BOTH(cublasHSHgemvBatched, GemvBatched<float, Half, Half>)
SOFTGPU_EXPORT_BOTH(cublasHSSgemvBatched, GemvBatched<float, Half, float>)
SOFTGPU_EXPORT_BOTH(cublasTSTgemvBatched, GemvBatched<float, Bfloat16, Bfloat16>)
SOFTGPU_EXPORT_BOTH(cublasTSSgemvBatched, GemvBatched<float, Bfloat16, float>)
SOFTGPU_EXPORT_BOTH(cublasHSHgemvStridedBatched, GemvStridedBatched<float, Half, Half>)
SOFTGPU_EXPORT_BOTH(cublasHSSgemvStridedBatched, GemvStridedBatched<float, Half, float>)
SOFTGPU_EXPORT_BOTH(cublasTSTgemvStridedBatched, GemvStridedBatched<float, Bfloat16, Bfloat16>)
SOFTGPU_EXPORT_BOTH(cublasTSSgemvStridedBatched, GemvStridedBatched<float, Bfloat16, float>)
