// Gemm over element types known at run time: operands are converted to a compute type E, multiplied
// (dense.h), and the result is rounded once to its own type. So half-precision results are at least
// as accurate as the hardware's, and equal from run to run.
//
// E is float, double, Complex64, Complex128 or int32_t. REQUIRES: Convertible<E> of every type.
// Thread safety: as dense.h. Memory for converted operands lives only during the call.
#pragma once

#include <algorithm>
#include <memory>

#include "softgpu/cublas/core/convert.h"
#include "softgpu/cublas/core/dense.h"
#include "softgpu/cublas/core/pool.h"

namespace softgpu::cublas {

struct TypedConstMatrix {
  const void* data;
  cudaDataType type;
  int64_t ld;
};
struct TypedMatrix {
  void* data;
  cudaDataType type;
  int64_t ld;
};

inline const void* ElementAt(const void* data, cudaDataType type, int64_t index) {
  return static_cast<const char*>(data) + index * ElementBytes(type);
}
inline void* ElementAt(void* data, cudaDataType type, int64_t index) {
  return static_cast<char*>(data) + index * ElementBytes(type);
}

// Columns that one thread converts at a time.
inline constexpr int64_t kConvertElements = 1 << 16;

// Calls convert(first, last) for ranges of columns, several at once.
template <class Convert>
void ForColumnRanges(int64_t rows, int64_t columns, const Convert& convert) {
  const int64_t width = std::max<int64_t>(1, kConvertElements / std::max<int64_t>(rows, 1));
  ParallelFor((columns + width - 1) / width,
              [&](int64_t part) { convert(part * width, std::min(columns, (part + 1) * width)); });
}

// A rows x columns matrix as elements of E: the given memory itself where it holds E, else a copy.
template <class E>
class AsElements {
 public:
  AsElements(const TypedConstMatrix& matrix, int64_t rows, int64_t columns) {
    if (matrix.type == kDataType<E>) {
      view_ = {static_cast<const E*>(matrix.data), matrix.ld};
      return;
    }
    const int64_t ld = std::max<int64_t>(rows, 1);
    copy_ = std::make_unique_for_overwrite<E[]>(ld * columns);
    ForColumnRanges(rows, columns, [&](int64_t first, int64_t last) {
      for (int64_t j = first; j < last; ++j) {
        Load(copy_.get() + j * ld, ElementAt(matrix.data, matrix.type, j * matrix.ld), matrix.type,
             rows);
      }
    });
    view_ = {copy_.get(), ld};
  }
  const ConstMatrix<E>& view() const { return view_; }

 private:
  std::unique_ptr<E[]> copy_;
  ConstMatrix<E> view_{};
};

// The stored shape of an operand that is rows x columns after op.
struct Extent {
  int64_t rows, columns;
};
inline Extent StoredExtent(cublasOperation_t op, int64_t rows, int64_t columns) {
  return op == CUBLAS_OP_N ? Extent{rows, columns} : Extent{columns, rows};
}

template <class E>
void MixedGemm(const GemmShape& shape, E alpha, const TypedConstMatrix& a,
               const TypedConstMatrix& b, E beta, const TypedMatrix& c) {
  const Extent extent_a = StoredExtent(shape.op_a, shape.m, shape.k);
  const Extent extent_b = StoredExtent(shape.op_b, shape.k, shape.n);
  const AsElements<E> elements_a(a, extent_a.rows, extent_a.columns);
  const AsElements<E> elements_b(b, extent_b.rows, extent_b.columns);
  if (c.type == kDataType<E>) {
    dense::Gemm<E>(shape, alpha, elements_a.view(), elements_b.view(), beta,
                   {static_cast<E*>(c.data), c.ld});
    return;
  }
  const std::unique_ptr<E[]> sums = std::make_unique_for_overwrite<E[]>(shape.m * shape.n);
  if (beta != E(0)) {
    ForColumnRanges(shape.m, shape.n, [&](int64_t first, int64_t last) {
      for (int64_t j = first; j < last; ++j) {
        Load(sums.get() + j * shape.m, ElementAt(c.data, c.type, j * c.ld), c.type, shape.m);
      }
    });
  }
  dense::Gemm<E>(shape, alpha, elements_a.view(), elements_b.view(), beta, {sums.get(), shape.m});
  ForColumnRanges(shape.m, shape.n, [&](int64_t first, int64_t last) {
    for (int64_t j = first; j < last; ++j) {
      Store(ElementAt(c.data, c.type, j * c.ld), c.type, sums.get() + j * shape.m, shape.m);
    }
  });
}

}  // namespace softgpu::cublas
