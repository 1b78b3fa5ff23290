// Gemm: tiles of C, shared among threads; OpenBLAS for floating point, plain loops for integers.
#include <algorithm>
#include <vector>

#include "softgpu/cublas/core/dense.h"
#include "softgpu/cublas/core/openblas.h"
#include "softgpu/cublas/core/openblas_words.h"
#include "softgpu/cublas/core/pool.h"

namespace softgpu::cublas::dense {
namespace {

// A tile is large enough that packing A and B for it costs little beside the arithmetic. The size
// is a constant: the sums of an element, and so its bits, follow from the shape alone.
constexpr int64_t kTile = 256;
constexpr double kTiledWorkMin = 1 << 21;  // multiply-adds below which one tile is faster

template <class T>
void TileProduct(const GemmShape& shape, T alpha, ConstMatrix<T> a, ConstMatrix<T> b, T beta,
                 Matrix<T> c) {
  const OneOpenBlasCall place;
  OpenBlas<T>::gemm(CblasColMajor, Word(shape.op_a), Word(shape.op_b), shape.m, shape.n, shape.k,
                    Pass(alpha), a.data, a.ld, b.data, b.ld, Pass(beta), c.data, c.ld);
}

// Integer sums wrap, as the hardware's do.
template <>
void TileProduct<int32_t>(const GemmShape& shape, int32_t alpha, ConstMatrix<int32_t> a,
                          ConstMatrix<int32_t> b, int32_t beta, Matrix<int32_t> c) {
  const bool a_normal = shape.op_a == CUBLAS_OP_N, b_normal = shape.op_b == CUBLAS_OP_N;
  std::vector<uint32_t> sums(shape.m);
  for (int64_t j = 0; j < shape.n; ++j) {
    std::fill(sums.begin(), sums.end(), 0u);
    for (int64_t p = 0; p < shape.k; ++p) {
      const uint32_t factor = static_cast<uint32_t>(b.data[b_normal ? p + j * b.ld : j + p * b.ld]);
      const int32_t* const column = a_normal ? a.data + p * a.ld : a.data + p;
      const int64_t step = a_normal ? 1 : a.ld;
      for (int64_t i = 0; i < shape.m; ++i) {
        sums[i] += static_cast<uint32_t>(column[i * step]) * factor;
      }
    }
    int32_t* const out = c.data + j * c.ld;
    for (int64_t i = 0; i < shape.m; ++i) {
      const uint32_t old =
          beta == 0 ? 0u : static_cast<uint32_t>(beta) * static_cast<uint32_t>(out[i]);
      out[i] = static_cast<int32_t>(static_cast<uint32_t>(alpha) * sums[i] + old);
    }
  }
}

}  // namespace

template <class T>
void Gemm(const GemmShape& shape, T alpha, ConstMatrix<T> a, ConstMatrix<T> b, T beta,
          Matrix<T> c) {
  if (shape.m == 0 || shape.n == 0) return;
  const double work = static_cast<double>(shape.m) * shape.n * shape.k;
  if (work < kTiledWorkMin) {
    TileProduct(shape, alpha, a, b, beta, c);
    return;
  }
  const int64_t rows = (shape.m + kTile - 1) / kTile, columns = (shape.n + kTile - 1) / kTile;
  ParallelFor(rows * columns, [&](int64_t tile) {
    const int64_t i = tile % rows * kTile, j = tile / rows * kTile;
    GemmShape piece = shape;
    piece.m = std::min(kTile, shape.m - i);
    piece.n = std::min(kTile, shape.n - j);
    TileProduct(piece, alpha, {a.data + (shape.op_a == CUBLAS_OP_N ? i : i * a.ld), a.ld},
                {b.data + (shape.op_b == CUBLAS_OP_N ? j * b.ld : j), b.ld}, beta,
                {c.data + i + j * c.ld, c.ld});
  });
}

template decltype(Gemm<float>) Gemm<float>;
template decltype(Gemm<double>) Gemm<double>;
template decltype(Gemm<Complex64>) Gemm<Complex64>;
template decltype(Gemm<Complex128>) Gemm<Complex128>;
template decltype(Gemm<int32_t>) Gemm<int32_t>;

}  // namespace softgpu::cublas::dense
