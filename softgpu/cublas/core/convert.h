// Reading and writing runs of elements whose type is known only at run time, as one compute type E:
// float, double, their complex numbers, or int32_t. Narrowing rounds to nearest even; integers
// saturate. Thread safety: pure functions. REQUIRES: Convertible<E>(type).
#pragma once

#include <cmath>
#include <limits>

#include "softgpu/cublas/core/types.h"

namespace softgpu::cublas {

template <class E>
constexpr bool Convertible(cudaDataType type) {
  const bool complex = type == CUDA_C_32F || type == CUDA_C_64F || type == CUDA_C_8I;
  return ElementBytes(type) != 0 && (kIsComplex<E> || !complex);
}

// Calls visit with a typed null pointer that stands for `type`.
template <class Visitor>
void VisitType(cudaDataType type, const Visitor& visit) {
  switch (type) {
    case CUDA_R_8I:
      return visit(static_cast<int8_t*>(nullptr));
    case CUDA_C_8I:
      return visit(static_cast<std::complex<int8_t>*>(nullptr));
    case CUDA_R_16F:
      return visit(static_cast<Half*>(nullptr));
    case CUDA_R_16BF:
      return visit(static_cast<Bfloat16*>(nullptr));
    case CUDA_R_32F:
      return visit(static_cast<float*>(nullptr));
    case CUDA_R_32I:
      return visit(static_cast<int32_t*>(nullptr));
    case CUDA_R_64F:
      return visit(static_cast<double*>(nullptr));
    case CUDA_C_32F:
      return visit(static_cast<Complex64*>(nullptr));
    case CUDA_C_64F:
      return visit(static_cast<Complex128*>(nullptr));
    default:
      return;
  }
}

template <class E, class S>
E ElementFrom(const S& value) {
  if constexpr (std::is_same_v<S, Half> || std::is_same_v<S, Bfloat16>) {
    return static_cast<E>(ToFloat(value));
  } else if constexpr (!kIsComplex<S>) {
    return static_cast<E>(static_cast<Real<E>>(value));
  } else if constexpr (kIsComplex<E>) {
    return E(static_cast<Real<E>>(value.real()), static_cast<Real<E>>(value.imag()));
  } else {
    return static_cast<E>(value.real());  // never reached: Convertible<E> refuses it
  }
}

template <class D, class R>
D SaturateTo(R value) {
  if constexpr (std::is_integral_v<R>) {
    if (value > std::numeric_limits<D>::max()) return std::numeric_limits<D>::max();
    if (value < std::numeric_limits<D>::min()) return std::numeric_limits<D>::min();
    return static_cast<D>(value);
  } else {
    const double rounded = std::nearbyint(static_cast<double>(value));
    if (!(rounded <= std::numeric_limits<D>::max())) return std::numeric_limits<D>::max();
    if (rounded < std::numeric_limits<D>::min()) return std::numeric_limits<D>::min();
    return static_cast<D>(rounded);
  }
}

template <class D, class E>
D ElementTo(const E& value) {
  if constexpr (std::is_same_v<D, Half>) {
    return ToHalf(static_cast<float>(RealPart(value)));
  } else if constexpr (std::is_same_v<D, Bfloat16>) {
    return ToBfloat16(static_cast<float>(RealPart(value)));
  } else if constexpr (std::is_integral_v<D>) {
    return SaturateTo<D>(RealPart(value));
  } else if constexpr (!kIsComplex<D>) {
    return static_cast<D>(RealPart(value));
  } else if constexpr (std::is_integral_v<Real<D>>) {
    if constexpr (kIsComplex<E>) {
      return D(SaturateTo<Real<D>>(value.real()), SaturateTo<Real<D>>(value.imag()));
    } else {
      return D(SaturateTo<Real<D>>(value), 0);
    }
  } else if constexpr (kIsComplex<E>) {
    return D(static_cast<Real<D>>(value.real()), static_cast<Real<D>>(value.imag()));
  } else {
    return D(static_cast<Real<D>>(value), 0);
  }
}

// out[i] = in[i * stride]
template <class E>
void Load(E* out, const void* in, cudaDataType type, int64_t count, int64_t stride = 1) {
  VisitType(type, [&]<class S>(S*) {
    const S* const source = static_cast<const S*>(in);
    for (int64_t i = 0; i < count; ++i) out[i] = ElementFrom<E>(source[i * stride]);
  });
}

// out[i * stride] = in[i]
template <class E>
void Store(void* out, cudaDataType type, const E* in, int64_t count, int64_t stride = 1) {
  VisitType(type, [&]<class D>(D*) {
    D* const target = static_cast<D*>(out);
    for (int64_t i = 0; i < count; ++i) target[i * stride] = ElementTo<D>(in[i]);
  });
}

template <class E>
E LoadOne(const void* in, cudaDataType type) {
  E value{};
  Load(&value, in, type, 1);
  return value;
}

}  // namespace softgpu::cublas
