// Copies and fills: one box of bytes, whatever the entry point was called.
//
// Thread safety: functions without state.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>

#include "softgpu/driver/operation.h"

namespace softgpu {

// Where a side of a copy lies. Memory::kUnified: found out from the address, as cuMemcpy does.
struct CopySide {
  enum class Memory { kHost, kDevice, kUnified };

  Memory memory = Memory::kUnified;
  uint64_t address = 0;  // of the box's first byte
  uint64_t pitch = 0;    // bytes from row to row
  uint64_t slice = 0;    // bytes from plane to plane
};

struct CopyBox {
  CopySide destination, source;
  uint64_t width = 0, height = 1, depth = 1;  // bytes, rows, planes
};

// How long the caller waits. Synchronous calls wait for copies from and to the host; asynchronous
// calls only where the manual says that pageable memory makes them.
enum class CopyMode { kSynchronous, kAsynchronous };
inline constexpr CopyMode kSync = CopyMode::kSynchronous, kAsync = CopyMode::kAsynchronous;

CUresult SubmitCopy(const CopyBox& box, CUstream stream, CopyMode mode);

struct Fill {
  uint64_t address = 0, pitch = 0;
  uint64_t width = 0, height = 1;  // elements, rows
  uint32_t value = 0;
  unsigned element_bytes = 1;  // 1, 2 or 4
};

// The operation alone, and the checks that come before it.
CUresult CheckCopy(const CopyBox& box);
CUresult CheckFill(const Fill& fill);
std::unique_ptr<Operation> MakeCopy(const CopyBox& box);
std::unique_ptr<Operation> MakeFill(const Fill& fill);

// Between a box and the parameters of cuMemcpy3D.
CUresult BoxOf(const CUDA_MEMCPY3D& params, CopyBox* box);
CUDA_MEMCPY3D ParamsOf(const CopyBox& box);

CUresult SubmitFill(const Fill& fill, CUstream stream, CopyMode mode);

}  // namespace softgpu
