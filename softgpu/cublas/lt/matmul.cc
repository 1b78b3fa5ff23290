#include "softgpu/cublas/lt/matmul.h"

#include <cmath>

#include "softgpu/cublas/api/check.h"
#include "softgpu/cublas/core/operands.h"

namespace softgpu::cublas {
namespace {

constexpr uint32_t kKnownEpilogues = CUBLASLT_EPILOGUE_DEFAULT | CUBLASLT_EPILOGUE_RELU |
                                     CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_GELU;

bool IsComplex(int32_t type) { return type == CUDA_C_32F || type == CUDA_C_64F; }

// The operation that does to a transposed matrix what `op` does to the matrix.
std::optional<cublasOperation_t> Transposed(cublasOperation_t op, bool complex) {
  if (op == CUBLAS_OP_N) return CUBLAS_OP_T;
  if (op == CUBLAS_OP_T || !complex) return CUBLAS_OP_N;
  return std::nullopt;  // a conjugate without a transpose
}

cublasStatus_t CheckLayout(const MatrixLayout& layout) {
  const bool row = layout.order == CUBLASLT_ORDER_ROW;
  if (!row && layout.order != CUBLASLT_ORDER_COL) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (layout.plane_offset != 0 || ElementBytes(static_cast<cudaDataType>(layout.type)) == 0) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const int64_t rows = static_cast<int64_t>(layout.rows);
  const int64_t columns = static_cast<int64_t>(layout.columns);
  if (!Countable({rows, columns, layout.ld}) || !AreSizes({rows, columns})) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (layout.batch_count < 1 || !IsLeading(layout.ld, row ? columns : rows)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

LtOperand Operand(const MatrixLayout& layout) {
  return {nullptr, static_cast<cudaDataType>(layout.type), layout.ld, layout.batch_stride,
          layout.batch_mode == CUBLASLT_BATCH_MODE_POINTER_ARRAY};
}

std::optional<ProductPlan> PlanTypes(const MatmulDesc& desc, const LtLayouts& layouts) {
  const cublasComputeType_t compute = static_cast<cublasComputeType_t>(desc.compute_type);
  const cudaDataType a = static_cast<cudaDataType>(layouts.a->type);
  const cudaDataType d = static_cast<cudaDataType>(layouts.d->type);
  if (layouts.a->type != layouts.b->type) return std::nullopt;
  const bool int32 = compute == CUBLAS_COMPUTE_32I || compute == CUBLAS_COMPUTE_32I_PEDANTIC;
  if (int32 && desc.scale_type == CUDA_R_32F && a == CUDA_R_8I && d == CUDA_R_8I &&
      layouts.c->type == layouts.d->type) {
    return ProductPlan{Arithmetic::kDouble, CUDA_R_32F};  // sums of bytes are exact in a double
  }
  const std::optional<ProductPlan> plan = PlanProduct(compute, a, d);
  const bool c_fits =
      PlanProduct(compute, a, static_cast<cudaDataType>(layouts.c->type)).has_value();
  if (!plan || !c_fits || plan->scale_type != desc.scale_type) return std::nullopt;
  return plan;
}

cublasStatus_t CheckDesc(const MatmulDesc& desc, const LtLayouts& layouts) {
  if (!IsValid(static_cast<cublasOperation_t>(desc.op_a)) ||
      !IsValid(static_cast<cublasOperation_t>(desc.op_b))) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool gelu = (desc.epilogue & CUBLASLT_EPILOGUE_GELU) != 0;
  const bool relu = (desc.epilogue & CUBLASLT_EPILOGUE_RELU) != 0;
  const bool plain = desc.epilogue == CUBLASLT_EPILOGUE_DEFAULT;
  const bool real_output = layouts.d->type == CUDA_R_32F || layouts.d->type == CUDA_R_64F ||
                           layouts.d->type == CUDA_R_16F || layouts.d->type == CUDA_R_16BF;
  if (desc.epilogue == 0 || (desc.epilogue & ~kKnownEpilogues) != 0 || (gelu && relu) ||
      (!plain && !real_output)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const bool scaled = desc.a_scale != nullptr || desc.b_scale != nullptr ||
                      desc.c_scale != nullptr || desc.d_scale != nullptr ||
                      desc.d_amax != nullptr || desc.d_out_scale != nullptr;
  if (scaled || desc.op_c != CUBLAS_OP_N || desc.fill_mode != CUBLAS_FILL_MODE_FULL ||
      (desc.pointer_mode != CUBLASLT_POINTER_MODE_HOST &&
       desc.pointer_mode != CUBLASLT_POINTER_MODE_DEVICE)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return CUBLAS_STATUS_SUCCESS;
}

// m, n, k from D and op(A), and whether everything fits together.
cublasStatus_t CheckShapes(const MatmulDesc& desc, const LtLayouts& l, int64_t* k) {
  const bool a_normal = desc.op_a == CUBLAS_OP_N, b_normal = desc.op_b == CUBLAS_OP_N;
  const uint64_t inner = a_normal ? l.a->columns : l.a->rows;
  if ((a_normal ? l.a->rows : l.a->columns) != l.d->rows ||
      (b_normal ? l.b->columns : l.b->rows) != l.d->columns ||
      (b_normal ? l.b->rows : l.b->columns) != inner || l.c->rows != l.d->rows ||
      l.c->columns != l.d->columns || l.c->order != l.d->order) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  for (const MatrixLayout* layout : {l.a, l.b, l.c}) {
    if (layout->batch_count != l.d->batch_count) return CUBLAS_STATUS_INVALID_VALUE;
  }
  *k = static_cast<int64_t>(inner);
  return CUBLAS_STATUS_SUCCESS;
}

template <class E>
E Activate(uint32_t epilogue, E x) {
  if constexpr (std::is_floating_point_v<E>) {
    if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0) return x > 0 ? x : (x != x ? x : E(0));
    if ((epilogue & CUBLASLT_EPILOGUE_GELU) != 0) {
      constexpr E kRootTwoOverPi = E(0.7978845608028654);
      return E(0.5) * x * (1 + std::tanh(kRootTwoOverPi * (x + E(0.044715) * x * x * x)));
    }
  }
  return x;
}

template <class E>
void ApplyEpilogue(const LtMatmul& matmul, int64_t index, Matrix<E> result) {
  const GemmShape& shape = matmul.shape;
  std::vector<E> bias;
  if ((matmul.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) {
    bias.resize(matmul.bias_along_columns ? shape.n : shape.m);
    Load(bias.data(), matmul.bias.At(index), matmul.bias.type, static_cast<int64_t>(bias.size()));
  }
  ForColumnRanges(shape.m, shape.n, [&](int64_t first, int64_t last) {
    for (int64_t j = first; j < last; ++j) {
      E* const column = result.data + j * result.ld;
      for (int64_t i = 0; i < shape.m; ++i) {
        if (!bias.empty()) column[i] += bias[matmul.bias_along_columns ? j : i];
        column[i] = Activate(matmul.epilogue, column[i]);
      }
    }
  });
}

template <class E>
void RunOne(const LtMatmul& matmul, int64_t index, E alpha, E beta) {
  const GemmShape& shape = matmul.shape;
  const LtOperand& c = matmul.c;
  const LtOperand& d = matmul.d;
  const Extent extent_a = StoredExtent(shape.op_a, shape.m, shape.k);
  const Extent extent_b = StoredExtent(shape.op_b, shape.k, shape.n);
  const AsElements<E> a(matmul.a.Const(index), extent_a.rows, extent_a.columns);
  const AsElements<E> b(matmul.b.Const(index), extent_b.rows, extent_b.columns);

  // The sums are built in D where D holds E, else in memory of their own.
  const bool in_place = d.type == kDataType<E>;
  std::unique_ptr<E[]> sums;
  if (!in_place) sums = std::make_unique_for_overwrite<E[]>(shape.m * shape.n);
  const Matrix<E> result =
      in_place ? Matrix<E>{static_cast<E*>(d.At(index)), d.ld} : Matrix<E>{sums.get(), shape.m};
  if (beta != E(0) && c.At(index) != static_cast<const void*>(result.data)) {
    for (int64_t j = 0; j < shape.n; ++j) {
      Load(result.data + j * result.ld, ElementAt(c.At(index), c.type, j * c.ld), c.type, shape.m);
    }
  }
  dense::Gemm<E>(shape, alpha, a.view(), b.view(), beta, result);
  if (matmul.epilogue != CUBLASLT_EPILOGUE_DEFAULT) ApplyEpilogue(matmul, index, result);
  for (int64_t j = 0; j < shape.n && !in_place; ++j) {
    Store(ElementAt(d.At(index), d.type, j * d.ld), d.type, result.data + j * result.ld, shape.m);
  }
}

constexpr char kName[] = "cublasLtMatmul";

bool RequireMatrix(const LtOperand& operand, const Extent& extent, int64_t batch) {
  const int64_t bytes = ElementBytes(operand.type);
  if (!operand.pointer_array) {
    return RequireRegion(kName,
                         ipc::blas::MatrixRegion(extent.rows, extent.columns, operand.ld, bytes,
                                                 batch, operand.stride),
                         operand.data);
  }
  const ipc::blas::Region pointers = ipc::blas::MatrixRegion(batch, 1, batch, sizeof(void*));
  if (!RequireRegion(kName, pointers, operand.data)) return false;
  const ipc::blas::Region one =
      ipc::blas::MatrixRegion(extent.rows, extent.columns, operand.ld, bytes);
  for (int64_t i = 0; i < batch; ++i) {
    if (!RequireRegion(kName, one, operand.At(i))) return false;
  }
  return true;
}

bool RequireMemory(const LtMatmul& matmul, bool reads_c) {
  const GemmShape& shape = matmul.shape;
  const Extent result{shape.m, shape.n};
  const bool has_bias = (matmul.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  const Extent bias{matmul.bias_along_columns ? shape.n : shape.m, 1};
  LtOperand bias_operand = matmul.bias;
  bias_operand.ld = bias.rows;
  return RequireMatrix(matmul.a, StoredExtent(shape.op_a, shape.m, shape.k), matmul.batch) &&
         RequireMatrix(matmul.b, StoredExtent(shape.op_b, shape.k, shape.n), matmul.batch) &&
         (!reads_c || RequireMatrix(matmul.c, result, matmul.batch)) &&
         RequireMatrix(matmul.d, result, matmul.batch) &&
         (!has_bias || RequireMatrix(bias_operand, bias, matmul.batch));
}

}  // namespace

bool RequireScalars(const char* name, bool on_device, cudaDataType type,
                    std::initializer_list<const void*> scalars) {
  const ipc::blas::Region one = ipc::blas::MatrixRegion(1, 1, 1, ElementBytes(type));
  for (const void* const scalar : scalars) {
    if (on_device && !RequireRegion(name, one, scalar)) return false;
  }
  return true;
}

cublasStatus_t PlanLtMatmul(const MatmulDesc& desc, const LtLayouts& l, LtMatmul* matmul) {
  for (const MatrixLayout* layout : {l.a, l.b, l.c, l.d}) {
    const cublasStatus_t status = CheckLayout(*layout);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
  }
  cublasStatus_t status = CheckDesc(desc, l);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  int64_t k = 0;
  status = CheckShapes(desc, l, &k);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const std::optional<ProductPlan> plan = PlanTypes(desc, l);
  if (!plan) return CUBLAS_STATUS_NOT_SUPPORTED;

  // What has to be done to the stored, column-major matrices to get op(A) and op(B), or, for a
  // row-major D, their transposes in the other order.
  const bool transposed = l.d->order == CUBLASLT_ORDER_ROW;
  const bool complex = IsComplex(l.a->type);
  std::optional<cublasOperation_t> op_a = static_cast<cublasOperation_t>(desc.op_a);
  std::optional<cublasOperation_t> op_b = static_cast<cublasOperation_t>(desc.op_b);
  if ((l.a->order == CUBLASLT_ORDER_ROW) != transposed) op_a = Transposed(*op_a, complex);
  if ((l.b->order == CUBLASLT_ORDER_ROW) != transposed) op_b = Transposed(*op_b, complex);
  if (!op_a || !op_b) return CUBLAS_STATUS_NOT_SUPPORTED;
  const int64_t rows = static_cast<int64_t>(l.d->rows);
  const int64_t columns = static_cast<int64_t>(l.d->columns);
  matmul->shape = transposed ? GemmShape{*op_b, *op_a, columns, rows, k}
                             : GemmShape{*op_a, *op_b, rows, columns, k};
  matmul->a = Operand(transposed ? *l.b : *l.a);
  matmul->b = Operand(transposed ? *l.a : *l.b);
  matmul->c = Operand(*l.c);
  matmul->d = Operand(*l.d);
  matmul->plan = *plan;
  matmul->batch = l.d->batch_count;
  matmul->scalars_on_device = desc.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
  matmul->epilogue = desc.epilogue;
  matmul->bias_along_columns = transposed;
  const int32_t bias_type = desc.bias_type >= 0 ? desc.bias_type : l.d->type;
  matmul->bias = {const_cast<void*>(desc.bias), static_cast<cudaDataType>(bias_type), 1,
                  desc.bias_batch_stride, false};
  const bool known_bias = bias_type == CUDA_R_32F || bias_type == l.d->type;
  return known_bias ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

template <class E>
void RunLtMatmul(const LtMatmul& matmul, E alpha, E beta) {
  if (!RequireMemory(matmul, beta != E(0))) return;
  ParallelFor(matmul.batch, [&](int64_t index) { RunOne(matmul, index, alpha, beta); });
}

template decltype(RunLtMatmul<float>) RunLtMatmul<float>;
template decltype(RunLtMatmul<double>) RunLtMatmul<double>;
template decltype(RunLtMatmul<Complex64>) RunLtMatmul<Complex64>;
template decltype(RunLtMatmul<Complex128>) RunLtMatmul<Complex128>;
template decltype(RunLtMatmul<int32_t>) RunLtMatmul<int32_t>;

}  // namespace softgpu::cublas
