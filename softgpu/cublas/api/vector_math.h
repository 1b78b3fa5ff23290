// Level 1 arithmetic on strided vectors of plain memory. Sums of floats are kept in double, and
// always added in the order of the elements, so that they are the same from run to run.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "softgpu/cublas/api/strided.h"
#include "softgpu/cublas/core/types.h"

namespace softgpu::cublas {

// float sums in double; the others in themselves.
template <class T>
struct SumT {
  using type = T;
};
template <>
struct SumT<float> {
  using type = double;
};
template <>
struct SumT<Complex64> {
  using type = Complex128;
};
template <class T>
using Sum = typename SumT<T>::type;

template <class T>
Real<T> Magnitude1(const T& value) {
  if constexpr (kIsComplex<T>) {
    return std::abs(value.real()) + std::abs(value.imag());
  } else {
    return std::abs(value);
  }
}

template <class T>
T DotOf(bool conjugate, int64_t n, Strided<const T> x, Strided<const T> y) {
  Sum<T> sum{};
  for (int64_t i = 0; i < n; ++i) sum += Sum<T>(ConjIf(conjugate, x[i])) * Sum<T>(y[i]);
  return static_cast<T>(sum);
}

template <class T>
Real<T> AsumOf(int64_t n, Strided<const T> x) {
  Sum<Real<T>> sum{};
  for (int64_t i = 0; i < n; ++i) sum += Magnitude1(x[i]);
  return static_cast<Real<T>>(sum);
}

// Scaled by a power of two near the largest component, so that squares neither overflow nor vanish
// and scaling rounds nothing.
template <class T>
Real<T> Nrm2Of(int64_t n, Strided<const T> x) {
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double magnitude = static_cast<double>(Magnitude1(x[i]));
    if (!(magnitude <= largest)) largest = magnitude;  // also takes a NaN
  }
  if (largest == 0 || !std::isfinite(largest)) return static_cast<Real<T>>(largest);
  constexpr int kExponentMax = 1000;  // keeps the scale and its inverse finite
  const int exponent = std::clamp(std::ilogb(largest), -kExponentMax, kExponentMax);
  const double scale = std::ldexp(1.0, -exponent);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const std::complex<double> scaled = std::complex<double>(x[i]) * scale;
    sum += scaled.real() * scaled.real() + scaled.imag() * scaled.imag();
  }
  return static_cast<Real<T>>(std::ldexp(std::sqrt(sum), exponent));
}

// The first of the largest (or smallest) elements, counted from 1; 0 for an empty vector.
template <class T>
int64_t ExtremeIndexOf(bool largest, int64_t n, Strided<const T> x) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i) {
    const Real<T> magnitude = Magnitude1(x[i]), so_far = Magnitude1(x[best]);
    if (largest ? magnitude > so_far : magnitude < so_far) best = i;
  }
  return n > 0 ? best + 1 : 0;
}

}  // namespace softgpu::cublas
