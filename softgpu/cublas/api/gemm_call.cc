#include "softgpu/cublas/api/gemm_call.h"

#include <algorithm>
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

// Rows of A that a batch multiplies before it goes on: they stay in a core's cache meanwhile.
constexpr int64_t kPanelRows = 256;

// Products of a batch that has one A, as a layer that many requests go through: A's rows are read
// from memory once, not once a product. Operands of other types are converted whole, so they go the
// usual way.
template <class E>
bool ShareA(const GemmCall& call) {
  return call.batch > 1 && call.a.array == nullptr && call.a.stride == 0 &&
         call.shape.m > kPanelRows && call.a.type == kDataType<E> && call.b.type == kDataType<E>;
}

template <class E>
void MultiplyByPanels(const GemmCall& call, E alpha, E beta) {
  ParallelFor((call.shape.m + kPanelRows - 1) / kPanelRows, [&](int64_t panel) {
    const int64_t first = panel * kPanelRows;
    const GemmShape shape = {call.shape.op_a, call.shape.op_b,
                             std::min(kPanelRows, call.shape.m - first), call.shape.n,
                             call.shape.k};
    const int64_t of_a = call.shape.op_a == CUBLAS_OP_N ? first : first * call.a.ld;
    for (int64_t i = 0; i < call.batch; ++i) {
      MixedGemm<E>(
          shape, alpha, {ElementAt(call.a.At(i), call.a.type, of_a), call.a.type, call.a.ld},
          {call.b.At(i), call.b.type, call.b.ld}, beta,
          {ElementAt(const_cast<void*>(call.c.At(i)), call.c.type, first), call.c.type, call.c.ld});
    }
  });
}

template <class E>
cublasStatus_t SubmitAs(const Handle& handle, const GemmCall& call, cudaDataType scale_type) {
  const TypedScalar<E> alpha_of(call.scalars_on_device, call.alpha, scale_type);
  const TypedScalar<E> beta_of(call.scalars_on_device, call.beta, scale_type);
  return handle.Submit([=] {
    const E alpha = alpha_of(), beta = beta_of();
    if (ShareA<E>(call)) return MultiplyByPanels<E>(call, alpha, beta);
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
