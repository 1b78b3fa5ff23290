#include "softgpu/cublas/api/gemm_call.h"

#include <optional>

#include "softgpu/cublas/api/check.h"
#include "softgpu/cublas/core/arithmetic.h"
#include "softgpu/cublas/core/mixed.h"
#include "softgpu/cublas/core/pool.h"

namespace softgpu::cublas {
namespace {

cublasStatus_t Check(const GemmCall& call) {
  const GemmShape& shape = call.shape;
  if (!IsValid(shape.op_a) || !IsValid(shape.op_b) ||
      !AreSizes({shape.m, shape.n, shape.k, call.batch}) || call.alpha == nullptr ||
      call.beta == nullptr ||
      !IsLeading(call.a.ld, StoredExtent(shape.op_a, shape.m, shape.k).rows) ||
      !IsLeading(call.b.ld, StoredExtent(shape.op_b, shape.k, shape.n).rows) ||
      !IsLeading(call.c.ld, shape.m)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (call.a.type != call.b.type) return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool countable = Countable({shape.m, shape.n, shape.k, call.a.ld, call.b.ld, call.c.ld});
  return countable ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

template <class E>
cublasStatus_t SubmitAs(const Handle& handle, const GemmCall& call, cudaDataType scale_type) {
  const TypedScalar<E> alpha_of(call.scalars_on_device, call.alpha, scale_type);
  const TypedScalar<E> beta_of(call.scalars_on_device, call.beta, scale_type);
  return handle.Submit([=] {
    const E alpha = alpha_of(), beta = beta_of();
    ParallelFor(call.batch, [&](int64_t i) {
      MixedGemm<E>(call.shape, alpha, {call.a.At(i), call.a.type, call.a.ld},
                   {call.b.At(i), call.b.type, call.b.ld}, beta,
                   {const_cast<void*>(call.c.At(i)), call.c.type, call.c.ld});
    });
  });
}

}  // namespace

cublasStatus_t SubmitGemm(const Handle& handle, const GemmCall& call) {
  const cublasStatus_t status = Check(call);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const std::optional<ProductPlan> plan = PlanProduct(call.compute, call.a.type, call.c.type);
  if (!plan) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (call.shape.m == 0 || call.shape.n == 0 || call.batch == 0) return CUBLAS_STATUS_SUCCESS;
  return VisitArithmetic(plan->arithmetic,
                         [&]<class E>(E*) { return SubmitAs<E>(handle, call, plan->scale_type); });
}

}  // namespace softgpu::cublas
