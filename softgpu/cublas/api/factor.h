// Small dense factorisations on plain, column-major memory: LU with partial pivoting, inverses, QR
// by Householder reflections. Simple loops: the batched entry points are for many small matrices.
// Thread safety: pure functions of their arguments.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "softgpu/cublas/core/dense.h"
#include "softgpu/cublas/core/types.h"

namespace softgpu::cublas {

// A = P * L * U in place. pivots[i], counted from 1, is the row exchanged with row i; without
// pivots nothing is exchanged. Returns 0, or the first i, counted from 1, for which U(i, i) is
// zero.
template <class T>
int FactorLu(int64_t n, Matrix<T> a, int* pivots) {
  int singular = 0;
  for (int64_t k = 0; k < n; ++k) {
    T* const column = a.data + k * a.ld;
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n && pivots != nullptr; ++i) {
      if (std::abs(column[i]) > std::abs(column[pivot])) pivot = i;
    }
    if (pivots != nullptr) pivots[k] = static_cast<int>(pivot + 1);
    for (int64_t j = 0; j < n && pivot != k; ++j) {
      std::swap(a.data[k + j * a.ld], a.data[pivot + j * a.ld]);
    }
    if (column[k] == T(0)) {
      if (singular == 0) singular = static_cast<int>(k + 1);
      continue;
    }
    for (int64_t i = k + 1; i < n; ++i) column[i] /= column[k];
    for (int64_t j = k + 1; j < n; ++j) {
      T* const target = a.data + j * a.ld;
      for (int64_t i = k + 1; i < n; ++i) target[i] -= column[i] * target[k];
    }
  }
  return singular;
}

// Solves op(A) * X = B with the factors of FactorLu; X replaces the n x columns matrix B.
template <class T>
void SolveLu(cublasOperation_t op, int64_t n, ConstMatrix<T> lu, const int* pivots, Matrix<T> b,
             int64_t columns) {
  const auto exchange = [&](int64_t k) {
    const int64_t other = pivots[k] - 1;
    for (int64_t j = 0; j < columns && other != k; ++j) {
      std::swap(b.data[k + j * b.ld], b.data[other + j * b.ld]);
    }
  };
  const TriangularShape lower{CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, op, CUBLAS_DIAG_UNIT, n,
                              columns};
  const TriangularShape upper{CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, op, CUBLAS_DIAG_NON_UNIT, n,
                              columns};
  if (op == CUBLAS_OP_N) {
    for (int64_t k = 0; k < n && pivots != nullptr; ++k) exchange(k);
    dense::Trsm<T>(lower, T(1), lu, b);
    dense::Trsm<T>(upper, T(1), lu, b);
  } else {
    dense::Trsm<T>(upper, T(1), lu, b);
    dense::Trsm<T>(lower, T(1), lu, b);
    for (int64_t k = n - 1; k >= 0 && pivots != nullptr; --k) exchange(k);
  }
}

// The inverse from the factors of FactorLu. Returns 0, or where U is singular, counted from 1.
template <class T>
int InvertLu(int64_t n, ConstMatrix<T> lu, const int* pivots, Matrix<T> inverse) {
  for (int64_t i = 0; i < n; ++i) {
    if (lu.data[i + i * lu.ld] == T(0)) return static_cast<int>(i + 1);
  }
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) inverse.data[i + j * inverse.ld] = i == j ? T(1) : T(0);
  }
  SolveLu<T>(CUBLAS_OP_N, n, lu, pivots, inverse, n);
  return 0;
}

// Applies H = I - tau * v * v^H to a column, where v is 1 followed by `rest`.
template <class T>
void Reflect(int64_t count, const T* rest, T tau, T* column) {
  T product = column[0];
  for (int64_t i = 1; i < count; ++i) product += Conj(rest[i - 1]) * column[i];
  product *= tau;
  column[0] -= product;
  for (int64_t i = 1; i < count; ++i) column[i] -= rest[i - 1] * product;
}

// A = Q * R in place: R above, the reflections' vectors below the diagonal, as LAPACK's geqrf.
template <class T>
void FactorQr(int64_t m, int64_t n, Matrix<T> a, T* tau) {
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    T* const column = a.data + k + k * a.ld;
    const int64_t count = m - k;
    Real<T> squares = 0;
    for (int64_t i = 1; i < count; ++i) squares += std::norm(column[i]);
    const T head = column[0];
    if (squares == 0 && head == T(RealPart(head))) {
      tau[k] = T(0);
      continue;
    }
    const Real<T> norm = std::sqrt(std::norm(head) + squares);
    const Real<T> beta = RealPart(head) > 0 ? -norm : norm;
    tau[k] = (T(beta) - head) / beta;
    for (int64_t i = 1; i < count; ++i) column[i] /= head - T(beta);
    column[0] = T(beta);
    for (int64_t j = k + 1; j < n; ++j) {
      Reflect(count, column + 1, Conj(tau[k]), a.data + k + j * a.ld);
    }
  }
}

// Minimises |A * X - C| for m >= n and A of full rank: A becomes its QR factors, the first n rows
// of C the solution. Returns 0, or where R is singular, counted from 1.
template <class T>
int LeastSquares(int64_t m, int64_t n, Matrix<T> a, Matrix<T> c, int64_t columns) {
  std::vector<T> tau(n);
  FactorQr(m, n, a, tau.data());
  for (int64_t k = 0; k < n; ++k) {
    if (a.data[k + k * a.ld] == T(0)) return static_cast<int>(k + 1);
    for (int64_t j = 0; j < columns; ++j) {
      Reflect(m - k, a.data + k + 1 + k * a.ld, Conj(tau[k]), c.data + k + j * c.ld);
    }
  }
  const TriangularShape upper{
      CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, n, columns};
  dense::Trsm<T>(upper, T(1), {a.data, a.ld}, c);
  return 0;
}

}  // namespace softgpu::cublas
