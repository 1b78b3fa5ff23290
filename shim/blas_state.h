// What the client knows of cuBLAS and cublasLt objects: enough to encode their calls and to answer
// getters. Thread safety: a library handle belongs to one thread at a time, as in the vendor's
// library; lookups are lock-free.
#pragma once

#include <array>
#include <cstdint>

#include "ipc/calls/vendor.h"
#include "shim/handle_table.h"

namespace shim {

struct BlasHandle {
  uint32_t wire = 0;  // MessageHeader::context
  int device = 0;
  CUstream stream = nullptr;  // nullptr: the legacy stream; a per-thread stream under its own name
  CUstream program_stream = nullptr;  // what cublasSetStream was given
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  bool captured = false;          // graphs have calls of it (graphs/library.h)
  cublasLtHandle_t lt = nullptr;  // made at the first call of cublasLt that gets this handle
  // Hashes of calls that the library has accepted, each at the place that the hash gives. The hash
  // covers all arguments that decide whether the library accepts. The client waits for the answer
  // to the first call with a hash, so that this call returns a refusal itself; later calls with the
  // same hash are queued.
  std::array<uint64_t, 256> accepted{};
};

struct LtMatmulDesc {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType scale = CUDA_R_32F;
  cublasLtPointerMode_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
};

struct LtObject {};

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
