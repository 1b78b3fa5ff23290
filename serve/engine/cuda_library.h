// The driver interface and cuBLAS as an engine uses them, found when it starts: the front, which is
// the same binary, runs without them, and their absence is told in a sentence. As for any CUDA
// program, the library path decides whose they are: the vendor's, Laneway's or the software GPU's.
//
// Results of CUDA become absl::Status here: kResourceExhausted where memory lacks, else
// kUnavailable, because no later call of this engine will succeed either.
// Thread safety: constants once loaded.
#pragma once

#include <cublas_v2.h>
#include <cuda.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace serve::engine {

// The functions by their exported names.
#define SERVE_CUDA_FUNCTIONS(FN)   \
  FN(cuInit)                       \
  FN(cuGetErrorName)               \
  FN(cuGetErrorString)             \
  FN(cuDeviceGet)                  \
  FN(cuDeviceGetCount)             \
  FN(cuDevicePrimaryCtxRetain)     \
  FN(cuDevicePrimaryCtxRelease_v2) \
  FN(cuCtxSetCurrent)              \
  FN(cuStreamCreate)               \
  FN(cuStreamDestroy_v2)           \
  FN(cuStreamSynchronize)          \
  FN(cuEventCreate)                \
  FN(cuEventRecord)                \
  FN(cuEventSynchronize)           \
  FN(cuEventDestroy_v2)            \
  FN(cuModuleLoadData)             \
  FN(cuModuleUnload)               \
  FN(cuModuleGetFunction)          \
  FN(cuLaunchKernel)               \
  FN(cuMemAlloc_v2)                \
  FN(cuMemFree_v2)                 \
  FN(cuMemAllocAsync)              \
  FN(cuMemFreeAsync)               \
  FN(cuMemGetInfo_v2)              \
  FN(cuMemHostAlloc)               \
  FN(cuMemFreeHost)                \
  FN(cuMemHostRegister_v2)         \
  FN(cuMemcpyHtoDAsync_v2)         \
  FN(cuMemcpyDtoHAsync_v2)         \
  FN(cuMemsetD8Async)
#define SERVE_BLAS_FUNCTIONS(FN) \
  FN(cublasCreate_v2)            \
  FN(cublasDestroy_v2)           \
  FN(cublasSetStream_v2)         \
  FN(cublasGetStatusString)      \
  FN(cublasSgemm_v2)             \
  FN(cublasSgemmStridedBatched)

struct Cuda {
#define SERVE_MEMBER(name) decltype(&::name) name = nullptr;
  SERVE_CUDA_FUNCTIONS(SERVE_MEMBER)
  SERVE_BLAS_FUNCTIONS(SERVE_MEMBER)
#undef SERVE_MEMBER

  // `what` failed: "allocating 12 bytes".
  absl::Status StatusOf(CUresult result, std::string_view what) const;
  absl::Status StatusOf(cublasStatus_t result, std::string_view what) const;
};

// libcuda.so.1 and libcublas.so.13, and cuInit. The libraries stay loaded.
absl::StatusOr<const Cuda*> LoadCuda();

}  // namespace serve::engine
