// What the client knows of cuBLAS and cublasLt objects: enough to encode their calls and to answer getters.
// Thread safety: a library handle belongs to one thread at a time, as in the vendor's library; lookups are
// lock-free.
#pragma once

#include <cstdint>

#include "ipc/calls/vendor.h"
#include "shim/handle_table.h"

namespace shim {

struct BlasHandle {
  uint64_t context = 0;
  CUstream stream = nullptr;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasAtomicsMode_t atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
  int sm_count_target = 0;
};

struct LtMatmulDesc {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType scale = CUDA_R_32F;
  cublasLtPointerMode_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
};

struct LtObject {};

// A result that a queued call writes for a program under host pointer mode.
struct HostResult {
  void* host = nullptr;
  size_t bytes = 0;
  uint64_t address = 0;
};

class BlasState {
 public:
  static BlasState& Process();

  HandleTable<BlasHandle, ipc::HandleKind::kBlas> handles;
  HandleTable<LtObject, ipc::HandleKind::kBlasLt> lt_handles;
  HandleTable<LtMatmulDesc, ipc::HandleKind::kLtMatmulDesc> matmul_descs;
  HandleTable<LtObject, ipc::HandleKind::kLtMatrixLayout> layouts;
  HandleTable<LtObject, ipc::HandleKind::kLtPreference> preferences;
  HandleTable<LtObject, ipc::HandleKind::kLtTransformDesc> transform_descs;
  HandleTable<LtObject, ipc::HandleKind::kLtEmulationDesc> emulation_descs;
};

}  // namespace shim
