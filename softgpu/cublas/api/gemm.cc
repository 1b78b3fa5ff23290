// The gemm entry points: typed, Ex, batched, strided, grouped.
#include "softgpu/cublas/api/gemm_call.h"

#include "softgpu/cublas/api/bind.h"

namespace softgpu::cublas {
namespace {

using Op = cublasOperation_t;

// The compute type of the functions that have their element type in the name.
template <class T>
constexpr cublasComputeType_t kCompute = CUBLAS_COMPUTE_32F;
template <>
constexpr cublasComputeType_t kCompute<Half> = CUBLAS_COMPUTE_16F;
template <>
constexpr cublasComputeType_t kCompute<double> = CUBLAS_COMPUTE_64F;
template <>
constexpr cublasComputeType_t kCompute<Complex128> = CUBLAS_COMPUTE_64F;

template <class T>
BatchOperand Typed(const T* data, int64_t ld, int64_t stride = 0) {
  return BatchOperand::Strided(data, kDataType<T>, ld, stride);
}
template <class T>
BatchOperand TypedArray(const T* const* array, int64_t ld) {
  return BatchOperand::Array(reinterpret_cast<const void* const*>(array), kDataType<T>, ld);
}

template <class T>
cublasStatus_t Gemm(Handle& handle, Op op_a, Op op_b, int64_t m, int64_t n, int64_t k,
                    const T* alpha, const T* a, int64_t lda, const T* b, int64_t ldb, const T* beta,
                    T* c, int64_t ldc) {
  return SubmitGemm(handle, {{op_a, op_b, m, n, k},
                             kCompute<T>,
                             handle.device_pointers(),
                             alpha,
                             beta,
                             Typed(a, lda),
                             Typed(b, ldb),
                             Typed(c, ldc)});
}

template <class T>
cublasStatus_t GemmStridedBatched(Handle& handle, Op op_a, Op op_b, int64_t m, int64_t n, int64_t k,
                                  const T* alpha, const T* a, int64_t lda, int64_t stride_a,
                                  const T* b, int64_t ldb, int64_t stride_b, const T* beta, T* c,
                                  int64_t ldc, int64_t stride_c, int64_t batch) {
  return SubmitGemm(handle, {{op_a, op_b, m, n, k},
                             kCompute<T>,
                             handle.device_pointers(),
                             alpha,
                             beta,
                             Typed(a, lda, stride_a),
                             Typed(b, ldb, stride_b),
                             Typed(c, ldc, stride_c),
                             batch});
}

template <class T>
cublasStatus_t GemmBatched(Handle& handle, Op op_a, Op op_b, int64_t m, int64_t n, int64_t k,
                           const T* alpha, const T* const* a, int64_t lda, const T* const* b,
                           int64_t ldb, const T* beta, T* const* c, int64_t ldc, int64_t batch) {
  return SubmitGemm(handle, {{op_a, op_b, m, n, k},
                             kCompute<T>,
                             handle.device_pointers(),
                             alpha,
                             beta,
                             TypedArray(a, lda),
                             TypedArray(b, ldb),
                             TypedArray<T>(c, ldc),
                             batch});
}

// S is the type of the scalars: float for cublasSgemmEx, Complex64 for cublasCgemmEx.
template <class S>
cublasStatus_t NamedGemmEx(Handle& handle, Op op_a, Op op_b, int64_t m, int64_t n, int64_t k,
                           const S* alpha, const void* a, cudaDataType type_a, int64_t lda,
                           const void* b, cudaDataType type_b, int64_t ldb, const S* beta, void* c,
                           cudaDataType type_c, int64_t ldc) {
  const bool complex = type_a == CUDA_C_32F || type_a == CUDA_C_8I;
  if (complex != kIsComplex<S>) return CUBLAS_STATUS_NOT_SUPPORTED;
  return SubmitGemm(handle, {{op_a, op_b, m, n, k},
                             CUBLAS_COMPUTE_32F,
                             handle.device_pointers(),
                             alpha,
                             beta,
                             BatchOperand::Strided(a, type_a, lda),
                             BatchOperand::Strided(b, type_b, ldb),
                             BatchOperand::Strided(c, type_c, ldc)});
}

cublasStatus_t GemmEx(Handle& handle, Op op_a, Op op_b, int64_t m, int64_t n, int64_t k,
                      const void* alpha, const void* a, cudaDataType type_a, int64_t lda,
                      const void* b, cudaDataType type_b, int64_t ldb, const void* beta, void* c,
                      cudaDataType type_c, int64_t ldc, cublasComputeType_t compute,
                      cublasGemmAlgo_t) {
  return SubmitGemm(handle, {{op_a, op_b, m, n, k},
                             compute,
                             handle.device_pointers(),
                             alpha,
                             beta,
                             BatchOperand::Strided(a, type_a, lda),
                             BatchOperand::Strided(b, type_b, ldb),
                             BatchOperand::Strided(c, type_c, ldc)});
}

cublasStatus_t GemmStridedBatchedEx(Handle& handle, Op op_a, Op op_b, int64_t m, int64_t n,
                                    int64_t k, const void* alpha, const void* a,
                                    cudaDataType type_a, int64_t lda, int64_t stride_a,
                                    const void* b, cudaDataType type_b, int64_t ldb,
                                    int64_t stride_b, const void* beta, void* c,
                                    cudaDataType type_c, int64_t ldc, int64_t stride_c,
                                    int64_t batch, cublasComputeType_t compute, cublasGemmAlgo_t) {
  return SubmitGemm(handle, {{op_a, op_b, m, n, k},
                             compute,
                             handle.device_pointers(),
                             alpha,
                             beta,
                             BatchOperand::Strided(a, type_a, lda, stride_a),
                             BatchOperand::Strided(b, type_b, ldb, stride_b),
                             BatchOperand::Strided(c, type_c, ldc, stride_c),
                             batch});
}

cublasStatus_t GemmBatchedEx(Handle& handle, Op op_a, Op op_b, int64_t m, int64_t n, int64_t k,
                             const void* alpha, const void* const* a, cudaDataType type_a,
                             int64_t lda, const void* const* b, cudaDataType type_b, int64_t ldb,
                             const void* beta, void* const* c, cudaDataType type_c, int64_t ldc,
                             int64_t batch, cublasComputeType_t compute, cublasGemmAlgo_t) {
  return SubmitGemm(handle, {{op_a, op_b, m, n, k},
                             compute,
                             handle.device_pointers(),
                             alpha,
                             beta,
                             BatchOperand::Array(a, type_a, lda),
                             BatchOperand::Array(b, type_b, ldb),
                             BatchOperand::Array(c, type_c, ldc),
                             batch});
}

// One group, as the call in batches that it is.
template <class... A>
CallRecord GroupOf(const char* family, A... arguments) {
  CallRecord record("cublasGemmGroupedBatched", ipc::blas::FamilyOf(family));
  size_t index = 0;
  (record.Set(++index, NumberOf(arguments), PointedBytes<A>()), ...);
  return record;
}

// Groups: everything of a group but the matrices comes in host arrays, read now; the pointers of
// all groups follow each other in device arrays. Index is int or int64_t.
template <class T>
struct GemmGroupedBatched {
  template <class Index>
  cublasStatus_t operator()(Handle& handle, const Op* op_a, const Op* op_b, const Index* m,
                            const Index* n, const Index* k, const T* alpha, const T* const* a,
                            const Index* lda, const T* const* b, const Index* ldb, const T* beta,
                            T* const* c, const Index* ldc, int64_t groups,
                            const Index* sizes) const {
    if (groups < 0) return CUBLAS_STATUS_INVALID_VALUE;
    int64_t first = 0;
    for (int64_t g = 0; g < groups; first += sizes[g++]) {
      const CallRecord record =
          GroupOf("cublasSgemmBatched", op_a[g], op_b[g], m[g], n[g], k[g], alpha + g, a + first,
                  lda[g], b + first, ldb[g], beta + g, c + first, ldc[g], sizes[g]);
      const CallScope scope(&record);
      const cublasStatus_t status = SubmitGemm(handle, {{op_a[g], op_b[g], m[g], n[g], k[g]},
                                                        kCompute<T>,
                                                        false,
                                                        alpha + g,
                                                        beta + g,
                                                        TypedArray(a + first, lda[g]),
                                                        TypedArray(b + first, ldb[g]),
                                                        TypedArray<T>(c + first, ldc[g]),
                                                        sizes[g]});
      if (status != CUBLAS_STATUS_SUCCESS) return status;
    }
    return CUBLAS_STATUS_SUCCESS;
  }
};
template <class T>
inline constexpr GemmGroupedBatched<T> kGemmGroupedBatched{};

struct GemmGroupedBatchedEx {
  template <class Index>
  cublasStatus_t operator()(Handle& handle, const Op* op_a, const Op* op_b, const Index* m,
                            const Index* n, const Index* k, const void* alpha, const void* const* a,
                            cudaDataType type_a, const Index* lda, const void* const* b,
                            cudaDataType type_b, const Index* ldb, const void* beta, void* const* c,
                            cudaDataType type_c, const Index* ldc, int64_t groups,
                            const Index* sizes, cublasComputeType_t compute) const {
    if (groups < 0) return CUBLAS_STATUS_INVALID_VALUE;
    const int64_t scale_bytes = compute == CUBLAS_COMPUTE_64F   ? sizeof(double)
                                : compute == CUBLAS_COMPUTE_16F ? sizeof(Half)
                                                                : sizeof(float);
    int64_t first = 0;
    for (int64_t g = 0; g < groups; first += sizes[g++]) {
      const CallRecord record = GroupOf("cublasGemmBatchedEx", op_a[g], op_b[g], m[g], n[g], k[g],
                                        alpha, a + first, type_a, lda[g], b + first, type_b, ldb[g],
                                        beta, c + first, type_c, ldc[g], sizes[g]);
      const CallScope scope(&record);
      const cublasStatus_t status =
          SubmitGemm(handle, {{op_a[g], op_b[g], m[g], n[g], k[g]},
                              compute,
                              false,
                              static_cast<const char*>(alpha) + g * scale_bytes,
                              static_cast<const char*>(beta) + g * scale_bytes,
                              BatchOperand::Array(a + first, type_a, lda[g]),
                              BatchOperand::Array(b + first, type_b, ldb[g]),
                              BatchOperand::Array(c + first, type_c, ldc[g]),
                              sizes[g]});
      if (status != CUBLAS_STATUS_SUCCESS) return status;
    }
    return CUBLAS_STATUS_SUCCESS;
  }
};

}  // namespace
}  // namespace softgpu::cublas

