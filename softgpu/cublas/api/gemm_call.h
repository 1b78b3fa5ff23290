// Every gemm of cuBLAS as one value: single, strided batch, batch of pointers, of any types. The
// entry points fill it in; SubmitGemm checks it and queues it.
#pragma once

#include <cublas_api.h>

#include "softgpu/cublas/core/dense.h"
#include "softgpu/cublas/core/handle.h"

namespace softgpu::cublas {

// A matrix of each element of a batch. In an array the pointers lie in device memory, and are read
// when the work runs.
struct BatchOperand {
  static BatchOperand Strided(const void* data, cudaDataType type, int64_t ld, int64_t stride = 0) {
    return {data, nullptr, type, ld, stride};
  }
  static BatchOperand Array(const void* const* array, cudaDataType type, int64_t ld) {
    return {nullptr, array, type, ld, 0};
  }
  const void* At(int64_t index) const {
    if (array != nullptr) return array[index];
    return static_cast<const char*>(data) + index * stride * ElementBytes(type);
  }

  const void* data;
  const void* const* array;
  cudaDataType type;
  int64_t ld;
  int64_t stride;  // in elements
};

struct GemmCall {
  GemmShape shape;
  cublasComputeType_t compute;
  bool scalars_on_device;
  const void* alpha;
  const void* beta;
  BatchOperand a, b, c;
  int64_t batch = 1;
};

cublasStatus_t SubmitGemm(const Handle& handle, const GemmCall& call);

}  // namespace softgpu::cublas
