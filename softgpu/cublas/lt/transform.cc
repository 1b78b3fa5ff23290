// cublasLtMatrixTransform: C = alpha * op(A) + beta * op(B), between types and between row and
// column order.
#include "softgpu/cublas/api/bind.h"
#include "softgpu/cublas/api/check.h"
#include "softgpu/cublas/core/mixed.h"
#include "softgpu/cublas/core/operands.h"
#include "softgpu/cublas/lt/matmul.h"
#include "softgpu/cublas/lt/objects.h"

namespace softgpu::cublas {
namespace {

struct Term {
  const void* data;
  MatrixLayout layout;
  cublasOperation_t op;
};

bool IsPlainLayout(const MatrixLayout& layout) {
  const bool row = layout.order == CUBLASLT_ORDER_ROW;
  return (row || layout.order == CUBLASLT_ORDER_COL) && layout.plane_offset == 0 &&
         layout.batch_mode == CUBLASLT_BATCH_MODE_STRIDED && layout.batch_count >= 1 &&
         IsLeading(layout.ld, static_cast<int64_t>(row ? layout.columns : layout.rows));
}

bool Fits(const Term& term, const MatrixLayout& result) {
  const bool normal = term.op == CUBLAS_OP_N;
  return (normal ? term.layout.rows : term.layout.columns) == result.rows &&
         (normal ? term.layout.columns : term.layout.rows) == result.columns &&
         term.layout.batch_count == result.batch_count;
}

// Where (i, j) of a stored matrix lies, in elements.
int64_t Position(const MatrixLayout& layout, int64_t i, int64_t j) {
  return layout.order == CUBLASLT_ORDER_ROW ? i * layout.ld + j : i + j * layout.ld;
}

template <class E>
E Element(const Term& term, int64_t batch, int64_t i, int64_t j) {
  const cudaDataType type = static_cast<cudaDataType>(term.layout.type);
  const int64_t position =
      term.op == CUBLAS_OP_N ? Position(term.layout, i, j) : Position(term.layout, j, i);
  const E value =
      LoadOne<E>(ElementAt(term.data, type, batch * term.layout.batch_stride + position), type);
  return ConjIf(term.op == CUBLAS_OP_C, value);
}

bool RequireMatrix(const void* data, const MatrixLayout& layout) {
  const bool row = layout.order == CUBLASLT_ORDER_ROW;
  const int64_t rows = static_cast<int64_t>(layout.rows);
  const int64_t columns = static_cast<int64_t>(layout.columns);
  return RequireRegion(
      "cublasLtMatrixTransform",
      ipc::blas::MatrixRegion(row ? columns : rows, row ? rows : columns, layout.ld,
                              ElementBytes(static_cast<cudaDataType>(layout.type)),
                              layout.batch_count, layout.batch_stride),
      data);
}

template <class E>
void Run(E alpha, const Term& a, E beta, const Term& b, void* c, const MatrixLayout& layout) {
  if ((alpha != E(0) && !RequireMatrix(a.data, a.layout)) ||
      (beta != E(0) && !RequireMatrix(b.data, b.layout)) || !RequireMatrix(c, layout)) {
    return;
  }
  const int64_t rows = static_cast<int64_t>(layout.rows);
  const int64_t columns = static_cast<int64_t>(layout.columns);
  const cudaDataType type = static_cast<cudaDataType>(layout.type);
  for (int64_t batch = 0; batch < layout.batch_count; ++batch) {
    ForColumnRanges(rows, columns, [&](int64_t first, int64_t last) {
      for (int64_t j = first; j < last; ++j) {
        for (int64_t i = 0; i < rows; ++i) {
          E sum{};
          if (alpha != E(0)) sum += alpha * Element<E>(a, batch, i, j);
          if (beta != E(0)) sum += beta * Element<E>(b, batch, i, j);
          Store(ElementAt(c, type, batch * layout.batch_stride + Position(layout, i, j)), type,
                &sum, 1);
        }
      }
    });
  }
}

template <class E>
cublasStatus_t SubmitAs(const TransformDesc& desc, const void* alpha, const Term& a,
                        const void* beta, const Term& b, void* c, const MatrixLayout& layout,
                        cudaStream_t stream) {
  for (const int32_t type : {a.layout.type, b.layout.type, layout.type}) {
    if (!Convertible<E>(static_cast<cudaDataType>(type))) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const bool on_device = desc.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
  const cudaDataType scale = static_cast<cudaDataType>(desc.scale_type);
  const TypedScalar<E> alpha_of(on_device, alpha, scale);
  const bool has_b = b.data != nullptr;
  const E zero{};
  const TypedScalar<E> beta_of(has_b && on_device, has_b ? beta : &zero,
                               has_b ? scale : kDataType<E>);
  return EnqueueOn(stream, [=] {
    const bool has_scalars =
        RequireScalars("cublasLtMatrixTransform", on_device, scale, {alpha, has_b ? beta : alpha});
    if (has_scalars) Run<E>(alpha_of(), a, beta_of(), b, c, layout);
  });
}

cublasStatus_t Transform(cublasLtHandle_t handle, cublasLtMatrixTransformDesc_t desc_object,
                         const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                         const void* beta, const void* b, cublasLtMatrixLayout_t b_layout, void* c,
                         cublasLtMatrixLayout_t c_layout, cudaStream_t stream) {
  if (Handle::From(handle) == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const bool has_b = b != nullptr && b_layout != nullptr;
  if (desc_object == nullptr || alpha == nullptr || a == nullptr || a_layout == nullptr ||
      c == nullptr || c_layout == nullptr || (has_b && beta == nullptr)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const TransformDesc& desc = *Contents<TransformDesc>(desc_object);
  const MatrixLayout& layout = *Contents<MatrixLayout>(c_layout);
  const Term first{a, *Contents<MatrixLayout>(a_layout), static_cast<cublasOperation_t>(desc.op_a)};
  Term second{nullptr, layout, CUBLAS_OP_N};
  if (has_b) {
    second = {b, *Contents<MatrixLayout>(b_layout), static_cast<cublasOperation_t>(desc.op_b)};
  }
  if (!IsValid(first.op) || !IsValid(second.op) || !Fits(first, layout) || !Fits(second, layout)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!IsPlainLayout(layout) || !IsPlainLayout(first.layout) || !IsPlainLayout(second.layout)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  try {
    switch (desc.scale_type) {
      case CUDA_R_32F:
        return SubmitAs<float>(desc, alpha, first, beta, second, c, layout, stream);
      case CUDA_R_64F:
        return SubmitAs<double>(desc, alpha, first, beta, second, c, layout, stream);
      case CUDA_R_32I:
        return SubmitAs<int32_t>(desc, alpha, first, beta, second, c, layout, stream);
      case CUDA_C_32F:
        return SubmitAs<Complex64>(desc, alpha, first, beta, second, c, layout, stream);
      case CUDA_C_64F:
        return SubmitAs<Complex128>(desc, alpha, first, beta, second, c, layout, stream);
      default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
  } catch (const std::bad_alloc&) {
    return CUBLAS_STATUS_ALLOC_FAILED;
  }
}

}  // namespace
}  // namespace softgpu::cublas

using namespace softgpu::cublas;  // NOLINT: the exports below are C symbols

SOFTGPU_EXPORT(cublasLtMatrixTransform, &Transform)
