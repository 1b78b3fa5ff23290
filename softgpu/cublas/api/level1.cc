// Level 1: vectors. In host pointer mode scalars are read at the call, and a call that returns a
// scalar waits for its stream; in device pointer mode both happen in stream order.
#include "softgpu/cublas/api/bind.h"
#include "softgpu/cublas/api/rotations.h"
#include "softgpu/cublas/api/vector_math.h"

namespace softgpu::cublas {
namespace {

template <class T>
cublasStatus_t Copy(Handle& handle, int64_t n, const T* x, int64_t incx, T* y, int64_t incy) {
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=] {
    const Strided<const T> from(x, n, incx);
    const Strided<T> to(y, n, incy);
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  });
}

template <class T>
cublasStatus_t Swap(Handle& handle, int64_t n, T* x, int64_t incx, T* y, int64_t incy) {
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  return handle.Submit([=] {
    const Strided<T> a(x, n, incx), b(y, n, incy);
    for (int64_t i = 0; i < n; ++i) std::swap(a[i], b[i]);
  });
}

// S is T, or its real type.
template <class T, class S = T>
cublasStatus_t Scal(Handle& handle, int64_t n, const S* alpha, T* x, int64_t incx) {
  if (n <= 0 || incx <= 0) return CUBLAS_STATUS_SUCCESS;
  if (alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  return handle.Submit([=, factor = Scalar<S>(handle, alpha)] {
    const S value = factor();
    for (int64_t i = 0; i < n; ++i) x[i * incx] *= value;
  });
}

template <class T>
cublasStatus_t ScalReal(Handle& handle, int64_t n, const Real<T>* alpha, T* x, int64_t incx) {
  return Scal<T, Real<T>>(handle, n, alpha, x, incx);
}

template <class T>
cublasStatus_t Axpy(Handle& handle, int64_t n, const T* alpha, const T* x, int64_t incx, T* y,
                    int64_t incy) {
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  if (alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  return handle.Submit([=, factor = Scalar<T>(handle, alpha)] {
    const T value = factor();
    if (value == T(0)) return;  // as BLAS: then a NaN in x doesn't reach y
    const Strided<const T> from(x, n, incx);
    const Strided<T> to(y, n, incy);
    for (int64_t i = 0; i < n; ++i) to[i] += value * from[i];
  });
}

template <class T, bool kConjugate = false>
cublasStatus_t Dot(Handle& handle, int64_t n, const T* x, int64_t incx, const T* y, int64_t incy,
                   T* result) {
  if (result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const int64_t count = std::max<int64_t>(n, 0);
  return handle.SubmitForResult([=] {
    *result = DotOf<T>(kConjugate, count, {x, count, incx}, {y, count, incy});
  });
}

template <class T>
cublasStatus_t Dotc(Handle& handle, int64_t n, const T* x, int64_t incx, const T* y, int64_t incy,
                    T* result) {
  return Dot<T, true>(handle, n, x, incx, y, incy, result);
}

// BLAS defines the reductions of one vector as 0 when its step isn't positive.
inline int64_t ReducedCount(int64_t n, int64_t incx) { return n > 0 && incx > 0 ? n : 0; }

template <class T>
cublasStatus_t Asum(Handle& handle, int64_t n, const T* x, int64_t incx, Real<T>* result) {
  if (result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const int64_t count = ReducedCount(n, incx);
  return handle.SubmitForResult([=] { *result = AsumOf<T>(count, {x, count, incx}); });
}

template <class T>
cublasStatus_t Nrm2(Handle& handle, int64_t n, const T* x, int64_t incx, Real<T>* result) {
  if (result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const int64_t count = ReducedCount(n, incx);
  return handle.SubmitForResult([=] { *result = Nrm2Of<T>(count, {x, count, incx}); });
}

// Index is int, or int64_t in the variants with 64-bit sizes.
template <class T, bool kLargest>
struct ExtremeIndex {
  template <class Index>
  cublasStatus_t operator()(Handle& handle, int64_t n, const T* x, int64_t incx,
                            Index* result) const {
    if (result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    const int64_t count = ReducedCount(n, incx);
    return handle.SubmitForResult([=] {
      *result = static_cast<Index>(ExtremeIndexOf<T>(kLargest, count, {x, count, incx}));
    });
  }
};
template <class T>
inline constexpr ExtremeIndex<T, true> kAmax{};
template <class T>
inline constexpr ExtremeIndex<T, false> kAmin{};

template <class T, class S = T>
cublasStatus_t Rot(Handle& handle, int64_t n, T* x, int64_t incx, T* y, int64_t incy,
                   const Real<T>* c, const S* s) {
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  if (c == nullptr || s == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  return handle.Submit([=, cosine = Scalar<Real<T>>(handle, c), sine = Scalar<S>(handle, s)] {
    RotOf<T, S>(n, {x, n, incx}, {y, n, incy}, cosine(), sine());
  });
}

template <class T>
cublasStatus_t RotReal(Handle& handle, int64_t n, T* x, int64_t incx, T* y, int64_t incy,
                       const Real<T>* c, const Real<T>* s) {
  return Rot<T, Real<T>>(handle, n, x, incx, y, incy, c, s);
}

template <class T>
cublasStatus_t Rotg(Handle& handle, T* a, T* b, Real<T>* c, T* s) {
  if (a == nullptr || b == nullptr || c == nullptr || s == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return handle.SubmitForResult([=] { RotgOf<T>(a, b, c, s); });
}

template <class T>
cublasStatus_t Rotm(Handle& handle, int64_t n, T* x, int64_t incx, T* y, int64_t incy,
                    const T* param) {
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  if (param == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  struct Param {
    T values[5];
  };
  return handle.Submit(
      [=, rotation = Scalar<Param>(handle, reinterpret_cast<const Param*>(param))] {
        const Param values = rotation();
        RotmOf<T>(n, {x, n, incx}, {y, n, incy}, values.values);
      });
}

template <class T>
cublasStatus_t Rotmg(Handle& handle, T* d1, T* d2, T* x1, const T* y1, T* param) {
  if (!d1 || !d2 || !x1 || !y1 || !param) return CUBLAS_STATUS_INVALID_VALUE;
  return handle.SubmitForResult([=] {
    ModifiedRotation<T> rotation(*d1, *d2, *x1);
    rotation.Build(*y1);
    rotation.Write(d1, d2, x1, param);
  });
}

}  // namespace
}  // namespace softgpu::cublas

using namespace softgpu::cublas;  // NOLINT: the exports below are C symbols

SOFTGPU_EXPORT_SDCZ(copy_v2, Copy)
SOFTGPU_EXPORT_SDCZ(swap_v2, Swap)
SOFTGPU_EXPORT_SDCZ(scal_v2, Scal)
SOFTGPU_EXPORT_BOTH(cublasCsscal_v2, ScalReal<Complex64>)
SOFTGPU_EXPORT_BOTH(cublasZdscal_v2, ScalReal<Complex128>)
SOFTGPU_EXPORT_SDCZ(axpy_v2, Axpy)
SOFTGPU_EXPORT_SD(dot_v2, Dot)
SOFTGPU_EXPORT_CZ(dotu_v2, Dot)
SOFTGPU_EXPORT_CZ(dotc_v2, Dotc)
SOFTGPU_EXPORT_SD(asum_v2, Asum)
SOFTGPU_EXPORT_BOTH(cublasScasum_v2, Asum<Complex64>)
SOFTGPU_EXPORT_BOTH(cublasDzasum_v2, Asum<Complex128>)
SOFTGPU_EXPORT_SD(nrm2_v2, Nrm2)
SOFTGPU_EXPORT_BOTH(cublasScnrm2_v2, Nrm2<Complex64>)
SOFTGPU_EXPORT_BOTH(cublasDznrm2_v2, Nrm2<Complex128>)
SOFTGPU_EXPORT_BOTH(cublasIsamax_v2, kAmax<float>)
SOFTGPU_EXPORT_BOTH(cublasIdamax_v2, kAmax<double>)
SOFTGPU_EXPORT_BOTH(cublasIcamax_v2, kAmax<Complex64>)
SOFTGPU_EXPORT_BOTH(cublasIzamax_v2, kAmax<Complex128>)
SOFTGPU_EXPORT_BOTH(cublasIsamin_v2, kAmin<float>)
SOFTGPU_EXPORT_BOTH(cublasIdamin_v2, kAmin<double>)
SOFTGPU_EXPORT_BOTH(cublasIcamin_v2, kAmin<Complex64>)
SOFTGPU_EXPORT_BOTH(cublasIzamin_v2, kAmin<Complex128>)
SOFTGPU_EXPORT_SDCZ(rot_v2, Rot)
SOFTGPU_EXPORT_BOTH(cublasCsrot_v2, RotReal<Complex64>)
SOFTGPU_EXPORT_BOTH(cublasZdrot_v2, RotReal<Complex128>)
SOFTGPU_EXPORT(cublasSrotg_v2, Rotg<float>)
SOFTGPU_EXPORT(cublasDrotg_v2, Rotg<double>)
SOFTGPU_EXPORT(cublasCrotg_v2, Rotg<Complex64>)
SOFTGPU_EXPORT(cublasZrotg_v2, Rotg<Complex128>)
SOFTGPU_EXPORT_SD(rotm_v2, Rotm)
SOFTGPU_EXPORT(cublasSrotmg_v2, Rotmg<float>)
SOFTGPU_EXPORT(cublasDrotmg_v2, Rotmg<double>)