using namespace softgpu::cublas;  // NOLINT: the exports below are C symbols

SOFTGPU_EXPORT_SDCZ(gemm_v2, Gemm)
SOFTGPU_EXPORT_BOTH(cublasHgemm, Gemm<Half>)
SOFTGPU_EXPORT_CZ(gemm3m, Gemm)
SOFTGPU_EXPORT_SDCZ(gemmStridedBatched, GemmStridedBatched)
SOFTGPU_EXPORT_BOTH(cublasHgemmStridedBatched, GemmStridedBatched<Half>)
SOFTGPU_EXPORT_BOTH(cublasCgemm3mStridedBatched, GemmStridedBatched<Complex64>)
SOFTGPU_EXPORT_SDCZ(gemmBatched, GemmBatched)
SOFTGPU_EXPORT_BOTH(cublasHgemmBatched, GemmBatched<Half>)
SOFTGPU_EXPORT_BOTH(cublasCgemm3mBatched, GemmBatched<Complex64>)
SOFTGPU_EXPORT_BOTH(cublasSgemmEx, NamedGemmEx<float>)
SOFTGPU_EXPORT_BOTH(cublasCgemmEx, NamedGemmEx<Complex64>)
SOFTGPU_EXPORT_BOTH(cublasCgemm3mEx, NamedGemmEx<Complex64>)
SOFTGPU_EXPORT_BOTH(cublasGemmEx, GemmEx)
SOFTGPU_EXPORT_BOTH(cublasGemmStridedBatchedEx, GemmStridedBatchedEx)
SOFTGPU_EXPORT_BOTH(cublasGemmBatchedEx, GemmBatchedEx)
SOFTGPU_EXPORT_SD(gemmGroupedBatched, kGemmGroupedBatched)
SOFTGPU_EXPORT_BOTH(cublasGemmGroupedBatchedEx, GemmGroupedBatchedEx{})
