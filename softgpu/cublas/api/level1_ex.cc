// Level 1 with element types known at run time: vectors are read as the execution type, worked on
// as in level1.cc, and rounded once when written.
#include <algorithm>
#include <cstring>

#include "softgpu/cublas/api/bind.h"
#include "softgpu/cublas/api/rotations.h"
#include "softgpu/cublas/api/vector_math.h"
#include "softgpu/cublas/core/mixed.h"

namespace softgpu::cublas {
namespace {

struct TypedVector {
  void* data;
  cudaDataType type;
  int64_t step;
};
TypedVector In(const void* data, cudaDataType type, int64_t step) {
  return {const_cast<void*>(data), type, step};
}

// The element from which the others are `step` apart.
void* FirstOf(const TypedVector& x, int64_t n) {
  return x.step < 0 ? ElementAt(x.data, x.type, (1 - n) * x.step) : x.data;
}
template <class E>
std::vector<E> Read(const TypedVector& x, int64_t n) {
  std::vector<E> values(n);
  Load(values.data(), FirstOf(x, n), x.type, n, x.step);
  return values;
}
template <class E>
void Write(const TypedVector& x, const std::vector<E>& values) {
  const int64_t n = static_cast<int64_t>(values.size());
  Store(FirstOf(x, n), x.type, values.data(), n, x.step);
}
template <class E>
Strided<const E> Ordered(const std::vector<E>& values) {
  return {values.data(), static_cast<int64_t>(values.size()), 1};
}

// Calls run with a typed null pointer for the execution type, when every type can be read as it.
template <class Function>
cublasStatus_t WithExecution(cudaDataType execution, std::initializer_list<cudaDataType> types,
                             const Function& run) {
  const auto run_as = [&]<class E>(E* type) {
    for (const cudaDataType other : types) {
      if (!Convertible<E>(other)) return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    return run(type);
  };
  switch (execution) {
    case CUDA_R_32F:
      return run_as(static_cast<float*>(nullptr));
    case CUDA_R_64F:
      return run_as(static_cast<double*>(nullptr));
    case CUDA_C_32F:
      return run_as(static_cast<Complex64*>(nullptr));
    case CUDA_C_64F:
      return run_as(static_cast<Complex128*>(nullptr));
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

// Reductions to a real number run in the real execution type on complex vectors too.
cudaDataType ComplexLike(cudaDataType execution, cudaDataType x) {
  const bool complex = x == CUDA_C_32F || x == CUDA_C_64F;
  if (complex && execution == CUDA_R_32F) return CUDA_C_32F;
  if (complex && execution == CUDA_R_64F) return CUDA_C_64F;
  return execution;
}

int64_t ReducedCount(int64_t n, int64_t incx) { return n > 0 && incx > 0 ? n : 0; }

cublasStatus_t ScalEx(Handle& handle, int64_t n, const void* alpha, cudaDataType alpha_type,
                      void* x, cudaDataType x_type, int64_t incx, cudaDataType execution) {
  if (n <= 0 || incx <= 0) return CUBLAS_STATUS_SUCCESS;
  if (alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const TypedVector vector{x, x_type, incx};
  return WithExecution(execution, {alpha_type, x_type}, [&]<class E>(E*) {
    const TypedScalar<E> factor(handle.device_pointers(), alpha, alpha_type);
    return handle.Submit([=] {
      std::vector<E> values = Read<E>(vector, n);
      const E scale = factor();
      for (E& value : values) value *= scale;
      Write(vector, values);
    });
  });
}

cublasStatus_t AxpyEx(Handle& handle, int64_t n, const void* alpha, cudaDataType alpha_type,
                      const void* x, cudaDataType x_type, int64_t incx, void* y,
                      cudaDataType y_type, int64_t incy, cudaDataType execution) {
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  if (alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const TypedVector from = In(x, x_type, incx), to{y, y_type, incy};
  return WithExecution(execution, {alpha_type, x_type, y_type}, [&]<class E>(E*) {
    const TypedScalar<E> factor(handle.device_pointers(), alpha, alpha_type);
    return handle.Submit([=] {
      const E scale = factor();
      if (scale == E(0)) return;
      const std::vector<E> added = Read<E>(from, n);
      std::vector<E> values = Read<E>(to, n);
      for (int64_t i = 0; i < n; ++i) values[i] += scale * added[i];
      Write(to, values);
    });
  });
}

template <bool kConjugate>
cublasStatus_t DotEx(Handle& handle, int64_t n, const void* x, cudaDataType x_type, int64_t incx,
                     const void* y, cudaDataType y_type, int64_t incy, void* result,
                     cudaDataType result_type, cudaDataType execution) {
  if (result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const int64_t count = std::max<int64_t>(n, 0);
  const TypedVector a = In(x, x_type, incx), b = In(y, y_type, incy);
  return WithExecution(execution, {x_type, y_type, result_type}, [&]<class E>(E*) {
    return handle.SubmitForResult([=] {
      const std::vector<E> left = Read<E>(a, count), right = Read<E>(b, count);
      const E dot = DotOf<E>(kConjugate, count, Ordered(left), Ordered(right));
      Store(result, result_type, &dot, 1);
    });
  });
}

// Asum and Nrm2: `reduce` is called as reduce(n, Strided<const E>).
template <class Reduce>
cublasStatus_t ReduceEx(Handle& handle, int64_t n, const TypedVector& x, void* result,
                        cudaDataType result_type, cudaDataType execution, const Reduce& reduce) {
  if (result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const int64_t count = ReducedCount(n, x.step);
  const cudaDataType reading = ComplexLike(execution, x.type);
  return WithExecution(reading, {x.type, result_type}, [&]<class E>(E*) {
    return handle.SubmitForResult([=] {
      const std::vector<E> values = Read<E>(x, count);
      const Real<E> reduced = reduce(count, Ordered(values));
      Store(result, result_type, &reduced, 1);
    });
  });
}

cublasStatus_t Nrm2Ex(Handle& handle, int64_t n, const void* x, cudaDataType x_type, int64_t incx,
                      void* result, cudaDataType result_type, cudaDataType execution) {
  return ReduceEx(handle, n, In(x, x_type, incx), result, result_type, execution,
                  []<class E>(int64_t count, Strided<const E> v) { return Nrm2Of<E>(count, v); });
}

cublasStatus_t AsumEx(Handle& handle, int64_t n, const void* x, cudaDataType x_type, int64_t incx,
                      void* result, cudaDataType result_type, cudaDataType execution) {
  return ReduceEx(handle, n, In(x, x_type, incx), result, result_type, execution,
                  []<class E>(int64_t count, Strided<const E> v) { return AsumOf<E>(count, v); });
}

// The execution type for comparing magnitudes exactly.
cudaDataType Widest(cudaDataType type) {
  const bool complex = type == CUDA_C_32F || type == CUDA_C_64F;
  return complex ? CUDA_C_64F : CUDA_R_64F;
}

template <bool kLargest>
struct ExtremeIndexEx {
  template <class Index>
  cublasStatus_t operator()(Handle& handle, int64_t n, const void* x, cudaDataType x_type,
                            int64_t incx, Index* result) const {
    if (result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    const int64_t count = ReducedCount(n, incx);
    const TypedVector vector = In(x, x_type, incx);
    return WithExecution(Widest(x_type), {x_type}, [&]<class E>(E*) {
      return handle.SubmitForResult([=] {
        const std::vector<E> values = Read<E>(vector, count);
        *result = static_cast<Index>(ExtremeIndexOf<E>(kLargest, count, Ordered(values)));
      });
    });
  }
};

// Copies and exchanges bytes, so that every bit pattern survives.
cublasStatus_t CopyEx(Handle& handle, int64_t n, const void* x, cudaDataType x_type, int64_t incx,
                      void* y, cudaDataType y_type, int64_t incy) {
  const int64_t bytes = ElementBytes(x_type);
  if (x_type != y_type || bytes == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  const TypedVector from = In(x, x_type, incx), to{y, y_type, incy};
  return handle.Submit([=] {
    const char* const source = static_cast<const char*>(FirstOf(from, n));
    char* const target = static_cast<char*>(FirstOf(to, n));
    for (int64_t i = 0; i < n; ++i) {
      std::memcpy(target + i * to.step * bytes, source + i * from.step * bytes, bytes);
    }
  });
}

cublasStatus_t SwapEx(Handle& handle, int64_t n, void* x, cudaDataType x_type, int64_t incx,
                      void* y, cudaDataType y_type, int64_t incy) {
  const int64_t bytes = ElementBytes(x_type);
  if (x_type != y_type || bytes == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  const TypedVector a{x, x_type, incx}, b{y, y_type, incy};
  return handle.Submit([=] {
    char* const first = static_cast<char*>(FirstOf(a, n));
    char* const second = static_cast<char*>(FirstOf(b, n));
    for (int64_t i = 0; i < n; ++i) {
      char* const element = first + i * a.step * bytes;
      std::swap_ranges(element, element + bytes, second + i * b.step * bytes);
    }
  });
}

cublasStatus_t RotEx(Handle& handle, int64_t n, void* x, cudaDataType x_type, int64_t incx, void* y,
                     cudaDataType y_type, int64_t incy, const void* c, const void* s,
                     cudaDataType cs_type, cudaDataType execution) {
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  if (c == nullptr || s == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const TypedVector a{x, x_type, incx}, b{y, y_type, incy};
  return WithExecution(execution, {x_type, y_type, cs_type}, [&]<class E>(E*) {
    const TypedScalar<E> cosine(handle.device_pointers(), c, cs_type);
    const TypedScalar<E> sine(handle.device_pointers(), s, cs_type);
    return handle.Submit([=] {
      std::vector<E> left = Read<E>(a, n), right = Read<E>(b, n);
      RotOf<E, E>(n, {left.data(), n, 1}, {right.data(), n, 1}, RealPart(cosine()), sine());
      Write(a, left);
      Write(b, right);
    });
  });
}

}  // namespace
}  // namespace softgpu::cublas

using namespace softgpu::cublas;  // NOLINT: the exports below are C symbols

SOFTGPU_EXPORT_BOTH(cublasScalEx, ScalEx)
SOFTGPU_EXPORT_BOTH(cublasAxpyEx, AxpyEx)
SOFTGPU_EXPORT_BOTH(cublasDotEx, DotEx<false>)
SOFTGPU_EXPORT_BOTH(cublasDotcEx, DotEx<true>)
SOFTGPU_EXPORT_BOTH(cublasNrm2Ex, Nrm2Ex)
SOFTGPU_EXPORT_BOTH(cublasAsumEx, AsumEx)
SOFTGPU_EXPORT_BOTH(cublasIamaxEx, ExtremeIndexEx<true>{})
SOFTGPU_EXPORT_BOTH(cublasIaminEx, ExtremeIndexEx<false>{})
SOFTGPU_EXPORT_BOTH(cublasCopyEx, CopyEx)
SOFTGPU_EXPORT_BOTH(cublasSwapEx, SwapEx)
SOFTGPU_EXPORT_BOTH(cublasRotEx, RotEx)
