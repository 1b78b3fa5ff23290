// D = activation(alpha * op(A) * op(B) + beta * C + bias), checked once and then run any number of
// times. Heuristics, checks of algorithms and the product itself share this one judgement of what
// is supported.
//
// Supported: column and row order, strided and pointer-array batches, bias, ReLU and GELU (in its
// tanh form), scalars on host or device. Refused: 8-bit floats and their scales, the auxiliary
// outputs and gradient epilogues, vectors of alpha, tiled orders, planar complex. Thread safety:
// values.
#pragma once

#include <initializer_list>
#include <optional>

#include "softgpu/cublas/core/arithmetic.h"
#include "softgpu/cublas/core/mixed.h"
#include "softgpu/cublas/lt/objects.h"

namespace softgpu::cublas {

// A batch of column-major matrices; a row-major one is described as its transpose.
struct LtOperand {
  void* At(int64_t index) const {
    if (pointer_array) return static_cast<void* const*>(data)[index];
    return ElementAt(data, type, index * stride);
  }
  TypedConstMatrix Const(int64_t index) const { return {At(index), type, ld}; }

  void* data;
  cudaDataType type;
  int64_t ld, stride;
  bool pointer_array;
};

struct LtMatmul {
  // `shape` and the operands are those of the column-major product that is computed: for a
  // row-major D it is the transposed one.
  GemmShape shape;
  ProductPlan plan;
  LtOperand a, b, c, d;
  int64_t batch;
  bool scalars_on_device;
  uint32_t epilogue;
  bool bias_along_columns;  // the bias of element (i, j) is bias[j]
  LtOperand bias;
};

struct LtLayouts {
  const MatrixLayout *a, *b, *c, *d;
};

// Leaves the addresses of A to D null. INVALID_VALUE for contradictions, NOT_SUPPORTED otherwise.
cublasStatus_t PlanLtMatmul(const MatmulDesc& desc, const LtLayouts& layouts, LtMatmul* matmul);

// From inside queued work: whether scalars that lie on the device are there; else the stream has
// faulted.
bool RequireScalars(const char* name, bool on_device, cudaDataType type,
                    std::initializer_list<const void*> scalars);

// Runs it, in the calling thread and the pool. Memory that is not there is a fault of the device.
template <class E>
void RunLtMatmul(const LtMatmul& matmul, E alpha, E beta);

}  // namespace softgpu::cublas
