// Level 3 except Gemm, and Gemv: arguments in OpenBLAS's words, and tiles.
#include "softgpu/cublas/core/dense.h"

#include <algorithm>

#include "softgpu/cublas/core/openblas.h"
#include "softgpu/cublas/core/openblas_words.h"
#include "softgpu/cublas/core/pool.h"

namespace softgpu::cublas::dense {
namespace {

// Right-hand sides solved by one call: fixed, so that the result doesn't depend on the threads.
constexpr int64_t kPanel = 128;
constexpr double kParallelWorkMin = 1 << 21;  // multiply-adds below which one call is faster

// Columns of B (side left) or rows (right) are independent of each other in Trmm and Trsm.
template <class T, class Call>
void ByPanels(const TriangularShape& shape, Matrix<T> b, const Call& call) {
  const bool left = shape.side == CUBLAS_SIDE_LEFT;
  const int64_t independent = left ? shape.n : shape.m;
  const int64_t order = left ? shape.m : shape.n;
  const double work = static_cast<double>(order) * order * independent;
  const int64_t panel = work < kParallelWorkMin ? independent : kPanel;
  const int64_t parts = (independent + panel - 1) / panel;
  ParallelFor(parts, [&](int64_t part) {
    const int64_t first = part * panel;
    const int64_t count = std::min(panel, independent - first);
    TriangularShape piece = shape;
    (left ? piece.n : piece.m) = count;
    T* const data = b.data + (left ? first * b.ld : first);
    const OneOpenBlasCall place;
    call(piece, data);
  });
}

}  // namespace

template <class T>
void Gemv(cublasOperation_t op, int64_t m, int64_t n, T alpha, ConstMatrix<T> a, const T* x,
          int64_t incx, T beta, T* y, int64_t incy) {
  if (beta == T(0)) {  // OpenBLAS versions differ in whether they multiply a NaN in y by zero
    const int64_t count = op == CUBLAS_OP_N ? m : n;
    for (int64_t i = 0; i < count; ++i) y[incy < 0 ? (i + 1 - count) * incy : i * incy] = T(0);
  }
  const OneOpenBlasCall place;
  OpenBlas<T>::gemv(CblasColMajor, Word(op), m, n, Pass(alpha), a.data, a.ld, x, incx, Pass(beta),
                    y, incy);
}

template <class T>
void Symm(const SymmetricShape& shape, T alpha, ConstMatrix<T> a, ConstMatrix<T> b, T beta,
          Matrix<T> c) {
  const OneOpenBlasCall place;
  auto* routine = OpenBlas<T>::symm;
  if constexpr (kIsComplex<T>) {
    if (shape.hermitian) routine = OpenBlas<T>::hemm;
  }
  routine(CblasColMajor, Word(shape.side), Word(shape.uplo), shape.m, shape.n, Pass(alpha), a.data,
          a.ld, b.data, b.ld, Pass(beta), c.data, c.ld);
}

template <class T>
void Syrk(const RankShape& shape, T alpha, ConstMatrix<T> a, T beta, Matrix<T> c) {
  const OneOpenBlasCall place;
  if constexpr (kIsComplex<T>) {
    if (shape.hermitian) {
      OpenBlas<T>::herk(CblasColMajor, Word(shape.uplo), Word(shape.op), shape.n, shape.k,
                        alpha.real(), a.data, a.ld, beta.real(), c.data, c.ld);
      return;
    }
  }
  OpenBlas<T>::syrk(CblasColMajor, Word(shape.uplo), Word(shape.op), shape.n, shape.k, Pass(alpha),
                    a.data, a.ld, Pass(beta), c.data, c.ld);
}

template <class T>
void Syr2k(const RankShape& shape, T alpha, ConstMatrix<T> a, ConstMatrix<T> b, T beta,
           Matrix<T> c) {
  const OneOpenBlasCall place;
  if constexpr (kIsComplex<T>) {
    if (shape.hermitian) {
      OpenBlas<T>::her2k(CblasColMajor, Word(shape.uplo), Word(shape.op), shape.n, shape.k,
                         Pass(alpha), a.data, a.ld, b.data, b.ld, beta.real(), c.data, c.ld);
      return;
    }
  }
  OpenBlas<T>::syr2k(CblasColMajor, Word(shape.uplo), Word(shape.op), shape.n, shape.k, Pass(alpha),
                     a.data, a.ld, b.data, b.ld, Pass(beta), c.data, c.ld);
}

template <class T>
void Trmm(const TriangularShape& shape, T alpha, ConstMatrix<T> a, Matrix<T> b) {
  ByPanels(shape, b, [&](const TriangularShape& piece, T* data) {
    OpenBlas<T>::trmm(CblasColMajor, Word(piece.side), Word(piece.uplo), Word(piece.op),
                      Word(piece.diag), piece.m, piece.n, Pass(alpha), a.data, a.ld, data, b.ld);
  });
}

template <class T>
void Trsm(const TriangularShape& shape, T alpha, ConstMatrix<T> a, Matrix<T> b) {
  ByPanels(shape, b, [&](const TriangularShape& piece, T* data) {
    OpenBlas<T>::trsm(CblasColMajor, Word(piece.side), Word(piece.uplo), Word(piece.op),
                      Word(piece.diag), piece.m, piece.n, Pass(alpha), a.data, a.ld, data, b.ld);
  });
}

#define INSTANTIATE(T)                  \
  template decltype(Gemv<T>) Gemv<T>;   \
  template decltype(Symm<T>) Symm<T>;   \
  template decltype(Syrk<T>) Syrk<T>;   \
  template decltype(Syr2k<T>) Syr2k<T>; \
  template decltype(Trmm<T>) Trmm<T>;   \
  template decltype(Trsm<T>) Trsm<T>;
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(Complex64)
INSTANTIATE(Complex128)
#undef INSTANTIATE

}  // namespace softgpu::cublas::dense
