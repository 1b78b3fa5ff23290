// Givens rotations, plain and modified: applying them and constructing them, as BLAS defines them.
#pragma once

#include <cmath>

#include "softgpu/cublas/api/strided.h"
#include "softgpu/cublas/core/types.h"

namespace softgpu::cublas {

// x, y = c * x + s * y, c * y - conj(s) * x
template <class T, class S>
void RotOf(int64_t n, Strided<T> x, Strided<T> y, Real<T> c, S s) {
  for (int64_t i = 0; i < n; ++i) {
    const T old_x = x[i], old_y = y[i];
    x[i] = c * old_x + s * old_y;
    y[i] = c * old_y - Conj(s) * old_x;
  }
}

// The modified Givens rotation H that `param` describes: {flag, h11, h21, h12, h22}.
template <class T>
void RotmOf(int64_t n, Strided<T> x, Strided<T> y, const T* param) {
  const T flag = param[0];
  if (flag == T(-2)) return;
  const bool full = flag == T(-1), off_diagonal = flag == T(0);
  const T h11 = off_diagonal ? T(1) : param[1], h22 = off_diagonal ? T(1) : param[4];
  const T h21 = full || off_diagonal ? param[2] : T(-1);
  const T h12 = full || off_diagonal ? param[3] : T(1);
  for (int64_t i = 0; i < n; ++i) {
    const T old_x = x[i], old_y = y[i];
    x[i] = h11 * old_x + h12 * old_y;
    y[i] = h21 * old_x + h22 * old_y;
  }
}

// A Givens rotation that zeroes b; a receives r and, for real types, b the value to rebuild c and
// s.
template <class T>
void RotgOf(T* a, T* b, Real<T>* c, T* s) {
  if constexpr (kIsComplex<T>) {
    if (std::abs(*a) == 0) {
      *c = 0;
      *s = T(1);
      *a = *b;
      return;
    }
    const Real<T> norm = std::hypot(std::abs(*a), std::abs(*b));
    const T phase = *a / std::abs(*a);
    *c = std::abs(*a) / norm;
    *s = phase * std::conj(*b) / norm;
    *a = phase * norm;
  } else {
    const T roe = std::abs(*a) > std::abs(*b) ? *a : *b;
    const T norm = std::copysign(std::hypot(*a, *b), roe);
    if (norm == 0) {
      *c = 1;
      *s = *a = *b = 0;
      return;
    }
    *c = *a / norm;
    *s = *b / norm;
    T rebuild = 1;
    if (std::abs(*a) > std::abs(*b)) {
      rebuild = *s;
    } else if (*c != 0) {
      rebuild = 1 / *c;
    }
    *a = norm;
    *b = rebuild;
  }
}

// The construction of a modified rotation: H, the weights d1 and d2, and x1, until they are in
// range.
template <class T>
class ModifiedRotation {
 public:
  ModifiedRotation(T d1, T d2, T x1) : d1_(d1), d2_(d2), x1_(x1) {}

  // Zeroes the second component of (sqrt(d1) x1, sqrt(d2) y1).
  void Build(T y1) {
    const T p2 = d2_ * y1;
    if (d1_ < 0) return GiveUp();
    if (p2 == 0) {
      flag_ = -2;
      return;
    }
    const T p1 = d1_ * x1_, q2 = p2 * y1, q1 = p1 * x1_;
    if (std::abs(q1) > std::abs(q2)) {
      h21_ = -y1 / x1_;
      h12_ = p2 / p1;
      const T u = 1 - h12_ * h21_;
      if (!(u > 0)) return GiveUp();
      flag_ = 0;
      d1_ /= u;
      d2_ /= u;
      x1_ *= u;
    } else {
      if (q2 < 0) return GiveUp();
      flag_ = 1;
      h11_ = p1 / p2;
      h22_ = x1_ / y1;
      const T u = 1 + h11_ * h22_;
      const T swapped = d2_ / u;
      d2_ = d1_ / u;
      d1_ = swapped;
      x1_ = y1 * u;
    }
    Rescale();
  }

  void Write(T* d1, T* d2, T* x1, T* param) const {
    *d1 = d1_;
    *d2 = d2_;
    *x1 = x1_;
    param[0] = flag_;
    if (flag_ == -1 || flag_ == 1) {
      param[1] = h11_;
      param[4] = h22_;
    }
    if (flag_ == -1 || flag_ == 0) {
      param[2] = h21_;
      param[3] = h12_;
    }
  }

 private:
  static constexpr T kGam = 4096, kLarge = kGam * kGam, kSmall = 1 / kLarge;

  void GiveUp() {
    flag_ = -1;
    h11_ = h12_ = h21_ = h22_ = 0;
    d1_ = d2_ = x1_ = 0;
  }

  // Scaling touches all four entries, so the implied ones become explicit.
  void MakeFull() {
    if (flag_ == 0) h11_ = h22_ = 1;
    if (flag_ == 1) {
      h21_ = -1;
      h12_ = 1;
    }
    flag_ = -1;
  }

  static bool OutOfRange(T d) {
    return d != 0 && std::isfinite(d) && (std::abs(d) <= kSmall || std::abs(d) >= kLarge);
  }

  void Rescale() {
    while (OutOfRange(d1_)) {
      MakeFull();
      const T step = std::abs(d1_) <= kSmall ? kGam : 1 / kGam;
      d1_ *= step * step;
      x1_ /= step;
      h11_ /= step;
      h12_ /= step;
    }
    while (OutOfRange(d2_)) {
      MakeFull();
      const T step = std::abs(d2_) <= kSmall ? kGam : 1 / kGam;
      d2_ *= step * step;
      h21_ /= step;
      h22_ /= step;
    }
  }

  T d1_, d2_, x1_;
  T flag_ = 0, h11_ = 0, h12_ = 0, h21_ = 0, h22_ = 0;
};

}  // namespace softgpu::cublas
