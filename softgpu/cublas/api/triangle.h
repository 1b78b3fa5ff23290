// One triangle of a square matrix in each of BLAS's three layouts, and the four algorithms of level
// 2 on it. A layout answers two questions: which rows of column j are stored, and where; the
// algorithms go down columns, so each is written once for full, band and packed storage.
//
// Vectors here are contiguous. Thread safety: plain memory, plain functions.
#pragma once

#include <cublas_api.h>

#include <algorithm>

#include "softgpu/cublas/core/types.h"

namespace softgpu::cublas {

struct Rows {
  int64_t first, last;  // [first, last)
};

// T may be const. Column(j)[i] is element (i, j) for i in Stored(j).
template <class T>
struct FullTriangle {
  Rows Stored(int64_t j) const { return upper ? Rows{0, j + 1} : Rows{j, n}; }
  T* Column(int64_t j) const { return data + j * ld; }
  bool upper;
  int64_t n;
  T* data;
  int64_t ld;
};

template <class T>
struct BandTriangle {
  Rows Stored(int64_t j) const {
    return upper ? Rows{std::max<int64_t>(0, j - k), j + 1} : Rows{j, std::min(n, j + k + 1)};
  }
  T* Column(int64_t j) const { return data + j * ld + (upper ? k - j : -j); }
  bool upper;
  int64_t n, k;
  T* data;
  int64_t ld;
};

template <class T>
struct PackedTriangle {
  Rows Stored(int64_t j) const { return upper ? Rows{0, j + 1} : Rows{j, n}; }
  T* Column(int64_t j) const { return data + (upper ? j * (j + 1) / 2 : (2 * n - j - 1) * j / 2); }
  bool upper;
  int64_t n;
  T* data;
};

// The rows of column j without the diagonal.
template <class Layout>
Rows OffDiagonal(const Layout& layout, int64_t j) {
  const Rows rows = layout.Stored(j);
  return layout.upper ? Rows{rows.first, j} : Rows{j + 1, rows.last};
}

// y += alpha * A * x, A symmetric or Hermitian.
template <class T, class Layout>
void SymmetricTimesVector(const Layout& a, bool hermitian, T alpha, const T* x, T* y) {
  for (int64_t j = 0; j < a.n; ++j) {
    const T* const column = a.Column(j);
    const Rows rows = OffDiagonal(a, j);
    const T scaled = alpha * x[j];
    T mirrored{};
    for (int64_t i = rows.first; i < rows.last; ++i) {
      y[i] += scaled * column[i];
      mirrored += ConjIf(hermitian, column[i]) * x[i];
    }
    const T diagonal = hermitian ? T(RealPart(column[j])) : column[j];
    y[j] += scaled * diagonal + alpha * mirrored;
  }
}

// out = op(A) * x, A triangular; out and x don't overlap.
template <class T, class Layout>
void TriangularTimesVector(const Layout& a, cublasOperation_t op, bool unit, const T* x, T* out) {
  const bool conjugate = op == CUBLAS_OP_C;
  std::fill(out, out + a.n, T{});
  for (int64_t j = 0; j < a.n; ++j) {
    const T* const column = a.Column(j);
    const Rows rows = OffDiagonal(a, j);
    const T diagonal = unit ? T(1) : ConjIf(conjugate, column[j]);
    T sum = diagonal * x[j];
    if (op == CUBLAS_OP_N) {
      for (int64_t i = rows.first; i < rows.last; ++i) out[i] += column[i] * x[j];
    } else {
      for (int64_t i = rows.first; i < rows.last; ++i) sum += ConjIf(conjugate, column[i]) * x[i];
    }
    out[j] += sum;
  }
}

// Solves op(A) * out = x in place.
template <class T, class Layout>
void TriangularSolve(const Layout& a, cublasOperation_t op, bool unit, T* x) {
  const bool conjugate = op == CUBLAS_OP_C, transposed = op != CUBLAS_OP_N;
  const bool backward = a.upper != transposed;
  for (int64_t step = 0; step < a.n; ++step) {
    const int64_t j = backward ? a.n - 1 - step : step;
    const T* const column = a.Column(j);
    const Rows rows = OffDiagonal(a, j);
    if (transposed) {
      for (int64_t i = rows.first; i < rows.last; ++i) x[j] -= ConjIf(conjugate, column[i]) * x[i];
    }
    if (!unit) x[j] /= ConjIf(conjugate, column[j]);
    if (!transposed) {
      for (int64_t i = rows.first; i < rows.last; ++i) x[i] -= column[i] * x[j];
    }
  }
}

// A += alpha * x * y^T on the stored triangle (y^H if hermitian). A Hermitian diagonal stays real.
template <class T, class Layout>
void RankUpdate(const Layout& a, bool hermitian, T alpha, const T* x, const T* y) {
  for (int64_t j = 0; j < a.n; ++j) {
    T* const column = a.Column(j);
    const Rows rows = a.Stored(j);
    const T factor = alpha * ConjIf(hermitian, y[j]);
    for (int64_t i = rows.first; i < rows.last; ++i) column[i] += x[i] * factor;
  }
}

// What a Hermitian update leaves: diagonals without imaginary parts.
template <class T, class Layout>
void MakeDiagonalReal(const Layout& a) {
  for (int64_t j = 0; j < a.n; ++j) a.Column(j)[j] = T(RealPart(a.Column(j)[j]));
}

}  // namespace softgpu::cublas
