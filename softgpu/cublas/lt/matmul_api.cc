// cublasLtMatmul, and choosing its algorithm, of which there is one.
#include <algorithm>
#include <cstring>

#include "softgpu/cublas/api/bind.h"
#include "softgpu/cublas/lt/matmul.h"

namespace softgpu::cublas {
namespace {

constexpr int kAlgorithmId = 0;

bool IsAlgorithm(const cublasLtMatmulAlgo_t* algo) {
  return Contents<MatmulAlgo>(algo)->magic == MatmulAlgo::kMagic &&
         Contents<MatmulAlgo>(algo)->id == kAlgorithmId;
}

cublasLtMatmulAlgo_t Algorithm() {
  cublasLtMatmulAlgo_t algo = {};
  *Contents<MatmulAlgo>(&algo) = MatmulAlgo{};
  return algo;
}

cublasStatus_t Plan(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, LtMatmul* matmul) {
  if (desc == nullptr || a == nullptr || b == nullptr || d == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const LtLayouts layouts{Contents<MatrixLayout>(a), Contents<MatrixLayout>(b),
                          Contents<MatrixLayout>(c != nullptr ? c : d), Contents<MatrixLayout>(d)};
  return PlanLtMatmul(*Contents<MatmulDesc>(desc), layouts, matmul);
}

template <class E>
cublasStatus_t SubmitAs(const LtMatmul& matmul, const void* alpha, const void* beta,
                        cudaStream_t stream) {
  const TypedScalar<E> alpha_of(matmul.scalars_on_device, alpha, matmul.plan.scale_type);
  const TypedScalar<E> beta_of(matmul.scalars_on_device, beta, matmul.plan.scale_type);
  return EnqueueOn(stream, [=] {
    if (!RequireScalars("cublasLtMatmul", matmul.scalars_on_device, matmul.plan.scale_type,
                        {alpha, beta})) {
      return;
    }
    RunLtMatmul<E>(matmul, alpha_of(), beta_of());
  });
}

cublasStatus_t Matmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                      const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                      cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                      cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                      const cublasLtMatmulAlgo_t* algo, void*, size_t, cudaStream_t stream) {
  if (Handle::From(handle) == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (alpha == nullptr || beta == nullptr || (algo != nullptr && !IsAlgorithm(algo))) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  LtMatmul matmul = {};
  const cublasStatus_t status = Plan(desc, a_layout, b_layout, c_layout, d_layout, &matmul);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (matmul.shape.m == 0 || matmul.shape.n == 0) return CUBLAS_STATUS_SUCCESS;
  const bool has_bias = (matmul.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  const bool a_missing = a == nullptr && matmul.shape.k != 0;
  const bool b_missing = b == nullptr && matmul.shape.k != 0;
  if (a_missing || b_missing || d == nullptr || (has_bias && matmul.bias.data == nullptr)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool swapped = matmul.bias_along_columns;  // the computed product is the transposed one
  matmul.a.data = const_cast<void*>(swapped ? b : a);
  matmul.b.data = const_cast<void*>(swapped ? a : b);
  matmul.c.data = const_cast<void*>(c);
  matmul.d.data = d;
  try {
    return VisitArithmetic(matmul.plan.arithmetic,
                           [&]<class E>(E*) { return SubmitAs<E>(matmul, alpha, beta, stream); });
  } catch (const std::bad_alloc&) {
    return CUBLAS_STATUS_ALLOC_FAILED;
  }
}

cublasStatus_t AlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                cublasLtMatmulPreference_t preference, int requested,
                                cublasLtMatmulHeuristicResult_t* results, int* returned) {
  if (Handle::From(handle) == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (preference == nullptr || requested < 1 || results == nullptr || returned == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *returned = 0;
  LtMatmul matmul = {};
  const cublasStatus_t status = Plan(desc, a, b, c, d, &matmul);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  results[0] = {};
  results[0].algo = Algorithm();
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].wavesCount = 1;
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t AlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                         cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                         cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                         const cublasLtMatmulAlgo_t* algo,
                         cublasLtMatmulHeuristicResult_t* result) {
  if (Handle::From(handle) == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (algo == nullptr || result == nullptr || !IsAlgorithm(algo)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  LtMatmul matmul = {};
  const cublasStatus_t status = Plan(desc, a, b, c, d, &matmul);
  *result = {};
  result->algo = *algo;
  result->state = status;
  result->wavesCount = 1;
  return status;
}

cublasStatus_t AlgoGetIds(cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType_t,
                          cudaDataType_t a, cudaDataType_t b, cudaDataType_t, cudaDataType_t d,
                          int requested, int* ids, int* returned) {
  if (Handle::From(handle) == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (requested < 1 || ids == nullptr || returned == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *returned = 0;
  if (a != b || !PlanProduct(compute, a, d)) return CUBLAS_STATUS_NOT_SUPPORTED;
  ids[0] = kAlgorithmId;
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t AlgoInit(cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType_t,
                        cudaDataType_t a, cudaDataType_t b, cudaDataType_t, cudaDataType_t d,
                        int id, cublasLtMatmulAlgo_t* algo) {
  if (Handle::From(handle) == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (algo == nullptr || id != kAlgorithmId) return CUBLAS_STATUS_INVALID_VALUE;
  if (a != b || !PlanProduct(compute, a, d)) return CUBLAS_STATUS_NOT_SUPPORTED;
  *algo = Algorithm();
  return CUBLAS_STATUS_SUCCESS;
}

// What the algorithm can do, as integers; every capability that isn't listed is 0.
uint64_t Capability(cublasLtMatmulAlgoCapAttributes_t attribute) {
  switch (attribute) {
    case CUBLASLT_ALGO_CAP_STRIDED_BATCH_SUPPORT:
    case CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT:
    case CUBLASLT_ALGO_CAP_POINTER_ARRAY_BATCH_SUPPORT:
    case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES:
      return 1;
    case CUBLASLT_ALGO_CAP_POINTER_MODE_MASK:
      return CUBLASLT_POINTER_MODE_MASK_HOST | CUBLASLT_POINTER_MODE_MASK_DEVICE;
    case CUBLASLT_ALGO_CAP_EPILOGUE_MASK:
      return CUBLASLT_EPILOGUE_DEFAULT | CUBLASLT_EPILOGUE_RELU | CUBLASLT_EPILOGUE_BIAS |
             CUBLASLT_EPILOGUE_GELU;
    case CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS:
      return CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA;
    default:
      return 0;
  }
}

cublasStatus_t AlgoCapGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                   cublasLtMatmulAlgoCapAttributes_t attribute, void* value,
                                   size_t bytes, size_t* written) {
  if (algo == nullptr || !IsAlgorithm(algo)) return CUBLAS_STATUS_INVALID_VALUE;
  const uint64_t capability = Capability(attribute);
  const bool wide = attribute == CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS;
  const size_t needed = wide ? sizeof(uint64_t) : sizeof(uint32_t);
  if (bytes == 0) {
    if (written == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    *written = needed;
    return CUBLAS_STATUS_SUCCESS;
  }
  if (value == nullptr || bytes < needed) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, &capability, needed);  // little-endian
  if (written != nullptr) *written = needed;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace
}  // namespace softgpu::cublas

using namespace softgpu::cublas;  // NOLINT: the exports below are C symbols

SOFTGPU_EXPORT(cublasLtMatmul, &Matmul)
SOFTGPU_EXPORT(cublasLtMatmulAlgoGetHeuristic, &AlgoGetHeuristic)
SOFTGPU_EXPORT(cublasLtMatmulAlgoCheck, &AlgoCheck)
SOFTGPU_EXPORT(cublasLtMatmulAlgoGetIds, &AlgoGetIds)
SOFTGPU_EXPORT(cublasLtMatmulAlgoInit, &AlgoInit)
SOFTGPU_EXPORT(cublasLtMatmulAlgoCapGetAttribute, &AlgoCapGetAttribute)
