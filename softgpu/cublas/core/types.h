// The element types of the software cuBLAS: the small floats, what is generic over real and complex
// numbers, and conversion between cudaDataType and C++ types.
//
// Half and Bfloat16 hold bits; arithmetic happens in float and rounds once, to nearest even, when a
// result is stored. Thread safety: values only.
#pragma once

#include <library_types.h>

#include <bit>
#include <complex>
#include <cstdint>
#include <type_traits>

namespace softgpu::cublas {

using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

struct Half {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

inline float ToFloat(Bfloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

inline float ToFloat(Half value) {
  // The float with the same fields is off by 2^112 in its exponent; a product repairs it, and is
  // right for subnormals too. Infinities and NaNs need the exponent filled.
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(value.bits & 0x7fffu) << 13;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  uint32_t bits = std::bit_cast<uint32_t>(scaled);
  if (magnitude >= 0x0f800000u) bits = magnitude | 0x7f800000u;
  return std::bit_cast<float>(bits | sign);
}

inline Bfloat16 ToBfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

inline Half ToHalf(float value) {
  const uint32_t all = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((all >> 16) & 0x8000u);
  const uint32_t bits = all & 0x7fffffffu;
  if (bits > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00u)};   // NaN
  if (bits >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00u)};  // rounds to infinity
  if (bits <
      0x38800000u) {  // subnormal: adding 0.5 leaves the rounded multiple of 2^-24 at the end
    const float shifted = std::bit_cast<float>(bits) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u))};
  }
  const uint32_t rounded = bits + 0xfffu + ((bits >> 13) & 1u);
  return {static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
}

template <class T>
struct IsComplexT : std::false_type {};
template <class R>
struct IsComplexT<std::complex<R>> : std::true_type {};
template <class T>
inline constexpr bool kIsComplex = IsComplexT<T>::value;

template <class T>
struct RealT {
  using type = T;
};
template <class R>
struct RealT<std::complex<R>> {
  using type = R;
};
// float for float and complex<float>, and so on.
template <class T>
using Real = typename RealT<T>::type;

template <class T>
T Conj(const T& value) {
  if constexpr (kIsComplex<T>) {
    return std::conj(value);
  } else {
    return value;
  }
}

template <class T>
T ConjIf(bool conjugate, const T& value) {
  return conjugate ? Conj(value) : value;
}

template <class T>
Real<T> RealPart(const T& value) {
  if constexpr (kIsComplex<T>) {
    return value.real();
  } else {
    return value;
  }
}

template <class T>
inline constexpr cudaDataType kDataType = static_cast<cudaDataType>(-1);
template <>
inline constexpr cudaDataType kDataType<float> = CUDA_R_32F;
template <>
inline constexpr cudaDataType kDataType<double> = CUDA_R_64F;
template <>
inline constexpr cudaDataType kDataType<Complex64> = CUDA_C_32F;
template <>
inline constexpr cudaDataType kDataType<Complex128> = CUDA_C_64F;
template <>
inline constexpr cudaDataType kDataType<Half> = CUDA_R_16F;
template <>
inline constexpr cudaDataType kDataType<Bfloat16> = CUDA_R_16BF;
template <>
inline constexpr cudaDataType kDataType<int8_t> = CUDA_R_8I;
template <>
inline constexpr cudaDataType kDataType<int32_t> = CUDA_R_32I;

// Bytes of one element; 0 for a type that this library doesn't compute with.
inline constexpr int64_t ElementBytes(cudaDataType type) {
  switch (type) {
    case CUDA_R_8I:
      return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF:
    case CUDA_C_8I:
      return 2;
    case CUDA_R_32F:
    case CUDA_R_32I:
      return 4;
    case CUDA_R_64F:
    case CUDA_C_32F:
      return 8;
    case CUDA_C_64F:
      return 16;
    default:
      return 0;
  }
}

}  // namespace softgpu::cublas
